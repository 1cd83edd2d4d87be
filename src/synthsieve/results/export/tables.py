"""A block as an Arrow table: id, the columns of the sample, the label, then the other properties."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.results.export.block import Block, PoolInfo
from synthsieve.results.export.formats import Form

MAX_COLUMNS = 1000  # a wider array is one column of lists


@dataclass(frozen=True)
class BlockTable:
    """A block as a pyarrow table.

    Attributes:
        table: id, the columns of the sample, the label, the other properties.
        names: `label`, `id` and the keys of `Block.columns` -> their column names in the table.
    """

    table: Any
    names: dict[str, str]


def block_table(block: Block, info: PoolInfo, *, label_as_text: bool = True) -> BlockTable:
    """The whole block; the label as text, or as its index into `info.classes`.

    The columns of the sample and then the label keep their names; ours are renamed where they collide.
    """
    import pyarrow as pa

    sample = _sample_columns(block, info)
    label = _label_text(block, info) if label_as_text else pa.array(block.y)
    names = _property_names(sample, info, block)
    properties = {names[name]: _plain(values) for name, values in {"label": label, **block.columns}.items()}
    return BlockTable(pa.table({names["id"]: block.ids, **sample, **properties}), names)


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


def array_columns(x: np.ndarray, name: str = "x", *, as_list: bool = False) -> dict[str, Any]:
    """Numbers (n, ...) as columns x0, x1, ...; as one column of lists if they are many or of several dimensions."""
    import pyarrow as pa

    if x.ndim == 1:
        return {name: x}
    flat = np.ascontiguousarray(x.reshape(len(x), -1))
    if x.ndim == 2 and flat.shape[1] <= MAX_COLUMNS and not as_list:
        return {f"{name}{i}": flat[:, i] for i in range(flat.shape[1])}
    return {name: pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), flat.shape[1])}


def _property_names(taken: Collection[str], info: PoolInfo, block: Block) -> dict[str, str]:
    names = unique_names(taken, [info.label_name, "id", *block.columns])
    return dict(zip(["label", "id", *block.columns], names, strict=True))


def _sample_columns(block: Block, info: PoolInfo) -> dict[str, Any]:
    """`image` or `audio` as {bytes, path}, `text`, the columns of a row, or the numbers of an array."""
    import pyarrow as pa

    if info.form is Form.ROWS:
        return {name: block.items.column(name) for name in block.items.column_names}
    if info.form is Form.SENTENCES:
        return {"text": pa.array(block.items, pa.string())}
    if info.form is Form.ARRAYS:
        return array_columns(block.x)
    names = pa.array([info.file_name(int(id)) for id in block.ids], pa.string())
    stored = pa.StructArray.from_arrays([pa.array(block.files, pa.binary()), names], ["bytes", "path"])
    return {"audio" if info.form is Form.SOUNDS else "image": stored}


def _label_text(block: Block, info: PoolInfo) -> Any:
    import pyarrow as pa

    return pa.array(info.classes, pa.string()).take(pa.array(block.y))


def _plain(values: Any) -> Any:
    """Our dictionaries as text; those of the data, which come chunked, stay dictionaries."""
    import pyarrow as pa

    return values.cast(pa.string()) if isinstance(values, pa.DictionaryArray) else values
