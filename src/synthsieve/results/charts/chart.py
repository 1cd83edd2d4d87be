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


class Tone(IntEnum):
    """A colour by number; each palette has its own value for it."""

    QUIET = 0
    BLUE = 1
    ORANGE = 2
    GREEN = 3
    PINK = 4
    OCHRE = 5
    INK = 6


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
    """One axis of a chart.

    Attributes:
        label: quantity and unit; may be empty.
        low, high: limits; None to fit the marks.
        categories: names instead of numbers, the first at 0.
        headings: categories that are titles of the group below them, without marks.
        beside: a word at the far end of each category's row; empty for none.
        whole: the values are counts, so ticks are integers.
        plain: no ticks, as on a map.
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
    """y over x; a y that is not finite is a gap. A layer with an empty name is not in the legend."""

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
    """Single points.

    Attributes:
        sizes: radius of each on a chart 480 wide; one number for all, or one a point.
        faint: drawn in the background.
        notes: tooltip of each; empty for none.
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
    """Bars from `start` to `end` along one axis and from `base` to `base + value` along the other.

    Attributes:
        across: horizontal, along a y axis of categories; else vertical.
        notes: tooltip of each; empty for its numbers.
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
class Labels:
    """Text in the chart, centred on (x, y)."""

    x: Numbers
    y: Numbers
    words: tuple[str, ...]


Layer = Line | Band | Points | Bars | Intervals | Rule | Labels


@dataclass(frozen=True)
class Chart:
    """One figure.

    Attributes:
        description: one sentence for readers who cannot see it.
        layers: what is drawn, back to front.
        note: a line or two under the title; may be empty.
        square: about as high as wide, as a map is.
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
        if not values_along(self, 0) or not values_along(self, 1):
            raise DataError(
                f"expected at least one finite value to draw in {self.title!r}, got none", code="empty-chart"
            )

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
        case Line() | Points() | Labels():
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
    positions = {name: each for name, each in columns.items() if name not in ("notes", "rows", "words", "sizes")}
    lengths = {len(column) for column in positions.values()}
    optional = {
        len(each) for name, each in columns.items() if name not in positions and (name != "sizes" or len(each) > 1)
    }
    if len(lengths) > 1 or not optional <= {0, *lengths}:
        counts = ", ".join(f"{len(column)} of {name}" for name, column in columns.items())
        raise DataError(
            f"expected columns of one length in a {kind}, got {counts}: pass nan for a gap", code="length-mismatch"
        )
    if isinstance(layer, Line):
        del positions["y"]
    finite = [value for column in positions.values() for value in column]
    if not all(math.isfinite(value) for value in (*finite, getattr(layer, "at", 0.0))):
        raise DataError(f"expected finite positions for a {kind}: leave such marks out", code="not-finite")
