"""What comes in at the door: numpy, torch or Arrow, any labels; checked once, in one place, and trusted inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection.budget import Budget

Choice = TypeVar("Choice", bound=StrEnum)
# Rows of float32 probabilities may miss 1 by this much.
_SUM_TOLERANCE = 1e-3
_ROWS_AT_A_TIME = 65_536
_MOST_LABEL = 2**63
_LONGEST_LABEL = 200  # characters: an array of text takes as much for each row as for the longest
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Labels:
    """Class indices int32 (n,), and the label each index stands for."""

    indices: np.ndarray
    names: tuple[Any, ...]


def one_of(kind: type[Choice], value: str, name: str) -> Choice:
    """The member of an enum named by `value`."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise SelectionError(f"expected {name} to be one of {known}, got {value!r}: pick one of those") from None


def as_array(value: Any) -> np.ndarray:
    """A numpy view of a numpy array, a torch tensor, an Arrow column or a sequence, copied only where it must be."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.getmaskarray(value).any():
            raise SelectionError(f"expected no masked entries, got {value.mask.sum()}: fill them in or drop those rows")
        return np.asarray(value.data)
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # torch, without importing it
        value = value.detach().cpu()
        return (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    if hasattr(value, "combine_chunks"):  # a chunked Arrow column
        value = value.combine_chunks()
    if hasattr(value, "to_numpy") and hasattr(value, "type"):  # an Arrow array
        return _from_arrow(value)
    try:
        return np.asarray(value)
    except ValueError:
        raise SelectionError("expected rows of one length, got several lengths: pad or drop the odd rows") from None


def _from_arrow(column: Any) -> np.ndarray:
    if column.null_count:
        raise SelectionError(
            f"expected a column without nulls, got {column.null_count}: fill them in or drop those rows"
        )
    return rows_of_lists(column) if is_list(column.type) else column.to_numpy(zero_copy_only=False)


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is one of lists; others may hold lists, or be called so."""
    return str(kind).startswith(("list", "large_list", "fixed_size_list"))


def rows_of_lists(column: Any) -> np.ndarray:
    """An Arrow column of lists, all of one length d, as (n, d)."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if len(column) and lengths.min() != lengths.max():
        raise SelectionError(
            f"expected lists of one length in an Arrow column, got lengths from {lengths.min()} to {lengths.max()}: "
            "pad or drop the odd rows"
        )
    values = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), lengths[0] if len(column) else 0)


def matrix(value: Any, name: str, *, first_row: int = 0) -> np.ndarray:
    """A finite float32 or float64 matrix (n, d), whose rows are counted from `first_row` in what is said of them."""
    array = as_array(value)
    if array.ndim != 2:
        raise SelectionError(f"expected {name} of shape (n, d), got shape {array.shape}: reshape to one row an example")
    if array.shape[1] < 1:
        raise SelectionError(f"expected {name} with at least one column, got shape {array.shape}: check the columns")
    if not np.issubdtype(array.dtype, np.number) or np.issubdtype(array.dtype, np.complexfloating):
        raise SelectionError(f"expected numbers in {name}, got {array.dtype}: convert them to float")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    for start in range(0, len(array), _ROWS_AT_A_TIME):
        bad = ~np.isfinite(array[start : start + _ROWS_AT_A_TIME]).all(axis=1)
        if bad.any():
            row = start + int(np.argmax(bad))
            raise SelectionError(
                f"expected finite numbers in {name}, got {_first_bad(array[row])} in row {first_row + row}: "
                "drop or repair that row"
            )
    return array


def _first_bad(row: np.ndarray) -> float:
    return float(row[~np.isfinite(row)][0])


def probabilities(value: Any, *, first_row: int = 0) -> np.ndarray:
    """A matrix whose rows are non-negative and sum to 1."""
    array = matrix(value, "probabilities", first_row=first_row)
    for start in range(0, len(array), _ROWS_AT_A_TIME):
        block = array[start : start + _ROWS_AT_A_TIME]
        sums = block.sum(axis=1, dtype=np.float64)
        bad = (np.abs(sums - 1.0) > _SUM_TOLERANCE) | (block < 0).any(axis=1)
        if bad.any():
            row = int(np.argmax(bad))
            what = f"a sum of {sums[row]:.4g}" if (block[row] >= 0).all() else f"{block[row].min():.4g}"
            raise SelectionError(
                f"expected probabilities that are not negative and sum to 1, got {what} in row "
                f"{first_row + start + row}: "
                "if these are logits, pass them as logits"
            )
    return array


def column_labels(value: Any, num_columns: int, classes: Sequence[Any] | None, *, first_row: int = 0) -> Labels:
    """Labels as columns of a classifier's output: integers as they are, anything else by `classes`."""
    array = label_array(value)
    if classes is None and np.issubdtype(array.dtype, np.integer):
        outside = (array < 0) | (array >= num_columns)
        if outside.any():
            row = int(np.argmax(outside))
            raise SelectionError(
                f"expected labels from 0 to {num_columns - 1} (one a column), got {array[row]} in row "
                f"{first_row + row}: give classes= with the label of each column, or drop unlabelled rows"
            )
        return Labels(array.astype(np.int32), tuple(range(num_columns)))
    names = np.unique(array) if classes is None else label_array(classes)
    if names.dtype.kind != array.dtype.kind and "U" in (names.dtype.kind, array.dtype.kind):
        names, array = names.astype(str), array.astype(str)  # numbers on one side, their text on the other
    if len(np.unique(names)) < len(names):
        raise SelectionError("expected classes without repetitions, got a label twice: give each column its own")
    if len(names) != num_columns:
        raise SelectionError(
            f"expected one label for each of {num_columns} columns, got {len(names)}: give classes= in column order"
        )
    sorter = np.argsort(names)
    place = np.minimum(np.searchsorted(names, array, sorter=sorter), len(names) - 1)
    indices = sorter[place].astype(np.int32)
    unknown = names[indices] != array
    if unknown.any():
        row = int(np.argmax(unknown))
        raise SelectionError(
            f"expected every label among classes, got {array[row].item()!r} in row {first_row + row}: "
            "add it or drop the row"
        )
    return Labels(indices, tuple(names.tolist()))


