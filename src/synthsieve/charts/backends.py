"""Charts for people in Python: drawn by matplotlib or by plotly, whichever they have."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Any

from synthsieve.charts.chart import Chart
from synthsieve.errors import ConfigError


class Backend(StrEnum):
    """Who draws."""

    MATPLOTLIB = "matplotlib"
    PLOTLY = "plotly"


def draw(chart: Chart, backend: str = Backend.MATPLOTLIB) -> Any:
    """A `matplotlib.figure.Figure` or a `plotly.graph_objects.Figure`; both show themselves in a notebook."""
    try:
        chosen = Backend(backend)
    except ValueError:
        known = " or ".join(repr(str(each)) for each in Backend)
        raise ConfigError(f"expected backend {known}, got {backend!r}: give one of those") from None
    try:
        return import_module(f"synthsieve.charts.by_{chosen}").figure(chart)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != chosen:
            raise
        raise ConfigError(f"figures need the package {chosen}: pip install 'synthsieve[plots]'") from None
