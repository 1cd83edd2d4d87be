"""Examples that can be seen, as pixels: images as they are, sounds as their spectrograms."""

from __future__ import annotations

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.review.pool_view import PoolView

QUIET_TO_LOUD = ((13, 18, 43), (34, 74, 125), (46, 145, 160), (160, 212, 150), (252, 246, 200))


def can_be_seen(view: PoolView) -> bool:
    """Images of one or three channels, and sounds that are stored as spectrograms."""
    shape = view.dataset.shape
    return view.dataset.kind in (Kind.IMAGE, Kind.SOUND) and len(shape) == 3 and shape[0] in (1, 3)


def pixels_of(view: PoolView, x: np.ndarray) -> np.ndarray:
    """Examples as stored, (n, channels, height, width), -> uint8 (n, 1 or 3, height, width)."""
    if view.dataset.kind == Kind.SOUND:
        floor = float(view.dataset.about.floor)  # decibels: from here to 0
        return _coloured(1.0 - np.clip(x[:, 0, ::-1], floor, 0.0) / floor)  # low notes below
    if x.dtype == np.uint8:
        return x
    return np.rint((np.clip(np.nan_to_num(x), -1, 1) + 1) * 127.5).astype(np.uint8)


def _coloured(levels: np.ndarray) -> np.ndarray:
    """Levels in [0, 1], (n, height, width), from quiet and dark to loud and bright: uint8 (n, 3, height, width)."""
    places = np.linspace(0, 1, len(QUIET_TO_LOUD))
    channels = [np.interp(levels, places, stops) for stops in zip(*QUIET_TO_LOUD, strict=True)]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8)
