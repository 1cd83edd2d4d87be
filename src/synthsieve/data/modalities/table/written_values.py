"""Numbers and dates in text cells: 1,234,567 and $1.20 and 12% and 1/31/2024.

A column is converted only if every cell that is not empty matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

CURRENCIES = "$€£¥"
NUMBER = r"[-+]?\d+(\.\d+)?"
GROUPED = r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?"
AMOUNT = (
    rf"^(({NUMBER}|{GROUPED})\s?%?|-?[{CURRENCIES}]\s?-?({NUMBER}|{GROUPED})|({NUMBER}|{GROUPED})\s?[{CURRENCIES}])$"
)
# Patterns of dates, and their possible formats.
DATES = {
    r"^\d{1,2}/\d{1,2}/\d{4}$": ("%m/%d/%Y", "%d/%m/%Y"),
    r"^\d{1,2}\.\d{1,2}\.\d{4}$": ("%d.%m.%Y",),
    r"^\d{4}/\d{1,2}/\d{1,2}$": ("%Y/%m/%d",),
}
FORMAT_NAMES = {"%m/%d/%Y": "month/day/year", "%d/%m/%Y": "day/month/year", "%d.%m.%Y": "day.month.year"}


@dataclass(frozen=True)
class Found:
    """A column's cells as numbers or dates, and a note on how they were read."""

    cells: Any
    note: str


def find_values(texts: Any) -> Found | None:
    """The numbers or dates in an Arrow column of trimmed text, null where missing; None if it is other text.

    Dates whose format is ambiguous stay text, with a note.
    """
    if texts.null_count == len(texts):
        return None
    for pattern, formats in DATES.items():
        if _all_match(texts, pattern):
            return _dates(texts, formats)
    if not _all_match(texts, AMOUNT):
        return None
    percent = _all_match(texts, r"%$")
    if not percent and pc.any(pc.match_substring(texts, "%")).as_py():
        return None  # percentages and plain numbers are mixed
    plain = pc.replace_substring_regex(texts, rf"[,%+\s{CURRENCIES}]", "")
    try:
        numbers = plain.cast(pa.int64())
    except pa.ArrowException:
        numbers = plain.cast(pa.float64())
    how = "in percent" if percent else "without thousands separators and currency signs"
    return Found(numbers, f"is read as numbers, {how}")


def _dates(texts: Any, formats: tuple[str, ...]) -> Found | None:
    parsed = {name: pc.strptime(texts, format=name, unit="s", error_is_null=True) for name in formats}
    fitting = {name: dates for name, dates in parsed.items() if dates.null_count == texts.null_count}
    if not fitting:
        return None
    if len(fitting) > 1:
        return Found(texts, "looks like dates, but day and month are ambiguous: write them as 2024-12-31")
    ((name, dates),) = fitting.items()
    return Found(dates.cast(pa.date32()), f"is read as dates, {FORMAT_NAMES.get(name, 'year/month/day')}")


def _all_match(texts: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())
