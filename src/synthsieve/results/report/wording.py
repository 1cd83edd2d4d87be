"""Numbers and lists as text, for the report and its charts."""

from __future__ import annotations

import math
import re

MINUS = "\N{MINUS SIGN}"


def points(share: float) -> str:
    """A difference of shares in percentage points: 0.012 -> `+1.20`."""
    return f"{100 * share:+.2f}".replace("-", MINUS)


def span(low: float, high: float) -> str:
    """An interval of such a difference: `+0.30 to +2.10`."""
    return f"{points(low)} to {points(high)}"


def signed(text: str) -> str:
    """The same with minus signs for the hyphens before numbers."""
    return re.sub(r"(?<!\w)-(?=\d)", MINUS, text)


def percent(share: float, digits: int = 1) -> str:
    """0.964 -> `96.4 %`, with a no-break space."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def count(number: float) -> str:
    """1500 -> `1,500`."""
    return f"{number:,.0f}"


def counted(number: int, word: str, plural: str | None = None) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def figure(value: float | None) -> str:
    """Three significant digits: 0.00213 -> `0.00213`, 1234 -> `1,230`, 2.1e-7 -> `2.1e-7`; empty for None."""
    if value is None or math.isnan(value):
        return ""
    if math.isinf(value):
        return "no limit"
    if value and not 1e-4 <= abs(value) < 1e6:
        mantissa, _, power = f"{value:.2e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}".replace("-", MINUS)
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    text = f"{round(value, digits):,.{max(0, digits)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", MINUS)


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def sentence(text: str) -> str:
    """`kept x: ...` -> `Kept x: ....`"""
    return f"{text[:1].upper()}{text[1:]}."


def unbroken(text: str) -> str:
    """The same with "%" on the line of its number."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")
