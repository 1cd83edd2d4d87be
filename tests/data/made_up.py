"""Small data in the publishers' formats, one writer for each."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

CODES = {"uint8": 0x08, "int32": 0x0C, "float32": 0x0D}


def images(n: int = 40, shape: tuple[int, ...] = (8, 8), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def labels(n: int = 40, classes: int = 4) -> np.ndarray:
    return (np.arange(n) % classes).astype(np.uint8)


def idx_bytes(array: np.ndarray, shape: tuple[int, ...] | None = None) -> bytes:
    """An idx file; `shape` puts a false claim into the header."""
    shape = shape or array.shape
    head = bytes([0, 0, CODES[array.dtype.name], len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write_idx(folder: Path, prefix: str = "train", *, gz: bool = True, n: int = 40, classes: int = 4) -> Path:
    """An idx pair; returns the images file."""
    folder.mkdir(parents=True, exist_ok=True)
    tail = ".gz" if gz else ""
    for name, array in (("images-idx3", images(n, (8, 12))), ("labels-idx1", labels(n, classes))):
        data = idx_bytes(array)
        (folder / f"{prefix}-{name}-ubyte{tail}").write_bytes(gzip.compress(data) if gz else data)
    return folder / f"{prefix}-images-idx3-ubyte{tail}"


def write_mat(path: Path, n: int = 40, *, photos: bool = True, seed: int = 0) -> Path:
    """A file in SVHN's form, digits 1 to 10, with photo ids beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    y = (np.arange(n) % 10 + 1)[:, None].astype(np.uint8)
    savemat(path, {"X": images(n, (32, 32, 3), seed).transpose(1, 2, 3, 0), "y": y}, do_compression=True)
    if photos:
        np.save(path.with_name(f"photo_id_{path.stem.split('_')[0]}.npy"), np.arange(n) // 2)
    return path


def write_npz(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **{"x": images(40, (3, 8, 8)), "y": labels(), **arrays})
    return path


def write_folder(root: Path, *, classes: tuple[str, ...] = ("cat", "dog"), unlabeled: bool = True, n: int = 10) -> Path:
    """A folder a class, and `unlabeled`."""
    for c, name in enumerate((*classes, "unlabeled") if unlabeled else classes):
        (root / name).mkdir(parents=True)
        for i, pixels in enumerate(images(n, (8, 8, 3), seed=c)):
            Image.fromarray(pixels).save(root / name / f"{i:03d}.png")
    return root


def csv_text(n: int = 40) -> str:
    values = np.random.default_rng(0).normal(size=(n, 2))
    rows = [f"{a:.4f},{i},{'' if i % 5 == 0 else 'yes' if i % 2 else 'no'}" for i, (a, _) in enumerate(values)]
    return "\n".join(["height,count,answer", *rows]) + "\n"


def write_csv(path: Path, text: str | None = None) -> Path:
    path.write_text(csv_text() if text is None else text, encoding="utf-8")
    return path


def write_parquet(path: Path, n: int = 40) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    answer = [None if i % 5 == 0 else float(i % 3) for i in range(n)]
    columns = {"height": np.linspace(0, 1, n), "flag": [i % 2 == 0 for i in range(n)], "answer": answer}
    parquet.write_table(pa.table(columns), path)
    return path
