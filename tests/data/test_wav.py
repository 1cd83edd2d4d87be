"""Reading .wav files: every width, and everything that can be wrong with one."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile

from synthsieve.data.wav import MOST_BYTES, read_header, read_wav
from synthsieve.errors import DataError

WAVE = np.sin(np.arange(400) / 5) * 0.5


def riff(*chunks: tuple[bytes, bytes], claim: int | None = None) -> bytes:
    """A container; `claim` lies about the size of the last chunk."""
    body = b""
    for name, content in chunks:
        size = claim if claim is not None and name == b"data" else len(content)
        body += struct.pack("<4sI", name, size) + content + b"\0" * (len(content) % 2)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def described(code: int = 1, channels: int = 1, rate: int = 8000, bits: int = 16) -> tuple[bytes, bytes]:
    size = channels * bits // 8
    return b"fmt ", struct.pack("<HHIIHH", code, channels, rate, rate * size % 2**32, size % 2**16, bits)


DATA = (b"data", (WAVE * 32767).astype("<i2").tobytes())


@pytest.mark.parametrize(
    ("dtype", "scale", "error"),
    [
        ("uint8", 128, 0.01),
        ("int16", 32768, 1e-4),
        ("int32", 2.0**31, 1e-6),
        ("float32", 1, 1e-7),
        ("float64", 1, 1e-7),
    ],
)
def test_every_width_gives_the_same_wave(tmp_path: Path, dtype: str, scale: float, error: float) -> None:
    stored = WAVE * scale + (128 if dtype == "uint8" else 0)
    wavfile.write(tmp_path / "a.wav", 11025, stored.astype(dtype))
    wave, rate = read_wav(tmp_path / "a.wav")
    assert rate == 11025
    assert wave.dtype == np.float32
    np.testing.assert_allclose(wave, WAVE, atol=error)


@pytest.mark.parametrize("claim", [0xFFFFFFFF, 0x7FFFFFFF - 36])
def test_a_length_that_was_not_known_when_it_was_written(claim: int, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(riff(described(), DATA, claim=claim))
    np.testing.assert_allclose(read_wav(tmp_path / "a.wav")[0], WAVE, atol=1e-4)


def test_24_bits_extensible_and_other_chunks(tmp_path: Path) -> None:
    words = (WAVE * 2**31).astype("<i4").view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
    plain = described(0xFFFE, bits=24)[1]
    extensible = plain + struct.pack("<HHIH", 22, 24, 4, 1) + b"\0" * 14
    (tmp_path / "a.wav").write_bytes(riff((b"LIST", b"abc"), (b"fmt ", extensible), (b"data", words)))
    np.testing.assert_allclose(read_wav(tmp_path / "a.wav")[0], WAVE, atol=1e-6)


def test_channels_are_averaged(tmp_path: Path) -> None:
    wavfile.write(tmp_path / "a.wav", 8000, np.stack([WAVE, np.zeros_like(WAVE)], axis=1).astype(np.float32))
    np.testing.assert_allclose(read_wav(tmp_path / "a.wav")[0], WAVE / 2, atol=1e-7)
    assert read_header(tmp_path / "a.wav").seconds == len(WAVE) / 8000


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "no .wav file"),
        (b"ID3\x04 an mp3 that was renamed", "no .wav file"),
        (riff(described()), "ends before its sound begins"),
        (riff(DATA), "does not say how"),
        (riff(described(), (b"data", b"")), "holds no sound"),
        (riff(described(), DATA)[:-10], "claims 800 bytes, but only 790 are left"),
        (riff(described(), DATA, claim=0x70000000), "claims 1,879,048,192 bytes"),
        (riff((b"fmt ", b"\x01\0"), DATA), "does not say how"),
        (riff(described(code=2, bits=4), DATA), "plain numbers"),
        (riff(described(bits=12), DATA), "plain numbers"),
        (riff(described(channels=0), DATA), "1 to 64 channels"),
        (riff(described(channels=60000), DATA), "1 to 64 channels"),
        (riff(described(rate=0), DATA), "samples a second"),
        (riff(described(rate=4_000_000_000 % 2**32), DATA), "samples a second"),
        (riff(described(rate=1), (b"data", bytes(10_000))), "may last 3,600 seconds at most, but it claims 5,000"),
        (riff(described(code=3, bits=32), (b"data", np.array([np.nan, 1], "<f4").tobytes())), "must be finite"),
        (riff(described(code=3, bits=64), (b"data", np.array([1e300, 1], "<f8").tobytes())), "must be finite"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_bad_file_is_told_in_one_sentence(tmp_path: Path, content: bytes, match: str) -> None:
    path = tmp_path / "bad.wav"
    path.write_bytes(content)
    with pytest.raises(DataError, match=match) as caught:
        read_wav(path)
    assert "\n" not in str(caught.value)


def test_cut_anywhere_it_is_never_another_error(tmp_path: Path) -> None:
    whole = riff(described(), DATA)
    for length in range(len(whole)):
        (tmp_path / "cut.wav").write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_wav(tmp_path / "cut.wav")


def test_an_enormous_or_absent_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "big.wav").open("wb") as file:
        file.truncate(MOST_BYTES + 1)  # sparse
    with pytest.raises(DataError, match="bytes at most"):
        read_wav(tmp_path / "big.wav")
    with pytest.raises(DataError, match="cannot be read"):
        read_wav(tmp_path / "none.wav")
