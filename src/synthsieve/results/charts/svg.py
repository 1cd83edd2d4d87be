"""A chart as one <svg>: inline on a page, with the page's style sheet, or as a separate file.

The canvas is 480 wide and text is 14 high, so that it is readable 344 pixels wide, as on a phone. There are no scripts,
and every label is escaped.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from synthsieve.io.files import write_text
from synthsieve.io.printable import without_control
from synthsieve.results.charts.chart import (
    Band,
    Bars,
    Chart,
    Fill,
    Intervals,
    Layer,
    Line,
    Points,
    Rule,
    Shape,
    TextLabels,
    Tone,
)
from synthsieve.results.charts.scale import Limits, Projection, limits, tick_labels
from synthsieve.results.charts.style import TEXT, TITLE, file_style, readable, shortened, width, wrapped

POINTED_AT = 60  # lines of at most this many points have a tooltip for each
# Corners of each shape, in radii from its centre.
CORNERS = {
    Shape.SQUARE: ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    Shape.UP: ((0, -1.2), (1.15, 0.8), (-1.15, 0.8)),
    Shape.DOWN: ((0, 1.2), (1.15, -0.8), (-1.15, -0.8)),
    Shape.DIAMOND: ((0, -1.3), (1.2, 0), (0, 1.3), (-1.2, 0)),
}
WIDTH = 480
ROW, HEIGHT, LOWEST = 24, 240, 120  # of a category; of a plot of numbers; minimum
LINE = 19  # line height
EDGE = 8  # margin


def render(chart: Chart, *, standalone: bool = False) -> str:
    """The chart as text: `<svg ...>...</svg>`.

    `standalone`: with its own colours, light or dark as the viewer prefers; else the page needs `style.page_style()`.
    """
    drawing = _Drawing(chart, hashlib.sha256(repr((chart.title, chart.note)).encode()).hexdigest()[:8])
    drawing.head()
    drawing.legend()
    drawing.plot()
    height = _short(drawing.bottom + EDGE)
    names = f'role="img" aria-labelledby="chart-{drawing.id}-t chart-{drawing.id}-d"'
    size = f' width="{WIDTH}" height="{height}"' if standalone else ""
    style = f'<style>{file_style()}</style><rect class="page" width="{WIDTH}" height="{height}"/>' if standalone else ""
    text = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {height}"{size} {names}>',
            f'<title id="chart-{drawing.id}-t">{_escaped(chart.title)}</title>',
            f'<desc id="chart-{drawing.id}-d">{_escaped(chart.description)}</desc>{style}',
            *drawing.parts,
            "</svg>",
        ]
    )
    return readable(text)


def write(path: Path, chart: Chart) -> None:
    """Write the chart as an SVG file, atomically."""
    write_text(path, render(chart, standalone=True) + "\n")


class _Drawing:
    """A chart built from the top down: its elements so far, and where they end."""

    def __init__(self, chart: Chart, id_: str) -> None:
        self.chart, self.id = chart, id_
        self.parts: list[str] = []
        self.bottom = float(EDGE)
        self.left, self.right = self._margins()

    def text(self, text: str, x: float, y: float, look: str = "", full: str = "") -> None:
        """Text at a position; `full` is the text before it was shortened, for the tooltip."""
        shown = f' class="{look}"' if look else ""
        hover = _titled(full) if full and " ".join(full.split()) != text else ""
        # With its own writing direction: a name in Hebrew does not reorder the text around it.
        inside = _escaped(text) if text.isascii() else f"\u2068{_escaped(text)}\u2069"
        self.parts.append(f'<text{shown} x="{_short(x)}" y="{_short(y)}" direction="ltr">{inside}{hover}</text>')

    def head(self) -> None:
        """The title and the note below it."""
        for line in wrapped(self.chart.title, TITLE * 1.12, WIDTH - 2 * EDGE, lines=2):
            self.bottom += LINE + 1
            self.text(line, EDGE, self.bottom - 4, "title", self.chart.title)
        for line in wrapped(self.chart.note, TEXT, WIDTH - 2 * EDGE):
            self.bottom += LINE - 1
            self.text(line, EDGE, self.bottom - 4, "muted", self.chart.note)

    def legend(self) -> None:
        """The named layers, as many side by side as fit."""
        x = float(EDGE)
        if self.chart.legend:
            self.parts.append(f"<defs>{_patterns(self.chart.layers, self.id)}</defs>")
            self.bottom += LINE + 3
        for layer in self.chart.legend:
            name = shortened(getattr(layer, "name", ""), TEXT, WIDTH - 2 * EDGE - 28)
            wide = 28 + width(name, TEXT) + 14
            if x > EDGE and x + wide - 14 > WIDTH - EDGE:
                x, self.bottom = float(EDGE), self.bottom + LINE + 1
            self.parts.append(_in_legend(layer, x, self.bottom - 9, self.id))
            self.text(name, x + 28, self.bottom - 4, full=getattr(layer, "name", ""))
            x += wide

    def plot(self) -> None:
        """Axes and marks, with the labels of rules above."""
        chart = self.chart
        if not chart.legend and (made := _patterns(chart.layers, self.id)):
            self.parts.append(f"<defs>{made}</defs>")
        if chart.y.label:
            self.bottom += LINE + 3
            self.text(shortened(chart.y.label, TEXT, WIDTH - 2 * EDGE), EDGE, self.bottom - 5, "muted", chart.y.label)
        rules = [
            (layer, wrapped(layer.label, TEXT, self.right - self.left, lines=3))
            for layer in chart.layers
            if isinstance(layer, Rule)
        ]
        above = self.bottom
        top = above + sum(LINE * len(lines) for _, lines in rules) + 6
        square = self.right - self.left if chart.square else HEIGHT
        floor = top + (max(LOWEST / 2, ROW * len(chart.y.categories)) if chart.y.categories else square)
        x, y = limits(chart, 0), limits(chart, 1)
        down = bool(chart.y.categories)  # the first category is on top
        frame = _Frame(
            x.projection(chart.x.scale, self.left, self.right),
            y.projection(chart.y.scale, *((top, floor) if down else (floor, top))),
            self.id,
        )
        self._y_axis(frame, y)
        self._x_axis(frame, x, top, floor)
        self.parts += [_marks(layer, frame) for layer in chart.layers]
        self._rules(rules, frame, above, floor)
        for layer in chart.layers:
            if isinstance(layer, TextLabels):
                self._labels(layer, frame)

    def _margins(self) -> tuple[float, float]:
        """Left and right end of the plot, with space for the text beside it."""
        axis = self.chart.y
        left = float(EDGE)
        if axis.categories:
            longest = max(width(name, TEXT) for name in axis.categories)
            left += min(longest, 0.55 * WIDTH) + 8
        elif not axis.plain:
            words = tick_labels(limits(self.chart, 1).ticks, axis.scale)
            left += max((width(word, TEXT) for word in words), default=0.0) + 6
        beside = max((width(word, TEXT) for word in axis.beside), default=0.0)
        return left, WIDTH - EDGE - (min(beside, 0.3 * WIDTH) + 12 if beside else 10)

    def _y_axis(self, frame: _Frame, axis_limits: Limits) -> None:
        axis = self.chart.y
        if axis.categories:
            space = self.left - EDGE - 8
            for i, name in enumerate(axis.categories):
                y, head = frame.y.at(i), i in axis.headings
                shown = shortened(name, TEXT * (1.06 if head else 1), WIDTH / 2 if head else space)
                if head:
                    self.text(shown, EDGE, y + 5, "head", name)
                else:
                    self.text(shown, self.left - 8, y + 5, "end", name)
                    self._grid(self.left, y, self.right, y)
            for i, word in enumerate(axis.beside):
                space = WIDTH - EDGE - self.right - 12
                self.text(shortened(word, TEXT, space), WIDTH - EDGE, frame.y.at(i) + 5, "end", word)
            return
        for value, word in zip(axis_limits.ticks, tick_labels(axis_limits.ticks, axis.scale), strict=True):
            y = frame.y.at(value)
            self._grid(self.left, y, self.right, y)
            self.text(word, self.left - 6, y + 5, "end")

    def _x_axis(self, frame: _Frame, axis_limits: Limits, top: float, floor: float) -> None:
        axis = self.chart.x
        words = list(axis.categories) or tick_labels(axis_limits.ticks, axis.scale)
        self.bottom = floor
        if axis_limits.ticks:
            self.parts.append(f'<path class="axis" d="M{_short(self.left)} {_short(floor)}H{_short(self.right)}"/>')
            self.bottom += LINE + 4
        last = -1.0
        for value, word in zip(axis_limits.ticks, words, strict=True):
            x, half = frame.x.at(value), width(word, TEXT) / 2
            if self.chart.y.categories:
                self._grid(x, top, x, floor)
            self.parts.append(f'<path class="axis" d="M{_short(x)} {_short(floor)}v4"/>')
            x = min(max(x, half), WIDTH - half)
            if x - half > last:
                self.text(word, x, floor + LINE, "mid")
                last = x + half + 4
        for line in wrapped(axis.label, TEXT, WIDTH - 2 * EDGE, lines=2):
            self.bottom += LINE
            wide = width(line, TEXT)
            middle = min((self.left + self.right) / 2, WIDTH - EDGE - wide / 2)
            self.text(line, max(middle, EDGE + wide / 2), self.bottom - 3, "mid muted", axis.label)

    def _rules(self, rules: list[tuple[Rule, list[str]]], frame: _Frame, y: float, floor: float) -> None:
        """Each with its label above the plot, on the side of the line that has space."""
        for rule, lines in rules:
            look = f'class="line s{rule.tone:d} {rule.dash}" stroke-width="1.5"'
            x, wide = frame.x.at(rule.at), max((width(line, TEXT) for line in lines), default=0.0)
            right, left = x + 5 + wide <= WIDTH - EDGE, x - 5 - wide >= EDGE
            first = y + LINE * len(lines) + (-LINE + 4 if right or left else 1)
            self.parts.append(f'<path {look} d="M{_short(x)} {_short(first)}V{_short(floor)}"/>')
            for line in lines:
                y += LINE
                place = x + 5 if right else x - 5 if left else max(x, wide + EDGE)
                self.text(line, place, y - 3, "" if right else "end", rule.label)

    def _labels(self, layer: TextLabels, frame: _Frame) -> None:
        """Text over the marks; where two would overlap, the later one is moved up or down."""
        taken: list[tuple[float, float, float]] = []
        for x, y, word in zip(layer.x, layer.y, layer.words, strict=True):
            shown = shortened(word, TEXT, WIDTH / 3)
            half = width(shown, TEXT) / 2
            middle = min(max(frame.x.at(x), EDGE + half), WIDTH - EDGE - half)
            rows = [frame.y.at(y) + shift for shift in (0, -16, 16, -32, 32)]
            free = (row for row in rows if all(abs(row - v) >= 15 or abs(middle - u) >= half + h for u, v, h in taken))
            row = next(free, rows[0])
            taken.append((middle, row, half))
            self.text(shown, middle, row + 5, "mid over", word)

    def _grid(self, x: float, y: float, to_x: float, to_y: float) -> None:
        self.parts.append(f'<path class="grid" d="M{_short(x)} {_short(y)}L{_short(to_x)} {_short(to_y)}"/>')


# The marks: the elements of each layer, and its legend entry.
@dataclass(frozen=True)
class _Frame:
    """The projections of both axes, and the id of the chart."""

    x: Projection
    y: Projection
    id: str


def _short(value: float) -> str:
    """A position to a tenth: `12.5`, `12`."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _escaped(text: str) -> str:
    """Text for an element, without control characters."""
    return escape(without_control(text))


