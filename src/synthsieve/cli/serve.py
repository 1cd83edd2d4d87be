"""`synthsieve serve OUT`: the pool of a finished run in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synthsieve.cli import options
from synthsieve.cli.printing import echo


def serve(
    out: Annotated[Path, typer.Argument(help="The folder that `synthsieve run` or `fit` wrote.", metavar="OUT")],
    arm: Annotated[str | None, typer.Option(help="Whose pool; that of the arm kept, or CRAIG's, if not given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Which of the run's seeds; the first if not given.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Where to listen; 8765 or a free one.")] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    threads: options.Threads = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Browse a pool on this machine: filter, sort, sieve anew, mark bad samples, export. Ctrl-C ends it."""
    import json

    from synthsieve.errors import ConfigError
    from synthsieve.progress import for_stream
    from synthsieve.review.run import open_run

    try:
        from synthsieve.gallery import server
        from synthsieve.gallery.room import Room
        from synthsieve.gallery.screen import show
        from synthsieve.gallery.security import new_token
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio", "h11"):
            raise
        raise ConfigError("the gallery needs two more packages: pip install 'synthsieve[gallery]'") from None
    options.use_threads(threads)
    listener = server.listen(port)
    run = open_run(out, seed=seed)
    view = run.pool(arm, progress=for_stream("serve", quiet=quiet))
    token, at = new_token(), listener.getsockname()[1]
    url = f"http://{server.HOST}:{at}/?token={token}"

    def ready() -> None:
        told = {"url": url, "arm": view.name, "samples": len(view)}
        lines = (
            f"{view.name}: {len(view):,} samples at\n  {url}\nCtrl-C ends it; the address works on this machine alone"
        )
        echo(json.dumps(told) if as_json else lines)
        if not no_open:
            show(url)

    room = Room(view, out, run.table)
    room.warm_up()
    server.serve(server.guarded_app(room, token=token, port=at), listener, ready=ready)
    options.say("the gallery has ended; marks are in OUT/marked-bad.json", as_json=as_json)
