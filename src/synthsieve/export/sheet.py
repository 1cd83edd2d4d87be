"""A block as an Arrow table: id, the sample in columns of its own, the label, then what is known of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.export.block import About, Block
from synthsieve.export.formats import Form
from synthsieve.export.names import beside

MOST_COLUMNS = 1000  # of an array of numbers: a wider one is one column of lists


@dataclass(frozen=True)
class Sheet:
    """A block as a pyarrow table.

    Attributes:
        table: id, the sample's columns, the label, then what is known.
        called: `label`, `id` and the names of `Block.columns` -> what they are called in the table.
    """

    table: Any
    called: dict[str, str]


def sheet(block: Block, about: About, *, label_words: bool = True) -> Sheet:
    """The whole block; the label as text, or as its index into `about.classes`.

    The sample's own columns and then the label keep their names; ours are moved aside where they meet.
    """
    import pyarrow as pa

    sample = sample_columns(block, about)
    label = _words(block, about) if label_words else pa.array(block.y)
    called = our_names(sample, about, block)
    ours = {called[name]: values for name, values in {"id": block.ids, "label": label, **block.columns}.items()}
    columns = {called["id"]: ours.pop(called["id"]), **sample, **ours}
    return Sheet(pa.table({name: _plain(values) for name, values in columns.items()}), called)


def listing(block: Block, about: About, files: list[str]) -> Any:
    """The block as a pyarrow table of files: file_name, then id, label and what is known."""
    import pyarrow as pa

    called = our_names(["file_name"], about, block)
    ours = {"id": block.ids, "label": _words(block, about), **block.columns}
    return pa.table({"file_name": files, **{called[name]: _plain(values) for name, values in ours.items()}})


def our_names(taken: Collection[str], about: About, block: Block) -> dict[str, str]:
    """`label`, `id` and the names of a block's columns -> what they are called beside those taken."""
    called = beside(taken, [about.label_name, "id", *block.columns])
    return dict(zip(["label", "id", *block.columns], called, strict=True))


def sample_columns(block: Block, about: About) -> dict[str, Any]:
    """The sample alone: `image` or `audio` as {bytes, path}, `text`, the columns of a row, the numbers of an array."""
    import pyarrow as pa

    if about.form is Form.ROWS:
        return {name: block.items.column(name) for name in block.items.column_names}
    if about.form is Form.SENTENCES:
        return {"text": pa.array(block.items, pa.string())}
    if about.form is Form.ARRAYS:
        return array_columns(block.x)
    names = pa.array([about.file_name(int(id)) for id in block.ids], pa.string())
    stored = pa.StructArray.from_arrays([pa.array(block.files, pa.binary()), names], ["bytes", "path"])
    return {"audio" if about.form is Form.SOUNDS else "image": stored}


def array_columns(x: np.ndarray, name: str = "x", *, as_list: bool = False) -> dict[str, Any]:
    """Numbers (n, ...) as a column each, x0, x1, ...; as one of lists where they are many or of several dimensions."""
    import pyarrow as pa

    if x.ndim == 1:
        return {name: x}
    flat = np.ascontiguousarray(x.reshape(len(x), -1))
    if x.ndim == 2 and flat.shape[1] <= MOST_COLUMNS and not as_list:
        return {f"{name}{i}": flat[:, i] for i in range(flat.shape[1])}
    return {name: pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), flat.shape[1])}


def _words(block: Block, about: About) -> Any:
    import pyarrow as pa

    return pa.array(about.classes, pa.string()).take(pa.array(block.y))


def _plain(values: Any) -> Any:
    """Our words as text: only the sample's own columns, which come chunked, may stay dictionaries."""
    import pyarrow as pa

    return values.cast(pa.string()) if isinstance(values, pa.DictionaryArray) else values
