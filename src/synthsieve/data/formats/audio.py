"""Audio files as waveforms: wav by scipy; flac, ogg and mp3 by the optional package soundfile."""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from synthsieve.data.checks import check, reading
from synthsieve.data.modalities.sound.format import MAX_RATE
from synthsieve.errors import DataError

SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
MAX_BYTES = 1 << 28  # of one file
MAX_SAMPLES = 1 << 27  # of one file, over all channels: 50 minutes at 44,100 a second
MAX_SECONDS = 3600  # otherwise a low rate in a header turns a small file into gigabytes at another rate
MAX_CHANNELS = 64
STREAMED = 0x7FFFF000  # a length of about 2^31 or 2^32: written to a pipe (ffmpeg, sox) before it was known
BLOCK = 1 << 18  # samples


class AudioHeader(NamedTuple):
    """Samples a second, and how many there are in each channel."""

    rate: int
    samples: int

    @property
    def seconds(self) -> float:
        return self.samples / self.rate


def read_header(path: Path) -> AudioHeader:
    """Rate and length of an audio file, within the limits above."""
    with _open(path):
        if path.suffix.lower() == ".wav":
            rate, sound = _read_wav(path)
            return AudioHeader(rate, len(sound))
        info = _soundfile(path).info(str(path))
        _check_limits(path, info.samplerate, info.channels, info.frames)
        return AudioHeader(info.samplerate, info.frames)


def read_audio(path: Path) -> tuple[np.ndarray, int]:
    """A waveform, float32 (samples,), the mean of its channels, and its rate; integers are scaled to [-1, 1]."""
    with _open(path):
        if path.suffix.lower() == ".wav":
            rate, channels = _read_wav(path)
            sound = _scaled(channels).mean(axis=1, dtype=np.float64)
        else:
            rate = read_header(path).rate
            # Block by block: memory follows what the file holds, not what its header claims.
            blocks = _soundfile(path).blocks(str(path), blocksize=BLOCK, dtype="float32", always_2d=True)
            sound = np.concatenate([np.zeros(0), *(block.mean(axis=1) for block in blocks)])
    with np.errstate(over="ignore"):  # what is too large for float32 is infinite there, and refused
        sound = sound.astype(np.float32)
    valid = len(sound) and np.isfinite(sound).all()
    check(valid, f"{path}: a sound needs at least one sample, all finite: repair or remove it", "bad-sound")
    return sound, rate


@contextmanager
def _open(path: Path) -> Iterator[None]:
    with reading(path, path.suffix.lower(), "replace it"):
        small = path.stat().st_size <= MAX_BYTES
        check(small, f"{path} has more than {MAX_BYTES:,} bytes: cut it to pieces", "sound-too-long")
        yield


def _read_wav(path: Path) -> tuple[int, np.ndarray]:
    """Rate, and samples as they are stored (samples, channels)."""
    from scipy.io import wavfile

    data = path.read_bytes()
    length = struct.unpack("<I", data[4:8])[0] + 8 if len(data) >= 8 else 0
    if STREAMED > length > len(data):
        raise ValueError(f"{length:,} bytes expected, but there are {len(data):,}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wavfile.WavFileWarning)  # of chunks other than sound, and of unknown lengths
        rate, sound = wavfile.read(io.BytesIO(data))
    sound = sound[:, None] if sound.ndim == 1 else sound
    _check_limits(path, rate, sound.shape[1], len(sound))
    return rate, sound


def _scaled(sound: np.ndarray) -> np.ndarray:
    """Floats as they are, integers divided by their largest value."""
    if sound.dtype.kind == "f":
        return sound
    if sound.dtype == np.uint8:  # the only type without a sign
        return (sound.astype(np.float32) - 128) / 128
    return sound.astype(np.float64) / 2.0 ** (8 * sound.itemsize - 1)


def _check_limits(path: Path, rate: int, channels: int, samples: int) -> None:
    total = samples * channels
    check(
        1 <= channels <= MAX_CHANNELS and 1 <= rate <= MAX_RATE and 1 <= total <= MAX_SAMPLES,
        f"{path}: expected 1 to {MAX_CHANNELS} channels, at most {MAX_RATE:,} samples a second and 1 to"
        f" {MAX_SAMPLES:,} samples, got {channels}, {rate:,} and {total:,}: convert or replace it",
        "bad-sound",
    )
    advice = f"more than {MAX_SECONDS:,}: cut it to pieces, or correct its rate"
    check(samples <= MAX_SECONDS * rate, f"{path} lasts {samples / rate:,.0f} s, {advice}", "sound-too-long")


def _soundfile(path: Path) -> Any:
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: without its C library
        advice = "pip install 'synthsieve[sound]', or convert to .wav"
        raise DataError(f"{path}: {path.suffix.lower()} files need an extra: {advice}", code="missing-extra") from None
    return soundfile
