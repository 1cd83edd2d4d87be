"""The generator steps after pretraining: what they change, what they leave, and that they can be interrupted."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from synthsieve.errors import NonFiniteLossError
from synthsieve.evaluation.predict import probabilities
from synthsieve.io.progress import NOTHING
from synthsieve.settings import load_settings
from synthsieve.training import finish_generator as finishing
from synthsieve.training import recorder
from synthsieve.training.data import TrainingData
from synthsieve.training.defaults import settings_for
from synthsieve.training.loop import fit, fit_in_memory, seconds_per_step, shortened
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises
from tests.training.conftest import QUICK

TWO_TOWERS = ["model.style_in_energy=false"]
ONE_TOWER = ["model.label_latent_dim=0"]
STEPS = "training.generator_ratio=5"
SECOND = ["augmentation.steps=4", "augmentation.pool_size=100", "augmentation.batch_synthetic=10"]


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def parts_that_differ(one, two):
    return {".".join(name.split(".")[:2]) for name in one if not torch.equal(one[name], two[name])}


def reconstruction(run, dataset):
    """Mean squared error of the test rows, decoded from the means of q."""
    model, x = run.load_model(), run.encoding.encode(dataset.train.x[run.split.test])
    with torch.no_grad():
        z = model.posterior(torch.from_numpy(x)).mean
        return float((model.generator(z) - torch.from_numpy(x)).square().mean())


@pytest.mark.parametrize(
    ("towers", "trained"),
    [
        (TWO_TOWERS, {"encoder.style_tower", "generator.network"}),
        (ONE_TOWER, {"generator.network"}),
        ([], {"generator.network"}),  # F sees the style latents, so the style tower must stay
    ],
)
def test_the_generator_gets_better_and_predictions_stay(quick_run, digits, towers, trained):
    without, run = quick_run("without", *towers), quick_run("with", *towers, STEPS)
    before, after = fit(without, digits), fit(run, digits)
    assert parts_that_differ(weights(without.load_model()), weights(run.load_model())) == trained
    assert reconstruction(run, digits) < 0.9 * reconstruction(without, digits)
    x = digits.train.x[run.split.test]
    p, q = (probabilities(each.load_model(), each.encoding, x) for each in (without, run))
    assert np.array_equal(p, q)
    assert after.best_step == before.best_step
    assert run.load_model_and_step()[1] == after.best_step
    assert run.load_model().calibration == without.load_model().calibration


def test_reconstructions_in_features_are_trained_too(quick_run, digits):
    plain = quick_run("plain", *TWO_TOWERS, STEPS)
    near = quick_run("near", *TWO_TOWERS, STEPS, "training.feature_weight=5")
    for run in (plain, near):
        fit(run, digits)
    assert "generator.network" in parts_that_differ(weights(plain.load_model()), weights(near.load_model()))


class KilledError(Exception):
    pass


def test_killed_at_any_place_and_resumed_it_equals_an_unbroken_one(quick_run, digits, monkeypatch):
    whole = quick_run("whole", *TWO_TOWERS, STEPS)
    fit(whole, digits)
    step, save = finishing.GeneratorTraining.step, recorder.RunRecorder.save_checkpoint
    done = []

    def killed_step(training):
        done.append(1)
        if len(done) == 30:
            raise KilledError
        step(training)

    def killed_save(self, state, position):
        if position.generator_finished:
            raise KilledError
        save(self, state, position)

    for name, target, killed in (
        ("steps", finishing.GeneratorTraining, {"step": killed_step}),
        ("between the files", recorder.RunRecorder, {"save_checkpoint": killed_save}),
    ):
        run = quick_run(name, *TWO_TOWERS, STEPS)
        with monkeypatch.context() as patch:
            for attribute, value in killed.items():
                patch.setattr(target, attribute, value)
            with pytest.raises(KilledError):
                fit(run, digits)
        fit(RunDirectory.open(run.path), digits)
        assert run.best.read_bytes() == whole.best.read_bytes()
        assert run.last.read_bytes() == whole.last.read_bytes()


def test_a_branch_starts_with_the_generator_that_was_trained_on(quick_run, digits):
    whole, base = quick_run("whole", *TWO_TOWERS, STEPS, *SECOND), quick_run("base", *TWO_TOWERS, STEPS)
    branched = quick_run("branch", *TWO_TOWERS, STEPS, *SECOND)
    fit(whole, digits)
    fit(base, digits)
    fit(branched, digits, base=base)
    assert not parts_that_differ(weights(whole.load_model()), weights(branched.load_model()))


def test_a_branch_of_a_training_that_was_stopped_before_goes_on_without(quick_run, digits):
    run = quick_run("run", *TWO_TOWERS, STEPS, *SECOND)
    base = fit_in_memory(run.data(digits), run.settings.pretrained(), stop=iter([*[None] * 12, "time is up"]).__next__)
    assert base.result.stopped_because == "time is up"
    assert not base.recorder.finished
    assert fit_in_memory(run.data(digits), run.settings, base=base).result.steps == 16


class Updates:
    """Progress that remembers."""

    def __init__(self):
        self.given = []

    def update(self, done, total, message="", beside=NOTHING):
        self.given.append((done, total, message, beside))

    def close(self): ...


@pytest.mark.parametrize("more", [[], SECOND])
def test_progress_has_their_time_and_counts_the_steps(quick_run, digits, more):
    seen, run = Updates(), quick_run("run", *TWO_TOWERS, STEPS, *more)
    fit(run, digits, progress=seen)
    steps, training = run.settings.total_steps, run.settings.training
    work = round(finishing.COST * training.generator_steps)
    assert {(total, beside[1]) for _, total, _, beside in seen.given} == {(steps, work)}
    done = [(done, beside[0]) for done, _, _, beside in seen.given]
    assert done == sorted(done)
    assert done[-1] == (steps, work)
    generator = [each for each in seen.given if each[2].startswith("generator")]
    assert len(generator) == training.generator_steps
    assert {each[0] for each in generator} == {training.steps}
    assert generator[-1][2:] == (f"generator {training.generator_steps} of {training.generator_steps}", (work, work))
    again = Updates()
    fit(run, digits, progress=again)
    assert not again.given


def test_progress_of_a_branch_does_not_count_them(quick_run, digits):
    base, seen = quick_run("base", *TWO_TOWERS, STEPS), Updates()
    fit(base, digits)
    branch = quick_run("branch", *TWO_TOWERS, STEPS, *SECOND)
    fit(branch, digits, base=base, progress=seen)
    assert {each[1:4:2] for each in seen.given} == {(branch.settings.total_steps, NOTHING)}


def test_in_memory_it_is_the_same(quick_run, digits):
    run = quick_run("run", *TWO_TOWERS, STEPS)
    fit(run, digits)
    trained = fit_in_memory(run.data(digits), run.settings)
    assert not parts_that_differ(weights(run.load_model()), weights(trained.best_model()))
    assert trained.recorder.finished


def test_a_stop_ends_it_and_the_same_run_can_go_on(quick_run, digits):
    whole, run, calls = quick_run("whole", *TWO_TOWERS, STEPS), quick_run("run", *TWO_TOWERS, STEPS), []
    fit(whole, digits)

    def stop():
        calls.append(1)
        return "time is up" if len(calls) == 40 else None

    assert fit(run, digits, stop=stop).stopped_because == "time is up"
    assert len(calls) == 40
    assert fit(RunDirectory.open(run.path), digits).stopped_because == "all 12 steps were done"
    assert run.best.read_bytes() == whole.best.read_bytes()


@pytest.mark.parametrize("change", ["training.objective=supervised", "training.elbo_weight=0"])
def test_without_a_generator_there_are_no_such_steps(quick_run, digits, monkeypatch, change):
    monkeypatch.setattr(finishing.GeneratorTraining, "step", lambda self: pytest.fail("a generator step"))
    run = quick_run("run", STEPS, change)
    assert fit(run, digits).steps == 12


def test_a_loss_that_is_not_finite_stops_it(quick_run, digits, monkeypatch):
    run = quick_run("run", *TWO_TOWERS, STEPS)
    monkeypatch.setattr(
        "synthsieve.models.generator.GaussianGenerator.noise", lambda *args, **options: pytest.fail("not used")
    )
    real = finishing.finish_generator

    def broken(model, *args, **options):
        with torch.no_grad():
            next(model.generator.parameters()).fill_(float("nan"))
        return real(model, *args, **options)

    monkeypatch.setattr("synthsieve.training.loop.finish_generator", broken)
    with raises(NonFiniteLossError, "non-finite-loss"):
        fit(run, digits)
    assert all(value.isfinite().all() for value in weights(run.load_model()).values())


def test_shorter_training_has_fewer_of_them():
    settings = load_settings("digits-minutes", ["training.steps=1000", "training.generator_ratio=0.5"])
    assert settings.over(100).training.generator_steps == 50
    assert shortened(settings, 0.01).training.generator_steps == 5


def test_their_time_is_planned(digits):
    """By a clock that ticks when it is read, once a step: 300 generator steps are 25 for each of 12 steps."""
    ticks = iter(range(10_000))
    plain = settings_for("digits", digits, overrides=QUICK)
    more = settings_for("digits", digits, overrides=[*QUICK, "training.generator_ratio=25"])
    data = TrainingData.prepare(digits, plain)
    paces = [seconds_per_step(data, each, clock=lambda: float(next(ticks))) for each in (plain, more)]
    assert paces == pytest.approx([1.0, 26.0])


def test_data_smaller_than_a_batch(digits):
    settings = settings_for("digits", digits, overrides=[*QUICK, *TWO_TOWERS, "training.generator_ratio=0.25"])
    data = TrainingData.prepare(digits, settings)
    few = replace(data.split, unlabeled=data.split.unlabeled[:30])
    small = replace(data, split=few)
    model = small.init_state(settings).averaged
    found = finishing.finish_generator(model, small, settings)
    assert parts_that_differ(weights(model), weights(found)) == {"encoder.style_tower", "generator.network"}
