"""The order of class labels: as numbers where all are whole numbers, as text otherwise."""

from __future__ import annotations

from collections.abc import Iterable


def sort_naturally(texts: Iterable[str]) -> list[str]:
    """Sorted text; where every one is a whole number, sorted as numbers (9 before 10)."""
    texts = list(texts)
    try:
        return sorted(texts, key=lambda text: (int(text), text))
    except ValueError:
        return sorted(texts)
