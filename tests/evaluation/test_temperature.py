"""The temperature curve: its figures against closed forms, and what a row depends on."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from synthsieve.data.modalities.encoding import VectorEncoding
from synthsieve.evaluation.predict import latents_and_logits
from synthsieve.evaluation.temperature import temperature_curve
from synthsieve.io.random_streams import derive_seed, torch_stream
from synthsieve.models import generate
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.sampling import langevin
from synthsieve.selection.entropy import entropy_of_logits
from synthsieve.settings import ModelSettings

ENCODING = VectorEncoding(np.zeros(5), np.ones(5))
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
    model = GenerativeClassifier(settings, (5,), 3, rng=torch_stream(0, "weights"))
    with torch.no_grad():
        model.energy.network.layers[0].weight.copy_(pull * torch.eye(3))
    return model


def curve(model, temperatures, **options):
    return temperature_curve(
        model, ENCODING, temperatures, **{"per_class": 400, "chains": CHAINS, "seed": 1, **options}
    )


def test_rows_describe_the_samples():
    model, seen = small_model(), []

    def oracle(x):
        seen.append(x)
        return np.arange(len(x)) % 3

    (row,) = curve(model, [0.5], per_class=200, oracle=oracle)
    y = np.arange(3).repeat(200)
    seeds = generate.chain_seeds(derive_seed(1, "temperature"), y)
    z = generate.draw_latents(model, y, seeds, chains=replace(CHAINS, temperature=0.5))
    x = generate.decode(model, ENCODING, z, seeds)
    _, at_x = latents_and_logits(model, ENCODING, x)
    assert np.array_equal(np.concatenate(seen), x)
    assert (row.temperature, row.count) == (0.5, 600)
    for place, logits in (("z", 3.0 * z), ("x", at_x)):
        entropy = entropy_of_logits(logits)
        assert getattr(row, f"mean_entropy_{place}") == pytest.approx(entropy.mean(), rel=1e-4)
        assert getattr(row, f"median_entropy_{place}") == pytest.approx(np.median(entropy), rel=1e-4)
        assert getattr(row, f"requested_share_{place}") == (logits.argmax(axis=1) == y).mean()
    by_block = np.concatenate([np.arange(500), np.arange(100)]) % 3  # samples come in blocks
    assert row.purity == pytest.approx((by_block == y).mean())


def test_flat_energy_gives_equal_classes():
    for row in curve(small_model(pull=0.0), [0.0, 1.0], per_class=10):
        entropies = (row.mean_entropy_z, row.median_entropy_z, row.mean_entropy_x, row.median_entropy_x)
        assert entropies == pytest.approx([math.log(3)] * 4)
        assert row.requested_share_z == row.requested_share_x == pytest.approx(1 / 3)  # the first of equals
        assert row.purity is None


def test_cold_chains_have_lower_entropy():
    """The closer to pull e_c, the lower the entropy: at T = 0 and many steps every z is there."""
    chains = replace(CHAINS, num_steps=200)
    rows = curve(small_model(), [0.0, 0.25, 1.0, 4.0], per_class=1000, chains=chains)
    entropies = [row.mean_entropy_z for row in rows]
    assert entropies == sorted(entropies)
    assert len(set(entropies)) == 4
    assert rows[0].mean_entropy_z == pytest.approx(entropy_of_logits(np.array([[9.0, 0, 0]]))[0], rel=1e-3)
    assert rows[0].requested_share_z == 1.0
    assert rows[0].requested_share_z > rows[-1].requested_share_z


def test_rows_depend_on_seed_and_temperature_alone():
    model = small_model()
    model.train()  # dropout must not draw
    global_state = torch.get_rng_state()
    rows = curve(model, [1.0, 0.2])
    assert [row.temperature for row in rows] == [1.0, 0.2]
    assert curve(model, [0.2]) == rows[1:]
    assert curve(model, [0.2], chains=replace(CHAINS, temperature=3)) == rows[1:]
    assert curve(model, [0.2], seed=2) != rows[1:]
    assert curve(model, []) == []
    assert torch.equal(global_state, torch.get_rng_state())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(ValueError, match="per_class must be 1 or more; got 0"):
        curve(small_model(), [1.0], per_class=0)
    with pytest.raises(ValueError, match="temperature must be a finite number, 0 or more; got -1"):
        curve(small_model(), [-1.0], per_class=1)
