"""The threshold over blocks is that of `filter_by_entropy` over all rows, ties and all."""

from types import SimpleNamespace

import numpy as np
import pytest

from synthsieve.distributed.engine import InProcess
from synthsieve.distributed.job import Job, Sieving, block_name
from synthsieve.distributed.threshold import keys_of, sift, thresholds
from synthsieve.distributed.work_folder import WorkFolder
from synthsieve.entropy import Reason, filter_by_entropy

HARD = np.array([0.0, -0.0, 5e-324, 1e-300, 1e-16, 0.1, 0.1 + 1e-17, 0.5, np.log(3), 2.0])


def test_keys_are_in_the_order_of_the_numbers():
    numbers = np.sort(np.concatenate([-HARD, HARD, np.random.default_rng(0).normal(size=100)]))
    keys = keys_of(numbers)
    assert (np.diff(keys.astype(object)) >= 0).all()
    assert np.array_equal(np.diff(numbers) > 0, np.diff(keys.astype(object)) > 0)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("fraction", [0.001, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("ties", [False, True])
def test_the_same_rows_are_kept(tmp_path, per_class, fraction, ties):
    generator = np.random.default_rng(3)
    entropy = generator.choice(HARD, 900) if ties else generator.exponential(size=900)
    label = generator.integers(0, 4, 900).astype(np.int32)
    label[label == 2] = 1  # a class without rows
    predicted = np.where(generator.random(900) < 0.7, label, 9)
    asked = Sieving(keep_fraction=fraction, keep_per_class=per_class)
    blocks = np.array_split(np.arange(900), [10, 10, 400])
    job = Job(None, tuple(SimpleNamespace(num_rows=len(rows)) for rows in blocks), WorkFolder(tmp_path), asked)
    for number, rows in enumerate(blocks):
        reason = np.where(predicted == label, Reason.KEPT, Reason.OTHER_LABEL).astype(np.int8)
        other = (predicted != label)[rows]
        job.work.save(block_name(number), label=label[rows], entropy=entropy[rows], reason=reason[rows], other=other)
    sizes, eligible = (np.bincount(label[mine], minlength=4) for mine in (slice(None), predicted == label))
    if not per_class:
        sizes, eligible = sizes.sum(keepdims=True), eligible.sum(keepdims=True)
    found = thresholds(job, InProcess(), sizes, eligible)
    for _ in range(2):  # a piece that is done again changes nothing
        told = [sift(job, found, number) for number in range(len(blocks))]
    reason = np.concatenate([job.work.load(block_name(number), "reason") for number in range(len(blocks))])
    expected = filter_by_entropy(entropy, label, keep_fraction=fraction, per_class=per_class, predicted=predicted)
    assert np.array_equal(reason, expected.reason)
    assert np.nextafter(max(one["highest_kept"] for one in told), np.inf) == expected.ceiling
