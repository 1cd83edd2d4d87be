"""Ways to spoil a file: of its bytes, of the numbers in its header, and of what lies inside its wrapping.

A zip, a gzip stream or a PNG guards its content with checksums, so that bytes flipped from outside never reach the
reader behind. `spoiled` therefore opens the wrapping too, spoils one part, and closes it with checksums that fit.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from synthsieve.io.tensors import signed

HUGE = (2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**40, 2**63, 10**30, -(10**18), 0.5, 1e308, float("nan"), float("inf"), "", "x", "-1", "\0",
    "\ud800", "é" * 300, "../../etc/passwd", "<script>", [], {}, [None], {"": {}}, [[[]]], [1, "a", None],
)  # fmt: skip
WORDS = (
    b"\0",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"[" * 3000,
    b"{'descr':",
    b'"',
    b"\n",
    b",",
    b"=",
    b"9" * 5000,
    b"-",
    b"1e999",
)


def spoiled(data: bytes, random: Random) -> bytes:
    """The same file with one to four faults."""
    for _ in range(random.randint(1, 4)):
        ways = [spoil_bytes, *(way for magic, way in _WRAPPED.items() if data.startswith(magic))]
        if data[:1] in (b"{", b"["):
            ways.append(spoil_json)
        if _holds_header(data):
            ways.append(spoil_safetensors)
        data = _one(ways, random)(data, random)
    return data


def spoil_bytes(data: bytes, random: Random) -> bytes:
    """Flip, cut, repeat, insert, or write a huge number over some bytes."""
    return _one(_PLAIN, random)(data, random)


def spoil_json(data: bytes, random: Random) -> bytes:
    """JSON, or lines of it, with one value changed, added or taken away; anything else has its bytes spoiled."""
    try:
        lines = [json.loads(line) for line in ([data] if _is_json(data) else data.splitlines())]
    except (ValueError, RecursionError):
        return spoil_bytes(data, random)
    if not lines:
        return data
    place = random.randrange(len(lines))
    lines[place] = _spoiled_value(lines[place], random)
    return b"\n".join(json.dumps(line).encode() for line in lines)


def spoil_zip(data: bytes, random: Random) -> bytes:
    """One member spoiled, lost, renamed or doubled; checksums fit."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except Exception:
        return spoil_bytes(data, random)
    if not members:
        return spoil_bytes(data, random)
    place = random.randrange(len(members))
    name, content = members[place]
    what = random.randrange(8)
    if what == 0:
        del members[place]
    elif what == 1:
        members[place] = (_one(("../evil", "y", "x.npy", "", "header.npy"), random), content)
    else:
        members[place] = (name, (spoil_npy if what < 6 else spoil_bytes)(content, random))
    stream = io.BytesIO()
    packing = _one((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED), random)
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, packing)
    return stream.getvalue()


def spoil_npy(data: bytes, random: Random) -> bytes:
    """A .npy whose header tells another type or shape than its bytes have."""
    if not data.startswith(b"\x93NUMPY\x01") or len(data) < 12:
        return spoil_bytes(data, random)
    length = struct.unpack("<H", data[8:10])[0]
    body = data[10 + length :]
    descr = _one(("|O", "<f8", "<f4", "|u1", "<i8", "<U0", "|S0", "<U7", "|V3", "<M8[s]", "<c16", "|b1", ">f2"), random)
    sides = [_one((0, 1, 2, 3, 40, -1, *HUGE), random) for _ in range(random.randint(0, 4))]
    if random.random() < 0.3:  # a claim that the bytes can just fill
        sides = [len(body)]
    shape = "(" + "".join(f"{side}, " for side in sides) + ")"
    text = f"{{'descr': '{descr}', 'fortran_order': {random.random() < 0.5}, 'shape': {shape}, }}\n".encode()
    if random.random() < 0.2:
        text = spoil_bytes(text, random)[:60_000]
    return data[:8] + struct.pack("<H", len(text)) + text + body


def spoil_gzip(data: bytes, random: Random) -> bytes:
    """What is inside spoiled, then packed again."""
    try:
        content = gzip.decompress(data)
    except Exception:
        return spoil_bytes(data, random)
    return gzip.compress(spoil_bytes(content, random), mtime=0)


def spoil_png(data: bytes, random: Random) -> bytes:
    """One chunk spoiled, lost or doubled; its checksum fits."""
    chunks, at = [], 8
    while at + 12 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    if not chunks:
        return spoil_bytes(data, random)
    place = random.randrange(len(chunks))
    name, content = chunks[place]
    what = random.randrange(5)
    if what == 0:
        del chunks[place]
    elif what == 1:
        chunks.insert(place, (_one((b"IHDR", b"PLTE", b"tRNS", b"zTXt", b"iCCP", b"acTL", b"fcTL"), random), content))
    elif name == b"IDAT":
        chunks[place] = (name, zlib.compress(spoil_bytes(bytes(200), random)))
    else:
        chunks[place] = (name, spoil_bytes(content, random))
    packed = b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )
    return data[:8] + packed


