"""Which rows train, which choose the model, and which only measure it.

`split_dataset` decides how: one split where labels are many or the data set is a benchmark, cross-fitting where they
are few. Each part is drawn from a stream of its own, so that asking for more labels never moves test or validation.
"""

from __future__ import annotations

import numpy as np

from synthsieve.config import DataSettings, Validation
from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.data.holdout import hold_out
from synthsieve.data.labels import listed
from synthsieve.data.manifest import Split, fingerprint
from synthsieve.errors import DataError
from synthsieve.randomness import numpy_stream

__all__ = ["FEW_LABELS", "Split", "cross_fits", "has_outside_test", "make_split", "split_dataset"]

FEW_LABELS = 300  # below it, held-out parts of the labels would be too small to choose or to measure on
VALIDATION_FRACTION, TEST_FRACTION = 0.1, 0.2
MIN_TO_HOLD_OUT = 3  # labels of a class: one to train, one to choose, one to measure


def split_dataset(dataset: Dataset, data: DataSettings, *, seed: int) -> Split:
    """The split that `data` asks for.

    With `data.validation = extra`, validation and test rows come from labelled rows beside `data.labels`. Otherwise the
    labels are all there is: with 300 or more of them, a part is held out for validation and, where the data have no
    test set, one for test; with fewer, `data.fold` says which part of cross-fitting is held out (`cross_fits`), and
    without it every label trains. `data.labels` and `data.test_fraction` ask for a test set outside the labels.
    """
    if data.validation is Validation.EXTRA:
        return make_split(
            dataset,
            labels=data.labels,
            balanced=data.balanced,
            validation_fraction=VALIDATION_FRACTION if data.validation_fraction is None else data.validation_fraction,
            test_fraction=TEST_FRACTION if data.test_fraction is None else data.test_fraction,
            seed=seed,
        )
    y, groups = dataset.train.y, dataset.train.groups
    free = np.ones(len(y), dtype=bool)
    test = _test_rows(dataset, data, free, seed)
    budget = np.zeros(len(y), dtype=bool)
    budget[_choose_labeled(dataset, free, data.labels, data.balanced, numpy_stream(seed, "split/labeled"))] = True
    validation = np.zeros(0, dtype=np.int64)
    if data.fold is not None:
        parts = _parts(y, groups, np.flatnonzero(budget), data.folds, generator=numpy_stream(seed, "split/folds"))
        if data.fold >= data.folds:
            raise DataError(f"data.fold={data.fold} must be below data.folds={data.folds}")
        later = (data.fold + 1) % data.folds
        if dataset.validation is None:
            validation = parts[data.fold if has_outside_test(dataset, data) else later]
        if not has_outside_test(dataset, data):
            test = parts[data.fold]
            _take(free, test, groups)
    elif dataset.validation is None and not _few_labels(dataset, data):
        validation = hold_out(
            y,
            groups,
            free & budget,
            fraction=VALIDATION_FRACTION if data.validation_fraction is None else data.validation_fraction,
            part="validation",
            generator=numpy_stream(seed, "split/validation"),
        )
    _take(free, validation, groups)
    labeled = np.flatnonzero(budget & free)
    missing = np.setdiff1d(np.arange(dataset.num_classes), y[labeled])
    if len(missing):
        raise DataError(
            f"{dataset.name}: class {dataset.classes[missing[0]]!r} has no label left to train on, because its rows"
            " share their groups with held-out rows: label more groups of it, or give a test set of your own"
        )
    return _split(dataset, free, labeled, validation, test, seed)


def cross_fits(dataset: Dataset, data: DataSettings) -> bool:
    """Whether `run` repeats such a split over parts of the labels: they are few, and something must be held out."""
    if data.validation is Validation.EXTRA or not _few_labels(dataset, data):
        return False
    return dataset.validation is None or not has_outside_test(dataset, data)


def has_outside_test(dataset: Dataset, data: DataSettings) -> bool:
    """Whether test rows are no part of the labels that train: a test set, or labelled rows beside those asked for."""
    if dataset.test is not None or data.labels is not None or data.test_fraction is not None:
        return True
    return not _few_labels(dataset, data)


def _few_labels(dataset: Dataset, data: DataSettings) -> bool:
    """Whether the labels are too few to hold out a part of them once; a fraction asked for is held out anyway."""
    if data.validation_fraction is not None:
        return False
    count = int((dataset.train.y != UNLABELED).sum()) if data.labels is None else data.labels
    return count < FEW_LABELS


