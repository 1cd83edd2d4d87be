"""Where numbers stand along an axis, and the round numbers written beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from synthsieve.charts.chart import Chart, Scale, numbers, values_along

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Placing:
    """An axis laid on a stretch: `low` stands at `start`, `high` at `end`."""

    low: float
    high: float
    scale: Scale
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where a number stands; those beyond an end stand at that end."""
        low, high, value = (self._even(each) for each in (self.low, self.high, value))
        share = (value - low) / (high - low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def _even(self, value: float) -> float:
        if self.scale is Scale.LINEAR:
            return value
        return math.log10(value) if value > 0 else -math.inf


@dataclass(frozen=True)
class Ruled:
    """An axis as it is drawn: its ends, and the numbers written beside it."""

    low: float
    high: float
    marks: tuple[float, ...]

    def placed(self, scale: Scale, start: float, end: float) -> Placing:
        return Placing(self.low, self.high, scale, start, end)


def ruled(chart: Chart, direction: int, about: int = 5) -> Ruled:
    """The x (0) or y (1) axis: its ends as given, else round numbers that hold every mark."""
    axis = (chart.x, chart.y)[direction]
    if axis.categories:
        return Ruled(-0.5, len(axis.categories) - 0.5, numbers(range(len(axis.categories))))
    found = list(values_along(chart, direction))
    low = min(found) if axis.low is None else axis.low
    high = max(found) if axis.high is None else axis.high
    if axis.plain:
        margin = 0.04 * (high - low) or 1.0
        return Ruled(low - margin, high + margin, ())
    if axis.scale is Scale.LOG:
        low, high = (low, high) if high > low else (low / 2, high * 2)
        return Ruled(low, high, tuple(log_ticks(low, high, about)))
    if axis.whole:
        low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
        about = min(about, round(high - low))
    marks = ticks(low, high, about)
    ends = (marks[0] if axis.low is None else low), (marks[-1] if axis.high is None else high)
    slack = 1e-9 * (ends[1] - ends[0])
    return Ruled(*ends, tuple(mark for mark in marks if ends[0] - slack <= mark <= ends[1] + slack))


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) from at most `low` to at least `high`."""
    if low == high:
        reach = abs(low) / 2 or 1.0
        low, high = low - reach, high + reach
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def log_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Powers of ten within the range, every k-th so that there are about `about`; 1, 2 and 5 times them where few.

    Where even those are fewer than two, round numbers that lie evenly.
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 2:
        parts = [f * 10.0**e for e in range(first - 1, last + 1) for f in (1, 2, 5)]
        held = [float(f"{part:.12g}") for part in parts if low * (1 - 1e-9) <= part <= high * (1 + 1e-9)]
        return held if len(held) > 1 else [value for value in ticks(low, high, about) if low <= value <= high]
    apart = max(1, math.ceil((last - first) / about))
    return [10.0**e for e in range(last, first - 1, -apart)][::-1]


def written(values: Iterable[float], scale: Scale = Scale.LINEAR) -> list[str]:
    """Numbers as people write them beside an axis: 2,000 and 0.05, and 10⁻⁶ where a log axis goes far."""
    values = list(values)
    if scale is Scale.LOG and values and (min(values) < 1e-3 or max(values) > 1e5):
        return [_power(value) for value in values]
    return [f"{value:,.0f}" if abs(value) >= 1000 and value == int(value) else f"{value:g}" for value in values]


def _power(value: float) -> str:
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = value / 10.0**exponent
    power = "1" if exponent == 0 else f"10{str(exponent).translate(_RAISED)}"
    return power if abs(factor - 1) < 1e-9 else f"{factor:g}·{power}"
