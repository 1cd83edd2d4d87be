"""Samples on their way to disk, a few hundred at a time, also as Arrow tables: a pool is never held in memory whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from synthsieve.data.modalities.sound.format import Waveforms
from synthsieve.results.export.formats import SampleForm
from synthsieve.results.export.media import png_bytes, wav_bytes

MAX_COLUMNS = 1000  # a wider array is one column of lists


@dataclass(frozen=True)
class PoolInfo:
    """What all blocks of one export share."""

    form: SampleForm
    classes: tuple[str, ...]  # the label of each class index, as text
    label_name: str  # the name of the label column
    total: int  # samples in the pool
    selected: int  # how many of them are selected

    def file_name(self, id: int) -> str:
        """`00012.png`: a sample's file, by its row in the pool."""
        suffix = ".wav" if self.form is SampleForm.SOUNDS else ".png"
        return f"{id:0{max(5, len(str(self.total - 1)))}d}{suffix}"


@dataclass(frozen=True)
class Block:
    """n samples."""

    ids: np.ndarray  # int64 (n,), their rows in the pool
    x: np.ndarray  # (n, *shape), as the source stores examples
    items: Any  # the same in readable form; see `formats.form_of`
    y: np.ndarray  # int64 (n,), class indices
    selected: np.ndarray  # bool (n,)
    columns: Mapping[str, Any]  # properties of each sample, (n,): numbers, or text as an Arrow dictionary
    latent: np.ndarray  # float32 (n, latent_dim)

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


def block_table(block: Block, info: PoolInfo, *, label_as_text: bool = True) -> tuple[Any, dict[str, str]]:
    """The block as a pyarrow table: id, the columns of the sample, the label, then the other properties.

    The label is text, or its index into `info.classes`. The columns of the sample and then the label keep their names;
    ours are renamed where they collide: the second result maps `label`, `id` and the keys of `Block.columns` to names.
    """
    import pyarrow as pa

    sample = _sample_columns(block, info)
    label = _label_text(block, info) if label_as_text else pa.array(block.y)
    names = _property_names(sample, info, block)
    properties = {names[name]: _plain(values) for name, values in {"label": label, **block.columns}.items()}
    return pa.table({names["id"]: block.ids, **sample, **properties}), names


def file_table(block: Block, info: PoolInfo, files: list[str]) -> Any:
    """The block as a pyarrow table of files: file_name, then id, label and the other properties."""
    import pyarrow as pa

    names = _property_names(["file_name"], info, block)
    properties = {"id": block.ids, "label": _label_text(block, info), **block.columns}
    return pa.table({"file_name": files, **{names[name]: _plain(values) for name, values in properties.items()}})


def unique_names(taken: Collection[str], names: Iterable[str]) -> list[str]:
    """Each name, or synthetic_NAME where it is among those `taken` or before it."""
    unique: list[str] = []
    for name in names:
        while name in taken or name in unique:
            name = f"synthetic_{name}"
        unique.append(name)
    return unique


def array_columns(x: np.ndarray, *, as_list: bool = False) -> dict[str, Any]:
    """Numbers (n, ...) as columns x0, x1, ...; as one column of lists if they are many or of several dimensions."""
    import pyarrow as pa

    if x.ndim == 1:
        return {"x": x}
    flat = np.ascontiguousarray(x.reshape(len(x), -1))
    if x.ndim == 2 and flat.shape[1] <= MAX_COLUMNS and not as_list:
        return {f"x{i}": flat[:, i] for i in range(flat.shape[1])}
    return {"x": pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), flat.shape[1])}


def _property_names(taken: Collection[str], info: PoolInfo, block: Block) -> dict[str, str]:
    names = unique_names(taken, [info.label_name, "id", *block.columns])
    return dict(zip(["label", "id", *block.columns], names, strict=True))


def _sample_columns(block: Block, info: PoolInfo) -> dict[str, Any]:
    """`image` or `audio` as {bytes, path}, `text`, the columns of a row, or the numbers of an array."""
    import pyarrow as pa

    if info.form is SampleForm.ROWS:
        return {name: block.items.column(name) for name in block.items.column_names}
    if info.form is SampleForm.SENTENCES:
        return {"text": pa.array(block.items, pa.string())}
    if info.form is SampleForm.ARRAYS:
        return array_columns(block.x)
    names = pa.array([info.file_name(int(id)) for id in block.ids], pa.string())
    stored = pa.StructArray.from_arrays([pa.array(block.files, pa.binary()), names], ["bytes", "path"])
    return {"audio" if info.form is SampleForm.SOUNDS else "image": stored}


def _label_text(block: Block, info: PoolInfo) -> Any:
    import pyarrow as pa

    return pa.array(info.classes, pa.string()).take(pa.array(block.y))


def _plain(values: Any) -> Any:
    """Our dictionaries as text; those of the data, which come chunked, stay dictionaries."""
    import pyarrow as pa

    return values.cast(pa.string()) if isinstance(values, pa.DictionaryArray) else values
