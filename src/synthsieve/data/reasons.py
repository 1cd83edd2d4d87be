"""What another library said of a damaged file, cut to fit into our one sentence."""

from __future__ import annotations


def brief(error: Exception) -> str:
    """The first line of an error's message without its full stop, or its kind where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
