"""Fidelity: equal to a reference package, to closed forms, and to the rates it states."""

import json
import tracemalloc

import numpy as np
import pytest
from prdc import compute_prdc

from synthsieve.errors import DataError
from synthsieve.evaluation import fidelity
from synthsieve.evaluation.fidelity import frechet_distance, manifold, train_on_synthetic, two_sample_accuracy
from tests.errors import raises

FIGURES = ("precision", "recall", "density", "coverage")


def normal(seed, n, dims, *, shift=0.0, scale=1.0):
    return shift + scale * np.random.default_rng(seed).normal(size=(n, dims))


DATA = {
    "same distribution": (normal(0, 300, 5), normal(1, 300, 5)),
    "fewer synthetic": (normal(2, 400, 3), normal(3, 90, 3, scale=1.2)),
    "fewer real": (normal(4, 80, 20), normal(5, 350, 20, scale=0.8)),
    "shifted": (normal(6, 200, 2), normal(7, 150, 2, shift=1.5)),
    "apart": (normal(8, 60, 4), normal(9, 70, 4, shift=100.0)),
    "far from the origin": (normal(10, 200, 3, shift=1000.0), normal(11, 250, 3, shift=1000.0)),
    "lattice": (np.random.default_rng(12).integers(0, 4, (150, 3)), np.random.default_rng(13).integers(0, 5, (200, 3))),
    "repeated": (np.repeat(normal(14, 20, 3).round(), 8, axis=0), np.repeat(normal(15, 30, 3).round(), 4, axis=0)),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("neighbours", [1, 5])
def test_manifold_equals_the_reference_package(name, neighbours):
    real, synthetic = DATA[name]
    found = manifold(real, synthetic, neighbours=neighbours)
    expected = compute_prdc(real, synthetic, neighbours)
    assert [getattr(found, figure) for figure in FIGURES] == pytest.approx([expected[f] for f in FIGURES], abs=1e-12)
    assert (found.num_real, found.num_synthetic, found.neighbours) == (len(real), len(synthetic), neighbours)


@pytest.mark.parametrize("name", DATA)
def test_block_size_does_not_matter(name, monkeypatch):
    real, synthetic = DATA[name]
    synthetic = np.concatenate([synthetic, real[:20]])  # copies lie exactly at the radius of some balls
    expected = manifold(real, synthetic)
    for values in (1, 1000, 20_000):
        monkeypatch.setattr(fidelity, "BLOCK_VALUES", values)
        assert manifold(real, synthetic) == expected


@pytest.mark.parametrize("dims", [2, 30])
def test_manifold_of_a_set_with_itself(dims):
    """Each ball holds its centre and k - 1 others; the k-th lies on the rim, so density is 1 exactly."""
    points = normal(20, 500, dims, shift=3.0)
    found = manifold(points, points.copy(), neighbours=4)
    assert [getattr(found, figure) for figure in FIGURES] == [1, 1, 1, 1]


def test_units_do_not_matter():
    real, synthetic = DATA["same distribution"]
    expected = manifold(real, synthetic)
    assert manifold(real * 2.0**300, synthetic * 2.0**300) == expected
    assert manifold(real * 2.0**-300, synthetic * 2.0**-300) == expected


def test_coverage_of_one_distribution():
    """Naeem's closed form: 1 - the chance that the k nearest of the other n + m - 1 points are all real."""
    n, m, k = 400, 300, 3
    expected = 1 - np.prod([(n - 1 - i) / (n + m - 1 - i) for i in range(k)])
    seen = [manifold(normal(s, n, 3), normal(10_000 + s, m, 3), neighbours=k) for s in range(30)]
    coverage = np.array([one.coverage for one in seen])
    assert abs(coverage.mean() - expected) < 4 * coverage.std() / np.sqrt(30)
    assert np.mean([one.density for one in seen]) == pytest.approx(n / (n - 1) * 1.0, abs=0.02)


def test_collapsed_generator_has_precision_but_no_recall():
    real = normal(21, 500, 3)
    found = manifold(real, np.tile(real.mean(axis=0), (400, 1)))
    assert (found.precision, found.recall) == (1, 0)
    assert found.coverage < 0.2


def test_memory_is_bounded():
    real, synthetic = normal(22, 5000, 4), normal(23, 6000, 4)
    tracemalloc.start()
    try:
        manifold(real, synthetic, neighbours=5)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4e7  # all distances would be 240 MB


def with_moments(seed, mean, root, n=200):
    """n rows whose mean is `mean` and whose covariance is root @ root.T, exactly."""
    rows = np.random.default_rng(seed).normal(size=(n, root.shape[1]))
    rows -= rows.mean(axis=0)
    return mean + np.linalg.qr(rows)[0] * np.sqrt(n - 1) @ root.T


@pytest.mark.parametrize("small", [1.0, 1e-4, 0.0])
def test_frechet_distance_of_commuting_covariances(small):
    """|mu1 - mu2|^2 + sum (s1 - s2)^2 for standard deviations along shared axes, some of them small or 0."""
    axes = np.linalg.qr(normal(30, 4, 4))[0]
    first, second = np.array([2.0, 1.0, small, 0.5]), np.array([1.0, 3.0, small, small])
    mean = np.array([0.0, 1.0, -2.0, 0.5])
    found = frechet_distance(with_moments(31, mean, axes * first), with_moments(32, 0 * mean, axes * second))
    assert found == pytest.approx((mean**2).sum() + ((first - second) ** 2).sum(), rel=1e-12)


def test_frechet_distance_of_any_two_covariances():
    """Against tr (C1 C2)^(1/2) from the eigenvalues of the plain product."""
    left, right = normal(33, 5, 5), normal(34, 5, 5)
    first, second = left @ left.T, right @ right.T
    expected = np.trace(first + second) - 2 * np.sqrt(np.linalg.eigvals(first @ second).real).sum()
    found = frechet_distance(with_moments(35, 0.0, left), with_moments(36, 0.0, right, n=90))
    assert found == pytest.approx(expected, rel=1e-9)


def test_frechet_distance_of_equal_sets_is_zero():
    points = normal(37, 300, 6)
    assert frechet_distance(points, points[::-1]) < 1e-12
    assert frechet_distance(points[:3], points[:3]) < 1e-12  # fewer rows than features
    assert frechet_distance(points, points + 2.0) == pytest.approx(24.0)
    assert frechet_distance(points, points + 2.0) == pytest.approx(frechet_distance(points + 2.0, points))


def test_two_sample_test_has_the_stated_error_rate():
    """The interval covers 0.5 in 95 % of data sets and the p-value is below 0.1 in at most 10 %: 150 of them."""
    seen = [
        two_sample_accuracy(normal(s, 70, 2), normal(5000 + s, 50, 2), rng=np.random.default_rng(s)) for s in range(150)
    ]
    assert np.mean([one.low <= 0.5 <= one.high for one in seen]) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 150)
    assert np.mean([one.p_value <= 0.1 for one in seen]) < 0.1 + 4 * np.sqrt(0.1 * 0.9 / 150)
    accuracy = np.array([one.accuracy for one in seen])
    assert abs(accuracy.mean() - 0.5) < 4 * accuracy.std() / np.sqrt(150)
    assert {one.count for one in seen} == {50}


