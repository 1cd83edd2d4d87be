"""What each format says is what comes out."""

from __future__ import annotations

from pathlib import Path

import made_up
import numpy as np
import pytest
from PIL import Image

from synthsieve.data.dataset import Kind
from synthsieve.data.labels import read_labels
from synthsieve.data.sources import load


def test_digits_are_scaled_and_rounded() -> None:
    from sklearn.datasets import load_digits

    x = load("digits").train.x
    assert x.shape == (1797, 1, 8, 8)
    assert (x.min(), x.max()) == (0, 255)
    np.testing.assert_array_equal(np.rint(x[:, 0] * (16 / 255)), load_digits().images)


def test_svhn_ten_is_zero_and_axes_are_turned(tmp_path: Path) -> None:
    dataset = load(str(made_up.write_mat(tmp_path / "train_32x32.mat")))
    np.testing.assert_array_equal(dataset.train.y, (np.arange(40) % 10 + 1) % 10)
    np.testing.assert_array_equal(dataset.train.x, made_up.images(40, (32, 32, 3)).transpose(0, 3, 1, 2))
    assert dataset.train.groups is not None
    np.testing.assert_array_equal(dataset.train.groups, np.arange(40) // 2)


def test_idx_pixels_and_dtypes(tmp_path: Path) -> None:
    dataset = load(str(made_up.write_idx(tmp_path, "letters")))
    np.testing.assert_array_equal(dataset.train.x[:, 0], made_up.images(40, (8, 12)))
    assert dataset.test is None
    images = tmp_path / "letters-images-idx3-ubyte.gz"
    images.write_bytes(made_up.idx_bytes(np.linspace(0, 1, 40 * 64, dtype=np.float32).reshape(40, 8, 8)))
    x = load(str(images)).train.x
    assert (x.dtype, x.min(), x.max()) == (np.float32, -1, 1)


FLOATS = {
    "-1..1": (np.array([-1.0, 0.5, 1.0]), [-1.0, 0.5, 1.0], False),
    "0..1": (np.array([0.0, 0.5, 1.0]), [-1.0, 0.0, 1.0], True),
    "0..255": (np.array([0.0, 127.5, 255.0]), [-1.0, 0.0, 1.0], True),
}


@pytest.mark.parametrize(("values", "expected", "noted"), FLOATS.values(), ids=list(FLOATS))
def test_float_images_span_minus_one_to_one(
    values: np.ndarray, expected: list[float], noted: bool, tmp_path: Path
) -> None:
    x = np.resize(values, (40, 1, 4, 4))
    dataset = load(str(made_up.write_npz(tmp_path / "a.npz", x=x)))
    assert dataset.train.x.dtype == np.float32
    np.testing.assert_allclose(np.unique(dataset.train.x), expected, atol=1e-6)
    assert bool(dataset.notes) == noted


def test_a_stated_range_is_not_guessed_and_holds_for_the_test_set(tmp_path: Path) -> None:
    x = np.full((40, 1, 4, 4), 0.5)
    given = {"x": x, "range": np.array([0, 10]), "x_test": x[:2] * 20, "y_test": np.array([0, 1])}
    dataset = load(str(made_up.write_npz(tmp_path / "a.npz", **given)))
    assert dataset.test is not None
    np.testing.assert_allclose([dataset.train.x[0, 0, 0, 0], dataset.test.x[0, 0, 0, 0]], [-0.9, 1.0], rtol=1e-6)


LAYOUTS = {
    "grey": ((8, 12), (1, 8, 12)),
    "channels first": ((3, 8, 12), (3, 8, 12)),
    "channels last": ((8, 12, 3), (3, 8, 12)),
    "both could be": ((4, 4, 4), (4, 4, 4)),
}


@pytest.mark.parametrize(("given", "shape"), LAYOUTS.values(), ids=list(LAYOUTS))
def test_layouts(given: tuple[int, ...], shape: tuple[int, ...], tmp_path: Path) -> None:
    x = made_up.images(40, given)
    dataset = load(str(made_up.write_npz(tmp_path / "a.npz", x=x)))
    assert dataset.shape == shape
    assert dataset.train.x.dtype == np.uint8


def test_booleans_become_black_and_white(tmp_path: Path) -> None:
    x = made_up.images(40, (8, 8)) > 127
    assert np.unique(load(str(made_up.write_npz(tmp_path / "a.npz", x=x))).train.x).tolist() == [0, 255]


LABELS = {
    "integers sort as numbers": (np.array([10, 9, -1, 2]), ("2", "9", "10"), [2, 1, -1, 0]),
    "numbers in text too": (np.array(["10", "9", "", "2"]), ("2", "9", "10"), [2, 1, -1, 0]),
    "text": (np.array(["b", "a", "", "B"]), ("B", "a", "b"), [2, 1, -1, 0]),
    "booleans": (np.array([True, False]), ("0", "1"), [1, 0]),
    "a column": (np.array([[1], [0]]), ("0", "1"), [1, 0]),
    "unsigned, with gaps": (np.array([200, 7], np.uint8), ("7", "200"), [1, 0]),
}


@pytest.mark.parametrize(("raw", "classes", "y"), LABELS.values(), ids=list(LABELS))
def test_labels(raw: np.ndarray, classes: tuple[str, ...], y: list[int]) -> None:
    labels = read_labels(raw, origin="here")
    assert (labels.classes, labels.y.tolist(), labels.y.dtype) == (classes, y, np.int64)


def test_csv_columns_and_empty_labels(tmp_path: Path) -> None:
    text = "name,a,b\n3.0,1,0.5\n,2,true\n"
    path = made_up.write_csv(tmp_path / "a.csv", text.replace("true", "1.5") + "NA,3,2.5\n 3 ,4,3.5\n")
    dataset = load(str(path), label="name")
    assert dataset.kind is Kind.TABLE
    assert dataset.feature_names == ("a", "b")
    assert dataset.classes == ("3", "NA")
    assert dataset.train.y.tolist() == [0, -1, 1, 0]
    assert dataset.train.x.tolist() == [[1, 0.5], [2, 1.5], [3, 2.5], [4, 3.5]]


def test_parquet_floats_that_are_whole_are_classes(tmp_path: Path) -> None:
    dataset = load(str(made_up.write_parquet(tmp_path / "a.parquet")), label="answer")
    assert dataset.classes == ("0", "1", "2")
    assert dataset.train.y[:6].tolist() == [-1, 1, 2, 0, 1, -1]
    assert dataset.feature_names == ("height", "flag")


def test_image_folder_order_and_other_files(tmp_path: Path) -> None:
    root = made_up.write_folder(tmp_path / "pets")
    (root / "cat" / "notes.txt").write_text("hello", encoding="utf-8")
    (root / "cat" / ".hidden").write_text("hello", encoding="utf-8")
    (root / "unlabeled").rename(root / "unlabelled")
    dataset = load(str(root))
    assert dataset.name == "pets"
    assert dataset.train.y.tolist() == [0] * 10 + [1] * 10 + [-1] * 10
    np.testing.assert_array_equal(dataset.train.x[:10], made_up.images(10, (8, 8, 3)).transpose(0, 3, 1, 2))
    assert dataset.notes == ("1 files that are not images were passed over",)


@pytest.mark.parametrize("suffix", ["jpg", "webp", "bmp"])
def test_other_image_formats(suffix: str, tmp_path: Path) -> None:
    for name, grey in (("dark", 20), ("light", 220)):
        (tmp_path / "set" / name).mkdir(parents=True)
        Image.new("L" if suffix != "webp" else "RGB", (8, 8), grey if suffix != "webp" else (grey,) * 3).save(
            tmp_path / "set" / name / f"a.{suffix}"
        )
    x = load(str(tmp_path / "set")).train.x
    assert abs(int(x[0].mean()) - 20) < 5
    assert abs(int(x[1].mean()) - 220) < 5
