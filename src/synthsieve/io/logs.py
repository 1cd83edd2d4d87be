"""The package's logger, `synthsieve`: it prints nothing unless the user configures logging.

Messages about data and runs are INFO, the figures of training DEBUG.
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("synthsieve")
LOGGER.addHandler(logging.NullHandler())


def info(message: str) -> None:
    """Log a message for the user."""
    LOGGER.info("%s", message)
