"""Files of public data sets: found where the user keeps them, in the cache, or fetched from their publishers.

A file that is already there is taken as it is. A fetched one is written to a partial file, resumed after a cut where
the server allows it, checked against its published size and SHA-256, and only then given its name.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from synthsieve.errors import DownloadError
from synthsieve.progress import Progress

BLOCK = 1 << 20
TIMEOUT_SECONDS = 30.0
MOST_SAID = 200  # characters of a server's words


@dataclass(frozen=True)
class RemoteFile:
    """One file of a publisher: its name, exact size in bytes and SHA-256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Publication:
    """The files of one data set and the address they lie under."""

    name: str
    base_url: str
    files: tuple[RemoteFile, ...]


# Sizes and SHA-256 as torchvision's dataset prototypes and TensorFlow Datasets record them for the publisher's files.
SVHN = Publication(
    "svhn",
    "http://ufldl.stanford.edu/housenumbers/",
    (
        RemoteFile("train_32x32.mat", 182040794, "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"),
        RemoteFile("test_32x32.mat", 64275384, "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"),
    ),
)

# The publisher's own address (yann.lecun.com) often refuses; this mirror, which torchvision uses, holds the same bytes.
# Sizes and SHA-256 as TensorFlow Datasets and others record them for the publisher's files.
MNIST = Publication(
    "mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    (
        RemoteFile(
            "train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
        ),
        RemoteFile(
            "train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
        ),
        RemoteFile(
            "t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
        ),
        RemoteFile(
            "t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
        ),
    ),
)


# Sizes and SHA-256 of the publisher's files, as copies of them elsewhere have them too.
ADULT = Publication(
    "adult",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/",
    (
        RemoteFile("adult.data", 3974305, "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        RemoteFile("adult.test", 2003153, "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    ),
)


def cache_dir() -> Path:
    """`$SYNTHSIEVE_CACHE`, or the folder where this platform keeps its users' caches."""
    if given := os.environ.get("SYNTHSIEVE_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "synthsieve"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "synthsieve"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "synthsieve"


def find(publication: Publication, file: RemoteFile, data_dir: Path | None) -> Path | None:
    """The file, plain or gzipped, in `data_dir`, in its folder of the set's name, or in the cache; None if absent."""
    folders = [] if data_dir is None else [Path(data_dir), Path(data_dir) / publication.name]
    names = dict.fromkeys((file.name, file.name.removesuffix(".gz")))
    for folder in (*folders, cache_dir() / publication.name):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    return None


def obtain(
    publication: Publication, *, data_dir: Path | None, progress: Progress, base_url: str | None = None
) -> list[Path]:
    """Every file of `publication`, in order, downloading those found nowhere to `data_dir`/name or to the cache.

    `base_url` replaces the publisher's address; so does $SYNTHSIEVE_MIRROR, which holds a folder for each set.
    """
    if base_url is None and (mirror := os.environ.get("SYNTHSIEVE_MIRROR")):
        base_url = f"{mirror.rstrip('/')}/{publication.name}/"
    base_url = base_url or publication.base_url
    folder = (cache_dir() if data_dir is None else Path(data_dir)) / publication.name
    return [
        find(publication, file, data_dir) or fetch(file, folder, base_url=base_url, progress=progress)
        for file in publication.files
    ]


def fetch(file: RemoteFile, folder: Path, *, base_url: str, progress: Progress) -> Path:
    """Download one file into `folder`: whole and checked, or a `DownloadError` and nothing under its final name."""
    url = f"{base_url.rstrip('/')}/{file.name}"
    _check_address(url)
    final = folder / file.name
    partial = folder / f"{file.name}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(partial) as stream:
            _stream(url, stream, file, progress)
            stream.flush()
            os.fsync(stream.fileno())
            _check(url, partial, file)
            # Not `written_atomically`: the partial file must outlive a cut connection, to be resumed.
            os.replace(partial, final)
    except urllib.error.HTTPError as error:
        raise DownloadError(f"{url} answered {error.code} {_said(error.reason)}: {_otherwise(file, folder)}") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise DownloadError(
            f"{file.name} could not be fetched from {url} ({_said(reason)}): check the network, or "
            f"{_otherwise(file, folder)}"
        ) from None
    except OSError as error:
        raise DownloadError(f"{file.name} could not be written to {folder} ({error}): choose another folder") from None
    finally:
        progress.close()
        if partial.is_file() and partial.stat().st_size == 0:
            partial.unlink()
    return final


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise DownloadError(f"{url} must be an http or https address: correct SYNTHSIEVE_MIRROR, or unset it")


def _said(reason: object) -> str:
    """What a server or the network said, as part of one sentence."""
    return " ".join(str(reason).split())[:MOST_SAID]


def _otherwise(file: RemoteFile, folder: Path) -> str:
    return f"put {file.name} into {folder} yourself"


def _stream(url: str, stream: BinaryIO, file: RemoteFile, progress: Progress) -> None:
    """Append what is missing to `stream`; start over where the server cannot resume."""
    have = stream.seek(0, os.SEEK_END)
    if have >= file.size:
        have = stream.truncate(0)
    request = urllib.request.Request(url, headers={"User-Agent": "synthsieve"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        if response.status != http.client.PARTIAL_CONTENT or not _resumes_at(response, have):
            have = stream.truncate(0)
        stream.seek(have)
        progress.update(have, file.size, file.name)
        # One byte more than the published size is enough to know that the file is another one.
        while have <= file.size and (block := response.read(min(BLOCK, file.size + 1 - have))):
            stream.write(block)
            have += len(block)
            progress.update(have, file.size, file.name)
        if have < file.size and _was_cut(response):
            raise DownloadError(
                f"the connection to {url} was cut after {have:,} of {file.size:,} bytes: run the same command again"
                " to go on from there"
            )


def _resumes_at(response: http.client.HTTPResponse, have: int) -> bool:
    return (response.getheader("Content-Range") or "").startswith(f"bytes {have}-")


def _was_cut(response: http.client.HTTPResponse) -> bool:
    """Whether the server announced more than it sent (`length` is what is still owed), or announced nothing."""
    return response.length is None or response.length > 0


def _check(url: str, partial: Path, file: RemoteFile) -> None:
    """Size and SHA-256, or the partial file is removed and the reader told."""
    digest = hashlib.sha256()
    with partial.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    size = partial.stat().st_size
    if size == file.size and digest.hexdigest() == file.sha256:
        return
    partial.unlink()
    came = f"{size:,} bytes instead of {file.size:,}" if size != file.size else f"SHA-256 {digest.hexdigest()[:12]}..."
    raise DownloadError(
        f"{url} is not the published {file.name} (it has {came}, expected SHA-256 {file.sha256[:12]}...): try again"
        " later, or set SYNTHSIEVE_MIRROR to another address"
    )


@contextmanager
def _locked(partial: Path) -> Iterator[BinaryIO]:
    """The partial file, open for reading and writing by this process alone (where the platform has file locks)."""
    with partial.open("ab") as create:
        create.flush()
    with partial.open("r+b") as stream:
        try:
            import fcntl
        except ImportError:  # Windows: two downloads at once end in a checksum error, nothing worse
            pass
        else:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DownloadError(f"another process is downloading {partial}: wait until it is done") from None
        yield stream
