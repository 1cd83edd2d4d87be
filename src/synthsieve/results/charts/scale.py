"""Axis limits, ticks and positions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from synthsieve.results.charts.chart import Chart, Scale, numbers, values_along

TICKS = 5  # of an axis, about
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Projection:
    """From values to positions: `low` is drawn at `start`, `high` at `end`."""

    low: float
    high: float
    scale: Scale
    start: float
    end: float

    def at(self, value: float) -> float:
        """The position of a value; values outside the limits are drawn at the nearer end."""
        low, high, value = (self._scaled(each) for each in (self.low, self.high, value))
        share = (value - low) / (high - low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def _scaled(self, value: float) -> float:
        if self.scale is Scale.LINEAR:
            return value
        return math.log10(value) if value > 0 else -math.inf


@dataclass(frozen=True)
class Limits:
    """The limits of an axis and its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def projection(self, scale: Scale, start: float, end: float) -> Projection:
        return Projection(self.low, self.high, scale, start, end)


def limits(chart: Chart, direction: int) -> Limits:
    """Of the x (0) or y (1) axis: its limits as given, else round numbers around all marks; about `TICKS` ticks."""
    axis = (chart.x, chart.y)[direction]
    if axis.categories:
        return Limits(-0.5, len(axis.categories) - 0.5, numbers(range(len(axis.categories))))
    found = values_along(chart, direction)
    low = min(found) if axis.low is None else axis.low
    high = max(found) if axis.high is None else axis.high
    if axis.plain:
        margin = 0.04 * (high - low) or 1.0
        return Limits(low - margin, high + margin, ())
    if axis.scale is Scale.LOG:
        low, high = (low, high) if high > low else (low / 2, high * 2)
        return Limits(low, high, tuple(log_ticks(low, high, TICKS)))
    if axis.whole:
        low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
    marks = ticks(low, high, min(TICKS, round(high - low)) if axis.whole else TICKS)
    ends = (marks[0] if axis.low is None else low), (marks[-1] if axis.high is None else high)
    slack = 1e-9 * (ends[1] - ends[0])
    return Limits(*ends, tuple(mark for mark in marks if ends[0] - slack <= mark <= ends[1] + slack))


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) from at most `low` to at least `high`."""
    if low == high:
        reach = abs(low) / 2 or 1.0
        low, high = low - reach, high + reach
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Powers of ten within the range, every k-th for about `count` ticks; 1, 2 and 5 times them where there are few.

    Linear ticks where even those are fewer than two.
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 2:
        parts = [f * 10.0**e for e in range(first - 1, last + 1) for f in (1, 2, 5)]
        inside = [float(f"{part:.12g}") for part in parts if low * (1 - 1e-9) <= part <= high * (1 + 1e-9)]
        return inside if len(inside) > 1 else [value for value in ticks(low, high, count) if low <= value <= high]
    every = max(1, math.ceil((last - first) / count))
    return [10.0**e for e in range(last, first - 1, -every)][::-1]


def tick_labels(values: Iterable[float], scale: Scale = Scale.LINEAR) -> list[str]:
    """Numbers as written next to an axis: 2,000 and 0.05, and 10⁻⁶ on a log axis of many decades."""
    values = list(values)
    if scale is Scale.LOG and values and (min(values) < 1e-3 or max(values) > 1e5):
        return [_power(value) for value in values]
    return [f"{value:,.0f}" if abs(value) >= 1000 and value == int(value) else f"{value:g}" for value in values]


def _power(value: float) -> str:
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = value / 10.0**exponent
    power = "1" if exponent == 0 else f"10{str(exponent).translate(_SUPERSCRIPT)}"
    return power if abs(factor - 1) < 1e-9 else f"{factor:g}·{power}"
