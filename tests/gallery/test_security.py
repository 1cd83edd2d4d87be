"""Only pages of the gallery itself may ask, and nothing outside its own files can be reached."""

import http.client
import socket
import threading
import time
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from starlette.testclient import TestClient
from tests.gallery.conftest import ORIGIN, PORT

from synthsieve.errors import ConfigError
from synthsieve.gallery import server
from synthsieve.gallery.security import KEY_HEADER, Access, Guard, new_secret


def test_nothing_is_told_without_the_token(stranger, app):
    for path in ("/", "/static/main.js", "/api/about", "/api/order", "/nowhere", "/?token=", "/?token=wrong"):
        answer = stranger.get(path)
        assert answer.status_code == 403, path
        assert "token" in answer.text or "address" in answer.text
        assert app.access.key not in answer.text
    assert stranger.post("/api/mark", json={"rows": [0], "bad": True}).status_code == 403
    assert stranger.get("/", headers={"Cookie": f"synthsieve-{PORT}=wrong"}).status_code == 403
    api = app.access.new_address().replace("/?", "/api/about?")
    assert stranger.get(api).status_code == 403  # it opens the page alone
    assert stranger.get("/", headers={"Cookie": 'x="'}).status_code == 403


def test_an_address_opens_the_gallery_once_and_then_says_how_to_get_another(stranger, app):
    address = app.access.new_address()
    looked_ahead = stranger.get(address, headers={"Sec-Purpose": "prefetch;prerender"})
    assert looked_ahead.status_code == 403  # a browser that only looks ahead does not spend it
    assert stranger.get(address).status_code == 200
    again = stranger.get(address)
    assert again.status_code == 403
    assert again.headers["content-type"].startswith("text/html")
    assert "works for a single visit" in again.text
    assert "press Enter in the terminal" in again.text
    assert stranger.get(app.access.new_address()).status_code == 200


def test_the_token_becomes_another_value_that_scripts_and_other_sites_cannot_use(stranger, app):
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


def test_the_cookie_alone_opens_the_page_and_nothing_of_the_data(client, app, out):
    """Cookies are shared by all ports of a host: another user's server may have got hold of ours."""
    thief = TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN})
    thief.cookies.set(app.access.cookie_name, app.access.cookie)
    page = thief.get("/")
    assert page.status_code == 200
    assert app.access.key not in page.text
    for key in (None, "", "wrong", app.access.cookie):
        headers = {} if key is None else {KEY_HEADER: key}
        for name in (*server.QUESTIONS, "nowhere"):
            answer = thief.get(f"/api/{name}", headers=headers)
            assert answer.status_code == 403, name
            assert "this tab has none" in answer.json()["error"]
        for name in server.CHANGES:
            assert thief.post(f"/api/{name}", json={"rows": [0], "bad": True}, headers=headers).status_code == 403
    assert not (out / "marked-bad.json").exists()
    assert client.get("/api/about").status_code == 200
    client.cookies.clear()
    assert client.get("/api/about").status_code == 403  # nor does the key alone


def test_secrets_are_long_and_never_the_same():
    assert len({new_secret() for _ in range(100)}) == 100
    assert len(new_secret()) >= 43
    access = Access(PORT)
    assert access.key not in repr(access)
    assert access.cookie not in repr(access)


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "", "localhost.at"]
)
def test_a_foreign_name_that_points_here_is_refused(client, host):
    assert client.get("/api/about", headers={"Host": host}).status_code == 403
    assert client.get("/api/about", headers={"Host": f"localhost:{PORT}"}).status_code == 200


def test_another_sites_page_can_neither_change_nor_read(client, app):
    mark = {"rows": [0], "bad": True}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", f"https://127.0.0.1:{PORT}", ""):
        assert client.post("/api/mark", json=mark, headers={"Origin": origin}).status_code == 403
    for site in ("cross-site", "same-site"):
        assert client.get("/api/about", headers={"Sec-Fetch-Site": site}).status_code == 403
        assert client.post("/api/mark", json=mark, headers={"Sec-Fetch-Site": site}).status_code == 403
    # A link on another page may lead here: the browser then holds the strict cookie back until our page asks.
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get(app.access.new_address(), headers=link).status_code == 200
    assert client.get("/api/about", headers=link).status_code == 403
    allowed = client.get("/api/about", headers={"Origin": "http://evil.example"})
    assert "access-control-allow-origin" not in allowed.headers


