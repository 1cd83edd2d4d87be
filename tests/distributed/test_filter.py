"""The filter on a cluster keeps the same rows as `filter_by_entropy` on all rows at once."""

import numpy as np
import pytest

from synthsieve.distributed.selection.job import RowBlock, SelectionJob, WorkFolder
from synthsieve.distributed.selection.select import _filter
from synthsieve.selection.entropy import filter_by_entropy
from synthsieve.selection.options import SelectionOptions
from synthsieve.selection.tables import Shards

HARD = np.array([0.0, -0.0, 5e-324, 1e-300, 1e-16, 0.1, 0.1 + 1e-17, 0.5, np.log(3), 2.0])


@pytest.mark.parametrize("keep_per_class", [False, True])
@pytest.mark.parametrize("fraction", [0.001, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("ties", [False, True])
def test_the_same_rows_are_kept(tmp_path, keep_per_class, fraction, ties):
    rng = np.random.default_rng(3)
    entropy = rng.choice(HARD, 900) if ties else rng.exponential(size=900)
    label = rng.integers(0, 4, 900).astype(np.int32)
    label[label == 2] = 1  # a class without rows
    contradicted = rng.random(900) < 0.3
    options = SelectionOptions(keep_fraction=fraction, keep_per_class=keep_per_class, require_label=True)
    blocks = tuple(RowBlock(tmp_path, 0, stop - start, start) for start, stop in ((0, 10), (10, 400), (400, 900)))
    shards = Shards(tmp_path, (), (), "y", {"logits": ("logits",)}, (), {})
    job = SelectionJob(shards, blocks, WorkFolder(tmp_path), options)
    survivors = _filter(job, label, entropy, contradicted)
    saved = np.concatenate([job.work.load("blocks", number, "reason") for number in range(3)])
    assert np.array_equal(saved, survivors.reason)
    predicted = np.where(contradicted, 9, label)
    expected = filter_by_entropy(
        entropy, label, keep_fraction=fraction, keep_per_class=keep_per_class, predicted=predicted
    )
    assert np.array_equal(survivors.reason, expected.reason)
    assert survivors.ceiling == expected.ceiling


def test_kept_rows_are_the_lowest_by_a_stable_sort():
    rng = np.random.default_rng(0)
    for count in (1, 7, 100, 499, 500):
        entropy = rng.choice(HARD, 500)
        kept = filter_by_entropy(entropy, np.zeros(500, int), keep_fraction=count / 500).kept
        assert np.flatnonzero(kept).tolist() == sorted(np.argsort(entropy, kind="stable")[:count].tolist())
