"""What comes in: numpy, torch, data frames or Arrow, any labels; checked once, in one place, and trusted inside."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.natural_order import sort_naturally
from synthsieve.selection.blocks import row_blocks
from synthsieve.selection.budget import Budget

Choice = TypeVar("Choice", bound=StrEnum)
# Rows of float32 probabilities may miss 1 by this much.
_SUM_TOLERANCE = 1e-3
_MOST_LABEL = 2**63
_LARGEST_DENSE = 4_000_000_000  # bytes
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_PREFIXED = re.compile(r"([A-Za-z]+[_.: -])(.+)|([A-Za-z]+)([0-9]+)")
_LONGEST_LABEL = 200  # characters: an array of text takes as much for each row as for the longest
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Labels:
    """Class indices int32 (n,), the label each index stands for, and notes on how they were told."""

    indices: np.ndarray
    names: tuple[Any, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NamedMatrix:
    """A matrix whose columns have names."""

    values: Any
    columns: tuple[Any, ...]


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
    if isinstance(value, NamedMatrix):
        return as_array(value.values)
    if hasattr(value, "toarray"):
        return _from_sparse(value)
    if hasattr(value, "column_names") and hasattr(value, "schema"):  # an Arrow table
        return _from_table(value)
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):  # a data frame
        return _from_frame(value)
    if hasattr(value, "combine_chunks"):  # a chunked Arrow column
        value = value.combine_chunks()
    if hasattr(value, "to_numpy") and hasattr(value, "type"):  # an Arrow array
        return _from_arrow(value)
    try:
        return np.asarray(value)
    except ValueError:
        raise SelectionError("expected rows of one length, got several lengths: pad or drop the odd rows") from None


def column_names(value: Any) -> tuple[Any, ...] | None:
    """The names of the columns of a data frame or an Arrow table; None for what has none."""
    if isinstance(value, NamedMatrix):
        return value.columns
    if hasattr(value, "column_names") and hasattr(value, "schema"):  # an Arrow table
        lists = len(value.column_names) == 1 and is_list(value.schema.field(0).type)
        return None if lists else tuple(value.column_names)
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):
        return tuple(value.columns)
    return None


def _from_sparse(value: Any) -> np.ndarray:
    needed = math.prod(value.shape) * 8
    if needed > _LARGEST_DENSE:
        raise SelectionError(
            f"expected a sparse matrix that fits into {_LARGEST_DENSE / 1e9:.0f} GB when made dense, got shape "
            f"{value.shape}: reduce its columns first, for instance with sklearn's TruncatedSVD"
        )
    return np.asarray(value.toarray())


def _from_frame(frame: Any) -> np.ndarray:
    array = np.asarray(frame.to_numpy())
    if array.dtype == object:
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            return array  # whoever wants numbers says so
    return array


def _from_table(table: Any) -> np.ndarray:
    columns = [as_array(column) for column in table.columns]
    if len(columns) == 1 and columns[0].ndim == 2:
        return columns[0]
    return np.column_stack(columns) if columns else np.empty((table.num_rows, 0))


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
    for part in row_blocks(*array.shape):
        bad = ~np.isfinite(array[part]).all(axis=1)
        if bad.any():
            row = part.start + int(np.argmax(bad))
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
    for part in row_blocks(*array.shape):
        block = array[part]
        sums = block.sum(axis=1, dtype=np.float64)
        bad = (np.abs(sums - 1.0) > _SUM_TOLERANCE) | (block < 0).any(axis=1)
        if bad.any():
            row = int(np.argmax(bad))
            what = f"a sum of {sums[row]:.4g}" if (block[row] >= 0).all() else f"{block[row].min():.4g}"
            raise SelectionError(
                f"expected probabilities that are not negative and sum to 1, got {what} in row "
                f"{first_row + part.start + row}: "
                "if these are logits, pass them as logits"
            )
    return array


def column_labels(
    value: Any,
    num_columns: int,
    classes: Sequence[Any] | None,
    *,
    columns: Sequence[Any] | None = None,
    first_row: int = 0,
) -> Labels:
    """Labels as columns of a classifier's output: by `classes`, by the columns' names, by the order of the labels.

    Args:
        classes: the label of each column, in order.
        columns: the names of the columns, where they have names.
        first_row: the number of the first row, in what is said of it.
    """
    array = label_array(value)
    notes: tuple[str, ...] = ()
    if classes is None:
        classes, notes = column_classes(np.unique(array), num_columns, columns, _categories(value))
    elif columns is not None:
        _check_agreement(label_array(classes).astype(str).tolist(), columns)
    if classes is None:
        outside = (array < 0) | (array >= num_columns)
        if outside.any():
            row = int(np.argmax(outside))
            raise SelectionError(
                f"expected labels from 0 to {num_columns - 1} (one a column), got {array[row]} in row "
                f"{first_row + row}: give classes= with the label of each column, or drop unlabelled rows"
            )
        return Labels(array.astype(np.int32), tuple(range(num_columns)), notes)
    names = label_array(classes)
    if names.dtype.kind != array.dtype.kind and "U" in (names.dtype.kind, array.dtype.kind):
        names, array = names.astype(str), array.astype(str)  # numbers on one side, their text on the other
    if len(np.unique(names)) < len(names):
        raise SelectionError("expected classes without repetitions, got a label twice: give each column its own")
    if len(names) != num_columns:
        raise SelectionError(
            f"expected one label for each of {num_columns} columns, got {len(names)}: give classes= in column order"
        )
    indices = places_among(names, array)
    unknown = names[indices] != array
    if unknown.any():
        row = int(np.argmax(unknown))
        raise SelectionError(
            f"expected every label among classes, got {array[row].item()!r} in row {first_row + row}: "
            "add it or drop the row"
        )
    return Labels(indices, tuple(names.tolist()), notes)


def column_classes(
    labels: np.ndarray, num_columns: int, columns: Sequence[Any] | None, categories: Sequence[Any] | None = None
) -> tuple[tuple[Any, ...] | None, tuple[str, ...]]:
    """The label of each column (None: labels are the columns' numbers), and a note where that had to be assumed.

    Args:
        labels: the distinct labels, as `label_array` gives them.
        columns: the names of the columns, where they have names.
        categories: the labels in an order of their own, where they have one.
    """
    numbers = np.issubdtype(labels.dtype, np.integer)
    texts = set(labels.astype(str).tolist())
    if columns is not None:
        for names in _readings(columns):
            if texts <= set(names) and len(set(names)) == len(names):
                if numbers and all(_WHOLE.fullmatch(name) for name in names):
                    if names == [str(number) for number in range(num_columns)]:
                        return None, ()
                    return tuple(int(name) for name in names), (f"matched columns to labels by name: {_listed(names)}",)
                return tuple(names), (f"matched columns to labels by name: {_listed(names)}",)
        plain = any(_count_up(names) for names in _readings(columns))
        if not plain and not numbers:
            raise SelectionError(
                f"expected columns named like the labels ({_listed(sort_naturally(texts))}), got columns "
                f"{_listed([str(name) for name in columns])}: rename them, or give classes= in column order"
            )
        if not plain:
            named = ", ".join(f"{place} is {str(name)[:40]!r}" for place, name in enumerate(columns[:3]))
            return None, (f"labels are whole numbers: took them as column positions ({named}{_more(columns, 3)})",)
    if categories is not None:
        order = [str(name) for name in label_array(np.asarray(categories)).tolist()]
        order = order if len(order) == num_columns else [name for name in order if name in texts]
        if texts <= set(order) and len(order) == num_columns:
            if numbers and order == [str(number) for number in range(num_columns)]:
                return None, ()
            names_of = tuple(int(name) for name in order) if numbers else tuple(order)
            return names_of, (f"assumed the columns to be in the order of the categories: {_listed(order)}",)
    if numbers:
        return None, ()
    order = sort_naturally(texts)
    return tuple(order), (
        f"assumed the columns to be in the order of the sorted labels: {_listed(order)} (classes= says otherwise)",
    )


def _categories(labels: Any) -> Any:
    """The categories of a pandas or polars column of categories, or of an ordered Arrow dictionary; None for others."""
    found = getattr(getattr(labels, "dtype", None), "categories", None)
    if found is None and getattr(getattr(labels, "type", None), "ordered", False):
        whole = labels.combine_chunks() if hasattr(labels, "combine_chunks") else labels
        found = getattr(whole, "dictionary", None)
    return None if found is None else as_array(found)


def _readings(columns: Sequence[Any]) -> list[list[str]]:
    """The names of columns as text; with True, False and 1.0 as numbers; without a beginning that all share (`p_`)."""
    plain = [str(name) for name in columns]
    found = [plain]
    if all(isinstance(name, bool | np.bool_ | float | np.floating) and name == int(name) for name in columns):
        found.append([str(int(name)) for name in columns])
    parts = [_PREFIXED.fullmatch(name) for name in plain]
    if all(parts) and len({part[1] or part[3] for part in parts if part}) == 1:
        found.append([part[2] or part[4] for part in parts if part])
    return found


def _count_up(names: list[str]) -> bool:
    """Whether names do no more than number the columns, from 0 or 1."""
    return any(names == [str(first + place) for place in range(len(names))] for first in (0, 1))


def _check_agreement(classes: list[str], columns: Sequence[Any]) -> None:
    for names in _readings(columns):
        if sorted(names) == sorted(classes) and names != classes:
            raise SelectionError(
                f"expected classes= in the order of the columns ({_listed(names)}), got {_listed(classes)}: "
                "leave classes= out, and columns are matched by name"
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name[:40]) for name in names[:8]) + _more(names, 8)


def _more(names: Sequence[Any], shown: int) -> str:
    return f", ... ({len(names)} in all)" if len(names) > shown else ""


def places_among(names: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """int32 (n,): where each label stands among `names`, which are all different; anywhere if it does not."""
    sorter = np.argsort(names)
    place = np.minimum(np.searchsorted(names, labels, sorter=sorter), len(names) - 1)
    return sorter[place].astype(np.int32)


def any_labels(value: Any) -> Labels:
    """Labels of any kind, numbered in their natural order, or in that of their categories."""
    names, indices = np.unique(label_array(value), return_inverse=True)
    order, categories = names.tolist(), _categories(value)
    if categories is not None:
        present = set(order)
        order = [name for name in label_array(categories).tolist() if name in present]
    elif names.dtype.kind == "U":
        order = sort_naturally(order)
    if order == names.tolist() or len(order) != len(names):
        return Labels(indices.astype(np.int32, copy=False), tuple(names.tolist()))
    return Labels(places_among(np.array(order), names)[indices], tuple(order))


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
