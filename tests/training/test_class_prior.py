"""Class shares by the labels, the prior that predictions assume, and a rare class in filter and pseudo-labels."""

import numpy as np
import pytest
import torch

from synthsieve import LatentEBMClassifier
from synthsieve.api.source import read_source
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.errors import ConfigError, InputError
from synthsieve.evaluation.predict import probabilities
from synthsieve.io.progress import NullProgress
from synthsieve.models.chains import DrawSettings
from synthsieve.models.generate import chain_seeds, draw_latents
from synthsieve.settings import AugmentationSettings, PseudoLabelSettings, SamplingSettings, Settings, load_settings
from synthsieve.training.augment import augment, filter_pool
from synthsieve.training.data import TrainingData, class_shares, prior_of
from synthsieve.training.extra_data import choose_pseudo_labels
from tests.errors import raises
from tests.training.test_augment import ENCODING, SAMPLING, model

SHARES = np.array([0.8, 0.2])


def test_labels_of_unequal_numbers_give_smoothed_shares():
    assert class_shares(np.array([0] * 16 + [1] * 4), 2).tolist() == pytest.approx([17 / 22, 5 / 22])
    assert class_shares(np.array([0] * 6 + [1] * 6), 3).tolist() == pytest.approx([7 / 15, 7 / 15, 1 / 15])


@pytest.mark.parametrize("y", [[0, 1, 2], [0, 0, 1, 2], [0, 0, 0, 0, 1, 1, 2]])
def test_labels_that_may_come_from_equal_classes_give_none(y):
    assert class_shares(np.array(y), 3) is None


def of(prior, metric="accuracy") -> Settings:
    return load_settings(base={"training": {"class_prior": prior, "keep_metric": metric}})


def test_the_prior_by_name():
    assert prior_of(of("auto"), SHARES, 2) is SHARES
    assert prior_of(of("auto", "balanced-accuracy"), SHARES, 2).tolist() == [0.5, 0.5]
    assert prior_of(of("labels", "balanced-accuracy"), SHARES, 2) is SHARES
    assert prior_of(of("uniform"), SHARES, 2).tolist() == [0.5, 0.5]
    assert prior_of(of("model"), SHARES, 2) is None
    assert prior_of(of([1, 3]), SHARES, 2).tolist() == [0.25, 0.75]
    assert prior_of(of("uniform"), None, 2) is None  # the labels are balanced: nothing to move
    with raises(ConfigError, "bad-class-prior"):
        prior_of(of([1, 3]), SHARES, 3)
    for wrong in ([1.0], [0.5, -0.5], "frequent"):
        with raises(ConfigError, "bad-setting"):
            of(wrong)


@pytest.mark.parametrize(
    ("given", "stored"), [("uniform", "uniform"), ("1,3,2", (1.0, 3.0, 2.0)), ([1, 2], (1.0, 2.0))]
)
def test_the_prior_as_an_option(given, stored, tmp_path):
    _, _, settings = read_source(
        "digits", tmp_path, {"training": {"steps": 7}}, progress=NullProgress(), class_prior=given
    )
    assert (settings.training.class_prior, settings.training.steps) == (stored, 7)


def unbalanced(seed=0, positives=10) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes, 1 to 12, and unlabelled rows in the same proportion."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 0, 1], [120, positives, 360, 3 * positives])
    x = rng.standard_normal((len(y), 5)) + 1.2 * y[:, None]
    return x, np.where(np.arange(len(y)) < 120 + positives, y, -1)


def fitted(prior, x, y) -> LatentEBMClassifier:
    return LatentEBMClassifier(class_prior=prior, max_iter=40, random_state=0, validation_fraction=0.0).fit(x, y)


@pytest.fixture(scope="module")
def by_prior():
    x, y = unbalanced()
    return {name: fitted(name, x, y) for name in ("model", "labels", "uniform", "auto")}


def test_predictions_are_made_under_the_prior(by_prior):
    x, y = unbalanced()
    mean = {name: each.predict_proba(x[y == -1])[:, 1].mean() for name, each in by_prior.items()}
    share = 11 / 132
    assert mean["labels"] == pytest.approx(share, abs=2.1 * np.sqrt(share * (1 - share) / 130))  # two standard errors
    assert mean["uniform"] > 2 * share
    assert mean["auto"] == mean["uniform"]  # more than twice as many labels of one class
    assert by_prior["model"].model_.calibration.offsets == ()
    assert by_prior["labels"].model_.calibration.class_prior == pytest.approx([1 - share, share])
    # Only the odds between classes move, by one factor for all rows.
    odds = {name: np.log(each.predict_proba(x)) @ [-1, 1] for name, each in by_prior.items()}
    np.testing.assert_allclose(odds["uniform"] - odds["labels"], np.log((1 - share) / share), atol=1e-6)
    recall = {name: (each.predict(x[:130]) == 1)[y[:130] == 1].mean() for name, each in by_prior.items()}
    assert recall["uniform"] > recall["model"]


