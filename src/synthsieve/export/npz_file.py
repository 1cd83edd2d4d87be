"""An .npz written member by member: x goes to the disk as it comes, and only the narrow columns wait."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from synthsieve.export.block import About, Block
from synthsieve.export.parquet_file import Sink


@contextmanager
def npz_file(path: Path, about: About, count: int) -> Iterator[Sink]:
    """Write blocks of `count` samples together: x as stored, y, classes, id, latent, and a member for each column.

    Words are stored as their index, and the words beside it under NAME_words. It holds no objects: numpy loads it
    without pickle. Nothing in it tells when it was written.
    """
    # Whole columns at once: small arrays kept between large passing ones would tear the heap to pieces.
    waiting: dict[str, np.ndarray] = {}
    done = 0
    words = {"classes": np.asarray(about.classes, dtype=str)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        with ExitStack() as open_member:
            stream: list[IO[bytes]] = []

            def add(block: Block) -> None:
                nonlocal done
                if not stream:
                    stream.append(open_member.enter_context(_member(archive, "x")))
                    _write_header(stream[0], (count, *block.x.shape[1:]), block.x.dtype)
                stream[0].write(block.x.tobytes())
                for name, values in {"id": block.ids, "y": block.y, "latent": block.latent, **block.columns}.items():
                    if not isinstance(values, np.ndarray):
                        words[f"{name}_words"] = np.asarray(values.dictionary.to_pylist(), dtype=str)
                        values = values.indices.to_numpy()
                    if name not in waiting:
                        waiting[name] = np.empty((count, *values.shape[1:]), dtype=values.dtype)
                    waiting[name][done : done + len(block)] = values
                done += len(block)

            yield add
        for name, values in waiting.items():
            _write_member(archive, name, values)
        for name, values in words.items():
            _write_member(archive, name, values)


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    info = zipfile.ZipInfo(f"{name}.npy")  # of the year 1980: the same bytes whenever it is written
    info.external_attr = 0o644 << 16
    return archive.open(info, "w", force_zip64=True)


def _write_header(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)


def _write_member(archive: zipfile.ZipFile, name: str, values: np.ndarray) -> None:
    with _member(archive, name) as stream:
        _write_header(stream, values.shape, values.dtype)
        stream.write(values.tobytes())
