"""One writer for each format: a context manager that yields a function to add blocks with."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from synthsieve.io.files import atomic_write
from synthsieve.results.export.block import Block, PoolInfo, block_table, file_table, plain_text
from synthsieve.results.export.card import hub_features, hub_table

GROUP_ROWS = 10_000
GROUP_BYTES = 32_000_000
SHARD_BYTES = 256_000_000
METADATA = "metadata.csv"
MAX_NAME_LENGTH = 60  # characters of a folder's name: at most 255 bytes in any script

AddBlock = Callable[[Block], None]


@contextmanager
def csv_writer(path: Path, info: PoolInfo) -> Iterator[AddBlock]:
    """Write blocks to one CSV file."""
    with csv_tables(path) as add:
        yield lambda block: add(block_table(block, info)[0])


@contextmanager
def csv_tables(path: Path) -> Iterator[Callable[[Any], None]]:
    """Write pyarrow tables of one schema to one CSV file; columns of lists are left out."""
    import pyarrow as pa
    from pyarrow import csv

    with ExitStack() as stack:
        writer: Any = None

        def add(table: Any) -> None:
            nonlocal writer
            flat = [field.name for field in table.schema if not pa.types.is_nested(field.type)]
            table = plain_text(table.select(flat))
            writer = writer or stack.enter_context(csv.CSVWriter(path, table.schema))
            writer.write_table(table)

        yield add


def write_csv(path: Path, table: Any) -> None:
    """Write a pyarrow table, atomically."""
    with atomic_write(path) as partial, csv_tables(partial) as add:
        add(table)


@contextmanager
def class_folder_writer(folder: Path, info: PoolInfo) -> Iterator[AddBlock]:
    """Write blocks to FOLDER/CLASS/NNNNN.png or .wav and FOLDER/metadata.csv; empty classes have no folder.

    Hugging Face's `imagefolder` and `audiofolder` read the metadata there; torchvision's `ImageFolder` ignores it.
    """
    folder.mkdir()
    names = folder_names(info.classes)
    with csv_tables(folder / METADATA) as add_table:

        def add(block: Block) -> None:
            files = [f"{names[y]}/{info.file_name(int(id))}" for y, id in zip(block.y, block.ids, strict=True)]
            for label in np.unique(block.y):
                (folder / names[label]).mkdir(exist_ok=True)
            for name, content in zip(files, block.files, strict=True):
                (folder / name).write_bytes(content)
            add_table(file_table(block, info, files))

        yield add


def folder_names(classes: Sequence[str]) -> list[str]:
    """A distinct folder name for each class, also where case is ignored.

    All but letters, digits, - and _ become _, as do letters that the file system's encoding lacks; names are cut to
    MAX_NAME_LENGTH characters, and repeated ones get a number.
    """
    names: list[str] = []
    for label in classes:
        safe = "".join(c if c in "-_" or (c.isalnum() and _can_name_files(c)) else "_" for c in label)
        stem = safe[:MAX_NAME_LENGTH] or "_"
        name, number = stem, 2
        while name.casefold() in {one.casefold() for one in names}:
            name, number = f"{stem}_{number}", number + 1
        names.append(name)
    return names


def _can_name_files(character: str) -> bool:
    try:
        os.fsencode(character)
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def npz_writer(path: Path, info: PoolInfo, count: int) -> Iterator[AddBlock]:
    """Write blocks of `count` samples in total: x as stored, y, classes, id, latent, and an array for each column.

    Text is stored as an index, with the values as NAME_words. The file needs no pickle and has no timestamps.
    """
    # Columns are allocated whole: small arrays between large temporary ones would fragment the heap.
    columns: dict[str, np.ndarray] = {}
    done = 0
    words = {"classes": np.asarray(info.classes, dtype=str)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        with ExitStack() as open_member:
            stream: IO[bytes] | None = None

            def add(block: Block) -> None:
                nonlocal done, stream
                if stream is None:
                    stream = open_member.enter_context(_open_member(archive, "x"))
                    _write_header(stream, (count, *block.x.shape[1:]), block.x.dtype)
                stream.write(block.x.tobytes())
                for name, values in {"id": block.ids, "y": block.y, "latent": block.latent, **block.columns}.items():
                    if not isinstance(values, np.ndarray):
                        words[f"{name}_words"] = np.asarray(values.dictionary.to_pylist(), dtype=str)
                        values = values.indices.to_numpy()
                    if name not in columns:
                        columns[name] = np.empty((count, *values.shape[1:]), dtype=values.dtype)
                    columns[name][done : done + len(block)] = values
                done += len(block)

            yield add
        for name, values in (columns | words).items():
            with _open_member(archive, name) as member:
                _write_header(member, values.shape, values.dtype)
                member.write(values.tobytes())


def _open_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    info = zipfile.ZipInfo(f"{name}.npy")  # dated 1980: the same bytes whenever it is written
    info.external_attr = 0o644 << 16
    return archive.open(info, "w", force_zip64=True)


def _write_header(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)


@contextmanager
def parquet_writer(path: Path, info: PoolInfo) -> Iterator[AddBlock]:
    """Write blocks to one Parquet file; the label is text."""
    with ExitStack() as stack:
        groups = _RowGroups(lambda schema: _open_parquet(stack, path, schema, hub_features(info)))
        yield lambda block: groups.add(block_table(block, info)[0])
        groups.flush()


@contextmanager
def shard_writer(folder: Path, info: PoolInfo) -> Iterator[AddBlock]:
    """Write blocks to FOLDER/train-NNNNN-of-NNNNN.parquet, about 256 MB each; the label is an index with its names."""
    folder.mkdir()
    shards: list[Path] = []
    features = hub_features(info)
    with ExitStack() as stack:

        def open_next(schema: Any) -> Any:
            stack.close()  # the previous shard
            shards.append(folder / f"{len(shards):05d}")
            return _open_parquet(stack, shards[-1], schema, features)

        groups = _RowGroups(open_next, max_bytes=SHARD_BYTES)

        def add(block: Block) -> None:
            table, names = block_table(block, info, label_as_text=False)
            features[names["label"]] = {"names": list(info.classes), "_type": "ClassLabel"}
            groups.add(hub_table(table))

        yield add
        groups.flush()
    for number, shard in enumerate(shards):
        shard.rename(folder / f"train-{number:05d}-of-{len(shards):05d}.parquet")


class _RowGroups:
    """Collects tables into row groups; `open_next` opens a file for a schema, again after `max_bytes`."""

    def __init__(self, open_next: Callable[[Any], Any], max_bytes: float = float("inf")) -> None:
        self._open_next, self._max_bytes = open_next, max_bytes
        self._writer: Any = None
        self._written = 0
        self._tables: list[Any] = []

    def add(self, table: Any) -> None:
        self._tables.append(table)
        if sum(one.num_rows for one in self._tables) >= GROUP_ROWS or self._num_bytes >= GROUP_BYTES:
            self.flush()

    @property
    def _num_bytes(self) -> int:
        return sum(one.nbytes for one in self._tables)

    def flush(self) -> None:
        """Write the collected tables as one row group."""
        import pyarrow as pa

        if not self._tables:
            return
        if self._writer is None or self._written >= self._max_bytes:
            self._writer, self._written = self._open_next(self._tables[0].schema), 0
        self._written += self._num_bytes
        self._writer.write_table(pa.concat_tables(self._tables), row_group_size=GROUP_ROWS)
        self._tables = []


def _open_parquet(stack: ExitStack, path: Path, schema: Any, features: dict[str, Any]) -> Any:
    """A writer that `stack` closes; the file's metadata contain the `features` for `datasets`."""
    from pyarrow import parquet

    if features:
        schema = schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    return stack.enter_context(parquet.ParquetWriter(path, schema))
