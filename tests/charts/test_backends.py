"""matplotlib and plotly draw every chart, with the same numbers; without them a sentence says what to install."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from synthsieve.charts.backends import Backend, draw
from synthsieve.charts.html_table import html_table
from synthsieve.errors import ConfigError
from tests.charts.made_up import CASES, HOSTILE

pytestmark = pytest.mark.filterwarnings("ignore:Glyph:UserWarning")


@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
def test_matplotlib_draws_it_without_pyplot(chart):
    figure = draw(chart)
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
def test_plotly_draws_it(chart):
    figure = draw(chart, "plotly")
    assert figure.to_json(validate=True)
    assert len(figure.data) == len(chart.layers)


def test_no_figure_is_kept_alive():
    before = set(sys.modules)
    draw(CASES["lines"])
    assert "matplotlib.pyplot" not in set(sys.modules) - before


def test_both_carry_the_numbers_of_the_lines():
    chart = CASES["lines"]
    drawn, traces = draw(chart).axes[0].lines, draw(chart, Backend.PLOTLY).data
    for layer, line, trace in zip(chart.layers, drawn, traces, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), layer.x)
        np.testing.assert_array_equal(line.get_ydata(), layer.y)
        np.testing.assert_array_equal(np.array(trace.x, dtype=float), layer.x)
        np.testing.assert_array_equal(np.array(trace.y, dtype=float), layer.y)


def test_both_carry_the_numbers_of_the_bars():
    chart = CASES["histogram"]
    drawn, figure = draw(chart).axes[0], draw(chart, "plotly")
    for number, layer in enumerate(chart.layers[:2]):
        bars, trace = drawn.containers[number], figure.data[number]
        assert [bar.get_height() for bar in bars] == list(layer.value) == list(trace.y)
        assert [bar.get_y() for bar in bars] == list(layer.base) == list(trace.base)
        np.testing.assert_allclose([bar.get_x() for bar in bars], layer.start)
        np.testing.assert_allclose(np.subtract(trace.x, np.divide(trace.width, 2)), layer.start)
        np.testing.assert_allclose(np.add(trace.x, np.divide(trace.width, 2)), layer.end)
    assert drawn.get_xlim() == (1e-6, 1.0)
    assert tuple(figure.layout.xaxis.range) == (-6.0, 0.0)  # plotly's log axes have their ends in powers of ten
    assert figure.data[2].x == (1e-3, 1e-3)


def test_both_carry_the_intervals():
    chart = CASES["forest"]
    trace = draw(chart, "plotly").data[1]
    assert (trace.x, trace.y) == ((2.0, 3.0), (1.0, 2.0))
    assert (trace.error_x.array, trace.error_x.arrayminus) == ((1.0, 1.0), (1.0, 1.0))
    ends = [list(bar.get_segments()[0][:, 0]) for bar in draw(chart).axes[0].containers[0].lines[2]]
    assert ends[0] == [1.0, 3.0]
    assert draw(chart).axes[0].get_ylim() == (8.5, -0.5)  # the first category is on top
    assert tuple(draw(chart, "plotly").layout.yaxis.range) == (8.5, -0.5)


def test_names_are_no_markup():
    words = draw(CASES["forest"], "plotly").layout.yaxis.ticktext
    assert words[1] == '&lt;b&gt;&amp;"'
    assert words[2].startswith("&lt;/svg&gt;&lt;script&gt;")
    assert "$" not in words[5].replace("&#36;", "")
    labels = [label.get_text() for label in draw(CASES["forest"]).axes[0].get_yticklabels()]
    assert labels[1] == HOSTILE[0]
    assert labels[5].startswith(r"\$x^2\$")


def test_another_backend_is_refused():
    with pytest.raises(ConfigError, match="expected backend 'matplotlib' or 'plotly', got 'bokeh'"):
        draw(CASES["lines"], "bokeh")


@pytest.mark.parametrize("backend", Backend)
def test_a_package_that_is_not_there_is_named(backend, monkeypatch):
    monkeypatch.delitem(sys.modules, f"synthsieve.charts.by_{backend}", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == backend]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(ConfigError, match=rf"figures need the package {backend}: pip install 'synthsieve\[plots\]'"):
        draw(CASES["lines"], backend)


def test_cells_of_a_table_are_text():
    text = html_table(("arm", "n"), [(HOSTILE[1], "1")], note="<i>note</i>")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "&lt;i&gt;note" in text
