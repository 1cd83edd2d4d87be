"""Samples around labelled x, soft targets and a new label tower: laws, for every kind of data, and resuming."""

import pytest
import torch

from synthsieve.data.origin import Origin
from synthsieve.errors import ConfigError
from synthsieve.io.random_streams import torch_stream
from synthsieve.settings import load_settings
from synthsieve.training import anchored, objectives
from synthsieve.training import step as steps
from synthsieve.training.batches import BatchSource
from synthsieve.training.defaults import default_preset
from synthsieve.training.loop import fit
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises
from tests.modalities import image, sound, table, text, vector
from tests.training.test_augmented_training import SECOND, same, stop_after, weights

KINDS = {"image": image, "vector": vector, "table": table, "sound": sound, "text": text}
SMALL = [
    "data.labels=20",
    "data.validation_fraction=0",
    "model.latent_dim=8",
    "model.label_latent_dim=3",
    "model.dropout=0.2",
    "training.batch_labeled=6",
    "training.batch_unlabeled=8",
    "augmentation.steps=5",
    "augmentation.batch_synthetic=15",
]
DRAWS = ("labeled", "within-class", "style-swap")


@pytest.fixture(params=KINDS)
def ready(request, tmp_path):
    """A state at the first step of augmented training, and a batch."""

    def make(*more):
        dataset = KINDS[request.param].dataset()
        preset = default_preset("", dataset) or "vector-minutes"
        run = RunDirectory.create(tmp_path / "run", Origin("x"), load_settings(preset, [*SMALL, *more]), dataset)
        train_state = run.new_train_state()
        train_state.step = run.settings.augment_from_step
        return train_state, next(BatchSource(run.data(dataset), run.settings))

    make.kind = request.param
    return make


def draw(train_state, real, n, name="draws"):
    settings, rng = train_state.settings, torch_stream(0, name)
    step_size = settings.sampling.step_size
    return anchored.draw(train_state.averaged, real, n, settings=settings.augmentation, step_size=step_size, rng=rng)


def real_of(batch):
    return batch.labeled_x, batch.labeled_y, batch.unlabeled_x


def test_a_chain_without_steps_gives_back_x_in_the_residual_form(ready):
    more = ["augmentation.draw_from=labeled", "augmentation.residual=true", "augmentation.anchored_steps=0"]
    if ready.kind == "text":  # words cannot be added
        with raises(ConfigError, "no-residual"):
            ready(*more)
        return
    train_state, batch = ready(*more)
    x, y = draw(train_state, real_of(batch), 6)
    assert torch.equal(x, batch.labeled_x)
    assert torch.equal(y, batch.labeled_y)


def test_a_style_swap_with_itself_is_the_reconstruction(ready):
    train_state, batch = ready("augmentation.draw_from=style-swap")
    one, model = batch.labeled_x[:1], train_state.averaged
    x, _ = draw(train_state, (one, batch.labeled_y[:1], one), 1)
    expected = anchored._decode(model.generator, model.posterior(one).mean, _after_uniform())
    assert torch.equal(x, expected)
    if not model.generator.always_draws:
        assert torch.equal(x, model.generator(model.posterior(one).mean))


def _after_uniform():
    """The stream of `draw` where its samples are decoded: one number chose the other x."""
    rng = torch_stream(0, "draws")
    anchored._uniform(1, rng)
    return rng


@pytest.mark.parametrize("draw_from", DRAWS)
def test_draws_have_the_labels_in_turn_and_depend_on_the_stream_alone(ready, draw_from):
    train_state, batch = ready(f"augmentation.draw_from={draw_from}", "augmentation.temperature=1")
    x, y = draw(train_state, real_of(batch), 15)
    assert x.shape == (15, *batch.labeled_x.shape[1:])
    assert x.dtype == batch.labeled_x.dtype
    assert torch.equal(y, batch.labeled_y.repeat(3)[:15])
    assert torch.equal(x, draw(train_state, real_of(batch), 15)[0])
    assert not x.requires_grad


def test_partners_are_of_the_same_class_and_all_of_them_come():
    y = torch.tensor([0, 1, 0, 2, 1, 0])
    found = torch.stack([anchored._partners(y, torch_stream(seed, "partners")) for seed in range(100)])
    assert (y[found] == y).all()
    assert set(found[:, 0].tolist()) == {0, 2, 5}
    assert set(found[:, 3].tolist()) == {3}


