"""matplotlib draws every chart with its numbers; without it, an error names the package."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from synthsieve.errors import ConfigError
from synthsieve.io.printable import html_table
from synthsieve.results.charts.matplotlib_backend import draw
from tests.errors import raises
from tests.results.charts.made_up import CASES, HOSTILE

pytestmark = pytest.mark.filterwarnings("ignore:Glyph:UserWarning")


@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
def test_draws_every_chart(chart):
    figure = draw(chart)
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_does_not_import_pyplot():
    before = set(sys.modules)
    draw(CASES["lines"])
    assert "matplotlib.pyplot" not in set(sys.modules) - before


def test_lines_have_the_numbers_of_the_chart():
    chart = CASES["lines"]
    for layer, line in zip(chart.layers, draw(chart).axes[0].lines, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), layer.x)
        np.testing.assert_array_equal(line.get_ydata(), layer.y)


def test_bars_have_the_numbers_of_the_chart():
    chart = CASES["histogram"]
    axes = draw(chart).axes[0]
    for number, layer in enumerate(chart.layers[:2]):
        bars = axes.containers[number]
        assert [bar.get_height() for bar in bars] == list(layer.value)
        assert [bar.get_y() for bar in bars] == list(layer.base)
        np.testing.assert_allclose([bar.get_x() for bar in bars], layer.start)
    assert axes.get_xlim() == (1e-6, 1.0)


def test_intervals_have_the_numbers_of_the_chart():
    axes = draw(CASES["forest"]).axes[0]
    ends = [list(bar.get_segments()[0][:, 0]) for bar in axes.containers[0].lines[2]]
    assert ends[0] == [1.0, 3.0]
    assert axes.get_ylim() == (8.5, -0.5)  # the first category is on top


def test_names_are_not_markup():
    labels = [label.get_text() for label in draw(CASES["forest"]).axes[0].get_yticklabels()]
    assert labels[1] == HOSTILE[0]
    assert labels[5].startswith(r"\$x^2\$")


def test_missing_matplotlib_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "synthsieve.results.charts.matplotlib_backend")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with raises(ConfigError, "missing-package"):
        import synthsieve.results.charts.matplotlib_backend  # noqa: F401


def test_cells_of_a_table_are_escaped():
    text = html_table(("arm", "n"), [(HOSTILE[1], "1")], note="<i>note</i>")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "&lt;i&gt;note" in text
