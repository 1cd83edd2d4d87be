"""`synthsieve serve OUT`: browse the synthetic samples of a finished run in the browser."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.printing import echo


def serve(
    out: Annotated[Path, typer.Argument(help="The folder that `synthsieve run` or `fit` wrote.", metavar="OUT")],
    arm: Annotated[str | None, typer.Option(help="Whose samples (default: the arm kept, or CRAIG's).")] = None,
    seed: Annotated[int | None, typer.Option(help="Which of the run's seeds (default: the first).")] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port to listen on (default: 8765, or a free one).")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address only; do not open a browser.")] = False,
    threads: options.Threads = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Browse samples in your browser: filter, sort, mark bad ones, export. Ctrl-C ends it."""
    import json

    from synthsieve.errors import ConfigError
    from synthsieve.progress import for_stream

    if not quiet:
        options.say(f"loading {out} ...", as_json=as_json)
    try:
        from synthsieve.gallery import server
        from synthsieve.gallery.room import Room
        from synthsieve.gallery.screen import private_folder, show
        from synthsieve.gallery.security import Access
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio", "h11"):
            raise
        raise ConfigError("the gallery needs two more packages: pip install 'synthsieve[gallery]'") from None
    from synthsieve.review.run import open_run

    options.use_threads(threads)
    listener = server.listen(port)
    run = open_run(out, seed=seed)
    view = run.pool(arm, progress=for_stream("serve", quiet=quiet))
    access = Access(listener.getsockname()[1])
    room = Room(view, out, run.table)
    room.warm_up()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # else the folder below would stay
    with private_folder() as folder:

        def ready() -> None:
            url = access.new_address()
            told = {"url": url, "arm": view.name, "samples": len(view)}
            lines = [
                f"{view.name}: {len(view):,} samples at",
                f"  {url}",
                "The address works once, on this machine alone; press Enter for another. Ctrl-C ends the gallery.",
            ]
            echo(json.dumps(told) if as_json else "\n".join(lines))
            if not no_open:
                show(access.new_address(), folder)
            if sys.stdin is not None and sys.stdin.isatty():
                _at_enter(lambda: options.say(f"  {access.new_address()}", as_json=as_json))

        server.serve(server.guarded_app(room, access), listener, ready=ready)
    options.say("the gallery has ended; marks are in OUT/marked-bad.json", as_json=as_json)


def _at_enter(act: Callable[[], None]) -> None:
    """Call `act` whenever a line is typed, from a thread of its own."""
    import threading

    if hasattr(signal, "SIGTTIN"):  # in the background a terminal may not be read: the thread ends, and not the gallery
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    def read() -> None:
        with suppress(OSError):
            while os.read(sys.stdin.fileno(), 1024):  # not by sys.stdin: a lock of it would be held when Python ends
                act()

    threading.Thread(target=read, name="reading the terminal", daemon=True).start()
