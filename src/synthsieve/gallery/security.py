"""Who may ask: only pages of this server, in a browser that was shown the token, on this machine.

A token of 32 random bytes stands in the URL that the command prints. The first visit exchanges it for a cookie that no
script can read and that no other site's page can send; the token then leaves the address bar. Beside that:

- the Host must be 127.0.0.1 or localhost with our port, so that a foreign name that points here (DNS rebinding) fails;
- requests that another origin's page makes are refused by Sec-Fetch-Site, changes also by Origin;
- every answer forbids inline scripts, framing, sniffing of types, referrers, and reading from elsewhere.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "HEAD", "POST")
OWN_SITES = ("same-origin", "none")  # none: typed, or opened by another program
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
# A page of ours goes on to "/": a redirect would not do, for after a click on another site's page a browser keeps
# strict cookies back along the whole chain of redirects.
WELCOME = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>synthsieve</title>'
    '<link rel="icon" href="/static/icon.svg">'
    '<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Go on to the gallery</a></p></html>'
)


def new_token() -> str:
    """32 random bytes as text for a URL."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Guard:
    """An ASGI application around another: whoever may not ask gets 403 and a sentence.

    Attributes:
        app: what is guarded.
        token: what the first visit must show.
        port: where we listen.
    """

    app: ASGIApp
    token: str
    port: int

    @property
    def cookie(self) -> str:
        """Cookies do not know ports: the name does, so that two galleries live side by side."""
        return f"synthsieve-{self.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self._answer(scope)
        await (self.app if answer is None else answer)(scope, receive, send_guarded)

    def _answer(self, scope: Scope) -> Response | None:
        """A refusal, the welcome of a first visit, or None where the request may pass."""
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        origins = [f"http://{host}:{self.port}" for host in ("127.0.0.1", "localhost")]
        if headers.getlist("host") not in [[origin.removeprefix("http://")] for origin in origins]:
            return _refused("expected this machine's own address as Host: open the URL that the command printed")
        if method not in METHODS:
            return JSONResponse({"error": f"expected GET or POST, got {method[:20]}"}, status_code=405)
        visit = path == "/" and method == "GET" and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if headers.get("sec-fetch-site", "none") not in OWN_SITES and not visit:
            return _refused("expected a request of the gallery's own page, but another site's page made this one")
        if method == "POST" and headers.get("origin") not in origins:
            return _refused("expected a change to come from the gallery's own page: its Origin is another or none")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token") if visit else None
        if given is not None:
            return self._welcome(given[0]) if self._matches(given[0]) else _refused(_ASK)
        return None if self._matches(_cookie(headers, self.cookie)) else _refused(_ASK)

    def _matches(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def _welcome(self, token: str) -> Response:
        answer = HTMLResponse(WELCOME)
        answer.set_cookie(self.cookie, token, httponly=True, samesite="strict", path="/")
        return answer


_ASK = "expected the token of this gallery: open the whole URL that `synthsieve serve` printed"


def _refused(sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=403)


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value
