"""Text for people: untrusted text without terminal controls, lists, suggestions, tables, and natural order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from html import escape

# Control characters (cursor, colours, titles), marks that change the direction of text, and lone surrogates, which
# cannot be printed at all. Line ends and tabs stay.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
BREAKS = re.compile("[\n\t]")


def visible(text: str) -> str:
    """The same text, with characters that control a terminal written as \\x1b and the like."""
    return UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    """The same for a name within a line: line ends and tabs are written as \\n and \\t."""
    return BREAKS.sub(_escape, visible(text))


def without_control(text: str) -> str:
    """The same for a page, where direction marks are part of some languages: only control characters are escaped."""
    return CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def sort_naturally(texts: Iterable[str]) -> list[str]:
    """Sorted text; where every one is a whole number, sorted as numbers (9 before 10)."""
    texts = list(texts)
    try:
        return sorted(texts, key=lambda text: (int(text), text))
    except ValueError:
        return sorted(texts)


def listed(items: Sequence[str], most: int = 8) -> str:
    """`'a', 'b', 'c'`, cut after `most` items."""
    shown = ", ".join(repr(str(item)) for item in items[:most])
    return shown if len(items) <= most else f"{shown}, ... ({len(items)} in all)"


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """The hint for an unknown column: the name nearest to it, or all names."""
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"its columns are {listed(names)}"


def brief(error: Exception) -> str:
    """The first line of another library's error without its full stop, or its type where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, note: str = "") -> str:
    """A small table for notebooks, with a note below: text in the first and last column, numbers in the others.

    Every cell is escaped.
    """
    style = "padding:.15em .6em;white-space:nowrap;font-variant-numeric:tabular-nums;text-align:"
    sides = ["left" if column in (0, len(head) - 1) else "right" for column in range(len(head))]

    def line(cells: Sequence[str], tag: str) -> str:
        cell = (f'<{tag} style="{style}{side}">{escape(text)}</{tag}>' for text, side in zip(cells, sides, strict=True))
        return f"<tr>{''.join(cell)}</tr>"

    below = f"<p><small>{escape(note)}</small></p>" if note else ""
    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>{below}"
