"""Text for charts: printable, and wrapped or shortened by an estimate of its width, without a font."""

from __future__ import annotations

import re
import unicodedata

_NARROW = frozenset("iIljtfr.,:;|!'`()[]{}/\\ -·")
_WIDE = frozenset("mwMWQOGD@%&—…<>+=#")
_NOT_TEXT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def readable(text: str) -> str:
    """The text with a replacement character for each character that XML does not allow."""
    return _NOT_TEXT.sub("\ufffd", text)


def width(text: str, size: float) -> float:
    """The approximate width of a text in a sans-serif font of that size; rather too wide than too narrow."""
    return size * sum(_share(letter) for letter in text)


def _share(letter: str) -> float:
    if letter in _NARROW:
        return 0.4
    if letter in _WIDE:
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
