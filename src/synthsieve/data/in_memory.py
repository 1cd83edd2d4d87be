"""What a user holds in memory (arrays, tensors, sparse matrices, data frames, Arrow tables, sentences, sounds) becomes
examples as a source stores them, and back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.containers import as_array, as_arrow, is_frame, is_series
from synthsieve.data.dataset import Kind
from synthsieve.data.encoding import Encoding
from synthsieve.data.features import SIGNED, guess_value_range, read_features, scaling_note
from synthsieve.data.image_form import ImageForm
from synthsieve.data.rows import rows_alike, rows_from_arrow
from synthsieve.data.sound_format import SoundFormat
from synthsieve.data.text import is_missing, store_texts
from synthsieve.errors import DataError

MAX_COLUMNS = 50  # a row of up to this many numbers is one of a table's, a longer one is pixels or an embedding


@dataclass(frozen=True)
class Held:
    """Examples and what is needed to read more of the same.

    Attributes:
        x: as `data.dataset.Examples` stores them.
        kind: the modality.
        about: what `Dataset.about` holds for that kind: of images, how the user's array holds them.
        frame: where the user's examples came as a pandas data frame, what Arrow noted of it; they go back as one.
        array: whether a table came as an array of numbers; its rows go back as one.
        notes: sentences worth telling the user.
    """

    x: np.ndarray
    kind: str
    about: Any = None
    frame: str | None = None
    array: bool = False
    notes: tuple[str, ...] = ()

    @property
    def images(self) -> ImageForm | None:
        """How images are held; None of other kinds."""
        return self.about if isinstance(self.about, ImageForm) else None


def read_held(
    given: Any, *, modality: str = "auto", schema: Any = None, rate: int | None = None, beside: Any = None
) -> Held:
    """The examples in whatever the user holds; `modality` says what they are where it cannot be seen.

    Args:
        schema: the types of a table's columns that are guessed wrongly.
        rate: samples a second, of waveforms.
        beside: more images, whose values count too where the range of images is looked for.
    """
    kind = kind_of(given, modality)
    if kind == Kind.TABLE:
        table = as_arrow(given)
        x, about = rows_from_arrow(table, schema)
        return Held(x, kind, about, frame=table.schema.metadata[b"pandas"].decode() if is_frame(given) else None)
    if kind == Kind.SOUND:
        form = _sound_format(given, rate)
        return Held(_spectrograms(given, form, rate), kind, form)
    if kind in (Kind.IMAGE, Kind.VECTOR):
        array = as_array(given)
        features = read_features(array, origin="X", value_range=_common_range(array, beside, kind))
        if features.kind != kind:
            raise DataError(f"X was to be of kind {kind}, but its shape {array.shape} is that of a {features.kind}")
        images = ImageForm.of(array, features)
        span = None if images is None else images.value_range
        notes = () if span is None or span == SIGNED else (scaling_note(span),)
        return Held(features.x, kind, images, notes=notes)
    if kind == Kind.TEXT:
        return Held(store_texts(_texts(given), origin="X").x, kind)
    return Held(read_alike(given, Held(np.empty(0), kind)), kind)


def _common_range(images: np.ndarray, beside: Any, kind: str) -> tuple[float, float] | None:
    """The range of two arrays of images together; None where there is only one, or they are of different types."""
    more = None if beside is None or kind != Kind.IMAGE else as_array(beside)
    if more is None or not more.size or more.dtype.kind != images.dtype.kind or images.dtype.kind not in "iuf":
        return None
    together = np.concatenate([images.reshape(-1), more.reshape(-1)])
    return guess_value_range(together, "X and unlabeled_X") if np.isfinite(together).all() else None


def read_columns(array: np.ndarray) -> Held:
    """An array of finite numbers (n, columns) as the table that a data frame of the same numbers is."""
    import pyarrow as pa

    columns = {f"x{i}": np.ascontiguousarray(array[:, i]) for i in range(array.shape[1])}
    x, about = rows_from_arrow(pa.table(columns), dict.fromkeys(columns, "number"))
    return Held(x, Kind.TABLE, about, array=True)


def read_alike(given: Any, like: Held, *, rate: int | None = None) -> np.ndarray:
    """More examples of the kind that `like` holds, to be predicted; only its description is looked at."""
    if like.array:
        return as_array(given).astype(np.float64)
    if like.kind == Kind.TABLE:
        return rows_alike(as_arrow(given, like.about.names), like.about)
    if like.kind == Kind.TEXT:
        return store_texts(_texts(given), origin="X", some_words=False).x
    if like.kind == Kind.SOUND:
        return _spectrograms(given, like.about, rate)
    if like.kind in (Kind.IMAGE, Kind.VECTOR):
        array = as_array(given)
        value_range = like.images.range_for(array) if like.images else None
        features = read_features(array, origin="X", value_range=value_range)
        if value_range is not None:
            for note in features.notes:
                warnings.warn(note, stacklevel=2)
        return features.x
    return np.asarray(given)


def give_back(items: Any, held: Held) -> Any:
    """Examples as the encoding gives them, in the form that the user held `held` in."""
    if held.images is not None:
        return held.images.give_back(items)
    if held.array:
        return np.stack([column.to_numpy() for column in items.columns], axis=1)
    if held.frame is None:
        return items
    try:
        return items.replace_schema_metadata({"pandas": held.frame}).to_pandas()
    except (LookupError, TypeError, ValueError, AttributeError, SyntaxError):  # notes that a file spoiled
        return items.to_pandas(ignore_metadata=True)


def kind_of(given: Any, modality: str) -> str:
    """A `Kind` by its name, one's own as it is; `auto` looks at what is given."""
    if modality == "auto":
        return guess_kind(given)
    if not isinstance(modality, str):
        raise DataError(f"modality must be auto or a name such as {', '.join(Kind)}, but {modality!r} came")
    return Kind(modality) if modality in set(Kind) else modality