def spoil_safetensors(data: bytes, random: Random) -> bytes:
    """A safetensors file whose header says something else: of its tensors, or in the JSON that is ours."""
    (length,) = struct.unpack("<Q", data[:8])
    try:
        header = json.loads(data[8 : 8 + length])
        ours = json.loads(header["__metadata__"]["synthsieve"])
        ours.pop("header_sha256", None)
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError):
        return spoil_bytes(data, random)
    body = data[8 + length :]
    if random.random() < 0.7:
        ours = _spoiled_value(ours, random)
        if isinstance(ours, dict) and random.random() < 0.9:  # with a right checksum, or it gets no further
            header["__metadata__"]["synthsieve"] = signed(json.dumps(ours))
        else:
            header["__metadata__"]["synthsieve"] = json.dumps(ours)
    else:
        name = _one([name for name in header if name != "__metadata__"] or ["__metadata__"], random)
        what = random.randrange(4)
        if what == 0:
            header[name] = _spoiled_value(header[name], random)
        elif what == 1 and "dtype" in header[name]:
            header[name]["dtype"] = _one(("BF16", "F16", "I32", "U8", "F64", "BOOL", "F8_E4M3", "C64"), random)
        elif what == 2:
            header[f"{name}x"] = header.pop(name)
        else:
            del header[name]
        header = _with_right_digest(header, body)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def _with_right_digest(header: dict[str, Any], body: bytes) -> dict[str, Any]:
    """The checksum of what the header now names, as the program reckons it: only so does it get any further."""
    try:
        digest = hashlib.sha256()
        for name in sorted(name for name in header if name != "__metadata__"):
            start, end = header[name]["data_offsets"]
            digest.update(name.encode())
            digest.update(body[start:end])
        ours = json.loads(header["__metadata__"]["synthsieve"])
        ours.pop("header_sha256", None)
        header["__metadata__"]["synthsieve"] = signed(json.dumps({**ours, "sha256": digest.hexdigest()}))
    except (KeyError, TypeError, ValueError):
        pass
    return header


def _spoiled_value(value: Any, random: Random) -> Any:
    """One value somewhere within changed, added or taken away."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = _one(list(value), random)
        if random.random() < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        if random.random() < 0.05:
            return {**value, "surplus": _one(ODD_VALUES, random)}
        return {**value, key: _spoiled_value(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.9:
        place = random.randrange(len(value))
        if random.random() < 0.1:
            return value[:place]
        return [*value[:place], _spoiled_value(value[place], random), *value[place + 1 :]]
    if isinstance(value, str) and value and random.random() < 0.3:
        return spoil_bytes(value.encode("utf-8", "replace"), random).decode("utf-8", "replace")
    return _one(ODD_VALUES, random)


def _flip(data: bytes, random: Random) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randint(0, len(data))]


def _splice(data: bytes, random: Random) -> bytes:
    """A piece taken out, or put in again somewhere else."""
    start, end = sorted(random.randint(0, len(data)) for _ in range(2))
    if random.random() < 0.5:
        return data[:start] + data[end:]
    to = random.randint(0, len(data))
    return data[:to] + data[start : min(end, start + 2000)] + data[to:]


def _insert(data: bytes, random: Random) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + _one(WORDS, random) + data[at:]


def _huge_number(data: bytes, random: Random) -> bytes:
    """A huge whole number written over some bytes; most often near the head, where claims stand, or near the end."""
    width, order = _one(("H", "I", "Q"), random), _one("<>", random)
    size = struct.calcsize(width)
    if len(data) < size:
        return data
    at = random.randint(0, len(data) - size)
    if random.random() < 0.6:
        at = min(at, random.randint(0, 64)) if random.random() < 0.5 else max(at, len(data) - size - 64)
    number = _one(HUGE, random) & (256**size - 1)
    return data[:at] + struct.pack(order + width, number) + data[at + size :]


def _larger_digits(data: bytes, random: Random) -> bytes:
    """A run of digits made a larger number."""
    places = [i for i, byte in enumerate(data[:4000]) if 48 <= byte <= 57]
    if not places:
        return _flip(data, random)
    at = _one(places, random)
    return data[:at] + str(_one(HUGE, random)).encode() + data[at + 1 :]


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _holds_header(data: bytes) -> bool:
    """Whether it looks like a safetensors file: the length of a JSON header, then that."""
    return len(data) > 9 and data[8:9] == b"{" and struct.unpack("<Q", data[:8])[0] <= len(data) - 8


def _one(choices: Any, random: Random) -> Any:
    return choices[random.randrange(len(choices))]


Way = Callable[[bytes, Random], bytes]
_PLAIN: tuple[Way, ...] = (_flip, _cut, _splice, _insert, _huge_number, _larger_digits)
_WRAPPED: dict[bytes, Way] = {
    b"PK\x03\x04": spoil_zip,
    b"\x1f\x8b": spoil_gzip,
    b"\x89PNG": spoil_png,
    b"\x93NUMPY": spoil_npy,
}
