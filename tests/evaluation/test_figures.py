"""Figures: the right images in the right places, and curves that any XML reader reads."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from synthsieve.errors import DataError
from synthsieve.evaluation.figures import (
    DARK_LINES,
    DARK_PAGE,
    LIGHT_LINES,
    LIGHT_PAGE,
    spaced_ranks,
    ticks,
    write_curve_figure,
    write_entropy_figure,
    write_samples_figure,
)

SIDE = 32  # images of 32 pixels are drawn at their own size
SVG = "{http://www.w3.org/2000/svg}"
LABELS = {"title": "a < b & c", "x_label": "step", "y_label": "accuracy, %"}


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
    ("call", "words"),
    [
        (lambda path: write_samples_figure(path, np.zeros((3, 5)), np.zeros(3)), "expected images.* float64 of shape"),
        (lambda path: write_samples_figure(path, flat_images([1, 2]), np.zeros(3)), r"expected y of shape \(2,\)"),
        (lambda path: write_samples_figure(path, flat_images([]), np.zeros(0)), "expected at least one image"),
        (lambda path: write_samples_figure(path, flat_images([1]), np.zeros(1), columns=0), "columns of at least 1"),
        (lambda path: write_entropy_figure(path, flat_images([1]), np.zeros(2)), "expected entropy of shape"),
        (lambda path: write_entropy_figure(path, flat_images([1]), np.array([np.nan])), "got nan"),
        (lambda path: write_curve_figure(path, [], {}, **LABELS), "finite numbers as x"),
        (lambda path: write_curve_figure(path, [1, math.inf], {"a": [1, 2]}, **LABELS), "finite numbers as x"),
        (lambda path: write_curve_figure(path, [1, 2], {"a": [1]}, **LABELS), "expected 2 values for 'a'"),
        (lambda path: write_curve_figure(path, [1], {"a": [math.nan]}, **LABELS), "at least one finite value"),
    ],
)
def test_what_cannot_be_drawn_is_told_in_one_sentence(tmp_path, call, words):
    with pytest.raises(DataError, match=words):
        call(tmp_path / "figure")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", [1, 2, 15])
def test_curves_are_xml_with_a_line_a_name(tmp_path, count):
    lines = {f"arm <{i}> & co": [90.0 + i, 91.0 + i, 95.0 + i] for i in range(count)}
    write_curve_figure(tmp_path / "curves.svg", [0, 100, 250], lines, **LABELS)
    root = ElementTree.parse(tmp_path / "curves.svg").getroot()
    drawn = root.findall(f"{SVG}polyline")
    assert len(drawn) == count
    assert len({(line.get("class"), line.get("stroke-dasharray")) for line in drawn}) == count
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert {"a < b & c", "step", "accuracy, %", *lines} <= set(words)
    assert root.find(f"{SVG}title").text == "a < b & c"
    width, height = (float(root.get(side)) for side in ("width", "height"))
    assert root.get("viewBox") == f"0 0 {width:g} {height:g}"
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("y", 1)) < height


def test_points_stand_where_the_axes_say(tmp_path):
    write_curve_figure(tmp_path / "c.svg", [0, 5, 10], {"a": [0.0, math.nan, 1.0], "b": [1.0, 0.5, 0.0]}, **LABELS)
    first, second = ElementTree.parse(tmp_path / "c.svg").getroot().findall(f"{SVG}polyline")
    assert first.get("points") == "70.0,348.0 620.0,44.0"
    assert second.get("points") == "70.0,44.0 345.0,196.0 620.0,348.0"


def test_a_flat_line_and_a_single_point_can_be_drawn(tmp_path):
    write_curve_figure(tmp_path / "c.svg", [3], {"a": [0.0]}, **LABELS)
    (line,) = ElementTree.parse(tmp_path / "c.svg").getroot().findall(f"{SVG}polyline")
    assert line.get("points") == "345.0,196.0"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (82.1, 97.4, [80, 85, 90, 95, 100]),
        (0, 2000, [0, 500, 1000, 1500, 2000]),
        (-0.03, 0.02, [-0.03, -0.02, -0.01, 0, 0.01, 0.02]),
        (5, 5, [2, 3, 4, 5, 6, 7, 8]),
        (0, 0, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_ticks_are_round_and_hold_the_range(low, high, expected):
    assert ticks(low, high) == expected


@pytest.mark.parametrize(("page", "lines"), [(LIGHT_PAGE, LIGHT_LINES), (DARK_PAGE, DARK_LINES)])
def test_lines_stand_out_from_their_page(page, lines):
    """Contrast of 3 to 1 or more, as the accessibility guidelines (WCAG 1.4.11) ask of graphics."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    for line in lines:
        dark, light = sorted((luminance(page), luminance(line)))
        assert (light + 0.05) / (dark + 0.05) >= 3
