"""Which rows train, which choose the model, and which only measure it.

`split_dataset` decides how: one split where labels are many or the data set is a benchmark, cross-fitting where they
are few. Each part is drawn from its own random stream, so that more labels never change test or validation rows.
"""

from __future__ import annotations

import numpy as np

from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.data.labels import listed
from synthsieve.data.split_file import Split, fingerprint
from synthsieve.errors import DataError
from synthsieve.io.random_streams import numpy_stream
from synthsieve.settings import DataSettings, Validation

__all__ = ["Split", "cross_fits", "has_outside_test", "hold_out", "make_split", "split_dataset", "stratified_quota"]

FEW_LABELS = 300  # below it, held-out parts of the labels would be too small to choose or to measure on
VALIDATION_FRACTION, TEST_FRACTION = 0.1, 0.2
MIN_TO_HOLD_OUT = 3  # labels of a class: one to train, one to choose, one to measure


def split_dataset(dataset: Dataset, data: DataSettings, *, seed: int) -> Split:
    """The split that `data` describes.

    With `data.validation = extra`, validation and test rows come from labelled rows beside `data.labels`. Otherwise the
    labels are all there is: with 300 or more of them, a part is held out for validation and, where the data have no
    test set, one for test; with fewer, `data.fold` says which part of cross-fitting is held out (`cross_fits`), and
    without it every label trains. `data.labels` and `data.test_fraction` take a test set outside the labels.
    """
    validation_fraction = VALIDATION_FRACTION if data.validation_fraction is None else data.validation_fraction
    test_fraction = TEST_FRACTION if data.test_fraction is None else data.test_fraction
    if data.validation is Validation.EXTRA:
        return make_split(
            dataset,
            labels=data.labels,
            balanced=data.balanced,
            validation_fraction=validation_fraction,
            test_fraction=test_fraction,
            seed=seed,
        )
    parts, outside = _Parts(dataset, seed), has_outside_test(dataset, data)
    if outside:
        parts.hold_out("test", test_fraction)
    budget = np.zeros(len(dataset.train), dtype=bool)
    budget[parts.choose_labeled(data.labels, data.balanced)] = True
    if data.fold is not None:
        if data.fold >= data.folds:
            raise DataError(f"data.fold={data.fold} must be below data.folds={data.folds}", code="fold")
        folds = parts.folds(np.flatnonzero(budget), data.folds)
        if not outside:
            parts.take("test", folds[data.fold])
        parts.take("validation", folds[data.fold if outside else (data.fold + 1) % data.folds])
    elif not _few_labels(dataset, data):
        parts.hold_out("validation", validation_fraction, among=budget)
    labeled = np.flatnonzero(budget & parts.free)
    missing = np.setdiff1d(np.arange(dataset.num_classes), dataset.train.y[labeled])
    if len(missing):
        raise DataError(
            f"{dataset.name}: class {dataset.classes[missing[0]]!r} has no label left to train on, because its rows"
            " share their groups with held-out rows: label more groups of it, or give a separate test set",
            code="class-without-labels",
        )
    return parts.split(labeled)


def cross_fits(dataset: Dataset, data: DataSettings) -> bool:
    """Whether `run` repeats such a split over parts of the labels: they are few, and something must be held out."""
    if data.validation is Validation.EXTRA or not _few_labels(dataset, data):
        return False
    return dataset.validation is None or not has_outside_test(dataset, data)


def has_outside_test(dataset: Dataset, data: DataSettings) -> bool:
    """Whether test rows are no part of the labels that train: a test set, or labelled rows beside `data.labels`."""
    if dataset.test is not None or data.labels is not None or data.test_fraction is not None:
        return True
    return not _few_labels(dataset, data)


