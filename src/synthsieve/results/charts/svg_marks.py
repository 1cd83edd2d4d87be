"""The marks of an SVG chart: the elements of each layer, and its legend entry."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from xml.sax.saxutils import escape

from synthsieve.io.printable import without_control
from synthsieve.results.charts.chart import Band, Bars, Fill, Intervals, Layer, Line, Points, Shape, Tone
from synthsieve.results.charts.scale import Projection, tick_labels

POINTED_AT = 60  # lines of at most this many points have a tooltip for each


@dataclass(frozen=True)
class Frame:
    """The projections of both axes, and the id of the chart."""

    x: Projection
    y: Projection
    id: str


def short(value: float) -> str:
    """A position to a tenth: `12.5`, `12`."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def escaped(text: str) -> str:
    """Text for an element, without control characters."""
    return escape(without_control(text))


def titled(text: str) -> str:
    """The tooltip of a mark."""
    return f"<title>{escaped(' '.join(text.split()))}</title>" if text else ""


def marks(layer: Layer, frame: Frame) -> str:
    """The elements of a layer; rules and labels are drawn by `svg.render`."""
    match layer:
        case Line():
            return _line(layer, frame)
        case Band():
            return _band(layer, frame)
        case Points():
            return _points(layer, frame)
        case Bars():
            return _bars(layer, frame)
        case Intervals():
            return _intervals(layer, frame)
        case _:
            return ""


def in_legend(layer: Layer, x: float, y: float, frame: Frame) -> str:
    """A legend entry 22 wide, centred on (x + 11, y)."""
    match layer:
        case Line():
            return f'<path class="line s{layer.tone:d} {layer.dash}" d="M{short(x)} {short(y)}h22"/>'
        case Points():
            return _group(layer.tone, layer.shape, False, f'<path d="{outline(layer.shape, x + 11, y, 4.5)}"/>')
        case Intervals():
            mark = _group(layer.tone, layer.shape, False, f'<path d="{outline(layer.shape, x + 11, y, 5)}"/>')
            return f'<path class="line s{layer.tone:d}" d="M{short(x)} {short(y)}h22"/>{mark}'
        case Band():
            return f'<rect class="band f{layer.tone:d}" x="{short(x)}" y="{short(y - 6)}" width="22" height="12"/>'
        case Bars():
            place = f'x="{short(x + 3)}" y="{short(y - 6)}" width="16" height="12"'
            return f"<g {_filled(layer, frame)}><rect {place}/></g>"
        case _:
            return ""


# Corners of each shape, in radii from its centre; the cross is two strokes.
_CORNERS = {
    Shape.SQUARE: ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    Shape.UP: ((0, -1.2), (1.15, 0.8), (-1.15, 0.8)),
    Shape.DOWN: ((0, 1.2), (1.15, -0.8), (-1.15, -0.8)),
    Shape.DIAMOND: ((0, -1.3), (1.2, 0), (0, 1.3), (-1.2, 0)),
}


def outline(shape: Shape, x: float, y: float, r: float) -> str:
    """A path around (x, y), about as large as a circle of radius r."""
    if shape in _CORNERS:
        corners = [(x + a * r, y + b * r) for a, b in _CORNERS[shape]]
        return "M" + "L".join(f"{short(a)} {short(b)}" for a, b in corners) + "z"
    if shape is Shape.CROSS:
        d = short(2 * r)
        return f"M{short(x - r)} {short(y - r)}l{d} {d}m0-{d}l-{d} {d}"
    r_, d = short(r), short(2 * r)
    return f"M{short(x - r)} {short(y)}a{r_} {r_} 0 1 0 {d} 0a{r_} {r_} 0 1 0-{d} 0z"


def patterns(layers: Iterable[Layer], id_: str) -> str:
    """The patterns of striped and dotted bars."""
    found = dict.fromkeys(
        (layer.fill, layer.tone)
        for layer in layers
        if isinstance(layer, Bars) and layer.fill in (Fill.STRIPED, Fill.DOTS)
    )
    return "".join(_pattern(fill, tone, id_) for fill, tone in found)


def _pattern(fill: Fill, tone: Tone, id_: str) -> str:
    size = f'id="{_pattern_name(fill, tone, id_)}" width="5" height="5" patternUnits="userSpaceOnUse"'
    if fill is Fill.STRIPED:
        inside = f'<path class="s{tone:d}" stroke-width="4" d="M0 0V5"/>'
        return f'<pattern {size} patternTransform="rotate(45)">{inside}</pattern>'
    return f'<pattern {size}><circle class="f{tone:d}" cx="2.5" cy="2.5" r="1.7"/></pattern>'


def _pattern_name(fill: Fill, tone: Tone, id_: str) -> str:
    return f"chart-{id_}-{fill}-{tone:d}"