def _titled(text: str) -> str:
    """The tooltip of a mark."""
    return f"<title>{_escaped(' '.join(text.split()))}</title>" if text else ""


def _marks(layer: Layer, frame: _Frame) -> str:
    """The elements of a layer; rules and labels are drawn by `_Drawing`."""
    match layer:
        case Line():
            return _line(layer, frame)
        case Band():
            ends = [*zip(layer.x, layer.high, strict=True), *[*zip(layer.x, layer.low, strict=True)][::-1]]
            points = " ".join(f"{_short(frame.x.at(x))},{_short(frame.y.at(y))}" for x, y in ends)
            return f'<polygon class="band f{layer.tone:d}" points="{points}"/>'
        case Points():
            return _points(layer, frame)
        case Bars():
            return _bars(layer, frame)
        case Intervals():
            return _intervals(layer, frame)
        case _:
            return ""


def _in_legend(layer: Layer, x: float, y: float, id_: str) -> str:
    """A legend entry 22 wide, centred on (x + 11, y)."""
    line = f'd="M{_short(x)} {_short(y)}h22"/>'
    match layer:
        case Line():
            return f'<path class="line s{layer.tone:d} {layer.dash}" {line}'
        case Points():
            return _group(layer.tone, layer.shape, False, f'<path d="{_outline(layer.shape, x + 11, y, 4.5)}"/>')
        case Intervals():
            mark = _group(layer.tone, layer.shape, False, f'<path d="{_outline(layer.shape, x + 11, y, 5)}"/>')
            return f'<path class="line s{layer.tone:d}" {line}{mark}'
        case Band():
            return f'<rect class="band f{layer.tone:d}" x="{_short(x)}" y="{_short(y - 6)}" width="22" height="12"/>'
        case Bars():
            place = f'x="{_short(x + 3)}" y="{_short(y - 6)}" width="16" height="12"'
            return f"<g {_filled(layer, id_)}><rect {place}/></g>"
        case _:
            return ""


