"""What a request asks for, checked: a number in its range, rows of the pool, one of several words; else a sentence."""

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

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_ROWS = 512  # in one request
MOST_BYTES = 262_144  # of a body
LONGEST = 24  # characters of a number
WHOLE = re.compile(r"\d{1,12}")

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True)
class Asked:
    """The arguments of one request, as text."""

    given: Mapping[str, str]

    def row(self, name: str, count: int) -> int:
        """One row of `count`."""
        return int(self._whole(name, self.given.get(name, ""), count))

    def rows(self, name: str, count: int) -> np.ndarray:
        """Rows of `count`, separated by commas: int64 (k,), at most MOST_ROWS."""
        parts = self.given.get(name, "").split(",", MOST_ROWS)
        if len(parts) > MOST_ROWS:
            raise InputError(f"expected at most {MOST_ROWS} rows at a time, got more: ask in parts")
        return np.array([self._whole(name, part, count) for part in parts], dtype=np.int64)

    def some(self, name: str, count: int) -> np.ndarray | None:
        """The same, or None where nothing was given."""
        return self.rows(name, count) if self.given.get(name) else None

    def number(self, name: str) -> float | None:
        """A finite number; None where nothing was given."""
        text = self.given.get(name, "")
        if not text:
            return None
        try:
            value = float(text) if len(text) <= LONGEST else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InputError(f"expected a finite number as {name}, got {text[:LONGEST]!r}")
        return value

    def one_of(self, name: str, choices: type[Choice]) -> Choice:
        """One of the words of an enum; the first where nothing was given."""
        text = self.given.get(name) or str(next(iter(choices)))
        try:
            return choices(text)
        except ValueError:
            raise InputError(f"expected {name} as one of {', '.join(choices)}, got {text[:40]!r}") from None

    def flag(self, name: str) -> bool:
        """1 or 0; 0 where nothing was given."""
        text = self.given.get(name, "0")
        if text not in ("0", "1"):
            raise InputError(f"expected {name} as 0 or 1, got {text[:20]!r}")
        return text == "1"

    def tab(self) -> str:
        """The name that a page gave itself."""
        text = self.given.get("tab", "")
        if not re.fullmatch(r"[a-z0-9]{0,32}", text):
            raise InputError("expected a tab's name of at most 32 letters and digits")
        return text

    def _whole(self, name: str, text: str, count: int) -> int:
        if not WHOLE.fullmatch(text) or not text.isascii() or int(text) >= count:
            raise InputError(f"expected {name} from 0 to {count - 1}, got {text[:LONGEST]!r}")
        return int(text)


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that a request carries, of at most MOST_BYTES."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise InputError("expected a body of application/json")
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_BYTES:
            raise InputError(f"expected a body of at most {MOST_BYTES:,} bytes, got more")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError("expected a JSON object as the body")
    return value


def rows_in(body: Mapping[str, Any], count: int) -> np.ndarray:
    """`rows` of a body: distinct rows of `count`, int64 (k,), ascending."""
    given = body.get("rows")
    if not isinstance(given, list) or not given:
        raise InputError("expected rows as a list of numbers, at least one")
    if any(type(row) is not int or not 0 <= row < count for row in given):
        raise InputError(f"expected rows from 0 to {count - 1}")
    return np.unique(np.array(given, dtype=np.int64))


def text_in(body: Mapping[str, Any], name: str) -> dict[str, str]:
    """An object of a body whose values are short text, as in a query: what a filter or a choice is told by."""
    given = body.get(name, {})
    if not isinstance(given, dict) or len(given) > 32:
        raise InputError(f"expected {name} as an object of text")
    if any(not isinstance(value, str) or len(value) > 4096 for value in given.values()):
        raise InputError(f"expected {name} as an object of short text")
    return given
