"""What a request contains, validated: arguments, the filter and the order of the samples that are shown.

Anything unexpected is an InputError that says what was expected.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from synthsieve.errors import InputError
from synthsieve.evaluation.predict import NO_ORACLE
from synthsieve.results.pool_view import PoolView
from synthsieve.selection.entropy import Reason
from synthsieve.training.pool import Outcomes

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_ROWS = 512  # in one request
MAX_BYTES = 262_144  # of a body
MAX_NUMBER_LENGTH = 24  # characters
MAX_TEXT_LENGTH = 4096
INTEGER = re.compile(r"[0-9]{1,12}")

EnumType = TypeVar("EnumType", bound=StrEnum)


def invalid(message: str) -> InputError:
    """The error for an argument that cannot be used."""
    return InputError(message, code="invalid-request")


@dataclass(frozen=True)
class QueryParams:
    """The arguments of one request, as text."""

    values: Mapping[str, str]

    def row(self, name: str, count: int) -> int:
        """An integer in [0, count)."""
        return self._index(name, self.values.get(name, ""), count)

    def rows(self, name: str, count: int) -> np.ndarray:
        """Integers in [0, count), separated by commas: int64 (k,), at most MAX_ROWS."""
        parts = self.values.get(name, "").split(",", MAX_ROWS)
        if len(parts) > MAX_ROWS:
            raise invalid(f"expected at most {MAX_ROWS} rows per request, got more: split the request")
        return np.array([self._index(name, part, count) for part in parts], dtype=np.int64)

    def number(self, name: str) -> float | None:
        """A finite number; None if missing."""
        text = self.values.get(name, "")
        if not text:
            return None
        try:
            value = float(text) if len(text) <= MAX_NUMBER_LENGTH else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise invalid(f"expected a finite number as {name}, got {text[:MAX_NUMBER_LENGTH]!r}")
        return value

    def one_of(self, name: str, options: type[EnumType]) -> EnumType:
        """A member of an enum; its first one if missing."""
        text = self.values.get(name) or str(next(iter(options)))
        try:
            return options(text)
        except ValueError:
            raise invalid(f"expected {name} to be one of {', '.join(options)}, got {text[:40]!r}") from None

    def flag(self, name: str) -> bool | None:
        """1 or 0; None if missing."""
        text = self.values.get(name, "")
        if text not in ("", "0", "1"):
            raise invalid(f"expected {name} to be 0 or 1, got {text[:20]!r}")
        return text == "1" if text else None

    def tab(self) -> str:
        """The random name of a browser tab."""
        text = self.values.get("tab", "")
        if not re.fullmatch(r"[a-z0-9]{0,32}", text):
            raise invalid("expected tab to have at most 32 letters and digits")
        return text

    def _index(self, name: str, text: str, count: int) -> int:
        if not INTEGER.fullmatch(text) or int(text) >= count:
            raise invalid(f"expected {name} from 0 to {count - 1}, got {text[:MAX_NUMBER_LENGTH]!r}")
        return int(text)


async def json_body(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body, of at most MAX_BYTES."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise invalid("expected a body of type application/json")
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BYTES:
            raise invalid(f"expected a body of at most {MAX_BYTES:,} bytes, got more")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise invalid("expected a JSON object as the body")
    return value


def rows_in(body: Mapping[str, Any], count: int) -> np.ndarray:
    """`rows` of a body: distinct integers in [0, count), int64 (k,), ascending."""
    rows = body.get("rows")
    if not isinstance(rows, list) or not rows:
        raise invalid("expected rows as a list of integers, at least one")
    if any(type(row) is not int or not 0 <= row < count for row in rows):
        raise invalid(f"expected rows from 0 to {count - 1}")
    return np.unique(np.array(rows, dtype=np.int64))


def bool_in(body: Mapping[str, Any], name: str, default: bool | None = None) -> bool:
    """A truth value of a body."""
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise invalid(f"expected {name} to be true or false")
    return value


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH


def params_in(body: Mapping[str, Any], name: str) -> QueryParams:
    """An object of short strings in a body, such as a filter or a selection."""
    values = body.get(name, {})
    if not isinstance(values, dict) or len(values) > 32 or not all(map(_is_short, values.values())):
        raise invalid(f"expected {name} as an object of at most 32 short strings")
    return QueryParams(values)


class Status(StrEnum):
    """What a selection did with a sample. `rejected` includes those rejected by hand."""

    ALL = "all"
    SELECTED = "selected"
    KEPT = "kept"
    REJECTED = "rejected"
    BY_HAND = "by_hand"


class Agreement(StrEnum):
    """Whether the oracle predicts the sample's label."""

    ALL = "all"
    AGREES = "agrees"
    DISAGREES = "disagrees"


class Order(StrEnum):
    """What samples are sorted by."""

    ENTROPY_BY_CLASS = "entropy_by_class"  # sorted within each class, alternating between classes
    ENTROPY = "entropy"
    WEIGHT = "weight"
    RANK = "rank"
    DISTANCE = "distance"
    LOG_DENSITY = "log_density"
    ROW = "row"


def filtered_rows(query: QueryParams, view: PoolView, outcomes: Outcomes) -> np.ndarray:
    """Rows that meet all conditions of a query: int64, ascending. Ranges include both ends."""
    status, oracle = query.one_of("status", Status), query.one_of("oracle", Agreement)
    passed = {
        Status.ALL: np.ones(len(view), dtype=bool),
        Status.SELECTED: outcomes.weight > 0,
        Status.KEPT: outcomes.kept,
        Status.REJECTED: ~outcomes.kept,
        Status.BY_HAND: outcomes.reason == Reason.BY_HAND,
    }[status]
    if query.values.get("classes"):
        passed &= np.isin(view.pool.y, query.rows("classes", len(view.classes)))
    for name, values in (("entropy", view.pool.entropy), ("weight", outcomes.weight)):
        if (low := query.number(f"lowest_{name}")) is not None:
            passed &= values >= low
        if (high := query.number(f"highest_{name}")) is not None:
            passed &= values <= high
    if oracle is not Agreement.ALL:
        predicted = view.pool.oracle_class
        passed &= (predicted != NO_ORACLE) & ((predicted == view.pool.y) == (oracle is Agreement.AGREES))
    return np.flatnonzero(passed)


def in_order(rows: np.ndarray, order: Order, view: PoolView, outcomes: Outcomes, *, descending: bool) -> np.ndarray:
    """`rows` sorted, stably; rows without a rank or with a non-finite value come last in both directions."""
    if order is Order.ROW:
        return rows[::-1] if descending else rows
    if order is Order.ENTROPY_BY_CLASS:
        # The first row of each class, then the second of each, and so on; each class keeps its order.
        rows = in_order(rows, Order.ENTROPY, view, outcomes, descending=descending)
        y, position = view.pool.y[rows], np.empty(len(rows), dtype=np.int64)
        counts = np.bincount(y)
        position[np.argsort(y, kind="stable")] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows[np.lexsort((y, position))]
    columns = {
        Order.ENTROPY: view.pool.entropy,
        Order.WEIGHT: outcomes.weight,
        Order.RANK: outcomes.rank,
        Order.DISTANCE: view.nearest_distance,
        Order.LOG_DENSITY: view.pool.log_density,
    }
    values = columns[order][rows]
    last = values < 0 if order is Order.RANK else ~np.isfinite(values)
    return rows[np.lexsort((-values if descending else values, last))]
