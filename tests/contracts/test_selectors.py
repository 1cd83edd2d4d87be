"""What holds for every selection method."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import synthsieve
from synthsieve.selection.options import Method
from tests.selection.reference import gradients

METHODS = [method.value for method in Method]


def two_classes(n=400, seed=0):
    labels = np.arange(n) % 2
    return gradients(n, seed), labels


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


def test_weights_sum_to_the_class_size_and_count_the_assignment(method):
    points, labels = two_classes()
    chosen = synthsieve.select(gradients=points, labels=labels, method=method)
    for label in (0, 1):
        of_class = labels[chosen.indices] == label
        assert chosen.weights[of_class].sum() == (labels == label).sum()
    rows, counts = np.unique(chosen.assignment, return_counts=True)
    assert dict(zip(rows, counts, strict=True)) == dict(zip(chosen.indices, chosen.weights, strict=True))
    assert (labels[chosen.assignment] == labels).all()


def test_bound_and_error(method):
    points, labels = two_classes()
    chosen = synthsieve.select(gradients=points, labels=labels, method=method, budget=0.05)
    apart = points - points[chosen.assignment]
    assert chosen.gradient_bound == pytest.approx(np.linalg.norm(apart, axis=1).sum())
    assert chosen.gradient_error == pytest.approx(np.linalg.norm(apart.sum(axis=0)))
    assert chosen.gradient_error <= chosen.gradient_bound
    weighted = (points[chosen.indices] * chosen.weights[:, None]).sum(axis=0)
    assert np.linalg.norm(points.sum(axis=0) - weighted) == pytest.approx(chosen.gradient_error)


def test_points_are_assigned_to_the_nearest_pick(method):
    points, labels = two_classes(200)
    chosen = synthsieve.select(gradients=points, labels=labels * 0, method=method)
    lengths = np.linalg.norm(points[:, None] - points[chosen.indices][None], axis=2)
    assert np.linalg.norm(points - points[chosen.assignment], axis=1) == pytest.approx(lengths.min(axis=1), abs=1e-12)


def test_no_duplicate_is_picked_and_no_gain_is_zero(method):
    points = np.repeat(gradients(40), 6, axis=0)[np.random.default_rng(0).permutation(240)]
    chosen = synthsieve.select(gradients=points, labels=np.zeros(240, int), method=method, budget=30)
    assert len(chosen) == 30
    assert len(np.unique(points[chosen.indices], axis=0)) == 30
    assert (chosen.gains > 0).all()
    assert chosen.weights.sum() == 240


def test_a_budget_above_the_distinct_rows_returns_them_all(method):
    points = np.repeat(gradients(25), 4, axis=0)
    chosen = synthsieve.select(gradients=points, labels=np.zeros(100, int), method=method, budget=1.0)
    assert len(chosen) == 25
    assert chosen.gradient_bound == 0.0
    assert (chosen.weights == 4).all()


def test_very_close_points_are_distinguished(method):
    """Three scales, each a hundred million times finer than the one before."""
    points = np.array([[a + b * 1e-8 + c * 1e-16] for a in (0.0, 4.0) for b in (0, 1, 2) for c in (0, 1)])
    points = np.unique(points - points.mean(), axis=0) * 1e-3
    chosen = synthsieve.select(gradients=points, labels=np.zeros(len(points), int), method=method, budget=1.0)
    assert len(chosen) == len(points)
    assert chosen.gradient_bound == 0.0
    assert (chosen.gains > 0).all()


def test_the_same_seed_gives_the_same_picks_on_any_number_of_threads(method):
    points, labels = two_classes(900)
    first, second, one = (
        synthsieve.select(gradients=points, labels=labels, method=method, seed=7, n_jobs=jobs) for jobs in (2, 2, 1)
    )
    assert np.array_equal(first.indices, second.indices)
    assert np.array_equal(first.indices, one.indices)
    assert first.gradient_bound == one.gradient_bound


def test_sample_weights_are_repetitions(method):
    if method in ("random", "stochastic"):
        pytest.skip("draws among rows, and there are more of them")
    points = gradients(60)
    counts = np.random.default_rng(0).integers(1, 5, 60)
    weighted = synthsieve.select(
        gradients=points, labels=np.zeros(60, int), method=method, budget=9, sample_weight=counts
    )
    repeated = synthsieve.select(
        gradients=np.repeat(points, counts, axis=0), labels=np.zeros(counts.sum(), int), method=method, budget=9
    )
    assert np.array_equal(np.repeat(points, counts, axis=0)[repeated.indices], points[weighted.indices])
    assert np.array_equal(weighted.weights, repeated.weights)
    assert weighted.gradient_bound == pytest.approx(repeated.gradient_bound)


def test_refinement_never_raises_the_bound(method):
    points, labels = two_classes()
    plain = synthsieve.select(gradients=points, labels=labels, method=method)
    refined = synthsieve.select(gradients=points, labels=labels, method=method, refine=True)
    assert len(refined) == len(plain)
    assert refined.gradient_bound < plain.gradient_bound
    assert refined.weights.sum() == len(points)


def test_epsilon(method):
    points, labels = two_classes()
    chosen = synthsieve.select(gradients=points, labels=labels, method=method, epsilon=60.0)
    assert chosen.gradient_bound <= 60.0
    assert len(chosen) < len(points)


def test_the_estimator_clones_and_joins_pipelines(method):
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(80, 3)), rng.normal(size=(80, 3)) + 2])
    names = np.repeat(["left", "right"], 80)
    selector = clone(synthsieve.CoresetSelector(method=method, budget=0.2, classifier=LogisticRegression(C=0.5)))
    assert selector.get_params()["method"] == method
    kept = make_pipeline(StandardScaler(), selector).fit_transform(points, names)
    assert kept.shape == (32, 3)
    assert selector.weights_.sum() == 160
    assert selector.classes_.tolist() == ["left", "right"]
    assert selector.selection_.classes == ("left", "right")
    assert len(clone(selector).fit_transform(points.tolist(), names)) == 32
    by_gradient = synthsieve.CoresetSelector(method=method, gradients=True, budget=5).fit(points, names)
    assert len(by_gradient.indices_) == 5
    assert np.array_equal(by_gradient.transform(points), points[by_gradient.indices_])


@pytest.mark.parametrize("factor", [1e-15, 3.7, 1e15])
def test_the_scale_of_sample_weights_does_not_matter(method, factor):
    points = gradients(150)
    weight = np.random.default_rng(0).random(150) + 0.1
    plain, scaled = (
        synthsieve.select(gradients=points, labels=np.zeros(150, int), method=method, sample_weight=weight * by)
        for by in (1.0, factor)
    )
    assert np.array_equal(plain.indices, scaled.indices)
    assert scaled.gradient_bound == pytest.approx(plain.gradient_bound * factor)
    assert scaled.gains[1:] == pytest.approx(plain.gains[1:] * factor)
