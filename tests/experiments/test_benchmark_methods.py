"""The contract of every method of the benchmark."""

import inspect

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs, make_moons

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, InputSpec, Kind
from synthsieve.errors import ConfigError
from synthsieve.experiments.baselines import trainer
from synthsieve.experiments.baselines.methods.bad_gan import pull_away
from synthsieve.experiments.baselines.protocol import TRIALS, BenchmarkTask, Classifier
from synthsieve.experiments.baselines.registry import METHODS, OURS, chosen_methods
from synthsieve.experiments.baselines.trainer import answers_on, budget_of, count_operations, train
from synthsieve.experiments.baselines.views import masked, mixed, noisy
from synthsieve.settings import Metric, load_settings
from synthsieve.training.batches import BatchSource
from synthsieve.training.data import TrainingData
from synthsieve.training.defaults import default_preset
from tests.modalities import image, sound, table, text

SMALL_SETTINGS = [
    *("model.encoder_width=32", "model.generator_width=16", "model.energy_width=16", "model.latent_dim=4"),
    *("training.batch_labeled=16", "training.batch_unlabeled=64", "training.smoothness_radius=0.3"),
    *("training.steps=30", "training.label_learning_rate=5e-3", "training.ema_decay=0.98"),
    *("sampling.training_steps=2", "sampling.num_steps=3", "comparison.pool_sizes=[40]"),
]
# Methods whose publication shows or claims a gain from unlabelled data on such a problem.
LEARN_MOONS = ("vat", "flow-gmm", "mean-teacher", "bad-gan", pytest.param("ours", marks=pytest.mark.slow))
# The variants of ours share their code: two of them are enough for every day.
OFTEN = [
    pytest.param(name, marks=pytest.mark.slow) if name in ("ours-entropy", "ours-craig", "ours-pseudo-labels") else name
    for name in METHODS
]
SLOW_TO_LEARN = {"vae-m1m2": 300}  # steps


def task_of(x, y, labeled, *, seed=0, overrides=(), kind=Kind.VECTOR, preset="vector-minutes", validation=50):
    """The first 200 rows measure, the next `validation` choose, others train; `labeled` of each class have labels."""
    x, visible = x.astype(np.float32), np.full(len(y), UNLABELED)
    for label in range(int(y.max()) + 1):
        rows = 250 + np.flatnonzero(y[250:] == label)[:labeled]
        visible[rows] = label
    parts = {"train": slice(250, None), "validation": slice(200, 200 + validation), "test": slice(0, 200)}
    labels = {"train": visible, "validation": y, "test": y}
    sets = {part: Examples(x[rows], labels[part][rows].astype(np.int64)) for part, rows in parts.items()}
    if not validation:
        sets["validation"], overrides = None, [*overrides, "data.validation_fraction=0"]
    dataset = Dataset("toy", kind, tuple("abc"[: int(y.max()) + 1]), **sets)
    settings = load_settings(
        preset, [*SMALL_SETTINGS, *overrides], {"seed": seed, "comparison": {"metric": "accuracy"}}
    )
    return BenchmarkTask(TrainingData.prepare(dataset, settings), settings)


def blobs(seed=0):
    return task_of(*make_blobs(550, 4, centers=3, cluster_std=1.0, random_state=1), 5, seed=seed)


def moons():
    return task_of(*make_moons(850, noise=0.06, random_state=3), 3, overrides=["model.encoder_width=64"])


def trained(name, task, steps):
    """A method after some steps, whatever they cost."""
    method, source = METHODS[name](task, **METHODS[name].grid[0]), BatchSource(task.data, task.settings)
    for step in range(steps):
        method.done = step / steps
        method.advance(next(source))
    return method


def accuracy(method, task):
    return answers_on(method, task, "test").right.mean()


@pytest.mark.parametrize("name", OFTEN)
def test_learns_separable_classes(name):
    task = blobs()
    # Those of ours are in its settings.
    steps = 30 if name.startswith(("ours", "dapper")) else SLOW_TO_LEARN.get(name, 120)
    assert accuracy(trained(name, task, steps), task) > 0.95


@pytest.mark.parametrize("name", LEARN_MOONS)
def test_unlabeled_rows_help_on_two_moons(name):
    task = moons()
    steps = 400
    if name == "ours":
        task = BenchmarkTask(task.data, task.settings, share=steps / task.settings.training.steps)
    assert accuracy(trained(name, task, steps), task) > accuracy(trained("supervised", task, steps), task) + 0.02


