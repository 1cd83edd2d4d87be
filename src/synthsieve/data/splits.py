"""Which rows a run may learn from, which choose the model, and which only judge it.

The order is: test (unless the source has its own), validation, labelled, and the rest unlabelled. Each is drawn from a
stream of its own, so that asking for more labels only adds labels and never moves test or validation.
"""

from __future__ import annotations

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.data.holdout import hold_out
from synthsieve.data.labels import listed
from synthsieve.data.manifest import Split, fingerprint
from synthsieve.errors import DataError
from synthsieve.randomness import numpy_stream

__all__ = ["Split", "make_split"]


def make_split(
    dataset: Dataset,
    *,
    labels: int | None,
    balanced: bool = True,
    validation_fraction: float = 0.1,
    test_fraction: float = 0.2,
    seed: int,
) -> Split:
    """The split of (dataset, seed): disjoint parts that cover every row.

    Args:
        labels: size of the labelled set; None uses every labelled row that is left.
        balanced: share it evenly among the classes (the first classes take the remainder); otherwise rows are labelled
            as they come, at least one of each class.
        validation_fraction: of the labelled rows of the training side, stratified by class.
        test_fraction: of the labelled rows, stratified, where the source has no test set of its own.
    """
    for name, fraction in (("validation_fraction", validation_fraction), ("test_fraction", test_fraction)):
        if not 0 <= fraction < 1:
            raise DataError(f"{name} must lie in [0, 1), but {fraction} came")
    y, groups = dataset.train.y, dataset.train.groups
    free = np.ones(len(y), dtype=bool)
    own = dataset.test is not None

    if own:
        test = np.arange(len(dataset.test or ()), dtype=np.int64)
    else:
        test = hold_out(
            y, groups, free, fraction=test_fraction, part="test", generator=numpy_stream(seed, "split/test")
        )
        _take(free, test, groups)
    validation = hold_out(
        y,
        groups,
        free,
        fraction=validation_fraction,
        part="validation",
        generator=numpy_stream(seed, "split/validation"),
    )
    _take(free, validation, groups)
    labeled = _choose_labeled(dataset, free, labels, balanced, numpy_stream(seed, "split/labeled"))

    unlabeled = np.setdiff1d(np.flatnonzero(free), labeled)
    used = [labeled, unlabeled, validation] + ([] if own else [test])
    excluded = np.setdiff1d(np.arange(len(y)), np.concatenate(used))
    return Split(
        source=dataset.name,
        classes=dataset.classes,
        seed=seed,
        labeled=labeled,
        unlabeled=unlabeled.astype(np.int64),
        validation=validation,
        test=test,
        excluded=excluded.astype(np.int64),
        test_is_own=own,
        grouped=groups is not None,
        fingerprint=fingerprint(dataset),
        counts=_count(dataset, labeled, unlabeled, validation, test),
        notes=_notes(unlabeled, validation, test, excluded),
    )


def _take(free: np.ndarray, rows: np.ndarray, groups: np.ndarray | None) -> None:
    """Mark `rows`, and every other row of their groups, as no longer free."""
    free[rows] = False
    if groups is not None:
        free[np.isin(groups, groups[rows])] = False


def _choose_labeled(
    dataset: Dataset, free: np.ndarray, labels: int | None, balanced: bool, generator: np.random.Generator
) -> np.ndarray:
    """Labelled rows (sorted): a seeded order of each class, or of all, of which the first are taken."""
    y, num_classes = dataset.train.y, dataset.num_classes
    rows = np.flatnonzero(free & (y != UNLABELED))
    have = np.bincount(y[rows], minlength=num_classes)
    of_class = np.split(rows[np.argsort(y[rows], kind="stable")], np.cumsum(have)[:-1])
    orders = [generator.permutation(each) for each in of_class]
    if (have == 0).any():
        missing = [dataset.classes[c] for c in np.flatnonzero(have == 0)]
        raise DataError(
            f"{dataset.name}: every class needs a labelled row outside validation and test, but {listed(missing)} have"
            " none left: label more rows, or lower validation_fraction or test_fraction"
        )
    want = have if labels is None else _share(labels, num_classes, dataset.name)
    if labels is not None and not balanced:
        return _as_they_come(orders, labels, dataset.name, generator)
    short = np.flatnonzero(have < want)
    if len(short):
        c = int(short[np.argmin(have[short])])
        raise DataError(
            f"{dataset.name}: labels={labels} asks for {want[c]} of each class, but class {dataset.classes[c]!r} has"
            f" only {have[c]} labelled rows outside validation and test: ask for at most"
            f" {int(have.min()) * num_classes}, or for all with --set data.labels=none"
        )
    return np.sort(np.concatenate([order[:n] for order, n in zip(orders, want, strict=True)])).astype(np.int64)


def _as_they_come(orders: list[np.ndarray], labels: int, name: str, generator: np.random.Generator) -> np.ndarray:
    """The first `labels` rows of a random order that begins with one of each class, sorted."""
    rest = generator.permutation(np.concatenate([order[1:] for order in orders]))
    order = np.concatenate([[order[0] for order in orders], rest])
    if labels > len(order):
        raise DataError(
            f"{name}: labels={labels} were asked for, but only {len(order)} labelled rows are left outside validation"
            " and test: ask for fewer, or for all with --set data.labels=none"
        )
    return np.sort(order[:labels]).astype(np.int64)


def _share(labels: int, num_classes: int, name: str) -> np.ndarray:
    """`labels` shared evenly: (num_classes,), summing to `labels`, no two differing by more than one."""
    if labels < num_classes:
        raise DataError(
            f"{name}: every class needs at least one label, but labels={labels} is fewer than its {num_classes}"
            f" classes: ask for {num_classes} or more"
        )
    return labels // num_classes + (np.arange(num_classes) < labels % num_classes)


def _count(
    dataset: Dataset, labeled: np.ndarray, unlabeled: np.ndarray, validation: np.ndarray, test: np.ndarray
) -> dict[str, dict[str, int]]:
    """For each part: rows of each class, by name. Rows without a known label are not in these counts."""
    test_y = dataset.train.y if dataset.test is None else dataset.test.y
    y = dataset.train.y
    parts = {"labeled": y[labeled], "unlabeled": y[unlabeled], "validation": y[validation], "test": test_y[test]}
    found = {
        part: np.bincount(labels[labels != UNLABELED], minlength=dataset.num_classes) for part, labels in parts.items()
    }
    return {part: dict(zip(dataset.classes, counts.tolist(), strict=True)) for part, counts in found.items()}


def _notes(unlabeled: np.ndarray, validation: np.ndarray, test: np.ndarray, excluded: np.ndarray) -> tuple[str, ...]:
    notes = []
    if len(unlabeled) == 0:
        notes.append("no unlabelled rows: learning goes on with the labelled rows alone")
    if len(validation) == 0:
        notes.append("no validation rows: the best model cannot be chosen, the last one is kept")
    if len(test) == 0:
        notes.append("no test rows: accuracy can only be measured on validation")
    if len(excluded):
        notes.append(f"{len(excluded)} rows without a label share a group with held-out rows and are used nowhere")
    return tuple(notes)
