"""Outliers are rejected before a selection, and weights are capped after it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from synthsieve import CoresetSelector, select
from synthsieve.errors import SelectionError
from synthsieve.selection import outliers
from synthsieve.selection.entropy import Reason
from synthsieve.selection.gradients import residuals_of_logits
from synthsieve.selection.measure import cap_weights
from synthsieve.selection.options import SelectionOptions
from tests.errors import raises
from tests.selection.test_embeddings import clustered

# Both ways to compute distances: tiles and matrix products.
WIDTHS = [6, 60]
PLANTED = [5, 60, 200]


def uneven(width, n=300):
    """Rows of which most are close together, so that weights differ much."""
    points = clustered(n, width).astype(np.float64)
    points[: n // 2] = points[0] + 0.01 * points[: n // 2]
    return points


def mean_distance(points, number=10):
    """To the nearest other rows, from all pairs."""
    apart = cdist(points, points)
    np.fill_diagonal(apart, np.inf)
    return np.sort(apart, axis=1)[:, :number].mean(axis=1)


def with_planted(width):
    points = clustered(300, width)
    points[PLANTED] += np.float32(5.0) * np.eye(width, dtype=np.float32)[:3]
    return points


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0.0, 1e6, allow_subnormal=False), min_size=1, max_size=30), st.floats(1.0, 20.0))
def test_capped_weights_keep_sum_and_order(weights, max_weight):
    weights = np.array(weights)
    capped = cap_weights(weights, max_weight)
    assert capped.sum() == pytest.approx(weights.sum(), rel=1e-12)
    assert capped.max() <= max_weight * weights.mean() * (1 + 1e-12)
    assert capped.min() >= 0.0
    order = np.argsort(weights)
    assert (np.diff(capped[order]) >= -1e-9 * weights.mean()).all()


def test_capped_weights_in_closed_form():
    assert cap_weights(np.array([6.0, 1.0, 1.0]), 3.0).tolist() == [6.0, 1.0, 1.0]
    assert cap_weights(np.array([1.0, 6.0, 2.0, 3.0]), 1.5) == pytest.approx([1.25, 4.5, 2.5, 3.75])
    # The second weight is above the cap of 3 once it has its part of the excess.
    assert cap_weights(np.array([6.0, 2.5, 0.25, 0.25, 1.0]), 1.5) == pytest.approx([3.0, 3.0, 2 / 3, 2 / 3, 8 / 3])
    assert cap_weights(np.array([9.0, 0.0, 0.0]), 2.0) == pytest.approx([6.0, 1.5, 1.5])
    assert cap_weights(np.array([9.0, 2.0, 1.0]), 1.0) == pytest.approx([4.0, 4.0, 4.0])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("max_weight", [1.0, 1.5, 3.0])
def test_a_cap_keeps_rows_and_sums_of_classes(width, max_weight):
    points, labels = uneven(width), np.arange(300) % 2
    given = {"gradients": points, "labels": labels, "sample_weight": 0.5 + np.arange(300) % 3}
    plain, capped = select(**given), select(**given, max_weight=max_weight)
    assert capped.indices.tolist() == plain.indices.tolist()
    assert capped.assignment.tolist() == plain.assignment.tolist()
    lowered = 0
    for label in (0, 1):
        before, after = (one.weights[labels[one.indices] == label] for one in (plain, capped))
        assert after.sum() == pytest.approx(before.sum(), rel=1e-12)
        assert after.max() <= max_weight * after.mean() * (1 + 1e-12)
        lowered += (before > max_weight * before.mean()).sum()
    assert capped.num_capped == capped.as_dict()["capped"] == lowered > 0
    assert f"{lowered} of 30 weights capped" in capped.summary()
    assert plain.num_capped == 0
    assert "capped" not in plain.summary()


@pytest.mark.parametrize("with_features", [False, True])
def test_with_a_cap_the_error_is_measured_and_bounded(with_features):
    rng = np.random.default_rng(0)
    logits, labels, features = 3 * rng.normal(size=(90, 3)), np.arange(90) % 3, rng.normal(size=(90, 5))
    given = {"logits": logits, "labels": labels, "features": features if with_features else None}
    plain, capped = select(**given), select(**given, max_weight=1.2)
    gradients = residuals_of_logits(logits, labels)
    if with_features:
        gradients = (gradients[:, :, None] * features[:, None]).reshape(90, -1)
    error = gradients.sum(axis=0) - capped.weights @ gradients[capped.indices]
    assert capped.difference == pytest.approx(error)
    assert capped.gradient_error == pytest.approx(np.linalg.norm(error))
    assert capped.gradient_error <= capped.gradient_bound
    assert capped.gradient_bound > plain.gradient_bound
    assert np.array_equal(select(**given, max_weight=1.2).weights, capped.weights)


def test_a_cap_that_no_weight_reaches_changes_nothing():
    points = clustered(300, 6)
    plain, capped = select(embeddings=points), select(embeddings=points, max_weight=300.0)
    assert np.array_equal(plain.weights, capped.weights)
    assert capped.gradient_bound == plain.gradient_bound
    assert capped.num_capped == 0


def test_coverage_in_the_summary_is_that_of_the_rows():
    points = uneven(6)
    lines = [select(embeddings=points, max_weight=cap).summary().splitlines()[1] for cap in (None, 1.5)]
    assert lines[0].partition(";")[0] == lines[1].partition(";")[0]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_planted_outliers_are_rejected(width, scale):
    points = with_planted(width).astype(np.float64) * scale
    chosen = select(embeddings=points, outlier_fraction=0.01)
    assert chosen.rejected.tolist() == PLANTED
    assert chosen.rejected_counts == {Reason.OUTLIER.describe(): 3}
    assert "outlier" in chosen.to_arrow()["reason"].to_pylist()[5]
    assert "rejected 3: an outlier" in chosen.summary()
    assert chosen.assignment[PLANTED].tolist() == [-1, -1, -1]
    assert chosen.weights.sum() == 297
    others = np.setdiff1d(np.arange(300), PLANTED)
    assert others[select(embeddings=points[others]).indices].tolist() == chosen.indices.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outliers_of_each_class_are_those_of_all_pairs(dtype):
    points, labels = (clustered(300, 20) + 100.0).astype(dtype), np.arange(300) % 3
    chosen = select(embeddings=points, labels=labels, outlier_fraction=0.2, require_label=False)
    for label in range(3):
        rows = np.flatnonzero(labels == label)
        expected = rows[np.argsort(mean_distance(points[rows].astype(np.float64)))[-20:]]
        assert chosen.rejected[labels[chosen.rejected] == label].tolist() == sorted(expected.tolist())


@pytest.mark.parametrize("form", ["gradients", "logits", "features", "curvature", "cosine"])
def test_outliers_lie_in_the_space_of_the_selection(form):
    rng = np.random.default_rng(0)
    logits, labels, features = rng.normal(size=(120, 3)), np.arange(120) % 2, rng.normal(size=(120, 5))
    residuals = residuals_of_logits(logits, labels)
    outer = (residuals[:, :, None] * features[:, None]).reshape(120, -1)
    given, points = {
        "gradients": ({"gradients": features}, features),
        "logits": ({"logits": logits}, residuals),
        "features": ({"logits": logits, "features": features}, outer),
        "curvature": ({"logits": logits, "curvature": "unit"}, residuals),
        "cosine": (
            {"embeddings": features, "metric": "cosine", "require_label": False},
            features / np.linalg.norm(features, axis=1, keepdims=True),
        ),
    }[form]
    chosen = select(**given, labels=labels, outlier_fraction=0.1)
    expected = [
        rows[np.argsort(mean_distance(points[rows]))[-6:]] for rows in (np.arange(0, 120, 2), np.arange(1, 120, 2))
    ]
    assert chosen.rejected.tolist() == np.sort(np.concatenate(expected)).tolist()


def test_neighbours_may_be_a_sample_of_the_rows(monkeypatch):
    points = with_planted(6)
    monkeypatch.setattr(outliers, "MAX_CANDIDATES", 100)
    monkeypatch.setattr(outliers, "BLOCK", 700)
    first, again = (select(embeddings=points, outlier_fraction=0.01, seed=4) for _ in range(2))
    assert first.rejected.tolist() == again.rejected.tolist() == PLANTED


def test_other_reasons_come_first_and_the_share_is_of_the_rest():
    points, quality = with_planted(6), np.ones(300)
    quality[5] = quality[100:199] = 0.0
    chosen = select(embeddings=points, quality=quality, quality_floor=0.5, outlier_fraction=0.01)
    assert chosen.rejected_counts == {Reason.LOW_QUALITY.describe(): 100, Reason.OUTLIER.describe(): 2}
    assert np.flatnonzero(chosen.reason == Reason.OUTLIER).tolist() == [60, 200]


def test_no_class_is_lost_and_equal_rows_are_kept_in_order():
    labels = np.array([0, 1, 1, 2, 2, 2])
    chosen = select(gradients=np.ones((6, 2)), labels=labels, outlier_fraction=0.999)
    assert chosen.rejected.tolist() == [2, 4, 5]
    assert select(gradients=np.ones((6, 2)), labels=labels, outlier_fraction=0.3).num_rejected == 0


def test_memory_of_the_outliers_counts():
    points = clustered(3_000, 60)
    select(embeddings=points, outlier_fraction=0.1, memory_limit="300MB")
    with raises(SelectionError, "memory-limit-rows"):
        select(embeddings=points, outlier_fraction=0.1, memory_limit="40MB")


def test_the_estimator_has_both():
    fitted = CoresetSelector(embeddings=True, outlier_fraction=0.01, max_weight=1.5).fit(with_planted(6))
    assert fitted.selection_.rejected.tolist() == PLANTED
    assert fitted.loss_weights_.max() <= 1.5 * (1 + 1e-12)


def test_rows_that_are_filtered_already_have_no_outliers():
    assert SelectionOptions(outlier_fraction=0.1).without_filter().outlier_fraction == 0.0


BAD = {
    "a cap below the mean": ({"max_weight": 0.9}, "max-weight"),
    "an infinite cap": ({"max_weight": np.inf}, "max-weight"),
    "nan as a cap": ({"max_weight": np.nan}, "max-weight"),
    "text as a cap": ({"max_weight": "high"}, "max-weight"),
    "true as a cap": ({"max_weight": True}, "max-weight"),
    "a cap with epsilon": ({"max_weight": 3.0, "epsilon": 1.0}, "max-weight"),
    "all are outliers": ({"outlier_fraction": 1.0}, "outlier-fraction"),
    "a negative share": ({"outlier_fraction": -0.1}, "outlier-fraction"),
    "nan as a share": ({"outlier_fraction": np.nan}, "outlier-fraction"),
    "text as a share": ({"outlier_fraction": "few"}, "outlier-fraction"),
    "no share": ({"outlier_fraction": None}, "outlier-fraction"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values(name):
    given, code = BAD[name]
    with raises(SelectionError, code) as caught:
        select(embeddings=np.eye(4), **given)
    assert str(caught.value).startswith("expected ")


@pytest.mark.parametrize("changes", [{"max_weight": 3.0}, {"outlier_fraction": 0.1}])
def test_neither_extends_a_selection(changes):
    points = clustered(100, 6)
    with raises(SelectionError, "extend"):
        select(embeddings=points, **changes).extend(points)
    neutral = {"max_weight": None, "outlier_fraction": 0.0}
    assert select(embeddings=points, **changes).extend(points, **neutral).weights.sum() >= 190