@pytest.mark.parametrize(
    ("changed", "least"),
    [
        ({"shift": 4.0}, 0.99),
        ({"scale": 0.5}, 0.7),  # the mean is right, the spread is not
    ],
)
def test_two_sample_test_detects_differences(changed, least):
    found = two_sample_accuracy(normal(40, 400, 4), normal(41, 500, 4, **changed), rng=np.random.default_rng(0))
    assert found.accuracy > least
    assert found.p_value < 1e-9
    assert found.low < found.accuracy < found.high <= 1 or found.accuracy == found.high == 1


def test_two_sample_accuracy_is_reproducible():
    real, synthetic = normal(42, 60, 3), normal(43, 60, 3, shift=0.5)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (two_sample_accuracy(real, synthetic, rng=np.random.default_rng(7)) for _ in range(2))
    assert first == second
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def labelled(seed, n, *, noise=1.0):
    """Three classes on a triangle."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return np.array([[0.0, 3.0], [3.0, -1.0], [-3.0, -1.0]])[y] + noise * rng.normal(size=(n, 2)), y


def test_training_on_synthetic_of_the_same_distribution():
    test, answers = labelled(50, 1000)
    found = train_on_synthetic(
        *labelled(51, 400), test, answers, **dict(zip(("real", "real_labels"), labelled(52, 400), strict=True)), seed=0
    )
    assert found.accuracy > 0.95
    assert found.low < found.accuracy < found.high
    assert found.gap == pytest.approx(found.real_accuracy - found.accuracy)
    assert found.gap_low <= 0 <= found.gap_high
    assert found.gap_high - found.gap_low < 0.05
    assert found.count == 1000


def test_training_on_wrong_labels_is_worse():
    synthetic, labels = labelled(53, 400)
    real, real_labels = labelled(54, 400)
    test, answers = labelled(55, 500)
    labels = np.where(labels == 2, 1, labels)
    found = train_on_synthetic(synthetic, labels, test, answers, real=real, real_labels=real_labels, seed=0)
    assert found.accuracy == pytest.approx(np.mean(answers != 2), abs=0.05)  # class 2 is never predicted
    assert found.gap_low > 0.2


def test_weights_are_counts():
    synthetic, labels = labelled(56, 120, noise=3.0)
    test, answers = labelled(57, 2000, noise=3.0)
    weights = np.random.default_rng(58).integers(0, 4, 120)
    weighted = train_on_synthetic(synthetic, labels, test, answers, weights=weights, seed=0)
    repeated = train_on_synthetic(
        np.repeat(synthetic, weights, axis=0), np.repeat(labels, weights), test, answers, seed=1
    )
    assert weighted == repeated
    assert weighted != train_on_synthetic(synthetic, labels, test, answers, seed=0)
    assert weighted.real_accuracy is None
    assert weighted.gap is None


def test_labels_may_be_text():
    x, y = labelled(59, 200)
    named = np.array(["ant", "bee", "cat"])[y]
    assert train_on_synthetic(x, named, x, named, seed=0) == train_on_synthetic(x, y, x, y, seed=0)


def test_as_dict_is_json():
    x, y = labelled(60, 100)
    results = [
        manifold(x[:50], x[50:]),
        two_sample_accuracy(x[:50], x[50:], rng=np.random.default_rng(0)),
        train_on_synthetic(x, y, x, y, seed=0),
        train_on_synthetic(x, y, x, y, real=x, real_labels=y, seed=0),
    ]
    for result in results:
        assert json.loads(json.dumps(result.as_dict(), allow_nan=False)) == result.as_dict()


MEASURES = {
    "manifold": manifold,
    "frechet": frechet_distance,
    "two samples": lambda real, synthetic: two_sample_accuracy(real, synthetic, rng=np.random.default_rng(0)),
    "training": lambda real, synthetic: train_on_synthetic(
        synthetic, np.arange(len(synthetic)) % 2, real, np.arange(len(real)) % 2, seed=0
    ),
}


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
def test_bad_matrices_are_refused(measure):
    good, holed = normal(61, 30, 3), normal(62, 30, 3)
    holed[4, 1] = np.nan
    for other, code in ((normal(63, 30, 4), "feature-mismatch"), (holed, "non-finite"), (good[:, 0], "not-a-matrix")):
        with raises(DataError, code):
            measure(good, other)


def test_too_few_rows_are_refused():
    few, many = normal(64, 5, 3), normal(65, 50, 3)
    for call in (
        lambda: manifold(many, few),
        lambda: manifold(many, many, neighbours=0),
        lambda: frechet_distance(many, few[:1]),
        lambda: two_sample_accuracy(few, many, rng=np.random.default_rng(0)),
    ):
        with raises(DataError, "too-few-rows"):
            call()
    assert manifold(many, few, neighbours=4).num_synthetic == 5


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"labels": np.zeros(40, int)}, "one-class"),
        ({"labels": np.zeros(39, int)}, "label-count"),
        ({"labels": np.full(40, -1)}, "no-label"),
        ({"labels": np.full(40, np.nan)}, "no-label"),
        ({"test_labels": np.full(40, "ant")}, "other-classes"),
        ({"weights": np.full(40, -1.0)}, "bad-weights"),
        ({"weights": np.full(40, np.nan)}, "bad-weights"),
        ({"weights": np.ones(3)}, "bad-weights"),
        ({"real": np.zeros((3, 2))}, "real-without-labels"),
    ],
)
def test_bad_labels_and_weights_are_refused(change, code):
    x, y = labelled(66, 40)
    given = {"synthetic": x, "labels": y, "test_real": x, "test_labels": y, "seed": 0} | change
    with raises(DataError, code):
        train_on_synthetic(**given)
