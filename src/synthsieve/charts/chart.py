"""What a chart says, as plain data: axes and layers of marks. How it looks is left to those who draw it.

A mark's number is always in the unit of its axis. Along an axis of categories, category i stands at i.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from synthsieve.errors import DataError

Numbers = tuple[float, ...]


class Scale(StrEnum):
    """How an axis spaces its numbers."""

    LINEAR = "linear"
    LOG = "log"


class Tone(IntEnum):
    """A colour by its number; each page and each renderer has its own six, and a quiet one."""

    QUIET = 0
    BLUE = 1
    ORANGE = 2
    GREEN = 3
    PINK = 4
    OCHRE = 5
    INK = 6


SERIES = (Tone.BLUE, Tone.ORANGE, Tone.GREEN, Tone.PINK, Tone.OCHRE, Tone.INK)


class Dash(StrEnum):
    """How a line is broken, so that lines differ without their colours."""

    SOLID = "solid"
    DASHED = "dashed"
    DOTTED = "dotted"
    DASH_DOT = "dash-dot"


class Shape(StrEnum):
    """What a point looks like, so that points differ without their colours."""

    CIRCLE = "circle"
    SQUARE = "square"
    UP = "up"
    DOWN = "down"
    DIAMOND = "diamond"
    CROSS = "cross"
    RING = "ring"


class Fill(StrEnum):
    """How a bar is filled, so that stacked bars differ without their colours."""

    FULL = "full"
    LIGHT = "light"
    STRIPED = "striped"
    DOTS = "dots"


@dataclass(frozen=True)
class Axis:
    """One direction of a chart.

    Attributes:
        label: what the numbers are, with their unit; may be empty.
        scale: linear or log.
        low, high: ends of the axis; None lets the marks decide.
        categories: names instead of numbers, the first at 0.
        headings: categories that carry no marks: titles of the group below them.
        beside: for each category a word at the far end of its row; empty for none.
        whole: whether the numbers are counts, so that no fraction is written beside the axis.
        plain: whether the numbers are left without ticks, as on a map.
    """

    label: str = ""
    scale: Scale = Scale.LINEAR
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] = ()
    headings: frozenset[int] = frozenset()
    beside: tuple[str, ...] = ()
    whole: bool = False
    plain: bool = False


@dataclass(frozen=True)
class Line:
    """y over x; a y that is not finite is a gap. An empty name stays out of the legend."""

    name: str
    x: Numbers
    y: Numbers
    tone: Tone = Tone.BLUE
    dash: Dash = Dash.SOLID
    faint: bool = False


@dataclass(frozen=True)
class Band:
    """What lies between `low` and `high` over x."""

    name: str
    x: Numbers
    low: Numbers
    high: Numbers
    tone: Tone = Tone.BLUE


@dataclass(frozen=True)
class Points:
    """Single points.

    Attributes:
        sizes: the radius of each, where a chart is 480 wide; one number for all, or as many as points.
        faint: whether they stay in the background.
        notes: what to tell of each when it is pointed at; empty for nothing.
        rows: the sample that each stands for, for scripts of a page; empty for none.
    """

    name: str
    x: Numbers
    y: Numbers
    tone: Tone = Tone.BLUE
    shape: Shape = Shape.CIRCLE
    sizes: Numbers = (3.0,)
    faint: bool = False
    notes: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()

    def size(self, i: int) -> float:
        return self.sizes[i if len(self.sizes) > 1 else 0]


@dataclass(frozen=True)
class Bars:
    """Bars from `start` to `end` along one axis, `value` high from `base` on; stacked ones begin where others end.

    Attributes:
        across: whether they lie, along the y axis of categories; else they stand on the x axis.
        notes: what to tell of each; empty for its numbers.
    """

    name: str
    start: Numbers
    end: Numbers
    value: Numbers
    base: Numbers
    tone: Tone = Tone.BLUE
    fill: Fill = Fill.FULL
    across: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Intervals:
    """Horizontal intervals, `low` to `high` with a mark at `middle`, at the heights `y`."""

    name: str
    low: Numbers
    middle: Numbers
    high: Numbers
    y: Numbers
    tone: Tone = Tone.BLUE
    shape: Shape = Shape.CIRCLE
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A line right across the chart, at `at` of the x axis (`upright`) or of the y axis, with what it means."""

    at: float
    label: str
    upright: bool = True
    tone: Tone = Tone.INK
    dash: Dash = Dash.DASHED


