"""The temperature curve: its figures against closed forms, and what a row depends on."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from synthsieve.config import ModelSettings
from synthsieve.entropy import entropy_of_logits
from synthsieve.evaluation import temperature as temperature_room
from synthsieve.evaluation.temperature import temperature_curve
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.randomness import torch_stream
from synthsieve.sampling import langevin

CHAINS = langevin.LangevinSettings(num_steps=20, step_size=0.1)


def small_model(*, pull=3.0):
    """F(z) = pull z: class c lies along axis c, so p(z given c) = N(pull e_c, I)."""
    settings = ModelSettings(
        latent_dim=3,
        encoder="mlp",
        encoder_width=8,
        encoder_depth=1,
        generator="mlp",
        generator_width=8,
        energy_layers=1,
        dropout=0.5,
    )
    model = GenerativeClassifier(settings, (5,), 3, generator=torch_stream(0, "weights"))
    with torch.no_grad():
        model.energy.network.layers[0].weight.copy_(pull * torch.eye(3))
    return model


def test_rows_are_the_figures_of_the_samples():
    model, seen = small_model(), []

    def judge(x):
        seen.append(x)
        return np.arange(len(x)) % 3

    (row,) = temperature_curve(model, [0.5], per_class=200, chains=CHAINS, judge=judge, seed=4)
    y = torch.arange(3).repeat_interleave(200)
    generator = torch_stream(4, "temperature/0")
    start = model.prior.reference_sample(600, generator=generator)
    settings = replace(CHAINS, temperature=0.5)
    with torch.no_grad():
        z = langevin.run(model.prior.conditional(y), start, settings=settings, generator=generator).z
        at_z, at_x = 3.0 * z, model.energy(model.posterior(model.generator(z)).mean)
    assert torch.equal(torch.cat(seen), model.generator(z))
    assert (row.temperature, row.count) == (0.5, 600)
    for place, logits in (("z", at_z), ("x", at_x)):
        entropy = entropy_of_logits(logits.numpy())
        assert getattr(row, f"mean_entropy_{place}") == pytest.approx(entropy.mean(), rel=1e-4)
        assert getattr(row, f"median_entropy_{place}") == pytest.approx(np.median(entropy), rel=1e-4)
        assert getattr(row, f"asked_share_{place}") == (logits.argmax(dim=1) == y).double().mean().item()
    assert row.purity == pytest.approx((np.arange(600) % 3 == y.numpy()).mean())


def test_without_a_pull_every_class_is_as_likely():
    for row in temperature_curve(small_model(pull=0.0), [0.0, 1.0], per_class=10, chains=CHAINS, seed=0):
        entropies = (row.mean_entropy_z, row.median_entropy_z, row.mean_entropy_x, row.median_entropy_x)
        assert entropies == pytest.approx([math.log(3)] * 4)
        assert row.asked_share_z == row.asked_share_x == pytest.approx(1 / 3)  # the first of equals
        assert row.purity is None


def test_here_cold_chains_are_surer_and_their_entropy_is_known():
    """The closer to pull e_c, the lower the entropy: at T = 0 and many steps every z is there."""
    chains = replace(CHAINS, num_steps=200)
    rows = temperature_curve(small_model(), [0.0, 0.25, 1.0, 4.0], per_class=1000, chains=chains, seed=0)
    entropies = [row.mean_entropy_z for row in rows]
    assert entropies == sorted(entropies)
    assert len(set(entropies)) == 4
    assert rows[0].mean_entropy_z == pytest.approx(entropy_of_logits(np.array([[9.0, 0, 0]]))[0], rel=1e-3)
    assert rows[0].asked_share_z == 1.0
    assert rows[0].asked_share_z > rows[-1].asked_share_z


def test_a_row_is_the_same_whatever_else_is_asked_and_the_seed_decides():
    model = small_model()
    model.train()  # dropout must not draw
    global_state = torch.get_rng_state()
    rows = temperature_curve(model, [1.0, 0.2], per_class=400, chains=CHAINS, seed=1)
    assert [row.temperature for row in rows] == [1.0, 0.2]
    assert temperature_curve(model, [0.2], per_class=400, chains=CHAINS, seed=1) == rows[1:]
    assert temperature_curve(model, [0.2], per_class=400, chains=replace(CHAINS, temperature=3), seed=1) == rows[1:]
    assert temperature_curve(model, [0.2], per_class=400, chains=CHAINS, seed=2) != rows[1:]
    assert temperature_curve(model, [], per_class=400, chains=CHAINS, seed=1) == []
    assert torch.equal(global_state, torch.get_rng_state())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_samples_come_in_blocks_each_with_a_stream_of_its_own(monkeypatch):
    monkeypatch.setattr(temperature_room, "BLOCK", 7)
    seen = []

    def judge(x):
        seen.append(x)
        return np.zeros(len(x), dtype=np.int64)

    model = small_model(pull=0.0)  # the class asked for moves nothing: only the stream can tell two blocks apart
    (row,) = temperature_curve(model, [1.0], per_class=5, chains=CHAINS, judge=judge, seed=0)
    assert [len(x) for x in seen] == [7, 7, 1]
    assert not torch.isclose(seen[0], seen[1]).all(dim=1).any()
    assert row.purity == pytest.approx(1 / 3)


def test_what_cannot_be_measured_is_refused():
    model = small_model()
    with pytest.raises(ValueError, match="per_class must be 1 or more; got 0"):
        temperature_curve(model, [1.0], per_class=0, chains=CHAINS, seed=0)
    with pytest.raises(ValueError, match="temperature must be a finite number, 0 or more; got -1"):
        temperature_curve(model, [-1.0], per_class=1, chains=CHAINS, seed=0)
    with pytest.raises(ValueError, match=r"one class index a sample, \(3,\); got shape \(3, 1\)"):
        temperature_curve(
            model, [1.0], per_class=1, chains=CHAINS, judge=lambda x: np.zeros((len(x), 1), dtype=int), seed=0
        )
