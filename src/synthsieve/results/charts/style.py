"""Colours, the CSS of SVG charts, and text wrapped or shortened by an estimate of its width, without a font.

Every tone has a contrast of at least 3 to 1 with its page, text of 4.5 to 1. `ANYWHERE` is for pages of unknown
background. Every CSS rule begins with .chart, so that a chart changes nothing else on its page. A page with inline
charts has `page_style()` once in its head; it may set the custom properties itself (`variables`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from synthsieve.results.charts.chart import Dash, Tone

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
TEXT, TITLE = 14, 16
MAX_WIDTH = 600  # pixels: larger charts would have larger text than the page


@dataclass(frozen=True)
class Palette:
    """Colours of the page, text, secondary text, grid, and of each tone."""

    page: str
    ink: str
    muted: str
    grid: str
    tones: tuple[str, ...]

    def tone(self, tone: Tone) -> str:
        return self.tones[tone]


LIGHT = Palette(
    page="#ffffff",
    ink="#202020",
    muted="#595959",
    grid="#e2e2e2",
    tones=("#8a8a8a", "#0072b2", "#d55e00", "#00735a", "#b0478f", "#7a6200", "#303030"),
)
DARK = Palette(
    page="#10141a",
    ink="#e6e6e6",
    muted="#a8b0ba",
    grid="#2c333d",
    tones=("#7d8691", "#56b4e9", "#ff8c42", "#2ecc9b", "#f0a3d0", "#f0e442", "#dcdcdc"),
)
ANYWHERE = Palette(
    page="transparent",
    ink="currentColor",
    muted="currentColor",
    grid="#80808040",
    tones=("#808080", "#2b7cc4", "#cf5f10", "#1a8a6a", "#b3579a", "#8a7410", "currentColor"),
)

NARROW = frozenset("iIljtfr.,:;|!'`()[]{}/\\ -·")
WIDE = frozenset("mwMWQOGD@%&—…<>+=#")
NOT_TEXT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
DASHES = {Dash.SOLID: "", Dash.DASHED: "7 4", Dash.DOTTED: "2 3", Dash.DASH_DOT: "10 3 2 3"}


def variables(palette: Palette) -> str:
    """The custom properties that hold the colours of charts."""
    names = ("page", "ink", "muted", "grid", *(str(int(tone)) for tone in Tone))
    return "".join(f"--chart-{name}:{_named(palette, name)};" for name in names)


def page_style() -> str:
    """For a page with inline charts: colours follow the reader's light or dark setting."""
    dark = f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    return f":root{{{variables(LIGHT)}}}{dark}{inherited_style()}"


def inherited_style() -> str:
    """As `page_style`, but with the colours that the page sets, else those of `ANYWHERE`."""
    colours = _colours(lambda name: f"var(--chart-{name},{_named(ANYWHERE, name)})")
    return f"{_shapes()}{colours}.chart{{width:100%;height:auto;max-width:{MAX_WIDTH}px;display:block}}"


def file_style() -> str:
    """For a separate file: explicit colours, since not every viewer supports custom properties."""
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


def readable(text: str) -> str:
    """The text with a replacement character for each character that XML does not allow."""
    return NOT_TEXT.sub("\ufffd", text)


def width(text: str, size: float) -> float:
    """The approximate width of a text in a sans-serif font of that size; rather too wide than too narrow."""
    return size * sum(_share(letter) for letter in text)


def _share(letter: str) -> float:
    if letter in NARROW:
        return 0.4
    if letter in WIDE:
        return 0.88
    if unicodedata.combining(letter):
        return 0.0
    return 1.05 if unicodedata.east_asian_width(letter) in "WF" else 0.7 if letter.isupper() else 0.62


def shortened(text: str, size: float, space: float) -> str:
    """The text, or as much of it as fits into `space`, followed by an ellipsis."""
    text = " ".join(text.split())
    space += 0.01  # rounding
    used, fits = 0.0, 0
    for place, letter in enumerate(text):
        used += size * _share(letter)
        if used > space:
            return text[:fits].rstrip() + "…"
        if used + width("…", size) <= space:
            fits = place + 1
    return text


def wrapped(text: str, size: float, space: float, lines: int = 4) -> list[str]:
    """The text in at most `lines` lines that fit, the last one shortened; no line for an empty text."""
    found: list[str] = []
    for word in text.split():
        if found and width(f"{found[-1]} {word}", size) <= space:
            found[-1] += f" {word}"
        else:
            found.append(word)
    if len(found) > lines:
        found = [*found[: lines - 1], " ".join(found[lines - 1 :])]
    return [shortened(line, size, space) for line in found]
