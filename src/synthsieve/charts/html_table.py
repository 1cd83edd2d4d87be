"""A small table for notebooks. Every cell is text: nothing in it is read as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, note: str = "") -> str:
    """A table whose first and last columns are words and whose others are numbers, with a note below."""
    look = "padding:.15em .6em;white-space:nowrap;font-variant-numeric:tabular-nums;text-align:"

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ["left" if place in (0, len(head) - 1) else "right" for place in range(len(cells))]
        told = zip(cells, sides, strict=True)
        return "".join(f'<{tag} style="{look}{side}">{escape(cell)}</{tag}>' for cell, side in told)

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    below = f"<p><small>{escape(note)}</small></p>" if note else ""
    return f"<table><thead><tr>{line(head, 'th')}</tr></thead><tbody>{body}</tbody></table>{below}"
