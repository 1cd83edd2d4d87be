"""What `select` accepts and rejects, its options, notes and output."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import synthsieve
from synthsieve.errors import SelectionError
from synthsieve.io.progress import NullProgress
from synthsieve.selection.coreset import _memory_order, compile_kernels
from synthsieve.selection.duplicates import _hashes
from synthsieve.selection.entropy import PrecisionWarning, Reason
from synthsieve.selection.kernels.tiles import _fill, _partition
from synthsieve.selection.options import Method, SelectionOptions
from synthsieve.settings import AugmentationSettings
from tests.errors import raises

GENERATOR = np.random.default_rng(0)
LOGITS = GENERATOR.normal(size=(120, 3)) * 3
LABELS = LOGITS.argmax(axis=1)
P = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


def broken(array, row, column, value):
    array = array.copy()
    array[row, column] = value
    return array


BAD = {
    "nothing": ({"labels": LABELS}, "no-input"),
    "both": ({"labels": LABELS, "logits": LOGITS, "probabilities": P}, "both-outputs"),
    "nan": ({"labels": LABELS, "logits": broken(LOGITS, 7, 1, np.nan)}, "not-finite"),
    "infinity": ({"labels": LABELS, "gradients": broken(LOGITS, 9, 0, np.inf)}, "not-finite"),
    "sums": ({"labels": LABELS, "probabilities": P * 1.1}, "not-probabilities"),
    "negative": ({"labels": LABELS, "probabilities": P + np.array([0.5, -0.5, 0.0])}, "not-probabilities"),
    "outside": ({"labels": np.where(LABELS == 2, 3, LABELS), "logits": LOGITS}, "unknown-label"),
    "unlabelled": ({"labels": np.full(120, -1), "logits": LOGITS}, "unknown-label"),
    "short": ({"labels": LABELS[:100], "logits": LOGITS}, "length"),
    "short gradients": ({"labels": LABELS, "logits": LOGITS, "gradients": LOGITS[:5]}, "length"),
    "flat": ({"labels": LABELS, "logits": LOGITS[:, 0]}, "shape"),
    "empty": ({"labels": LABELS[:0], "logits": LOGITS[:0]}, "no-rows"),
    "text": ({"labels": LABELS, "logits": LOGITS.astype(str)}, "dtype"),
    "budget": ({"labels": LABELS, "logits": LOGITS, "budget": 1.5}, "budget"),
    "no budget": ({"labels": LABELS, "logits": LOGITS, "budget": 0}, "budget"),
    "true budget": ({"labels": LABELS, "logits": LOGITS, "budget": True}, "budget"),
    "few": ({"labels": LABELS, "logits": LOGITS, "budget": 2}, "budget"),
    "epsilon": ({"labels": LABELS, "logits": LOGITS, "epsilon": -1.0}, "epsilon"),
    "method": ({"labels": LABELS, "logits": LOGITS, "method": "fastest"}, "method"),
    "curvature": ({"labels": LABELS, "logits": LOGITS, "curvature": "round"}, "curvature"),
    "curved gradients": ({"labels": LABELS, "gradients": LOGITS, "curvature": "softmax"}, "curvature"),
    "no survivors": ({"labels": LABELS, "logits": LOGITS, "entropy_ceiling": 1e-30}, "no-survivors"),
    "no entropy": ({"labels": LABELS, "gradients": LOGITS, "entropy_ceiling": 1.0}, "no-output"),
    "auto": ({"labels": LABELS, "logits": LOGITS, "entropy_ceiling": "auto"}, "ceiling-score"),
    "ceiling": ({"labels": LABELS, "logits": LOGITS, "entropy_ceiling": "low"}, "entropy-ceiling"),
    "weights": ({"labels": LABELS, "logits": LOGITS, "sample_weight": -np.ones(120)}, "sample-weight"),
    "classes": ({"labels": np.array(["a", "b"] * 60), "logits": LOGITS}, "classes"),
    "unknown": ({"labels": ["a"] * 120, "logits": LOGITS, "classes": ["x", "y", "z"]}, "unknown-label"),
    "jobs": ({"labels": LABELS, "logits": LOGITS, "n_jobs": 0}, "n-jobs"),
    "memory": ({"labels": LABELS, "logits": LOGITS, "memory_limit": "1KB"}, "memory-limit-rows"),
    "arrow nulls": ({"labels": pa.array([None] * 120), "logits": LOGITS}, "missing"),
    "jobs in words": ({"labels": LABELS, "logits": LOGITS, "n_jobs": "2"}, "n-jobs"),
    "epsilon in words": ({"labels": LABELS, "logits": LOGITS, "epsilon": "small"}, "epsilon"),
    "memory in words": ({"labels": LABELS, "logits": LOGITS, "memory_limit": "1.2.3MB"}, "memory-limit"),
    "endless memory": ({"labels": LABELS, "logits": LOGITS, "memory_limit": np.inf}, "memory-limit"),
    "weights in words": (
        {"labels": LABELS, "logits": LOGITS, "sample_weight": ["a"] * 120},
        "sample-weight",
    ),
    "one weight": ({"labels": LABELS, "logits": LOGITS, "sample_weight": 1.0}, "sample-weight"),
    "label lists": ({"labels": np.array([[0], [0, 1]] * 60, object), "logits": LOGITS}, "label-type"),
    "ragged": ({"labels": [0, 1], "logits": [[0.0, 1.0], [2.0]]}, "ragged"),
    "odd lists": ({"labels": [0, 1, 0], "logits": pa.array([[1.0, 2], [3, 4, 5], [6]])}, "ragged"),
    "two of a class": ({"labels": ["a"] * 120, "logits": LOGITS, "classes": ["a", "b", "b"]}, "classes"),
    "no score": (
        {"labels": LABELS, "logits": LOGITS, "entropy_ceiling": "auto", "ceiling_score": lambda ceiling: None},
        "ceiling-score",
    ),
    "per class alone": ({"labels": LABELS, "logits": LOGITS, "keep_per_class": True}, "keep-fraction"),
    "fractions": ({"labels": LABELS + 0.5, "logits": LOGITS}, "label-type"),
    "large numbers": ({"labels": [2**63, 1] * 60, "gradients": LOGITS}, "label-type"),
    "complex labels": ({"labels": LABELS + 1j, "gradients": LOGITS}, "label-type"),
    "records": ({"labels": np.zeros(120, [("a", "i4")]), "gradients": LOGITS}, "label-type"),
    "no time": ({"labels": np.array(["2020-01-01", "NaT"] * 60, "M8[D]"), "gradients": LOGITS}, "missing"),
    "bytes": ({"labels": np.array([b"\xff", b"b"] * 60), "gradients": LOGITS}, "label-type"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_input(name):
    given, code = BAD[name]
    with raises(SelectionError, code) as caught:
        synthsieve.select(**given)
    assert "\n" not in str(caught.value)


def test_errors_name_the_row():
    with pytest.raises(SelectionError, match="row 7"):
        synthsieve.select(**BAD["nan"][0])
    with pytest.raises(TypeError, match="keep_per_clas"):
        synthsieve.select(labels=LABELS, logits=LOGITS, keep_per_clas=True)


def test_options_are_one_object_or_keywords():
    options = SelectionOptions(budget=0.2, method="exact", memory_limit="1GB", n_jobs=-1)
    assert (options.method, options.memory_limit, options.n_jobs) == (Method.EXACT, 10**9, None)
    one = synthsieve.select(labels=LABELS, logits=LOGITS, options=options)
    other = synthsieve.select(labels=LABELS, logits=LOGITS, budget=0.2, method="exact")
    changed = synthsieve.select(labels=LABELS, logits=LOGITS, options=options, budget=0.5)
    assert np.array_equal(one.indices, other.indices)
    assert len(changed) > len(one)


def test_options_from_settings():
    settings = AugmentationSettings(keep_fraction=0.4, coreset="adacore", coreset_fraction=0.2)
    options = SelectionOptions.from_settings(settings, ceiling=None, seed=3)
    assert (options.keep_fraction, options.keep_per_class, options.entropy_ceiling) == (0.4, True, None)
    assert (options.budget, options.curvature, options.require_label, options.seed) == (0.2, "hutchinson", True, 3)
    ceiling = SelectionOptions.from_settings(AugmentationSettings(entropy_ceiling="auto"), ceiling=0.1)
    assert (ceiling.keep_fraction, ceiling.keep_per_class, ceiling.entropy_ceiling) == (None, False, 0.1)
    assert options.filters
    assert not options.without_filter().filters


def test_array_types_give_the_same():
    plain = synthsieve.select(labels=LABELS, logits=LOGITS)
    lists = pa.array(list(LOGITS), type=pa.list_(pa.float64(), 3))
    for other in (
        synthsieve.select(labels=torch.tensor(LABELS), logits=torch.tensor(LOGITS, requires_grad=True)),
        synthsieve.select(labels=pa.chunked_array([pa.array(LABELS)]), logits=lists),
        synthsieve.select(labels=LABELS.tolist(), logits=LOGITS.tolist()),
    ):
        assert np.array_equal(plain.indices, other.indices)
        assert plain.gradient_bound == other.gradient_bound


def test_half_precision():
    half = synthsieve.select(labels=torch.tensor(LABELS), logits=torch.tensor(LOGITS).bfloat16())
    assert half.weights.sum() == 120
    with pytest.warns(PrecisionWarning):
        synthsieve.select(labels=LABELS, probabilities=(P > 0.5).astype(np.float16)[P.max(axis=1) > 0.5][[0] * 120],
                          entropy_ceiling=1e-7)  # fmt: skip


def test_whole_numbers_of_any_dtype_are_columns():
    """As text, 10 would come before 2."""
    logits = np.random.default_rng(1).normal(size=(200, 11)) * 3
    labels = logits.argmax(axis=1)
    for given in (labels.astype(object), labels.astype(float), labels.astype(np.uint8)):
        chosen = synthsieve.select(labels=given, logits=logits, require_label=True)
        assert len(chosen.rejected) == 0
    named = synthsieve.select(labels=labels, logits=logits, classes=[str(k) for k in range(11)], require_label=True)
    assert len(named.rejected) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_layouts_give_the_same_without_recompiling(dtype):
    points = LOGITS.astype(dtype)
    fixed = points.copy()
    fixed.flags.writeable = False
    plain = synthsieve.select(labels=LABELS, gradients=points)
    for other in (np.asfortranarray(points), np.repeat(points, 2, axis=0)[::2], fixed):
        compile_kernels(points.dtype.name, False, *_memory_order(other))
        known = len(_fill.signatures), len(_partition.signatures), len(_hashes.signatures)
        chosen = synthsieve.select(labels=LABELS, gradients=other)
        assert (len(_fill.signatures), len(_partition.signatures), len(_hashes.signatures)) == known
        assert np.array_equal(chosen.indices, plain.indices)
        assert chosen.gradient_bound == plain.gradient_bound


def test_huge_whole_numbers_become_text():
    assert synthsieve.select(labels=[2**70, 1] * 60, gradients=LOGITS).classes == ("1", str(2**70))


@pytest.mark.parametrize("factor", [2.0**-700, 2.0**600])
def test_bound_scales_with_the_gradients(factor):
    plain, scaled = (synthsieve.select(labels=LABELS, gradients=LOGITS * by) for by in (1.0, factor))
    assert np.array_equal(plain.indices, scaled.indices)
    assert scaled.gradient_bound == plain.gradient_bound * factor
    assert scaled.gradient_error == plain.gradient_error * factor


def test_extreme_logits():
    chosen = synthsieve.select(labels=LABELS, logits=np.sign(LOGITS) * 1.7e308)
    assert np.isfinite(chosen.entropy).all()
    assert chosen.weights.sum() == 120


def test_class_without_weight_gets_one_pick():
    weight = np.where(LABELS == 1, 0.0, 1.0)
    chosen = synthsieve.select(labels=LABELS, logits=LOGITS, sample_weight=weight, epsilon=2.0)
    assert [figures.selected for figures in chosen.figures if figures.label == 1] == [1]
    assert chosen.gradient_bound <= 2.0


def test_smallest_keep_fraction():
    assert len(synthsieve.select(labels=LABELS, logits=LOGITS, keep_fraction=1e-12)) == 1
    assert len(synthsieve.select(labels=LABELS, logits=LOGITS, keep_fraction=1e-12, keep_per_class=True)) == 3


def test_certain_rows_are_one_point():
    """(p - y) h' is zero for each of them."""
    features = np.random.default_rng(2).normal(size=(120, 4))
    chosen = synthsieve.select(labels=LABELS, probabilities=np.eye(3)[LABELS], features=features, budget=1.0)
    assert len(chosen) == 3
    assert chosen.gradient_bound == 0.0


