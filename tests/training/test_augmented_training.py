"""Augmented training: what step 8 moves, when choices are made, and that branching and resuming change nothing."""

import json

import numpy as np
import pytest
import torch

from synthsieve.errors import CheckpointError
from synthsieve.settings import load_settings
from synthsieve.training import extra_data as store
from synthsieve.training import step as steps
from synthsieve.training.augment import draw_again
from synthsieve.training.batches import BatchSource
from synthsieve.training.extra_data import choose_extra_data, is_due, read_figures
from synthsieve.training.loop import Trial, fit
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises

SECOND = [
    "augmentation.steps=10",
    "augmentation.reselect_every=4",
    "augmentation.pool_size=100",
    "augmentation.batch_synthetic=15",
    "augmentation.coreset=adacore",
    "pseudo_labels.reselect_every=3",
    "pseudo_labels.batch=10",
]


def weights(run):
    return {name: value.clone() for name, value in run.load_model().state_dict().items()}


def same(one, two):
    return all(torch.equal(one[name], two[name]) for name in one)


def at_the_end_of_pretraining(run):
    train_state = run.new_train_state()
    train_state.step = run.settings.training.steps
    return train_state


def stop_after(run, dataset, step, monkeypatch):
    """Run `fit` until the given step is done, as if the process were killed then."""

    class KilledError(Exception):
        pass

    real = steps.take_step

    def take(train_state, batch):
        if train_state.step == step:
            raise KilledError
        real(train_state, batch)

    with monkeypatch.context() as patch:
        patch.setattr("synthsieve.training.loop.take_step", take)
        with pytest.raises(KilledError):
            fit(run, dataset)


@pytest.mark.parametrize("killed_at", [13, 15, 17, 21])
def test_killed_and_resumed_augmented_training_equals_an_unbroken_one(quick_run, digits, monkeypatch, killed_at):
    whole, broken = quick_run("whole", *SECOND), quick_run("broken", *SECOND)
    fit(whole, digits)
    stop_after(broken, digits, killed_at, monkeypatch)
    fit(RunDirectory.open(broken.path), digits)
    assert same(weights(whole), weights(broken))
    for name in ("history.jsonl", "selections.jsonl"):
        one, two = ((run.path / name).read_text(encoding="utf-8") for run in (whole, broken))
        assert _timeless(one) == _timeless(two)


def test_a_branch_equals_a_run_that_never_stopped(quick_run, digits):
    whole, base, branched = quick_run("whole", *SECOND), quick_run("base"), quick_run("branch", *SECOND)
    fit(whole, digits)
    fit(base, digits)
    fit(branched, digits, base=base)
    assert same(weights(whole), weights(branched))
    assert (whole.path / "history.jsonl").read_text(encoding="utf-8") == (branched.path / "history.jsonl").read_text(
        encoding="utf-8"
    )


def test_a_branch_needs_a_finished_pretraining_of_the_same_settings(quick_run, digits, monkeypatch):
    base, branched = quick_run("base"), quick_run("branch", *SECOND)
    with raises(CheckpointError, "missing-file"):
        fit(branched, digits, base=base)
    stop_after(base, digits, 9, monkeypatch)
    with raises(CheckpointError, "unfinished-run"):
        fit(branched, digits, base=base)
    fit(base, digits)
    with raises(CheckpointError, "other-run"):
        fit(quick_run("other", *SECOND, "model.dropout=0.3"), digits, base=base)


def test_choices_are_made_when_due_and_older_pools_removed(quick_run, digits):
    run = quick_run("run", *SECOND)
    fit(run, digits, oracle=lambda x: np.zeros(len(x), dtype=np.int64))
    figures = read_figures(run.path)
    assert [row["step"] for row in figures] == [12, 15, 16, 18, 20, 21]
    kept = [f"{what}-{step:07d}.npz" for what in ("extra-data", "pool") for step in (18, 21)]  # of both checkpoints
    assert sorted(path.name for path in run.path.glob("*-*.npz")) == kept
    pools = [row["entropy_quantiles"] for row in figures]
    assert pools[0] == pools[1] != pools[2] == pools[3] != pools[4] == pools[5]  # every 4 steps
    pseudo = [row["pseudo_label_ceiling"] for row in figures]
    assert pseudo[0] != pseudo[1] == pseudo[2] != pseudo[3] == pseudo[4] != pseudo[5]  # every 3
    last = figures[-1]
    assert last["drawn"] == 100
    assert sum(last["survivors_per_class"]) == last["survivors"]
    assert last["purity"] == pytest.approx(last["selected_per_class"][0] / last["selected"])
    assert last["pseudo_labels"] == sum(last["pseudo_labels_per_class"])
    assert 0 <= last["pseudo_label_purity"] <= 1
    assert set(last["entropy_quantiles"]) == {"0.05", "0.25", "0.5", "0.75", "0.95"}