def _outline(shape: Shape, x: float, y: float, r: float) -> str:
    """A path around (x, y), about as large as a circle of radius r."""
    if shape in CORNERS:
        return "M" + "L".join(f"{_short(x + a * r)} {_short(y + b * r)}" for a, b in CORNERS[shape]) + "z"
    r_, d = _short(r), _short(2 * r)
    if shape is Shape.CROSS:
        return f"M{_short(x - r)} {_short(y - r)}l{d} {d}m0-{d}l-{d} {d}"
    return f"M{_short(x - r)} {_short(y)}a{r_} {r_} 0 1 0 {d} 0a{r_} {r_} 0 1 0-{d} 0z"


def _patterns(layers: Iterable[Layer], id_: str) -> str:
    """The patterns of striped and dotted bars."""
    patterned = (layer for layer in layers if isinstance(layer, Bars) and layer.fill in (Fill.STRIPED, Fill.DOTS))
    out = []
    for fill, tone in dict.fromkeys((layer.fill, layer.tone) for layer in patterned):
        size = f'id="chart-{id_}-{fill}-{tone:d}" width="5" height="5" patternUnits="userSpaceOnUse"'
        if fill is Fill.STRIPED:
            inside = f'<path class="s{tone:d}" stroke-width="4" d="M0 0V5"/>'
            out.append(f'<pattern {size} patternTransform="rotate(45)">{inside}</pattern>')
        else:
            out.append(f'<pattern {size}><circle class="f{tone:d}" cx="2.5" cy="2.5" r="1.7"/></pattern>')
    return "".join(out)