def test_n_jobs_minus_one():
    all_cores = synthsieve.select(labels=LABELS, logits=LOGITS, n_jobs=-1)
    assert np.array_equal(all_cores.indices, synthsieve.select(labels=LABELS, logits=LOGITS, n_jobs=1).indices)


def test_text_labels_in_any_column_order():
    names = np.array(["cat", "dog", "eel"])
    by_number = synthsieve.select(labels=LABELS, logits=LOGITS)
    by_name = synthsieve.select(labels=names[LABELS], logits=LOGITS)
    assert np.array_equal(by_number.indices, by_name.indices)
    turned = synthsieve.select(labels=names[LABELS], logits=LOGITS[:, [2, 0, 1]], classes=["eel", "cat", "dog"])
    assert set(turned.indices) == set(by_number.indices)
    assert "cat" in by_name.summary()


def test_budget_and_epsilon():
    assert len(synthsieve.select(labels=LABELS, logits=LOGITS, budget=0.5)) == pytest.approx(60, abs=2)
    counted = synthsieve.select(labels=LABELS, logits=LOGITS, budget=31)
    assert len(counted) == 31
    few = synthsieve.select(labels=LABELS, logits=LOGITS, epsilon=5.0)
    assert few.gradient_bound <= 5.0


def test_filter_reasons():
    labels = np.where(np.arange(120) % 10 == 0, (LABELS + 1) % 3, LABELS)
    chosen = synthsieve.select(labels=labels, logits=LOGITS, entropy_ceiling=0.3, require_label=True)
    entropy = -(P * np.log(P)).sum(axis=1)
    assert chosen.entropy == pytest.approx(entropy)
    reasons = {row: chosen.reason[row] for row in chosen.rejected}
    for row in range(120):
        if labels[row] != LABELS[row]:
            assert reasons[row] == Reason.OTHER_LABEL
        elif entropy[row] >= 0.3:
            assert reasons[row] == Reason.HIGH_ENTROPY
        else:
            assert row not in reasons
            assert chosen.assignment[row] in chosen.indices
    assert (chosen.assignment[chosen.rejected] == -1).all()
    assert chosen.weights.sum() == 120 - len(chosen.rejected)


