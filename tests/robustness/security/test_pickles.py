"""Pickles in every disguise: each is refused, and none is run."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from synthsieve import LatentEBMClassifier
from synthsieve.data.formats.npz import read_npy
from synthsieve.data.registry import load
from synthsieve.errors import SynthsieveError
from synthsieve.estimators import persistence
from synthsieve.io.tensors import read_tensors
from synthsieve.selection.files import read_table
from synthsieve.training import checkpoint
from synthsieve.training.pool import SyntheticPool
from tests.robustness.security.payload import Payload


def object_npz(name: str) -> Callable[[Path, Payload], None]:
    def write(path: Path, payload: Payload) -> None:
        good = {"x": np.zeros((4, 2)), "y": np.arange(4) % 2, "labels": np.arange(4) % 2, "logits": np.zeros((4, 2))}
        np.savez(path, **{**good, name: np.array([payload] * 4, dtype=object)})

    return write


def pickle_in_npz(path: Path, payload: Payload) -> None:
    """Not even an array: a member that is a pickle under an array's name."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", pickle.dumps(payload))
        archive.writestr("labels.npy", pickle.dumps(payload))
        archive.writestr("header.npy", pickle.dumps(payload))


def object_npy(path: Path, payload: Payload) -> None:
    with path.open("wb") as file:
        np.save(file, np.array([payload], dtype=object))


def bare_pickle(path: Path, payload: Payload) -> None:
    path.write_bytes(pickle.dumps(payload))


def torch_file(path: Path, payload: Payload) -> None:
    torch.save({"model": payload}, path)


READERS: dict[str, tuple[str, Callable[[Path, Payload], None], Callable[[Path], Any]]] = {
    "npz, x": ("a.npz", object_npz("x"), lambda path: load(str(path))),
    "npz, y": ("a.npz", object_npz("y"), lambda path: load(str(path))),
    "npz, bare": ("a.npz", pickle_in_npz, lambda path: load(str(path))),
    "npy": ("a.npy", object_npy, read_npy),
    "npy, bare": ("a.npy", bare_pickle, read_npy),
    "select, labels": ("a.npz", object_npz("labels"), read_table),
    "select, logits": ("a.npz", object_npz("logits"), read_table),
    "select, bare": ("a.npz", pickle_in_npz, read_table),
    "pool": ("pool.npz", object_npz("header"), SyntheticPool.read),
    "pool, bare": ("pool.npz", pickle_in_npz, SyntheticPool.read),
    "checkpoint": ("last.safetensors", torch_file, lambda path: read_tensors(path, checkpoint.FORMAT)),
    "checkpoint, bare": ("last.safetensors", bare_pickle, lambda path: read_tensors(path, checkpoint.FORMAT)),
    "estimator": ("model", torch_file, lambda path: persistence.load(LatentEBMClassifier, path)),
    "mat": ("a.mat", bare_pickle, lambda path: load(str(path))),
    "parquet": ("a.parquet", bare_pickle, lambda path: load(str(path), label="y")),
}


@pytest.mark.parametrize("name", READERS)
def test_a_pickle_is_refused_and_not_run(name: str, tmp_path: Path) -> None:
    file, write, read = READERS[name]
    mark = tmp_path / "mark"
    write(tmp_path / file, Payload(mark))
    with pytest.raises(SynthsieveError) as error:
        read(tmp_path / file)
    assert "\n" not in str(error.value).strip()
    assert not mark.exists()


def test_the_payload_would_have_run(tmp_path: Path) -> None:
    stream = io.BytesIO(pickle.dumps(Payload(tmp_path / "mark")))
    pickle.load(stream)
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("name", ["../../evil.npy", "/tmp/evil.npy", "x.npy/../../evil", "C:\\evil.npy"])
def test_a_member_that_would_leave_its_archive_goes_nowhere(name: str, tmp_path: Path) -> None:
    """Nothing is ever unpacked: members are read where they are, and looked for by names of ours."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    stream = io.BytesIO()
    np.save(stream, np.zeros((4, 2)))
    with zipfile.ZipFile(inner / "a.npz", "w") as archive:
        link = zipfile.ZipInfo(name)
        link.external_attr = 0o120777 << 16  # a symbolic link
        archive.writestr(link, stream.getvalue())
        archive.writestr("y.npy", stream.getvalue())
    with pytest.raises(SynthsieveError):
        load(str(inner / "a.npz"))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.npz"]
