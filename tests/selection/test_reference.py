"""Real rows beside the generated ones, and the quality of rows."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from synthsieve import select
from synthsieve.errors import SelectionError
from synthsieve.selection.reference import nearest_rows
from tests.errors import raises
from tests.selection.test_embeddings import clustered

# Both ways to compute distances: tiles and matrix products.
WIDTHS = [6, 60]


def greedy(distances, count, weight, factor, start=()):
    """Plain greedy picks among the columns of positive factor; `start` are picks that are there already."""
    reach, picks = np.full(len(distances), 2 * distances.max()), []
    for pick in start:
        reach = np.minimum(reach, distances[:, pick])
    for _ in range(count):
        gains = (weight @ np.maximum(reach[:, None] - distances, 0.0)) * (factor if picks or start else 1.0)
        gains[factor == 0] = gains[picks] = -1.0
        picks.append(int(np.argmax(gains)))
        reach = np.minimum(reach, distances[:, picks[-1]])
    return picks


def rows_and_reference(width):
    return clustered(300, width), clustered(40, width, seed=5)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("role", ["cover", "fill", "check"])
@pytest.mark.parametrize("with_quality", [False, True])
def test_picks_are_those_of_the_plain_algorithm(width, role, with_quality):
    rows, real = rows_and_reference(width)
    quality = np.random.default_rng(0).uniform(0.2, 3.0, 300) if with_quality else np.ones(300)
    given = {"quality": quality, "quality_factor": True} if with_quality else {}
    chosen = select(embeddings=rows, reference=real, reference_role=role, budget=25, reference_weight=0.5, **given)
    both = np.concatenate([rows, real]).astype(np.float64)
    weight = np.concatenate([np.ones(300), np.full(40, {"cover": 0.5 * 300 / 40}.get(role, 0.0))])
    factor = np.concatenate([quality, np.zeros(40)])
    start = range(300, 340) if role == "fill" else ()
    picks = greedy(cdist(both, both), 25, weight, factor, start)
    assert chosen.indices.tolist() == picks
    assert chosen.num_rejected == 0
    to_picks = cdist(rows.astype(np.float64), rows[picks].astype(np.float64))
    assert chosen.gradient_bound == pytest.approx(to_picks.min(axis=1).sum(), rel=1e-5)
    assert chosen.weights.tolist() == np.bincount(to_picks.argmin(axis=1), minlength=25).tolist()
    assert chosen.reference.coverage == pytest.approx(cdist(real, rows[picks]).min(axis=1).mean(), rel=1e-5)


def test_cover_comes_nearer_to_the_reference_and_fill_stays_away():
    rows = clustered(600, 60)
    real = clustered(600, 60)[:30] + np.float32(0.02)
    cover, fill, check = (
        select(embeddings=rows, reference=real, reference_role=role, budget=12, reference_weight=4.0)
        for role in ("cover", "fill", "check")
    )
    assert cover.reference.coverage < check.reference.coverage < fill.reference.coverage
    assert check.indices.tolist() == select(embeddings=rows, budget=12).indices.tolist()


@pytest.mark.parametrize("width", WIDTHS)
def test_copies_are_rejected_with_the_row_they_copy(width):
    rows, real = rows_and_reference(width)
    rows[[3, 70]] = real[[8, 2]]
    rows[150] = real[11] + np.float32(1e-6)
    chosen = select(embeddings=rows, reference=real)
    assert chosen.rejected.tolist() == [3, 70, 150]
    assert chosen.reference.row[[3, 70, 150]].tolist() == [8, 2, 11]
    assert chosen.assignment[[3, 70, 150]].tolist() == [-1, -1, -1]
    assert chosen.weights.sum() == 297
    table = chosen.to_arrow()
    assert table["reason"].to_pylist()[3] == "a copy of a row of the reference"
    assert table["reference_row"].to_pylist()[70] == 2
    near = np.median(chosen.reference.distance)
    wide = select(embeddings=rows, reference=real, leak_distance=near)
    assert wide.num_rejected == (chosen.reference.distance <= near).sum()
    assert "a copy of a row" in wide.summary()
    assert "reference of 40 rows" in wide.summary()
    assert wide.as_dict()["reference"]["leak_distance"] == near


def test_nearest_rows_are_exact_among_close_and_far_ones():
    rng = np.random.default_rng(0)
    others = np.concatenate([clustered(50, 20), np.float32(1e3) + np.float32(1e-3) * clustered(50, 20, seed=1)])
    points = np.concatenate([others[rng.permutation(100)[:30]], clustered(30, 20, seed=2)])
    nearest, distance = nearest_rows(points, others)
    apart = cdist(points.astype(np.float64), others.astype(np.float64))
    assert nearest.tolist() == apart.argmin(axis=1).tolist()
    assert distance == pytest.approx(apart.min(axis=1), rel=1e-12)


def test_each_class_covers_its_own_reference():
    rows, labels = clustered(300, 60), np.repeat(["a", "b"], 150)
    real, names = clustered(40, 60, seed=5), np.repeat(["a", "b"], 20)
    given = {"embeddings": rows, "labels": labels, "require_label": False}
    chosen = select(**given, reference=real, reference_labels=names)
    for name in ("a", "b"):
        alone = select(embeddings=rows[labels == name], reference=real[names == name], budget=15)
        of_class = chosen.indices[labels[chosen.indices] == name]
        assert np.flatnonzero(labels == name)[alone.indices].tolist() == of_class.tolist()
    without = select(**given, reference=real)
    assert any("reference has no labels" in note for note in without.notes)
    assert without.indices.tolist() == select(**given).indices.tolist()
    assert np.isfinite(without.reference.coverage)


def test_among_equal_rows_the_best_is_picked():
    rows = np.repeat(clustered(50, 60), 3, axis=0)
    quality = np.tile([1.0, 3.0, 2.0], 50)
    chosen = select(embeddings=rows, quality=quality, quality_factor=True, budget=20)
    assert (chosen.indices % 3 == 1).all()
    assert chosen.weights.sum() == 150


def test_rows_below_the_quality_floor_are_rejected():
    rows, quality = clustered(200, 60), np.linspace(-1.0, 1.0, 200)
    chosen = select(embeddings=rows, quality=quality, quality_floor=0.5)
    assert chosen.rejected.tolist() == np.flatnonzero(quality < 0.5).tolist()
    assert chosen.rejected_counts == {"quality below the floor": 150}
    by_gradient = select(labels=np.arange(200) % 2, gradients=rows, quality=quality, quality_floor=0.5)
    assert by_gradient.rejected.tolist() == chosen.rejected.tolist()


@pytest.mark.parametrize("method", ["exact", "fast", "stochastic", "random"])
def test_every_method_keeps_to_the_rows(method, monkeypatch):
    for module in ("coreset", "kernels.cells"):
        monkeypatch.setattr(f"synthsieve.selection.{module}.CELL", 100)
    monkeypatch.setattr("synthsieve.selection.greedy.MIN_COARSE", 100)
    for width in WIDTHS:
        rows, real = rows_and_reference(width)
        quality = np.random.default_rng(0).uniform(0.5, 1.0, 300)
        for role in ("cover", "fill"):
            given = {"reference": real, "reference_role": role, "quality": quality, "quality_factor": True}
            chosen = select(embeddings=rows, method=method, budget=40, **given)
            assert len(set(chosen.indices.tolist())) == 40
            assert chosen.indices.max() < 300
            assert chosen.assignment.max() < 300
            assert chosen.weights.sum() == 300
            again = select(embeddings=rows, method=method, budget=40, n_jobs=1, **given)
            assert again.indices.tolist() == chosen.indices.tolist()


E = np.eye(4)
BAD = {
    "a reference without embeddings": ({"gradients": E, "labels": [0, 0, 1, 1], "reference": E}, "reference"),
    "a reference of another width": ({"embeddings": E, "reference": np.eye(3)}, "reference"),
    "an empty reference": ({"embeddings": E, "reference": np.empty((0, 4))}, "reference"),
    "nan in the reference": ({"embeddings": E, "reference": E * np.nan}, "not-finite"),
    "a zero row in the reference": ({"embeddings": E, "reference": 0 * E, "metric": "cosine"}, "zero-length"),
    "refine": ({"embeddings": E, "reference": E + 1, "refine": True}, "reference-options"),
    "epsilon": ({"embeddings": E, "reference": E + 1, "epsilon": 1.0}, "reference-options"),
    "only copies": ({"embeddings": E, "reference": E}, "no-survivors"),
    "labels that do not match": (
        {"embeddings": E, "labels": [0, 0, 1, 1], "reference": E + 1, "reference_labels": [0, 1, 2, 3]},
        "unknown-label"),
    "labels of another length": (
        {"embeddings": E, "labels": [0, 0, 1, 1], "reference": E + 1, "reference_labels": [0, 1]}, "length"),
    "an unknown role": ({"embeddings": E, "reference": E + 1, "reference_role": "mimic"}, "reference-role"),
    "a negative distance": ({"embeddings": E, "reference": E + 1, "leak_distance": -1.0}, "leak-distance"),
    "an infinite weight": ({"embeddings": E, "reference": E + 1, "reference_weight": np.inf}, "reference-weight"),
    "quality without a use": ({"embeddings": E, "quality": [1, 2, 3, 4]}, "quality"),
    "a floor without quality": ({"embeddings": E, "quality_floor": 1.0}, "quality"),
    "a factor without quality": ({"embeddings": E, "quality_factor": True}, "quality"),
    "quality of another length": ({"embeddings": E, "quality": [1, 2], "quality_floor": 1}, "length"),
    "quality of another shape": ({"embeddings": E, "quality": E, "quality_floor": 1}, "shape"),
    "nan quality": ({"embeddings": E, "quality": [1, 2, np.nan, 4], "quality_floor": 1}, "not-finite"),
    "text as quality": ({"embeddings": E, "quality": list("abcd"), "quality_floor": 1}, "dtype"),
    "a floor above all": ({"embeddings": E, "quality": [1, 2, 3, 4], "quality_floor": 9}, "no-survivors"),
    "a floor that is no number": ({"embeddings": E, "quality": [1, 2, 3, 4], "quality_floor": "high"}, "quality-floor"),
    "log-probabilities as a factor": ({"embeddings": E, "quality": [-1, -2, -3, 0], "quality_factor": True}, "quality"),
    "a factor with refine": (
        {"embeddings": E, "quality": [1, 2, 3, 4], "quality_factor": True, "refine": True}, "refine"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    given, code = BAD[name]
    with raises(SelectionError, code):
        select(**given)
