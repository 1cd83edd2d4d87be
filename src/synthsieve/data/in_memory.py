"""Data in memory (arrays, tensors, sparse matrices, data frames, Arrow tables, texts, sounds) as examples, and back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.checks import check
from synthsieve.data.containers import as_array, as_arrow, is_frame, is_series
from synthsieve.data.dataset import Kind
from synthsieve.data.formats.arrays import SIGNED, ImageForm, guess_value_range, read_features, scaling_note
from synthsieve.data.formats.audio import SUFFIXES
from synthsieve.data.modalities.encoding import Encoding
from synthsieve.data.modalities.sound.format import SoundFormat
from synthsieve.data.modalities.table.rows import read_rows_like, rows_from_arrow
from synthsieve.data.modalities.text.encoding import is_missing, store_texts
from synthsieve.errors import SynthsieveWarning

MAX_COLUMNS = 50  # a row of up to this many numbers is one of a table's, a longer one is an image or an embedding


@dataclass(frozen=True)
class InMemoryData:
    """Examples and what is needed to read more of the same."""

    x: np.ndarray  # as `data.dataset.Examples` stores them
    kind: str
    metadata: Any = None  # what `Dataset.metadata` holds for that kind: of images, the layout of the user's array
    frame: str | None = None  # Arrow's metadata of the pandas data frame that the examples came in
    array: bool = False  # whether a table came as an array of numbers
    notes: tuple[str, ...] = ()  # messages for the user

    @property
    def images(self) -> ImageForm | None:
        """How images are held; None of other kinds."""
        return self.metadata if isinstance(self.metadata, ImageForm) else None


def read_in_memory(
    given: Any, *, modality: str = "auto", schema: Any = None, rate: int | None = None, others: Any = None
) -> InMemoryData:
    """The examples in any container; `modality` says what they are where that is ambiguous.

    Args:
        schema: the types of a table's columns that are guessed wrongly.
        rate: samples a second, of waveforms.
        others: more images, whose values count too when the range of images is guessed.
    """
    kind = kind_of(given, modality)
    if kind == Kind.TABLE:
        table = as_arrow(given)
        x, metadata = rows_from_arrow(table, schema)
        return InMemoryData(x, kind, metadata, table.schema.metadata[b"pandas"].decode() if is_frame(given) else None)
    if kind == Kind.SOUND:
        x, form = _spectrograms(given, None, rate)
        return InMemoryData(x, kind, form)
    if kind in (Kind.IMAGE, Kind.VECTOR):
        array = as_array(given)
        features = read_features(array, origin="X", value_range=_common_range(array, others, kind))
        got = f"its shape {array.shape} is that of a {features.kind}"
        check(features.kind == kind, f"X should be of kind {kind}, but {got}", "modality")
        images = ImageForm.of(array, features)
        span = None if images is None else images.value_range
        notes = () if span is None or span == SIGNED else (scaling_note(span),)
        return InMemoryData(features.x, kind, images, notes=notes)
    if kind == Kind.TEXT:
        return InMemoryData(store_texts(_texts(given), origin="X").x, kind)
    return InMemoryData(encode_like(given, InMemoryData(np.empty(0), kind)), kind)


def _common_range(images: np.ndarray, others: Any, kind: str) -> tuple[float, float] | None:
    """The range of two arrays of images together; None where there is only one, or they are of different types."""
    more = None if others is None or kind != Kind.IMAGE else as_array(others)
    if more is None or not more.size or more.dtype.kind != images.dtype.kind or images.dtype.kind not in "iuf":
        return None
    group = np.concatenate([images.reshape(-1), more.reshape(-1)])
    return guess_value_range(group, "X and unlabeled_X") if np.isfinite(group).all() else None


def read_columns(array: np.ndarray) -> InMemoryData:
    """An array of finite numbers (n, columns) as the table that a data frame of the same numbers is."""
    import pyarrow as pa

    columns = {f"x{i}": np.ascontiguousarray(array[:, i]) for i in range(array.shape[1])}
    x, metadata = rows_from_arrow(pa.table(columns), dict.fromkeys(columns, "number"))
    return InMemoryData(x, Kind.TABLE, metadata, array=True)


def encode_like(given: Any, like: InMemoryData, *, rate: int | None = None) -> np.ndarray:
    """More examples of the kind that `like` holds, to be predicted; only its description is used.

    What is ignored or unknown from training (columns, categories) is named in a `SynthsieveWarning`.
    """
    if like.array:
        return as_array(given).astype(np.float64)
    if like.kind == Kind.TABLE:
        rows = read_rows_like(as_arrow(given, like.metadata.names), like.metadata)
        _warn(rows.notes)
        return rows.x
    if like.kind == Kind.TEXT:
        return store_texts(_texts(given), origin="X", some_words=False).x
    if like.kind == Kind.SOUND:
        return _spectrograms(given, like.metadata, rate)[0]
    if like.kind in (Kind.IMAGE, Kind.VECTOR):
        array = as_array(given)
        value_range = like.images.range_for(array) if like.images else None
        features = read_features(array, origin="X", value_range=value_range)
        if value_range is not None:
            _warn(features.notes)
        return features.x
    return np.asarray(given)


def _warn(notes: Iterable[str]) -> None:
    for note in notes:
        warnings.warn(note, SynthsieveWarning, stacklevel=3)


def restore_container(items: Any, data: InMemoryData) -> Any:
    """Examples as the encoding gives them, in the container that `data` came in."""
    if data.images is not None:
        return data.images.restore_container(items)
    if data.array:
        return np.stack([column.to_numpy() for column in items.columns], axis=1)
    if data.frame is None:
        return items
    try:
        return items.replace_schema_metadata({"pandas": data.frame}).to_pandas()
    except (LookupError, TypeError, ValueError, AttributeError, SyntaxError):  # metadata damaged in a file
        return items.to_pandas(ignore_metadata=True)


def kind_of(given: Any, modality: str) -> str:
    """A `Kind` by its name, the name of a registered modality as it is; `auto` guesses it from `given`."""
    if modality == "auto":
        return guess_kind(given)
    expected = f"auto or a name such as {', '.join(Kind)}"
    check(isinstance(modality, str), f"modality must be {expected}, got {modality!r}", "modality")
    return Kind(modality) if modality in set(Kind) else modality


def guess_kind(given: Any) -> Kind:
    """Data frames, Arrow tables and arrays of mixed cells are tables, rows of text are text, arrays by their shape.

    `Waveforms`, and texts that all end in .wav, .flac, .ogg or .mp3, are sounds.
    """
    is_list = _is_sequence(given) and len(given) > 0
    are_files = is_list and _are_paths(given) and all(str(item).lower().endswith(SUFFIXES) for item in given)
    if _are_waveforms(given) or are_files:
        return Kind.SOUND
    if holds_text(given):
        return Kind.TEXT
    is_arrow = hasattr(given, "__arrow_c_stream__") and not is_series(given)  # a series has that interface, too
    if is_frame(given) or is_arrow or _is_mixed(given):
        return Kind.TABLE
    return Kind.IMAGE if _dimensions(given) in (3, 4) else Kind.VECTOR


def _dimensions(given: Any) -> int:
    """Of an array, or of what can be made one; 0 where rows differ in length."""
    try:
        return len(given.shape) if hasattr(given, "shape") else np.asarray(given).ndim
    except ValueError:
        return 0


def holds_text(given: Any) -> bool:
    """Whether it is one text a row: a list, a one-dimensional array or a series of str, some perhaps missing."""
    if not _is_sequence(given):
        return False
    texts_only = all(isinstance(item, str) or is_missing(item) for item in given)
    return texts_only and any(isinstance(item, str) for item in given)


def to_json(data: InMemoryData) -> dict[str, Any]:
    """A description of `data` without its examples; what the encoding knows too is not in it."""
    return {"kind": str(data.kind), "frame": data.frame, "array": data.array}


def from_json(value: dict[str, Any], encoding: Encoding) -> InMemoryData:
    """What `to_json` described, without examples."""
    kind, frame, array = kind_of(None, value["kind"]), value["frame"], value.get("array", False)
    if not isinstance(array, bool) or (array and (kind != Kind.TABLE or frame is not None)):
        raise ValueError("an array of numbers must be a table and not a data frame")
    if not isinstance(frame, str | None) or (frame is not None and kind != Kind.TABLE):
        raise ValueError("metadata of a data frame must be text, and belongs to a table")
    if value.get("images") is not None:
        raise ValueError("it was written by an earlier version")
    return InMemoryData(np.empty(0), kind, metadata_of(encoding), frame, array)


def metadata_of(encoding: Encoding) -> Any:
    """What `Dataset.metadata` was when the encoding was fitted."""
    named = {Kind.TABLE: "schema", Kind.SOUND: "form", Kind.IMAGE: "form"}
    return getattr(encoding, named.get(encoding.input_spec.kind, ""), None)  # type: ignore[call-overload]


def _is_mixed(given: Any) -> bool:
    """Rows of cells of which some are text, or missing, unless all others are numbers."""
    if not isinstance(given, np.ndarray | list | tuple) or _dimensions(given) != 2:
        return False
    array = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
    if array.dtype.kind == "U":
        return True
    return array.dtype.kind == "O" and any(isinstance(cell, str) or cell is None for cell in array.ravel())


def _texts(given: Any) -> list[Any]:
    """One text a row; a table of one column is that column."""
    single = isinstance(given, str | bytes)
    check(not single, "X must be a list of texts, got a single one: put it into a list", "text-shape")
    if is_frame(given) and given.shape[1] == 1:
        return list(given.iloc[:, 0])
    if hasattr(given, "column_names") and len(given.column_names) == 1:
        return list(given.column(0).to_pylist())
    shape: tuple[int, ...] = getattr(given, "shape", (0,))
    if len(shape) == 2 and shape[1] == 1:
        return list(np.asarray(given)[:, 0])
    check(len(shape) == 1, f"X must be one text a row, but has shape {shape}: give the column of texts", "text-shape")
    return list(given)


def _is_sequence(given: Any) -> bool:
    return isinstance(given, list | tuple | np.ndarray) or is_series(given)


def _are_waveforms(given: Any) -> bool:
    """Whether it is what `sample` gives for sounds."""
    return hasattr(given, "sounds") and hasattr(given, "rate")


def _are_paths(given: Any) -> bool:
    return all(isinstance(item, str | Path) for item in given)


def _spectrograms(given: Any, form: SoundFormat | None, rate: int | None) -> tuple[np.ndarray, SoundFormat]:
    """Spectrograms of paths of audio files, or of waveforms; without `form`, in the format that fits them."""
    from synthsieve.data.modalities.sound.reading import format_of_files, format_of_lengths, from_files, from_waveforms

    sounds, rate = (given.sounds, given.rate) if _are_waveforms(given) else (given, rate)
    if _are_paths(sounds):
        paths = [Path(item) for item in sounds]
        form = form or format_of_files(paths)
        return from_files(paths, form), form
    rate = 0 if rate is None else int(rate)
    check(rate >= 1, f"waveforms need their rate, such as rate=8000 (samples a second), not {rate}", "rate")
    form = form or format_of_lengths([np.size(sound) / rate for sound in sounds], [rate] * len(sounds))
    return from_waveforms(sounds, rate, form), form
