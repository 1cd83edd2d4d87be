"""Opening a page in the user's browser, where there is a screen."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Mapping
from html import escape
from pathlib import Path

REDIRECT = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>synthsieve</title>'
    '<meta http-equiv="refresh" content="0;url={url}"><p><a href="{url}">Open the gallery</a></p></html>'
)


def has_screen(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether a browser could show itself: on Linux and its like a display must be named."""
    if platform in ("darwin", "win32", "cygwin"):
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def show(url: str, folder: str) -> None:
    """Open `url` in the browser, without waiting for it; does nothing without a screen.

    Other users may read the command line of a browser. So it is given a file in `folder` that only this user can read,
    and the file leads to `url`.
    """
    if not has_screen():
        return
    path = Path(folder) / "open-gallery.html"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(REDIRECT.format(url=escape(url)))
    threading.Thread(target=webbrowser.open, args=(path.as_uri(),), daemon=True).start()


def private_folder() -> tempfile.TemporaryDirectory[str]:
    """A new folder that only this user can enter (0700); removed with all it holds when its `with` block ends."""
    return tempfile.TemporaryDirectory(prefix="synthsieve-")