def _few_labels(dataset: Dataset, data: DataSettings) -> bool:
    """Whether the labels are too few to hold out a part of them once; a given fraction is held out anyway."""
    if data.validation_fraction is not None:
        return False
    count = int((dataset.train.y != UNLABELED).sum()) if data.labels is None else data.labels
    return count < FEW_LABELS


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
        test_fraction: of the labelled rows, stratified, where the source has no test set.
    """
    for name, fraction in (("validation_fraction", validation_fraction), ("test_fraction", test_fraction)):
        if not 0 <= fraction < 1:
            raise DataError(f"{name} must lie in [0, 1), but {fraction} came", code="fraction")
    parts = _Parts(dataset, seed)
    parts.hold_out("test", test_fraction)
    parts.hold_out("validation", validation_fraction)
    return parts.split(parts.choose_labeled(labels, balanced))


class _Parts:
    """The parts of a data set while it is split.

    Attributes:
        rows: "test" and "validation" rows; the sets that came with the data are used whole.
        free: bool (n,), training rows that are in no part yet.
    """

    def __init__(self, dataset: Dataset, seed: int) -> None:
        self.dataset, self.seed = dataset, seed
        self.y, self.groups = dataset.train.y, dataset.train.groups
        self.given = {"test": dataset.test, "validation": dataset.validation}
        self.rows = {part: np.arange(len(given or ()), dtype=np.int64) for part, given in self.given.items()}
        self.free = np.ones(len(self.y), dtype=bool)

    def _rng(self, name: str) -> np.random.Generator:
        return numpy_stream(self.seed, f"split/{name}")

    def take(self, part: str, rows: np.ndarray) -> None:
        """Make `rows` the part, unless the data came with one; other rows of their groups are no longer free either."""
        if self.given[part] is None:
            self.rows[part] = rows
            self.free[rows] = False
            if self.groups is not None:
                self.free[np.isin(self.groups, self.groups[rows])] = False

    def hold_out(self, part: str, fraction: float, among: np.ndarray | None = None) -> None:
        """Take a fraction of the free labelled rows (of those in `among`)."""
        if self.given[part] is None:
            free = self.free if among is None else self.free & among
            self.take(part, hold_out(self.y, self.groups, free, fraction=fraction, part=part, rng=self._rng(part)))

    def folds(self, rows: np.ndarray, count: int) -> list[np.ndarray]:
        """`count` disjoint parts of the labelled `rows`, each class dealt out evenly and whole groups kept together.

        A class of fewer than three labels is in none of them: it always trains.
        """
        y, groups, rng = self.y, self.groups, self._rng("folds")
        rows = rows[np.bincount(y[rows])[y[rows]] >= MIN_TO_HOLD_OUT]
        part = np.zeros(len(rows), dtype=np.int64)
        if groups is None:
            order = rng.permutation(len(rows))
            order = order[np.argsort(y[rows][order], kind="stable")]  # class by class, dealt out in turn
            part[order] = np.arange(len(rows)) % count
        elif len(rows):
            from sklearn.model_selection import StratifiedGroupKFold

            if len(np.unique(groups[rows])) < count:
                raise DataError(
                    f"cross-fitting over {count} parts needs labelled rows of as many groups, but"
                    f" {len(np.unique(groups[rows]))} came: give a separate test set, or --set data.folds=3",
                    code="too-few-groups",
                )
            folds = StratifiedGroupKFold(count, shuffle=True, random_state=int(rng.integers(2**31)))
            for number, (_, held) in enumerate(folds.split(rows, y[rows], groups[rows])):
                part[held] = number
        return [np.sort(rows[part == number]).astype(np.int64) for number in range(count)]

    def choose_labeled(self, labels: int | None, balanced: bool) -> np.ndarray:
        """Labelled rows (sorted): a seeded order of each class, or of all, of which the first are taken."""
        y, rng, classes, name = self.y, self._rng("labeled"), self.dataset.classes, self.dataset.name
        rows = np.flatnonzero(self.free & (y != UNLABELED))
        have = np.bincount(y[rows], minlength=len(classes))
        of_class = np.split(rows[np.argsort(y[rows], kind="stable")], np.cumsum(have)[:-1])
        orders = [rng.permutation(each) for each in of_class]
        if (have == 0).any():
            raise DataError(
                f"{name}: every class needs a labelled row outside validation and test, but"
                f" {listed([classes[c] for c in np.flatnonzero(have == 0)])} have none left: label more rows, or lower"
                " validation_fraction or test_fraction",
                code="class-without-labels",
            )
        if labels is None:
            return np.sort(rows).astype(np.int64)
        if labels < len(classes):
            raise DataError(f"{name}: labels={labels} is fewer than its {len(classes)} classes", code="too-few-labels")
        if not balanced:
            return _as_they_come(orders, labels, name, rng)
        want = labels // len(classes) + (np.arange(len(classes)) < labels % len(classes))
        short = np.flatnonzero(have < want)
        if len(short):
            c = int(short[np.argmin(have[short])])
            raise DataError(
                f"{name}: labels={labels} needs {want[c]} of each class, but class {classes[c]!r} has only {have[c]}"
                f" labelled rows outside validation and test: use at most {int(have.min()) * len(classes)}, or all with"
                " --set data.labels=none",
                code="too-few-labels",
            )
        return np.sort(np.concatenate([order[:n] for order, n in zip(orders, want, strict=True)])).astype(np.int64)

    def split(self, labeled: np.ndarray) -> Split:
        """The parts as a `Split`: what is free and not labelled is unlabelled."""
        dataset = self.dataset
        unlabeled = np.setdiff1d(np.flatnonzero(self.free), labeled).astype(np.int64)
        used = [labeled, unlabeled, *(rows for part, rows in self.rows.items() if self.given[part] is None)]
        excluded = np.setdiff1d(np.arange(len(dataset.train)), np.concatenate(used)).astype(np.int64)
        y = {"labeled": self.y[labeled], "unlabeled": self.y[unlabeled]}
        for part in ("validation", "test"):
            given = self.given[part]
            y[part] = (self.y if given is None else given.y)[self.rows[part]]
        counts = {part: np.bincount(known[known >= 0], minlength=dataset.num_classes) for part, known in y.items()}
        return Split(
            source=dataset.name,
            classes=dataset.classes,
            seed=self.seed,
            labeled=labeled,
            unlabeled=unlabeled,
            validation=self.rows["validation"],
            test=self.rows["test"],
            excluded=excluded,
            test_is_own=dataset.test is not None,
            validation_is_own=dataset.validation is not None,
            grouped=self.groups is not None,
            fingerprint=fingerprint(dataset),
            counts={part: dict(zip(dataset.classes, each.tolist(), strict=True)) for part, each in counts.items()},
            notes=_notes(unlabeled, self.rows["validation"], self.rows["test"], excluded),
        )


def _as_they_come(orders: list[np.ndarray], labels: int, name: str, rng: np.random.Generator) -> np.ndarray:
    """The first `labels` rows of a random order that begins with one of each class, sorted."""
    rest = rng.permutation(np.concatenate([order[1:] for order in orders]))
    order = np.concatenate([[order[0] for order in orders], rest])
    if labels > len(order):
        raise DataError(
            f"{name}: labels={labels} is more than the {len(order)} labelled rows outside validation and test",
            code="too-few-labels",
        )
    return np.sort(order[:labels]).astype(np.int64)


def _notes(unlabeled: np.ndarray, validation: np.ndarray, test: np.ndarray, excluded: np.ndarray) -> tuple[str, ...]:
    notes = []
    if len(unlabeled) == 0:
        notes.append("no unlabelled rows: training uses the labelled rows alone")
    if len(validation) == 0:
        notes.append("no validation rows: the last weights are kept")
    if len(test) == 0:
        notes.append("no test rows: `synthsieve run` measures the accuracy by cross-fitting")
    if len(excluded):
        notes.append(f"{len(excluded)} rows without a label share a group with held-out rows and are used nowhere")
    return tuple(notes)


def hold_out(
    y: np.ndarray,
    groups: np.ndarray | None,
    free: np.ndarray,
    *,
    fraction: float,
    part: str,
    rng: np.random.Generator,
) -> np.ndarray:
    """Sorted indices of about `fraction` of the free labelled rows, each class in proportion.

    Without groups the size is exact: floor(fraction x rows), at least 1. With groups, whole groups are taken while
    they fit, and it is as near as the groups allow.

    Args:
        y: (n,) labels, -1 = unlabelled; unlabelled rows are never held out.
        groups: (n,) or None.
        free: bool (n,), the rows that may be taken.
        part: what the rows are for, in errors.
    """
    rows = np.flatnonzero(free & (y != UNLABELED))
    if fraction == 0 or len(rows) == 0:
        return np.zeros(0, dtype=np.int64)
    quota = stratified_quota(np.bincount(y[rows]), fraction)
    if groups is None:
        order = rng.permutation(rows)
        order = order[np.argsort(y[order], kind="stable")]  # class by class, in random order within each
        of_class = y[order]
        first = np.cumsum(np.bincount(of_class)) - np.bincount(of_class)
        place = np.arange(len(order)) - first[of_class]
        return np.sort(order[place < quota[of_class]]).astype(np.int64)
    names, member = np.unique(groups[rows], return_inverse=True)
    table = np.zeros((len(names), len(quota)), dtype=np.int64)  # rows of each class in each group
    np.add.at(table, (member.reshape(-1), y[rows]), 1)
    chosen = choose_groups(table, quota, rng=rng)
    if not chosen.any():
        raise DataError(
            f"{part} needs a whole group of rows, but even the best of the {len(names)} groups is too large or would"
            f" take the last labels of a class: use more and smaller groups, or another {part}_fraction",
            code="groups-too-large",
        )
    return np.sort(rows[chosen[member.reshape(-1)]]).astype(np.int64)


def stratified_quota(counts: np.ndarray, fraction: float) -> np.ndarray:
    """Rows to hold out of each class (num_classes,): in proportion, by largest remainder, one of each always left.

    sum = max(1, floor(fraction x sum(counts))), unless leaving one of each class allows fewer.
    """
    target = max(1, int(fraction * counts.sum() + 1e-9))
    exact = fraction * counts
    quota = np.minimum(np.floor(exact + 1e-9).astype(np.int64), np.maximum(counts - 1, 0))
    total = int(quota.sum())
    for c in np.argsort(-(exact - quota), kind="stable"):
        if total >= target:
            break
        if quota[c] < counts[c] - 1:
            quota[c] += 1
            total += 1
    return quota


def choose_groups(table: np.ndarray, quota: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
    """Which groups to hold out, bool (num_groups,).

    First, in random order, every group that fits into what is still wanted of every class; then the group that brings
    the counts nearest to the quota, as long as one does. No class loses its last rows.
    """
    chosen = np.zeros(len(table), dtype=bool)
    wanted = quota.astype(np.int64).copy()
    most = np.maximum(table.sum(axis=0) - 1, 0)
    for g in rng.permutation(len(table)):
        if not wanted.any():
            break
        if (table[g] <= wanted).all():
            chosen[g] = True
            wanted -= table[g]
    while wanted.any():
        gain = np.abs(wanted).sum() - np.abs(wanted - table).sum(axis=1)
        leaves_some = (table[chosen].sum(axis=0) + table <= most).all(axis=1)
        gain[chosen | ~leaves_some] = 0
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        chosen[best] = True
        wanted -= table[best]
    return chosen
