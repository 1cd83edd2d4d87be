"""Only the gallery's own pages have access, and only to the package's static files and the API."""

import http.client
import socket
import threading
import time
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from starlette.testclient import TestClient

from synthsieve.errors import ConfigError
from synthsieve.results.gallery import server
from synthsieve.results.gallery.api import GET, POST
from synthsieve.results.gallery.security import KEY_HEADER, Access, Guard, new_secret
from tests.errors import raises
from tests.results.gallery.conftest import ORIGIN, PORT


def test_no_access_without_the_token(stranger, app):
    for path in ("/", "/static/main.js", "/api/info", "/api/order", "/nowhere", "/?token=", "/?token=wrong"):
        answer = stranger.get(path)
        assert answer.status_code == 403, path
        assert "token" in answer.text or "address" in answer.text
        assert app.access.key not in answer.text
    assert stranger.post("/api/reject", json={"rows": [0], "rejected": True}).status_code == 403
    assert stranger.get("/", headers={"Cookie": f"synthsieve-{PORT}=wrong"}).status_code == 403
    api = app.access.new_address().replace("/?", "/api/info?")
    assert stranger.get(api).status_code == 403  # it opens the page alone
    assert stranger.get("/", headers={"Cookie": 'x="'}).status_code == 403


def test_an_address_works_once(stranger, app):
    address = app.access.new_address()
    prefetched = stranger.get(address, headers={"Sec-Purpose": "prefetch;prerender"})
    assert prefetched.status_code == 403  # prefetching does not use the token up
    assert stranger.get(address).status_code == 200
    again = stranger.get(address)
    assert again.status_code == 403
    assert again.headers["content-type"].startswith("text/html")
    assert "works for a single visit" in again.text
    assert "press Enter in the terminal" in again.text
    assert stranger.get(app.access.new_address()).status_code == 200


def test_the_token_is_exchanged_for_a_cookie_and_a_key(stranger, app):
    address = app.access.new_address()
    (token,) = parse_qs(urlsplit(address).query)["token"]
    answer = stranger.get(address)
    cookie = answer.headers["set-cookie"]
    assert f"synthsieve-{PORT}={app.access.cookie}" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert len({token, app.access.cookie, app.access.key}) == 3
    for secret in (token, app.access.cookie):
        assert secret not in answer.text
    assert f'data-key="{app.access.key}"' in answer.text
    assert token not in str(answer.headers)
    assert stranger.get("/static/enter.js").status_code == 200


def test_the_cookie_alone_gives_no_data(client, app, out):
    """All ports of a host share cookies: another user's server may have seen ours."""
    thief = TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN})
    thief.cookies.set(app.access.cookie_name, app.access.cookie)
    page = thief.get("/")
    assert page.status_code == 200
    assert app.access.key not in page.text
    for key in (None, "", "wrong", app.access.cookie):
        headers = {} if key is None else {KEY_HEADER: key}
        for name in (*GET, "nowhere"):
            answer = thief.get(f"/api/{name}", headers=headers)
            assert answer.status_code == 403, name
            assert "no key" in answer.json()["error"]
        for name in POST:
            assert thief.post(f"/api/{name}", json={"rows": [0], "rejected": True}, headers=headers).status_code == 403
    assert not (out / "rejections.json").exists()
    assert client.get("/api/info").status_code == 200
    client.cookies.clear()
    assert client.get("/api/info").status_code == 403  # the key alone does not suffice


def test_secrets_are_long_and_distinct():
    assert len({new_secret() for _ in range(100)}) == 100
    assert len(new_secret()) >= 43
    access = Access(PORT)
    assert access.key not in repr(access)
    assert access.cookie not in repr(access)


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "", "localhost.at"]
)
def test_other_host_names_are_refused(client, host):
    assert client.get("/api/info", headers={"Host": host}).status_code == 403
    assert client.get("/api/info", headers={"Host": f"localhost:{PORT}"}).status_code == 200


def test_other_sites_can_neither_read_nor_write(client, app):
    rejection = {"rows": [0], "rejected": True}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", f"https://127.0.0.1:{PORT}", ""):
        assert client.post("/api/reject", json=rejection, headers={"Origin": origin}).status_code == 403
    for site in ("cross-site", "same-site"):
        assert client.get("/api/info", headers={"Sec-Fetch-Site": site}).status_code == 403
        assert client.post("/api/reject", json=rejection, headers={"Sec-Fetch-Site": site}).status_code == 403
    # A link on another page may lead here: the browser then withholds the strict cookie until our page requests data.
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get(app.access.new_address(), headers=link).status_code == 200
    assert client.get("/api/info", headers=link).status_code == 403
    allowed = client.get("/api/info", headers={"Origin": "http://evil.example"})
    assert "access-control-allow-origin" not in allowed.headers


