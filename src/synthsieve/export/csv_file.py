"""CSV as Arrow writes it: text in quotes, numbers to their last digit, a missing cell empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from synthsieve.export.block import About, Block, plain_text
from synthsieve.export.parquet_file import Sink
from synthsieve.export.sheet import sheet
from synthsieve.files import written_atomically


@contextmanager
def csv_file(path: Path, about: About) -> Iterator[Sink]:
    """Write blocks to one file; columns of lists, which CSV has no cells for, are left out."""
    with csv_tables(path) as add_table:

        def add(block: Block) -> None:
            add_table(sheet(block, about).table)

        yield add


@contextmanager
def csv_tables(path: Path) -> Iterator[Callable[[Any], None]]:
    """Write pyarrow tables of one schema to one file."""
    from pyarrow import csv

    with ExitStack() as stack:
        writer: list[Any] = []

        def add(table: Any) -> None:
            table = for_csv(table)
            if not writer:
                writer.append(stack.enter_context(csv.CSVWriter(path, table.schema)))
            writer[0].write_table(table)

        yield add


def write_csv(path: Path, table: Any) -> None:
    """A whole pyarrow table, atomically."""
    with written_atomically(path) as partial, csv_tables(partial) as add:
        add(table)


def for_csv(table: Any) -> Any:
    """The table without lists, and with text in the one form that Arrow writes."""
    import pyarrow as pa

    return plain_text(table.select([field.name for field in table.schema if not pa.types.is_nested(field.type)]))
