"""Laws of every split, over made-up data sets of all shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.splits import PARTS, Split, cross_fits, hold_out, make_split, split_dataset, stratified_quota
from synthsieve.errors import DataError
from synthsieve.settings import DataSettings
from tests.errors import raises


@st.composite
def datasets(draw: st.DrawFn, *, grouped: bool | None = None, unlabeled: bool | None = None) -> Dataset:
    """2 to 5 classes of 12 to 60 rows, shuffled; perhaps unlabelled rows, groups of 1 to 4, a test set."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(12, 60), min_size=2, max_size=5))
    y = np.repeat(np.arange(len(sizes)), sizes)
    if unlabeled if unlabeled is not None else draw(st.booleans()):
        y = np.concatenate([y, np.full(draw(st.integers(1, 50)), -1)])
    y = rng.permutation(y).astype(np.int64)
    groups = None
    if grouped if grouped is not None else draw(st.booleans()):
        groups = rng.integers(0, -(-len(y) // draw(st.integers(1, 4))), len(y)).astype(np.int64)
    test = None
    if draw(st.booleans()):
        test = Examples(np.zeros((7, 2), np.float32), (np.arange(7) % len(sizes)).astype(np.int64))
    x = rng.normal(size=(len(y), 2)).astype(np.float32)
    return Dataset("made up", Kind.VECTOR, tuple(f"c{i}" for i in range(len(sizes))), Examples(x, y, groups), test)


def parts_in_train(split: Split) -> list[np.ndarray]:
    names = [name for name in PARTS if not (name == "test" and split.test_is_own)]
    return [getattr(split, name) for name in names]


def cut(dataset: Dataset, **wishes: Any) -> Split:
    """A split; where a handful of groups cannot be cut, which is refused with a sentence, another example is tried."""
    try:
        return make_split(dataset, **wishes)
    except DataError:
        assume(dataset.train.groups is None)
        raise


seeds = st.integers(0, 1000)


@settings(deadline=None, max_examples=150)
@given(dataset=datasets(), seed=seeds)
def test_parts_are_disjoint_and_cover_every_row(dataset: Dataset, seed: int) -> None:
    split = cut(dataset, labels=2 * dataset.num_classes, seed=seed)
    group = np.concatenate(parts_in_train(split))
    np.testing.assert_array_equal(np.sort(group), np.arange(len(dataset.train)))
    for part in PARTS:
        indices = getattr(split, part)
        assert indices.dtype == np.int64
        assert (np.diff(indices) > 0).all()
    assert split.test_is_own == (dataset.test is not None)
    if dataset.test is not None:
        np.testing.assert_array_equal(split.test, np.arange(len(dataset.test)))
    else:
        assert len(split.test) > 0
    assert len(split.validation) > 0


@settings(deadline=None, max_examples=100)
@given(dataset=datasets(), seed=seeds, extra=st.integers(0, 7))
def test_the_labelled_set_is_balanced(dataset: Dataset, seed: int, extra: int) -> None:
    labels = dataset.num_classes + extra
    split = cut(dataset, labels=labels, seed=seed)
    counts = np.bincount(dataset.train.y[split.labeled], minlength=dataset.num_classes)
    assert counts.sum() == labels
    assert counts.max() - counts.min() <= 1
    assert counts.min() >= 1
    assert list(split.counts["labeled"].values()) == counts.tolist()


@settings(deadline=None, max_examples=80)
@given(dataset=datasets(), seed=seeds)
def test_unbalanced_labels_come_as_they_are_with_one_of_each_class(dataset: Dataset, seed: int) -> None:
    few, more = (cut(dataset, labels=k * dataset.num_classes, balanced=False, seed=seed) for k in (1, 3))
    for split, k in ((few, 1), (more, 3)):
        assert len(split.labeled) == k * dataset.num_classes
        assert set(dataset.train.y[split.labeled].tolist()) == set(range(dataset.num_classes))
    assert set(few.labeled.tolist()) <= set(more.labeled.tolist())
    np.testing.assert_array_equal(few.validation, cut(dataset, labels=None, seed=seed).validation)


def test_unbalanced_labels_have_the_proportions_of_the_data() -> None:
    y = np.repeat([0, 1], [9000, 1000])
    dataset = Dataset("v", Kind.VECTOR, ("a", "b"), Examples(np.zeros((10000, 1), np.float32), y))
    share = np.mean([(y[make_split(dataset, labels=100, balanced=False, seed=s).labeled]).mean() for s in range(20)])
    assert abs(share - 0.1) < 4 * np.sqrt(0.09 / 2000)
    with raises(DataError, "too-few-labels"):
        make_split(dataset, labels=9000, balanced=False, seed=0)
    with raises(DataError, "too-few-labels"):
        make_split(dataset, labels=1, balanced=False, seed=0)


@settings(deadline=None, max_examples=100)
@given(dataset=datasets(grouped=True), seed=seeds)
def test_a_group_stays_on_one_side(dataset: Dataset, seed: int) -> None:
    split = cut(dataset, labels=None, seed=seed)
    groups = dataset.train.groups
    assert groups is not None
    learning = np.concatenate([split.labeled, split.unlabeled])
    sides = [learning, split.validation] + ([] if split.test_is_own else [split.test])
    for i, side in enumerate(sides):
        for other in sides[i + 1 :]:
            assert not np.intersect1d(groups[side], groups[other]).size
    assert split.grouped


@settings(deadline=None, max_examples=60)
@given(dataset=datasets(grouped=False), seed=seeds)
def test_held_out_rows_are_labelled_stratified_and_a_tenth(dataset: Dataset, seed: int) -> None:
    split = cut(dataset, labels=None, seed=seed, test_fraction=0.2)
    y = dataset.train.y
    assert (y[split.validation] >= 0).all()
    known = int((y >= 0).sum()) - (0 if split.test_is_own else len(split.test))
    assert len(split.validation) == known // 10
    if not split.test_is_own:
        assert len(split.test) == int((y >= 0).sum()) // 5
    left = np.bincount(y[np.setdiff1d(np.flatnonzero(y >= 0), [] if split.test_is_own else split.test)])
    assert np.abs(np.bincount(y[split.validation], minlength=len(left)) - left / 10).max() <= 1
    assert not len(split.excluded)


@settings(deadline=None, max_examples=60)
@given(dataset=datasets(grouped=False, unlabeled=True), seed=seeds)
def test_rows_without_a_label_are_unlabelled(dataset: Dataset, seed: int) -> None:
    split = cut(dataset, labels=None, seed=seed)
    np.testing.assert_array_equal(split.unlabeled, np.flatnonzero(dataset.train.y == -1))
    visible = split.visible_labels(dataset)
    np.testing.assert_array_equal(np.flatnonzero(visible >= 0), split.labeled)


@settings(deadline=None, max_examples=60)
@given(dataset=datasets(), seed=seeds)
def test_same_seed_same_split_and_more_labels_only_add(dataset: Dataset, seed: int) -> None:
    k = dataset.num_classes
    first, again = (cut(dataset, labels=2 * k, seed=seed) for _ in range(2))
    assert first.hash == again.hash
    more = cut(dataset, labels=3 * k, seed=seed)
    assert np.isin(first.labeled, more.labeled).all()
    np.testing.assert_array_equal(first.validation, more.validation)
    np.testing.assert_array_equal(first.test, more.test)
    assert cut(dataset, labels=2 * k, seed=seed + 1).hash != first.hash


@settings(deadline=None, max_examples=60)
@given(dataset=datasets(), seed=seeds)
def test_manifest_round_trip(dataset: Dataset, seed: int) -> None:
    split = cut(dataset, labels=dataset.num_classes, seed=seed)
    back = Split.from_json(split.to_json())
    assert back.hash == split.hash
    assert back.to_json() == split.to_json()
    back.check_against(dataset)


@settings(deadline=None, max_examples=60)
@given(dataset=datasets(), labels=st.integers(-1, 400), seed=seeds)
def test_any_number_of_labels_is_used_whole_or_refused(dataset: Dataset, labels: int, seed: int) -> None:
    try:
        split = make_split(dataset, labels=labels, seed=seed)
    except DataError:
        y = dataset.train.y
        assert labels < dataset.num_classes or labels > dataset.num_classes * (np.bincount(y[y >= 0]).min() // 2)
    else:
        assert len(split.labeled) == labels


def test_the_paper_sizes() -> None:
    """SVHN's counts: 73,257 rows and 1,000 labels leave 64,932 unlabelled and 7,325 for validation."""
    y = (np.arange(73257) % 10).astype(np.int64)
    x = np.zeros((73257, 1), np.float32)
    test = Examples(x[:10], y[:10])
    split = make_split(Dataset("svhn", Kind.VECTOR, tuple("0123456789"), Examples(x, y), test), labels=1000, seed=0)
    assert (len(split.labeled), len(split.unlabeled), len(split.validation)) == (1000, 64932, 7325)


def test_large_groups_come_as_near_as_they_can() -> None:
    """Six speakers of 60 rows each: a tenth of 360 is 36, and one whole speaker is nearer to it than none."""
    y = np.tile(np.arange(3), 120).astype(np.int64)
    groups = np.repeat(np.arange(6), 60).astype(np.int64)
    test = Examples(np.zeros((3, 1), np.float32), np.arange(3))
    dataset = Dataset("speakers", Kind.VECTOR, tuple("abc"), Examples(np.zeros((360, 1), np.float32), y, groups), test)
    split = make_split(dataset, labels=3, seed=0)
    assert len(split.validation) == 60
    with raises(DataError, "groups-too-large"):
        make_split(dataset, labels=3, seed=0, validation_fraction=0.05)


def few(counts, *, unlabeled=50, groups=None):
    y = np.concatenate([np.repeat(np.arange(len(counts)), counts), np.full(unlabeled, UNLABELED)]).astype(np.int64)
    x = np.zeros((len(y), 2), dtype=np.float32)
    return Dataset("few", Kind.VECTOR, tuple(map(str, range(len(counts)))), Examples(x, y, groups))


@pytest.mark.parametrize("counts", [[30, 30], [40, 5, 3], [6, 2, 1, 8], [4, 4, 4]])
def test_cross_fitting_uses_each_label_once_for_test_and_validation(counts):
    dataset, data = few(counts), DataSettings()
    assert cross_fits(dataset, data)
    splits = [split_dataset(dataset, data.model_copy(update={"fold": fold}), seed=1) for fold in range(data.folds)]
    held_out = [row for row in range(sum(counts)) if counts[dataset.train.y[row]] >= 3]
    for part in ("test", "validation"):
        assert sorted(np.concatenate([getattr(split, part) for split in splits]).tolist()) == held_out
    for split in splits:
        rows = np.concatenate([split.labeled, split.validation, split.test])
        assert sorted(rows.tolist()) == list(range(sum(counts)))
        assert set(dataset.train.y[split.labeled]) == set(range(len(counts)))
        np.testing.assert_array_equal(split.unlabeled, np.arange(sum(counts), sum(counts) + 50))
        for part in ("test", "validation"):  # classes are dealt out evenly, to one row
            each = np.bincount(dataset.train.y[getattr(split, part)], minlength=len(counts))
            assert all(abs(got - count / 5) < 1 for got, count in zip(each, counts, strict=True) if count >= 3)
    whole = split_dataset(dataset, data, seed=1)
    assert (len(whole.labeled), len(whole.validation), len(whole.test)) == (sum(counts), 0, 0)


def test_groups_stay_on_one_side_of_cross_fitting():
    groups = np.concatenate([np.arange(60) // 4, 100 + np.arange(50)])
    dataset = few([30, 30], groups=groups)
    for fold in range(5):
        split = split_dataset(dataset, DataSettings(fold=fold), seed=0)
        parts = [set(groups[rows]) for rows in (split.labeled, split.validation, split.test)]
        assert len(set.union(*parts)) == sum(map(len, parts))
    with raises(DataError, "too-few-groups"):
        split_dataset(few([30, 30], groups=np.zeros(110, dtype=int)), DataSettings(fold=0), seed=0)


def test_rows_beyond_the_label_budget_are_tested_on():
    dataset = few([200, 200])
    data = DataSettings(labels=40, balanced=True, test_fraction=0.2)
    assert cross_fits(dataset, data)
    whole = split_dataset(dataset, data, seed=0)
    assert (len(whole.labeled), len(whole.validation), len(whole.test)) == (40, 0, 80)
    part = split_dataset(dataset, data.model_copy(update={"fold": 2}), seed=0)
    assert (len(part.labeled), len(part.validation)) == (32, 8)
    np.testing.assert_array_equal(part.test, whole.test)
    np.testing.assert_array_equal(np.union1d(part.labeled, part.validation), whole.labeled)


def test_separate_sets_are_used_whole():
    dataset = few([30, 30])
    own = Examples(np.zeros((7, 2), dtype=np.float32), np.array([0, 1, 0, 1, 0, 1, 1]))
    split = split_dataset(replace(dataset, test=own, validation=own), DataSettings(), seed=0)
    assert (len(split.labeled), len(split.validation), len(split.test)) == (60, 7, 7)
    assert (split.validation_is_own, split.test_is_own) == (True, True)
    assert Split.from_json(split.to_json()).hash == split.hash
    assert split.counts["validation"] == {"0": 3, "1": 4}
    measured = split_dataset(replace(dataset, validation=own), DataSettings(fold=0), seed=0)
    assert (len(measured.labeled), len(measured.validation), len(measured.test)) == (48, 7, 12)


@settings(deadline=None, max_examples=50)
@given(dataset=datasets(grouped=False), seed=seeds)
def test_held_out_rows_are_the_first_of_each_class_in_a_random_order(dataset: Dataset, seed: int) -> None:
    y = dataset.train.y
    free = np.random.default_rng(seed).random(len(y)) < 0.8
    chosen = hold_out(y, None, free, fraction=0.2, part="test", rng=np.random.default_rng(seed))
    rows = np.flatnonzero(free & (y != -1))
    order = np.random.default_rng(seed).permutation(rows)
    quota = stratified_quota(np.bincount(y[rows]), 0.2)
    expected = np.concatenate([order[y[order] == c][:wanted] for c, wanted in enumerate(quota)])
    np.testing.assert_array_equal(chosen, np.sort(expected))


def test_as_many_classes_as_half_the_rows() -> None:
    y = np.repeat(np.arange(30_000), 2)
    dataset = Dataset("many", Kind.VECTOR, tuple(map(str, range(30_000))), Examples(np.zeros((60_000, 1), "f4"), y))
    split = make_split(dataset, labels=None, seed=0)
    assert len(np.unique(y[split.labeled])) == 30_000
    assert sum(split.counts["test"].values()) == len(split.test) == 12_000
