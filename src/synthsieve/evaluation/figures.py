"""Pictures about a finished model: samples of each class, samples by entropy, and curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from synthsieve.errors import DataError
from synthsieve.export.images import write_image_grid
from synthsieve.files import write_text

# Lines on a light and on a dark page; each stands out from its background by 3 to 1 or more, and neighbours differ in
# lightness as well as in hue. From the seventh line on the colours come again, dashed otherwise.
LIGHT_PAGE, DARK_PAGE = "#ffffff", "#10141a"
LIGHT_LINES = ("#0072b2", "#d55e00", "#00735a", "#b0478f", "#7a6200", "#404040")
DARK_LINES = ("#56b4e9", "#ff8c42", "#2ecc9b", "#f0a3d0", "#f0e442", "#c8c8c8")
_DASHES = ("", "7 4", "2 3", "10 3 2 3")
_LEFT, _TOP, _BOTTOM, _LEGEND_LINE = 70, 44, 52, 20


def write_samples_figure(path: Path, x: np.ndarray, y: np.ndarray, columns: int = 10) -> None:
    """A PNG with a row a class, in the order of the classes: its first `columns` samples, unsorted.

    Args:
        x: uint8 (n, channels, height, width), one or three channels.
        y: (n,), the samples' classes.
    """
    _check_images(x, y, "y")
    _check_count("columns", columns)
    write_image_grid(path, [x[y == c][:columns] for c in np.unique(y)])


def write_entropy_figure(path: Path, x: np.ndarray, entropy: np.ndarray, columns: int = 10, rows: int = 5) -> None:
    """A PNG of samples by entropy, lowest first, left to right and top to bottom.

    Where there are more than fit, ranks are evenly spaced: round(i (n - 1) / (columns * rows - 1)), from the lowest
    entropy of all to the highest.

    Args:
        x: uint8 (n, channels, height, width), the samples of one class.
        entropy: (n,), nats.
    """
    _check_images(x, entropy, "entropy")
    _check_count("columns", columns)
    _check_count("rows", rows)
    if np.isnan(entropy).any():
        raise DataError("expected a number as every sample's entropy, got nan: check the logits they come from")
    shown = np.argsort(entropy, kind="stable")[spaced_ranks(len(x), columns * rows)]
    write_image_grid(path, [x[shown[start : start + columns]] for start in range(0, len(shown), columns)])


def spaced_ranks(n: int, count: int) -> np.ndarray:
    """At most `count` of the ranks 0 to n - 1, evenly spaced, both ends among them: int64, increasing."""
    return np.round(np.linspace(0, n - 1, min(n, count))).astype(np.int64)


def write_curve_figure(
    path: Path,
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    width: int = 640,
    height: int = 400,
) -> None:
    """An SVG with a line for each name, its values over x; values that are not finite are left out.

    The page's own setting, light or dark, chooses the colours. Lines differ in dashes as well as in colour.

    Args:
        x: at least one finite number.
        lines: for each name as many values as x has.
        width, height: of the plot in pixels; the legend goes below it, a row for every two lines.
    """
    _check_lines(x, lines)
    write_text(path, _svg(x, lines, title, x_label, y_label, width, height))


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) from at most `low` to at least `high`."""
    if low == high:
        reach = abs(low) / 2 or 1.0
        low, high = low - reach, high + reach
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def _svg(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    title: str,
    x_label: str,
    y_label: str,
    width: int,
    height: int,
) -> str:
    finite = [value for values in lines.values() for value in values if math.isfinite(value)]
    x_ticks, y_ticks = ticks(min(x), max(x)), ticks(min(finite), max(finite))
    right, bottom = width - 20, height - _BOTTOM

    def across(value: float) -> float:
        return _LEFT + (value - x_ticks[0]) / (x_ticks[-1] - x_ticks[0]) * (right - _LEFT)

    def down(value: float) -> float:
        return bottom - (value - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]) * (bottom - _TOP)

    whole = height + _LEGEND_LINE * math.ceil(len(lines) / 2) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}" height="{whole}" '
        'class="curves" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_style()}</style>",
        f'<rect class="page" width="{width}" height="{whole}"/>',
        f'<text class="title" x="{_LEFT}" y="26">{escape(title)}</text>',
    ]
    for value in y_ticks:
        y = down(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in x_ticks:
        at = across(value)
        parts.append(f'<line class="axis" x1="{at:.1f}" y1="{bottom}" x2="{at:.1f}" y2="{bottom + 5}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 19}" text-anchor="middle">{value:g}</text>')
    middle = (_TOP + bottom) / 2
    parts += [
        f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>',
        f'<text x="{(_LEFT + right) / 2:.1f}" y="{bottom + 40}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text transform="translate(18 {middle:.1f}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>',
    ]
    for i, (name, values) in enumerate(lines.items()):
        points = " ".join(f"{across(a):.1f},{down(b):.1f}" for a, b in zip(x, values, strict=True) if math.isfinite(b))
        look = f'class="line l{i % len(LIGHT_LINES)}"' + _dashes(i)
        left, y = _LEFT + (i % 2) * (right - _LEFT) / 2, height + 10 + _LEGEND_LINE * (i // 2)
        parts += [
            f'<polyline {look} points="{points}"/>',
            f'<line {look} x1="{left:.1f}" y1="{y}" x2="{left + 28:.1f}" y2="{y}"/>',
            f'<text x="{left + 36:.1f}" y="{y + 4}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def _dashes(line: int) -> str:
    pattern = _DASHES[(line + line // len(LIGHT_LINES)) % len(_DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def _style() -> str:
    """Every rule begins with .curves, so that a figure put into a page changes nothing else there."""

    def rules(**looks: str) -> str:
        return "".join(f".curves {what.replace('_', '.')}{{{look}}}" for what, look in looks.items())

    def colours(page: str, ink: str, grid: str, lines: Sequence[str]) -> str:
        each = {f"_l{i}": f"stroke:{line}" for i, line in enumerate(lines)}
        return rules(_page=f"fill:{page}", text=f"fill:{ink}", _axis=f"stroke:{ink}", _grid=f"stroke:{grid}", **each)

    shapes = rules(
        text="font:12px system-ui,sans-serif",
        text_title="font-size:15px;font-weight:600",
        _axis="fill:none",
        _line="fill:none;stroke-width:2;stroke-linejoin:round",
    )
    light = colours(LIGHT_PAGE, "#202020", "#e2e2e2", LIGHT_LINES)
    dark = colours(DARK_PAGE, "#e6e6e6", "#2c333d", DARK_LINES)
    return f"{shapes}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _check_images(x: np.ndarray, other: np.ndarray, name: str) -> None:
    if x.ndim != 4 or x.dtype != np.uint8 or x.shape[1] not in (1, 3):
        raise DataError(
            f"expected images, uint8 (n, 1 or 3, height, width), got {x.dtype} of shape {x.shape}: "
            "figures of samples are for images only"
        )
    if not len(x):
        raise DataError("expected at least one image, got none: draw some samples first")
    if other.shape != (len(x),):
        raise DataError(f"expected {name} of shape ({len(x)},), one for each image, got {other.shape}: pass both parts")


def _check_count(name: str, count: int) -> None:
    if count < 1:
        raise DataError(f"expected {name} of at least 1, got {count}: try 10")


def _check_lines(x: Sequence[float], lines: Mapping[str, Sequence[float]]) -> None:
    if not len(x) or not all(math.isfinite(value) for value in x):
        raise DataError("expected one or more finite numbers as x, got none or one that is not: leave such points out")
    for name, values in lines.items():
        if len(values) != len(x):
            raise DataError(f"expected {len(x)} values for {name!r}, as x has, got {len(values)}: pass nan for a gap")
    if not any(math.isfinite(value) for values in lines.values() for value in values):
        raise DataError("expected at least one finite value to draw, got none: check what the lines were read from")
