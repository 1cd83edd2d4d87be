"""Pictures of samples: the right images in the right places."""

import numpy as np
import pytest
from PIL import Image

from synthsieve.errors import DataError
from synthsieve.results.export.media import spaced_ranks, write_entropy_figure, write_samples_figure
from tests.errors import raises

SIDE = 32  # images of 32 pixels are not enlarged


def flat_images(shades, channels=1):
    """One image a shade, each of that shade alone."""
    return np.broadcast_to(np.asarray(shades, dtype=np.uint8)[:, None, None, None], (len(shades), channels, SIDE, SIDE))


def shades_in(path, rows, columns):
    """The shade in the middle of each place; 255 where there is no image."""
    sheet = np.asarray(Image.open(path).convert("L"))
    assert sheet.shape == (rows * (SIDE + 1) + 1, columns * (SIDE + 1) + 1)
    return sheet[SIDE // 2 :: SIDE + 1, SIDE // 2 :: SIDE + 1].tolist()


def test_samples_figure_has_a_row_a_class_in_the_order_given(tmp_path):
    x, y = flat_images([50, 10, 40, 20, 30, 60]), np.array([1, 0, 1, 0, 1, 1])
    write_samples_figure(tmp_path / "samples.png", x, y, columns=3)
    assert shades_in(tmp_path / "samples.png", 2, 3) == [[10, 20, 255], [50, 40, 30]]


def test_samples_figure_in_colour_and_small_images_enlarged(tmp_path):
    write_samples_figure(tmp_path / "colour.png", flat_images([1, 2], channels=3), np.array([0, 1]))
    assert Image.open(tmp_path / "colour.png").mode == "RGB"
    write_samples_figure(tmp_path / "small.png", np.zeros((4, 1, 8, 8), dtype=np.uint8), np.zeros(4), columns=4)
    assert Image.open(tmp_path / "small.png").size == (4 * (4 * 9 + 1), 4 * 10)


def test_entropy_figure_is_sorted_lowest_first(tmp_path):
    x, entropy = flat_images([50, 10, 40, 20, 30]), np.array([0.5, 0.1, 0.4, 0.2, 0.3])
    write_entropy_figure(tmp_path / "entropy.png", x, entropy, columns=3, rows=4)
    assert shades_in(tmp_path / "entropy.png", 2, 3) == [[10, 20, 30], [40, 50, 255]]


def test_entropy_figure_spreads_over_the_whole_pool(tmp_path):
    shades = np.random.default_rng(0).permutation(201)
    write_entropy_figure(tmp_path / "entropy.png", flat_images(shades), shades / 100, columns=3, rows=3)
    assert shades_in(tmp_path / "entropy.png", 3, 3) == [[0, 25, 50], [75, 100, 125], [150, 175, 200]]


@pytest.mark.parametrize(("n", "count"), [(1, 5), (5, 5), (6, 5), (1000, 50), (7, 1)])
def test_spaced_ranks(n, count):
    ranks = spaced_ranks(n, count)
    assert len(ranks) == min(n, count)
    assert (np.diff(ranks) > 0).all()
    assert ranks[0] == 0
    assert ranks[-1] == (n - 1 if count > 1 else 0)
    assert np.ptp(np.diff(ranks)) <= 1 if len(ranks) > 2 else True


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda path: write_samples_figure(path, np.zeros((3, 5)), np.zeros(3)), "not-images"),
        (lambda path: write_samples_figure(path, flat_images([1, 2]), np.zeros(3)), "length-mismatch"),
        (lambda path: write_samples_figure(path, flat_images([]), np.zeros(0)), "not-images"),
        (lambda path: write_samples_figure(path, flat_images([1]), np.zeros(1), columns=0), "out-of-range"),
        (lambda path: write_entropy_figure(path, flat_images([1]), np.zeros(2)), "length-mismatch"),
        (lambda path: write_entropy_figure(path, flat_images([1]), np.array([np.nan])), "not-finite"),
    ],
)
def test_invalid_input(tmp_path, call, code):
    with raises(DataError, code):
        call(tmp_path / "figure")
    assert list(tmp_path.iterdir()) == []
