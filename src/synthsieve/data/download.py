"""Files of public data sets: found in `data_dir` or the cache, or downloaded (by pooch) from their publishers.

An existing file is taken as it is. A downloaded one gets its name only after its SHA-256 has been checked.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from synthsieve.errors import DownloadError
from synthsieve.io.locks import hold_lock
from synthsieve.io.progress import Progress

BLOCK = 1 << 20
TIMEOUT_SECONDS = 30.0
MAX_REASON = 200  # characters of a server's or the network's message


class RemoteFile(NamedTuple):
    """One file of a publisher: its name, exact size in bytes and SHA-256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Publication:
    """The files of one data set and their base address."""

    name: str
    base_url: str
    files: tuple[RemoteFile, ...]


def _publication(name: str, base_url: str, *files: tuple[str, int, str]) -> Publication:
    return Publication(name, base_url, tuple(RemoteFile(*file) for file in files))


# Sizes and SHA-256 as torchvision's dataset prototypes and TensorFlow Datasets record them for the publisher's files.
SVHN = _publication(
    "svhn",
    "http://ufldl.stanford.edu/housenumbers/",
    ("train_32x32.mat", 182040794, "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"),
    ("test_32x32.mat", 64275384, "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"),
)
# The publisher's own address (yann.lecun.com) often refuses; torchvision's mirror serves the same bytes.
# Sizes and SHA-256 as TensorFlow Datasets and others record them for the publisher's files.
MNIST = _publication(
    "mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ("train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    ("train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    ("t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    ("t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)
# Sizes and SHA-256 of the publisher's files, which agree with those of their mirrors.
ADULT = _publication(
    "adult",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/",
    ("adult.data", 3974305, "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
    ("adult.test", 2003153, "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
)


def cache_dir() -> Path:
    """`$SYNTHSIEVE_CACHE`, or the folder where this platform keeps its users' caches."""
    if given := os.environ.get("SYNTHSIEVE_CACHE"):
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("synthsieve"))


def find(publication: Publication, file: RemoteFile, data_dir: Path | None) -> Path | None:
    """The file, plain or gzipped, in `data_dir`, in its subfolder of the set's name, or in the cache; else None."""
    folders = [] if data_dir is None else [Path(data_dir), Path(data_dir) / publication.name]
    for folder in (*folders, cache_dir() / publication.name):
        for name in (file.name, file.name.removesuffix(".gz")):
            if (folder / name).is_file():
                return folder / name
    return None


def obtain(
    publication: Publication, *, data_dir: Path | None, progress: Progress, base_url: str | None = None
) -> list[Path]:
    """Every file of `publication`, in order; missing ones are downloaded to `data_dir`/name or to the cache.

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
    """Download one file into `folder`; a `DownloadError` leaves nothing under its final name."""
    import pooch
    import requests

    url = f"{base_url.rstrip('/')}/{file.name}"
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid:
        advice = "correct SYNTHSIEVE_MIRROR, or unset it"
        raise DownloadError(f"{url} must be an http or https address: {advice}", code="bad-address")
    pooch.get_logger().setLevel("WARNING")

    def download(url: str, target: str, _: object) -> None:
        headers = {"User-Agent": "synthsieve", "Accept-Encoding": "identity"}
        progress.update(0, file.size, file.name)
        with (
            requests.get(url, stream=True, timeout=TIMEOUT_SECONDS, headers=headers) as response,
            open(target, "wb") as stream,
        ):
            response.raise_for_status()
            response.raw.enforce_content_length = True  # the default only since urllib3 2
            for block in response.iter_content(BLOCK):
                stream.write(block)
                if stream.tell() > file.size:
                    raise _wrong_file(file, url)
                progress.update(stream.tell(), file.size, file.name)

    busy = DownloadError(f"another process is downloading {file.name} to {folder}: wait for it", code="locked")
    by_hand = f"put {file.name} into {folder} yourself"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with closing(progress), hold_lock(folder / f".{file.name}.lock", busy):
            pooch.retrieve(url, f"sha256:{file.sha256}", fname=file.name, path=folder, downloader=download)
    except OSError as error:  # those of requests are OSErrors, too
        problems = (
            (requests.HTTPError, "http-status", f"the server refused {url}", by_hand),
            (requests.RequestException, "network", f"{url} cannot be reached", f"check the network, or {by_hand}"),
            (OSError, "unwritable", f"{file.name} could not be written to {folder}", "choose another folder"),
        )
        code, problem, advice = next(rest for kind, *rest in problems if isinstance(error, kind))
        reason = " ".join(str(error).split())[:MAX_REASON]
        raise DownloadError(f"{problem} ({reason}): {advice}", code=code) from None
    except ValueError:  # of pooch, where the hash does not match
        raise _wrong_file(file, url) from None
    return folder / file.name


def _wrong_file(file: RemoteFile, url: str) -> DownloadError:
    return DownloadError(
        f"{url} is not the published file (SHA-256 {file.sha256[:12]}...): try later, or set SYNTHSIEVE_MIRROR",
        code="wrong-checksum",
    )