@pytest.mark.parametrize("name", ["vat", "fixmatch", "mean-teacher", "mixmatch", "pi-model"])
def test_colour_images_that_the_encoder_sees_in_grey(name):
    x = np.random.default_rng(0).uniform(-1, 1, (400, 3, 8, 8))
    view = ["model.view=grey-contrast", "model.label_latent_dim=2", "model.label_width=4", "model.encoder_width=4"]
    task = task_of(x, np.arange(400) % 2, 5, overrides=view, kind=Kind.IMAGE, preset="image-minutes")
    found = answers_on(trained(name, task, 2), task, "test").probabilities
    assert np.allclose(found.sum(axis=1), 1, atol=1e-5)


def cost_of(name, task):
    return count_operations(lambda: trained(name, task, 1))


class Killed(Exception):
    pass


@pytest.mark.parametrize("name", OFTEN)
def test_killed_and_resumed_ends_the_same(name, tmp_path):
    task, path = blobs(), tmp_path / "checkpoint.safetensors"
    task = BenchmarkTask(task.data, task.settings, share=0.3)  # of ours, 6 steps before samples and 3 with them
    budget = 2 * budget_of(task) if name.startswith(("ours", "dapper")) else 12 * cost_of(name, task)

    def make():
        return METHODS[name](task, **METHODS[name].grid[1])

    def kill(percent):
        if percent > 60 and path.is_file():
            raise Killed

    whole = train(make(), task, budget, metric=Metric.ACCURACY)
    with pytest.raises(Killed):
        train(make(), task, budget, metric=Metric.ACCURACY, checkpoint=path, report=kill)
    resumed = train(make(), task, budget, metric=Metric.ACCURACY, checkpoint=path)
    assert resumed.spent == whole.spent >= budget
    assert resumed.history == whole.history
    for part in ("validation", "test"):
        np.testing.assert_array_equal(resumed.answers[part].probabilities, whole.answers[part].probabilities)


@pytest.mark.parametrize("name", METHODS)
def test_is_small_cites_and_has_the_same_number_of_trials(name):
    method = METHODS[name]
    assert len(inspect.getsource(inspect.getmodule(method)).splitlines()) < 150
    assert method.cites
    assert inspect.getdoc(method)
    assert len(method.grid) == TRIALS
    assert len({tuple(parameters.items()) for parameters in method.grid}) == TRIALS


def test_a_checkpoint_of_other_settings_is_not_continued(tmp_path):
    task, path = blobs(), tmp_path / "checkpoint.safetensors"
    budget = 5 * cost_of("supervised", task)
    method = METHODS["supervised"](task, rate=1.0)
    train(method, task, budget, metric=Metric.ACCURACY, checkpoint=path, identity={"rate": 1})
    other = METHODS["supervised"](task, rate=3.0)
    train(other, task, budget, metric=Metric.ACCURACY, checkpoint=path, identity={"rate": 3})
    assert other.steps == 5


def test_every_method_spends_the_budget_of_ours():
    task = blobs()
    budget = budget_of(task)
    ours = METHODS[OURS](task, **METHODS[OURS].grid[0])
    assert train(ours, task, budget, metric=Metric.ACCURACY).spent == budget
    assert ours.steps == task.settings.training.steps
    for name in ("supervised", "vat", "jem"):
        done = train(METHODS[name](task, **METHODS[name].grid[0]), task, budget, metric=Metric.ACCURACY)
        assert budget <= done.spent < budget + max(done.costs.values())


def test_operations_of_a_pass():
    """Two operations for each weight and row forward; twice that backward, once where x needs no gradient."""
    weight = torch.randn(5, 7, requires_grad=True)
    x = torch.randn(3, 5)
    forward = 2 * 3 * 5 * 7
    assert count_operations(lambda: (x @ weight).sum()) == forward
    assert count_operations(lambda: (x @ weight).sum().backward()) == 2 * forward
    x.requires_grad_()
    assert count_operations(lambda: (x @ weight).sum().backward()) == 3 * forward
    assert count_operations(lambda: torch.zeros(3, 7).addmm_(x.detach(), weight.detach())) == forward


def test_an_infinite_loss_keeps_the_best_answers_before(monkeypatch):
    task = blobs()
    budget = 40 * cost_of("supervised", task)
    method = METHODS["supervised"](task, rate=1.0)
    cross_entropy = method.cross_entropy
    monkeypatch.setattr(
        method, "cross_entropy", lambda *given: cross_entropy(*given) * (np.inf if method.steps > 20 else 1)
    )
    done = train(method, task, budget, metric=Metric.ACCURACY)
    assert "inf" in done.diverged
    assert 1 <= len(done.history) < trainer.EVALUATIONS
    assert done.answers["validation"].score(Metric.ACCURACY) == max(row["validation"] for row in done.history)
    assert len(done.answers["test"].y) == 200


