"""Table rows as network input: one block of numbers per column."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.input_spec import InputSpec
from synthsieve.data.modalities.encoding import Codec, check_shape
from synthsieve.data.modalities.table.cells import decimals_of
from synthsieve.data.modalities.table.column_codes import (
    SHARED_DEPTH,
    CategoryCode,
    Code,
    FixedCode,
    NumberCode,
    date_step,
    fit_code,
    read_code,
)
from synthsieve.data.modalities.table.rows import arrow_from_rows
from synthsieve.data.modalities.table.schema import Column, ColumnType, TableSchema, arrow_type
from synthsieve.errors import DataError

CATEGORICAL = (ColumnType.CATEGORY, ColumnType.BOOLEAN)


@dataclass(frozen=True, eq=False)
class TableEncoding:
    """One code per column, fitted on training rows.

    Attributes:
        schema: of the columns.
        codes: one for each column.
    """

    schema: TableSchema
    codes: tuple[Code, ...]

    @property
    def input_spec(self) -> InputSpec:
        """One block for each column that has inputs, in order.

        ("number", start, size, score of each state, whether there are values besides the states), or
        ("category", start, size, the slot of rare categories or -1, SHARED_DEPTH).
        """
        blocks: list[tuple[Any, ...]] = []
        for code, columns in zip(self.codes, self._slices(), strict=True):
            if isinstance(code, NumberCode):
                blocks.append(("number", columns.start, code.size, code.state_scores, code.continuous))
            elif isinstance(code, CategoryCode):
                blocks.append(("category", columns.start, code.size, code.shared, SHARED_DEPTH))
        return InputSpec(Kind.TABLE, (self._width,), tuple(blocks))

    def encode(self, x: np.ndarray) -> np.ndarray:
        """Stored rows (n, columns) -> float32 (n, width)."""
        check_shape(x, (len(self.codes),))
        encoded = np.empty((len(x), self._width), dtype=np.float32)
        for i, (code, columns) in enumerate(zip(self.codes, self._slices(), strict=True)):
            encoded[:, columns] = code.encode(x[:, i].astype(np.float64))
        return encoded

    def decode(self, x: np.ndarray) -> np.ndarray:
        """Network input (n, width) -> float64 (n, columns)."""
        check_shape(x, (self._width,))
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

    @property
    def _width(self) -> int:
        return sum(code.size for code in self.codes)

    def _slices(self) -> list[slice]:
        """The network inputs of each column."""
        ends = np.cumsum([0, *(code.size for code in self.codes)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]


def _fit(dataset: Dataset, rows: np.ndarray) -> TableEncoding:
    schema = dataset.metadata
    if not isinstance(schema, TableSchema) or len(schema) != dataset.train.x.shape[1]:
        raise DataError(
            f"{dataset.name}: `metadata` must be the TableSchema of the columns: use rows_from_arrow", code="no-schema"
        )
    if len(rows) == 0:
        raise DataError("an encoding needs at least one training row", code="no-training-rows")
    x = dataset.train.x[rows]
    codes = tuple(_fit_column(x[:, i], column) for i, column in enumerate(schema.columns))
    if not any(code.size for code in codes):
        raise DataError(f"{dataset.name}: every column is constant in the training rows", code="constant-columns")
    return TableEncoding(schema, codes)


def _fit_column(cells: np.ndarray, column: Column) -> Code:
    """The code of one column, with the decimals of the training rows (those of the schema are of all rows)."""
    known = cells[~np.isnan(cells)]
    if column.type is ColumnType.DATE:
        return fit_code(cells, is_category=False, decimals=0, step=date_step(known, column.arrow))
    return fit_code(cells, is_category=column.type in CATEGORICAL, decimals=decimals_of(known, column.arrow))


def _read(value: dict[str, Any]) -> TableEncoding:
    schema, codes = TableSchema.from_json(value["schema"]), tuple(read_code(code) for code in value["codes"])
    if len(schema) != len(codes):
        raise ValueError(f"{len(schema)} columns, but {len(codes)} codes")
    for column, code in zip(schema.columns, codes, strict=True):
        _check_code(column, code)
    return TableEncoding(schema, codes)


def _check_code(column: Column, code: Code) -> None:
    """Raise ValueError if the Arrow type does not exist, or the code has categories that the column does not."""
    arrow_type(column.arrow)
    used: list[float] = [*code.kept, *code.rare] if isinstance(code, CategoryCode) else []
    if isinstance(code, FixedCode) and column.type in CATEGORICAL and not np.isnan(code.value):
        used = [code.value]
    known = 2 if column.type is ColumnType.BOOLEAN else len(column.categories)
    if used and not 0 <= min(used) <= max(used) < known:
        raise ValueError(f"column {column.name!r} has {known} categories, but its code has others")


CODEC = Codec(_fit, _read)
