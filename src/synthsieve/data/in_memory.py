"""What a user holds in memory (arrays, tensors, sparse matrices, data frames, Arrow tables, sentences, sounds) becomes
examples as a source stores them, and back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.dataset import Kind
from synthsieve.data.encoding import Encoding
from synthsieve.data.features import read_features
from synthsieve.data.rows import rows_alike, rows_from_arrow
from synthsieve.data.sound_format import SoundFormat
from synthsieve.data.text import store_texts
from synthsieve.errors import DataError

MOST_DENSE_BYTES = 4 << 30


@dataclass(frozen=True)
class Held:
    """Examples and what is needed to read more of the same.

    Attributes:
        x: as `data.dataset.Examples` stores them.
        kind: the modality.
        about: what `Dataset.about` holds for that kind.
        value_range: of images that came as floats.
        frame: the user's examples came as a pandas data frame, and go back as one.
    """

    x: np.ndarray
    kind: str
    about: Any = None
    value_range: tuple[float, float] | None = None
    frame: bool = False


def read_held(given: Any, *, modality: str = "auto", schema: Any = None, rate: int | None = None) -> Held:
    """The examples in whatever the user holds; `modality` says what they are where it cannot be seen.

    Args:
        schema: the types of a table's columns that are guessed wrongly.
        rate: samples a second, of waveforms.
    """
    kind = guess_kind(given) if modality == "auto" else modality
    if kind == Kind.TABLE:
        x, about = rows_from_arrow(as_arrow(given), schema)
        return Held(x, kind, about, frame=is_frame(given))
    if kind == Kind.SOUND:
        form = _sound_format(given, rate)
        return Held(_spectrograms(given, form, rate), kind, form)
    if kind in (Kind.IMAGE, Kind.VECTOR):
        features = read_features(as_array(given), origin="X")
        if features.kind != kind:
            raise DataError(f"X was to be of kind {kind}, but its shape {np.shape(given)} is that of a {features.kind}")
        return Held(features.x, kind, None, features.value_range)
    return Held(read_alike(given, Held(np.empty(0), kind)), kind)


def read_alike(given: Any, like: Held, *, rate: int | None = None) -> np.ndarray:
    """More examples of the kind that `like` holds, to be predicted; only its description is looked at."""
    if like.kind == Kind.TABLE:
        return rows_alike(as_arrow(given), like.about)
    if like.kind == Kind.TEXT:
        return store_texts(list(given), origin="X").x
    if like.kind == Kind.SOUND:
        return _spectrograms(given, like.about, rate)
    if like.kind in (Kind.IMAGE, Kind.VECTOR):
        return read_features(as_array(given), origin="X", value_range=like.value_range).x
    return np.asarray(given)


def guess_kind(given: Any) -> Kind:
    """Data frames, Arrow tables and arrays of mixed cells are tables, rows of text are text, arrays by their shape."""
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


def is_frame(given: Any) -> bool:
    """Whether it is a pandas data frame."""
    return hasattr(given, "iloc") and hasattr(given, "columns")


def holds_text(given: Any) -> bool:
    """Whether it is one text a row: a list, a one-dimensional array or a series of str."""
    if not isinstance(given, list | tuple | np.ndarray) and not is_series(given):
        return False
    return len(given) > 0 and all(isinstance(item, str) for item in given)


def is_series(given: Any) -> bool:
    """Whether it is a pandas series."""
    return hasattr(given, "iloc") and not hasattr(given, "columns")


def as_array(given: Any) -> np.ndarray:
    """A dense array of numbers from an array, a list, a torch tensor or a sparse matrix."""
    if hasattr(given, "detach"):
        return np.asarray(given.detach().cpu().numpy())
    if hasattr(given, "toarray"):
        needed = int(np.prod(given.shape)) * 4
        if needed > MOST_DENSE_BYTES:
            raise DataError(
                f"a sparse X is made dense, but shape {given.shape} would take {needed / 1e9:.0f} GB: make it smaller"
                " first, with sklearn's TruncatedSVD for instance"
            )
        return np.asarray(given.toarray())
    array = np.asarray(given)
    return array.astype(np.float64) if array.dtype.kind == "O" else array


def as_arrow(given: Any) -> Any:
    """A pyarrow table from a data frame, anything with Arrow's stream interface, or rows of mixed cells."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return given
    try:
        if is_frame(given):
            return pa.Table.from_pandas(given.rename(columns=str), preserve_index=False)
        if hasattr(given, "__arrow_c_stream__"):
            return pa.table(given)
        cells = np.asarray(given, dtype=object)
        return pa.table({f"x{i}": pa.array(list(cells[:, i])) for i in range(cells.shape[1])})
    except (pa.ArrowException, TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"X cannot be read as a table ({str(error).splitlines()[0]}): each column needs one type"
        ) from None


def to_json(held: Held) -> dict[str, Any]:
    """A description of `held` without its examples; what the encoding knows too is not in it."""
    return {
        "kind": str(held.kind),
        "frame": held.frame,
        "value_range": None if held.value_range is None else list(held.value_range),
    }


def from_json(value: dict[str, Any], encoding: Encoding) -> Held:
    """What `to_json` described, without examples."""
    span = value["value_range"]
    value_range = None if span is None else (float(span[0]), float(span[1]))
    about = getattr(encoding, {"table": "schema", "sound": "form"}.get(value["kind"], ""), None)
    return Held(np.empty(0), str(value["kind"]), about, value_range, bool(value["frame"]))


def rows_of(given: Any) -> int:
    """How many examples there are."""
    if hasattr(given, "num_rows"):
        return int(given.num_rows)
    return int(given.shape[0]) if hasattr(given, "shape") else len(given)


def _is_mixed(given: Any) -> bool:
    """Rows of cells of which some are text, or missing beside other than numbers."""
    if not isinstance(given, np.ndarray | list | tuple) or _dimensions(given) != 2:
        return False
    array = given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)
    if array.dtype.kind == "U":
        return True
    return array.dtype.kind == "O" and any(isinstance(cell, str) or cell is None for cell in array.ravel())


def _are_paths(given: Any) -> bool:
    return all(isinstance(item, str | Path) for item in given)


def _sound_format(given: Any, rate: int | None) -> SoundFormat:
    """A format made to measure for paths of .wav files or for waveforms."""
    from synthsieve.data.spectrograms import format_of_files, format_of_lengths

    if _are_paths(given):
        return format_of_files([Path(item) for item in given])
    known = _rate(rate)
    return format_of_lengths([len(waveform) / known for waveform in given], [known] * len(given))


def _spectrograms(given: Any, form: SoundFormat, rate: int | None) -> np.ndarray:
    from synthsieve.data.spectrograms import from_files, from_waveforms

    if _are_paths(given):
        return from_files([Path(item) for item in given], form)
    return from_waveforms(given, _rate(rate), form)


def _rate(rate: int | None) -> int:
    if rate is None or rate < 1:
        raise DataError(f"waveforms need their rate in samples a second, such as rate=8000, but {rate} came")
    return int(rate)
