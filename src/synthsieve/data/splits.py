"""Which rows train, which choose the model, and which only measure it.

`split_dataset` decides how: one split where labels are many or the data set is a benchmark, cross-fitting where they
are few. Each part is drawn from its own random stream, so that more labels never change test or validation rows. A
`Split` is stored as `split.json`: the indices of every part, their hash, and a fingerprint of the data.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.checks import check, reading
from synthsieve.data.dataset import UNLABELED, Dataset
from synthsieve.errors import DataError
from synthsieve.io.files import parse_json, write_json
from synthsieve.io.printable import listed
from synthsieve.io.random_streams import numpy_stream
from synthsieve.settings import DataSettings, Validation

MIN_LABELS = 300  # below it, held-out parts of the labels would be too small to choose or to measure on
VALIDATION_FRACTION, TEST_FRACTION = 0.1, 0.2
MIN_TO_HOLD_OUT = 3  # labels of a class: one to train, one to choose, one to measure
FORMAT = "synthsieve split 1"
OWN = ("test_is_own", "validation_is_own")
PARTS = ("labeled", "unlabeled", "validation", "test", "excluded")
FINGERPRINT_ROWS = 256
MAX_ROWS = 100_000_000  # of one part: a range of a few characters could claim any number


@dataclass(frozen=True, eq=False)
class Split:
    """Sorted int64 indices of each part."""

    source: str  # name of the data set
    classes: tuple[str, ...]
    seed: int  # what the split was drawn with
    labeled: np.ndarray  # rows of `dataset.train` whose labels training sees
    unlabeled: np.ndarray  # rows of `dataset.train` whose labels training does not see, known or not
    validation: np.ndarray  # rows of `dataset.validation` if `validation_is_own`, otherwise of `dataset.train`
    test: np.ndarray  # rows of `dataset.test` if `test_is_own`, otherwise of `dataset.train`
    excluded: np.ndarray  # rows used nowhere: without a label, yet of a group that is held out
    test_is_own: bool  # whether the publisher's test set is used
    grouped: bool  # whether groups were kept on one side
    fingerprint: str  # SHA-256 of the labels, the shapes and a sample of the values of the data set
    counts: dict[str, dict[str, int]] = field(default_factory=dict)  # part -> class -> rows with a known label
    notes: tuple[str, ...] = ()  # messages for the user
    validation_is_own: bool = False  # whether the user's own validation set is used

    @cached_property
    def hash(self) -> str:
        """SHA-256 over every part: its name, its length and its indices as little-endian int64."""
        digest = hashlib.sha256(f"test_is_own={self.test_is_own}".encode())
        if self.validation_is_own:
            digest.update(b"/validation_is_own")
        for part in PARTS:
            indices = np.ascontiguousarray(getattr(self, part), dtype="<i8")
            digest.update(f"/{part}/{len(indices)}/".encode())
            digest.update(indices.tobytes())
        return digest.hexdigest()

    def visible_labels(self, dataset: Dataset) -> np.ndarray:
        """Labels of `dataset.train` as training may see them: int64 (n,), -1 everywhere but in `labeled`."""
        y = np.full(len(dataset.train), UNLABELED, dtype=np.int64)
        y[self.labeled] = dataset.train.y[self.labeled]
        return y

    def check_against(self, dataset: Dataset) -> None:
        """Raise a `DataError` unless this split was made from this very data set."""
        got = f"{dataset.name!r} {listed(dataset.classes)}"
        same = self.classes == dataset.classes
        check(same, f"the split has classes {listed(self.classes)}, but {got}", "other-data")
        problem = f"the split of {self.source!r} was made from other rows or labels than {dataset.name!r} has now"
        check(self.fingerprint == fingerprint(dataset), problem, "other-data")

    def to_json(self) -> dict[str, Any]:
        """The manifest: readable figures first, then each part's indices as ranges."""
        plain = {name: getattr(self, name) for name in ("source", "seed", "hash", "fingerprint", "grouped", *OWN)}
        texts = {"classes": list(self.classes), "notes": list(self.notes)}
        sizes = {part: len(getattr(self, part)) for part in PARTS}
        indices = {part: ranges_of(getattr(self, part)) for part in PARTS}
        return {"format": FORMAT, **plain, **texts, "sizes": sizes, "counts": self.counts, "indices": indices}

    def write(self, path: Path) -> None:
        """Write the manifest, atomically."""
        write_json(path, self.to_json())

    @staticmethod
    def from_json(value: Any, *, origin: str = "the split") -> Split:
        """The split of a manifest; one whose indices do not have the hash it states is refused."""
        valid = isinstance(value, dict) and value.get("format") == FORMAT
        check(valid, f"{origin} is not a split manifest of format {FORMAT!r}: make a new split", "unknown-format")
        try:
            texts, counts = {name: value[name] for name in ("classes", "notes")}, value["counts"]
            if not all(isinstance(given, list) and all(isinstance(t, str) for t in given) for given in texts.values()):
                raise ValueError("classes and notes must be lists of text")
            if any(not isinstance(number, int) for each in counts.values() for number in each.values()):
                raise ValueError("counts must be whole numbers")
            split = Split(
                source=str(value["source"]),
                classes=tuple(texts["classes"]),
                seed=int(value["seed"]),
                test_is_own=bool(value["test_is_own"]),
                validation_is_own=bool(value.get("validation_is_own", False)),
                grouped=bool(value["grouped"]),
                fingerprint=str(value["fingerprint"]),
                counts=counts,
                notes=tuple(texts["notes"]),
                **{part: indices_of(value["indices"][part]) for part in PARTS},
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(f"{origin} is damaged ({error!r}): make a new split", code="damaged-file") from None
        check(split.hash == value.get("hash"), f"{origin} was changed: its hash is wrong", "damaged-file")
        return split

    @staticmethod
    def read(path: Path) -> Split:
        """Read a manifest and check its hash."""
        with reading(path, "a split manifest", "make a new split"):
            return Split.from_json(parse_json(Path(path).read_text(encoding="utf-8")), origin=str(path))


def fingerprint(dataset: Dataset) -> str:
    """SHA-256 of shapes, classes, all labels and groups, and the values of up to 256 evenly spaced rows of each set."""
    # Class names may come from folders whose names are not UTF-8, which Python holds as lone surrogates.
    digest = hashlib.sha256("\n".join((dataset.kind, *dataset.classes)).encode(errors="surrogatepass"))
    for examples in (dataset.train, dataset.test, dataset.validation):
        if examples is None:
            continue
        digest.update(f"/{examples.x.dtype}{examples.x.shape}/".encode())
        digest.update(np.ascontiguousarray(examples.y, dtype="<i8").tobytes())
        if examples.groups is not None:
            digest.update(np.ascontiguousarray(examples.groups, dtype="<i8").tobytes())
        rows = np.unique(np.linspace(0, len(examples) - 1, FINGERPRINT_ROWS).astype(np.int64))
        digest.update(np.ascontiguousarray(examples.x[rows]).tobytes())
    return digest.hexdigest()


def ranges_of(indices: np.ndarray) -> str:
    """Sorted indices as ranges: [0, 1, 2, 5, 7, 8] -> "0-2,5,7-8"."""
    if len(indices) == 0:
        return ""
    breaks = np.flatnonzero(np.diff(indices) != 1)
    starts = indices[np.concatenate([[0], breaks + 1])].tolist()
    ends = indices[np.concatenate([breaks, [len(indices) - 1]])].tolist()
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def indices_of(ranges: str) -> np.ndarray:
    """The inverse of `ranges_of`; ranges that are not in rising order are refused."""
    pieces: list[np.ndarray] = []
    last, count = -1, 0
    for item in ranges.split(",") if ranges else []:
        start, _, end = item.partition("-")
        first, final = int(start), int(end or start)
        count += final + 1 - first
        if not last < first <= final < 1 << 62:
            raise ValueError(f"range {item[:50]!r} out of order")
        if count > MAX_ROWS:
            raise ValueError(f"more than {MAX_ROWS:,} rows")
        pieces.append(np.arange(first, final + 1, dtype=np.int64))
        last = final
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)


