"""Downloads, from a file server on loopback."""

from __future__ import annotations

import hashlib
import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from synthsieve.data.download import MNIST, SVHN, Publication, RemoteFile, cache_dir, fetch, obtain
from synthsieve.data.registry import load
from synthsieve.data.sources import images
from synthsieve.errors import DownloadError
from synthsieve.io.locks import hold_lock
from synthsieve.io.progress import NullProgress
from tests.data import made_up
from tests.errors import raises

CONTENT = np.random.default_rng(0).bytes(3_000_000)
FILE = RemoteFile("a.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


@dataclass
class Server:
    """What each address serves, and how the server misbehaves."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: int | None = None
    announces: bool = True
    status: int = 404
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "SYNTHSIEVE_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    plan = Server(files={"/a.bin": CONTENT})

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            plan.requests.append(self.path)
            if self.path not in plan.files:
                return self.send_error(plan.status)
            data = plan.files[self.path]
            self.send_response(200)
            if plan.announces:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with suppress(ConnectionError):  # a client that has had enough
                self.wfile.write(data[: plan.cut_after])
            return None

        def log_message(self, *_: object) -> None:
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    plan.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield plan
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def get(server: Server, folder: Path, file: RemoteFile = FILE) -> Path:
    return fetch(file, folder, base_url=server.url, progress=NullProgress())


def refused(server: Server, folder: Path, code: str) -> str:
    """The message of the error, which must leave no file behind."""
    with raises(DownloadError, code) as error:
        get(server, folder)
    assert "\n" not in str(error.value)
    assert not folder.is_dir() or not list(folder.iterdir())
    return str(error.value)


def test_download(server: Server, tmp_path: Path) -> None:
    path = get(server, tmp_path / "new" / "folder")
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["a.bin"]


def test_progress_reaches_the_last_byte(server: Server, tmp_path: Path) -> None:
    updates: list[tuple[int, int]] = []

    class Recorder(NullProgress):
        def update(self, done: int, total: int, message: str = "") -> None:
            updates.append((done, total))

    fetch(FILE, tmp_path, base_url=server.url, progress=Recorder())
    assert updates[0] == (0, FILE.size)
    assert updates[-1] == (FILE.size, FILE.size)
    assert updates == sorted(updates)


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"?", CONTENT[:-1], CONTENT + b"?", CONTENT * 3])
def test_wrong_content(server: Server, content: bytes, tmp_path: Path) -> None:
    server.files["/a.bin"] = content
    assert "a.bin" in refused(server, tmp_path, "wrong-checksum")


@pytest.mark.parametrize(("announces", "code"), [(True, "network"), (False, "wrong-checksum")])
def test_cut_connection(server: Server, announces: bool, code: str, tmp_path: Path) -> None:
    server.cut_after, server.announces = 1_200_000, announces
    refused(server, tmp_path, code)
    server.cut_after = None
    assert get(server, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 500])
def test_missing_file(server: Server, status: int, tmp_path: Path) -> None:
    server.files.clear()
    server.status = status
    assert f"({status} " in refused(server, tmp_path, "http-status")


def test_no_network(server: Server, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        server.url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        refused(server, tmp_path, "network")


@pytest.mark.parametrize("url", ["nonsense", "http://", "http://[", "file:///etc"])
def test_invalid_address(server: Server, url: str, tmp_path: Path) -> None:
    server.url = url
    refused(server, tmp_path, "bad-address")


def test_unwritable_folder(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    refused(server, tmp_path / "file" / "folder", "unwritable")


def test_two_downloads_of_one_file(server: Server, tmp_path: Path) -> None:
    with hold_lock(tmp_path / ".a.bin.lock", DownloadError("")), raises(DownloadError, "locked"):
        get(server, tmp_path)


@pytest.fixture
def small_mnist(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publication:
    """MNIST's file names with small contents, served under /mnist."""
    made_up.write_idx(tmp_path / "origin", "train")
    made_up.write_idx(tmp_path / "origin", "t10k")
    files = []
    for file in MNIST.files:
        data = (tmp_path / "origin" / file.name).read_bytes()
        server.files[f"/mnist/{file.name}"] = data
        files.append(RemoteFile(file.name, len(data), hashlib.sha256(data).hexdigest()))
    small = replace(MNIST, files=tuple(files))
    monkeypatch.setattr(images, "MNIST", small)
    monkeypatch.setenv("SYNTHSIEVE_MIRROR", server.url)
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path / "cache"))
    return small


@pytest.mark.usefixtures("small_mnist")
def test_mnist_is_cached(server: Server, tmp_path: Path) -> None:
    first = load("mnist")
    assert len(server.requests) == 4
    assert sorted(p.name for p in (tmp_path / "cache" / "mnist").iterdir()) == sorted(f.name for f in MNIST.files)
    second = load("mnist")
    assert len(server.requests) == 4
    np.testing.assert_array_equal(first.train.x, second.train.x)


@pytest.mark.usefixtures("small_mnist")
def test_data_dir(server: Server, tmp_path: Path) -> None:
    load("mnist", data_dir=tmp_path / "data")
    assert (tmp_path / "data" / "mnist" / "train-images-idx3-ubyte.gz").exists()
    assert not (tmp_path / "cache").exists()
    load("mnist", data_dir=tmp_path / "data" / "mnist")
    assert len(server.requests) == 4


def test_only_missing_files_are_downloaded(server: Server, small_mnist: Publication, tmp_path: Path) -> None:
    made_up.write_idx(tmp_path / "data", "train", gz=False, n=80)
    dataset = load("mnist", data_dir=tmp_path / "data")
    assert len(dataset.train) == 80
    assert server.requests == [f"/mnist/{file.name}" for file in small_mnist.files[2:]]


def test_base_url_overrides_the_mirror(server: Server, small_mnist: Publication, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="/elsewhere/train-images"):
        obtain(small_mnist, data_dir=tmp_path, progress=NullProgress(), base_url=f"{server.url}/elsewhere")


def test_cache_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("SYNTHSIEVE_CACHE")
    assert cache_dir().name == "synthsieve"


@pytest.mark.parametrize("publication", [SVHN, MNIST], ids=["svhn", "mnist"])
def test_checksums_are_complete(publication: Publication) -> None:
    for file in publication.files:
        assert len(bytes.fromhex(file.sha256)) == 32
        assert file.size > 0
    assert publication.base_url.startswith("http")
