"""How a verb prints: names, labels and cells may come from anybody, and a terminal obeys some characters."""

from __future__ import annotations

import re

import typer

# Control characters, which move the cursor or change colours, titles and more; marks that turn the direction of text
# around; and halves of characters, which cannot be printed at all. Line ends and tabs stay.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The same text, with characters that a terminal would obey written as \\x1b and the like."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def echo(text: str, *, err: bool = False) -> None:
    """Print to standard output, or to standard error."""
    typer.echo(visible(text), err=err)
