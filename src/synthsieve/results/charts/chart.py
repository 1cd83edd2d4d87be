"""What a chart shows, as plain data: two axes and layers of marks. Renderers decide what it looks like.

A mark's position is in the unit of its axis. On an axis of categories, category i is at position i.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from synthsieve.errors import DataError

Numbers = tuple[float, ...]


class Scale(StrEnum):
    LINEAR = "linear"
    LOG = "log"


# A colour by number; each palette has its own value for it.
Tone = IntEnum("Tone", ["QUIET", "BLUE", "ORANGE", "GREEN", "PINK", "OCHRE", "INK"], start=0)
SERIES = (Tone.BLUE, Tone.ORANGE, Tone.GREEN, Tone.PINK, Tone.OCHRE, Tone.INK)


# Dashes, shapes and fills differ, so that no chart depends on colour alone.
class Dash(StrEnum):
    SOLID = "solid"
    DASHED = "dashed"
    DOTTED = "dotted"
    DASH_DOT = "dash-dot"


class Shape(StrEnum):
    CIRCLE = "circle"
    SQUARE = "square"
    UP = "up"
    DOWN = "down"
    DIAMOND = "diamond"
    CROSS = "cross"
    RING = "ring"


class Fill(StrEnum):
    FULL = "full"
    LIGHT = "light"
    STRIPED = "striped"
    DOTS = "dots"


@dataclass(frozen=True)
class Axis:
    label: str = ""  # quantity and unit
    scale: Scale = Scale.LINEAR
    low: float | None = None  # limits; None to fit the marks
    high: float | None = None
    categories: tuple[str, ...] = ()  # names instead of numbers, the first at 0
    headings: frozenset[int] = frozenset()  # categories that are titles of the group below them, without marks
    beside: tuple[str, ...] = ()  # a word at the far end of each category's row
    whole: bool = False  # the values are counts, so ticks are integers
    plain: bool = False  # no ticks, as on a map


# The layers; one with an empty name is not in the legend. Notes are tooltips, one for each mark, or none at all.
@dataclass(frozen=True)
class Line:
    """y over x; a y that is not finite is a gap."""

    name: str
    x: Numbers
    y: Numbers
    tone: Tone = Tone.BLUE
    dash: Dash = Dash.SOLID


@dataclass(frozen=True)
class Band:
    """The area between `low` and `high` over x."""

    name: str
    x: Numbers
    low: Numbers
    high: Numbers
    tone: Tone = Tone.BLUE


@dataclass(frozen=True)
class Points:
    name: str
    x: Numbers
    y: Numbers
    tone: Tone = Tone.BLUE
    shape: Shape = Shape.CIRCLE
    sizes: Numbers = (3.0,)  # radius on a chart 480 wide; one number for all, or one a point
    faint: bool = False
    notes: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()  # the sample that each stands for, for scripts of a page


@dataclass(frozen=True)
class Bars:
    """Bars from `start` to `end` along one axis and from `base` to `base + value` along the other."""

    name: str
    start: Numbers
    end: Numbers
    value: Numbers
    base: Numbers
    tone: Tone = Tone.BLUE
    fill: Fill = Fill.FULL
    across: bool = False  # horizontal, along a y axis of categories
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Intervals:
    """Horizontal intervals from `low` to `high`, with a mark at `middle`, at heights `y`."""

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
    """A vertical line across the whole chart at `at` of the x axis, with its meaning."""

    at: float
    label: str
    tone: Tone = Tone.INK
    dash: Dash = Dash.DASHED


@dataclass(frozen=True)
class TextLabels:
    """Text in the chart, centred on (x, y)."""

    x: Numbers
    y: Numbers
    words: tuple[str, ...]


Layer = Line | Band | Points | Bars | Intervals | Rule | TextLabels


@dataclass(frozen=True)
class Chart:
    title: str
    description: str  # one sentence for readers who cannot see it
    x: Axis
    y: Axis
    layers: tuple[Layer, ...]  # back to front
    note: str = ""  # a line or two under the title
    square: bool = False  # about as high as wide, as a map is

    def __post_init__(self) -> None:
        for layer in self.layers:
            _check(layer)
        if not values_along(self, 0) or not values_along(self, 1):
            raise DataError(f"expected a finite value to draw in {self.title!r}, got none", code="empty-chart")

    @property
    def legend(self) -> tuple[Layer, ...]:
        """Named layers, in order. A single one needs no legend, unless it is of intervals: their shape is a verdict."""
        named = tuple(layer for layer in self.layers if getattr(layer, "name", ""))
        return named if len(named) > 1 or any(isinstance(layer, Intervals) for layer in named) else ()


def numbers(values: Iterable[float]) -> Numbers:
    """Any numbers as plain floats."""
    return tuple(float(value) for value in values)


def values_along(chart: Chart, direction: int) -> list[float]:
    """Every finite number of the marks along x (0) or y (1); on a log axis only those above 0."""
    above = 0.0 if (chart.x, chart.y)[direction].scale is Scale.LOG else -math.inf
    return [v for layer in chart.layers for v in extent(layer)[direction] if math.isfinite(v) and v > above]


def extent(layer: Layer) -> tuple[Numbers, Numbers]:
    """The numbers of a layer along x and along y."""
    match layer:
        case Line() | Points() | TextLabels():
            return layer.x, layer.y
        case Band():
            return layer.x, layer.low + layer.high
        case Bars():
            ends = layer.base + tuple(b + v for b, v in zip(layer.base, layer.value, strict=True))
            return (ends, layer.start + layer.end) if layer.across else (layer.start + layer.end, ends)
        case Intervals():
            return layer.low + layer.middle + layer.high, layer.y
        case Rule():
            return (layer.at,), ()


def _check(layer: Layer) -> None:
    """Reject columns of different lengths and positions that are not finite; only a line's y may have gaps."""
    kind, columns = type(layer).__name__, {name: each for name, each in vars(layer).items() if isinstance(each, tuple)}
    optional = {name: columns.pop(name) for name in ("notes", "rows", "words", "sizes") if name in columns}
    lengths = {len(column) for column in columns.values()}
    allowed = {0, *lengths}
    if len(lengths) > 1 or any(len(each) not in allowed | {name == "sizes"} for name, each in optional.items()):
        counts = ", ".join(f"{len(column)} of {name}" for name, column in (columns | optional).items())
        message = f"expected columns of one length in a {kind}, got {counts}: pass nan for a gap"
        raise DataError(message, code="length-mismatch")
    if isinstance(layer, Line):
        del columns["y"]
    if not all(
        math.isfinite(value) for column in (*columns.values(), (getattr(layer, "at", 0.0),)) for value in column
    ):
        raise DataError(f"expected finite positions for a {kind}: leave such marks out", code="not-finite")
