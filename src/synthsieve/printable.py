"""Text of anybody's, made safe to print: labels, columns, cells and names of files may hold what a terminal obeys."""

from __future__ import annotations

import re

# Control characters, which move the cursor or change colours, titles and more; marks that turn the direction of text
# around; and halves of characters, which cannot be printed at all. Line ends and tabs stay.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
BREAKS = re.compile("[\n\t]")


def visible(text: str) -> str:
    """The same text, with characters that a terminal would obey written as \\x1b and the like."""
    return UNSEEN.sub(_escaped, text)


def one_line(text: str) -> str:
    """The same for a name within a line: line ends and tabs are written as \\n and \\t."""
    return BREAKS.sub(_escaped, visible(text))


def without_control(text: str) -> str:
    """The same for a page, where marks of direction are part of some languages: control characters alone."""
    return CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
