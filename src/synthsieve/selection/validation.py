"""Input of a selection as checked numpy arrays: numpy, torch, data frames or Arrow; labels of any type.

Everything is checked here, once; the functions behind it trust their input.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.io.devices import AUTO, device_of
from synthsieve.io.printable import sort_naturally
from synthsieve.selection.kernels.blocks import row_blocks

if TYPE_CHECKING:
    import torch

_SUM_TOLERANCE = 1e-3  # rows of float32 probabilities may differ from 1 by this much
_MAX_LABEL = 2**63
_MAX_LABEL_LENGTH = 200  # characters: in a numpy array of text every row takes as much memory as the longest
_MAX_DENSE_BYTES = 4_000_000_000
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_PREFIXED = re.compile(r"([A-Za-z]+[_.: -])(.+)|([A-Za-z]+)([0-9]+)")


@dataclass(frozen=True)
class IndexedLabels:
    """Class indices int32 (n,), the label of each index, and notes on assumptions."""

    indices: np.ndarray
    names: tuple[Any, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NamedMatrix:
    """A matrix with column names."""

    values: Any
    columns: tuple[Any, ...]


def product_device(device: Any, *arrays: Any) -> torch.device | None:
    """Where matrix products are computed, None for numpy; `auto` is the device of the tensors among the arrays."""
    if device == AUTO:
        return next((one.device for one in arrays if hasattr(one, "detach") and one.device.type != "cpu"), None)
    return None if str(device) == "cpu" else device_of(device)


def as_array(value: Any) -> np.ndarray:
    """A numpy array of an array, a torch tensor, a frame, an Arrow column or a sequence; copied only if necessary."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.getmaskarray(value).any():
            raise SelectionError(
                f"expected no masked entries, got {value.mask.sum()}: fill them in or drop those rows", code="missing"
            )
        return np.asarray(value.data)
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # torch, without importing it
        value = value.detach().cpu()
        return (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    if isinstance(value, NamedMatrix):
        return as_array(value.values)
    if hasattr(value, "toarray"):
        if math.prod(value.shape) * 8 > _MAX_DENSE_BYTES:
            raise SelectionError(
                f"expected a sparse matrix that fits into {_MAX_DENSE_BYTES / 1e9:.0f} GB as a dense one, got shape "
                f"{value.shape}: reduce its columns first, for instance with sklearn's TruncatedSVD",
                code="too-large",
            )
        return np.asarray(value.toarray())
    if hasattr(value, "column_names") and hasattr(value, "schema"):  # an Arrow table
        columns = [as_array(column) for column in value.columns]
        if len(columns) == 1 and columns[0].ndim == 2:
            return columns[0]
        return np.column_stack(columns) if columns else np.empty((value.num_rows, 0))
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):  # a data frame
        array = np.asarray(value.to_numpy())
        with contextlib.suppress(TypeError, ValueError):  # `matrix` reports what cannot be converted
            array = array.astype(np.float64) if array.dtype == object else array
        return array
    if hasattr(value, "combine_chunks"):  # a chunked Arrow column
        value = value.combine_chunks()
    if hasattr(value, "to_numpy") and hasattr(value, "type"):  # an Arrow array
        if value.null_count:
            raise SelectionError(
                f"expected a column without nulls, got {value.null_count}: fill them in or drop those rows",
                code="missing",
            )
        return rows_of_lists(value) if is_list(value.type) else value.to_numpy(zero_copy_only=False)
    try:
        return np.asarray(value)
    except ValueError:
        raise SelectionError(
            "expected rows of one length, got several lengths: pad or drop the odd rows", code="ragged"
        ) from None


def column_names(value: Any) -> tuple[Any, ...] | None:
    """The column names of a data frame or an Arrow table; None for other input."""
    if isinstance(value, NamedMatrix):
        return value.columns
    if hasattr(value, "column_names") and hasattr(value, "schema"):
        lists = len(value.column_names) == 1 and is_list(value.schema.field(0).type)
        return None if lists else tuple(value.column_names)
    return tuple(value.columns) if hasattr(value, "columns") and hasattr(value, "to_numpy") else None


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is a list type."""
    return str(kind).startswith(("list", "large_list", "fixed_size_list"))


def rows_of_lists(column: Any) -> np.ndarray:
    """An Arrow column of lists, all of one length d, as (n, d)."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if len(column) and lengths.min() != lengths.max():
        raise SelectionError(
            f"expected lists of one length in an Arrow column, got lengths from {lengths.min()} to {lengths.max()}: "
            "pad or drop the odd rows",
            code="ragged",
        )
    values = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), lengths[0] if len(column) else 0)