@dataclass(frozen=True)
class Words:
    """Words in the chart, centred on (x, y)."""

    x: Numbers
    y: Numbers
    words: tuple[str, ...]


Layer = Line | Band | Points | Bars | Intervals | Rule | Words


@dataclass(frozen=True)
class Chart:
    """One figure.

    Attributes:
        title: what it shows, in a few words.
        description: one sentence for those who cannot see it.
        x, y: the axes.
        layers: what is drawn, the hindmost first.
        note: what a reader must know, in a line or two under the title; may be empty.
        square: whether it is about as high as wide, as a map is.
    """

    title: str
    description: str
    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    note: str = ""
    square: bool = False

    def __post_init__(self) -> None:
        for layer in self.layers:
            _check(layer)
        if not any(True for _ in values_along(self, 0)) or not any(True for _ in values_along(self, 1)):
            raise DataError(f"expected at least one finite value to draw in {self.title!r}, got none")

    @property
    def legend(self) -> tuple[Layer, ...]:
        """Named layers, in order; none where there is but one, unless that is of intervals, whose look is a verdict."""
        named = tuple(layer for layer in self.layers if getattr(layer, "name", ""))
        return named if len(named) > 1 or any(isinstance(layer, Intervals) for layer in named) else ()


def numbers(values: Iterable[float]) -> Numbers:
    """Any numbers as plain floats."""
    return tuple(float(value) for value in values)


def values_along(chart: Chart, direction: int) -> Iterable[float]:
    """Every finite number of the marks along x (0) or y (1); on a log axis those above 0."""
    found = [value for layer in chart.layers for value in extent(layer)[direction] if math.isfinite(value)]
    axis = (chart.x, chart.y)[direction]
    if axis.scale is Scale.LOG:
        found = [value for value in found if value > 0]
    return found


def extent(layer: Layer) -> tuple[Numbers, Numbers]:
    """The numbers of a layer along x and along y."""
    match layer:
        case Line() | Points() | Words():
            return layer.x, layer.y
        case Band():
            return layer.x, layer.low + layer.high
        case Bars():
            ends = layer.base + tuple(b + v for b, v in zip(layer.base, layer.value, strict=True))
            return (ends, layer.start + layer.end) if layer.across else (layer.start + layer.end, ends)
        case Intervals():
            return layer.low + layer.middle + layer.high, layer.y
        case Rule():
            return ((layer.at,), ()) if layer.upright else ((), (layer.at,))


# Of each kind of layer, the columns that have a number a mark; those of a line's y may have gaps.
_COLUMNS: dict[type[Layer], tuple[str, ...]] = {
    Line: ("x", "y"),
    Band: ("x", "low", "high"),
    Points: ("x", "y"),
    Bars: ("start", "end", "value", "base"),
    Intervals: ("low", "middle", "high", "y"),
    Words: ("x", "y"),
}


def _check(layer: Layer) -> None:
    """Refuse columns that differ in length, and places that are not finite."""
    kind = type(layer).__name__
    columns: dict[str, Numbers] = {name: getattr(layer, name) for name in _COLUMNS.get(type(layer), ())}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        told = ", ".join(f"{len(column)} of {name}" for name, column in columns.items())
        raise DataError(f"expected as many numbers in each column of a {kind}, got {told}: pass nan for a gap")
    gaps = ("y",) if isinstance(layer, Line) else ()
    finite = [value for name, column in columns.items() if name not in gaps for value in column]
    if not all(math.isfinite(value) for value in (*finite, getattr(layer, "at", 0.0))):
        raise DataError(f"expected finite places for a {kind}, got one that is not: leave such marks out")
    for name in ("notes", "rows", "words", "sizes"):
        told_of = len(getattr(layer, name, ""))
        if told_of not in (0, *lengths) and not (name == "sizes" and told_of == 1):
            raise DataError(f"expected {name} for each of the marks of a {kind}, got {told_of}: give as many or none")