def test_security_headers_of_every_response(client, stranger):
    answers = [client.get("/"), client.get("/api/info"), client.get("/api/order?sort=no"), client.get("/nowhere")]
    for answer in (*answers, stranger.get("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"


def test_the_page_has_no_inline_script_or_style(client):
    page = client.get("/").text
    assert page.count("<script") == page.count('<script type="module" src="/static/main.js"></script>') == 1
    assert "<style" not in page
    assert "style=" not in page
    assert " onclick" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_only_get_and_post_are_allowed(client):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/api/info").status_code == 405
    assert client.get("/api/reject").status_code == 404
    assert client.head("/").status_code == 200


PATHS = [
    "/static/../server.py",
    "/static/%2e%2e/server.py",
    "/static/..%2fserver.py",
    "/static/%2e%2e%2f%2e%2e%2fpyproject.toml",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "//etc/passwd",
    "/etc/passwd",
    "/static/main.js%00.png",
    "/static/..\\server.py",
    "/table.json",
    "/seed-0/pretrained/run.json",
    "/static/",
    "/static",
    "/api/",
    "/api/../table.json",
]


@pytest.fixture
def served(session):
    """A server on a socket, with its `access`."""
    listener = server.listen(0)
    access, ready = Access(listener.getsockname()[1]), threading.Event()
    running = server.new_server(server.guarded_app(session, access), ready.set)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    assert ready.wait(300)
    yield access
    running.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def raw(served):
    """path -> status and content, without normalisation of the path."""

    def get(path):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=300)
        connection.putrequest("GET", path, skip_accept_encoding=True)
        connection.putheader("Cookie", f"{served.cookie_name}={served.cookie}")
        connection.putheader(KEY_HEADER, served.key)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()

    return get


def post_head(access, length):
    return (
        f"POST /api/reject HTTP/1.1\r\nHost: 127.0.0.1:{access.port}\r\nOrigin: http://127.0.0.1:{access.port}\r\n"
        f"Cookie: {access.cookie_name}={access.cookie}\r\n{KEY_HEADER}: {access.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_disconnecting_clients_cause_no_errors(served, raw, capfd):
    for sent in (post_head(served, 1000) + b'{"rows"', post_head(served, 1000), b"GET / HT"):
        with socket.create_connection(("127.0.0.1", served.port)) as gone:
            gone.sendall(sent)
            time.sleep(0.1)
    assert raw("/api/info")[0] == 200
    time.sleep(0.2)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("half", [b"", b"GET / HTTP/1.1\r\nHost: x", None])
def test_incomplete_requests_time_out(served, monkeypatch, half):
    monkeypatch.setattr(server, "REQUEST_TIMEOUT", 0.3)
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as slow:
        slow.sendall(post_head(served, 1000) if half is None else half)
        answer = slow.recv(65_536)
    if half is None:
        assert answer.startswith(b"HTTP/1.1 408")
    else:
        assert answer == b""


def test_no_path_leads_outside_the_static_files(raw, out):
    (out / "leak.js").symlink_to("/etc/hostname")
    assert raw("/static/main.js")[0] == 200
    for path in (*PATHS, "/leak.js", "/static/leak.js", f"/static/{quote(str(out / 'table.json'), safe='')}"):
        status, content = raw(path)
        assert status in (400, 403, 404), path
        assert b"root:" not in content
        assert b"synthsieve.errors" not in content


def test_listens_on_loopback_and_reports_a_used_port():
    first = server.listen(None)
    try:
        host, port = first.getsockname()
        assert host == "127.0.0.1"
        with raises(ConfigError, "port-unavailable"):
            server.listen(port)
        other = server.listen(None)  # the default port is in use: another one is free
        assert other.getsockname()[1] != port
        other.close()
    finally:
        first.close()


def test_websockets_are_closed(session):
    from starlette.websockets import WebSocketDisconnect

    client = TestClient(Guard(None, Access(PORT)), base_url=ORIGIN)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass


def test_ambiguous_hosts_are_refused(client):
    for host in (
        f"user@127.0.0.1:{PORT}",
        f"127.0.0.1:{PORT}.evil.example",
        f"[::1]:{PORT}",
        f"0.0.0.0:{PORT}",
        f"127.1:{PORT}",
    ):
        assert client.get("/api/info", headers={"Host": host}).status_code == 403, host
    twice = [("Host", f"127.0.0.1:{PORT}"), ("Host", "evil.example")]
    assert client.get("/api/info", headers=twice).status_code == 403


def test_cross_site_forms_change_nothing(client, out):
    """Without a preflight request, other pages can send forms and text, but not JSON with our Origin."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = client.post("/api/reject", content='{"rows": [0], "rejected": true}', headers={"Content-Type": kind})
        assert answer.status_code == 400
        assert "application/json" in answer.json()["error"]
    foreign = {"Origin": "http://evil.example", "Content-Type": "application/json"}
    assert client.post("/api/reject", content='{"rows": [0], "rejected": true}', headers=foreign).status_code == 403
    del client.headers["Origin"]
    assert client.post("/api/reject", json={"rows": [0], "rejected": True}).status_code == 403
    assert not (out / "rejections.json").exists()


@pytest.mark.parametrize("body", [b"", b"[" * 100_000, b"{" * 100_000, b"\xff", b"null", b"[]", b'"x"', b"1e999"])
def test_invalid_bodies_are_refused(client, body):
    answer = client.post("/api/reject", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]
