"""The server: a few files of our own and the questions of `api`, all behind the guard, on 127.0.0.1 alone."""

from __future__ import annotations

import errno
import socket
import sys
import traceback
from collections.abc import Callable
from importlib import resources
from typing import Any

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from synthsieve.errors import ConfigError, SynthsieveError
from synthsieve.gallery.api import CHANGES, QUESTIONS, Answer
from synthsieve.gallery.arguments import Asked, body_of
from synthsieve.gallery.room import Room
from synthsieve.gallery.security import Guard

HOST = "127.0.0.1"
THREADS = 8  # that answer questions; each keeps some memory of its own
USUAL_PORT = 8765
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def guarded_app(room: Room, *, token: str, port: int) -> Guard:
    """The whole application. Files are those of the package, read once: no path is ever looked up for a request."""
    pages = _static_files()
    routes = [Route("/" if name == "index.html" else f"/static/{name}", _page(*page)) for name, page in pages.items()]
    routes += [Route(f"/api/{name}", _question(room, ask)) for name, ask in QUESTIONS.items()]
    routes += [Route(f"/api/{name}", _change(room, ask), methods=["POST"]) for name, ask in CHANGES.items()]
    return Guard(Starlette(routes=routes, exception_handlers={404: _nothing_there, 405: _nothing_there}), token, port)


def listen(port: int | None) -> socket.socket:
    """A socket on this machine's own address; without a `port` the usual one, or any that is free."""
    for wanted in (USUAL_PORT, 0) if port is None else (port,):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, wanted))
        except OSError as error:
            listener.close()
            if port is not None:
                taken = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
                raise ConfigError(f"port {port} {taken}: give another with --port, or leave it out") from None
        else:
            return listener
    raise ConfigError("no port of this machine is free: close something, and try again")


def serve(app: Guard, listener: socket.socket, *, ready: Callable[[], None]) -> None:
    """Answer requests until interrupted; `ready` is called once, when the first can be answered."""
    settings = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=1
    )
    server = _Server(settings, ready)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:  # Ctrl-C is how a gallery ends
        pass
    finally:
        listener.close()


class _Server(uvicorn.Server):
    def __init__(self, settings: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(settings)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        current_default_thread_limiter().total_tokens = THREADS
        await super().startup(sockets)
        self._ready()


def _static_files() -> dict[str, tuple[bytes, str]]:
    """Name -> content and type."""
    folder = resources.files("synthsieve.gallery") / "static"
    found = {}
    for file in folder.iterdir():
        suffix = f".{file.name.rpartition('.')[2]}"
        if suffix in TYPES:
            found[file.name] = (file.read_bytes(), TYPES[suffix])
    return found


def _page(content: bytes, kind: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


def _question(room: Room, ask: Callable[[Room, Asked], Answer]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return await _told(lambda: ask(room, Asked(request.query_params)))

    return answer


def _change(room: Room, ask: Callable[[Room, dict[str, Any]], Answer]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            body = await body_of(request)
        except SynthsieveError as error:
            return _sorry(str(error), 400)
        return await _told(lambda: ask(room, body))

    return answer


async def _told(work: Callable[[], Answer]) -> Response:
    """What comes of `work`, done in a thread: an error of ours is a sentence and 400, any other one 500."""
    try:
        found = await run_in_threadpool(work)
    except SynthsieveError as error:
        return _sorry(str(error), 400)
    except OSError as error:
        return _sorry(f"{error.filename}: {error.strerror or error}: check its rights and the disk", 500)
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return _sorry("something went wrong that should not: the terminal of `synthsieve serve` tells more", 500)
    if isinstance(found, dict):
        return JSONResponse(found)
    content, kind = found
    return Response(content, media_type=kind)


async def _nothing_there(request: Request, error: Exception) -> Response:
    return _sorry("nothing is here: the gallery's page is at /", 404)


def _sorry(sentence: str, status: int) -> Response:
    return JSONResponse({"error": sentence}, status_code=status)
