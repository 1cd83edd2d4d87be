"""`synthsieve serve OUT`: browse the synthetic samples of a finished run in the browser."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from typer import Option

from synthsieve.cli import options
from synthsieve.io.devices import AUTO

if TYPE_CHECKING:
    from synthsieve.api.serve import RunningGallery


@options.verb
def serve(
    console: options.Console,
    out: options.Run,
    variant: options.Variant = None,
    seed: options.RunSeed = None,
    port: int | None = Option(None, min=1, max=65535, help="Port to listen on (default: 8765, or a free one)."),
    no_open: bool = Option(False, "--no-open", help="Print the address only; do not open a browser."),
    threads: options.Threads = None,
    device: options.Device = AUTO,
) -> None:
    """Browse samples in your browser: filter, sort, reject, export. Ctrl-C stops it."""
    if not console.quiet:
        console.say(f"loading {out} ...")
    from synthsieve.api.serve import serve as serve_

    def ready(gallery: RunningGallery) -> None:
        url = gallery.new_address()
        result = {"url": url, "variant": gallery.variant, "samples": gallery.num_samples}
        lines = [
            f"{gallery.variant}: {gallery.num_samples:,} samples at",
            f"  {url}",
            "The address works once, on this machine only; press Enter for another. Ctrl-C stops the gallery.",
        ]
        options.echo(json.dumps(result) if console.as_json else "\n".join(lines))  # one line: programs wait for it
        if sys.stdin is not None and sys.stdin.isatty():
            _on_enter(lambda: console.say(f"  {gallery.new_address()}"))

    options.use_threads(threads)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # removes the temporary folder
    serve_(out, variant=variant, seed=seed, port=port, open_browser=not no_open, device=device, on_ready=ready)
    console.say("the gallery has stopped; rejected samples are listed in the run's folder")


def _on_enter(act: Callable[[], None]) -> None:
    """Call `act` whenever a line is typed, from a thread."""
    if hasattr(signal, "SIGTTIN"):  # a background process may not read the terminal: end the thread, not the gallery
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    def read() -> None:
        with suppress(OSError):
            while os.read(sys.stdin.fileno(), 1024):  # not sys.stdin: its lock would be held when Python exits
                act()

    threading.Thread(target=read, name="terminal", daemon=True).start()