def test_pseudo_labels_are_the_surest_predictions_on_unlabelled_rows(quick_run, digits):
    run = quick_run("run", *SECOND, "augmentation.enabled=false", "pseudo_labels.keep_fraction=0.2")
    chosen = choose_extra_data(at_the_end_of_pretraining(run), run.data(digits), None)
    assert chosen.pool is None
    pseudo = chosen.pseudo
    assert set(pseudo.rows) <= set(run.split.unlabeled)
    assert (pseudo.entropy < pseudo.ceiling).all()
    purity = (digits.train.y[pseudo.rows] == pseudo.y).mean()
    assert chosen.figures["pseudo_label_purity"] == pytest.approx(purity)


def test_pseudo_labels_obey_an_absolute_ceiling(quick_run, digits):
    run = quick_run("run", *SECOND, "augmentation.enabled=false", "pseudo_labels.entropy_ceiling=2.0")
    pseudo = choose_extra_data(at_the_end_of_pretraining(run), run.data(digits), None).pseudo
    assert 0 < len(pseudo.rows) < len(run.split.unlabeled)
    assert pseudo.entropy.max() < 2.0


def test_without_confident_rows_training_continues_without_pseudo_labels(quick_run, digits):
    no_row = [*SECOND, "augmentation.enabled=false", "pseudo_labels.entropy_ceiling=1e-30"]
    run, plain = quick_run("run", *no_row), quick_run("plain", *no_row[:-1], "pseudo_labels.enabled=false")
    fit(run, digits)
    fit(plain, digits)
    assert {row["pseudo_labels"] for row in read_figures(run.path)} == {0}
    assert same(weights(run), weights(plain))


def test_extra_data_from_disk(quick_run, digits, tmp_path):
    run = quick_run("run", *SECOND)
    train_state = at_the_end_of_pretraining(run)
    chosen = choose_extra_data(train_state, run.data(digits), None)
    store.write(chosen, tmp_path, train_state)
    again = store.read(tmp_path, chosen.step)
    assert np.array_equal(again.pool.x, chosen.pool.x)
    assert np.array_equal(again.pseudo.rows, chosen.pseudo.rows)
    assert again.pseudo.ceiling == chosen.pseudo.ceiling
    assert np.array_equal(again.curvature.squared_diagonal, chosen.curvature.squared_diagonal)
    assert again.figures == json.loads(json.dumps(chosen.figures))
    (tmp_path / f"extra-data-{chosen.step:07d}.npz").write_bytes(b"PK")
    with raises(CheckpointError, "damaged-file"):
        store.read(tmp_path, chosen.step)


def test_the_weights_that_drew_a_pool_stay_beside_it(quick_run, digits):
    run = quick_run("run", *SECOND, "augmentation.reselect_every=3", "pseudo_labels.reselect_every=2")
    fit(run, digits)
    pool = store.latest(run.path).pool
    model = store.model_that_drew(run, pool)
    row = int(pool.selected[0])
    assert np.array_equal(draw_again(model, run.encoding, pool, row), pool.x[0])
    stored = run.path / f"drawn-by-{pool.origin['model_hash']}.safetensors"
    stored.write_bytes(stored.read_bytes()[:-8])
    with raises(CheckpointError, "damaged-file"):
        store.model_that_drew(run, pool)


@pytest.fixture
def added(quick_run, digits):
    run = quick_run("run", *SECOND, "augmentation.augment_from_step=0")
    train_state = run.new_train_state()
    source = BatchSource(run.data(digits), run.settings)
    source.add(choose_extra_data(train_state, run.data(digits), None))
    train_state.model.train()
    return train_state, next(source)


def test_step_8_reaches_f_and_the_label_tower_and_not_the_generator(added):
    train_state, batch = added
    before = {name: value.clone() for name, value in train_state.model.state_dict().items()}
    steps.learn_labels(train_state, batch)
    moved = {
        name.split(".")[0] for name, value in train_state.model.state_dict().items() if not value.equal(before[name])
    }
    assert moved == {"energy", "encoder"}
    assert {"synthetic_cross_entropy", "pseudo_cross_entropy"} <= set(train_state.metrics)


