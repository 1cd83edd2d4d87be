"""Reading audio files: every width and format, and what can be wrong with one."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile

from synthsieve.data.formats.audio import MAX_BYTES, SUFFIXES, read_audio, read_header
from synthsieve.errors import DataError
from tests.errors import raises

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
def test_sample_widths(tmp_path: Path, dtype: str, scale: float, error: float) -> None:
    stored = WAVE * scale + (128 if dtype == "uint8" else 0)
    wavfile.write(tmp_path / "a.wav", 11025, stored.astype(dtype))
    wave, rate = read_audio(tmp_path / "a.wav")
    assert rate == 11025
    assert wave.dtype == np.float32
    np.testing.assert_allclose(wave, WAVE, atol=error)


@pytest.mark.parametrize("claim", [0xFFFFFFFF, 0x7FFFFFFF - 36])
def test_streamed_file(claim: int, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(riff(described(), DATA, claim=claim))
    np.testing.assert_allclose(read_audio(tmp_path / "a.wav")[0], WAVE, atol=1e-4)


def test_24_bits_extensible(tmp_path: Path) -> None:
    words = (WAVE * 2**31).astype("<i4").view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
    plain = described(0xFFFE, bits=24)[1]
    extensible = plain + struct.pack("<HHIH", 22, 24, 4, 1) + bytes.fromhex("000000001000800000aa00389b71")
    (tmp_path / "a.wav").write_bytes(riff((b"LIST", b"abc"), (b"fmt ", extensible), (b"data", words)))
    np.testing.assert_allclose(read_audio(tmp_path / "a.wav")[0], WAVE, atol=1e-6)


def test_channels_are_averaged(tmp_path: Path) -> None:
    wavfile.write(tmp_path / "a.wav", 8000, np.stack([WAVE, np.zeros_like(WAVE)], axis=1).astype(np.float32))
    np.testing.assert_allclose(read_audio(tmp_path / "a.wav")[0], WAVE / 2, atol=1e-7)
    assert read_header(tmp_path / "a.wav").seconds == len(WAVE) / 8000


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "damaged-file"),
        (b"ID3\x04 an mp3 that was renamed", "damaged-file"),
        (riff(described()), "damaged-file"),
        (riff(DATA), "damaged-file"),
        (riff(described(), (b"data", b"")), "bad-sound"),
        (riff(described(), DATA)[:-10], "damaged-file"),
        (riff((b"fmt ", b"\x01\0"), DATA), "damaged-file"),
        (riff(described(code=2, bits=4), DATA), "damaged-file"),
        (riff(described(channels=0), DATA), "damaged-file"),
        (riff(described(channels=100), (b"data", bytes(400))), "bad-sound"),
        (riff(described(rate=0), DATA), "bad-sound"),
        (riff(described(rate=500_000), DATA), "bad-sound"),
        (riff(described(rate=1), (b"data", bytes(10_000))), "sound-too-long"),
        (riff(described(code=3, bits=32), (b"data", np.array([np.nan, 1], "<f4").tobytes())), "bad-sound"),
        (riff(described(code=3, bits=64), (b"data", np.array([1e300, 1], "<f8").tobytes())), "bad-sound"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_bad_file(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "bad.wav"
    path.write_bytes(content)
    with raises(DataError, code) as caught:
        read_audio(path)
    assert "\n" not in str(caught.value)


def test_cut_file(tmp_path: Path) -> None:
    whole = riff(described(), DATA)
    for length in range(len(whole)):
        (tmp_path / "cut.wav").write_bytes(whole[:length])
        with raises(DataError, "damaged-file"):
            read_audio(tmp_path / "cut.wav")


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_large_or_missing_file(tmp_path: Path, suffix: str) -> None:
    with (tmp_path / f"big{suffix}").open("wb") as file:
        file.truncate(MAX_BYTES + 1)  # sparse
    with raises(DataError, "sound-too-long"):
        read_audio(tmp_path / f"big{suffix}")
    with raises(DataError, "damaged-file"):
        read_audio(tmp_path / f"none{suffix}")


@pytest.mark.parametrize(("suffix", "error"), [(".flac", 2**-15), (".ogg", 0.1), (".mp3", 0.1)])
def test_compressed_formats(tmp_path: Path, suffix: str, error: float) -> None:
    soundfile = pytest.importorskip("soundfile")
    long = np.sin(np.arange(16_000) / 5) * 0.5
    soundfile.write(tmp_path / f"a{suffix}", np.stack([long, long], axis=1), 16_000)
    sound, rate = read_audio(tmp_path / f"a{suffix}")
    assert (rate, sound.dtype, read_header(tmp_path / f"a{suffix}").samples) == (16_000, np.float32, len(sound))
    np.testing.assert_allclose(sound[4000:12_000], long[4000:12_000], atol=error)


@pytest.mark.parametrize("suffix", [".flac", ".ogg", ".mp3"])
def test_damaged_compressed_file(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("soundfile")
    (tmp_path / f"a{suffix}").write_bytes(b"fLaC no sound at all")
    with raises(DataError, "damaged-file"):
        read_audio(tmp_path / f"a{suffix}")


def test_long_compressed_file(tmp_path: Path) -> None:
    """Silence of more than an hour takes little in a file."""
    soundfile = pytest.importorskip("soundfile")
    with soundfile.SoundFile(tmp_path / "a.flac", "w", 1000, 1) as file:
        for _ in range(37):
            file.write(np.zeros(100_000, np.float32))
    assert (tmp_path / "a.flac").stat().st_size < 100_000
    with raises(DataError, "sound-too-long"):
        read_audio(tmp_path / "a.flac")


def test_without_soundfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    wavfile.write(tmp_path / "a.wav", 8000, WAVE)
    assert len(read_audio(tmp_path / "a.wav")[0]) == len(WAVE)
    for suffix in SUFFIXES[1:]:
        (tmp_path / f"a{suffix}").write_bytes(b"sound")
        with raises(DataError, "missing-extra"):
            read_audio(tmp_path / f"a{suffix}")
