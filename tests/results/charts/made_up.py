"""Charts of every kind of layer, with names that people's data may have."""

import math

from synthsieve.results.charts.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    Dash,
    Fill,
    Intervals,
    Line,
    Points,
    Rule,
    Scale,
    Shape,
    TextLabels,
    Tone,
)

HOSTILE = (
    '<b>&"',
    "</svg><script>alert(1)</script>",
    "",
    "שלום",
    "$x^2$ %{y} _",
    "x" * 300,
    "a\tb\x00\x1b\ud800",
    "数据",
)


def lines(**changes):
    layers = (
        Line("a", (0.0, 5.0, 10.0), (0.0, math.nan, 1.0)),
        Line("b", (0.0, 5.0, 10.0), (1.0, 0.5, 0.0), Tone.ORANGE, Dash.DASHED),
        Line("", (2.0,), (0.5,), Tone.QUIET),
    )
    parts = {
        "title": "two lines",
        "description": "They cross.",
        "x": Axis("step"),
        "y": Axis("share"),
        "layers": layers,
    }
    return Chart(**(parts | changes))


def _histogram():
    edges = tuple(10.0**e for e in range(-6, 1))
    below, above = (1.0, 2, 3, 4, 5, 0), (5.0, 4, 3, 2, 1, 7)
    layers = (
        Bars("kept", edges[:-1], edges[1:], below, (0.0,) * 6, Tone.BLUE),
        Bars("lost", edges[:-1], edges[1:], above, below, Tone.ORANGE, Fill.STRIPED),
        Rule(1e-3, "the ceiling"),
    )
    y = Axis("samples", low=0.0, whole=True)
    return Chart("a histogram", "Stacked.", Axis("nats", Scale.LOG, low=1e-6, high=1.0), y, layers, note="Two lines.")


def _forest():
    rows = ("others", *HOSTILE)
    layers = (
        Rule(0.0, HOSTILE[0], dash=Dash.SOLID),
        Intervals("helps", (1.0, 2.0), (2.0, 3.0), (3.0, 4.0), (1.0, 2.0), Tone.GREEN, Shape.UP, HOSTILE[:2]),
        Intervals(HOSTILE[5], (-1.0,), (0.0,), (1.0,), (3.0,), Tone.QUIET, Shape.RING),
        TextLabels((2.0,), (4.0,), (HOSTILE[0],)),
    )
    y = Axis(categories=rows, headings=frozenset({0}), beside=("", *HOSTILE))
    return Chart(HOSTILE[1], HOSTILE[6], Axis(HOSTILE[4]), y, layers, note=HOSTILE[5])


def _yield():
    places = tuple(float(i) for i in range(40))
    start, end = (tuple(p + side for p in places) for side in (-0.4, 0.4))
    none = (0.0,) * 40
    layers = (
        Bars("drawn", start, end, (9.0,) * 40, none, Tone.QUIET, Fill.LIGHT, across=True),
        Bars("kept", start, end, places, none, Tone.BLUE, Fill.DOTS, across=True, notes=("<i>",) * 40),
    )
    return Chart("forty", "Many.", Axis("samples", low=0.0), Axis(categories=tuple(map(str, range(40)))), layers)


def _map():
    layers = (
        Points("faint", (0.0, 1.0, 2.0), (0.0, 1.0, 0.0), Tone.QUIET, faint=True),
        *(Points(shape, (i,), (i % 2,), shape=shape) for i, shape in enumerate(Shape)),
        Points("", (0.5, 1.5), (0.5, 0.5), sizes=(2.0, 6.0), notes=HOSTILE[:2], rows=(7, 9)),
        TextLabels((0.0, 0.0, 2.0), (0.0, 0.01, 1.0), HOSTILE[:3]),
    )
    return Chart("a map", "Points.", Axis(plain=True), Axis(plain=True), layers, square=True)


def _band():
    layers = (
        Band("between", (0.0, 1.0), (1.0, 2.0), (3.0, 4.0)),
        Line("mean", (0.0, 1.0), (2.0, 3.0)),
        Rule(0.5, "level"),
    )
    return Chart("a band", "Wide.", Axis("step"), Axis("log p"), layers)


CASES = {
    "lines": lines(),
    "one point": lines(layers=(Line("a", (3.0,), (0.0,)),)),
    "histogram": _histogram(),
    "forest": _forest(),
    "yield": _yield(),
    "map": _map(),
    "band": _band(),
    "hostile axes": lines(x=Axis(HOSTILE[1]), y=Axis(HOSTILE[5]), title=HOSTILE[5] * 3),
    "log lines": lines(y=Axis("nats", Scale.LOG), layers=(Line("a", (1.0, 2.0), (1e-9, 3e4)),)),
    "narrow log": lines(y=Axis("nats", Scale.LOG), layers=(Line("a", (1.0, 2.0), (0.45, 0.46)),)),
}
