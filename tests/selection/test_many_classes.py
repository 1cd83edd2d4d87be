"""Many classes: memory stays within its limit, and time grows with the rows, not with the square of the classes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from synthsieve import select
from synthsieve.errors import SelectionError
from synthsieve.selection import validation
from synthsieve.selection.budget import share_out
from synthsieve.selection.entropy import entropy_of_logits, filter_by_entropy
from synthsieve.selection.gradients import residuals_of
from synthsieve.selection.kernels.blocks import BLOCK_NUMBERS, row_blocks, rows_by_class
from synthsieve.selection.kernels.memory import estimate_filter, estimate_memory, make_plan
from synthsieve.selection.options import SelectionOptions
from tests.errors import raises

MEGABYTE = 1_000_000


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 1), (100_000, 10), (5_000, 1_000), (7, 10**7)])
def test_blocks_cover_every_row_once_and_are_small(rows, columns):
    blocks = list(row_blocks(rows, columns))
    assert [row for part in blocks for row in (part.start, part.stop)][1:-1:2] == [b.start for b in blocks[1:]]
    assert sum(part.stop - part.start for part in blocks) == rows
    assert all((part.stop - part.start) * columns <= max(BLOCK_NUMBERS, columns) for part in blocks)


def test_rows_by_class():
    labels = np.random.default_rng(0).integers(0, 40, 300) * 3
    present, rows = rows_by_class(labels)
    assert present.tolist() == np.unique(labels).tolist()
    for label, of_class in zip(present, rows, strict=True):
        assert np.array_equal(of_class, np.flatnonzero(labels == label))
    assert rows_by_class(labels[:0])[1] == []


def one_by_one(count, sizes):
    """Picks given to, or taken from, the class furthest from its share, one after the other."""
    ideal = np.maximum(1.0, count * sizes / sizes.sum())
    shares = np.minimum(np.floor(ideal).astype(np.int64), sizes)
    while shares.sum() != count:
        step = 1 if shares.sum() < count else -1
        open_ = shares < sizes if step > 0 else shares > 1
        shares[int(np.argmax(np.where(open_, (ideal - shares) * step, -np.inf)))] += step
    return shares


@pytest.mark.parametrize("seed", range(20))
def test_share_out_equals_one_by_one(seed):
    rng = np.random.default_rng(seed)
    sizes = np.where(rng.random(60) < 0.7, rng.integers(1, 4, 60), rng.integers(1, 400, 60))
    for count in rng.integers(60, sizes.sum() + 1, 4).tolist():
        assert share_out(count, sizes).tolist() == one_by_one(count, sizes).tolist()


def test_residuals_of_some_rows():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(50, 4)).astype(np.float32), rng.integers(0, 4, 50)
    rows = rng.permutation(50)[:20]
    for kind in ("logits", "probabilities"):
        for order in ("C", "F"):
            given = np.asarray(logits, order=order)
            some, every = residuals_of(given, kind, labels[rows], rows), residuals_of(logits, kind, labels)
            assert np.array_equal(some, every[rows])


def test_five_thousand_classes():
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(5_000), 2))
    logits = np.zeros((10_000, 1)) + np.arange(3)
    gradients = rng.normal(size=(10_000, 2)).astype(np.float32)
    chosen = select(labels=labels, gradients=gradients, budget=6_000)
    assert len(chosen) == 6_000
    assert np.bincount(labels, chosen.rows()["weight"]).tolist() == [2.0] * 5_000
    assert len(chosen.notes) == 1  # about heavy picks, and not one for each class
    kept = filter_by_entropy(entropy_of_logits(logits), labels, keep_fraction=0.5, keep_per_class=True).kept
    assert np.bincount(labels[kept]).tolist() == [1] * 5_000


def test_memory_of_a_class():
    options = SelectionOptions(n_jobs=2)
    sizes, dims = [20] * 1_000, 1_000
    reserved = estimate_filter(20_000)
    held = make_plan(sizes, [2] * 1_000, dims, options, bytes_a_row=8 * dims, reserved_bytes=reserved)
    one = 20 * 8 * dims + estimate_memory(20, dims, 2, method="exact")
    assert held.memory_bytes == 2 * one + estimate_filter(20_000)
    assert one < 25 * MEGABYTE
    assert held.classes_at_once == 2
    whole = make_plan([20_000], [2_000], dims, options, bytes_a_row=8 * dims)
    assert whole.memory_bytes > 20_000 * dims * (8 + 8 + 2)  # points, tiles and their boxes
    with raises(SelectionError, "memory-limit-class"):
        make_plan([20_000], [2_000], dims, SelectionOptions(memory_limit="200MB"), bytes_a_row=8 * dims)


def test_memory_for_all_rows_counts_towards_the_limit():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(2_000, 30)), rng.integers(0, 30, 2_000)
    with raises(SelectionError, "memory-limit-rows"):
        select(labels=labels, logits=logits, memory_limit=estimate_filter(2_000))
    enough = estimate_filter(2_000) + 30 * MEGABYTE
    plain = select(labels=labels, logits=logits, n_jobs=1)
    within = select(labels=labels, logits=logits, n_jobs=1, memory_limit=enough)
    assert within.indices.tolist() == plain.indices.tolist()
    assert within.notes == plain.notes
    with raises(SelectionError, "memory-limit-rows"):  # averages of all gradients are held
        select(
            labels=labels, logits=np.tile(logits, 40), classes=range(1_200), curvature="softmax", memory_limit=enough
        )


@pytest.mark.parametrize(
    ("kind", "copied"),
    [
        (np.asarray, False),
        (torch.from_numpy, False),
        (pd.DataFrame, False),
        (lambda array: validation.NamedMatrix(array, ("0", "1", "2")), False),
        (lambda array: array.astype(np.float16), True),
        (scipy.sparse.csr_matrix, True),
    ],
)
def test_only_copies_count_towards_the_limit(kind, copied):
    logits = np.random.default_rng(0).normal(size=(300_000, 3)).astype(np.float32)
    limit = estimate_filter(300_000) + logits.nbytes
    given = {"labels": np.zeros(300_000, int), "logits": kind(logits), "memory_limit": limit}
    with raises(SelectionError, "memory-limit-rows" if copied else "memory-limit-class"):
        select(**given)


MEASURED = """
import sys
from pathlib import Path
import numpy as np
from synthsieve.selection.coreset import compile_kernels
from synthsieve import select

def status(name):
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

generator = np.random.default_rng(0)
logits = generator.standard_normal((10_000, 1_000), dtype=np.float32)
labels = generator.integers(0, 1_000, 10_000)
select(labels=labels[:1_000] % 5, logits=logits[:1_000, :5].copy(), n_jobs=1)  # imports, kernels, first buffers
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak counts from here
select(labels=labels, logits=logits, keep_fraction=0.9, memory_limit="60MB", n_jobs=1)
print(status("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is read from Linux's /proc")
def test_memory_limit_with_a_thousand_classes():
    """The input has 40 MB, the same in float64 80 MB: any copy of it would be over the limit."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED], capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert int(done.stdout) < 60 * MEGABYTE
