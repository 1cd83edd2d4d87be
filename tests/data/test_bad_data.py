"""Bad data, each refused with one clear sentence before any training."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from synthsieve.data.checks import check_dataset
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.registry import load
from synthsieve.data.splits import make_split
from synthsieve.errors import DataError
from tests.data import made_up
from tests.errors import raises

X = made_up.images(40, (3, 8, 8))
F = (X / 255).astype(np.float32)
Y = made_up.labels().astype(np.int64)


def with_pixel(value: float) -> np.ndarray:
    x = F.copy()
    x[3, 1, 2, 2] = value
    return x


NPZ = {
    "NaN": ({"x": with_pixel(np.nan)}, "not-finite"),
    "infinite": ({"x": with_pixel(np.inf)}, "not-finite"),
    "too large for float32": ({"x": np.full((40, 3), 1e300)}, "not-finite"),
    "NaN in vectors": ({"x": np.full((40, 3), np.nan)}, "not-finite"),
    "one pixel far outside": ({"x": with_pixel(300.0)}, "pixel-outliers"),
    "test images of another range": ({"x": F, "x_test": X[:2] * 1.0, "y_test": Y[:2]}, "pixel-range"),
    "test images far beyond": ({"x": F * 16, "x_test": F[:2] * 255, "y_test": Y[:2]}, "pixel-range"),
    "complex": ({"x": F.astype(np.complex64)}, "example-type"),
    "text for x": ({"x": np.array(["a"] * 40)}, "example-type"),
    "one dimension": ({"x": np.zeros(40)}, "example-shape"),
    "five dimensions": ({"x": np.zeros((40, 1, 1, 4, 4))}, "example-shape"),
    "channels nowhere": ({"x": np.zeros((40, 8, 8, 8), np.uint8)}, "example-shape"),
    "float labels": ({"y": Y + 0.5}, "label-type"),
    "labels below -1": ({"y": Y - 3}, "label-type"),
    "labels of two dimensions": ({"y": np.eye(40, 4, dtype=int)}, "label-shape"),
    "fewer labels than examples": ({"y": Y[:39]}, "label-count"),
    "one class": ({"y": np.zeros(40, int)}, "one-class"),
    "no label at all": ({"y": np.full(40, -1)}, "no-labels"),
    "no rows": ({"x": X[:0], "y": Y[:0]}, "no-rows"),
    "no features": ({"x": np.zeros((40, 0))}, "example-type"),
    "pickled": ({"x": np.array([{}] * 40, dtype=object)}, "pickled"),
    "pickled labels": ({"y": np.array(["a", 1] * 20, dtype=object)}, "pickled"),
    "groups of another length": ({"groups": np.arange(39)}, "group-shape"),
    "groups of floats": ({"groups": np.zeros(40)}, "group-shape"),
    "test without labels": ({"x_test": X}, "missing-array"),
    "test label unknown": ({"x_test": X[:2], "y_test": np.array([0, -1])}, "unlabelled-test"),
    "test class never seen": ({"x_test": X[:2], "y_test": np.array([0, 9])}, "unknown-class"),
    "test of another shape": ({"x_test": X[:2, :, :4], "y_test": Y[:2]}, "unlike-training"),
    "test of another kind": ({"x_test": np.zeros((2, 3)), "y_test": Y[:2]}, "unlike-training"),
    "range of three": ({"x": F, "range": np.arange(3)}, "value-range"),
}


@pytest.mark.parametrize(("arrays", "code"), NPZ.values(), ids=list(NPZ))
def test_npz(arrays: dict[str, np.ndarray], code: str, tmp_path: Path) -> None:
    path = made_up.write_npz(tmp_path / "bad.npz", **arrays)
    with raises(DataError, code) as error:
        load(str(path))
    assert "\n" not in str(error.value)


def test_npz_without_y(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, Y=Y)
    with pytest.raises(DataError, match=r"'y'$"):
        load(str(tmp_path / "a.npz"))


def writers(folder: Path) -> dict[str, tuple[Path, str | None]]:
    made_up.write_idx(folder / "plain", gz=False)
    return {
        "npz": (made_up.write_npz(folder / "a.npz"), None),
        "mat": (made_up.write_mat(folder / "a.mat", photos=False), None),
        "idx": (folder / "plain" / "train-images-idx3-ubyte", None),
        "gz": (made_up.write_idx(folder / "gz"), None),
        "csv": (made_up.write_csv(folder / "a.csv", made_up.csv_text()[:-3].rsplit(",", 1)[0]), "answer"),
        "parquet": (made_up.write_parquet(folder / "a.parquet"), "answer"),
    }


@pytest.mark.parametrize("name", ["npz", "mat", "idx", "gz", "csv", "parquet"])
@pytest.mark.parametrize("kept", [0.0, 0.02, 0.3, 0.9, 0.99])
def test_truncated_or_empty(name: str, kept: float, tmp_path: Path) -> None:
    path, label = writers(tmp_path)[name]
    data = path.read_bytes()
    if name == "csv" and kept:
        kept = 1.0  # its last row has a cell too few as it is; a text has no other end to miss
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(DataError) as error:
        load(str(path), label=label)
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of numpy, reading a damaged header as Python text
@pytest.mark.parametrize("name", ["npz", "mat", "idx", "gz", "parquet"])
def test_flipped_bytes(name: str, tmp_path: Path) -> None:
    path, label = writers(tmp_path)[name]
    good = path.read_bytes()
    rng, messages = np.random.default_rng(0), []
    for _ in range(60):
        data = bytearray(good)
        for at in rng.integers(0, min(len(data), 400), 3):
            data[at] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(data))
        try:
            check_dataset(load(str(path), label=label))
        except DataError as error:
            messages.append(str(error))
    assert messages
    assert not any("\n" in sentence for sentence in messages)


@pytest.mark.parametrize("gz", [False, True])
def test_idx_header_with_absurd_sizes(gz: bool, tmp_path: Path) -> None:
    path = made_up.write_idx(tmp_path, gz=gz)
    data = made_up.idx_bytes(made_up.images(), shape=(2**32 - 1, 2**20, 2**20))
    path.write_bytes(gzip.compress(data) if gz else data)
    with raises(DataError, "damaged-file"):
        load(str(path))


def test_idx_header_with_other_sizes(tmp_path: Path) -> None:
    path = made_up.write_idx(tmp_path)
    for rows in (39, 41):
        path.write_bytes(gzip.compress(made_up.idx_bytes(made_up.images(), shape=(rows, 8, 8))))
        with raises(DataError, "damaged-file"):
            load(str(path))


def test_idx_without_labels_or_of_unequal_length(tmp_path: Path) -> None:
    path = made_up.write_idx(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(made_up.idx_bytes(made_up.labels(39))))
    with raises(DataError, "label-count"):
        load(str(path))
    (tmp_path / "train-labels-idx1-ubyte.gz").unlink()
    with raises(DataError, "missing-file"):
        load(str(path))


def test_npz_header_with_absurd_sizes(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": (2**40, 8, 8)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", stream.getvalue() + bytes(64))
    with raises(DataError, "damaged-file"):
        load(str(tmp_path / "a.npz"))


def test_mat_with_other_arrays(tmp_path: Path) -> None:
    from scipy.io import savemat

    path = tmp_path / "a.mat"
    x = np.zeros((32, 32, 3, 4), np.uint8)
    for held, code in (
        ({"a": x}, "missing-array"),
        ({"X": x.astype(float), "y": [1, 2, 3, 4]}, "missing-array"),
        ({"X": x[..., 0], "y": [1, 2, 3]}, "example-type"),
        ({"X": x, "y": [1, 2, 3, 11]}, "label-range"),
        ({"X": x, "y": [0, 1, 2, 3]}, "label-range"),
        ({"X": x, "y": [1, 2, 3]}, "label-count"),
    ):
        savemat(path, held)
        with raises(DataError, code):
            load(str(path))


CSV = {
    "no such column": ("a,yy\n1,0\n", "missing-column"),
    "minus one": ("a,y\n1,0\n2,-1\n", "ambiguous-label"),
    "no rows": ("a,y\n", "no-rows"),
    "only labels": ("y\n0\n1\n", "no-columns"),
    "columns of one name": ("a,a,y\n1,2,0\n", "repeated-column"),
    "one class": ("a,y\n1,0\n2,\n", "one-class"),
    "ragged": ("a,y\n1,0\n2,1,3\n", "damaged-file"),
    "not text": ("\0\1\2", "damaged-file"),
    "semicolons": ("a;y\n1;0\n2;1\n", "separator"),
}


@pytest.mark.parametrize(("text", "code"), CSV.values(), ids=list(CSV))
def test_csv(text: str, code: str, tmp_path: Path) -> None:
    path = made_up.write_csv(tmp_path / "a.csv", text)
    with raises(DataError, code) as error:
        load(str(path), label="y")
    assert "\n" not in str(error.value)


def test_csv_cells(tmp_path: Path) -> None:
    for text, match in (("a,y\n1,0\ninf,1\n", "'a'.* row 2 "), ("a,b,y\n,,0\n,?,1\n", "no column")):
        path = made_up.write_csv(tmp_path / "a.csv", text)
        with pytest.raises(DataError, match=match):
            load(str(path), label="y")


def test_csv_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text in ("h\xf6he,y\n1,0\n2,1\n", "a,y\n1,gr\xfcn\n2,b\n"):
        path.write_bytes(text.encode("latin-1"))
        with raises(DataError, "damaged-file"):
            load(str(path), label="y")


def test_missing_label_column(tmp_path: Path) -> None:
    path = made_up.write_csv(tmp_path / "a.csv")
    with raises(DataError, "no-label-column"):
        load(str(path))
    with pytest.raises(DataError, match="'answer'"):
        load(str(path), label="anwser")


def _bomb(path: Path) -> None:
    """A PNG of 67 bytes that claims 50,000 x 50,000 pixels."""
    chunk = lambda kind, data: (  # noqa: E731
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    )
    head = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:120])


FOLDER: dict[str, tuple[Callable[[Path], object], str]] = {
    "16 bits": (lambda p: Image.new("I;16", (8, 8)).save(p), "image-mode"),
    "empty": (lambda p: p.write_bytes(b""), "damaged-file"),
    "cut": (_cut, "damaged-file"),
    "text": (lambda p: p.write_text("hello", encoding="utf-8"), "damaged-file"),
    "bomb": (_bomb, "image-too-large"),
}


@pytest.mark.parametrize(("damage", "code"), FOLDER.values(), ids=list(FOLDER))
def test_image_folder(damage: Callable[[Path], object], code: str, tmp_path: Path) -> None:
    root = made_up.write_folder(tmp_path / "pets")
    damage(root / "cat" / "003.png")
    with raises(DataError, code):
        load(str(root))


def test_large_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made_up.write_folder(tmp_path / "pets")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    with raises(DataError, "image-too-large"):
        load(str(root))


def test_folders_without_images(tmp_path: Path) -> None:
    with raises(DataError, "no-class-folders"):
        load(str(tmp_path))
    root = made_up.write_folder(tmp_path / "pets")
    (root / "bird").mkdir()
    with raises(DataError, "empty-class-folder"):
        load(str(root))


def test_unknown_format(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("hello", encoding="utf-8")
    with raises(DataError, "unknown-format"):
        load(str(tmp_path / "a.xyz"))


def _vectors(y: list[int], classes: str) -> Dataset:
    return Dataset("v", Kind.VECTOR, tuple(classes), Examples(np.zeros((len(y), 2), np.float32), np.array(y, np.int64)))


def test_impossible_splits() -> None:
    dataset = _vectors([0, 1, 2] * 20, "abc")
    with raises(DataError, "too-few-labels"):
        make_split(dataset, labels=2, seed=0)
    with raises(DataError, "too-few-labels"):
        make_split(dataset, labels=600, seed=0)
    with raises(DataError, "fraction"):
        make_split(dataset, labels=3, seed=0, validation_fraction=1.0)


def test_class_without_labels() -> None:
    """Groups may take the only rows of a class out of reach."""
    dataset = _vectors([0] * 20 + [1] * 20 + [2], "abc")
    assert make_split(dataset, labels=None, seed=0).counts["labeled"]["c"] == 1
    dataset = _vectors([0] * 20 + [1] * 20, "abc")
    with pytest.raises(DataError, match="'c'"):
        make_split(dataset, labels=None, seed=0)


def test_no_unlabelled_rows() -> None:
    split = make_split(_vectors([0, 1] * 30, "ab"), labels=None, seed=0)
    assert not len(split.unlabeled)
    assert any("no unlabelled rows" in note for note in split.notes)