def test_the_prior_is_saved_with_the_estimator(by_prior, tmp_path):
    x, _ = unbalanced()
    again = LatentEBMClassifier.load(by_prior["uniform"].save(tmp_path / "m.safetensors"))
    assert np.array_equal(again.predict_proba(x), by_prior["uniform"].predict_proba(x))
    assert again.class_prior == "uniform"


def test_shares_may_be_given():
    x, y = unbalanced()
    given = fitted(np.array([0.5, 0.5]), x, y)
    assert given.model_.calibration.class_prior == (0.5, 0.5)
    with raises(InputError, "bad-class-prior"):
        fitted([0.2, 0.3, 0.5], x, y)


def test_a_rare_class_can_be_requested():
    """Most latents drawn for it are of it, among equally frequent classes."""

    estimator = fitted("uniform", *unbalanced())
    estimator.fit_reference()
    reference = estimator.model_.reference
    assert reference.mixture.log_shares.exp().tolist() == pytest.approx([0.5, 0.5])
    assert float(reference.class_offsets[1]) > float(reference.class_offsets[0])
    y = np.ones(200, dtype=np.int64)
    chains = DrawSettings.of(estimator.settings_.sampling)
    z = torch.from_numpy(draw_latents(estimator.model_, y, chain_seeds(0, y), chains=chains))
    logits = estimator.model_.energy.class_logits(z) + reference.class_offsets
    assert float((logits.argmax(dim=1) == 1).float().mean()) > 0.8


def test_cross_fitting_gives_a_temperature(by_prior):
    x, y = unbalanced()
    model = fitted("uniform", x, y)
    before = model.predict_proba(x)
    assert (model.calibration_.source, model.calibration_.temperature) == ("none", 1.0)
    assert model.calibrate(cv=2) is model
    assert (model.calibration_.source, model.calibration_.rows) == ("cross-fitting", 130)
    assert not np.array_equal(model.predict_proba(x), before)
    assert model.calibration_.class_prior == (0.5, 0.5)
    with raises(InputError, "too-few-labels"):
        model.calibrate(cv=1)


def test_a_class_is_not_rejected_for_being_rare():
    """Logits of a class that is never the most probable one; its own evidence decides after the offsets."""
    chosen = AugmentationSettings(pool_size=300, keep_fraction=None, coreset="everything")
    made = model()
    with torch.no_grad():
        made.energy.network.linears()[-1].bias += torch.tensor([0.0, 0.0, -500.0])
    options = {"settings": chosen, "sampling": SamplingSettings(num_steps=5), "seed": 0}
    before, _ = augment(made, ENCODING, **options)
    assert before.kept[before.y == 2].sum() == 0
    offsets = np.array([0.0, 0.0, 500.0])
    after, _ = augment(made, ENCODING, **options, class_offsets=offsets)
    plain, _ = augment(model(), ENCODING, settings=chosen, sampling=SAMPLING, seed=0)
    assert after.kept[after.y == 2].sum() == plain.kept[plain.y == 2].sum() > 0
    np.testing.assert_allclose(after.entropy[after.y == 2], plain.entropy[plain.y == 2], rtol=1e-3)
    assert np.array_equal(filter_pool(after, chosen, ceiling=None).kept, after.kept)


def test_pseudo_labels_follow_the_shares_of_the_labels():
    x, y = unbalanced()
    dataset = Dataset("made", Kind.VECTOR, ("a", "b"), Examples(x.astype(np.float32), y))
    settings = load_settings("vector-minutes", base={"data": {"test_fraction": 0, "validation_fraction": 0}})
    data = TrainingData.prepare(dataset, settings)
    made = data.init_state(settings).averaged
    with torch.no_grad():
        made.energy.network.linears()[-1].bias += torch.tensor([5.5, 0.0])
    chosen = PseudoLabelSettings(keep_fraction=1.0)
    assert choose_pseudo_labels(made, data, chosen).y.sum() == 0
    found = data.offsets(made, settings)
    shares, offsets = found.shares, found.to_labels
    p = probabilities(made, data.encoding, x[y == -1].astype(np.float32))
    moved = np.log(p) + offsets
    mean = np.exp(moved - np.logaddexp.reduce(moved, axis=1)[:, None]).mean(axis=0)
    np.testing.assert_allclose(mean, shares, atol=0.02)
    assert np.array_equal(choose_pseudo_labels(made, data, chosen, offsets).y, moved.argmax(axis=1))
    with torch.no_grad():
        made.energy.network.linears()[-1].bias -= torch.tensor([1.5, 0.0])  # a mean that the labels do not contradict
    assert not data.offsets(made, settings).to_labels.any()
