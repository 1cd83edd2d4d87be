"""Small files that ask for much, read one after the other in a process of its own: prints what became of each.

python -m tests.robustness.security.bombs FOLDER
"""

from __future__ import annotations

import gzip
import io
import json
import resource
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.robustness.fuzz.guard import status

MAX_DECODED_BYTES = 4 << 30  # bytes of address space beyond what is loaded: more than any of these may ask for


def png(width: int, height: int, content: bytes) -> bytes:
    """A grey picture that claims its size truly or not."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(content, 9)),
        (b"IEND", b""),
    ]
    packed = (struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def picture(folder: Path, data: bytes) -> str:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "0.png").write_bytes(data)
    return str(folder)


def wav(folder: Path, *, rate: int, claimed: int | None, samples: int = 8000) -> str:
    body = bytes(2 * samples)
    head = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", 36, b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    for name, own_rate, claims in (("a", rate, claimed), ("b", 16000, None), ("c", 16000, None)):
        (folder / name).mkdir()
        own_values = head.replace(struct.pack("<II", rate, 2 * rate), struct.pack("<II", own_rate, 2 * own_rate))
        length = len(body) if claims is None else claims
        (folder / name / "0.wav").write_bytes(own_values + b"data" + struct.pack("<I", length) + body)
    return str(folder)


def packed_npz(folder: Path, shape: tuple[int, ...], content: int) -> str:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("x", "y"):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(stream.getvalue())
                for _ in range(content >> 20):
                    member.write(bytes(1 << 20))
    return str(folder / "a.npz")


def packed_idx(folder: Path) -> str:
    """A hundred bytes claimed, a gigabyte packed behind them."""
    path = folder / "train-images-idx3-ubyte.gz"
    head = b"\0\0\x08\x03" + struct.pack(">III", 1, 10, 10)
    path.write_bytes(gzip.compress(head) + 1024 * gzip.compress(bytes(1 << 20)))
    (folder / "train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + struct.pack(">I", 1) + b"\0")
    return str(path)


def repeated_rows(folder: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "a.parquet"
    pq.write_table(pa.table({f"c{i}": pa.nulls(60_000_000) for i in range(3)}), path)
    return str(path)


def long_texts(folder: Path) -> str:
    """Three thousand rows, each with the same million characters."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3000, np.int32)), pa.array(["9" * 1_000_000]))
    table = pa.table({"c0": np.arange(3000) % 2, "c1": np.zeros(3000), "c2": texts})
    pq.write_table(table, folder / "a.parquet", store_schema=False)
    return str(folder / "a.parquet")


def mat(folder: Path) -> str:
    """A packed matrix that claims four thousand million numbers."""
    flags = struct.pack("<IIII", 6, 8, 9, 0)
    sides = struct.pack("<IIiiii", 5, 16, 32, 32, 3, 2**20)
    name = struct.pack("<HH4s", 1, 1, b"X\0\0\0")
    inner = flags + sides + name + struct.pack("<II", 2, 2**32 - 1) + bytes(1000)
    content = zlib.compress(struct.pack("<II", 14, len(inner)) + inner)
    head = b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    (folder / "a.mat").write_bytes(head + struct.pack("<II", 15, len(content)) + content)
    return str(folder / "a.mat")


def text(folder: Path, name: str, content: str) -> str:
    (folder / name).write_text(content, encoding="utf-8")
    return str(folder / name)


# Each gives what is to be loaded; the label is that of tables.
BOMBS: dict[str, Callable[[Path], str]] = {
    "a PNG that claims 60,000 x 60,000 pixels": lambda at: picture(at, png(60_000, 60_000, bytes(1000))),
    "a PNG of 12,000 x 12,000 pixels in 140 kB": lambda at: picture(at, png(12_000, 12_000, bytes(12_000 * 12_001))),
    "a PNG whose rows never end": lambda at: picture(at, png(8, 8, bytes(200 << 20))),
    "a WAV that claims 18 hours": lambda at: wav(at, rate=8000, claimed=2**30),
    "a WAV of 1 sample a second beside others of 16,000": lambda at: wav(at, rate=1, claimed=None, samples=900),
    "a WAV of more than an hour, by its rate": lambda at: wav(at, rate=1, claimed=None, samples=8000),
    "an NPZ that claims 2^40 rows": lambda at: packed_npz(at, (2**40, 8), 0),
    "an NPZ that claims rows of nothing": lambda at: packed_npz(at, (2**60, 0), 0),
    "an idx file with a gigabyte behind its data": packed_idx,
    "a Parquet file of 60 million equal rows": repeated_rows,
    "a Parquet file of one long text in every row": long_texts,
    "a MAT file that claims 4 GB": mat,
    "a CSV of one endless cell": lambda at: text(at, "a.csv", "c0,c1\n1," + "9" * (20 << 20)),
    "a CSV of a million columns": lambda at: text(at, "a.csv", ",".join(f"c{i}" for i in range(1_000_000)) + "\n"),
}


def outcome(load: Callable[[], Any]) -> str:
    from synthsieve.errors import SynthsieveError

    try:
        load()
    except SynthsieveError as error:
        return f"refused: {error}"
    except BaseException as error:  # what the test is there to see
        return f"{type(error).__name__}: {error}"
    return "read"


def main(folder: Path) -> None:
    from synthsieve.data.registry import load

    outcome(lambda: load("digits"))  # what is imported late
    most = status("VmSize") + MAX_DECODED_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for number, (name, write) in enumerate(BOMBS.items()):
        place = folder / str(number)
        place.mkdir()
        path = write(place)
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        before = status("VmRSS")
        became = outcome(lambda path=path: load(path, label="c0"))  # type: ignore[misc]
        print(json.dumps({"name": name, "became": became, "bytes": status("VmHWM") - before}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
