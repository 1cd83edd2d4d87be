"""Parquet, a row group at a time, with what Hugging Face's `datasets` must know to decode images, sounds and labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from synthsieve.export.block import About, Block
from synthsieve.export.hub import class_label, for_hub, special_features
from synthsieve.export.sheet import sheet

GROUP_ROWS = 10_000
GROUP_BYTES = 32_000_000
SHARD_BYTES = 256_000_000

Sink = Callable[[Block], None]


@contextmanager
def parquet_file(path: Path, about: About) -> Iterator[Sink]:
    """Write blocks to one file; the label is text."""
    with ExitStack() as stack:
        groups = _Groups(lambda schema: _opened(stack, path, schema, special_features(about)))

        def add(block: Block) -> None:
            groups.add(sheet(block, about).table)

        yield add
        groups.flush()


@contextmanager
def parquet_shards(folder: Path, about: About) -> Iterator[Sink]:
    """Write blocks to FOLDER/train-NNNNN-of-NNNNN.parquet, some 256 MB each; the label is an index with its names."""
    folder.mkdir()
    shards: list[Path] = []
    features = special_features(about)
    with ExitStack() as stack:

        def begin(schema: Any) -> Any:
            stack.close()  # the shard before
            shards.append(folder / f"{len(shards):05d}")
            return _opened(stack, shards[-1], schema, features)

        groups = _Groups(begin, limit=SHARD_BYTES)

        def add(block: Block) -> None:
            page = sheet(block, about, label_words=False)
            features[page.called["label"]] = class_label(about)
            groups.add(for_hub(page.table))

        yield add
        groups.flush()
    for number, shard in enumerate(shards):
        shard.rename(folder / f"train-{number:05d}-of-{len(shards):05d}.parquet")


class _Groups:
    """Tables gathered into row groups of one file, or of one file after the other.

    `begin` opens a file for a schema; the next one is opened when `limit` bytes were written to the last.
    """

    def __init__(self, begin: Callable[[Any], Any], limit: float = float("inf")) -> None:
        self._begin, self._limit = begin, limit
        self._writer: Any = None
        self._written = 0
        self._waiting: list[Any] = []

    def add(self, table: Any) -> None:
        self._waiting.append(table)
        if sum(one.num_rows for one in self._waiting) >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self.flush()

    @property
    def _bytes(self) -> int:
        return sum(one.nbytes for one in self._waiting)

    def flush(self) -> None:
        """Write what waits as one row group."""
        import pyarrow as pa

        if not self._waiting:
            return
        if self._writer is None or self._written >= self._limit:
            self._writer, self._written = self._begin(self._waiting[0].schema), 0
        self._written += self._bytes
        self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=GROUP_ROWS)
        self._waiting = []


def _opened(stack: ExitStack, path: Path, schema: Any, features: dict[str, Any]) -> Any:
    """A writer that `stack` closes; `features` are told to `datasets` in the file's own header."""
    from pyarrow import parquet

    if features:
        schema = schema.with_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    return stack.enter_context(parquet.ParquetWriter(path, schema))