def _filled(layer: Bars, id_: str) -> str:
    """The fill attributes of bars."""
    tone = f"{layer.tone:d}"
    if layer.fill in (Fill.STRIPED, Fill.DOTS):
        return f'class="s{tone}" fill="url(#chart-{id_}-{layer.fill}-{tone})" stroke-width=".8"'
    light = ' fill-opacity=".25"' if layer.fill is Fill.LIGHT else ""
    return f'class="f{tone} s{tone}"{light} stroke-width=".8"'


def _line(layer: Line, frame: _Frame) -> str:
    look = f'class="line s{layer.tone:d} {layer.dash}"'
    places = [(x, y, frame.x.at(x), frame.y.at(y)) for x, y in zip(layer.x, layer.y, strict=True) if math.isfinite(y)]
    points = " ".join(f"{_short(a)},{_short(b)}" for _, _, a, b in places)
    out = [f'<polyline {look} points="{points}"/>']
    if len(places) == 1:
        out.append(f'<path class="f{layer.tone:d}" d="{_outline(Shape.CIRCLE, *places[0][2:], 3)}"/>')
    if len(places) <= POINTED_AT and layer.name:
        for x, y, a, b in places:
            tooltip = _titled(f"{layer.name}: {y:.4g} at {_number(x)}")
            out.append(f'<circle class="hit mark" cx="{_short(a)}" cy="{_short(b)}" r="7">{tooltip}</circle>')
    return "".join(out)