def holds_vectors(cell: Any) -> bool:
    """Whether a column with this cell holds a vector in each row."""
    return isinstance(cell, list | tuple | np.ndarray) or hasattr(cell, "detach")


def stacked(cells: Sequence[Any] | np.ndarray, name: str) -> np.ndarray:
    """A column of vectors as a matrix (n, d)."""
    missing = next((row for row, cell in enumerate(cells) if not holds_vectors(cell)), None)
    if missing is not None:
        raise SelectionError(
            f"expected a vector in every row of {name}, got {cells[missing]!r:.40} in row {missing}: fill or drop that "
            "row",
            code="missing",
        )
    arrays = [as_array(cell) for cell in cells]
    odd = next((row for row, array in enumerate(arrays) if array.shape != arrays[0].shape), None)
    if odd is not None:
        raise SelectionError(
            f"expected rows of one length in {name}, got shape {arrays[odd].shape} in row {odd} after "
            f"{arrays[0].shape}: pad or drop the odd rows",
            code="ragged",
        )
    return np.stack(arrays)


def matrix(value: Any, name: str, *, first_row: int = 0) -> np.ndarray:
    """A finite float32 or float64 matrix (n, d); `first_row` is the number of its first row in error messages."""
    array = as_array(value)
    if array.dtype == object and array.ndim == 1 and len(array) and holds_vectors(array[0]):
        array = stacked(array, name)
    if array.ndim != 2 or array.shape[1] < 1:
        raise SelectionError(
            f"expected {name} of shape (n, d) with at least one column, got shape {array.shape}: one row an example",
            code="shape",
        )
    if not np.issubdtype(array.dtype, np.number) or np.issubdtype(array.dtype, np.complexfloating):
        raise SelectionError(f"expected numbers in {name}, got {array.dtype}: convert them to float", code="dtype")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    for part in row_blocks(*array.shape):
        bad = ~np.isfinite(array[part]).all(axis=1)
        if bad.any():
            row = part.start + int(np.argmax(bad))
            raise SelectionError(
                f"expected finite numbers in {name}, got {array[row][~np.isfinite(array[row])][0]} in row "
                f"{first_row + row}: drop or repair that row",
                code="not-finite",
            )
    return array


def unit_rows(matrix: np.ndarray, name: str) -> np.ndarray:
    """The rows scaled to length 1, for cosine distances, (n, d)."""
    scaled = np.empty_like(matrix)
    for part in row_blocks(*matrix.shape):
        block = matrix[part].astype(np.float64)
        largest = np.abs(block).max(axis=1, keepdims=True)
        if not largest.all():
            raise SelectionError(
                f"expected {name} of a length above 0 with metric='cosine', got zeros in row "
                f"{part.start + int(np.argmin(largest))}: drop that row, or use metric='euclidean'",
                code="zero-length",
            )
        block /= largest
        scaled[part] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return scaled


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
                f"{first_row + part.start + row}: if these are logits, pass them as logits",
                code="not-probabilities",
            )
    return array


def sample_weights(value: Any, length: int) -> np.ndarray:
    """Non-negative sample weights, not all zero."""
    try:
        array = as_array(value).astype(np.float64)
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if array.ndim == 1 and np.isfinite(array).all():
        same_length(length, sample_weight=array)
    if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any() or array.sum() <= 0:
        raise SelectionError(
            f"expected sample_weight as numbers of shape (n,), finite, not negative and not all 0, got shape "
            f"{array.shape} with minimum {array.min(initial=0):g}: correct it, or leave it out",
            code="sample-weight",
        )
    return array