def split_dataset(dataset: Dataset, data: DataSettings, *, seed: int) -> Split:
    """The split that `data` describes.

    With `data.validation = extra`, validation and test rows come from labelled rows other than `data.labels`. Otherwise
    there are only these labels: with 300 or more, a part is held out for validation and, where the data have no test
    set, one for test; with fewer, `data.fold` says which part of cross-fitting is held out (`cross_fits`), and
    without it every label trains. `data.labels` and `data.test_fraction` take a test set outside the labels.
    """
    validation_fraction = VALIDATION_FRACTION if data.validation_fraction is None else data.validation_fraction
    test_fraction = TEST_FRACTION if data.test_fraction is None else data.test_fraction
    if data.validation is Validation.EXTRA:
        fractions = {"validation_fraction": validation_fraction, "test_fraction": test_fraction}
        return make_split(dataset, labels=data.labels, balanced=data.balanced, seed=seed, **fractions)
    parts, outside = _Parts(dataset, seed), has_outside_test(dataset, data)
    if outside:
        parts.hold_out("test", test_fraction)
    budget = np.zeros(len(dataset.train), dtype=bool)
    budget[parts.choose_labeled(data.labels, data.balanced)] = True
    if data.fold is not None:
        check(data.fold < data.folds, f"data.fold={data.fold} must be below data.folds={data.folds}", "fold")
        folds = parts.folds(np.flatnonzero(budget), data.folds)
        if not outside:
            parts.take("test", folds[data.fold])
        parts.take("validation", folds[data.fold if outside else (data.fold + 1) % data.folds])
    elif not _few_labels(dataset, data):
        parts.hold_out("validation", validation_fraction, among=budget)
    labeled = np.flatnonzero(budget & parts.free)
    missing = [dataset.classes[c] for c in np.setdiff1d(np.arange(dataset.num_classes), dataset.train.y[labeled])]
    problem = f"no label of {listed(missing)} is left to train on, as their rows share groups with held-out rows"
    advice = "label more groups, or give a separate test set"
    check(not missing, f"{dataset.name}: {problem}: {advice}", "class-without-labels")
    return parts.split(labeled)


