"""Algorithm 1 as it runs: what each update touches, what is kept, and what stops it."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from synthsieve.data.dataset import Dataset, Examples, InputSpec, Kind
from synthsieve.data.origin import Origin
from synthsieve.errors import CheckpointError, ConfigError, NonFiniteLossError
from synthsieve.settings import load_settings
from synthsieve.training import checkpoint, objectives
from synthsieve.training import step as steps
from synthsieve.training.batches import BatchSource
from synthsieve.training.data import TrainingData
from synthsieve.training.defaults import settings_for
from synthsieve.training.loop import fit, fit_in_memory
from synthsieve.training.recorder import prepare_resume
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.state import check_networks, ramp_at, rate_at
from tests.errors import raises


def changed(before, module):
    return [name for name, value in module.state_dict().items() if not torch.equal(before[name], value)]


def copied(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


@pytest.fixture
def ready(quick_run, digits):
    run = quick_run()
    train_state = run.new_train_state()
    train_state.model.train()
    return train_state, next(BatchSource(run.data(digits), run.settings))


def test_each_step_moves_its_own_networks(ready):
    train_state, batch = ready
    model = train_state.model
    before = copied(model)
    q, z_posterior = steps.sample_posterior(train_state, batch.unlabeled_x)
    z_prior = steps.sample_prior(train_state, z_posterior)
    assert changed(before, model) == []
    assert not z_prior.requires_grad

    steps.learn_prior(train_state, z_posterior, z_prior)
    assert {name.split(".")[0] for name in changed(before, model)} == {"energy"}

    before = copied(model)
    steps.learn_inference_and_generator(train_state, batch.unlabeled_x, q, z_posterior)
    assert {".".join(name.split(".")[:2]) for name in changed(before, model)} == {
        "encoder.style_tower",
        "generator.network",
    }

    before = copied(model)
    steps.learn_labels(train_state, batch)
    assert {".".join(name.split(".")[:2]) for name in changed(before, model)} == {
        "encoder.label_tower",
        "energy.network",
    }


def test_the_supervised_baseline_uses_labels_alone(quick_run, digits):
    run = quick_run("supervised", "training.objective=supervised")
    train_state, batch = run.new_train_state(), next(BatchSource(run.data(digits), run.settings))
    before = copied(train_state.model)
    assert len(batch.unlabeled_x) == 0
    steps.take_step(train_state, batch)
    assert {name.split(".")[0] for name in changed(before, train_state.model)} == {"energy", "encoder"}


def test_same_seed_same_bytes_and_another_seed_others(quick_run, digits):
    one, same = quick_run("one"), quick_run("same")
    results = [fit(run, digits) for run in (one, same)]
    assert one.last.read_bytes() == same.last.read_bytes()
    assert one.best.read_bytes() == same.best.read_bytes()
    assert results[0].validation_accuracy == results[1].validation_accuracy
    other = quick_run("other", "seed=1")
    fit(other, digits)
    assert one.split.hash != other.split.hash


def test_history_and_the_best_are_written(quick_run, digits):
    run = quick_run()
    result = fit(run, digits)
    rows = list(csv.DictReader((run.path / "history.csv").open(encoding="utf-8")))
    lines = [json.loads(line) for line in (run.path / "history.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [int(row["step"]) for row in rows] == [5, 10, 12]
    assert [line["step"] for line in lines] == [5, 10, 12]
    best = max(lines, key=lambda row: (row["validation_accuracy"], -row["validation_cross_entropy"]))
    assert result.best_step == best["step"]
    assert result.validation_accuracy == best["validation_accuracy"]
    assert {"cross_entropy", "elbo", "contrast", "roughness", "mutual_information", "label_kl"} <= set(lines[0])


def test_finished_runs_stay_finished(quick_run, digits):
    run = quick_run()
    fit(run, digits)
    before = run.last.read_bytes()
    assert fit(RunDirectory.open(run.path), digits).steps == 12
    assert run.last.read_bytes() == before


def test_a_damaged_checkpoint_costs_the_steps_since_the_one_before_it(quick_run, digits):
    run, unbroken, messages = quick_run(), quick_run("unbroken"), []
    fit(unbroken, digits)
    fit(run, digits, log=messages.append)
    assert not messages
    run.last.write_bytes(run.last.read_bytes()[:-100])
    fit(RunDirectory.open(run.path), digits, log=messages.append)
    (sentence,) = messages
    assert "of step 8" in sentence
    for path in unbroken.path.iterdir():
        if path.name != "run.json":
            assert (run.path / path.name).read_bytes() == path.read_bytes(), path.name
    run.last.unlink()
    fit(RunDirectory.open(run.path), digits, log=messages.append)
    assert run.last.read_bytes() == unbroken.last.read_bytes()
    for path in (run.last, run.previous):
        path.write_bytes(path.read_bytes()[:-1] + b"\x55")
    with raises(CheckpointError, "damaged-file"):
        fit(RunDirectory.open(run.path), digits)


def test_a_non_finite_term_stops_with_its_name_and_keeps_the_checkpoint(quick_run, digits, monkeypatch):
    run = quick_run()
    plain = steps.objectives.elbo
    calls = []

    def spoilt(*arguments):
        calls.append(1)
        parts = plain(*arguments)
        return replace(parts, kl=parts.kl * float("nan")) if len(calls) == 7 else parts

    monkeypatch.setattr(steps.objectives, "elbo", spoilt)
    with raises(NonFiniteLossError, "non-finite-loss", step=7, term="kl"):
        fit(run, digits)
    monkeypatch.undo()
    fit(run, digits)
    unbroken = quick_run("unbroken")
    fit(unbroken, digits)
    assert run.last.read_bytes() == unbroken.last.read_bytes()


def test_without_unlabelled_rows_the_labelled_ones_carry_the_elbo(quick_run, digits, tmp_path):
    from tests.training.conftest import QUICK

    settings = settings_for("digits", overrides=[*QUICK, "data.labels=none"])
    run = RunDirectory.create(tmp_path / "all", Origin("digits"), settings, digits)
    assert len(run.split.unlabeled) == 0
    assert "no unlabelled rows" in run.split.notes[0]
    assert fit(run, digits).steps == 12


def test_rates_rise_then_fall_and_begin_again_in_augmented_training():
    settings = load_settings(None, ["training.steps=1000", "training.warmup=100", "augmentation.steps=200"])
    assert rate_at(0, settings) == pytest.approx(1 / 101)
    assert rate_at(100, settings) == pytest.approx(1.0)
    assert rate_at(550, settings) == pytest.approx(0.525, abs=1e-3)
    assert rate_at(999, settings) == pytest.approx(0.05, abs=1e-3)
    assert rate_at(1000, settings) == pytest.approx(0.5)
    assert rate_at(1100, settings) == pytest.approx(0.5 * 0.525)
    constant = load_settings(None, ["training.steps=1000", 'training.schedule="constant"'])
    assert rate_at(900, constant) == 1.0
    assert [ramp_at(step, 500) for step in (0, 250, 500, 5000)] == [0, 0.5, 1, 1]


def test_a_folder_with_a_run_is_not_written_over(quick_run, digits):
    run = quick_run()
    with raises(ConfigError, "run-exists"):
        RunDirectory.create(run.path, run.origin, run.settings, digits)


def test_averages_follow_the_weights(ready):
    train_state, batch = ready
    steps.take_step(train_state, batch)
    name, now = next(iter(train_state.model.state_dict().items()))
    mean = train_state.averaged.state_dict()[name]
    assert 0 < (mean - now).abs().max() < 0.1


def test_the_elbo_s_weight_slows_its_updates(quick_run, digits):
    def moved(weight):
        run = quick_run(f"weight-{weight}", f"training.elbo_weight={weight}", "training.smoothness_weight=0")
        train_state, batch = run.new_train_state(), next(BatchSource(run.data(digits), run.settings))
        before = copied(train_state.model.generator)
        steps.take_step(train_state, batch)
        after = train_state.model.generator.state_dict()
        return sum((after[name] - before[name]).abs().sum().item() for name in before)

    assert moved(0) == 0
    assert moved(0.1) == pytest.approx(0.1 * moved(1), rel=0.01)


def test_weights_that_are_not_finite_never_reach_a_checkpoint(quick_run, digits):
    run = quick_run()
    train_state = run.new_train_state()
    with torch.no_grad():
        next(train_state.model.parameters()).fill_(float("inf"))
    with raises(NonFiniteLossError, "non-finite-loss"):
        checkpoint.save(run.last, train_state, {})
    assert not run.last.exists()


def test_a_network_that_cannot_be_built_leaves_no_folder(quick_run, digits, tmp_path):
    with raises(ConfigError, "network-kind"):
        quick_run("wrong", "model.encoder=dcgan", "model.label_latent_dim=0")
    assert not (tmp_path / "wrong").exists()


def test_a_split_of_another_run_is_refused(quick_run):
    one, other = quick_run("one"), quick_run("other", "seed=1")
    (one.path / "split.json").write_bytes((other.path / "split.json").read_bytes())
    with raises(CheckpointError, "other-run"):
        RunDirectory.open(one.path)


def test_what_a_killed_process_left_half_written_is_swept_on_resume(quick_run, digits):
    run = quick_run()
    stale = run.path / f".last.safetensors.{2**22 + 1}.partial"  # no process has such a number
    stale.write_bytes(b"half")
    prepare_resume(run)
    assert not stale.exists()


@pytest.mark.parametrize("labeled_in_elbo", ["true", "false"])
def test_what_the_label_tower_saw_serves_both_updates(quick_run, digits, labeled_in_elbo):
    run = quick_run("seen", f"training.labeled_in_elbo={labeled_in_elbo}", "model.dropout=0")
    train_state, batch = run.new_train_state(), next(BatchSource(run.data(digits), run.settings))
    train_state.model.train()
    seen = steps.label_posteriors(train_state, batch)
    x = steps._elbo_examples(train_state, batch)
    again = steps._of_elbo_examples(train_state, batch, seen)
    assert not again.mean.requires_grad
    q, _ = steps.sample_posterior(train_state, x, again)
    assert torch.allclose(q.mean, train_state.model.posterior(x).mean, atol=1e-6)
    assert torch.allclose(q.log_scale, train_state.model.posterior(x).log_scale, atol=1e-6)


def test_moved_x_leave_no_trace_in_the_statistics_of_batch_norm(quick_run, digits):
    image = ["model.label_encoder=residual", "model.label_width=4", "model.norm=batch", "model.dropout=0"]
    means = []
    for weight in (0, 1):
        terms = [f"training.smoothness_weight={weight}", f"training.latent_smoothness_weight={weight}"]
        run = quick_run(f"weight {weight}", *image, *terms)
        train_state, batch = run.new_train_state(), next(BatchSource(run.data(digits), run.settings))
        steps.take_step(train_state, batch)
        means.append([value for name, value in train_state.model.state_dict().items() if "running" in name])
    assert means[0]
    assert all(torch.equal(one, other) for one, other in zip(*means, strict=True))


def test_shifted_images_are_windows_of_the_image_with_repeated_edges():
    x = torch.arange(2 * 5 * 6, dtype=torch.float32).view(1, 2, 5, 6).expand(200, -1, -1, -1)
    moved = steps.shift_images(x, 2, rng=torch.Generator().manual_seed(0))
    wide = torch.nn.functional.pad(x[:1], (2, 2, 2, 2), mode="replicate")[0]
    windows = torch.stack([wide[:, i : i + 5, j : j + 6] for i in range(5) for j in range(5)])
    equal = (moved[:, None] == windows[None]).flatten(2).all(dim=2)
    assert equal.any(dim=1).all()
    assert equal.any(dim=0).all()  # every shift occurs
    assert steps.shift_images(x, 0, rng=torch.Generator()) is x


def test_shifts_move_every_image_of_a_batch_and_the_smoothness_sees_them_moved_again(quick_run, digits):
    run = quick_run("run", "training.shift=1", "training.smoothness_weight=1")
    state, batch = run.new_train_state(), next(BatchSource(run.data(digits), run.settings))
    moved = steps.with_shifts(state, batch)
    assert not torch.equal(moved.labeled_x, batch.labeled_x)
    assert not torch.equal(moved.unlabeled_x, batch.unlabeled_x)
    assert moved.labeled_x.shape == batch.labeled_x.shape
    assert torch.equal(moved.labeled_y, batch.labeled_y)
    calls, x = [], batch.unlabeled_x
    log_p = torch.full((len(x), 10), 0.1).log()

    def classify(x):
        calls.append(x.detach())
        return (x.flatten(1) ** 2)[:, :10]

    settings = {"radius": 1.0, "rng": torch.Generator().manual_seed(0)}
    objectives.roughness(classify, x, log_p, transform=lambda x: x + 5.0, **settings)
    assert float((calls[1] - x).mean()) == pytest.approx(5.0, abs=0.5)
    assert float((calls[0] - x).mean()) == pytest.approx(0.0, abs=0.5)


def test_a_shift_of_what_is_no_image_is_refused():
    spec = InputSpec("vector", (6,))
    with raises(ConfigError, "no-shift"):
        check_networks(load_settings("vector-minutes", ["training.shift=1"]), spec, 3)


def dark_images():
    """White strokes on black, down or across."""
    rng = np.random.default_rng(0)
    x, y = np.full((300, 1, 28, 28), -1, dtype=np.float32), rng.integers(2, size=300)
    for image, label in zip(x, y, strict=True):
        at, length = rng.integers(4, 20), rng.integers(8, 20)
        image[0][(slice(at, at + 3), slice(4, 4 + length))[:: 1 - 2 * int(label)]] = 1
    dataset = Dataset("strokes", Kind.IMAGE, ("down", "across"), train=Examples(x, y))
    small = ["model.label_width=4", "training.steps=60", "training.smoothness_weight=0", "sampling.training_steps=1"]
    settings = load_settings("image-minutes", small)
    return TrainingData.prepare(dataset, settings), settings


def test_training_starts_with_a_generator_at_the_mean_colour():
    data, settings = dark_images()
    trained = fit_in_memory(data, settings, stop=lambda: "one step is done")
    rows = np.concatenate([data.split.labeled, data.split.unlabeled])
    for model in (trained.state.model, trained.state.averaged):
        *_, bias = (layer.bias for layer in model.generator.network.layers if hasattr(layer, "bias"))
        assert bias.mean().tanh().item() == pytest.approx(data.dataset.train.x[rows].mean(), abs=0.01)


def test_a_generator_of_dark_images_uses_its_latents():
    """Without its start at the mean colour it draws the same black image for every z."""
    data, settings = dark_images()
    z = torch.randn(50, settings.model.latent_dim, generator=torch.Generator().manual_seed(1))
    spread = {}
    for start in (True, False):
        state, batches = data.init_state(settings), BatchSource(data, settings)
        if start:
            data.start_generator(state)
        for _ in range(60):
            steps.take_step(state, next(batches))
        with torch.no_grad():
            spread[start] = state.model.generator(z).std(dim=0).max()
    assert spread[True] > 2 * spread[False]
