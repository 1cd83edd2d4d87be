"""The server: a few files of our own and the questions of `api`, all behind the guard, on 127.0.0.1 alone."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
import traceback
from collections.abc import Callable
from importlib import resources
from typing import Any

import h11
import uvicorn
from anyio import fail_after
from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from synthsieve.errors import ConfigError, SynthsieveError
from synthsieve.gallery.api import CHANGES, QUESTIONS, Answer
from synthsieve.gallery.arguments import Asked, body_of
from synthsieve.gallery.room import Room
from synthsieve.gallery.security import HOST, Access, Guard

THREADS = 8  # that answer questions; each keeps some memory of its own
USUAL_PORT = 8765
WAITING = 1024  # connections that may wait to be accepted
HALF_REQUEST = 10.0  # seconds in which a request must have come whole, head and body each
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def guarded_app(room: Room, access: Access) -> Guard:
    """The whole application. Files are those of the package, read once: no path is ever looked up for a request."""
    pages = _static_files()
    routes = [Route("/" if name == "index.html" else f"/static/{name}", _page(*page)) for name, page in pages.items()]
    routes += [Route(f"/api/{name}", _question(room, ask)) for name, ask in QUESTIONS.items()]
    routes += [Route(f"/api/{name}", _change(room, ask), methods=["POST"]) for name, ask in CHANGES.items()]
    return Guard(Starlette(routes=routes, exception_handlers={404: _nothing_there, 405: _nothing_there}), access)


def listen(port: int | None) -> socket.socket:
    """A listening socket on this machine's own address; without a `port` the usual one, or any that is free.

    It listens at once: two sockets can be bound to one port as long as neither listens.
    """
    for wanted in (USUAL_PORT, 0) if port is None else (port,):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, wanted))
            listener.listen(WAITING)
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
    try:
        server_of(app, ready).run(sockets=[listener])
    except KeyboardInterrupt:  # Ctrl-C is how a gallery ends
        pass
    finally:
        listener.close()


def server_of(app: Guard, ready: Callable[[], None]) -> uvicorn.Server:
    """The server that `serve` runs."""
    settings = uvicorn.Config(
        app,
        http=_Protocol,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    return _Server(settings, ready)


class _Protocol(H11Protocol):
    """uvicorn's own, with a limit to the time in which the head of a request must have come: uvicorn has none."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._limit is None:
            self._limit = self.loop.call_later(HALF_REQUEST, self.transport.close)

    def _stop(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


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
            with fail_after(HALF_REQUEST):
                body = await body_of(request)
        except SynthsieveError as error:
            return _sorry(str(error), 400)
        except TimeoutError:
            return _sorry(f"expected the whole body within {HALF_REQUEST:g} seconds", 408)
        except ClientDisconnect:  # nobody is there to hear the answer
            return Response(status_code=400)
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
