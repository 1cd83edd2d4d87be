"""Bad data, each refused in one clear sentence before anything is learned from them."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import made_up
import numpy as np
import pytest
from PIL import Image

from synthsieve.data.checks import check_dataset
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.sources import load
from synthsieve.data.splits import make_split
from synthsieve.errors import DataError

X = made_up.images(40, (3, 8, 8))
F = (X / 255).astype(np.float32)
Y = made_up.labels().astype(np.int64)


def spoiled(value: float) -> np.ndarray:
    x = F.copy()
    x[3, 1, 2, 2] = value
    return x


NPZ = {
    "NaN": ({"x": spoiled(np.nan)}, "finite"),
    "infinite": ({"x": spoiled(np.inf)}, "finite"),
    "too large for float32": ({"x": np.full((40, 3), 1e300)}, "finite in float32"),
    "NaN in vectors": ({"x": np.full((40, 3), np.nan)}, "finite"),
    "one pixel far outside": ({"x": spoiled(300.0)}, r"nearly all of them in \[0, 1\]"),
    "test images of another range": ({"x": F, "x_test": X[:2] * 1.0, "y_test": Y[:2]}, r"must lie in \[0, 1\]"),
    "test images far beyond": ({"x": F * 16, "x_test": F[:2] * 255, "y_test": Y[:2]}, r"must lie in \[0, 16\]"),
    "complex": ({"x": F.astype(np.complex64)}, "must be numbers, but came as complex64"),
    "text for x": ({"x": np.array(["a"] * 40)}, "must be numbers"),
    "one dimension": ({"x": np.zeros(40)}, "must have shape"),
    "five dimensions": ({"x": np.zeros((40, 1, 1, 4, 4))}, "must have shape"),
    "channels nowhere": ({"x": np.zeros((40, 8, 8, 8), np.uint8)}, "1 to 4 channels"),
    "float labels": ({"y": Y + 0.5}, "integers or text"),
    "labels below -1": ({"y": Y - 3}, "0 or more, or -1"),
    "labels of two dimensions": ({"y": np.eye(40, 4, dtype=int)}, r"shape \(n,\)"),
    "fewer labels than examples": ({"y": Y[:39]}, "40 examples came with 39 labels"),
    "one class": ({"y": np.zeros(40, int)}, "at least two classes"),
    "no label at all": ({"y": np.full(40, -1)}, "none of its 40 rows has a label"),
    "no rows": ({"x": X[:0], "y": Y[:0]}, "at least one row"),
    "no features": ({"x": np.zeros((40, 0))}, "at least one number"),
    "pickled": ({"x": np.array([{}] * 40, dtype=object)}, "pickled array, which is refused"),
    "pickled labels": ({"y": np.array(["a", 1] * 20, dtype=object)}, "pickled array, which is refused"),
    "groups of another length": ({"groups": np.arange(39)}, "one for each of 40 rows"),
    "groups of floats": ({"groups": np.zeros(40)}, "integers or text"),
    "test without labels": ({"x_test": X}, "belong together"),
    "test label unknown": ({"x_test": X[:2], "y_test": np.array([0, -1])}, "every test label must be known"),
    "test class never seen": ({"x_test": X[:2], "y_test": np.array([0, 9])}, "among the training classes"),
    "test of another shape": ({"x_test": X[:2, :, :4], "y_test": Y[:2]}, "look like the training examples"),
    "test of another kind": ({"x_test": np.zeros((2, 3)), "y_test": Y[:2]}, "images and the other vectors"),
    "range of three": ({"x": F, "range": np.arange(3)}, "range must be two numbers"),
}


@pytest.mark.parametrize(("arrays", "message"), NPZ.values(), ids=list(NPZ))
def test_npz(arrays: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    path = made_up.write_npz(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=message) as error:
        load(str(path))
    assert "\n" not in str(error.value)


def test_npz_without_y(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, Y=Y)
    with pytest.raises(DataError, match="perhaps 'y'"):
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
def test_flipped_bytes_are_refused_in_a_sentence_or_read_as_good_data(name: str, tmp_path: Path) -> None:
    path, label = writers(tmp_path)[name]
    good = path.read_bytes()
    rng, told = np.random.default_rng(0), []
    for _ in range(60):
        data = bytearray(good)
        for at in rng.integers(0, min(len(data), 400), 3):
            data[at] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(data))
        try:
            check_dataset(load(str(path), label=label))
        except DataError as error:
            told.append(str(error))
    assert told
    assert not any("\n" in sentence for sentence in told)


@pytest.mark.parametrize("gz", [False, True])
def test_an_idx_header_that_claims_absurd_sizes_allocates_nothing(gz: bool, tmp_path: Path) -> None:
    path = made_up.write_idx(tmp_path, gz=gz)
    data = made_up.idx_bytes(made_up.images(), shape=(2**32 - 1, 2**20, 2**20))
    path.write_bytes(gzip.compress(data) if gz else data)
    with pytest.raises(DataError, match="claims shape"):
        load(str(path))


def test_an_idx_header_that_claims_a_little_more_or_less(tmp_path: Path) -> None:
    path = made_up.write_idx(tmp_path)
    for rows in (39, 41):
        path.write_bytes(gzip.compress(made_up.idx_bytes(made_up.images(), shape=(rows, 8, 8))))
        with pytest.raises(DataError, match="header claims"):
            load(str(path))


def test_idx_without_labels_or_of_unequal_length(tmp_path: Path) -> None:
    path = made_up.write_idx(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(made_up.idx_bytes(made_up.labels(39))))
    with pytest.raises(DataError, match="40 examples came with 39 labels"):
        load(str(path))
    (tmp_path / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match="labels should lie beside it"):
        load(str(path))


def test_an_npz_header_that_claims_absurd_sizes(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": (2**40, 8, 8)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", stream.getvalue() + bytes(64))
    with pytest.raises(DataError, match="another number of bytes"):
        load(str(tmp_path / "a.npz"))


def test_mat_of_another_form(tmp_path: Path) -> None:
    from scipy.io import savemat

    path = tmp_path / "a.mat"
    x = np.zeros((32, 32, 3, 4), np.uint8)
    for held, message in (
        ({"a": x}, "must hold X"),
        ({"X": x.astype(float), "y": [1, 2, 3, 4]}, "X .uint8."),
        ({"X": x[..., 0], "y": [1, 2, 3]}, "height, width, channels, n"),
        ({"X": x, "y": [1, 2, 3, 11]}, "digits 1 to 10"),
        ({"X": x, "y": [0, 1, 2, 3]}, "digits 1 to 10"),
        ({"X": x, "y": [1, 2, 3]}, "4 images came with 3 labels"),
    ):
        savemat(path, held)
        with pytest.raises(DataError, match=message):
            load(str(path))


CSV = {
    "infinite": ("a,y\n1,0\ninf,1\n", "'a' must be finite or empty, but data row 2 is infinite"),
    "empty columns": ("a,b,y\n,,0\n,?,1\n", "no column to learn from"),
    "no such column": ("a,yy\n1,0\n", "no label column 'y'"),
    "minus one": ("a,y\n1,0\n2,-1\n", "could mean unlabelled"),
    "no rows": ("a,y\n", "no rows"),
    "only labels": ("y\n0\n1\n", "no column but 'y'"),
    "columns of one name": ("a,a,y\n1,2,0\n", "more than once"),
    "one class": ("a,y\n1,0\n2,\n", "at least two classes"),
    "ragged": ("a,y\n1,0\n2,1,3\n", "cannot be read as CSV"),
    "not text": ("\0\1\2", "label column|cannot be read"),
}


@pytest.mark.parametrize(("text", "message"), CSV.values(), ids=list(CSV))
def test_csv(text: str, message: str, tmp_path: Path) -> None:
    path = made_up.write_csv(tmp_path / "a.csv", text)
    with pytest.raises(DataError, match=message) as error:
        load(str(path), label="y")
    assert "\n" not in str(error.value)


def test_csv_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text in ("h\xf6he,y\n1,0\n2,1\n", "a,y\n1,gr\xfcn\n2,b\n"):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(DataError, match="cannot be read as CSV"):
            load(str(path), label="y")


def test_a_table_needs_its_label_column(tmp_path: Path) -> None:
    path = made_up.write_csv(tmp_path / "a.csv")
    with pytest.raises(DataError, match="needs the name of its label column"):
        load(str(path))
    with pytest.raises(DataError, match="did you mean 'answer'"):
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
    "16 bits": (lambda p: Image.new("I;16", (8, 8)).save(p), "8 bits a channel, but it is of mode I;16"),
    "empty": (lambda p: p.write_bytes(b""), "cannot be read as an image"),
    "cut": (_cut, "cannot be read as an image"),
    "text": (lambda p: p.write_text("hello", encoding="utf-8"), "cannot be read as an image"),
    "bomb": (_bomb, "pixels, which is refused"),
}


@pytest.mark.parametrize(("spoil", "message"), FOLDER.values(), ids=list(FOLDER))
def test_image_folder(spoil: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    root = made_up.write_folder(tmp_path / "pets")
    spoil(root / "cat" / "003.png")
    with pytest.raises(DataError, match=message):
        load(str(root))


def test_an_image_large_enough_to_warn_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made_up.write_folder(tmp_path / "pets")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    with pytest.raises(DataError, match="more than 50 pixels"):
        load(str(root))


def test_folders_without_images(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no images"):
        load(str(tmp_path))
    root = made_up.write_folder(tmp_path / "pets")
    (root / "bird").mkdir()
    with pytest.raises(DataError, match="holds none"):
        load(str(root))


def test_an_unknown_format(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("hello", encoding="utf-8")
    with pytest.raises(DataError, match="no known format"):
        load(str(tmp_path / "a.xyz"))


def _vectors(y: list[int], classes: str) -> Dataset:
    return Dataset("v", Kind.VECTOR, tuple(classes), Examples(np.zeros((len(y), 2), np.float32), np.array(y, np.int64)))


def test_splits_that_cannot_be() -> None:
    dataset = _vectors([0, 1, 2] * 20, "abc")
    with pytest.raises(DataError, match="labels=2 is fewer than its 3 classes"):
        make_split(dataset, labels=2, seed=0)
    with pytest.raises(DataError, match=r"labels=600 asks for 200 of each class.*at most 4\d"):
        make_split(dataset, labels=600, seed=0)
    with pytest.raises(DataError, match="validation_fraction must lie in"):
        make_split(dataset, labels=3, seed=0, validation_fraction=1.0)


def test_a_class_whose_only_labels_are_held_out() -> None:
    """Groups may take the only rows of a class out of reach."""
    dataset = _vectors([0] * 20 + [1] * 20 + [2], "abc")
    assert make_split(dataset, labels=None, seed=0).counts["labeled"]["c"] == 1
    dataset = _vectors([0] * 20 + [1] * 20, "abc")
    with pytest.raises(DataError, match=r"every class needs a labelled row.*'c'"):
        make_split(dataset, labels=None, seed=0)


def test_no_unlabelled_rows_is_allowed_and_said() -> None:
    split = make_split(_vectors([0, 1] * 30, "ab"), labels=None, seed=0)
    assert not len(split.unlabeled)
    assert any("no unlabelled rows" in note for note in split.notes)
