"""What a chart rejects, its ticks and its positions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthsieve.errors import DataError
from synthsieve.results.charts.chart import Axis, Bars, Chart, Line, Points, Rule, Scale, TextLabels
from synthsieve.results.charts.scale import Projection, limits, log_ticks, tick_labels, ticks
from synthsieve.results.charts.style import ANYWHERE, DARK, LIGHT, shortened, width, wrapped
from tests.errors import raises
from tests.results.charts.made_up import CASES, lines

AXIS = Axis("x")


@pytest.mark.parametrize(
    ("layers", "code"),
    [
        ((), "empty-chart"),
        ((Line("a", (1.0,), (math.nan,)),), "empty-chart"),
        ((Line("a", (1.0, math.inf), (1.0, 2.0)),), "not-finite"),
        ((Line("a", (1.0, 2.0), (1.0,)),), "length-mismatch"),
        ((Points("a", (1.0, 2.0), (1.0, 2.0), sizes=(1.0, 2.0, 3.0)),), "length-mismatch"),
        ((Points("a", (1.0,), (1.0,), notes=("b", "c")),), "length-mismatch"),
        ((TextLabels((1.0,), (1.0,), ("a", "b")),), "length-mismatch"),
        ((Bars("a", (1.0,), (2.0,), (math.nan,), (0.0,)),), "not-finite"),
        ((Rule(math.nan, "here"), *lines().layers), "not-finite"),
    ],
)
def test_invalid_layers_are_rejected(layers, code):
    with raises(DataError, code):
        lines(layers=layers)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (82.1, 97.4, [80, 85, 90, 95, 100]),
        (0, 2000, [0, 500, 1000, 1500, 2000]),
        (-0.03, 0.02, [-0.03, -0.02, -0.01, 0, 0.01, 0.02]),
        (5, 5, [2, 3, 4, 5, 6, 7, 8]),
        (0, 0, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_ticks(low, high, expected):
    assert ticks(low, high) == expected


@given(st.floats(1e-12, 1e12), st.floats(1.001, 1e15))
def test_log_ticks(low, ratio):
    found = log_ticks(low, low * ratio)
    assert found == sorted(found)
    assert all(low * (1 - 1e-6) <= value <= low * ratio * (1 + 1e-6) for value in found)
    assert len(found) <= 8
    assert len(tick_labels(found, Scale.LOG)) == len(set(tick_labels(found, Scale.LOG)))


def test_tick_labels():
    assert tick_labels([0, 0.5, 1000, 25000]) == ["0", "0.5", "1,000", "25,000"]
    assert tick_labels([1e-6, 1e-3, 1], Scale.LOG) == ["10⁻⁶", "10⁻³", "1"]
    assert tick_labels([2e-6, 5e-6], Scale.LOG) == ["2·10⁻⁶", "5·10⁻⁶"]
    assert tick_labels([0.01, 0.1, 1], Scale.LOG) == ["0.01", "0.1", "1"]


def test_ticks_of_counts_are_integers():
    for highest in (1.0, 2.0, 3.0, 7.0, 900.0):
        bars = (Bars("a", (0.0,), (1.0,), (highest,), (0.0,)),)
        found = limits(Chart("t", "d", AXIS, Axis("n", low=0.0, whole=True), bars), 1)
        assert all(mark == round(mark) for mark in found.ticks)
        assert found.high >= highest


@pytest.mark.parametrize("scale", Scale)
@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=20, unique=True))
def test_positions_are_monotonic(scale, values):
    values = sorted(values)
    projection = Projection(values[0], values[-1], scale, 10.0, 400.0)
    places = [projection.at(value) for value in values]
    assert places == sorted(places)
    assert places[0] == pytest.approx(10.0)
    assert places[-1] == pytest.approx(400.0)
    assert projection.at(0.0) == 10.0  # beyond an end is at that end


@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
@pytest.mark.parametrize("direction", [0, 1])
def test_ticks_lie_within_the_limits(chart, direction):
    found = limits(chart, direction)
    assert found.low < found.high
    assert all(found.low <= mark <= found.high for mark in found.ticks)


@given(st.text(max_size=200), st.floats(20, 400))
def test_shortened_text_fits(text, space):
    assert width(shortened(text, 14, space), 14) <= max(space, width("…", 14)) + 0.02
    assert all(width(line, 14) <= max(space, width("…", 14)) + 0.02 for line in wrapped(text, 14, space, lines=3))
    assert len(wrapped(text, 14, space, lines=3)) <= 3


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_contrast_with_the_page(palette):
    """3 to 1 for marks and 4.5 to 1 for words, as WCAG 1.4.11 and 1.4.3 require."""
    assert min(contrast(tone, palette.page) for tone in palette.tones) >= 3
    assert contrast(palette.ink, palette.page) >= 4.5
    assert contrast(palette.muted, palette.page) >= 4.5


def test_contrast_on_an_unknown_page():
    tones = [tone for tone in ANYWHERE.tones if tone.startswith("#")]
    for page in (LIGHT.page, DARK.page, "#111111"):
        assert min(contrast(tone, page) for tone in tones) >= 3