def _test_rows(dataset: Dataset, data: DataSettings, free: np.ndarray, seed: int) -> np.ndarray:
    """Rows of the test set, which are no longer free; none where parts of the labels will measure."""
    if dataset.test is not None:
        return np.arange(len(dataset.test), dtype=np.int64)
    if not has_outside_test(dataset, data):
        return np.zeros(0, dtype=np.int64)
    test = hold_out(
        dataset.train.y,
        dataset.train.groups,
        free,
        fraction=TEST_FRACTION if data.test_fraction is None else data.test_fraction,
        part="test",
        generator=numpy_stream(seed, "split/test"),
    )
    _take(free, test, dataset.train.groups)
    return test


def _parts(
    y: np.ndarray, groups: np.ndarray | None, rows: np.ndarray, count: int, *, generator: np.random.Generator
) -> list[np.ndarray]:
    """`count` disjoint parts of the labelled `rows`, each class dealt out evenly and whole groups kept together.

    A class of fewer than three labels is in none of them: it always trains.
    """
    counts = np.bincount(y[rows])
    rows = rows[counts[y[rows]] >= MIN_TO_HOLD_OUT]
    part = np.zeros(len(rows), dtype=np.int64)
    if groups is None:
        order = generator.permutation(len(rows))
        order = order[np.argsort(y[rows][order], kind="stable")]  # class by class, dealt round and round
        part[order] = np.arange(len(rows)) % count
    elif len(rows):
        from sklearn.model_selection import StratifiedGroupKFold

        if len(np.unique(groups[rows])) < count:
            raise DataError(
                f"cross-fitting over {count} parts needs labelled rows of as many groups, but"
                f" {len(np.unique(groups[rows]))} came: give a test set of your own, or --set data.folds=3"
            )
        dealer = StratifiedGroupKFold(count, shuffle=True, random_state=int(generator.integers(2**31)))
        for number, (_, held) in enumerate(dealer.split(rows, y[rows], groups[rows])):
            part[held] = number
    return [np.sort(rows[part == number]).astype(np.int64) for number in range(count)]


def make_split(
    dataset: Dataset,
    *,
    labels: int | None,
    balanced: bool = True,
    validation_fraction: float = 0.1,
    test_fraction: float = 0.2,
    seed: int,
) -> Split:
    """One split, with validation and test rows taken from all labelled rows before `labels` of the rest are chosen.

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
    validation = np.zeros(0, dtype=np.int64)
    if dataset.validation is None:
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

    return _split(dataset, free, labeled, validation, test, seed)


def _split(
    dataset: Dataset, free: np.ndarray, labeled: np.ndarray, validation: np.ndarray, test: np.ndarray, seed: int
) -> Split:
    """The parts as a `Split`: what is free and not labelled is unlabelled; the user's own sets are used whole."""
    own_test, own_validation = dataset.test is not None, dataset.validation is not None
    if dataset.validation is not None:
        validation = np.arange(len(dataset.validation), dtype=np.int64)
    unlabeled = np.setdiff1d(np.flatnonzero(free), labeled)
    used = [labeled, unlabeled] + ([] if own_validation else [validation]) + ([] if own_test else [test])
    excluded = np.setdiff1d(np.arange(len(dataset.train)), np.concatenate(used))
    return Split(
        source=dataset.name,
        classes=dataset.classes,
        seed=seed,
        labeled=labeled,
        unlabeled=unlabeled.astype(np.int64),
        validation=validation,
        test=test,
        excluded=excluded.astype(np.int64),
        test_is_own=own_test,
        validation_is_own=own_validation,
        grouped=dataset.train.groups is not None,
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
    y = dataset.train.y
    test_y, validation_y = (y if own is None else own.y for own in (dataset.test, dataset.validation))
    parts = {
        "labeled": y[labeled],
        "unlabeled": y[unlabeled],
        "validation": validation_y[validation],
        "test": test_y[test],
    }
    counts = {part: np.bincount(y[y >= 0], minlength=dataset.num_classes) for part, y in parts.items()}
    return {part: dict(zip(dataset.classes, each.tolist(), strict=True)) for part, each in counts.items()}


def _notes(unlabeled: np.ndarray, validation: np.ndarray, test: np.ndarray, excluded: np.ndarray) -> tuple[str, ...]:
    notes = []
    if len(unlabeled) == 0:
        notes.append("no unlabelled rows: learning goes on with the labelled rows alone")
    if len(validation) == 0:
        notes.append("no validation rows: the last weights are kept")
    if len(test) == 0:
        notes.append("no test rows: `synthsieve run` measures the accuracy by cross-fitting")
    if len(excluded):
        notes.append(f"{len(excluded)} rows without a label share a group with held-out rows and are used nowhere")
    return tuple(notes)
