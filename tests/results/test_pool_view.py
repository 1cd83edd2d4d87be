"""A pool opened again: its scores and outcomes are those of training, its neighbours the nearest there are."""

from dataclasses import replace

import numpy as np
import pytest

from synthsieve import open_run
from synthsieve.data.dataset import UNLABELED
from synthsieve.errors import CheckpointError, ConfigError, SelectionError
from synthsieve.evaluation.predict import latents_and_logits
from synthsieve.models import generate
from synthsieve.results.pool_view import Rejections, changed_settings
from synthsieve.selection.entropy import Reason, entropy_of_logits
from synthsieve.settings import Coreset
from synthsieve.training import extra_data
from tests.errors import raises
from tests.finished import finished_run


def test_scores_are_those_of_training(view):
    pool = view.pool
    assert np.array_equal(entropy_of_logits(pool.logits_x), pool.entropy)
    assert (pool.predicted[pool.survivors] == pool.y[pool.survivors]).all()
    z, logits = latents_and_logits(view.model, view.run.encoding, pool.x)
    assert np.array_equal(pool.z_reencoded[pool.selected], z)
    assert np.array_equal(pool.logits_x[pool.selected], logits)
    assert set(np.unique(pool.oracle_class)) <= set(range(10))
    assert view.figures["purity"] == pool.purity(pool.selected)


def test_opening_draws_and_predicts_nothing(out, monkeypatch):
    monkeypatch.setattr(generate, "decode", lambda *_, **__: pytest.fail("samples were decoded"))
    monkeypatch.setattr("synthsieve.evaluation.predict.predict_rows", lambda *_, **__: pytest.fail("it predicted"))
    before = sorted(path for path in out.rglob("*"))
    assert len(open_run(out).pool()) == 60
    assert sorted(path for path in out.rglob("*")) == before


def test_nearest_real_examples(view):
    real = view.real_latents.astype(np.float64)
    nearest = view.nearest(np.arange(len(view)))
    assert np.array_equal(view.nearest_distance, nearest.distances)
    for row in (0, 7, 59):
        apart = np.linalg.norm(real - view.pool.z_reencoded[row], axis=1)
        assert nearest.distances[row] == pytest.approx(apart.min(), rel=1e-6)
        near = view.nearest_real(row, count=3)
        assert near.indices[0] == nearest.indices[row] == view.real_rows[apart.argmin()]
        assert near.distances == pytest.approx(np.sort(apart)[:3], rel=1e-6)
    held_out = np.concatenate([view.run.split.validation, view.run.split.test])
    assert not set(nearest.indices) & set(held_out)
    labelled = view.dataset.train.y[view.real_rows[: len(view.run.split.labeled)]]
    assert (labelled != UNLABELED).all()


def test_neighbours_are_other_samples_nearest_first(view):
    latents = view.pool.z_reencoded.astype(np.float64)
    near = view.neighbours(5, count=4)
    apart = np.linalg.norm(latents - latents[5], axis=1)
    apart[5] = np.inf
    assert near.indices.tolist() == np.argsort(apart, kind="stable")[:4].tolist()
    assert near.distances == pytest.approx(np.sort(apart)[:4], rel=1e-6)
    assert len(view.neighbours(5, count=500).indices) == len(view) - 1


def test_chain_from_the_reference_to_the_sample(view):
    steps, x = view.chain(3, count=5)
    assert steps[0] == 0
    assert steps[-1] == 8
    assert len(steps) == len(x) == 5
    assert np.array_equal(x[-1], view.decode([3])[0])
    assert not np.array_equal(x[0], x[-1])


def test_chains_of_an_earlier_model_are_refused(view):
    moved = replace(view, pool=replace(view.pool, origin={**view.pool.origin, "latents_of": "0" * 16}))
    with raises(ConfigError, "other-model"):
        moved.chain(0)


