"""Numbers and dates as people write them in text cells: 1,234,567 and $1.20 and 12% and 1/31/2024.

A column is read as such only where every cell that is not empty fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SIGNS = "$€£¥"
NUMBER = r"[-+]?\d+(\.\d+)?"
GROUPED = r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?"
AMOUNT = rf"^(({NUMBER}|{GROUPED})\s?%?|-?[{SIGNS}]\s?-?({NUMBER}|{GROUPED})|({NUMBER}|{GROUPED})\s?[{SIGNS}])$"
# Patterns of dates, and the forms in which they may be meant.
DATES = {
    r"^\d{1,2}/\d{1,2}/\d{4}$": ("%m/%d/%Y", "%d/%m/%Y"),
    r"^\d{1,2}\.\d{1,2}\.\d{4}$": ("%d.%m.%Y",),
    r"^\d{4}/\d{1,2}/\d{1,2}$": ("%Y/%m/%d",),
}
WORDS = {"%m/%d/%Y": "month/day/year", "%d/%m/%Y": "day/month/year", "%d.%m.%Y": "day.month.year"}


@dataclass(frozen=True)
class Found:
    """A column's cells as numbers or dates, and a sentence on how they were read, without the column's name."""

    cells: Any
    note: str


def find_values(texts: Any) -> Found | None:
    """The numbers or dates in an Arrow column of trimmed text, null where a cell is missing; None where it is text.

    Where all dates could be meant in two ways, the cells stay text, and the note says so.
    """
    import pyarrow.compute as pc

    if texts.null_count == len(texts):
        return None
    for pattern, forms in DATES.items():
        if _all_match(texts, pattern):
            return _dates(texts, forms)
    if not _all_match(texts, AMOUNT):
        return None
    share = _all_match(texts, r"%$")
    if not share and pc.any(pc.match_substring(texts, "%")).as_py():
        return None  # shares beside plain numbers: nobody knows whether 12 is 12 %
    plain = pc.replace_substring_regex(texts, rf"[,%+\s{SIGNS}]", "")
    note = "is read as numbers" + (" of percent" if share else ", without signs of thousands or money")
    return Found(_numbers(plain), note)


def _numbers(texts: Any) -> Any:
    import pyarrow as pa

    try:
        return texts.cast(pa.int64())
    except pa.ArrowException:
        return texts.cast(pa.float64())


def _dates(texts: Any, forms: tuple[str, ...]) -> Found | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    read = {form: pc.strptime(texts, format=form, unit="s", error_is_null=True) for form in forms}
    fitting = {form: dates for form, dates in read.items() if dates.null_count == texts.null_count}
    if not fitting:
        return None
    if len(fitting) > 1:
        return Found(texts, "looks like dates, but day and month cannot be told apart: write them as 2024-12-31")
    form, dates = next(iter(fitting.items()))
    return Found(dates.cast(pa.date32()), f"is read as dates, {WORDS.get(form, 'year/month/day')}")


def _all_match(texts: Any, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())
