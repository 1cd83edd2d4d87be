"""How a verb prints: terminal control characters are shown as text."""

from __future__ import annotations

import typer

from synthsieve.io.printable import one_line, visible

__all__ = ["echo", "one_line", "visible"]


def echo(text: str, *, err: bool = False) -> None:
    """Print to standard output, or to standard error."""
    typer.echo(visible(text), err=err)
