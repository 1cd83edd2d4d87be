"""Opening a page in the user's browser, where there is a screen."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import Mapping


def has_screen(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether a browser could show itself: on Linux and its like a display must be named."""
    if platform in ("darwin", "win32", "cygwin"):
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def show(url: str) -> None:
    """Open `url` in the browser, without waiting for it; does nothing without a screen."""
    if has_screen():
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
