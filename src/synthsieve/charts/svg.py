"""A chart as one <svg>: for a page (inline, coloured by the page's style sheet) or as a file of its own.

The canvas is 480 wide and words are 14 high, so that they stay readable where it is shown 344 pixels wide, as on a
phone. Nothing in it runs. Labels come from people's data: every one is escaped.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from synthsieve.charts.chart import Chart, Rule, Scale, Words
from synthsieve.charts.scale import Placing, Ruled, ruled, written
from synthsieve.charts.svg_marks import Frame, escaped, in_legend, marks, patterns, short, titled
from synthsieve.charts.svg_style import TEXT, TITLE, file_style
from synthsieve.charts.words import readable, shortened, width, wrapped
from synthsieve.files import write_text

WIDTH = 480
ROW, HEIGHT, LOWEST = 24, 240, 120  # of a category; of a plot of numbers; of the smallest plot
LINE = 19  # from one line of words to the next
EDGE = 8  # nothing is drawn nearer to the rim


def render(chart: Chart, *, standalone: bool = False, with_title: bool = True) -> str:
    """The chart as text: `<svg ...>...</svg>`.

    Args:
        standalone: with colours of its own, light or dark as the viewer prefers; else the page needs
            `svg_style.page_style()`, once.
        with_title: whether its title is drawn in it, too; it is always there for those who cannot see.
    """
    drawing = _Drawing(chart, hashlib.sha256(repr((chart.title, chart.note)).encode()).hexdigest()[:8])
    drawing.head(with_title=with_title)
    drawing.legend()
    drawing.plot()
    height = short(drawing.bottom + EDGE)
    names = f'role="img" aria-labelledby="chart-{drawing.own}-t chart-{drawing.own}-d"'
    size = f' width="{WIDTH}" height="{height}"' if standalone else ""
    style = f'<style>{file_style()}</style><rect class="page" width="{WIDTH}" height="{height}"/>' if standalone else ""
    text = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {height}"{size} {names}>',
            f'<title id="chart-{drawing.own}-t">{escaped(chart.title)}</title>',
            f'<desc id="chart-{drawing.own}-d">{escaped(chart.description)}</desc>{style}',
            *drawing.parts,
            "</svg>",
        ]
    )
    return readable(text)


def write(path: Path, chart: Chart) -> None:
    """The chart as a file of its own, atomically."""
    write_text(path, render(chart, standalone=True) + "\n")


class _Drawing:
    """A chart as it grows from the top down: its elements so far, and where they end."""

    def __init__(self, chart: Chart, own: str) -> None:
        self.chart, self.own = chart, own
        self.parts: list[str] = []
        self.bottom = float(EDGE)
        self.left, self.right = self._margins()

    def say(self, text: str, x: float, y: float, look: str = "", full: str = "") -> None:
        """Words at a place; `full` is what they were before they were shortened."""
        shown = f' class="{look}"' if look else ""
        hover = titled(full) if full and " ".join(full.split()) != text else ""
        self.parts.append(f'<text{shown} x="{short(x)}" y="{short(y)}" direction="ltr">{_isolated(text)}{hover}</text>')

    def head(self, *, with_title: bool) -> None:
        """The title and the note below it."""
        if with_title:
            for line in wrapped(self.chart.title, TITLE * 1.12, WIDTH - 2 * EDGE, lines=2):
                self.bottom += LINE + 1
                self.say(line, EDGE, self.bottom - 4, "title", self.chart.title)
        for line in wrapped(self.chart.note, TEXT, WIDTH - 2 * EDGE):
            self.bottom += LINE - 1
            self.say(line, EDGE, self.bottom - 4, "muted", self.chart.note)

    def legend(self) -> None:
        """The named layers, as many beside each other as fit."""
        nowhere = Placing(0, 1, Scale.LINEAR, 0, 1)
        frame = Frame(nowhere, nowhere, self.own)
        x = float(EDGE)
        if self.chart.legend:
            self.parts.append(f"<defs>{patterns(self.chart.layers, self.own)}</defs>")
            self.bottom += LINE + 3
        for layer in self.chart.legend:
            name = shortened(getattr(layer, "name", ""), TEXT, WIDTH - 2 * EDGE - 28)
            wide = 28 + width(name, TEXT) + 14
            if x > EDGE and x + wide - 14 > WIDTH - EDGE:
                x, self.bottom = float(EDGE), self.bottom + LINE + 1
            self.parts.append(in_legend(layer, x, self.bottom - 9, frame))
            self.say(name, x + 28, self.bottom - 4, full=getattr(layer, "name", ""))
            x += wide

    def plot(self) -> None:
        """Axes and marks, with room above for what the rules mean."""
        chart = self.chart
        if not chart.legend and (made := patterns(chart.layers, self.own)):
            self.parts.append(f"<defs>{made}</defs>")
        if chart.y.label:
            self.bottom += LINE + 3
            self.say(shortened(chart.y.label, TEXT, WIDTH - 2 * EDGE), EDGE, self.bottom - 5, "muted", chart.y.label)
        told = [_Told(rule, wrapped(rule.label, TEXT, self.right - self.left, lines=3)) for rule in self._rules()]
        top = self.bottom + sum(LINE * len(each.lines) for each in told) + 6
        floor = top + self._height()
        x, y = ruled(chart, 0), ruled(chart, 1)
        down = bool(chart.y.categories)  # the first category is on top
        frame = Frame(
            x.placed(chart.x.scale, self.left, self.right),
            y.placed(chart.y.scale, *((top, floor) if down else (floor, top))),
            self.own,
        )
        self._y_axis(frame, y)
        self._x_axis(frame, x, top, floor)
        self.parts += [marks(layer, frame) for layer in chart.layers]
        self._draw_rules(told, frame, top, floor)
        for layer in chart.layers:
            if isinstance(layer, Words):
                self._words(layer, frame)

    def _rules(self) -> list[Rule]:
        return [layer for layer in self.chart.layers if isinstance(layer, Rule)]

    def _margins(self) -> tuple[float, float]:
        """Where the plot begins and ends, so that what stands beside it has room."""
        axis = self.chart.y
        left = float(EDGE)
        if axis.categories:
            longest = max(width(name, TEXT) for name in axis.categories)
            left += min(longest, 0.55 * WIDTH) + 8
        elif not axis.plain:
            words = written(ruled(self.chart, 1).marks, axis.scale)
            left += max((width(word, TEXT) for word in words), default=0.0) + 6
        beside = max((width(word, TEXT) for word in axis.beside), default=0.0)
        return left, WIDTH - EDGE - (min(beside, 0.3 * WIDTH) + 12 if beside else 10)

    def _height(self) -> float:
        if self.chart.y.categories:
            return max(LOWEST / 2, ROW * len(self.chart.y.categories))
        return self.right - self.left if self.chart.square else HEIGHT

    def _y_axis(self, frame: Frame, ruled: Ruled) -> None:
        axis = self.chart.y
        if axis.categories:
            room = self.left - EDGE - 8
            for i, name in enumerate(axis.categories):
                y, head = frame.y.at(i), i in axis.headings
                shown = shortened(name, TEXT * (1.06 if head else 1), WIDTH / 2 if head else room)
                if head:
                    self.say(shown, EDGE, y + 5, "head", name)
                else:
                    self.say(shown, self.left - 8, y + 5, "end", name)
                    self._grid(self.left, y, self.right, y)
            for i, word in enumerate(axis.beside):
                room = WIDTH - EDGE - self.right - 12
                self.say(shortened(word, TEXT, room), WIDTH - EDGE, frame.y.at(i) + 5, "end", word)
            return
        for value, word in zip(ruled.marks, written(ruled.marks, axis.scale), strict=True):
            y = frame.y.at(value)
            self._grid(self.left, y, self.right, y)
            self.say(word, self.left - 6, y + 5, "end")

    def _x_axis(self, frame: Frame, ruled: Ruled, top: float, floor: float) -> None:
        axis = self.chart.x
        words = list(axis.categories) or written(ruled.marks, axis.scale)
        self.bottom = floor
        if ruled.marks:
            self.parts.append(f'<path class="axis" d="M{short(self.left)} {short(floor)}H{short(self.right)}"/>')
            self.bottom += LINE + 4
        last = -1.0
        for value, word in zip(ruled.marks, words, strict=True):
            x, half = frame.x.at(value), width(word, TEXT) / 2
            if self.chart.y.categories:
                self._grid(x, top, x, floor)
            self.parts.append(f'<path class="axis" d="M{short(x)} {short(floor)}v4"/>')
            x = min(max(x, half), WIDTH - half)
            if x - half > last:
                self.say(word, x, floor + LINE, "mid")
                last = x + half + 4
        for line in wrapped(axis.label, TEXT, WIDTH - 2 * EDGE, lines=2):
            self.bottom += LINE
            wide = width(line, TEXT)
            middle = min((self.left + self.right) / 2, WIDTH - EDGE - wide / 2)
            self.say(line, max(middle, EDGE + wide / 2), self.bottom - 3, "mid muted", axis.label)

    def _draw_rules(self, told: list[_Told], frame: Frame, top: float, floor: float) -> None:
        """Each with its words above the plot, on the side of the line that has room."""
        y = self.bottom_of_head(told, top)
        for each in told:
            rule = each.rule
            look = f'class="line s{rule.tone:d} {rule.dash}" stroke-width="1.5"'
            if rule.upright:
                x = frame.x.at(rule.at)
                wide = max((width(line, TEXT) for line in each.lines), default=0.0)
                right, left = x + 5 + wide <= WIDTH - EDGE, x - 5 - wide >= EDGE
                first = y + LINE * len(each.lines) + (-LINE + 4 if right or left else 1)
                self.parts.append(f'<path {look} d="M{short(x)} {short(first)}V{short(floor)}"/>')
                for line in each.lines:
                    y += LINE
                    place = x + 5 if right else x - 5 if left else max(x, wide + EDGE)
                    self.say(line, place, y - 3, "" if right else "end", rule.label)
            else:
                at = frame.y.at(rule.at)
                self.parts.append(f'<path {look} d="M{short(self.left)} {short(at)}H{short(self.right)}"/>')
                for line in each.lines:
                    y += LINE
                    self.say(line, self.right, y - 3, "end", rule.label)

    def bottom_of_head(self, told: list[_Told], top: float) -> float:
        """Where the words of the rules begin."""
        return top - 6 - sum(LINE * len(each.lines) for each in told)

    def _words(self, layer: Words, frame: Frame) -> None:
        """Words over the marks; where two would meet, the later gives way upwards or downwards."""
        taken: list[tuple[float, float, float]] = []
        for x, y, word in zip(layer.x, layer.y, layer.words, strict=True):
            shown = shortened(word, TEXT, WIDTH / 3)
            half = width(shown, TEXT) / 2
            middle = min(max(frame.x.at(x), EDGE + half), WIDTH - EDGE - half)
            rows = [frame.y.at(y) + shift for shift in (0, -16, 16, -32, 32)]
            free = (row for row in rows if all(abs(row - v) >= 15 or abs(middle - u) >= half + h for u, v, h in taken))
            row = next(free, rows[0])
            taken.append((middle, row, half))
            self.say(shown, middle, row + 5, "mid over", word)

    def _grid(self, x: float, y: float, to_x: float, to_y: float) -> None:
        self.parts.append(f'<path class="grid" d="M{short(x)} {short(y)}L{short(to_x)} {short(to_y)}"/>')


@dataclass(frozen=True)
class _Told:
    """A rule, and what it means in lines that fit."""

    rule: Rule
    lines: list[str]


def _isolated(text: str) -> str:
    """A label that keeps its own direction of writing: a name in Hebrew turns nothing around it."""
    return escaped(text) if text.isascii() else f"\u2068{escaped(text)}\u2069"
