"""A chart as a plotly Figure: the same marks and numbers, to point at and to zoom into."""

from __future__ import annotations

import math
import textwrap
from html import escape
from typing import Any

import plotly.graph_objects as go

from synthsieve.charts.chart import (
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
    Scale,
    Shape,
    Tone,
    Words,
)
from synthsieve.charts.palette import LIGHT
from synthsieve.charts.scale import Ruled, ruled, written
from synthsieve.charts.words import readable

WIDTH, HEIGHT, ROW = 720, 360, 26  # pixels: of a figure, and of a category
DASHES = {Dash.SOLID: "solid", Dash.DASHED: "dash", Dash.DOTTED: "dot", Dash.DASH_DOT: "dashdot"}
SYMBOLS = {
    Shape.CIRCLE: "circle",
    Shape.SQUARE: "square",
    Shape.UP: "triangle-up",
    Shape.DOWN: "triangle-down",
    Shape.DIAMOND: "diamond",
    Shape.CROSS: "x-thin-open",
    Shape.RING: "circle-open",
}
PATTERNS = {Fill.FULL: "", Fill.LIGHT: "", Fill.STRIPED: "/", Fill.DOTS: "."}


def figure(chart: Chart) -> go.Figure:
    """The chart, on a light page; its width follows the page's."""
    x, y = ruled(chart, 0), ruled(chart, 1)
    traces = [trace for layer in chart.layers for trace in _traces(layer, x, y)]
    rows = len(chart.y.categories)
    height = WIDTH if chart.square else max(140, ROW * rows) if rows else HEIGHT
    title = f"<b>{_plain(chart.title, 70)}</b>"
    note = f"<br><span style='font-size:12px'>{_plain(chart.note, 100)}</span>" if chart.note else ""
    drawn = go.Figure(traces)
    drawn.update_layout(
        template="plotly_white",
        title={"text": title + note, "x": 0.01, "xanchor": "left", "font": {"size": 16, "color": LIGHT.ink}},
        height=height + 210,
        barmode="overlay",
        font={"color": LIGHT.ink},
        legend={"orientation": "h", "yanchor": "top", "y": -60 / height, "x": 0},
        showlegend=bool(chart.legend or any(isinstance(layer, Rule) for layer in chart.layers)),
        margin={"t": 110, "b": 100, "r": 80 if any(chart.y.beside) else 20},
        xaxis=_axis(chart.x, x),
        yaxis=_axis(chart.y, y),
        meta={"description": readable(chart.description)},
    )
    for place, word in enumerate(chart.y.beside):
        drawn.add_annotation(
            x=1, xref="paper", xanchor="left", y=place, yref="y", text=_plain(word, 20), showarrow=False, xshift=6
        )
    return drawn


def _traces(layer: Layer, x: Ruled, y: Ruled) -> list[Any]:
    line: dict[str, Any]
    match layer:
        case Line():
            line = {"color": LIGHT.tone(layer.tone), "dash": DASHES[layer.dash]}
            mode = "markers" if len(layer.x) == 1 else "lines"
            return [_scatter(layer.name, layer.x, layer.y, mode=mode, line=line, opacity=0.45 if layer.faint else 1.0)]
        case Band():
            line = {"width": 0, "color": LIGHT.tone(layer.tone)}
            around = {"fill": "toself", "fillcolor": _see_through(layer.tone, 0.22), "hoverinfo": "skip"}
            places = (*layer.x, *layer.x[::-1]), (*layer.high, *layer.low[::-1])
            return [_scatter(layer.name, *places, mode="lines", line=line, **around)]
        case Points():
            return [_points(layer)]
        case Bars():
            return [_bars(layer)]
        case Intervals():
            return [_intervals(layer)]
        case Rule():
            line = {"color": LIGHT.tone(layer.tone), "dash": DASHES[layer.dash], "width": 1.5}
            ends = ((layer.at, layer.at), (y.low, y.high)) if layer.upright else ((x.low, x.high), (layer.at, layer.at))
            return [_scatter(layer.label, *ends, mode="lines", line=line, hoverinfo="skip")]
        case Words():
            words = [f"<b>{_plain(word, 24)}</b>" for word in layer.words]
            return [_scatter("", layer.x, layer.y, mode="text", text=words, hoverinfo="skip")]


