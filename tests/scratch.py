"""Folders for what tests share: one for a whole session, removed at its end, and new ones within it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

SESSION = "SYNTHSIEVE_TEST_RUNS"  # the variable that names the session's folder, the same for all its processes


def new_folder() -> Path:
    """An empty folder that is removed with the session's."""
    return Path(tempfile.mkdtemp(dir=os.environ[SESSION]))
