"""A pool seen again says what it said in training, and its neighbours are the nearest there are."""

import numpy as np
import pytest

from synthsieve import open_run
from synthsieve.config import Coreset
from synthsieve.data.dataset import UNLABELED
from synthsieve.entropy import Reason, entropy_of_logits
from synthsieve.errors import CheckpointError, ConfigError, SelectionError
from synthsieve.evaluation.quality import latents
from synthsieve.learning import additions
from synthsieve.review.fate import changed_settings, purity
from synthsieve.review.marks import Marks
from synthsieve.review.scores import Scores
from tests.finished import CRAIG, finished_run


def test_scores_are_those_that_training_chose_by(view):
    assert np.allclose(entropy_of_logits(view.scores.logits_x), view.pool.entropy, rtol=1e-5, atol=1e-12)
    kept = view.pool.survivors
    assert (view.scores.predicted[kept] == view.pool.y[kept]).all()
    features = latents(view.model, view.run.encoding, view.pool.x)
    assert np.allclose(view.scores.features[view.pool.selected], features, atol=1e-5)
    assert set(np.unique(view.scores.judged)) <= set(range(10))


def test_the_log_density_is_the_chains_target(view):
    z = view.pool.z.astype(np.float64)
    at_y = np.take_along_axis(view.scores.logits_z, view.pool.y[:, None], axis=1)[:, 0]
    expected = at_y - 0.5 * (z**2).sum(axis=1) - 0.5 * z.shape[1] * np.log(2 * np.pi)
    assert np.allclose(view.scores.log_density, expected, rtol=1e-4, atol=1e-3)


def test_the_nearest_real_example_is_a_training_row_and_the_nearest(view):
    real = view.scores.real_features.astype(np.float64)
    for row in (0, 7, 59):
        apart = np.linalg.norm(real - view.scores.features[row], axis=1)
        assert view.scores.nearest_distance[row] == pytest.approx(apart.min(), rel=1e-6)
        near = view.nearest_real(row, count=3)
        assert near.rows[0] == view.scores.nearest_row[row] == view.scores.real_rows[apart.argmin()]
        assert near.distances == pytest.approx(np.sort(apart)[:3], rel=1e-6)
    held_out = np.concatenate([view.run.split.validation, view.run.split.test])
    assert not set(view.scores.nearest_row) & set(held_out)
    labelled = view.dataset.train.y[view.scores.real_rows[: len(view.run.split.labeled)]]
    assert (labelled != UNLABELED).all()


def test_neighbours_are_other_samples_nearest_first(view):
    features = view.scores.features.astype(np.float64)
    near = view.neighbours(5, count=4)
    apart = np.linalg.norm(features - features[5], axis=1)
    apart[5] = np.inf
    assert near.rows.tolist() == np.argsort(apart, kind="stable")[:4].tolist()
    assert near.distances == pytest.approx(np.sort(apart)[:4], rel=1e-6)
    assert len(view.neighbours(5, count=500).rows) == len(view) - 1


def test_a_chain_begins_in_the_reference_and_ends_at_the_sample(view):
    steps, x = view.chain(3, count=5)
    assert steps[0] == 0
    assert steps[-1] == 8
    assert len(steps) == len(x) == 5
    assert np.array_equal(x[-1], view.decode([3])[0])
    assert not np.array_equal(x[0], x[-1])


def test_without_a_change_the_fate_is_that_of_training(view):
    fate = view.sieved()
    assert np.array_equal(fate.weight, view.pool.weight)
    assert np.array_equal(fate.reason, view.pool.reason)
    assert fate.figures["gradient_bound"] == view.figures["gradient_bound"]
    assert sum(fate.counts().values()) == len(view)


def test_sieving_again_with_trainings_settings_chooses_the_same(view):
    marked = view.with_marks(Marks(view.marks.path, {"another model": frozenset({1})}))
    same = view.settings.model_copy(update={"batch_synthetic": 3})  # nothing that the sieve looks at
    fate = marked.sieved(same)
    assert np.array_equal(fate.weight, view.pool.weight)
    assert np.array_equal(fate.rank, view.pool.rank)
    assert fate.entropy_ceiling == view.figures["entropy_ceiling"]


def test_a_lower_ceiling_and_another_budget_change_the_choice(view):
    ceiling = float(np.quantile(view.pool.entropy, 0.5))
    fate = view.sieved(changed_settings(view.settings, entropy_ceiling=ceiling, budget=0.5))
    assert (view.pool.entropy[fate.kept] < ceiling).all()
    assert fate.entropy_ceiling == ceiling
    for label in np.unique(view.pool.y[fate.kept]):
        mine = fate.kept & (view.pool.y == label)
        assert fate.weight[mine].sum() == pytest.approx(mine.sum())
        assert (fate.weight[mine] > 0).sum() == max(1, round(0.5 * mine.sum()))