def row_numbers(value: Any, length: int, name: str, *, positive: bool = False) -> np.ndarray:
    """A finite number for each row, float64 (n,); above 0 if `positive`."""
    try:
        array = as_array(value).astype(np.float64)
    except (TypeError, ValueError):
        raise SelectionError(
            f"expected numbers in {name}, got {str(value)[:50]}: convert them to float", code="dtype"
        ) from None
    if array.ndim != 1:
        raise SelectionError(f"expected {name} of shape (n,), got shape {array.shape}: one number a row", code="shape")
    same_length(length, **{name: array})
    bad = ~np.isfinite(array) if not positive else ~(np.isfinite(array) & (array > 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        wanted, tried = ("finite numbers", "drop or repair that row")
        if positive:
            wanted, tried = "finite numbers above 0", "shift or transform them, for instance exp of a log-probability"
        raise SelectionError(
            f"expected {wanted} in {name}, got {array[row]:g} in row {row}: {tried}",
            code=name if np.isfinite(array[row]) else "not-finite",
        )
    return array


def same_length(length: int, **arrays: np.ndarray | None) -> None:
    for name, array in arrays.items():
        if array is not None and len(array) != length:
            raise SelectionError(
                f"expected {length} rows in {name} as in the rest, got {len(array)}: check how they were joined",
                code="length",
            )


def column_labels(
    value: Any,
    num_columns: int,
    classes: Sequence[Any] | None,
    *,
    columns: Sequence[Any] | None = None,
    first_row: int = 0,
) -> IndexedLabels:
    """Labels as columns of a classifier's output: by `classes`, the names of `columns`, or the order of the labels."""
    array = label_array(value)
    notes: tuple[str, ...] = ()
    if classes is None:
        classes, notes = column_classes(np.unique(array), num_columns, columns, _categories(value))
    elif columns is not None:
        given = label_array(classes).astype(str).tolist()
        for read in _readings(columns):
            if sorted(read) == sorted(given) and read != given:
                raise SelectionError(
                    f"expected classes= in the order of the columns ({_listed(read)}), got {_listed(given)}: "
                    "leave classes= out, and columns are matched by name",
                    code="classes",
                )
    if classes is None:
        outside = (array < 0) | (array >= num_columns)
        if outside.any():
            row = int(np.argmax(outside))
            raise SelectionError(
                f"expected labels from 0 to {num_columns - 1} (one a column), got {array[row]} in row "
                f"{first_row + row}: give classes= with the label of each column, or drop unlabelled rows",
                code="unknown-label",
            )
        return IndexedLabels(array.astype(np.int32), tuple(range(num_columns)), notes)
    names = label_array(classes)
    if names.dtype.kind != array.dtype.kind and "U" in (names.dtype.kind, array.dtype.kind):
        names, array = names.astype(str), array.astype(str)  # numbers in one, their text in the other
    if len(names) != num_columns or len(np.unique(names)) < len(names):
        raise SelectionError(
            f"expected one label, each different, for each of {num_columns} columns, got {len(names)} "
            f"({len(np.unique(names))} different): give classes= in column order",
            code="classes",
        )
    indices = index_among(names, array)
    unknown = names[indices] != array
    if unknown.any():
        row = int(np.argmax(unknown))
        raise SelectionError(
            f"expected every label among classes, got {array[row].item()!r} in row {first_row + row}: "
            "add it or drop the row",
            code="unknown-label",
        )
    return IndexedLabels(indices, tuple(names.tolist()), notes)


def column_classes(
    labels: np.ndarray, num_columns: int, columns: Sequence[Any] | None, categories: Sequence[Any] | None = None
) -> tuple[tuple[Any, ...] | None, tuple[str, ...]]:
    """The label of each column (None: labels are column numbers), and a note where that had to be assumed.

    Args:
        labels: the distinct labels, as `label_array` returns them.
        columns: the names of the columns, where they have names.
        categories: the labels in the order of a categorical type, where they have one.
    """
    numeric = np.issubdtype(labels.dtype, np.integer)
    texts = set(labels.astype(str).tolist())
    positions = [str(number) for number in range(num_columns)]
    if columns is not None:
        for names in _readings(columns):
            if texts <= set(names) and len(set(names)) == len(names):
                note = (f"matched columns to labels by name: {_listed(names)}",)
                if not (numeric and all(_WHOLE.fullmatch(name) for name in names)):
                    return tuple(names), note
                return (None, ()) if names == positions else (tuple(int(name) for name in names), note)
        from_one = [str(number) for number in range(1, len(columns) + 1)]
        numbered = any(names in (positions, from_one) for names in _readings(columns))
        if not numbered and not numeric:
            raise SelectionError(
                f"expected columns named like the labels ({_listed(sort_naturally(texts))}), got columns "
                f"{_listed(columns)}: rename them, or give classes= in column order",
                code="column-names",
            )
        if not numbered:
            named = ", ".join(f"{place} is {str(name)[:40]!r}" for place, name in enumerate(columns[:3]))
            more = f", ... ({len(columns)} in all)" if len(columns) > 3 else ""
            return None, (f"labels are whole numbers: used them as column positions ({named}{more})",)
    if categories is not None:
        order = [str(name) for name in label_array(np.asarray(categories)).tolist()]
        order = order if len(order) == num_columns else [name for name in order if name in texts]
        if texts <= set(order) and len(order) == num_columns:
            if numeric and order == positions:
                return None, ()
            names_of = tuple(int(name) for name in order) if numeric else tuple(order)
            return names_of, (f"assumed the columns to be in the order of the categories: {_listed(order)}",)
    if numeric:
        return None, ()
    order = sort_naturally(texts)
    return tuple(order), (
        f"assumed the columns to be in the order of the sorted labels: {_listed(order)} (set classes= if not)",
    )


def _categories(labels: Any) -> Any:
    """The categories of a pandas or polars column of categories, or of an ordered Arrow dictionary; None for others."""
    found = getattr(getattr(labels, "dtype", None), "categories", None)
    if found is None and getattr(getattr(labels, "type", None), "ordered", False):
        whole = labels.combine_chunks() if hasattr(labels, "combine_chunks") else labels
        found = getattr(whole, "dictionary", None)
    return None if found is None else as_array(found)


def _readings(columns: Sequence[Any]) -> list[list[str]]:
    """Column names as text; with True, False and 1.0 as whole numbers; without a prefix that all share (`p_`)."""
    plain = [str(name) for name in columns]
    found = [plain]
    if all(isinstance(name, bool | np.bool_ | float | np.floating) and name == int(name) for name in columns):
        found.append([str(int(name)) for name in columns])
    parts = [_PREFIXED.fullmatch(name) for name in plain]
    if all(parts) and len({part[1] or part[3] for part in parts if part}) == 1:
        found.append([part[2] or part[4] for part in parts if part])
    return found


def _listed(names: Sequence[Any]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > 8 else ""
    return ", ".join(repr(str(name)[:40]) for name in names[:8]) + more


def index_among(names: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The index of each label in `names`, int32 (n,); names are distinct. Arbitrary for labels that are not there."""
    sorter = np.argsort(names)
    place = np.minimum(np.searchsorted(names, labels, sorter=sorter), len(names) - 1)
    return sorter[place].astype(np.int32)


def any_labels(value: Any) -> IndexedLabels:
    """Labels of any type, numbered in their natural order, or in that of their categories."""
    names, indices = np.unique(label_array(value), return_inverse=True)
    order, categories = names.tolist(), _categories(value)
    if categories is not None:
        present = set(order)
        order = [name for name in label_array(categories).tolist() if name in present]
    elif names.dtype.kind == "U":
        order = sort_naturally(order)
    if order == names.tolist() or len(order) != len(names):
        return IndexedLabels(indices.astype(np.int32, copy=False), tuple(names.tolist()))
    return IndexedLabels(index_among(np.array(order), names)[indices], tuple(order))


def label_array(value: Any) -> np.ndarray:
    """Whole numbers or text (n,): bytes are decoded as UTF-8, dates and durations become text."""
    array = as_array(value)
    if array.ndim != 1:
        raise _label_error(f"shape {array.shape}", code="shape")
    kind = array.dtype.kind
    if kind == "O":
        if any(isinstance(item, list | tuple | dict | np.ndarray) for item in array):
            raise _label_error("a list in one row")
        if any(item is None or item != item for item in array):
            raise _label_error("an empty one", code="missing")
        if all(isinstance(item, int | np.integer) and abs(int(item)) < _MAX_LABEL for item in array):
            return array.astype(np.int64)
    if kind in "OS":
        return _texts(array)
    if kind == "f":
        if not (np.isfinite(array).all() and (array == np.floor(array)).all()):
            raise _label_error("fractions or nan")
        if (np.abs(array) >= _MAX_LABEL).any():
            raise _label_error(f"{array[np.argmax(np.abs(array))]:g}, which is not below 2^63")
        return array.astype(np.int64)
    if kind in "Mm" and np.isnat(array).any():
        raise _label_error("an empty one", code="missing")
    if kind not in "biuUMm":
        raise _label_error(str(array.dtype))
    return array.astype({"b": np.int64, "M": str, "m": str}.get(kind, array.dtype), copy=False)


def _label_error(got: str, code: str = "label-type") -> SelectionError:
    return SelectionError(
        f"expected one label a row, shape (n,), each a whole number or text, got {got}: convert or drop it", code=code
    )


def _texts(labels: np.ndarray) -> np.ndarray:
    try:
        texts = [label.decode("utf-8") if isinstance(label, bytes) else str(label) for label in labels.tolist()]
    except UnicodeDecodeError as error:
        raise _label_error(f"{error.object[:50]!r}, which is not UTF-8") from None
    longest = max(map(len, texts), default=0)
    if longest > _MAX_LABEL_LENGTH:
        raise SelectionError(
            f"expected labels of at most {_MAX_LABEL_LENGTH} characters, got one of {longest:,}: use shorter names",
            code="label-length",
        )
    return np.array(texts, dtype=str)