def _scatter(name: str, x: Any, y: Any, **look: Any) -> Any:
    return go.Scatter(x=x, y=y, name=_plain(name, 60), showlegend=bool(name), connectgaps=True, **look)


def _points(layer: Points) -> Any:
    sizes: Any = [2 * size for size in layer.sizes] if len(layer.sizes) > 1 else 2 * layer.sizes[0]
    edge = {"width": 1.8 if layer.shape is Shape.CROSS else 0.5, "color": LIGHT.page}
    if layer.shape in (Shape.CROSS, Shape.RING):
        edge["color"] = LIGHT.tone(layer.tone)
    marker = {"color": LIGHT.tone(layer.tone), "symbol": SYMBOLS[layer.shape], "size": sizes, "line": edge}
    return _scatter(
        layer.name,
        layer.x,
        layer.y,
        mode="markers",
        marker=marker,
        opacity=0.45 if layer.faint else 1.0,
        customdata=list(layer.rows) or None,
        **_told(layer.notes),
    )


def _bars(layer: Bars) -> Any:
    middle = [(a + b) / 2 for a, b in zip(layer.start, layer.end, strict=True)]
    size = [b - a for a, b in zip(layer.start, layer.end, strict=True)]
    colour = LIGHT.tone(layer.tone)
    marker: dict[str, Any] = {"color": colour, "line": {"color": colour, "width": 0.8}}
    if layer.fill is Fill.LIGHT:
        marker["color"] = _see_through(layer.tone, 0.25)
    elif PATTERNS[layer.fill]:
        marker["pattern"] = {"shape": PATTERNS[layer.fill], "fgcolor": colour, "bgcolor": LIGHT.page, "size": 5}
    along = {"y": middle, "x": layer.value} if layer.across else {"x": middle, "y": layer.value}
    return go.Bar(
        name=_plain(layer.name, 60),
        width=size,
        base=layer.base,
        orientation="h" if layer.across else "v",
        marker=marker,
        showlegend=bool(layer.name),
        **along,
        **_told(layer.notes),
    )


def _intervals(layer: Intervals) -> Any:
    columns = list(zip(layer.low, layer.middle, layer.high, strict=True))
    reach = {
        "type": "data",
        "symmetric": False,
        "array": [high - middle for _, middle, high in columns],
        "arrayminus": [middle - low for low, middle, _ in columns],
    }
    marker = {"color": LIGHT.tone(layer.tone), "symbol": SYMBOLS[layer.shape], "size": 9}
    return _scatter(
        layer.name, layer.middle, layer.y, mode="markers", marker=marker, error_x=reach, **_told(layer.notes)
    )


def _told(notes: tuple[str, ...]) -> dict[str, Any]:
    return {"hovertext": [_plain(note, 60) for note in notes], "hoverinfo": "text"} if notes else {}


def _axis(axis: Axis, ruled: Ruled) -> dict[str, Any]:
    ends = [math.log10(end) for end in (ruled.low, ruled.high)] if axis.scale is Scale.LOG else [ruled.low, ruled.high]
    words = [_plain(name, 40) for name in axis.categories] or written(ruled.marks, axis.scale)
    for place in axis.headings:
        words[place] = f"<b>{words[place]}</b>"
    return {
        "type": str(axis.scale),
        "range": ends[::-1] if axis.categories else ends,
        "title": {"text": _plain(axis.label, 80)},
        "tickvals": list(ruled.marks),
        "ticktext": words,
        "visible": not axis.plain,
        "zeroline": False,
        "automargin": True,
    }


def _see_through(tone: Tone, share: float) -> str:
    colour = LIGHT.tone(tone)
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"


def _plain(text: str, width: int) -> str:
    """Words as they are: plotly would read tags, entities and formulas in them; wrapped."""
    lines = textwrap.wrap(" ".join(readable(text).split()), width)[:4]
    return "<br>".join(escape(line, quote=False).replace("$", "&#36;").replace("%{", "%&#123;") for line in lines)