def test_unchanged_selection_is_that_of_training(view):
    outcome = view.select()
    assert np.array_equal(outcome.weight, view.pool.weight)
    assert np.array_equal(outcome.reason, view.pool.reason)
    assert outcome.figures["gradient_bound"] == view.figures["gradient_bound"]
    assert sum(outcome.counts().values()) == len(view)


def test_selecting_again_with_the_same_settings(view):
    other = view.with_rejections(Rejections(view.rejections.path, {"another model": frozenset({1})}))
    same = view.settings.model_copy(update={"batch_synthetic": 3})  # nothing that selection depends on
    outcome = other.select(same)
    assert np.array_equal(outcome.weight, view.pool.weight)
    assert np.array_equal(outcome.rank, view.pool.rank)
    assert outcome.entropy_ceiling == view.figures["entropy_ceiling"]


def test_another_ceiling_and_budget(view):
    ceiling = float(np.quantile(view.pool.entropy, 0.5))
    outcome = view.select(changed_settings(view.settings, entropy_ceiling=ceiling, budget=0.5))
    assert (view.pool.entropy[outcome.kept] < ceiling).all()
    assert outcome.entropy_ceiling == ceiling
    for label in np.unique(view.pool.y[outcome.kept]):
        rows = outcome.kept & (view.pool.y == label)
        assert outcome.weight[rows].sum() == pytest.approx(rows.sum())
        assert (outcome.weight[rows] > 0).sum() == max(1, int(0.5 * rows.sum() + 0.5))  # halves are rounded up


def test_rejected_samples_are_never_selected(tmp_path):
    out = finished_run("digits", tmp_path)
    view = open_run(out).pool()
    bad = view.pool.selected[:2].tolist()
    view = view.with_rejections(view.rejections.update(view.pool, bad, reject=True))
    outcome = view.select()
    assert (outcome.reason[bad] == Reason.BY_HAND).all()
    assert (outcome.weight[bad] == 0).all()
    assert outcome.describe(bad[0]) == Reason.BY_HAND.describe()
    assert outcome.counts()[Reason.BY_HAND.describe()] == 2
    again = open_run(out).pool()
    assert again.rejected.tolist() == bad
    back = again.with_rejections(again.rejections.update(again.pool, bad, reject=False))
    assert not len(back.rejected)
    assert np.array_equal(back.select().weight, view.pool.weight)
    everything = again.with_rejections(again.rejections.update(again.pool, range(len(again)), reject=True))
    with raises(SelectionError, "all-rejected"):
        everything.select()


DAMAGED = ["{", "{}", '{"format": "synthsieve rejections 1", "rejected": {"a": [-1]}}', "[" * 10_000]


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_rejections_are_refused(tmp_path, text):
    (tmp_path / "rejections.json").write_text(text, encoding="utf-8")
    with raises(CheckpointError, "damaged-rejections"):
        Rejections.read(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"entropy_ceiling": 0.1, "keep_fraction": 0.5},
        {"entropy_ceiling": 0.0},
        {"entropy_ceiling": float("nan")},
        {"keep_fraction": 1.5},
        {"budget": 0.0},
    ],
)
def test_impossible_changes_are_refused(view, change):
    with pytest.raises(SelectionError, match="|".join(change)):
        changed_settings(view.settings, **change)


def test_a_budget_turns_everything_into_herding(view):
    everything = view.settings.model_copy(update={"coreset": Coreset.EVERYTHING})
    assert changed_settings(everything, budget=0.2).coreset is Coreset.HERDING
    assert changed_settings(everything, budget=1.0).coreset is Coreset.EVERYTHING


def test_older_pools_are_removed(tmp_path):
    for name in ("pool-0000010.npz", "pool-0000020.npz", "extra-data-0000010.npz"):
        (tmp_path / name).touch()
    extra_data.remove_older(tmp_path, extra_data.ExtraData(20, None, None, None, {}))
    assert [path.name for path in tmp_path.iterdir()] == ["pool-0000020.npz"]
