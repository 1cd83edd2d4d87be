"""Downloads, against a file server on loopback: whole and checked, or one clear sentence and no file."""

from __future__ import annotations

import hashlib
import http.server
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import made_up
import numpy as np
import pytest

from synthsieve.data import idx
from synthsieve.data.download import MNIST, SVHN, Publication, RemoteFile, cache_dir, fetch, obtain
from synthsieve.data.sources import load
from synthsieve.errors import DownloadError
from synthsieve.progress import Silent

CONTENT = np.random.default_rng(0).bytes(3_000_000)
FILE = RemoteFile("a.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


@dataclass
class Server:
    """What lies at each address, and how the server misbehaves."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: int | None = None
    ranges: bool = True
    announces: bool = True
    status: int = 404
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "SYNTHSIEVE_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    plan = Server(files={"/a.bin": CONTENT})

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            plan.asked.append((self.path, wanted))
            if self.path not in plan.files:
                return self.send_error(plan.status)
            data, start = plan.files[self.path], 0
            if wanted and plan.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            else:
                self.send_response(200)
            if plan.announces:
                self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self.wfile.write(data[start : plan.cut_after])
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
    return fetch(file, folder, base_url=server.url, progress=Silent())


def refused(server: Server, folder: Path, message: str) -> None:
    with pytest.raises(DownloadError, match=message) as error:
        get(server, folder)
    assert "\n" not in str(error.value)
    assert not (folder / FILE.name).exists()


def test_the_right_file(server: Server, tmp_path: Path) -> None:
    path = get(server, tmp_path / "new" / "folder")
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["a.bin"]


def test_progress_is_told_up_to_the_last_byte(server: Server, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    class Listening(Silent):
        def update(self, done: int, total: int, message: str = "") -> None:
            told.append((done, total))

    fetch(FILE, tmp_path, base_url=server.url, progress=Listening())
    assert told[0] == (0, FILE.size)
    assert told[-1] == (FILE.size, FILE.size)
    assert told == sorted(told)


def test_a_wrong_checksum(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = CONTENT[:-1] + b"?"
    refused(server, tmp_path, "is not the published a.bin .it has SHA-256")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [-1, 1])
def test_another_size(server: Server, change: int, tmp_path: Path) -> None:
    server.files["/a.bin"] = CONTENT[:-1] if change < 0 else CONTENT + b"?"
    refused(server, tmp_path, "is not the published a.bin .it has .* instead of")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("announces", [True, False])
def test_a_cut_connection_is_resumed(server: Server, announces: bool, tmp_path: Path) -> None:
    server.cut_after, server.announces = 1_200_000, announces
    refused(server, tmp_path, r"was cut after 1,200,000 of 3,000,000 bytes: run the same command again")
    server.cut_after = None
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert [asked for _, asked in server.asked] == [None, "bytes=1200000-"]
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_a_server_that_cannot_resume_starts_over(server: Server, tmp_path: Path) -> None:
    server.cut_after, server.ranges = 1_200_000, False
    refused(server, tmp_path, "was cut")
    server.cut_after = None
    assert get(server, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("size", [1000, len(CONTENT), len(CONTENT) + 5])
def test_a_foreign_partial_file_does_no_lasting_harm(server: Server, size: int, tmp_path: Path) -> None:
    (tmp_path / "a.bin.partial").write_bytes(bytes(size))
    if size < len(CONTENT):
        refused(server, tmp_path, "is not the published")
    assert get(server, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 500])
def test_a_missing_file(server: Server, status: int, tmp_path: Path) -> None:
    server.files.clear()
    server.status = status
    refused(server, tmp_path, f"answered {status} .*: put a.bin into .* yourself")
    assert list(tmp_path.iterdir()) == []


def test_no_network(server: Server, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        server.url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        refused(server, tmp_path, "could not be fetched from .*refused.*: check the network")
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_none(server: Server, tmp_path: Path) -> None:
    for url in ("nonsense", "http://", "http://[", "file:///etc"):
        server.url = url
        refused(server, tmp_path, "must be an http or https address")


def test_a_folder_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    refused(server, tmp_path / "file" / "folder", "could not be written")


def test_two_at_once(server: Server, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / "a.bin.partial").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        refused(server, tmp_path, "another process is downloading")


@pytest.fixture
def small_mnist(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publication:
    """MNIST's file names with small contents, lying on the server under /mnist."""
    made_up.write_idx(tmp_path / "origin", "train")
    made_up.write_idx(tmp_path / "origin", "t10k")
    files = []
    for file in MNIST.files:
        data = (tmp_path / "origin" / file.name).read_bytes()
        server.files[f"/mnist/{file.name}"] = data
        files.append(RemoteFile(file.name, len(data), hashlib.sha256(data).hexdigest()))
    small = replace(MNIST, files=tuple(files))
    monkeypatch.setattr(idx, "MNIST", small)
    monkeypatch.setenv("SYNTHSIEVE_MIRROR", server.url)
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path / "cache"))
    return small


@pytest.mark.usefixtures("small_mnist")
def test_mnist_is_fetched_once_into_the_cache(server: Server, tmp_path: Path) -> None:
    first = load("mnist")
    assert len(server.asked) == 4
    assert sorted(p.name for p in (tmp_path / "cache" / "mnist").iterdir()) == sorted(f.name for f in MNIST.files)
    second = load("mnist")
    assert len(server.asked) == 4
    np.testing.assert_array_equal(first.train.x, second.train.x)


@pytest.mark.usefixtures("small_mnist")
def test_a_data_dir_is_looked_in_first_and_filled(server: Server, tmp_path: Path) -> None:
    load("mnist", data_dir=tmp_path / "mine")
    assert (tmp_path / "mine" / "mnist" / "train-images-idx3-ubyte.gz").exists()
    assert not (tmp_path / "cache").exists()
    load("mnist", data_dir=tmp_path / "mine" / "mnist")
    assert len(server.asked) == 4


def test_only_what_is_missing_is_fetched_and_what_is_there_is_taken_as_it_is(
    server: Server, small_mnist: Publication, tmp_path: Path
) -> None:
    made_up.write_idx(tmp_path / "mine", "train", gz=False, n=80)
    dataset = load("mnist", data_dir=tmp_path / "mine")
    assert len(dataset.train) == 80
    assert [path for path, _ in server.asked] == [f"/mnist/{file.name}" for file in small_mnist.files[2:]]


def test_a_base_url_given_outweighs_the_mirror(server: Server, small_mnist: Publication, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="/elsewhere/train-images"):
        obtain(small_mnist, data_dir=tmp_path, progress=Silent(), base_url=f"{server.url}/elsewhere")


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("SYNTHSIEVE_CACHE")
    assert cache_dir().name == "synthsieve"


@pytest.mark.parametrize("publication", [SVHN, MNIST], ids=["svhn", "mnist"])
def test_what_is_published_is_written_down_fully(publication: Publication) -> None:
    for file in publication.files:
        assert len(bytes.fromhex(file.sha256)) == 32
        assert file.size > 0
    assert publication.base_url.startswith("http")