def _filled(layer: Bars, frame: Frame) -> str:
    """The fill attributes of bars."""
    match layer.fill:
        case Fill.FULL:
            return f'class="f{layer.tone:d} s{layer.tone:d}" stroke-width=".8"'
        case Fill.LIGHT:
            return f'class="f{layer.tone:d} s{layer.tone:d}" fill-opacity=".25" stroke-width=".8"'
        case _:
            name = _pattern_name(layer.fill, layer.tone, frame.id)
            return f'class="s{layer.tone:d}" fill="url(#{name})" stroke-width=".8"'


def _line(layer: Line, frame: Frame) -> str:
    look = f'class="line s{layer.tone:d} {layer.dash}"'
    places = [(x, y, frame.x.at(x), frame.y.at(y)) for x, y in zip(layer.x, layer.y, strict=True) if math.isfinite(y)]
    points = " ".join(f"{short(a)},{short(b)}" for _, _, a, b in places)
    out = [f'<polyline {look} points="{points}"/>']
    if len(places) == 1:
        out.append(f'<path class="f{layer.tone:d}" d="{outline(Shape.CIRCLE, *places[0][2:], 3)}"/>')
    if len(places) <= POINTED_AT and layer.name:
        for x, y, a, b in places:
            tooltip = titled(f"{layer.name}: {y:.4g} at {_plain(x)}")
            out.append(f'<circle class="hit mark" cx="{short(a)}" cy="{short(b)}" r="7">{tooltip}</circle>')
    return "".join(out)


def _band(layer: Band, frame: Frame) -> str:
    there = [(frame.x.at(x), frame.y.at(y)) for x, y in zip(layer.x, layer.high, strict=True)]
    back = [(frame.x.at(x), frame.y.at(y)) for x, y in zip(layer.x, layer.low, strict=True)][::-1]
    points = " ".join(f"{short(a)},{short(b)}" for a, b in there + back)
    return f'<polygon class="band f{layer.tone:d}" points="{points}"/>'


def _points(layer: Points, frame: Frame) -> str:
    """One path for all, unless each has a tooltip or a row."""
    places = [
        (frame.x.at(x), frame.y.at(y), layer.size(i)) for i, (x, y) in enumerate(zip(layer.x, layer.y, strict=True))
    ]
    drawn = [outline(layer.shape, *place) for place in places]
    if not layer.notes and not layer.rows:
        inside = f'<path d="{"".join(drawn)}"/>'
    else:
        notes = layer.notes or ("",) * len(drawn)
        rows = [f' data-row="{row}"' for row in layer.rows] or [""] * len(drawn)
        inside = "".join(
            f'<path class="mark"{row} d="{path}">{titled(note)}</path>'
            for path, row, note in zip(drawn, rows, notes, strict=True)
        )
    return _group(layer.tone, layer.shape, layer.faint, inside)


def _group(tone: Tone, shape: Shape, faint: bool, inside: str) -> str:
    lines = shape in (Shape.CROSS, Shape.RING)
    look = f's{tone:d}" fill="none" stroke-width="1.8' if lines else f"f{tone:d} edge"
    if shape is Shape.RING:
        look = f's{tone:d} hollow" stroke-width="1.8'
    return f'<g class="{"faint " if faint else ""}{look}">{inside}</g>'


def _bars(layer: Bars, frame: Frame) -> str:
    out = []
    for i, (start, end, value, base) in enumerate(zip(layer.start, layer.end, layer.value, layer.base, strict=True)):
        if not value:
            continue
        along, up = (frame.y, frame.x) if layer.across else (frame.x, frame.y)
        a, b = sorted((along.at(start), along.at(end)))
        low, high = sorted((up.at(base), up.at(base + value)))
        x, y, width, height = (low, a, high - low, b - a) if layer.across else (a, low, b - a, high - low)
        note = layer.notes[i] if layer.notes else f"{layer.name}: {_plain(value)}, from {start:.3g} to {end:.3g}"
        place = f'x="{short(x)}" y="{short(y)}" width="{short(width)}" height="{short(height)}"'
        out.append(f'<rect class="mark" {place}>{titled(note)}</rect>')
    return f"<g {_filled(layer, frame)}>{''.join(out)}</g>"


def _intervals(layer: Intervals, frame: Frame) -> str:
    out = []
    for i, (low, middle, high, at) in enumerate(zip(layer.low, layer.middle, layer.high, layer.y, strict=True)):
        a, m, b, y = frame.x.at(low), frame.x.at(middle), frame.x.at(high), frame.y.at(at)
        caps = "".join(f"M{short(end)} {short(y - 4)}v8" for end in (a, b))
        ends = f'<path class="line s{layer.tone:d}" d="M{short(a)} {short(y)}H{short(b)}{caps}"/>'
        mark = _group(layer.tone, layer.shape, False, f'<path d="{outline(layer.shape, m, y, 5)}"/>')
        out.append(f'<g class="mark">{titled(layer.notes[i] if layer.notes else "")}{ends}{mark}</g>')
    return "".join(out)


def _plain(value: float) -> str:
    return tick_labels([float(f"{value:.4g}")])[0]
