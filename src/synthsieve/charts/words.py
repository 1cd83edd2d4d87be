"""How wide words are, near enough to lay them out without a font: wrapping and shortening."""

from __future__ import annotations

import unicodedata

_NARROW = frozenset("iIljtfr.,:;|!'`()[]{}/\\ -·")
_WIDE = frozenset("mwMWQOGD@%&—…<>+=#")


def width(text: str, size: float) -> float:
    """About how wide a text is, set in a sans-serif of that size; rather too wide than too narrow."""
    return size * sum(_share(letter) for letter in text)


def _share(letter: str) -> float:
    if letter in _NARROW:
        return 0.4
    if letter in _WIDE:
        return 0.88
    if unicodedata.combining(letter):
        return 0.0
    return 1.05 if unicodedata.east_asian_width(letter) in "WF" else 0.7 if letter.isupper() else 0.62


def shortened(text: str, size: float, room: float) -> str:
    """The text, or as much of it as fits with three dots behind."""
    text = " ".join(text.split())
    room += 0.01  # of rounding
    if width(text, size) <= room:
        return text
    while text and width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def wrapped(text: str, size: float, room: float, lines: int = 4) -> list[str]:
    """The text in lines that fit, at most `lines`, the last one shortened; no line where there is no text."""
    found: list[str] = []
    for word in text.split():
        if found and width(f"{found[-1]} {word}", size) <= room:
            found[-1] += f" {word}"
        else:
            found.append(word)
    if len(found) > lines:
        found = [*found[: lines - 1], " ".join(found[lines - 1 :])]
    return [shortened(line, size, room) for line in found]
