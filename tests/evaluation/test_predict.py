"""Predictions: one answer for one model, whatever examples are predicted together and whoever asks."""

import numpy as np
import pytest
import torch

import synthsieve
from synthsieve.api.evaluate import evaluate
from synthsieve.data.origin import Origin
from synthsieve.errors import DataError
from synthsieve.evaluation import predict
from synthsieve.evaluation.metrics import measure
from synthsieve.evaluation.predict import part_of, score_part
from synthsieve.training.defaults import settings_for
from synthsieve.training.loop import fit
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises
from tests.training.conftest import QUICK


@pytest.fixture(scope="module", params=["mean", "draw"])
def run(request, tmp_path_factory):
    settings = settings_for("digits", overrides=[*QUICK, "training.steps=2", f"model.classify={request.param}"])
    digits = Origin("digits").load()
    made = RunDirectory.create(tmp_path_factory.mktemp("run") / "run", Origin("digits"), settings.pretrained(), digits)
    fit(made, digits)
    return made


@pytest.fixture(scope="module")
def digits():
    return Origin("digits").load()


def test_a_prediction_does_not_depend_on_the_other_rows(run, digits):
    model, x = run.load_model(), digits.train.x[:250]
    whole = predict.probabilities(model, run.encoding, x)
    assert whole.shape == (250, 10)
    np.testing.assert_allclose(whole.sum(axis=1), 1.0, rtol=0, atol=1e-15 * 10)
    for rows in ([249], [7, 120, 3], np.arange(99, 201)):
        assert np.array_equal(predict.probabilities(model, run.encoding, x[rows]), whole[rows])


def test_evaluate_and_predict_proba_agree(run, digits):
    x, y = part_of(digits, run.split, "test")
    estimator = synthsieve.load(run.path)
    answers = estimator.predict_proba(x)
    assert np.array_equal(answers, predict.probabilities(run.load_model(), run.encoding, x))
    before = predict.probabilities(run.load_model(), run.encoding, x, calibrated=False)
    assert evaluate(run.path).metrics == measure(y, answers, before).as_dict()
    scores = score_part(run.load_model(), run.encoding, digits, run.split, "test")
    assert scores.accuracy == (answers.argmax(axis=1) == y).mean()


def test_latents_and_logits_are_those_at_the_mean(run, digits):
    model, x = run.load_model(), digits.train.x[:120]
    z, logits = predict.latents_and_logits(model, run.encoding, x)
    with torch.no_grad():
        mean = model.posterior(torch.from_numpy(run.encoding.encode(x))).mean
    np.testing.assert_allclose(z, mean.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(logits, model.energy.class_logits(mean).detach().numpy(), rtol=1e-4, atol=1e-4)
    assert np.array_equal(predict.latents(model, run.encoding, x), z.astype(np.float64))
    assert predict.latents(model, run.encoding, x[:0]).shape == (0, z.shape[1])


def test_rows_that_cannot_be_predicted_are_named(run, digits):
    model, x = run.load_model(), digits.train.x[:150].copy()
    x[129] = 255  # network input 1 everywhere

    def answer(batch):
        mean = batch.flatten(1).mean(dim=1, keepdim=True)
        return torch.where(mean > 0.99, torch.nan, mean)

    with raises(DataError, "non-finite-prediction") as caught:
        predict.predict_rows(answer, model, run.encoding, x, 1, check=True)
    assert "row 129 " in str(caught.value)
    assert np.isnan(predict.predict_rows(answer, model, run.encoding, x, 1)).sum() == 1
    with raises(DataError, "example-shape"):
        predict.probabilities(model, WrongShape(), x)


class WrongShape:
    """An encoding of other data."""

    def encode(self, x):
        return np.zeros((len(x), 1, 3, 3), dtype=np.float32)
