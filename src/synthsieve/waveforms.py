"""Sounds as they are handed from whoever makes them to whoever writes or plays them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Waveforms:
    """Sounds.

    Attributes:
        sounds: float32 arrays of samples in [-1, 1], of any lengths.
        rate: samples a second.
    """

    sounds: Sequence[np.ndarray]
    rate: int

    def __len__(self) -> int:
        return len(self.sounds)
