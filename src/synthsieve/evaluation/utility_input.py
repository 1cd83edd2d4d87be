"""The rows of a utility measurement: labelled, synthetic, pool, unlabelled and test rows, once they are known to fit
together and no row both trains and measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.containers import rows_of, take_rows
from synthsieve.data.dataset import UNLABELED
from synthsieve.data.labels import as_labels, is_known, listed, read_targets
from synthsieve.data.rows import common_rows, join_rows, read_rows, row_keys
from synthsieve.errors import InputError

MAX_LISTED = 5  # leaking rows in an error


@dataclass(frozen=True)
class UtilityData:
    """All rows in one container, one set below the other.

    Attributes:
        rows: of all sets.
        places: where each set begins and ends.
        y: int64, classes of all rows; -1 where there are none.
        classes: the labels, sorted, of the type they came in.
        weights: of the synthetic rows.
        groups: a number for each labelled row; equal rows have the same.
    """

    rows: Any
    places: Mapping[str, tuple[int, int]]
    y: np.ndarray
    classes: np.ndarray
    weights: np.ndarray | None
    groups: np.ndarray
    notes: list[str]

    @property
    def has_test(self) -> bool:
        return "X_test" in self.places

    @property
    def labels(self) -> np.ndarray:
        return self.y[self.of("X")]

    def of(self, name: str) -> np.ndarray:
        return np.arange(*self.places[name])

    def count(self, name: str) -> int:
        start, end = self.places.get(name, (0, 0))
        return end - start


def read_utility_data(
    X: Any,
    y: Any,
    synthetic: Any,
    X_test: Any,
    y_test: Any,
    unlabeled: Any,
    pool: Any,
    weights: Any,
    *,
    drop_leaks: bool,
) -> UtilityData:
    """All rows, once it is known that they can be used together and that none measures that also trains."""
    if (X_test is None) != (y_test is None):
        raise InputError("expected both X_test and y_test or neither, got one: pass both", code="missing-argument")
    given, labels = {"X": X}, {"X": y}
    given["synthetic"], labels["synthetic"] = _pair(synthetic, "synthetic")
    if pool is not None:
        given["pool"], labels["pool"] = _pair(pool, "pool")
    if unlabeled is not None:
        paired = isinstance(unlabeled, tuple) and len(unlabeled) == 2
        given["unlabeled"], labels["unlabeled"] = unlabeled if paired else (unlabeled, None)
    if X_test is not None:
        given["X_test"], labels["X_test"] = X_test, y_test
    sets = read_rows(given)
    raw = as_labels(y)
    _check_count("y", raw, rows_of(sets["X"]))
    known = is_known(raw)
    if not known.all():
        if "unlabeled" not in sets:
            sets["unlabeled"], labels["unlabeled"] = take_rows(sets["X"], np.flatnonzero(~known)), None
        sets["X"], raw = take_rows(sets["X"], np.flatnonzero(known)), raw[known]
    targets = read_targets(raw)
    if len(targets.classes) < 2:
        raise InputError(
            f"y must have at least two classes, but has {len(targets.classes)}: label rows of another class",
            code="one-class",
        )
    classes = {"X": targets.y}
    for name in sets.keys() - {"X"}:
        classes[name] = _classes_of(name, labels[name], rows_of(sets[name]), targets.classes)
    weight = _weights(weights, rows_of(sets["synthetic"]))
    keys = row_keys(sets)
    keep, notes = _without_leaks(keys, drop=drop_leaks)
    for name, rows in keep.items():
        sets[name], classes[name] = take_rows(sets[name], rows), classes[name][rows]
        weight = weight[rows] if name == "synthetic" and weight is not None else weight
        if not len(rows):
            raise InputError(f"no row of {name} is left without those that are also test rows", code="leak")
    kept = [keys["X"][row] for row in keep.get("X", np.arange(len(keys["X"])))]
    numbers: dict[Any, int] = {}
    groups = np.array([numbers.setdefault(key, len(numbers)) for key in kept], dtype=np.int64)
    ends = np.cumsum([rows_of(rows) for rows in sets.values()]).tolist()
    return UtilityData(
        rows=join_rows(list(sets.values())),
        places=dict(zip(sets, zip([0, *ends[:-1]], ends, strict=True), strict=True)),
        y=np.concatenate([classes[name] for name in sets]),
        classes=targets.classes,
        weights=weight,
        groups=groups,
        notes=notes,
    )


def _pair(given: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(given, tuple) or len(given) != 2:
        raise InputError(
            f"{name} must be a pair (X, y) of rows and their labels, got a {type(given).__name__}",
            code="not-a-pair",
        )
    return given


def _check_count(name: str, raw: np.ndarray, count: int) -> None:
    if raw.shape != (count,):
        raise InputError(
            f"{name} must have one label for each of {count:,} rows, got shape {raw.shape}",
            code="different-lengths",
        )


def _classes_of(name: str, given: Any, count: int, classes: np.ndarray) -> np.ndarray:
    """Class indices of the labels of one set; -1 for all where there are none."""
    if given is None:
        return np.full(count, UNLABELED, dtype=np.int64)
    raw = as_labels(given)
    _check_count(f"labels of {name}", raw, count)
    y = read_targets(raw, classes).y
    if (y == UNLABELED).any():
        unknown = sorted({str(label) for label in raw[y == UNLABELED].tolist()})
        raise InputError(
            f"labels of {name} must be among those of y, {listed([str(c) for c in classes])}, got {listed(unknown)}: "
            "remove these rows, or label some rows of that class",
            code="unseen-label",
        )
    return y


def _weights(given: Any, count: int) -> np.ndarray | None:
    if given is None:
        return None
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (count,) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise InputError(
            f"weights must be {count:,} finite numbers, none below 0 and some above, for the synthetic rows, got "
            f"shape {weights.shape}",
            code="bad-weights",
        )
    return weights


def _without_leaks(keys: Mapping[str, list[Any]], *, drop: bool) -> tuple[dict[str, np.ndarray], list[str]]:
    """Rows of each set to keep, where some are left out, and notes; without `drop`, rows that measure and train are
    an error. Without a test set the labelled rows measure."""
    measured = "X_test" if "X_test" in keys else "X"
    what = "test rows" if measured == "X_test" else "labelled rows, which measure in turn without a test set"
    keep, notes, found = {}, [], []
    for name in [one for one in ("X", "synthetic", "pool", "unlabeled") if one in keys and one != measured]:
        pairs = common_rows(keys[name], keys[measured])
        if not pairs:
            continue
        keep[name] = np.setdiff1d(np.arange(len(keys[name])), [row for row, _ in pairs])
        notes.append(f"{len(pairs):,} rows of {name} that are also {what} were left out")
        shown = ", ".join(f"row {row} of {name} = row {other} of {measured}" for row, other in pairs[:MAX_LISTED])
        found.append(
            f"{len(pairs):,} of {len(keys[name]):,} rows of {name} ({shown}{', ...' * (len(pairs) > MAX_LISTED)})"
        )
    if found and not drop:
        raise InputError(
            f"{'; '.join(found)} are also {what}: remove them, or leave them out with drop_leaks=True", code="leak"
        )
    return keep, notes
