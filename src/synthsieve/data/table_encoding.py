"""Rows of a table as network input: a block of numbers for each column, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from synthsieve.data.arrow_types import arrow_type
from synthsieve.data.cells import decimals_of
from synthsieve.data.column_codes import SHARED_DEPTH, CategoryCode, Code, FixedCode, NumberCode, fit_code, read_code
from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.date_steps import date_step
from synthsieve.data.encoding import Codec
from synthsieve.data.rows import arrow_from_rows
from synthsieve.data.schema import Column, ColumnType, TableSchema
from synthsieve.errors import DataError
from synthsieve.layout import Layout

CATEGORICAL = (ColumnType.CATEGORY, ColumnType.BOOLEAN)


@dataclass(frozen=True, eq=False)
class TableEncoding:
    """Each column by its own code, measured on training rows.

    Attributes:
        schema: what the columns are.
        codes: one for each column.
    """

    schema: TableSchema
    codes: tuple[Code, ...]

    @property
    def layout(self) -> Layout:
        """A block for each column that has inputs, in order.

        ("number", start, size, score of each state, whether there are values beside the states), or
        ("category", start, size, the slot of rare ones or -1, how far below 1 that slot reaches).
        """
        blocks: list[tuple[Any, ...]] = []
        for code, columns in zip(self.codes, self._slices(), strict=True):
            if isinstance(code, NumberCode):
                blocks.append(("number", columns.start, code.size, code.state_scores, code.continuous))
            elif isinstance(code, CategoryCode):
                blocks.append(("category", columns.start, code.size, code.shared, SHARED_DEPTH))
        return Layout(Kind.TABLE, (sum(code.size for code in self.codes),), tuple(blocks))

    def encode(self, x: np.ndarray) -> np.ndarray:
        """Stored rows (n, columns) -> float32 (n, width)."""
        if x.ndim != 2 or x.shape[1] != len(self.codes):
            raise DataError(f"rows must have shape (n, {len(self.codes)}), but came with {x.shape}")
        encoded = np.empty((len(x), sum(code.size for code in self.codes)), dtype=np.float32)
        for i, (code, columns) in enumerate(zip(self.codes, self._slices(), strict=True)):
            encoded[:, columns] = code.encode(x[:, i].astype(np.float64))
        return encoded

    def decode(self, x: np.ndarray) -> np.ndarray:
        """Network input (n, width) -> float64 (n, columns): values, categories and gaps of training rows alone."""
        width = sum(code.size for code in self.codes)
        if x.ndim != 2 or x.shape[1] != width:
            raise DataError(f"encoded rows must have shape (n, {width}), but came with {x.shape}")
        decoded = np.empty((len(x), len(self.codes)))
        for i, (code, columns) in enumerate(zip(self.codes, self._slices(), strict=True)):
            decoded[:, i] = code.decode(x[:, columns])
        return decoded

    def items(self, x: np.ndarray) -> Any:
        """Stored rows -> a pyarrow table with the source's names, order and types."""
        return arrow_from_rows(x, self.schema)

    def to_json(self) -> dict[str, Any]:
        codes = [code.to_json() for code in self.codes]
        return {"kind": Kind.TABLE.value, "schema": self.schema.to_json(), "codes": codes}

    def _slices(self) -> list[slice]:
        """Where the block of each column lies."""
        ends = np.cumsum([0, *(code.size for code in self.codes)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]


def _fit(dataset: Dataset, rows: np.ndarray) -> TableEncoding:
    schema = dataset.about
    if not isinstance(schema, TableSchema) or len(schema) != dataset.train.x.shape[1]:
        raise DataError(f"{dataset.name}: a table needs a schema of its columns: read it with rows_from_arrow")
    if len(rows) == 0:
        raise DataError("a table's columns need at least one training row to be measured on, but there is none")
    x = dataset.train.x[rows]
    codes = tuple(_fit_column(x[:, i], column) for i, column in enumerate(schema.columns))
    if not any(code.size for code in codes):
        raise DataError(f"{dataset.name}: no column differs between training rows, so there is nothing to learn from")
    return TableEncoding(schema, codes)


def _fit_column(cells: np.ndarray, column: Column) -> Code:
    """The code of one column; its digits too are those of the training rows, not of all rows as in the schema."""
    known = cells[~np.isnan(cells)]
    if column.type is ColumnType.DATE:
        return fit_code(cells, is_category=False, decimals=0, step=date_step(known, column.arrow))
    return fit_code(cells, is_category=column.type in CATEGORICAL, decimals=decimals_of(known, column.arrow))


def _read(value: dict[str, Any]) -> TableEncoding:
    schema, codes = TableSchema.from_json(value["schema"]), tuple(read_code(code) for code in value["codes"])
    if len(schema) != len(codes):
        raise ValueError(f"{len(schema)} columns came with {len(codes)} codes")
    for column, code in zip(schema.columns, codes, strict=True):
        _check_fit(column, code)
    return TableEncoding(schema, codes)


def _check_fit(column: Column, code: Code) -> None:
    """A ValueError where a column has no such Arrow type, or its code names categories that it does not have."""
    arrow_type(column.arrow)
    held: list[float] = [*code.kept, *code.rare] if isinstance(code, CategoryCode) else []
    if isinstance(code, FixedCode) and column.type in CATEGORICAL and not np.isnan(code.value):
        held = [code.value]
    known = 2 if column.type is ColumnType.BOOLEAN else len(column.categories)
    if held and not 0 <= min(held) <= max(held) < known:
        raise ValueError(f"column {column.name!r} has {known} categories, but its code names others")


CODEC = Codec(_fit, _read)