def test_without_validation_rows_the_last_weights_count():
    task = task_of(*make_blobs(550, 4, centers=3, random_state=1), 5, validation=0)
    method, budget = METHODS["supervised"](task, rate=1.0), 40 * cost_of("supervised", task)
    done = train(method, task, budget, metric=Metric.ACCURACY, test=False)
    assert set(done.answers) == {"test"}
    np.testing.assert_array_equal(done.answers["test"].probabilities, answers_on(method, task, "test").probabilities)
    evaluations = trainer.evaluations_within(budget, method, task)
    assert [set(row) for row in done.history] == [{"spent", "test"}] * evaluations


def test_evaluations_leave_most_compute_to_training():
    task = blobs()
    method = METHODS["supervised"](task, rate=1.0)
    count = lambda budget: trainer.evaluations_within(budget, method, task)  # noqa: E731
    assert count(10**12) == trainer.EVALUATIONS
    assert count(1) == trainer.FEWEST_EVALUATIONS
    one = count_operations(lambda: method.predict_logits(torch.zeros(trainer.BLOCK, 4))) * 50 / trainer.BLOCK
    assert count(round(40 * one)) == round(40 * trainer.EVALUATION_SHARE)


def test_every_classifier_has_the_network_of_ours():
    task = blobs()
    ours, other = METHODS[OURS](task, **METHODS[OURS].grid[0]), METHODS["vat"](task, **METHODS["vat"].grid[0])
    assert isinstance(other.network, Classifier)
    shapes = [
        [weight.shape for weight in (*m.encoder.parameters(), *m.energy.parameters())]
        for m in (ours.model, other.network)
    ]
    assert shapes[0] == shapes[1]


def test_methods_that_generate_x_refuse_words_and_categories():
    image, text = InputSpec("image", (1, 8, 8)), InputSpec("text", (20,))
    refusing = {name for name, method in METHODS.items() if method.refuses(text)}
    assert refusing == {"jem", "flow-gmm", "triple-gan", "bad-gan"}
    assert not any(method.refuses(image) for method in METHODS.values())


@pytest.mark.parametrize("modality", [image, sound, table, text])
def test_every_method_takes_every_kind_of_data_that_it_does_not_refuse(modality):
    dataset = modality.dataset()
    small = [setting for setting in SMALL_SETTINGS if not setting.startswith(("model.latent", "training.smoothness"))]
    small += ["model.label_width=8", "data.labels=20", "data.validation=extra"]
    settings = load_settings(default_preset("", dataset), small)
    task = BenchmarkTask(TrainingData.prepare(dataset, settings), settings)
    for name, method in METHODS.items():
        if name != "ours-craig" and method.refuses(task.input_spec) is None:
            trained_method = trained(name, task, 2)
            trained_method.done = 0.9  # the second phase of methods that have two
            trained_method.advance(next(BatchSource(task.data, task.settings)))
            assert np.isfinite(answers_on(trained_method, task, "test").probabilities).all(), name


def test_labeled_rows_stand_for_unlabeled_ones():
    x, y = make_blobs(550, 4, centers=3, random_state=1)
    task = task_of(x, y, len(y))
    assert not len(task.data.split.unlabeled)
    for name in ("vat", "flow-gmm", OURS):
        assert accuracy(trained(name, task, 30), task) > 0.8, name


def test_chosen_methods():
    assert chosen_methods(["mean-teacher", " VAT "]) == ["mean-teacher", "vat", "ours"]
    assert set(METHODS) < set(chosen_methods(None))
    for wrong in (["vatt"], [], [""]):
        with pytest.raises(ConfigError) as error:
            chosen_methods(wrong)
        assert error.value.code == "unknown-method"
        assert "mean-teacher" in str(error.value)


def test_views():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(500, 6)
    change = noisy(x, rng=rng, scale=0.5) - x
    assert abs(float(change.std()) - 0.5 * float(x.std())) < 0.02  # 3,000 numbers: the standard error is 0.007
    swapped = masked(x, rng=rng, share=0.5)
    assert 0.4 < float((swapped != x).float().mean()) < 0.6
    assert torch.isin(swapped, x).all()
    images = torch.randn(8, 3, 4, 4)
    changed = masked(images, rng=rng, share=0.5) != images
    assert (changed.all(dim=1) == changed.any(dim=1)).all()  # whole pixels
    both, targets = mixed(x[:, :3], x[:, :3], alpha=0.75, rng=rng)
    torch.testing.assert_close(both, targets)
    assert float((both - x[:, :3]).norm()) < float((x[:, :3]).norm())


def test_pull_away_of_equal_and_of_orthogonal_rows():
    assert float(pull_away(torch.ones(4, 3))) == pytest.approx(1)
    assert float(pull_away(torch.eye(4))) == pytest.approx(0)
