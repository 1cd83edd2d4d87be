"""Table rows as network input: one block of numbers per column, by one class per column type.

A code is fitted on training rows. It encodes the cells of a column, float64 (n,), NaN = missing, as a block (n, size),
and decodes blocks with ones and zeros, or probabilities, in their slots. A number's block is (score, one slot for each
state), where a state is `missing` or a frequent value (spike), such as the 0 of a capital gain; without a state the
score is the cell. A category's block is one slot for each of its most frequent values, one slot shared by all others,
and one for missing. A constant column has no slots.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtri

from synthsieve.data.checks import check
from synthsieve.data.dataset import Dataset, InputSpec, Kind
from synthsieve.data.modalities.encoding import Codec, check_rows, check_shape
from synthsieve.data.modalities.table.cells import decimals_of
from synthsieve.data.modalities.table.rows import arrow_from_rows
from synthsieve.data.modalities.table.schema import Column, ColumnType, TableSchema, arrow_type

CATEGORICAL = (ColumnType.CATEGORY, ColumnType.BOOLEAN)
MAX_KNOTS = 256
SPIKE_SHARE = 0.05  # of the rows; a value as frequent as this is a state
MIN_AT_SPIKE = 3  # rows, so that not every value of a small table is a state
MAX_SPIKES = 20
MAX_SLOTS = 100
SHARED_DEPTH = 0.1  # a rare category's slot is 1 - SHARED_DEPTH position, its position among the rare ones
DATE_STEPS = (86_400, 3_600, 60, 1, 1e-3, 1e-6)  # seconds
DATE_UNIT = re.compile(r"\w+\[(s|ms|us|ns)\b")
UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class FixedCode:
    """A column that is constant in the training rows, or missing throughout (NaN)."""

    value: float

    @property
    def size(self) -> int:
        return 0

    def encode(self, cells: np.ndarray) -> np.ndarray:
        return np.zeros((len(cells), 0))

    def decode(self, block: np.ndarray) -> np.ndarray:
        return np.full(len(block), self.value)

    def to_json(self) -> dict[str, Any]:
        return {"code": "fixed", "value": None if np.isnan(self.value) else self.value}


@dataclass(frozen=True, eq=False)
class NumberCode:
    """Numbers as normal scores of their rank among the training rows; frequent values and missing as states.

    score(v) = Phi^-1((rows below v + half of those at v) / rows) at the knots, linear between them: monotone, with an
    exact inverse within the range of the training rows, to which other values are clipped.
    """

    knots: np.ndarray  # float64 (k,), distinct values of training rows, ascending
    scores: np.ndarray  # float64 (k,), ascending
    spikes: np.ndarray  # float64 (s,), values that are states
    missing: bool  # whether missing is a state (some training row is missing); else a missing cell gets score 0
    continuous: bool  # whether training rows have other values than the spikes
    decimals: int | None  # digits to which decoded values are rounded; None: not rounded
    step: float = 1.0  # decoded values are first rounded to its multiples, such as days of a timestamp; 1: not rounded

    @classmethod
    def fit(cls, cells: np.ndarray, decimals: int | None, step: float = 1.0) -> NumberCode:
        known = cells[~np.isnan(cells)]
        values, counts = np.unique(known, return_counts=True)
        ranks = (np.cumsum(counts) - 0.5 * counts) / len(known)
        often = np.argsort(-counts, kind="stable")[:MAX_SPIKES]
        fewest = max(SPIKE_SHARE * len(cells), MIN_AT_SPIKE)
        spikes = np.sort(values[often[counts[often] >= fewest]]) if len(values) > 1 else values
        kept = np.arange(len(ranks))
        if len(ranks) > MAX_KNOTS:  # evenly spread, the first and the last among them
            even = np.searchsorted(ranks, np.linspace(0, 1, MAX_KNOTS)).clip(max=len(ranks) - 1)
            kept = np.unique([0, *even, len(ranks) - 1])
        missing = len(known) < len(cells)
        return cls(values[kept], ndtri(ranks[kept]), spikes, missing, len(spikes) < len(values), decimals, step)

    @property
    def size(self) -> int:
        return 1 + int(self.missing) + len(self.spikes)

    @property
    def state_scores(self) -> tuple[float, ...]:
        """The score of each state: 0 for missing, then those of the spikes."""
        return (0.0,) * self.missing + tuple(self._score(self.spikes).tolist())

    def encode(self, cells: np.ndarray) -> np.ndarray:
        missing = np.isnan(cells)
        values = np.where(missing, self.knots[0], cells)
        if not self.continuous:
            values = self.spikes[np.abs(self._score(values)[:, None] - self._score(self.spikes)).argmin(axis=1)]
        block = np.zeros((len(cells), self.size))
        block[:, 0] = np.where(missing, 0.0, self._score(values))
        if self.missing:
            block[:, 1] = missing
        block[:, 1 + self.missing :] = (values[:, None] == self.spikes) & ~missing[:, None]
        return block

    def decode(self, block: np.ndarray) -> np.ndarray:
        states = block[:, 1:].astype(np.float64)
        none = 1 - states.sum(axis=1) if self.continuous else np.full(len(block), -np.inf)
        chosen = np.concatenate([none[:, None], states], axis=1).argmax(axis=1)
        # Scores as float32, like the blocks: the score of a knot decodes to exactly that knot.
        values = np.interp(block[:, 0], self.scores.astype(np.float32), self.knots)
        if self.step != 1:
            values = np.rint(values / self.step) * self.step
        if self.decimals is not None:
            values = np.clip(np.round(values, self.decimals), self.knots[0], self.knots[-1])
        of_state = np.array([0.0, *[np.nan] * self.missing, *self.spikes])
        return np.where(chosen == 0, values, of_state[chosen])

    def to_json(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("knots", "scores", "spikes")}
        flags = {"missing": self.missing, "continuous": self.continuous, "decimals": self.decimals}
        return {"code": "number", **arrays, **flags, "step": self.step}

    def _score(self, values: np.ndarray) -> np.ndarray:
        return np.interp(values, self.knots, self.scores)


@dataclass(frozen=True, eq=False)
class CategoryCode:
    """Categories as slots: the most frequent of the training rows, then one for all others, then one for missing.

    In the shared slot a rare category has the value 1 - 0.1 position, where each rare category occupies an interval of
    [0, 1] as long as its share of the rows: a uniform position decodes to each with its frequency. A category that is
    not in the training rows, or a missing cell if none is missing there, is all zeros.
    """

    kept: np.ndarray  # int64 (k,), category indices with their own slot, in the order of the schema
    rare: np.ndarray  # int64 (r,), category indices that share a slot, from the rarest to the most frequent
    edges: np.ndarray  # float64 (r + 1,), from 0 to 1: the ends of the intervals of the rare ones; empty without them
    missing: bool  # whether missing has a slot

    @classmethod
    def fit(cls, cells: np.ndarray) -> CategoryCode:
        known = cells[~np.isnan(cells)].astype(np.int64)
        values, counts = np.unique(known, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        rare = order[MAX_SLOTS:][::-1]
        edges = np.concatenate([[0.0], np.cumsum(counts[rare]) / counts[rare].sum()]) if len(rare) else np.empty(0)
        return cls(np.sort(values[order[:MAX_SLOTS]]), values[rare], edges, len(known) < len(cells))

    @property
    def size(self) -> int:
        return len(self.kept) + (len(self.rare) > 0) + int(self.missing)

    @property
    def shared(self) -> int:
        """The slot of the rare categories; -1 without them."""
        return len(self.kept) if len(self.rare) else -1

    def encode(self, cells: np.ndarray) -> np.ndarray:
        missing = np.isnan(cells)
        index = np.where(missing, -1, cells).astype(np.int64)
        block = np.zeros((len(cells), self.size))
        block[:, : len(self.kept)] = index[:, None] == self.kept
        if len(self.rare):
            order = np.argsort(self.rare)
            at = order[np.searchsorted(self.rare, index, sorter=order).clip(max=len(order) - 1)]
            middle = (self.edges[:-1] + self.edges[1:]) / 2
            block[:, self.shared] = np.where(self.rare[at] == index, 1 - SHARED_DEPTH * middle[at], 0.0)
        if self.missing:
            block[:, -1] = missing
        return block

    def decode(self, block: np.ndarray) -> np.ndarray:
        chosen = block.argmax(axis=1)
        of_slot = np.concatenate([self.kept, [0] if len(self.rare) else [], [np.nan] if self.missing else []])
        values = of_slot[chosen]
        if len(self.rare):
            position = (1 - block[:, self.shared].astype(np.float64)) / SHARED_DEPTH
            at = np.searchsorted(self.edges, position, side="right") - 1
            values = np.where(chosen == self.shared, self.rare[at.clip(0, len(self.rare) - 1)], values)
        return values.astype(np.float64)

    def to_json(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("kept", "rare", "edges")}
        return {"code": "category", **arrays, "missing": self.missing}


Code = FixedCode | NumberCode | CategoryCode


def fit_code(cells: np.ndarray, *, is_category: bool, decimals: int | None = None, step: float = 1.0) -> Code:
    """The code of a column, fitted on the cells of training rows: float64 (n,), n at least 1."""
    known = cells[~np.isnan(cells)]
    if not len(known) or (len(known) == len(cells) and (known == known[0]).all()):
        return FixedCode(float(known[0]) if len(known) else float("nan"))
    return CategoryCode.fit(cells) if is_category else NumberCode.fit(cells, decimals, step)


def read_code(value: dict[str, Any]) -> Code:
    """The code from `to_json`; KeyError, TypeError or ValueError if it is damaged."""
    if value["code"] == "fixed":
        return FixedCode(float("nan") if value["value"] is None else float(value["value"]))
    if value["code"] == "category":
        kept, rare = (np.asarray(value[name], dtype=np.int64) for name in ("kept", "rare"))
        edges = np.asarray(value["edges"], dtype=np.float64)
        if kept.ndim != 1 or (len(edges) != len(rare) + 1 if len(rare) else len(edges) != 0) or not len(kept):
            raise ValueError("inconsistent slots of a category")
        return CategoryCode(kept, rare, edges, bool(value["missing"]))
    knots, scores, spikes = (np.asarray(value[name], dtype=np.float64) for name in ("knots", "scores", "spikes"))
    rising = len(knots) and len(knots) == len(scores) and (np.diff(knots) > 0).all() and (np.diff(scores) > 0).all()
    if value["code"] != "number" or not rising or not np.isfinite([*knots, *scores, *spikes]).all():
        raise ValueError("the knots of a number must be finite and ascending")
    decimals = None if value["decimals"] is None else int(value["decimals"])
    step = float(value.get("step", 1.0))
    if not 0 < step < np.inf:
        raise ValueError(f"the step of a number must be positive, not {step}")
    return NumberCode(knots, scores, spikes, bool(value["missing"]), bool(value["continuous"]), decimals, step)


def date_step(counts: np.ndarray, arrow: str) -> float:
    """The longest of a day, an hour, ... of which every count is a multiple, in the unit of the counts; 1 if none.

    `counts` (n,) are dates as `cells` counts them, of the Arrow type `arrow`.
    """
    unit = DATE_UNIT.match(arrow)
    if unit is None or not len(counts):
        return 1.0
    per_second = UNITS_PER_SECOND["us" if arrow.startswith("timestamp[ns") else unit[1]]
    steps = [float(round(seconds * per_second)) for seconds in DATE_STEPS if seconds * per_second >= 1]
    return next((step for step in steps if not (counts % step).any()), 1.0)


@dataclass(frozen=True, eq=False)
class TableEncoding:
    """One code per column, fitted on training rows."""

    schema: TableSchema
    codes: tuple[Code, ...]  # one for each column

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
    fits = isinstance(schema, TableSchema) and len(schema) == dataset.train.x.shape[1]
    check(fits, f"{dataset.name}: `metadata` must be the columns' TableSchema: use rows_from_arrow", "no-schema")
    check_rows(rows)
    x = dataset.train.x[rows]
    codes = tuple(_fit_column(x[:, i], column) for i, column in enumerate(schema.columns))
    varied = any(code.size for code in codes)
    check(varied, f"{dataset.name}: every column is constant in the training rows", "constant-columns")
    return TableEncoding(schema, codes)


def _fit_column(cells: np.ndarray, column: Column) -> Code:
    """The code of one column, with the decimals of the training rows (those of the schema are of all rows)."""
    known, is_category = cells[~np.isnan(cells)], column.type in CATEGORICAL
    if column.type is ColumnType.DATE:
        return fit_code(cells, is_category=False, decimals=0, step=date_step(known, column.arrow))
    return fit_code(cells, is_category=is_category, decimals=decimals_of(known, column.arrow))


def _read(value: dict[str, Any]) -> TableEncoding:
    """The encoding from `to_json`; its Arrow types must exist, and its codes have no other categories than columns."""
    schema, codes = TableSchema.from_json(value["schema"]), tuple(map(read_code, value["codes"]))
    for column, code in zip(schema.columns, codes, strict=True):
        arrow_type(column.arrow)
        used: list[float] = [*code.kept, *code.rare] if isinstance(code, CategoryCode) else []
        if isinstance(code, FixedCode) and column.type in CATEGORICAL and not np.isnan(code.value):
            used = [code.value]
        known = 2 if column.type is ColumnType.BOOLEAN else len(column.categories)
        if used and not 0 <= min(used) <= max(used) < known:
            raise ValueError(f"column {column.name!r} has {known} categories, but its code has others")
    return TableEncoding(schema, codes)


CODEC = Codec(_fit, _read)