def test_marked_samples_are_rejected_by_hand_and_never_chosen_again(tmp_path):
    out = finished_run("digits", tmp_path)
    view = open_run(out).pool()
    bad = view.pool.selected[:2].tolist()
    view = view.with_marks(view.marks.changed(view.pool, bad, bad=True))
    fate = view.sieved()
    assert (fate.reason[bad] == Reason.BY_HAND).all()
    assert (fate.weight[bad] == 0).all()
    assert fate.in_words(bad[0]) == "rejected by hand"
    assert fate.counts()["rejected by hand"] == 2
    again = open_run(out).pool()
    assert again.marked.tolist() == bad
    back = again.with_marks(again.marks.changed(again.pool, bad, bad=False))
    assert not len(back.marked)
    assert np.array_equal(back.sieved().weight, view.pool.weight)
    everything = again.with_marks(again.marks.changed(again.pool, range(len(again)), bad=True))
    with pytest.raises(SelectionError, match="every one is rejected by hand"):
        everything.sieved()


@pytest.mark.parametrize("text", ["{", "{}", '{"format": "synthsieve marks 1", "marked": {"a": [-1]}}', "[" * 10_000])
def test_damaged_marks_are_told(tmp_path, text):
    (tmp_path / "marked-bad.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match="cannot be read"):
        Marks.of(tmp_path)


def test_scores_are_kept_and_made_again_for_another_pool(out, view, tmp_path):
    (path,) = (out / "seed-0" / CRAIG.slug).glob("*.scores.npz")
    assert Scores.read(path, view.pool) is not None
    other = open_run(out).pool("entropy, L=60").pool
    assert np.array_equal(other.z, view.pool.z)
    (tmp_path / "broken.npz").write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="is damaged"):
        Scores.read(tmp_path / "broken.npz", view.pool)
    changed = view.pool.y.copy()
    changed[0] += 1
    assert Scores.read(path, type(other)(**{**vars(view.pool), "y": changed})) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"entropy_ceiling": 0.1, "keep_fraction": 0.5}, "got both"),
        ({"entropy_ceiling": 0.0}, "above 0 nats, got 0"),
        ({"entropy_ceiling": float("nan")}, "above 0 nats, got nan"),
        ({"budget": 0.0}, "budget above 0, at most 1, got 0"),
        ({"keep_fraction": 1.5}, "keep fraction above 0, at most 1, got 1.5"),
    ],
)
def test_what_cannot_be_sieved_by_is_said(view, change, said):
    with pytest.raises(SelectionError, match=said):
        changed_settings(view.settings, **change)


def test_an_arm_that_keeps_all_selects_when_a_budget_is_given(view):
    everything = view.settings.model_copy(update={"coreset": Coreset.EVERYTHING})
    assert changed_settings(everything, budget=0.2).coreset is Coreset.CRAIG
    assert changed_settings(everything, budget=1.0).coreset is Coreset.EVERYTHING


def test_purity_is_the_judges(view):
    rows = view.pool.selected
    expected = (view.scores.judged[rows] == view.pool.y[rows]).mean()
    assert purity(view.pool, view.scores, rows) == expected
    assert purity(view.pool, view.scores, rows[:0]) is None


def test_latents_of_an_earlier_model_cannot_be_replayed(view):
    from dataclasses import replace

    moved = replace(view, pool=replace(view.pool, origin={**view.pool.origin, "latents_of": "0" * 16}))
    with pytest.raises(ConfigError, match="cannot be replayed"):
        moved.chain(0)


def test_a_run_that_may_only_be_read_can_be_looked_at(tmp_path, monkeypatch):
    out = finished_run("vector", tmp_path)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Scores, "write", refuse)
    assert len(open_run(out).pool(CRAIG.name)) == 60
    assert not list(out.rglob("*.scores.npz"))


def test_scores_go_with_the_pool_they_are_of(tmp_path):
    for name in ("pool-0000010.npz", "pool-0000010.scores.npz", "pool-0000020.scores.npz", "additions-0000010.npz"):
        (tmp_path / name).touch()
    additions.remove_older(tmp_path, additions.Additions(20, None, None, None, {}))
    assert [path.name for path in tmp_path.iterdir()] == ["pool-0000020.scores.npz"]
