"""More rows for an earlier selection."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from synthsieve import select
from synthsieve.errors import SelectionError
from tests.errors import raises
from tests.selection.test_embeddings import clustered
from tests.selection.test_reference import WIDTHS, greedy

OLD, NEW = 200, 150


@pytest.mark.parametrize("width", WIDTHS)
def test_new_picks_are_those_of_greedy_from_the_old_ones(width):
    points = clustered(OLD + NEW, width)
    before = select(embeddings=points[:OLD], budget=20)
    after = before.extend(points[OLD:], budget=12)
    both = np.concatenate([points[OLD:], points[before.indices]]).astype(np.float64)
    weight, factor = np.repeat([1.0, 0.0], [NEW, 20]), np.repeat([1.0, 0.0], [NEW, 20])
    expected = greedy(cdist(both, both), 12, weight, factor, range(NEW, NEW + 20))
    assert after.indices.tolist() == [*before.indices, *(OLD + row for row in expected)]
    assert after.num_rows == OLD + NEW
    assert after.weights.sum() == OLD + NEW
    apart = cdist(points[OLD:], points[after.indices])
    assert after.assignment[OLD:].tolist() == after.indices[apart.argmin(axis=1)].tolist()
    assert after.assignment[:OLD].tolist() == before.assignment.tolist()
    measured = points.astype(np.float64) - points[after.assignment]
    assert after.gradient_bound == pytest.approx(np.linalg.norm(measured, axis=1).sum(), rel=1e-6)
    assert after.gradient_error == pytest.approx(np.linalg.norm(measured.sum(axis=0)), rel=1e-5)
    counts = np.bincount(after.assignment, minlength=OLD + NEW)
    assert after.weights.tolist() == counts[after.indices].tolist()
    assert after.to_arrow().num_rows == OLD + NEW
    assert np.array_equal(after.points, points[after.indices])


@pytest.mark.parametrize("width", WIDTHS)
def test_random_rows_are_in_the_summary(width):
    """As many random new rows next to the earlier picks; all rows are sampled from, so only the picks vary."""
    points = clustered(OLD + NEW, width)
    before = select(embeddings=points[:OLD], budget=20)
    after = before.extend(points[OLD:], budget=12)
    rng = np.random.default_rng(0)
    bounds = np.empty(20)
    for place in range(20):
        picks = np.concatenate([points[before.indices], points[OLD + rng.permutation(NEW)[:12]]])
        bounds[place] = cdist(points[OLD:], picks).min(axis=1).sum()
    spread = 5 * bounds.std() * np.sqrt(1 + 1 / 20)
    assert abs(after.random_bound - before.random_bound - bounds.mean()) < spread
    assert f"about {after.random_bound:.3g}" in after.summary()
    assert select(embeddings=points[:OLD], method="random").extend(points[OLD:]).random_bound is None


def test_every_class_gets_its_own_rows_and_new_classes_are_possible():
    points, labels = clustered(OLD + NEW, 60), np.array(["a", "b"])[np.arange(OLD + NEW) % 2]
    labels[-30:] = "c"
    before = select(embeddings=points[:OLD], labels=labels[:OLD], require_label=False, metric="cosine")
    after = before.extend(points[OLD:], labels[OLD:])
    assert after.classes == ("a", "b", "c")
    assert [figures.size for figures in after.figures] == [(labels == name).sum() for name in "abc"]
    assert (labels[after.assignment] == labels).all()
    assert [figures.selected for figures in after.figures] == [16, 16, 3]
    of_class = [labels[after.indices[:16]], labels[after.indices[16:32]], labels[after.indices[32:]]]
    assert [set(part) for part in of_class] == [{"a"}, {"b"}, {"c"}]
    assert "350 rows" in after.summary()
    twice = before.extend(points[OLD:-30], labels[OLD:-30]).extend(points[-30:], labels[-30:])
    assert set(twice.indices) == set(after.indices)


def test_rows_that_are_there_already_are_not_picked_again():
    points = clustered(100, 60)
    before = select(embeddings=points, budget=100)
    after = before.extend(points, budget=50)
    assert len(after) == 100
    assert after.weights.tolist() == [2.0] * 100
    assert after.gradient_bound == 0.0


def test_many_rows_in_cells(monkeypatch):
    for module in ("coreset", "kernels.cells"):
        monkeypatch.setattr(f"synthsieve.selection.{module}.CELL", 100)
    points = clustered(900, 60)
    before = select(embeddings=points[:300], method="fast")
    after = before.extend(points[300:])
    assert len(after) == len(set(after.indices.tolist())) == 90
    assert after.weights.sum() == 900
    assert after.gradient_bound < 1.1 * select(embeddings=points).gradient_bound


E = np.eye(4)
BAD = {
    "gradients": (lambda: select(gradients=E, labels=[0, 0, 1, 1]).extend(E), "extend"),
    "a filter": (lambda: select(embeddings=E).extend(E, keep_fraction=0.5), "extend"),
    "another width": (lambda: select(embeddings=E).extend(np.eye(3)), "shape"),
    "no rows": (lambda: select(embeddings=E).extend(E[:0]), "shape"),
    "no labels": (lambda: select(embeddings=E, labels=[0, 0, 1, 1], require_label=False).extend(E), "no-labels"),
    "labels of rows without": (lambda: select(embeddings=E).extend(E, [0, 0, 1, 1]), "labels"),
    "labels of another length": (
        lambda: select(embeddings=E, labels=[0, 0, 1, 1], require_label=False).extend(E, [0]), "length"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, code = BAD[name]
    with raises(SelectionError, code):
        call()
