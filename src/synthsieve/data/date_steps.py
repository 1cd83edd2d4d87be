"""How finely a column of dates is told: by days, hours, minutes, seconds, or less."""

from __future__ import annotations

import re

import numpy as np

SECONDS = (86_400, 3_600, 60, 1, 1e-3, 1e-6)
UNIT = re.compile(r"\w+\[(s|ms|us|ns)\b")
A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def date_step(counts: np.ndarray, stored_as: str) -> float:
    """The longest of a day, an hour, ... of which every count is a whole multiple, in the unit that is counted.

    `counts` (n,) are dates as `cells` counts them, of the Arrow type `stored_as`. 1 for days, and where nothing fits.
    """
    unit = UNIT.match(stored_as)
    if unit is None or not len(counts):
        return 1.0
    name = "us" if stored_as.startswith("timestamp[ns") else unit[1]  # such timestamps are counted in microseconds
    steps = [float(round(seconds * A_SECOND[name])) for seconds in SECONDS if seconds * A_SECOND[name] >= 1]
    return next((step for step in steps if not (counts % step).any()), 1.0)
