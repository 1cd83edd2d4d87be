"""The web server of the gallery: static files and the functions of `api`, behind the guard, on 127.0.0.1 only."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
import threading
import traceback
import webbrowser
from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from importlib import resources
from pathlib import Path
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
from synthsieve.results.gallery.api import GET, POST, Answer, Get, Post
from synthsieve.results.gallery.query import QueryParams, json_body
from synthsieve.results.gallery.security import HOST, Access, Guard
from synthsieve.results.gallery.session import GallerySession

THREADS = 8  # that answer requests; each keeps some memory
DEFAULT_PORT = 8765
BACKLOG = 1024  # connections that may wait
REQUEST_TIMEOUT = 10.0  # seconds for the head, and for the body, of a request
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
REDIRECT = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>synthsieve</title>'
    '<meta http-equiv="refresh" content="0;url={url}"><p><a href="{url}">Open the gallery</a></p></html>'
)


def guarded_app(session: GallerySession, access: Access) -> Guard:
    """The whole application. Static files are read once: no request looks up a path."""
    routes = []
    for file in (resources.files("synthsieve.results.gallery") / "static").iterdir():
        if (content_type := TYPES.get(Path(file.name).suffix)) is not None:
            path = "/" if file.name == "index.html" else f"/static/{file.name}"
            routes.append(Route(path, partial(_static, Response(file.read_bytes(), media_type=content_type))))
    for name, get in GET.items():
        routes.append(Route(f"/api/{name}", partial(_get, session, get)))
    for name, post in POST.items():
        routes.append(Route(f"/api/{name}", partial(_post, session, post), methods=["POST"]))
    not_found = partial(_static, _error_response("not found: the gallery is at /", 404))
    handlers = {404: not_found, 405: not_found}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), access)


def listen(port: int | None) -> socket.socket:
    """A listening socket on 127.0.0.1; without a `port` the default one, or any free one.

    It listens at once: two sockets can be bound to one port as long as neither listens.
    """
    for candidate in (DEFAULT_PORT, 0) if port is None else (port,):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, candidate))
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            if port is not None:
                problem = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
                message = f"port {port} {problem}: give another with --port, or leave it out"
                raise ConfigError(message, code="port-unavailable") from None
        else:
            return listener
    raise ConfigError("no port of this machine is free: close another program", code="port-unavailable")


def run_server(app: Guard, listener: socket.socket, *, on_ready: Callable[[], None]) -> None:
    """Answer requests until interrupted by Ctrl-C; `on_ready` is called when the first one can be answered."""
    try:
        new_server(app, on_ready).run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()


def new_server(app: Guard, on_ready: Callable[[], None]) -> uvicorn.Server:
    """The server that `run_server` runs."""
    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "ws": "none"}
    config = uvicorn.Config(app, http=_Protocol, timeout_keep_alive=30, timeout_graceful_shutdown=1, **quiet)
    return _Server(config, on_ready)


class _Protocol(H11Protocol):
    """uvicorn's protocol with a time limit for the head of a request, which uvicorn lacks."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._update_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel_timer()

    def _update_timer(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._cancel_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(REQUEST_TIMEOUT, self.transport.close)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        current_default_thread_limiter().total_tokens = THREADS
        await super().startup(sockets)
        self._on_ready()


async def _static(response: Response, request: Request, error: Exception | None = None) -> Response:
    return response


async def _get(session: GallerySession, function: Get, request: Request) -> Response:
    return await _response(lambda: function(session, QueryParams(request.query_params)))


async def _post(session: GallerySession, function: Post, request: Request) -> Response:
    try:
        with fail_after(REQUEST_TIMEOUT):
            body = await json_body(request)
    except SynthsieveError as error:
        return _error_response(str(error), 400)
    except TimeoutError:
        return _error_response(f"the body did not arrive within {REQUEST_TIMEOUT:g} seconds", 408)
    except ClientDisconnect:
        return Response(status_code=400)
    return await _response(lambda: function(session, body))


async def _response(work: Callable[[], Answer]) -> Response:
    """The result of `work`, run in a thread; 400 for our errors, 500 for others."""
    try:
        answer = await run_in_threadpool(work)
    except SynthsieveError as error:
        return _error_response(str(error), 400)
    except OSError as error:
        return _error_response(f"{error.filename}: {error.strerror or error}: check permissions and disk space", 500)
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return _error_response("internal error: see the terminal of `synthsieve serve`", 500)
    return JSONResponse(answer) if isinstance(answer, dict) else Response(answer[0], media_type=answer[1])


def _error_response(message: str, status: int) -> Response:
    return JSONResponse({"error": message}, status_code=status)


def has_display(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether a browser can open a window: on Linux a display must be configured."""
    if platform in ("darwin", "win32", "cygwin"):
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def open_browser(url: str, folder: str) -> None:
    """Open `url` in the browser, without waiting for it; does nothing without a display.

    Other users may read the command line of a browser. So it gets a file in `folder`, readable by this user only, that
    redirects to `url`.
    """
    if not has_display():
        return
    path = Path(folder) / "open-gallery.html"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(REDIRECT.format(url=escape(url)))
    threading.Thread(target=webbrowser.open, args=(path.as_uri(),), daemon=True).start()