def any_labels(value: Any) -> Labels:
    """Labels of any kind, numbered in sorted order."""
    names, indices = np.unique(label_array(value), return_inverse=True)
    return Labels(indices.astype(np.int32, copy=False), tuple(names.tolist()))


def label_array(value: Any) -> np.ndarray:
    """Whole numbers or text (n,), of whatever came: bytes are read as UTF-8, dates and spans are told as text."""
    array = as_array(value)
    if array.ndim != 1:
        raise SelectionError(f"expected labels of shape (n,), got shape {array.shape}: give one label a row")
    if array.dtype == object:
        if any(isinstance(item, list | tuple | dict | np.ndarray) for item in array):
            raise SelectionError("expected one label a row, got a list of them: choose one or join them to a text")
        if any(item is None or item != item for item in array):
            raise SelectionError("expected a label in every row, got an empty one: fill it in or drop that row")
        if all(isinstance(item, int | np.integer) and abs(int(item)) < _MOST_LABEL for item in array):
            return array.astype(np.int64)
        return _texts(array)
    kind = array.dtype.kind
    if kind == "f":
        if not (np.isfinite(array).all() and (array == np.floor(array)).all()):
            raise SelectionError("expected whole numbers or text as labels, got fractions or nan: round or name them")
        if (np.abs(array) >= _MOST_LABEL).any():
            raise SelectionError(
                f"expected labels below 2^63, got {array[np.argmax(np.abs(array))]:g}: give such numbers as text"
            )
        return array.astype(np.int64)
    if kind in "Mm" and np.isnat(array).any():
        raise SelectionError("expected a label in every row, got an empty one: fill it in or drop that row")
    if kind == "S":
        return _texts(array)
    if kind not in "biuUMm":
        raise SelectionError(f"expected whole numbers or text as labels, got {array.dtype}: convert them to either")
    return array.astype({"b": np.int64, "M": str, "m": str}.get(kind, array.dtype), copy=False)


def _texts(labels: np.ndarray) -> np.ndarray:
    try:
        texts = [label.decode("utf-8") if isinstance(label, bytes) else str(label) for label in labels.tolist()]
    except UnicodeDecodeError as error:
        raise SelectionError(
            f"expected labels as text in UTF-8, got {error.object[:50]!r}: name them in text"
        ) from None
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_LABEL:
        raise SelectionError(
            f"expected labels of at most {_LONGEST_LABEL} characters, got one of {longest:,}: name classes shortly"
        )
    return np.array(texts, dtype=str)


def weights(value: Any, length: int) -> np.ndarray:
    """Non-negative sample weights, not all zero."""
    try:
        array = as_array(value).astype(np.float64)
    except (TypeError, ValueError):
        raise SelectionError("expected numbers in sample_weight, got something else: convert them to float") from None
    if array.ndim == 1:
        same_length(length, sample_weight=array)
    if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any() or array.sum() <= 0:
        raise SelectionError(
            f"expected sample_weight of shape (n,), finite, not negative and not all 0, got shape {array.shape} with "
            f"minimum {array.min(initial=0):g}: repair it, or leave it out"
        )
    return array


def same_length(length: int, **arrays: np.ndarray | None) -> None:
    for name, array in arrays.items():
        if array is not None and len(array) != length:
            raise SelectionError(
                f"expected {length} rows in {name} as in the rest, got {len(array)}: check what was joined"
            )


def budget_of(budget: float | int | None, epsilon: float | None) -> Budget:
    """A fraction, a count or a bound, told apart by type."""
    if epsilon is not None:
        number = isinstance(epsilon, int | float | np.integer | np.floating)
        if not (number and 0 < epsilon < _LARGEST):  # a whole number may be too large for a float
            raise SelectionError(f"expected epsilon above 0, got {str(epsilon)[:50]}: it is a length in gradient units")
        return Budget(bound=float(epsilon))
    if isinstance(budget, bool) or not isinstance(budget, int | float | np.integer | np.floating):
        raise SelectionError(f"expected budget as a fraction or a count, got {budget!r}: try 0.1")
    if isinstance(budget, int | np.integer):
        if budget < 1:
            raise SelectionError(f"expected budget as a count of at least 1, got {budget}: try 0.1 for a tenth")
        return Budget(count=int(budget))
    if not 0 < budget <= 1:
        raise SelectionError(
            f"expected budget as a fraction in (0, 1] or a whole count, got {budget:g}: try 0.1, or an int for a count"
        )
    return Budget(fraction=float(budget))


def jobs(value: int | None) -> int | None:
    """A number of threads; None, or -1 as scikit-learn says it, means all cores."""
    if value is None or (isinstance(value, int | np.integer) and value == -1):
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise SelectionError(
            f"expected n_jobs of at least 1 or -1 for all cores, got {value!r}: leave it out to use all cores"
        )
    return int(value)