def test_auto_ceiling():
    chosen = synthsieve.select(
        labels=LABELS, logits=LOGITS, entropy_ceiling="auto", ceiling_score=lambda ceiling: -abs(ceiling - 0.1)
    )
    assert chosen.entropy_ceiling < 0.5
    assert (chosen.entropy[chosen.indices] < chosen.entropy_ceiling).all()


def test_to_parquet(tmp_path):
    chosen = synthsieve.select(labels=LABELS, logits=LOGITS, keep_fraction=0.5)
    chosen.to_parquet(tmp_path / "selection.parquet")
    table = pq.read_table(tmp_path / "selection.parquet").to_pydict()
    assert [row for row, selected in enumerate(table["selected"]) if selected] == sorted(chosen.indices)
    assert sum(table["weight"]) == 60
    assert set(table["reason"]) == {
        "selected",
        "not selected: a selected one represents it",
        "entropy not below the ceiling",
    }
    assert table["rank"][chosen.indices[0]] == 0
    assert len([rank for rank in table["rank"] if rank is not None]) == len(chosen)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "selection.parquet"]
    assert chosen.loss_weights.mean() == pytest.approx(1.0)
    assert len(chosen.summary().splitlines()) < 24


def test_notes_on_heavy_picks_and_lost_classes():
    points = np.concatenate([np.zeros((50, 2)), np.random.default_rng(0).normal(size=(50, 2)) * 9])
    chosen = synthsieve.select(gradients=points, labels=np.zeros(100, int), budget=20)
    assert "class 0: one pick stands for" in chosen.notes[0]
    assert chosen.figures[0].heaviest >= 0.5
    certain = np.where(LABELS[:, None] == 0, 0.0, LOGITS * 50)
    lost = synthsieve.select(labels=LABELS, logits=certain, entropy_ceiling=1e-3)
    assert any("class 0: no row survived" in note for note in lost.notes)


def test_memory_limit_changes_the_method_with_a_note():
    points = np.random.default_rng(0).normal(size=(3_000, 40))
    needs = synthsieve.estimate_memory(3_000, 40, 60, method="exact", at_most=True)
    chosen = synthsieve.select(gradients=points, labels=np.zeros(3_000, int), memory_limit=needs - 1, budget=0.02)
    assert chosen.figures[0].method == "stochastic"
    assert any("stochastic" in note for note in chosen.notes)
    shared = synthsieve.select(gradients=points, labels=np.arange(3_000) % 2, memory_limit=needs, budget=0.02, n_jobs=2)
    assert any("one class at a time" in note for note in shared.notes)


def test_progress_is_updated_and_closed():
    updates = []

    class Recorded(NullProgress):
        def update(self, done, total, message=""):
            updates.append((done, total))

        def close(self):
            updates.append("closed")

    synthsieve.select(labels=LABELS, logits=LOGITS, progress=Recorded())
    assert updates[-1] == "closed"
    assert all(done <= total for done, total in updates[:-1])
