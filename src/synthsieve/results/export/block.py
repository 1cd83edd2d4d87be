"""Samples on their way to disk, a few hundred at a time: a pool is never held in memory whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from synthsieve.data.modalities.sound.format import Waveforms
from synthsieve.results.export.formats import Form
from synthsieve.results.export.media import png_bytes, wav_bytes


@dataclass(frozen=True)
class PoolInfo:
    """What all blocks of one export share.

    Attributes:
        form: what the samples are.
        classes: the label of each class index, as text.
        label_name: the name of the label column.
        total: the number of samples in the pool.
        selected: how many of them are selected.
    """

    form: Form
    classes: tuple[str, ...]
    label_name: str
    total: int
    selected: int

    @property
    def suffix(self) -> str:
        """The suffix of a file with one sample."""
        return ".wav" if self.form is Form.SOUNDS else ".png"

    def file_name(self, id: int) -> str:
        """`00012.png`: a sample's file, by its row in the pool."""
        return f"{id:0{max(5, len(str(self.total - 1)))}d}{self.suffix}"


@dataclass(frozen=True)
class Block:
    """n samples.

    Attributes:
        ids: int64 (n,), their rows in the pool.
        x: (n, *shape), as the source stores examples.
        items: the same in readable form; see `formats.form_of`.
        y: int64 (n,), class indices.
        selected: bool (n,).
        columns: properties of each sample, (n,): numbers, or text as an Arrow dictionary.
        latent: float32 (n, latent_dim).
    """

    ids: np.ndarray
    x: np.ndarray
    items: Any
    y: np.ndarray
    selected: np.ndarray
    columns: Mapping[str, Any]
    latent: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def only_selected(self) -> Block:
        """The selected samples of the block."""
        if self.selected.all():
            return self
        rows = np.flatnonzero(self.selected)
        columns = {name: _take(values, rows) for name, values in self.columns.items()}
        items = _take(self.items, rows)
        return Block(self.ids[rows], self.x[rows], items, self.y[rows], self.selected[rows], columns, self.latent[rows])

    @cached_property
    def files(self) -> list[bytes]:
        """The content of a PNG or WAV file for each sample."""
        if isinstance(self.items, Waveforms):
            return [wav_bytes(sound, self.items.rate) for sound in self.items.sounds]
        return [png_bytes(image) for image in self.items]


def _take(values: Any, rows: np.ndarray) -> Any:
    """Rows of an array, a list, an Arrow column or table, or sounds."""
    if isinstance(values, np.ndarray):
        return values[rows]
    if isinstance(values, Waveforms):
        return Waveforms([values.sounds[row] for row in rows], values.rate)
    if isinstance(values, list):
        return [values[row] for row in rows]
    return plain_text(values).take(rows).cast(values.schema) if hasattr(values, "schema") else values.take(rows)


def plain_text(table: Any) -> Any:
    """A pyarrow table with string views as strings, which all of Arrow supports."""
    import pyarrow as pa

    fields = [field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))