def guess_kind(given: Any) -> Kind:
    """Data frames, Arrow tables and arrays of mixed cells are tables, rows of text are text, arrays by their shape.

    Waveforms that were drawn, and texts that all end in .wav, are sounds.
    """
    if _are_waveforms(given) or _are_wavs(given):
        return Kind.SOUND
    if holds_text(given):
        return Kind.TEXT
    is_arrow = hasattr(given, "__arrow_c_stream__") and not is_series(given)  # a series has that door, too
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
    if not isinstance(given, list | tuple | np.ndarray) and not is_series(given):
        return False
    found = False
    for item in given:
        if not isinstance(item, str) and not is_missing(item):
            return False
        found |= isinstance(item, str)
    return found


def to_json(held: Held) -> dict[str, Any]:
    """A description of `held` without its examples; what the encoding knows too is not in it."""
    return {"kind": str(held.kind), "frame": held.frame, "array": held.array}


def from_json(value: dict[str, Any], encoding: Encoding) -> Held:
    """What `to_json` described, without examples."""
    kind, frame, array = kind_of(None, value["kind"]), value["frame"], value.get("array", False)
    if not isinstance(array, bool) or (array and (kind != Kind.TABLE or frame is not None)):
        raise ValueError("an array of numbers is said to be a data frame, or no table")
    if not isinstance(frame, str | None) or (frame is not None and kind != Kind.TABLE):
        raise ValueError("what it says of a data frame is no text, or there is none")
    if value.get("images") is not None:  # earlier versions wrote the form of images here, not with the encoding
        if kind != Kind.IMAGE:
            raise ValueError(f"a form of images came with examples of kind {kind}")
        return Held(np.empty(0), kind, ImageForm.from_json(value["images"]))
    return Held(np.empty(0), kind, about_of(encoding), frame, array)


def about_of(encoding: Encoding) -> Any:
    """What `Dataset.about` held when the encoding was fitted."""
    named = {Kind.TABLE: "schema", Kind.SOUND: "form", Kind.IMAGE: "form"}
    return getattr(encoding, named.get(encoding.layout.kind, ""), None)  # type: ignore[call-overload]


def _is_mixed(given: Any) -> bool:
    """Rows of cells of which some are text, or missing beside other than numbers."""
    if not isinstance(given, np.ndarray | list | tuple) or _dimensions(given) != 2:
        return False
    array = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
    if array.dtype.kind == "U":
        return True
    return array.dtype.kind == "O" and any(isinstance(cell, str) or cell is None for cell in array.ravel())


def _texts(given: Any) -> list[Any]:
    """One text a row; a table of one column is that column."""
    if isinstance(given, str | bytes):
        raise DataError("X must be a list of texts, but a single one came: put it into a list")
    if is_frame(given) and given.shape[1] == 1:
        return list(given.iloc[:, 0])
    if hasattr(given, "column_names") and len(given.column_names) == 1:
        return list(given.column(0).to_pylist())
    sides = len(given.shape) if hasattr(given, "shape") else 1
    if sides == 2 and given.shape[1] == 1:
        return list(np.asarray(given)[:, 0])
    if sides != 1:
        raise DataError(f"X must be one text a row, but came with shape {given.shape}: give the column of the texts")
    return list(given)


def _are_waveforms(given: Any) -> bool:
    """Whether it is what `sample` gives for sounds."""
    return hasattr(given, "sounds") and hasattr(given, "rate")


def _are_paths(given: Any) -> bool:
    return all(isinstance(item, str | Path) for item in given)


def _are_wavs(given: Any) -> bool:
    """Whether it is paths that all end in .wav."""
    if not isinstance(given, list | tuple | np.ndarray) and not is_series(given):
        return False
    return len(given) > 0 and _are_paths(given) and all(str(item).lower().endswith(".wav") for item in given)


def _sound_format(given: Any, rate: int | None) -> SoundFormat:
    """A format made to measure for paths of .wav files or for waveforms."""
    from synthsieve.data.spectrograms import format_of_files, format_of_lengths

    given, rate = (given.sounds, given.rate) if _are_waveforms(given) else (given, rate)
    if _are_paths(given):
        return format_of_files([Path(item) for item in given])
    known = _rate(rate)
    return format_of_lengths([np.size(waveform) / known for waveform in given], [known] * len(given))


def _spectrograms(given: Any, form: SoundFormat, rate: int | None) -> np.ndarray:
    from synthsieve.data.spectrograms import from_files, from_waveforms

    given, rate = (given.sounds, given.rate) if _are_waveforms(given) else (given, rate)
    if _are_paths(given):
        return from_files([Path(item) for item in given], form)
    return from_waveforms(given, _rate(rate), form)


def _rate(rate: int | None) -> int:
    if rate is None or rate < 1:
        raise DataError(f"waveforms need their rate in samples a second, such as rate=8000, but {rate} came")
    return int(rate)
