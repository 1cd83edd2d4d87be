"""The colours of charts on a light and on a dark page, by tone.

Every tone stands out from its page by 3 to 1 or more and words by 4.5 to 1; neighbours differ in lightness as well as
in hue, and no chart tells anything by colour alone. `ANYWHERE` is for pages whose ground is not known: it does on both.
"""

from __future__ import annotations

from dataclasses import dataclass

from synthsieve.charts.chart import Dash, Tone


@dataclass(frozen=True)
class Palette:
    """Colours as #rrggbb: the page, its words, quiet words, the grid, and a colour for each tone."""

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

DASHES = {Dash.SOLID: "", Dash.DASHED: "7 4", Dash.DOTTED: "2 3", Dash.DASH_DOT: "10 3 2 3"}
