"""One sample as the bytes of a file: images as PNG, sounds as WAV."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np

from synthsieve.files import written_atomically

MOST_CHANNELS = 4  # grey, grey and alpha, colour, colour and alpha: what a PNG holds


def png_bytes(image: np.ndarray, *, compress_level: int = 6) -> bytes:
    """A PNG of uint8 (channels, height, width), 1 to 4 channels; the pixels come back as they are."""
    from PIL import Image

    pixels = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(stream, format="PNG", compress_level=compress_level)
    return stream.getvalue()


def wav_bytes(sound: np.ndarray, rate: int) -> bytes:
    """A WAV of one channel of 16-bit samples; values outside [-1, 1] are clipped."""
    samples = np.rint(np.clip(sound, -1, 1) * 32767).astype("<i2")
    stream = io.BytesIO()
    with wave.open(stream, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(rate)
        target.writeframes(samples.tobytes())
    return stream.getvalue()


def write_wav(path: Path, sound: np.ndarray, rate: int) -> None:
    """The same as a file, atomically."""
    with written_atomically(path) as partial:
        partial.write_bytes(wav_bytes(sound, rate))
