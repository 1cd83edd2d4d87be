"""A chart as one <svg>: inline on a page, with the page's style sheet, or as a separate file.

The canvas is 480 wide and text is 14 high, so that it is readable 344 pixels wide, as on a phone. There are no scripts,
and every label is escaped.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from synthsieve.io.files import write_text
from synthsieve.results.charts.chart import Chart, Labels, Rule, Scale
from synthsieve.results.charts.scale import Limits, Projection, limits, tick_labels
from synthsieve.results.charts.style import TEXT, TITLE, file_style
from synthsieve.results.charts.svg_marks import Frame, escaped, in_legend, marks, patterns, short, titled
from synthsieve.results.charts.text import readable, shortened, width, wrapped

WIDTH = 480
ROW, HEIGHT, LOWEST = 24, 240, 120  # of a category; of a plot of numbers; minimum
LINE = 19  # line height
EDGE = 8  # margin


def render(chart: Chart, *, standalone: bool = False) -> str:
    """The chart as text: `<svg ...>...</svg>`.

    Args:
        standalone: with its own colours, light or dark as the viewer prefers; else the page needs
            `style.page_style()`, once.
    """
    drawing = _Drawing(chart, hashlib.sha256(repr((chart.title, chart.note)).encode()).hexdigest()[:8])
    drawing.head()
    drawing.legend()
    drawing.plot()
    height = short(drawing.bottom + EDGE)
    names = f'role="img" aria-labelledby="chart-{drawing.id}-t chart-{drawing.id}-d"'
    size = f' width="{WIDTH}" height="{height}"' if standalone else ""
    style = f'<style>{file_style()}</style><rect class="page" width="{WIDTH}" height="{height}"/>' if standalone else ""
    text = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {height}"{size} {names}>',
            f'<title id="chart-{drawing.id}-t">{escaped(chart.title)}</title>',
            f'<desc id="chart-{drawing.id}-d">{escaped(chart.description)}</desc>{style}',
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
        hover = titled(full) if full and " ".join(full.split()) != text else ""
        self.parts.append(f'<text{shown} x="{short(x)}" y="{short(y)}" direction="ltr">{_isolated(text)}{hover}</text>')

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
        nowhere = Projection(0, 1, Scale.LINEAR, 0, 1)
        frame = Frame(nowhere, nowhere, self.id)
        x = float(EDGE)
        if self.chart.legend:
            self.parts.append(f"<defs>{patterns(self.chart.layers, self.id)}</defs>")
            self.bottom += LINE + 3
        for layer in self.chart.legend:
            name = shortened(getattr(layer, "name", ""), TEXT, WIDTH - 2 * EDGE - 28)
            wide = 28 + width(name, TEXT) + 14
            if x > EDGE and x + wide - 14 > WIDTH - EDGE:
                x, self.bottom = float(EDGE), self.bottom + LINE + 1
            self.parts.append(in_legend(layer, x, self.bottom - 9, frame))
            self.text(name, x + 28, self.bottom - 4, full=getattr(layer, "name", ""))
            x += wide

    def plot(self) -> None:
        """Axes and marks, with the labels of rules above."""
        chart = self.chart
        if not chart.legend and (made := patterns(chart.layers, self.id)):
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
        floor = top + self._height()
        x, y = limits(chart, 0), limits(chart, 1)
        down = bool(chart.y.categories)  # the first category is on top
        frame = Frame(
            x.projection(chart.x.scale, self.left, self.right),
            y.projection(chart.y.scale, *((top, floor) if down else (floor, top))),
            self.id,
        )
        self._y_axis(frame, y)
        self._x_axis(frame, x, top, floor)
        self.parts += [marks(layer, frame) for layer in chart.layers]
        self._rules(rules, frame, above, floor)
        for layer in chart.layers:
            if isinstance(layer, Labels):
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

    def _height(self) -> float:
        if self.chart.y.categories:
            return max(LOWEST / 2, ROW * len(self.chart.y.categories))
        return self.right - self.left if self.chart.square else HEIGHT

    def _y_axis(self, frame: Frame, axis_limits: Limits) -> None:
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

    def _x_axis(self, frame: Frame, axis_limits: Limits, top: float, floor: float) -> None:
        axis = self.chart.x
        words = list(axis.categories) or tick_labels(axis_limits.ticks, axis.scale)
        self.bottom = floor
        if axis_limits.ticks:
            self.parts.append(f'<path class="axis" d="M{short(self.left)} {short(floor)}H{short(self.right)}"/>')
            self.bottom += LINE + 4
        last = -1.0
        for value, word in zip(axis_limits.ticks, words, strict=True):
            x, half = frame.x.at(value), width(word, TEXT) / 2
            if self.chart.y.categories:
                self._grid(x, top, x, floor)
            self.parts.append(f'<path class="axis" d="M{short(x)} {short(floor)}v4"/>')
            x = min(max(x, half), WIDTH - half)
            if x - half > last:
                self.text(word, x, floor + LINE, "mid")
                last = x + half + 4
        for line in wrapped(axis.label, TEXT, WIDTH - 2 * EDGE, lines=2):
            self.bottom += LINE
            wide = width(line, TEXT)
            middle = min((self.left + self.right) / 2, WIDTH - EDGE - wide / 2)
            self.text(line, max(middle, EDGE + wide / 2), self.bottom - 3, "mid muted", axis.label)

    def _rules(self, rules: list[tuple[Rule, list[str]]], frame: Frame, y: float, floor: float) -> None:
        """Each with its label above the plot, on the side of the line that has space."""
        for rule, lines in rules:
            look = f'class="line s{rule.tone:d} {rule.dash}" stroke-width="1.5"'
            x, wide = frame.x.at(rule.at), max((width(line, TEXT) for line in lines), default=0.0)
            right, left = x + 5 + wide <= WIDTH - EDGE, x - 5 - wide >= EDGE
            first = y + LINE * len(lines) + (-LINE + 4 if right or left else 1)
            self.parts.append(f'<path {look} d="M{short(x)} {short(first)}V{short(floor)}"/>')
            for line in lines:
                y += LINE
                place = x + 5 if right else x - 5 if left else max(x, wide + EDGE)
                self.text(line, place, y - 3, "" if right else "end", rule.label)

    def _labels(self, layer: Labels, frame: Frame) -> None:
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
        self.parts.append(f'<path class="grid" d="M{short(x)} {short(y)}L{short(to_x)} {short(to_y)}"/>')


def _isolated(text: str) -> str:
    """A label with its own writing direction: a name in Hebrew does not reorder the text around it."""
    return escaped(text) if text.isascii() else f"\u2068{escaped(text)}\u2069"
