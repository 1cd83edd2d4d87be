"""What each format says is what comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from synthsieve.data.dataset import Kind
from synthsieve.data.formats.arrays import ImageForm
from synthsieve.data.labels import read_labels
from synthsieve.data.modalities.registry import fit_encoding
from synthsieve.data.registry import load
from synthsieve.errors import DataError
from tests.data import made_up
from tests.errors import raises


def test_digits_are_scaled_and_rounded() -> None:
    from sklearn.datasets import load_digits

    x = load("digits").train.x
    assert x.shape == (1797, 1, 8, 8)
    assert (x.min(), x.max()) == (0, 255)
    np.testing.assert_array_equal(np.rint(x[:, 0] * (16 / 255)), load_digits().images)


def test_svhn_layout(tmp_path: Path) -> None:
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
    "0..16": (np.array([0.0, 8.0, 16.0]), [-1.0, 0.0, 1.0], True),
    "0..0.2": (np.array([0.0, 0.1, 0.2]), [-1.0, 0.0, 1.0], True),
    "-2..2": (np.array([-2.0, 0.0, 2.0]), [-1.0, 0.0, 1.0], True),
    "integers 0..16": (np.array([0, 8, 16]), [-1.0, 0.0, 1.0], True),
    "bytes 0..16": (np.array([0, 8, 16], np.uint8), [-1.0, 0.0, 1.0], True),
    "16 bits": (np.array([0, 2**15, 2**16 - 1], np.uint16), [-1.0, 2**15 / (2**16 - 1) * 2 - 1, 1.0], True),
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


def test_value_range_in_notes_and_encoding(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 17, (40, 1, 8, 8))
    given = {"x": x, "x_test": x[:2] + (x[:2] == 16), "y_test": np.array([0, 1])}
    dataset = load(str(made_up.write_npz(tmp_path / "a.npz", **given)))
    assert dataset.notes[0] == "a.npz, x: pixel values 0 to 16 are scaled to [-1, 1]"
    assert "outside the range of training, 0 to 16, and are clipped" in dataset.notes[1]
    assert dataset.test is not None
    np.testing.assert_array_equal(dataset.test.x, dataset.train.x[:2])
    assert fit_encoding(dataset, np.arange(40)).to_json()["form"]["value_range"] == [0, 16]


@pytest.mark.parametrize("top", [128, 255])
def test_bytes_stay_bytes(top: int, tmp_path: Path) -> None:
    x = np.resize(np.array([0, top], np.uint8), (40, 1, 8, 8))
    dataset = load(str(made_up.write_npz(tmp_path / "a.npz", x=x)))
    assert (dataset.train.x.dtype, dataset.notes, dataset.metadata) == (np.uint8, (), ImageForm("chw", "uint8"))
    np.testing.assert_array_equal(dataset.train.x, x)


def test_given_value_range(tmp_path: Path) -> None:
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
    assert dataset.notes == ("1 files that are not images were skipped",)


def write_image(path: Path, size: tuple[int, int], colour: tuple[int, ...], mode: str = "RGB", **how: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGBA" if len(colour) == 4 else "RGB", size, colour).convert(mode).save(path, **how)


RED, BLUE = (250, 10, 10), (10, 10, 250)


def test_photos_of_any_size_and_mode(tmp_path: Path) -> None:
    write_image(tmp_path / "red" / "a.jpg", (640, 480), RED)
    write_image(tmp_path / "red" / "b.png", (20, 50), RED, "P")
    write_image(tmp_path / "blue" / "c.png", (33, 31), (*BLUE, 255), "RGBA")
    write_image(tmp_path / "blue" / "grey.png", (64, 64), (90, 90, 90), "L")
    write_image(tmp_path / "blue" / "seen-through.png", (64, 64), (0, 0, 0, 0), "RGBA")
    dataset = load(str(tmp_path))
    assert dataset.shape == (3, 32, 32)
    middle = dataset.train.x[:, :, 16, 16].astype(int)
    expected = [BLUE, (90, 90, 90), (255, 255, 255), RED, RED]
    assert np.abs(middle - expected).max() < 40  # a palette has but some colours
    assert "resized to 32x32" in dataset.notes[0]
    assert "--image-size" in dataset.notes[0]
    assert any("mode RGBA are converted to RGB, transparent parts as white" in note for note in dataset.notes)


@pytest.mark.parametrize(
    ("sizes", "image_size", "shape"),
    [
        ([(8, 8), (8, 8)], None, (3, 8, 8)),
        ([(30, 25), (30, 25)], None, (3, 25, 30)),
        ([(8, 8), (8, 9)], None, (3, 32, 32)),
        ([(64, 64), (64, 64)], None, (3, 32, 32)),
        ([(64, 64), (64, 64)], "64", (3, 64, 64)),
        ([(8, 8), (40, 80)], "24x16", (3, 16, 24)),
    ],
)
def test_image_size(
    sizes: list[tuple[int, int]], image_size: str | None, shape: tuple[int, ...], tmp_path: Path
) -> None:
    for colour, size in zip((RED, BLUE), sizes, strict=True):
        write_image(tmp_path / str(colour[0]) / "a.png", size, colour)
    dataset = load(str(tmp_path), image_size=image_size)
    assert dataset.shape == shape
    assert bool(dataset.notes) == (set(sizes) != {shape[:0:-1]})


@pytest.mark.parametrize("image_size", ["0", "big", "32x", "-4", "100000", "8x8x8"])
def test_invalid_image_size(image_size: str, tmp_path: Path) -> None:
    write_image(tmp_path / "a" / "a.png", (8, 8), RED)
    with raises(DataError, "image-size"):
        load(str(tmp_path), image_size=image_size)


def test_resizing_crops_the_longer_side_evenly(tmp_path: Path) -> None:
    image = Image.new("RGB", (96, 32), RED)
    image.paste(BLUE, (32, 0, 64, 32))  # the middle third
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        image.save(tmp_path / name / "a.png")
    assert np.abs(load(str(tmp_path)).train.x.astype(int) - np.reshape(BLUE, (3, 1, 1))).max() < 3


def test_exif_orientation(tmp_path: Path) -> None:
    image = Image.new("RGB", (32, 16), RED)
    image.paste(BLUE, (16, 0, 32, 16))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise: what is left goes to the top
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        image.save(tmp_path / name / "a.png", exif=exif)
    x = load(str(tmp_path)).train.x
    assert x.shape == (2, 3, 32, 16)
    assert x[0, :, 4, 8].tolist() == list(RED)
    assert x[0, :, 28, 8].tolist() == list(BLUE)


def test_part_folders(tmp_path: Path) -> None:
    for part, count in (("train", 4), ("Val", 3), ("test", 2)):
        for name, colour in (("red", RED), ("blue", BLUE)):
            for i in range(count):
                deeper = ("2024", "may") if i % 2 else ()
                write_image(tmp_path.joinpath(part, name, *deeper, f"{i}.png"), (8, 8), colour)
    write_image(tmp_path / "Un-Labelled" / "a.png", (8, 8), RED)
    write_image(tmp_path / "train" / "UNLABELED" / "deep" / "a.png", (8, 8), RED)
    write_image(tmp_path / "spare" / "a.png", (8, 8), RED)
    write_image(tmp_path / "train" / "stray.png", (8, 8), RED)
    dataset = load(str(tmp_path))
    assert dataset.classes == ("blue", "red")
    assert np.bincount(dataset.train.y + 1).tolist() == [2, 4, 4]
    assert dataset.validation is not None
    assert dataset.test is not None
    assert np.bincount(dataset.validation.y).tolist() == [3, 3]
    assert np.bincount(dataset.test.y).tolist() == [2, 2]
    assert dataset.notes == (
        "1 images outside of class folders were skipped",
        "spare/ is neither train, validation nor test: its 1 images were skipped",
        "the 6 images of Val/ are the validation set",
    )


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