def test_every_answer_carries_the_strict_headers(client, stranger):
    answers = [client.get("/"), client.get("/api/about"), client.get("/api/order?sort=no"), client.get("/nowhere")]
    for answer in (*answers, stranger.get("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"


def test_the_page_has_no_script_or_style_of_its_own(client):
    page = client.get("/").text
    assert page.count("<script") == page.count('<script type="module" src="/static/main.js"></script>') == 1
    assert "<style" not in page
    assert "style=" not in page
    assert " onclick" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_only_get_and_post_are_answered(client):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/api/about").status_code == 405
    assert client.get("/api/mark").status_code == 404
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
    "/seed-0/first-phase/run.json",
    "/static/",
    "/static",
    "/api/",
    "/api/../table.json",
]


@pytest.fixture
def served(room):
    """A real server on a real socket, with its `access`."""
    listener = server.listen(0)
    access, ready = Access(listener.getsockname()[1]), threading.Event()
    running = server.server_of(server.guarded_app(room, access), ready.set)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    assert ready.wait(300)
    yield access
    running.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def raw(served):
    """path -> status and content, the path sent as it is."""

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
        f"POST /api/mark HTTP/1.1\r\nHost: 127.0.0.1:{access.port}\r\nOrigin: http://127.0.0.1:{access.port}\r\n"
        f"Cookie: {access.cookie_name}={access.cookie}\r\n{KEY_HEADER}: {access.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_whoever_leaves_in_the_middle_of_a_request_leaves_no_trace(served, raw, capfd):
    for sent in (post_head(served, 1000) + b'{"rows"', post_head(served, 1000), b"GET / HT"):
        with socket.create_connection(("127.0.0.1", served.port)) as gone:
            gone.sendall(sent)
            time.sleep(0.1)
    assert raw("/api/about")[0] == 200
    time.sleep(0.2)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("half", [b"", b"GET / HTTP/1.1\r\nHost: x", None])
def test_half_a_request_is_not_waited_for_without_end(served, monkeypatch, half):
    monkeypatch.setattr(server, "HALF_REQUEST", 0.3)
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as slow:
        slow.sendall(post_head(served, 1000) if half is None else half)
        answer = slow.recv(65_536)
    if half is None:
        assert answer.startswith(b"HTTP/1.1 408")
    else:
        assert answer == b""


def test_no_path_leads_out_of_the_packages_own_files(raw, out):
    (out / "leak.js").symlink_to("/etc/hostname")
    assert raw("/static/main.js")[0] == 200
    for path in (*PATHS, "/leak.js", "/static/leak.js", f"/static/{quote(str(out / 'table.json'), safe='')}"):
        status, content = raw(path)
        assert status in (400, 403, 404), path
        assert b"root:" not in content
        assert b"synthsieve.errors" not in content


def test_it_listens_on_this_machine_alone_and_says_when_a_port_is_taken():
    first = server.listen(None)
    try:
        host, port = first.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(ConfigError, match=f"port {port} is taken: give another with --port"):
            server.listen(port)
        other = server.listen(None)  # the usual port is taken: another is free
        assert other.getsockname()[1] != port
        other.close()
    finally:
        first.close()


def test_websockets_are_closed(room):
    from starlette.websockets import WebSocketDisconnect

    client = TestClient(Guard(None, Access(PORT)), base_url=ORIGIN)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass


def test_two_hosts_or_one_in_disguise_are_refused(client):
    for host in (
        f"user@127.0.0.1:{PORT}",
        f"127.0.0.1:{PORT}.evil.example",
        f"[::1]:{PORT}",
        f"0.0.0.0:{PORT}",
        f"127.1:{PORT}",
    ):
        assert client.get("/api/about", headers={"Host": host}).status_code == 403, host
    twice = [("Host", f"127.0.0.1:{PORT}"), ("Host", "evil.example")]
    assert client.get("/api/about", headers=twice).status_code == 403


def test_a_form_of_another_site_changes_nothing(client, out):
    """What a page elsewhere can send without asking first: forms and text, never JSON with an Origin of ours."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = client.post("/api/mark", content='{"rows": [0], "bad": true}', headers={"Content-Type": kind})
        assert answer.status_code == 400
        assert "application/json" in answer.json()["error"]
    foreign = {"Origin": "http://evil.example", "Content-Type": "application/json"}
    assert client.post("/api/mark", content='{"rows": [0], "bad": true}', headers=foreign).status_code == 403
    del client.headers["Origin"]
    assert client.post("/api/mark", json={"rows": [0], "bad": True}).status_code == 403
    assert not (out / "marked-bad.json").exists()


@pytest.mark.parametrize("body", [b"", b"[" * 100_000, b"{" * 100_000, b"\xff", b"null", b"[]", b'"x"', b"1e999"])
def test_an_odd_body_is_a_sentence(client, body):
    answer = client.post("/api/mark", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]
