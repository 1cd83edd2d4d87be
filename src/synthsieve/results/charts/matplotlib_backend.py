"""A chart as a matplotlib Figure, made without pyplot: no window, no global list of figures."""

from __future__ import annotations

import io
import textwrap
from typing import Any

import numpy as np

from synthsieve.errors import ConfigError
from synthsieve.results.charts.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    Dash,
    Fill,
    Intervals,
    Layer,
    Line,
    Points,
    Rule,
    Shape,
    TextLabels,
)
from synthsieve.results.charts.scale import Limits, limits, tick_labels
from synthsieve.results.charts.style import LIGHT, readable

try:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ModuleNotFoundError:
    raise ConfigError(
        "figures need the package matplotlib: pip install 'synthsieve[plots]'", code="missing-package"
    ) from None

WIDTH, HEIGHT, ROW = 6.4, 3.6, 0.26  # inches: a figure, and a category
MARKERS = dict(zip(Shape, "os^vDxo", strict=True))
STYLES = {Dash.SOLID: "-", Dash.DASHED: "--", Dash.DOTTED: ":", Dash.DASH_DOT: "-."}
HATCHES = {Fill.FULL: "", Fill.LIGHT: "", Fill.STRIPED: "////", Fill.DOTS: "...."}


class ShownFigure(Figure):
    """A Figure that a notebook displays without pyplot."""

    def _repr_png_(self) -> bytes:
        png = io.BytesIO()
        self.savefig(png, format="png", dpi=144)
        return png.getvalue()


def draw(chart: Chart) -> ShownFigure:
    """The chart on a light background."""
    rows = len(chart.y.categories)
    height = WIDTH if chart.square else max(2.0, ROW * rows) if rows else HEIGHT
    drawn = ShownFigure(figsize=(WIDTH, height + 0.9), layout="constrained", facecolor=LIGHT.page)
    FigureCanvasAgg(drawn)
    axes = drawn.add_subplot()
    drawn.suptitle(_plain(chart.title, 62), x=0.01, ha="left", fontsize=12, fontweight="bold", color=LIGHT.ink)
    if chart.note:
        axes.set_title(_plain(chart.note, 60 if rows else 84), loc="left", fontsize=9, color=LIGHT.muted)
    handles = {_plain(name, 46): handle for layer in chart.layers for name, handle in _layer(axes, layer)}
    _format_axes(axes, chart)
    if handles and (chart.legend or any(isinstance(layer, Rule) for layer in chart.layers)):
        look = {"fontsize": 9, "frameon": False, "ncols": 1 + (len(handles) > 4)}
        drawn.legend([*handles.values()], [*handles], loc="outside lower left", **look)
    return drawn


def _layer(axes: Axes, layer: Layer) -> list[tuple[str, Any]]:
    """Draw a layer; returns its legend entry, if it has a name."""
    match layer:
        case Line():
            dot = "o" if len(layer.x) == 1 else None
            made: Any = axes.plot(layer.x, layer.y, STYLES[layer.dash], color=LIGHT.tone(layer.tone), marker=dot)[0]
        case Band():
            made = axes.fill_between(layer.x, layer.low, layer.high, color=LIGHT.tone(layer.tone), alpha=0.22, lw=0)
        case Points():
            colour = LIGHT.tone(layer.tone)
            edge = {"facecolors": "none", "edgecolors": colour} if layer.shape is Shape.RING else {"color": colour}
            look: dict[str, Any] = {"marker": MARKERS[layer.shape], "alpha": 0.45 if layer.faint else 0.9, **edge}
            made = axes.scatter(layer.x, layer.y, s=[(2 * r) ** 2 for r in layer.sizes], linewidths=0.5, **look)
        case Bars():
            made = _bars(axes, layer)
        case Intervals():
            made = _intervals(axes, layer)
        case Rule():
            made = axes.axvline(layer.at, color=LIGHT.tone(layer.tone), linestyle=STYLES[layer.dash], lw=1.4)
            return [(layer.label, made)] if layer.label else []
        case TextLabels():
            for x, y, word in zip(layer.x, layer.y, layer.words, strict=True):
                axes.text(
                    x, y, _plain(word, 24), ha="center", va="center", fontweight="bold", color=LIGHT.ink, clip_on=True
                )
            return []
    return [(layer.name, made)] if layer.name else []


def _bars(axes: Axes, layer: Bars) -> Any:
    colour = LIGHT.tone(layer.tone)
    size = np.subtract(layer.end, layer.start)
    look: dict[str, Any] = {
        "facecolor": (colour, {Fill.FULL: 1.0, Fill.LIGHT: 0.25}.get(layer.fill, 0.0)),
        "edgecolor": colour,
        "hatch": HATCHES[layer.fill],
        "linewidth": 0.6,
        "align": "edge",
    }
    if layer.across:
        return axes.barh(layer.start, layer.value, height=size, left=layer.base, **look)
    return axes.bar(layer.start, layer.value, width=size, bottom=layer.base, **look)


def _intervals(axes: Axes, layer: Intervals) -> Any:
    colour = LIGHT.tone(layer.tone)
    ends = np.subtract([layer.middle, layer.high], [layer.low, layer.middle]).clip(min=0)
    inside = LIGHT.page if layer.shape is Shape.RING else colour
    return axes.errorbar(
        layer.middle, layer.y, xerr=ends, fmt=MARKERS[layer.shape], color=colour, mfc=inside, capsize=3, ms=6, lw=1.6
    )


def _format_axes(axes: Axes, chart: Chart) -> None:
    """The same limits and ticks as in the SVG."""
    x, y = limits(chart, 0), limits(chart, 1)
    axes.set_xscale(str(chart.x.scale))
    axes.set_yscale(str(chart.y.scale))
    axes.set_xlim(x.low, x.high)
    axes.set_ylim(*((y.high, y.low) if chart.y.categories else (y.low, y.high)))
    axes.set_xticks(x.ticks, _labels(chart.x, x), minor=False)
    axes.set_yticks(y.ticks, _labels(chart.y, y), minor=False)
    axes.minorticks_off()
    axes.set_xlabel(_plain(chart.x.label, 70), color=LIGHT.muted)
    axes.set_ylabel(_plain(chart.y.label, 45), color=LIGHT.muted)
    for side in ("top", "right", *(("left", "bottom") if chart.x.plain else ())):
        axes.spines[side].set_visible(False)
    if not chart.x.plain:
        axes.grid(color=LIGHT.grid, lw=0.8)
    axes.set_axisbelow(True)
    for place, label in enumerate(axes.get_yticklabels()):
        label.set_fontweight("bold" if place in chart.y.headings else "normal")
    if any(chart.y.beside):
        right = axes.secondary_yaxis("right")
        right.set_yticks(y.ticks, [_plain(word, 20) for word in chart.y.beside])
        right.spines["right"].set_visible(False)
        right.tick_params(length=0)


def _labels(axis: Axis, found: Limits) -> list[str]:
    return [_plain(name, 36) for name in axis.categories] or tick_labels(found.ticks, axis.scale)


def _plain(text: str, width: int = 60) -> str:
    """Wrapped text, with dollar signs (formulas) and leading underscores (left out of legends) escaped."""
    wrapped = "\n".join(textwrap.wrap(" ".join(readable(text).split()), width)[:4])
    return ("\u200b" if wrapped.startswith("_") else "") + wrapped.replace("$", r"\$")