def test_the_added_loss_is_the_coefficient_times_the_weighted_mean(added):
    train_state, batch = added
    (synthetic_x, synthetic_y, weights), (pseudo_x, pseudo_y, _) = batch.synthetic, batch.pseudo
    q = train_state.model.eval().posterior(torch.cat([synthetic_x, pseudo_x]))
    logits = train_state.model.energy.class_logits(q.mean)
    each = torch.nn.functional.cross_entropy(logits, torch.cat([synthetic_y, pseudo_y]), reduction="none")
    n = len(synthetic_y)
    settings = train_state.settings
    expected = settings.augmentation.synthetic_loss_weight * (weights * each[:n]).mean()
    expected += settings.pseudo_labels.loss_weight * each[n:].mean()
    assert torch.allclose(steps._extra_data_loss(train_state, batch, logits, {}), expected)


@pytest.mark.parametrize(("frozen", "moved"), [(True, False), (False, True)])
def test_the_implicit_form_moves_the_generator_only_where_it_is_free(quick_run, digits, frozen, moved):
    run = quick_run(
        "run",
        *SECOND,
        "implicit.enabled=true",
        "implicit.gradient=last",
        "implicit.num_steps=3",
        f"implicit.freeze_generator={str(frozen).lower()}",
        "augmentation.augment_from_step=0",
    )
    train_state = run.new_train_state()
    train_state.model.train()
    before = [value.clone() for value in train_state.model.generator.parameters()]
    steps.learn_labels(train_state, next(BatchSource(run.data(digits), run.settings)))
    assert "implicit_cross_entropy" in train_state.metrics
    after = list(train_state.model.generator.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True)) is moved


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_the_implicit_form_shares_the_cross_entropy_with_the_real_labels(quick_run, digits, weight):
    losses = {}
    for share in (0.25, 1.0):
        implicit = ["implicit.enabled=true", f"implicit.real_fraction={share}"]
        run = quick_run(f"run{share}", *SECOND, *implicit, f"training.cross_entropy_weight={weight}")
        train_state = run.new_train_state()
        train_state.step = 12
        train_state.model.train()
        steps.learn_labels(train_state, next(BatchSource(run.data(digits), run.settings)))
        losses[share] = train_state.metrics
    quarter, whole = losses[0.25], losses[1.0]
    assert quarter["cross_entropy"] == whole["cross_entropy"]
    change = weight * 0.75 * (quarter["implicit_cross_entropy"] - quarter["cross_entropy"])
    assert quarter["labels"] - whole["labels"] == pytest.approx(change, rel=1e-4)


def test_real_data_alone_is_untouched_by_what_others_add(quick_run, digits):
    off = [*SECOND, "augmentation.enabled=false", "pseudo_labels.enabled=false"]
    plain, other = quick_run("plain", *off), quick_run("other", *off, "augmentation.pool_size=7")
    fit(plain, digits)
    fit(other, digits)
    assert same(weights(plain), weights(other))
    assert read_figures(plain.path) == []


def test_a_trial_scores_a_copy_and_leaves_the_state_unchanged(quick_run, digits):
    run = quick_run("run", *SECOND, "augmentation.trial_steps=3")
    train_state = at_the_end_of_pretraining(run)
    before = {name: value.clone() for name, value in train_state.model.state_dict().items()}
    streams = {name: rng.get_state() for name, rng in train_state.rngs.items()}
    chosen = choose_extra_data(train_state, run.data(digits), None)
    trial = Trial(train_state, run.data(digits))
    assert trial(chosen) == trial(chosen)
    assert 0 <= trial(chosen) <= 1
    assert same(before, train_state.model.state_dict())
    assert all(torch.equal(state, train_state.rngs[name].get_state()) for name, state in streams.items())


def test_the_ceiling_is_searched_on_validation(quick_run, digits):
    run = quick_run("run", *SECOND, "augmentation.entropy_ceiling=auto", "augmentation.trial_steps=2")
    fit(run, digits)
    figures = read_figures(run.path)[0]
    best = figures["ceilings_tried"][int(np.argmax(figures["validation_at_ceiling"]))]
    assert figures["entropy_ceiling"] == best


def test_choices_are_due_from_the_given_step_on():
    settings = load_settings(
        None, ["training.steps=10", "augmentation.reselect_every=4", "pseudo_labels.enabled=false"]
    )
    assert [step for step in range(20) if is_due(step, settings)] == [10, 14, 18]
    early = load_settings(None, ["augmentation.augment_from_step=3", "augmentation.reselect_every=5"])
    assert [step for step in range(14) if is_due(step, early)] == [3, 8, 13]
    off = load_settings(None, ["augmentation.enabled=false", "pseudo_labels.enabled=false", "training.steps=1"])
    assert not any(is_due(step, off) for step in range(20))


def _timeless(lines):
    rows = [json.loads(line) for line in lines.splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]
