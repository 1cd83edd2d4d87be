"""Who may ask: only pages of this server, in a browser that was shown an address, on this machine.

An address holds a token of 32 random bytes that is good for one visit. The visit exchanges it for two other random
values: a cookie that scripts cannot read and that other sites' pages cannot send, and a key that the page keeps in
sessionStorage and sends as a header. Pages need the cookie; everything below /api/ needs both. Cookies are shared by
all ports of a host, so another user's server on this machine may get to see ours; sessionStorage is not. Beside that:

- the Host must be 127.0.0.1 or localhost with our port, so that a foreign name that points here (DNS rebinding) fails;
- requests that another origin's page makes are refused by Sec-Fetch-Site, changes also by Origin;
- every answer forbids inline scripts, framing, sniffing of types, referrers, and reading from elsewhere.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
METHODS = ("GET", "HEAD", "POST")
OWN_SITES = ("same-origin", "none")  # none: typed, or opened by another program
KEY_HEADER = "X-Synthsieve-Key"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; media-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
# enter.js keeps the key and goes on to "/". A redirect would not do: after a click on another site's page a browser
# holds strict cookies back along the whole chain of redirects.
WELCOME = (
    '<!doctype html><html lang="en" data-key="{key}"><meta charset="utf-8"><title>synthsieve</title>'
    '<link rel="icon" href="/static/icon.svg"><script type="module" src="/static/enter.js"></script>'
    "<p>Opening the gallery…</p></html>"
)
REFUSAL = '<!doctype html><html lang="en"><meta charset="utf-8"><title>synthsieve</title><p>{sentence}</p></html>'
NEW_ADDRESS = "press Enter in the terminal of `synthsieve serve` for a new address, or start the command again"
USED = f"this address is not valid, or no longer: each one works for a single visit; {NEW_ADDRESS}"
NO_COOKIE = (
    f"expected the token of this gallery: open the whole address that `synthsieve serve` printed, or {NEW_ADDRESS}"
)
NO_KEY = f"expected the key that the first visit gave to its tab, and this tab has none: {NEW_ADDRESS}"


def new_secret() -> str:
    """32 random bytes as text for a URL, a cookie or a header."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """What opens one gallery.

    Attributes:
        port: where it listens.
        cookie, key: what every visitor's browser and tab hold after the first visit.
    """

    port: int
    cookie: str = field(default_factory=new_secret, repr=False)
    key: str = field(default_factory=new_secret, repr=False)
    _tokens: set[str] = field(default_factory=set, repr=False)

    @property
    def cookie_name(self) -> str:
        """Cookies do not know ports: the name does, so that two galleries live side by side."""
        return f"synthsieve-{self.port}"

    def new_address(self) -> str:
        """A URL that opens the gallery once."""
        token = new_secret()
        self._tokens.add(token)
        return f"http://{HOST}:{self.port}/?token={token}"

    def admits(self, token: str) -> bool:
        """Whether `token` is that of an address nobody has visited; from now on it is not."""
        found = [one for one in tuple(self._tokens) if _same(one, token)]
        self._tokens.difference_update(found)
        return bool(found)


@dataclass(frozen=True)
class Guard:
    """An ASGI application around another: whoever may not ask gets 403 and a sentence."""

    app: ASGIApp
    access: Access

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
        origins = [f"http://{host}:{self.access.port}" for host in (HOST, "localhost")]
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
        if given is not None and "sec-purpose" not in headers:  # a browser that only looks ahead spends no token
            return self._welcome() if self.access.admits(given[0]) else _refused(USED, as_page=True)
        if not _same(self.access.cookie, _cookie(headers, self.access.cookie_name)):
            return _refused(NO_COOKIE, as_page=visit)
        if path.startswith("/api/") and not _same(self.access.key, headers.get(KEY_HEADER, "")):
            return _refused(NO_KEY)
        return None

    def _welcome(self) -> Response:
        answer = HTMLResponse(WELCOME.format(key=escape(self.access.key)))
        answer.set_cookie(self.access.cookie_name, self.access.cookie, httponly=True, samesite="strict", path="/")
        return answer


def _same(secret: str, given: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _refused(sentence: str, *, as_page: bool = False) -> Response:
    if as_page:
        return HTMLResponse(REFUSAL.format(sentence=escape(sentence)), status_code=403)
    return JSONResponse({"error": sentence}, status_code=403)


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value
