"""Laws of the selection as a whole."""

import multiprocessing
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synthsieve
from synthsieve.selection.coreset import compile_kernels
from synthsieve.selection.gradients import residuals_of_logits
from tests.selection.reference import bound, distances, gradients, naive_greedy


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 50), st.integers(1, 4), st.floats(0.02, 1.0))
def test_exact_is_naive_on_lattices_full_of_duplicates(seed, n, dims, fraction):
    """Whole coordinates in one dimension make sums exact; in more, ties between unlike distances are left out."""
    rng = np.random.default_rng(seed)
    points = rng.integers(-3, 4, (n, dims)).astype(float) * (1.0 if dims == 1 else rng.random(dims))
    distinct, first, counts = np.unique(points, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    count = min(max(1, int(np.floor(fraction * n + 0.5))), len(distinct))
    matrix = distances(distinct[order])
    expected = naive_greedy(matrix, count, counts[order].astype(float))
    chosen = synthsieve.select(gradients=points, labels=np.zeros(n, int), method="exact", budget=float(fraction))
    assert chosen.gradient_bound == pytest.approx(bound(matrix, expected, counts[order]), rel=1e-9, abs=1e-9)
    if dims == 1:
        assert chosen.indices.tolist() == first[order][expected].tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["exact", "stochastic", "random"]), st.booleans())
def test_the_measured_error_never_exceeds_the_bound(seed, method, with_features):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(80, 3)) * 10.0 ** rng.integers(-1, 2)
    features = rng.normal(size=(80, 4)) if with_features else None
    chosen = synthsieve.select(
        logits=logits,
        labels=rng.integers(0, 3, 80),
        features=features,
        sample_weight=rng.random(80),
        method=method,
        seed=seed,
    )
    assert chosen.gradient_error <= chosen.gradient_bound * (1 + 1e-12)


def test_outer_products_carry_the_error_of_the_materialised_gradients():
    rng = np.random.default_rng(0)
    logits, labels, features = rng.normal(size=(90, 3)), np.arange(90) % 3, rng.normal(size=(90, 5))
    chosen = synthsieve.select(logits=logits, labels=labels, features=features)
    full = (residuals_of_logits(logits, labels)[:, :, None] * features[:, None]).reshape(90, -1)
    apart = full - full[chosen.assignment]
    assert chosen.gradient_bound == pytest.approx(np.linalg.norm(apart, axis=1).sum())
    assert chosen.gradient_error == pytest.approx(np.linalg.norm(apart.sum(axis=0)))


def test_unit_curvature_is_craig_pick_for_pick():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(500, 4)) * 2, np.arange(500) % 4
    craig = synthsieve.select(logits=logits, labels=labels)
    unit = synthsieve.select(logits=logits, labels=labels, curvature="unit")
    again = synthsieve.select(logits=logits, labels=labels, curvature="unit", curvature_state=unit.curvature_state)
    for other in (unit, again):
        assert np.array_equal(craig.indices, other.indices)
        assert np.array_equal(craig.weights, other.weights)


def test_adacore_is_craig_on_preconditioned_gradients():
    """A dense reference from the definition: divide by the damped class diagonal, then plain greedy."""
    rng = np.random.default_rng(5)
    logits, labels = rng.normal(size=(120, 3)) * 2, np.arange(120) % 3
    chosen = synthsieve.select(logits=logits, labels=labels, curvature="softmax")
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for label in range(3):
        rows = np.flatnonzero(labels == label)
        hessian = np.mean([np.diag(p[row]) - np.outer(p[row], p[row]) for row in rows], axis=0)
        divided = (p[rows] - np.eye(3)[label]) / ((np.abs(np.diag(hessian)) + 0.01) / 1.01)
        expected = rows[naive_greedy(distances(divided), 4)]
        assert chosen.indices[labels[chosen.indices] == label].tolist() == expected.tolist()


def test_fast_stays_within_two_thousandths_of_exact():
    points = gradients(16_000)
    exact, fast = (
        synthsieve.select(gradients=points, labels=np.zeros(16_000, int), method=method) for method in ("exact", "fast")
    )
    assert fast.gradient_bound < 1.002 * exact.gradient_bound
    control = synthsieve.select(gradients=points, labels=np.zeros(16_000, int), method="random")
    assert exact.gradient_bound < 0.9 * control.gradient_bound


def test_compiling_is_counted_once():
    compile_kernels("float64", False)
    assert compile_kernels("float64", False) == 0.0


def picks_in_a_child(seed):
    return synthsieve.select(gradients=gradients(300, seed), labels=np.zeros(300, int), n_jobs=2).indices.tolist()


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_and_spawned_workers_pick_the_same(start):
    expected = [picks_in_a_child(seed) for seed in (1, 2)]  # the parent has used its threads before the fork
    with multiprocessing.get_context(start).Pool(2) as pool:
        assert pool.map(picks_in_a_child, [1, 2]) == expected


def test_selecting_needs_no_torch_and_importing_no_numba():
    code = (
        "import sys, synthsieve, synthsieve.cli.app\n"
        "assert 'torch' not in sys.modules and 'numba' not in sys.modules and 'sklearn' not in sys.modules\n"
        "import numpy as np\n"
        "synthsieve.select(gradients=np.eye(5), labels=[0] * 5, budget=2)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
