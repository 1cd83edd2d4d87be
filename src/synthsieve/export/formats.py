"""Which files samples can become, by what the samples are; and which of them go into each file."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from synthsieve.errors import ConfigError


class Format(StrEnum):
    """A way to write samples.

    | format | files |
    |---|---|
    | parquet | data.parquet |
    | npz | arrays.npz |
    | images | images/CLASS/NNNNN.png, images/metadata.csv |
    | sounds | sounds/CLASS/NNNNN.wav, sounds/metadata.csv |
    | hf | data/train-NNNNN-of-NNNNN.parquet, which `datasets.load_dataset` finds by the card |
    | csv | data.csv |
    """

    PARQUET = "parquet"
    NPZ = "npz"
    IMAGES = "images"
    SOUNDS = "sounds"
    HF = "hf"
    CSV = "csv"


class Form(StrEnum):
    """What samples are, as people have them."""

    IMAGES = "images"
    SOUNDS = "sounds"
    SENTENCES = "sentences"
    ROWS = "rows"
    ARRAYS = "arrays"


class Which(StrEnum):
    """Which samples are written: the selected, but all of the pool into data.parquet; the selected alone; all."""

    USUAL = "usual"
    SELECTED = "selected"
    ALL = "all"

    def is_all(self, format: Format) -> bool:
        """Whether every sample of the pool goes into the files of a format."""
        return self is Which.ALL or (self is Which.USUAL and format is Format.PARQUET)


# What each form can become; the first two unless others are asked for.
POSSIBLE: dict[Form, tuple[Format, ...]] = {
    Form.IMAGES: (Format.PARQUET, Format.IMAGES, Format.NPZ, Format.HF),
    Form.SOUNDS: (Format.PARQUET, Format.SOUNDS, Format.NPZ, Format.HF),
    Form.SENTENCES: (Format.PARQUET, Format.CSV, Format.NPZ, Format.HF),
    Form.ROWS: (Format.PARQUET, Format.CSV, Format.NPZ, Format.HF),
    Form.ARRAYS: (Format.PARQUET, Format.NPZ, Format.HF),
}


def form_of(items: Any) -> Form:
    """What these samples are: a pyarrow table, `Waveforms`, a list of str, uint8 images, or any other array."""
    import numpy as np  # here: the command line needs the names alone
    import pyarrow as pa

    from synthsieve.export.media import MOST_CHANNELS
    from synthsieve.waveforms import Waveforms

    if isinstance(items, pa.Table):
        return Form.ROWS
    if isinstance(items, Waveforms):
        return Form.SOUNDS
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        return Form.SENTENCES
    pixels = isinstance(items, np.ndarray) and items.dtype == np.uint8 and items.ndim == 4
    return Form.IMAGES if pixels and 1 <= items.shape[1] <= MOST_CHANNELS else Form.ARRAYS


def asked_formats(form: Form, asked: Sequence[Format] | None) -> tuple[Format, ...]:
    """The formats asked for, each once, or the usual two of that form; one that makes no sense is refused."""
    possible = POSSIBLE[form]
    for format in asked or ():
        if format not in possible:
            raise ConfigError(
                f"{form} cannot be written as {format}: give --format {', '.join(possible[:-1])} or {possible[-1]}"
            )
    return tuple(dict.fromkeys(asked)) if asked else possible[:2]