def cross_fits(dataset: Dataset, data: DataSettings) -> bool:
    """Whether `run` repeats such a split over parts of the labels: they are few, and something must be held out."""
    if data.validation is Validation.EXTRA or not _few_labels(dataset, data):
        return False
    return dataset.validation is None or not has_outside_test(dataset, data)


def has_outside_test(dataset: Dataset, data: DataSettings) -> bool:
    """Whether test rows are other than the labels that train: a test set, or labelled rows other than `data.labels`."""
    if dataset.test is not None or data.labels is not None or data.test_fraction is not None:
        return True
    return not _few_labels(dataset, data)


def _few_labels(dataset: Dataset, data: DataSettings) -> bool:
    """Whether the labels are too few to hold out a part of them once; a given fraction is held out anyway."""
    if data.validation_fraction is not None:
        return False
    count = int((dataset.train.y != UNLABELED).sum()) if data.labels is None else data.labels
    return count < MIN_LABELS


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
        check(0 <= fraction < 1, f"{name} must lie in [0, 1), got {fraction}", "fraction")
    parts = _Parts(dataset, seed)
    parts.hold_out("test", test_fraction)
    parts.hold_out("validation", validation_fraction)
    return parts.split(parts.choose_labeled(labels, balanced))


class _Parts:
    """The parts of a data set while it is split."""

    def __init__(self, dataset: Dataset, seed: int) -> None:
        self.dataset, self.seed = dataset, seed
        self.y, self.groups = dataset.train.y, dataset.train.groups
        self.given = {"test": dataset.test, "validation": dataset.validation}  # used whole
        self.rows = {part: np.arange(len(given or ()), dtype=np.int64) for part, given in self.given.items()}
        self.free = np.ones(len(self.y), dtype=bool)  # training rows that are in no part yet

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

            have, advice = len(np.unique(groups[rows])), "give a separate test set, or --set data.folds=3"
            problem = f"cross-fitting over {count} parts needs labelled rows of as many groups, got {have}"
            check(have >= count, f"{problem}: {advice}", "too-few-groups")
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
        without = listed([classes[c] for c in np.flatnonzero(have == 0)])
        problem = f"every class needs a labelled row outside validation and test, but {without} have none left"
        advice = "label more rows, or lower validation_fraction or test_fraction"
        check((have > 0).all(), f"{name}: {problem}: {advice}", "class-without-labels")
        if labels is None:
            return np.sort(rows).astype(np.int64)
        enough = labels >= len(classes)
        check(enough, f"{name}: labels={labels} is fewer than its {len(classes)} classes", "too-few-labels")
        if not balanced:  # a random order that begins with one of each class
            rest = rng.permutation(np.concatenate([order[1:] for order in orders]))
            problem = f"is more than the {len(rows)} labelled rows outside validation and test"
            check(labels <= len(rows), f"{name}: labels={labels} {problem}", "too-few-labels")
            return np.sort(np.concatenate([[order[0] for order in orders], rest])[:labels]).astype(np.int64)
        want = labels // len(classes) + (np.arange(len(classes)) < labels % len(classes))
        c = int(np.argmin(np.where(have < want, have, have.max())))
        problem = f"labels={labels} needs {want[c]} of each class, but class {classes[c]!r} has only {have[c]} outside"
        advice = f"use at most {int(have.min()) * len(classes)}, or all with --set data.labels=none"
        check((have >= want).all(), f"{name}: {problem} validation and test: {advice}", "too-few-labels")
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
        notes = (
            (not len(unlabeled), "no unlabelled rows: training uses the labelled rows alone"),
            (not len(self.rows["validation"]), "no validation rows: the last weights are kept"),
            (not len(self.rows["test"]), "no test rows: `synthsieve run` measures the accuracy by cross-fitting"),
            (len(excluded), f"{len(excluded)} rows without a label share a group with held-out rows: used nowhere"),
        )
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
            notes=tuple(text for holds, text in notes if holds),
        )


def hold_out(
    y: np.ndarray, groups: np.ndarray | None, free: np.ndarray, *, fraction: float, part: str, rng: np.random.Generator
) -> np.ndarray:
    """Sorted indices of about `fraction` of the rows that are labelled in y (n,) and free (n,), classes in proportion.

    Without groups the size is exact: floor(fraction x rows), at least 1. With groups, whole groups are taken while
    they fit, and it is as near as the groups allow. `part` says in errors what the rows are for.
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
        position = np.arange(len(order)) - first[of_class]
        return np.sort(order[position < quota[of_class]]).astype(np.int64)
    names, member = np.unique(groups[rows], return_inverse=True)
    table = np.zeros((len(names), len(quota)), dtype=np.int64)  # rows of each class in each group
    np.add.at(table, (member.reshape(-1), y[rows]), 1)
    chosen = choose_groups(table, quota, rng=rng)
    problem = f"each of the {len(names)} groups is too large or would take the last labels of a class"
    advice = f"use more and smaller groups, or another {part}_fraction"
    check(chosen.any(), f"{part} needs a whole group of rows, but {problem}: {advice}", "groups-too-large")
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