@pytest.mark.parametrize("draw_from", DRAWS)
def test_soft_targets_are_what_the_averaged_weights_predict(ready, draw_from):
    train_state, batch = ready(f"augmentation.draw_from={draw_from}", "augmentation.targets=soft")
    train_state.model.train()
    x, soft, sample_weights = steps.with_synthetic(train_state, batch).synthetic
    assert torch.equal(soft, train_state.averaged.predict_proba(x))
    assert sample_weights.tolist() == [1.0] * 15
    before = train_state.model.energy.network.state_dict()
    before = {name: value.clone() for name, value in before.items()}
    steps.take_step(train_state, batch)
    assert "synthetic_cross_entropy" in train_state.metrics
    assert not same(before, train_state.model.energy.network.state_dict())


def test_certain_soft_targets_are_hard_ones():
    logits, y = torch.randn(5, 3, generator=torch_stream(0, "logits")), torch.tensor([0, 2, 1, 1, 0])
    sample_weights = torch.rand(5, generator=torch_stream(0, "weights"))
    one_hot = torch.nn.functional.one_hot(y, 3).float()
    soft, hard = (objectives.cross_entropy(logits, target, sample_weights) for target in (one_hot, y))
    torch.testing.assert_close(soft, hard)


def test_nothing_is_drawn_before_augmented_training_or_without_it(quick_run, digits):
    drawing = [*SECOND, "augmentation.draw_from=labeled", "pseudo_labels.enabled=false"]
    for more, step in ((drawing, 11), ([*drawing, "augmentation.enabled=false"], 12)):
        run = quick_run(f"run-{step}", *more)
        train_state = run.new_train_state()
        train_state.step = step
        batch = next(BatchSource(run.data(digits), run.settings))
        assert steps.with_synthetic(train_state, batch) is batch


@pytest.mark.parametrize("towers", [1, 2])
def test_a_new_label_tower(quick_run, towers):
    more = [] if towers == 2 else ["model.label_latent_dim=0"]
    runs = [quick_run(f"run-{number}", *SECOND, *more, "augmentation.reinitialise=true") for number in range(2)]
    states = [run.new_train_state() for run in runs]
    before = {name: value.clone() for name, value in states[0].model.state_dict().items()}
    for train_state in states:
        train_state.step = 12
        train_state.reinitialise()
    after = states[0].model.state_dict()
    assert same(after, states[1].model.state_dict())
    assert same(after, states[0].averaged.state_dict())
    changed = {".".join(name.split(".")[:2]) for name in before if not torch.equal(before[name], after[name])}
    tower = "encoder.label_tower" if towers == 2 else "encoder.style_tower"
    assert changed == {"energy.network", tower}
    assert [len(optimiser.state) for optimiser in states[0].optimisers.values()] == [0, 0, 0]
    assert states[0].label_steps == 0


@pytest.mark.parametrize(
    "more",
    [
        ["augmentation.draw_from=labeled", "augmentation.residual=true", "augmentation.targets=soft"],
        ["augmentation.draw_from=within-class"],
        ["augmentation.draw_from=style-swap"],
        ["augmentation.reinitialise=true", "augmentation.targets=soft"],
    ],
    ids=["anchored", "within-class", "style-swap", "born-again"],
)
def test_a_resumed_run_equals_an_unbroken_one(quick_run, digits, monkeypatch, more):
    whole, broken, base = quick_run("whole", *SECOND, *more), quick_run("broken", *SECOND, *more), quick_run("base")
    fit(whole, digits)
    fit(base, digits)
    stop_after(broken, digits, 17, monkeypatch)
    fit(RunDirectory.open(broken.path), digits)
    branched = quick_run("branched", *SECOND, *more)
    fit(branched, digits, base=base)
    assert same(weights(whole), weights(broken))
    assert same(weights(whole), weights(branched))


def test_what_does_not_fit_is_refused(quick_run):
    with raises(ConfigError, "one-tower"):
        quick_run("run", *SECOND, "augmentation.draw_from=style-swap", "model.label_latent_dim=0").new_train_state()
    with raises(ConfigError, "bad-setting"):
        load_settings(None, ["augmentation.draw_from=labeled", "augmentation.reinitialise=true"])
