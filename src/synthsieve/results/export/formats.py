"""File formats of an export, by what the samples are, and which samples go into each file."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from synthsieve.errors import ConfigError


class Format(StrEnum):
    """A file format.

    | format | files |
    |---|---|
    | parquet | data.parquet |
    | npz | arrays.npz |
    | images | images/CLASS/NNNNN.png, images/metadata.csv |
    | sounds | sounds/CLASS/NNNNN.wav, sounds/metadata.csv |
    | hf | data/train-NNNNN-of-NNNNN.parquet, which `datasets.load_dataset` finds through the card |
    | csv | data.csv |
    """

    PARQUET = "parquet"
    NPZ = "npz"
    IMAGES = "images"
    SOUNDS = "sounds"
    HF = "hf"
    CSV = "csv"


class SampleForm(StrEnum):
    """What samples are."""

    IMAGES = "images"
    SOUNDS = "sounds"
    SENTENCES = "sentences"
    ROWS = "rows"
    ARRAYS = "arrays"


class Which(StrEnum):
    """Which samples are written; by default the selected ones, but the whole pool to data.parquet."""

    DEFAULT = "default"
    SELECTED = "selected"
    ALL = "all"

    def is_all(self, format: Format) -> bool:
        """Whether the files of a format contain every sample of the pool."""
        return self is Which.ALL or (self is Which.DEFAULT and format is Format.PARQUET)


# The formats of each form; the first two are the default.
AVAILABLE: dict[SampleForm, tuple[Format, ...]] = {
    SampleForm.IMAGES: (Format.PARQUET, Format.IMAGES, Format.NPZ, Format.HF),
    SampleForm.SOUNDS: (Format.PARQUET, Format.SOUNDS, Format.NPZ, Format.HF),
    SampleForm.SENTENCES: (Format.PARQUET, Format.CSV, Format.NPZ, Format.HF),
    SampleForm.ROWS: (Format.PARQUET, Format.CSV, Format.NPZ, Format.HF),
    SampleForm.ARRAYS: (Format.PARQUET, Format.NPZ, Format.HF),
}


def form_of(items: Any) -> SampleForm:
    """The form of a pyarrow table, `Waveforms`, a list of str, uint8 images, or any other array."""
    import numpy as np  # not at the top: the command line needs only the names
    import pyarrow as pa

    from synthsieve.data.modalities.sound.format import Waveforms
    from synthsieve.results.export.media import MAX_CHANNELS

    if isinstance(items, pa.Table):
        return SampleForm.ROWS
    if isinstance(items, Waveforms):
        return SampleForm.SOUNDS
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        return SampleForm.SENTENCES
    pixels = isinstance(items, np.ndarray) and items.dtype == np.uint8 and items.ndim == 4
    return SampleForm.IMAGES if pixels and 1 <= items.shape[1] <= MAX_CHANNELS else SampleForm.ARRAYS


def resolve_formats(form: SampleForm, formats: Sequence[Format] | None) -> tuple[Format, ...]:
    """The given formats without duplicates, or the default ones of that form."""
    available = AVAILABLE[form]
    for format in formats or ():
        if format not in available:
            message = f"{form} cannot be written as {format}: choose from {', '.join(available)}"
            raise ConfigError(message, code="unsupported-format")
    return tuple(dict.fromkeys(formats)) if formats else available[:2]