def _points(layer: Points, frame: _Frame) -> str:
    """One path for all, unless each has a tooltip or a row."""
    sizes = layer.sizes if len(layer.sizes) > 1 else layer.sizes * len(layer.x)
    drawn = [
        _outline(layer.shape, frame.x.at(x), frame.y.at(y), size)
        for x, y, size in zip(layer.x, layer.y, sizes, strict=True)
    ]
    if not layer.notes and not layer.rows:
        return _group(layer.tone, layer.shape, layer.faint, f'<path d="{"".join(drawn)}"/>')
    notes = layer.notes or ("",) * len(drawn)
    rows = [f' data-row="{row}"' for row in layer.rows] or [""] * len(drawn)
    inside = (
        f'<path class="mark"{row} d="{path}">{_titled(note)}</path>'
        for path, row, note in zip(drawn, rows, notes, strict=True)
    )
    return _group(layer.tone, layer.shape, layer.faint, "".join(inside))


def _group(tone: Tone, shape: Shape, faint: bool, inside: str) -> str:
    looks = {
        Shape.CROSS: f's{tone:d}" fill="none" stroke-width="1.8',
        Shape.RING: f's{tone:d} hollow" stroke-width="1.8',
    }
    return f'<g class="{"faint " if faint else ""}{looks.get(shape, f"f{tone:d} edge")}">{inside}</g>'


def _bars(layer: Bars, frame: _Frame) -> str:
    out = []
    for i, (start, end, value, base) in enumerate(zip(layer.start, layer.end, layer.value, layer.base, strict=True)):
        if not value:
            continue
        along, up = (frame.y, frame.x) if layer.across else (frame.x, frame.y)
        a, b = sorted((along.at(start), along.at(end)))
        low, high = sorted((up.at(base), up.at(base + value)))
        x, y, wide, high = (low, a, high - low, b - a) if layer.across else (a, low, b - a, high - low)
        note = layer.notes[i] if layer.notes else f"{layer.name}: {_number(value)}, from {start:.3g} to {end:.3g}"
        place = f'x="{_short(x)}" y="{_short(y)}" width="{_short(wide)}" height="{_short(high)}"'
        out.append(f'<rect class="mark" {place}>{_titled(note)}</rect>')
    return f"<g {_filled(layer, frame.id)}>{''.join(out)}</g>"


def _intervals(layer: Intervals, frame: _Frame) -> str:
    out = []
    for i, (low, middle, high, at) in enumerate(zip(layer.low, layer.middle, layer.high, layer.y, strict=True)):
        a, m, b, y = frame.x.at(low), frame.x.at(middle), frame.x.at(high), frame.y.at(at)
        caps = "".join(f"M{_short(end)} {_short(y - 4)}v8" for end in (a, b))
        ends = f'<path class="line s{layer.tone:d}" d="M{_short(a)} {_short(y)}H{_short(b)}{caps}"/>'
        mark = _group(layer.tone, layer.shape, False, f'<path d="{_outline(layer.shape, m, y, 5)}"/>')
        out.append(f'<g class="mark">{_titled(layer.notes[i] if layer.notes else "")}{ends}{mark}</g>')
    return "".join(out)


def _number(value: float) -> str:
    return tick_labels([float(f"{value:.4g}")])[0]
