"""Access control: only pages of this server, in a browser that opened an address printed here, on this machine.

An address contains a token of 32 random bytes that is valid for one visit. The visit exchanges it for two other random
values: a cookie that scripts cannot read and other sites' pages cannot send, and a key that the page keeps in
sessionStorage and sends as a header. Pages need the cookie; everything below /api/ needs both. All ports of a host
share cookies, so another user's server on this machine may see ours; sessionStorage is not shared. In addition:

- the Host must be 127.0.0.1 or localhost with our port, which defeats DNS rebinding;
- requests by other origins' pages are refused by Sec-Fetch-Site, changes also by Origin;
- every response forbids inline scripts, framing, content sniffing, referrers and loading from elsewhere.
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
SAME_SITE = ("same-origin", "none")  # none: typed, or opened by another program
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
# enter.js stores the key and continues to "/". A redirect would not do: after a click on another site's page a browser
# withholds strict cookies along the whole chain of redirects.
WELCOME = (
    '<!doctype html><html lang="en" data-key="{key}"><meta charset="utf-8"><title>synthsieve</title>'
    '<link rel="icon" href="/static/icon.svg"><script type="module" src="/static/enter.js"></script>'
    "<p>Opening the gallery…</p></html>"
)
REFUSAL = '<!doctype html><html lang="en"><meta charset="utf-8"><title>synthsieve</title><p>{message}</p></html>'
NEW_ADDRESS = "press Enter in the terminal of `synthsieve serve` for a new address, or restart the command"
USED = f"this address is not valid (any more): each one works for a single visit; {NEW_ADDRESS}"
NO_COOKIE = f"missing token: open the full address that `synthsieve serve` printed, or {NEW_ADDRESS}"
NO_KEY = f"this tab has no key, because another one opened the address: {NEW_ADDRESS}"


def new_secret() -> str:
    """32 random bytes as text for a URL, a cookie or a header."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """The secrets of one gallery."""

    port: int  # where it listens
    cookie: str = field(default_factory=new_secret, repr=False)  # what a browser holds after the first visit
    key: str = field(default_factory=new_secret, repr=False)  # what its tab holds
    _tokens: set[str] = field(default_factory=set, repr=False)

    @property
    def cookie_name(self) -> str:
        """Cookies ignore ports, so the name contains ours: two galleries can run side by side."""
        return f"synthsieve-{self.port}"

    def new_address(self) -> str:
        """A URL that opens the gallery once."""
        token = new_secret()
        self._tokens.add(token)
        return f"http://{HOST}:{self.port}/?token={token}"

    def redeem(self, token: str) -> bool:
        """Whether `token` belongs to an address that nobody has visited; it is used up by this call."""
        found = [one for one in tuple(self._tokens) if _equal(one, token)]
        self._tokens.difference_update(found)
        return bool(found)


@dataclass(frozen=True)
class Guard:
    """An ASGI application around another one: requests without access get 403 and a message."""

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
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        response = self._response(scope)
        await (self.app if response is None else response)(scope, receive, send_guarded)

    def _response(self, scope: Scope) -> Response | None:
        """A refusal, the welcome page of a first visit, or None if the request may pass."""
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        origins = [f"http://{host}:{self.access.port}" for host in (HOST, "localhost")]
        if headers.getlist("host") not in [[origin.removeprefix("http://")] for origin in origins]:
            return _refuse("the Host is not this machine: open the address that `synthsieve serve` printed")
        if method not in METHODS:
            return JSONResponse({"error": f"expected GET or POST, got {method[:20]}"}, status_code=405)
        visit = path == "/" and method == "GET" and headers.get("sec-fetch-mode", "navigate") == "navigate"
        if headers.get("sec-fetch-site", "none") not in SAME_SITE and not visit:
            return _refuse("another site's page made this request")
        if method == "POST" and headers.get("origin") not in origins:
            return _refuse("changes must come from the gallery's page, but the Origin is missing or another one")
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token") if visit else None
        if tokens is not None and "sec-purpose" not in headers:  # a browser that only prefetches uses no token up
            return self._welcome() if self.access.redeem(tokens[0]) else _refuse(USED, as_page=True)
        if not _equal(self.access.cookie, _cookie(headers, self.access.cookie_name)):
            return _refuse(NO_COOKIE, as_page=visit)
        if path.startswith("/api/") and not _equal(self.access.key, headers.get(KEY_HEADER, "")):
            return _refuse(NO_KEY)
        return None

    def _welcome(self) -> Response:
        response = HTMLResponse(WELCOME.format(key=escape(self.access.key)))
        response.set_cookie(self.access.cookie_name, self.access.cookie, httponly=True, samesite="strict", path="/")
        return response


def _equal(secret: str, given: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _refuse(message: str, *, as_page: bool = False) -> Response:
    if as_page:
        return HTMLResponse(REFUSAL.format(message=escape(message)), status_code=403)
    return JSONResponse({"error": message}, status_code=403)


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value
