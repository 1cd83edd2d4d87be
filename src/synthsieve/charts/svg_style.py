"""The look of SVG charts, as CSS. Every rule begins with .chart, so that a chart changes nothing else in its page.

A page that shows charts inline has `page_style()` once in its head. It may set the custom properties itself
(`variables`), for instance where its reader chooses between light and dark.
"""

from __future__ import annotations

from collections.abc import Callable

from synthsieve.charts.chart import Tone
from synthsieve.charts.palette import ANYWHERE, DARK, DASHES, LIGHT, Palette

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
TEXT, TITLE = 14, 16
MAX_WIDTH = 600  # pixels: beyond it the words would grow larger than those of the page


def variables(palette: Palette) -> str:
    """The custom properties that charts take their colours from, for a rule of the page."""
    own = {"page": palette.page, "ink": palette.ink, "muted": palette.muted, "grid": palette.grid}
    own |= {str(int(tone)): palette.tone(tone) for tone in Tone}
    return "".join(f"--chart-{name}:{colour};" for name, colour in own.items())


def page_style() -> str:
    """For a page with charts inline: the colours follow the reader's setting, light or dark."""
    dark = f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    return f":root{{{variables(LIGHT)}}}{dark}{inherited_style()}"


def inherited_style() -> str:
    """As `page_style`, but the page gives the colours; where it gives none, those that do on any ground are taken."""

    def colour(name: str) -> str:
        return f"var(--chart-{name},{_named(ANYWHERE, name)})"

    return f"{_shapes()}{_colours(colour)}.chart{{width:100%;height:auto;max-width:{MAX_WIDTH}px;display:block}}"


def file_style() -> str:
    """For a file of its own: colours in full, since not every viewer knows custom properties."""
    light, dark = (_colours(lambda name, palette=each: _named(palette, name)) for each in (LIGHT, DARK))  # type: ignore[misc]
    return f"{_shapes()}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _named(palette: Palette, name: str) -> str:
    return palette.tone(Tone(int(name))) if name.isdecimal() else str(getattr(palette, name))


def _shapes() -> str:
    dashes = "".join(f".chart .{name}{{stroke-dasharray:{dash}}}" for name, dash in DASHES.items() if dash)
    return (
        f".chart text{{font:{TEXT}px {FONT}}}.chart .title{{font-size:{TITLE}px;font-weight:600}}"
        ".chart .head{font-weight:600}.chart .end{text-anchor:end}.chart .mid{text-anchor:middle}"
        ".chart .axis,.chart .grid,.chart .line{fill:none}.chart .line{stroke-width:2;stroke-linejoin:round}"
        ".chart .faint{opacity:.45}.chart .band{fill-opacity:.22}.chart .hit{fill:transparent;stroke:none}"
        ".chart .over{font-weight:600;paint-order:stroke;stroke-width:4px;stroke-linejoin:round}"
        f"{dashes}"
    )


def _colours(colour: Callable[[str], str]) -> str:
    tones = "".join(
        f".chart .s{tone}{{stroke:{colour(str(tone))}}}.chart .f{tone}{{fill:{colour(str(tone))}}}"
        for tone in (int(tone) for tone in Tone)
    )
    return (
        f".chart .page{{fill:{colour('page')}}}.chart text{{fill:{colour('ink')}}}"
        f".chart .muted{{fill:{colour('muted')}}}.chart .over{{stroke:{colour('page')}}}"
        f".chart .axis{{stroke:{colour('muted')}}}.chart .grid{{stroke:{colour('grid')}}}"
        f".chart .hollow{{fill:{colour('page')}}}.chart .edge{{stroke:{colour('page')};stroke-width:.7}}{tones}"
    )
