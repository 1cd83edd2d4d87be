"""Reading .wav files: whole numbers of 8, 16, 24 or 32 bits and floats of 32 or 64, any number of channels.

The file is a RIFF container: `RIFF`, a size, `WAVE`, then chunks, each a name, a size and its content. Nothing is
allocated by what a header claims; the claim is held against the size of the file first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from synthsieve.data.reasons import brief
from synthsieve.data.sound_format import MOST_RATE
from synthsieve.errors import DataError

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
MOST_BYTES = 1 << 28  # of one sound: an hour of what a phone records
MOST_SECONDS = 3600  # a low rate in a header would else turn a small file into gigabytes at another rate
MOST_CHANNELS = 64
STREAMED = 0x7FFFF000  # a length of about 2^31 or 2^32: written before it was known, as ffmpeg and sox do into a pipe
WIDTHS = {PCM: (8, 16, 24, 32), FLOAT: (32, 64)}


@dataclass(frozen=True)
class WavHeader:
    """What a file says of its sound: samples a second, how each is stored, and where.

    Attributes:
        code: PCM or FLOAT; bits: of one sample of one channel.
        start: the byte at which the samples begin; samples: how many there are, in each of `channels`.
    """

    rate: int
    channels: int
    code: int
    bits: int
    start: int
    samples: int

    @property
    def seconds(self) -> float:
        return self.samples / self.rate


def read_header(path: Path) -> WavHeader:
    """The header of a .wav file, checked against its size."""
    try:
        with path.open("rb") as file:
            return _header(file, path)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({brief(error)}): check that it is there and may be read") from None


def read_wav(path: Path) -> tuple[np.ndarray, int]:
    """A waveform, float32 (samples,), the mean of its channels, and its rate; whole numbers become [-1, 1]."""
    head = read_header(path)
    try:
        with path.open("rb") as file:
            file.seek(head.start)
            raw = file.read(head.samples * head.channels * head.bits // 8)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({brief(error)}): check that it is there and may be read") from None
    with np.errstate(over="ignore"):  # what is too large for float32 is infinite there, and refused
        sound = _samples(raw, head).reshape(-1, head.channels).mean(axis=1, dtype=np.float64).astype(np.float32)
    if not np.isfinite(sound).all():
        raise DataError(f"{path}: every sample must be finite, but NaN or infinity came: repair or remove it")
    return sound, head.rate


def _header(file: BinaryIO, path: Path) -> WavHeader:
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise DataError(f"{path}: a sound may have {MOST_BYTES:,} bytes at most, but it has {size:,}: cut it to pieces")
    head = file.read(12)
    if len(head) < 12 or head[:4] != b"RIFF" or head[8:] != b"WAVE":
        raise DataError(f"{path} is no .wav file (it begins with {head[:4]!r}): convert it to .wav, or remove it")
    format_chunk: bytes | None = None
    while len(chunk := file.read(8)) == 8:
        name, length = struct.unpack("<4sI", chunk)
        start = file.tell()
        if name == b"data" and length >= STREAMED:
            length = size - start
        if start + length > size:
            raise DataError(
                f"{path}: its {_shown(name)} part claims {length:,} bytes, but only {size - start:,} are left:"
                " it is damaged or cut short, fetch it again"
            )
        if name == b"fmt ":
            format_chunk = file.read(min(length, 64))
        elif name == b"data":
            return _described(path, format_chunk, start, length)
        file.seek(start + length + length % 2)
    raise DataError(f"{path} ends before its sound begins: it is damaged or cut short, fetch it again")


def _described(path: Path, chunk: bytes | None, start: int, length: int) -> WavHeader:
    if chunk is None or len(chunk) < 16:
        raise DataError(f"{path} does not say how its sound is stored: it is damaged, fetch it again")
    code, channels, rate, _, _, bits = struct.unpack("<HHIIHH", chunk[:16])
    if code == EXTENSIBLE and len(chunk) >= 26:
        code = struct.unpack("<H", chunk[24:26])[0]
    if bits not in WIDTHS.get(code, ()):
        raise DataError(
            f"{path}: sounds must be plain numbers (8, 16, 24, 32 bits, or 32, 64 as floats), but it is of kind {code}"
            f" with {bits} bits: convert it"
        )
    if not 1 <= channels <= MOST_CHANNELS or not 1 <= rate <= MOST_RATE:
        raise DataError(
            f"{path}: 1 to {MOST_CHANNELS} channels at up to {MOST_RATE:,} samples a second can be read, but it claims"
            f" {channels} at {rate:,}: it is damaged, fetch it again"
        )
    samples = length // (channels * bits // 8)
    if samples == 0:
        raise DataError(f"{path} holds no sound: record it again, or remove it")
    if samples > MOST_SECONDS * rate:
        raise DataError(
            f"{path}: a sound may last {MOST_SECONDS:,} seconds at most, but it claims {samples / rate:,.0f} at"
            f" {rate:,} samples a second: cut it to pieces, or mend its rate"
        )
    return WavHeader(rate, channels, code, bits, start, samples)


def _samples(raw: bytes, head: WavHeader) -> np.ndarray:
    """Floats, (samples x channels,)."""
    if head.code == FLOAT:
        return np.frombuffer(raw, dtype=f"<f{head.bits // 8}")
    if head.bits == 8:  # the only width without a sign
        return (np.frombuffer(raw, dtype=np.uint8).astype(np.float32) - 128) / 128
    if head.bits == 24:
        words = np.zeros((len(raw) // 3, 4), dtype=np.uint8)
        words[:, 1:] = np.frombuffer(raw, dtype=np.uint8).reshape(-1, 3)
        return words.view("<i4")[:, 0].astype(np.float64) / 2.0**31
    return np.frombuffer(raw, dtype=f"<i{head.bits // 8}").astype(np.float64) / 2.0 ** (head.bits - 1)


def _shown(name: bytes) -> str:
    return repr(name.decode("ascii", errors="replace").strip())
