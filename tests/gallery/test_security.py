"""Only pages of the gallery itself may ask, and nothing outside its own files can be reached."""

import http.client
import threading
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from tests.gallery.conftest import ORIGIN, PORT, TOKEN

from synthsieve.errors import ConfigError
from synthsieve.gallery import server
from synthsieve.gallery.security import Guard, new_token


def test_nothing_is_told_without_the_token(stranger):
    for path in ("/", "/static/main.js", "/api/about", "/api/order", "/nowhere", "/?token=", "/?token=wrong"):
        answer = stranger.get(path)
        assert answer.status_code == 403, path
        assert "token" in answer.json()["error"]
    assert stranger.post("/api/mark", json={"rows": [0], "bad": True}).status_code == 403
    assert stranger.get("/", headers={"Cookie": f"synthsieve-{PORT}=wrong"}).status_code == 403
    assert stranger.get("/api/about", params={"token": TOKEN}).status_code == 403  # it opens the page alone
    assert stranger.get("/", headers={"Cookie": 'x="'}).status_code == 403


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(stranger):
    answer = stranger.get("/", params={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert f"synthsieve-{PORT}={TOKEN}" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert 'content="0;url=/"' in answer.text  # the token leaves the address bar
    assert stranger.get("/").status_code == 200
    assert stranger.get("/api/about").status_code == 200


def test_tokens_are_long_and_never_the_same():
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) >= 43


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "", "localhost.at"]
)
def test_a_foreign_name_that_points_here_is_refused(client, host):
    assert client.get("/api/about", headers={"Host": host}).status_code == 403
    assert client.get("/api/about", headers={"Host": f"localhost:{PORT}"}).status_code == 200


def test_another_sites_page_can_neither_change_nor_read(client):
    mark = {"rows": [0], "bad": True}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", f"https://127.0.0.1:{PORT}", ""):
        assert client.post("/api/mark", json=mark, headers={"Origin": origin}).status_code == 403
    for site in ("cross-site", "same-site"):
        assert client.get("/api/about", headers={"Sec-Fetch-Site": site}).status_code == 403
        assert client.post("/api/mark", json=mark, headers={"Sec-Fetch-Site": site}).status_code == 403
    # A link on another page may lead here: the browser then holds the strict cookie back until our page asks.
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", params={"token": TOKEN}, headers=link).status_code == 200
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
def raw(room):
    """path -> status and content, the path sent as it is; a real server on a real socket."""
    listener = server.listen(0)
    port = listener.getsockname()[1]
    ready, app = threading.Event(), server.guarded_app(room, token=TOKEN, port=port)
    running = server._Server(server.uvicorn.Config(app, log_config=None), ready.set)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    assert ready.wait(300)

    def get(path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        connection.putrequest("GET", path, skip_accept_encoding=True)
        connection.putheader("Cookie", f"synthsieve-{port}={TOKEN}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()

    yield get
    running.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


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
        first.listen()
        with pytest.raises(ConfigError, match=f"port {port} is taken: give another with --port"):
            server.listen(port)
        other = server.listen(None)  # the usual port is taken: another is free
        assert other.getsockname()[1] != port
        other.close()
    finally:
        first.close()


def test_websockets_are_closed(room):
    from starlette.websockets import WebSocketDisconnect

    client = TestClient(Guard(None, TOKEN, PORT), base_url=ORIGIN)
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
