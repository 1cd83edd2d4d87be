"""A real GPU gives nearly the same as the CPU: every kind of data, the estimator, runs and selections."""

import numpy as np
import pytest
import torch

import synthsieve
from synthsieve import LatentEBMClassifier
from synthsieve.data.origin import Origin
from synthsieve.io.devices import device_of
from synthsieve.training.history import read
from synthsieve.training.loop import fit
from synthsieve.training.run_dir import RunDirectory
from tests.contracts.test_modalities import CASES, QUICK, settings

pytestmark = pytest.mark.skipif(
    device_of().type == "cpu",
    reason="torch finds no GPU: on a machine with one (CUDA or MPS), run `python -m pytest tests/gpu`",
)
CLOSE = {"rtol": 1e-2, "atol": 1e-2}  # a few steps in float32, whose sums round differently


@pytest.mark.parametrize("kind", CASES)
def test_training_and_drawing(kind, tmp_path, monkeypatch):
    dataset, histories = CASES[kind].dataset(), []
    monkeypatch.setattr(Origin, "load", lambda self, progress=None: dataset)
    for device in (torch.device("cpu"), device_of()):
        run = RunDirectory.create(
            tmp_path / device.type, Origin(dataset.name), settings(dataset), dataset, device=device
        )
        fit(run, dataset, device=device)
        histories.append(read(run.history))
    for here, there in zip(*histories, strict=True):
        assert there == pytest.approx(here, rel=1e-2, abs=1e-2)
    drawn = [synthsieve.sample(run.path, per_class=3, device=name).samples for name in ("cpu", "auto")]
    np.testing.assert_allclose(drawn[1].z, drawn[0].z, **CLOSE)
    measured = [synthsieve.evaluate(run.path, device=name).metrics["log_loss"] for name in ("cpu", "auto")]
    assert measured[1] == pytest.approx(measured[0], rel=1e-2)


@pytest.mark.parametrize("kind", CASES)
def test_estimator(kind, tmp_path):
    case = CASES[kind]
    y = np.where(np.arange(120) < 60, case.dataset().train.y, -1)
    quick = {section: QUICK[section] for section in ("sampling", "augmentation")}
    made = LatentEBMClassifier(max_iter=6, random_state=0, settings=quick, **case.arguments).fit(case.in_memory(), y)
    assert made.device_ == str(device_of())
    assert len(made.sample(3)[1]) == 6
    again = LatentEBMClassifier.load(made.save(tmp_path / "estimator"), device="cpu")
    np.testing.assert_allclose(
        again.predict_proba(case.in_memory()), made.predict_proba(case.in_memory()), rtol=1e-3, atol=1e-3
    )


def test_select_of_tensors_gives_the_same_picks():
    points = np.random.default_rng(0).normal(size=(2_000, 128)).astype(np.float32)
    here = synthsieve.select(embeddings=points)
    there = synthsieve.select(embeddings=torch.from_numpy(points).to(device_of()))
    np.testing.assert_array_equal(there.indices, here.indices)
