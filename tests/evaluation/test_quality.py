"""How good a pool is: all figures of a fair pool, and a reason for each that too few rows cannot give."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from synthsieve.data.modalities.encoding import VectorEncoding
from synthsieve.data.origin import Origin
from synthsieve.evaluation import quality
from synthsieve.evaluation.predict import latents, latents_and_logits
from synthsieve.evaluation.quality import pool_quality, temperature_curve
from synthsieve.io.random_streams import derive_seed, torch_stream
from synthsieve.models import generate
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.sampling import langevin
from synthsieve.selection.entropy import entropy_of_logits
from synthsieve.settings import ModelSettings
from synthsieve.training.defaults import settings_for
from synthsieve.training.run_dir import RunDirectory
from tests.training.conftest import QUICK

FIGURES = set(quality.FIGURES)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """The digits, their split, and an encoder that nobody trained: a feature space as good as any."""
    digits = Origin("digits").load()
    settings = settings_for("digits", overrides=QUICK)
    run = RunDirectory.create(tmp_path_factory.mktemp("quality") / "run", Origin("digits"), settings, digits)
    return run.new_train_state().averaged, run.encoding, digits, run.split


def measured(case, rows, seed=0):
    """The figures of real examples that pass for synthetic ones."""
    model, encoding, digits, split = case
    return pool_quality(model, encoding, digits, split, x=digits.train.x[rows], y=digits.train.y[rows], seed=seed)


def test_held_out_examples_look_real_and_training_examples_like_copies(case):
    *_, split = case
    fresh = measured(case, split.validation)
    assert fresh["notes"] == []
    assert fresh["synthetic"] == len(split.validation)
    assert fresh["memorisation"]["verdict"] == "no sign of copies"
    assert fresh["two_sample"]["low"] <= 0.5
    assert fresh["manifold"]["precision"] > 0.7
    assert fresh["frechet_distance"] < 0.2 * np.square(latents(*case[:2], case[2].train.x)).sum(axis=1).mean()
    assert fresh["train_on_synthetic"]["count"] == len(split.test)
    assert measured(case, split.unlabeled[:200])["memorisation"]["verdict"] == "copies suspected"
    json.dumps(fresh, allow_nan=False)


def test_figures_of_held_out_examples_are_reported(case):
    *_, split = case
    same = measured(case, split.test)
    assert same["same_law"]["manifold"] == same["manifold"]
    assert same["same_law"]["frechet_distance"] == same["frechet_distance"]


def test_the_same_seed_gives_the_same_figures(case, monkeypatch):
    *_, split = case
    monkeypatch.setattr(quality, "MAX_ROWS", 100)
    one, again, other = (measured(case, split.unlabeled[:300], seed) for seed in (0, 0, 1))
    assert one["synthetic"] == 100
    assert one["manifold"]["num_real"] == 100
    assert one == again != other


@pytest.mark.parametrize("count", [1, 3, 7])
def test_figures_of_too_few_samples_are_none(case, count):
    *_, split = case
    figures = measured(case, split.test[:count])
    absent = {name for name in FIGURES if figures[name] is None}
    expected = {1: FIGURES - {"memorisation"}, 3: {"manifold", "two_sample"}, 7: {"two_sample"}}
    assert absent == expected[count]
    words = [quality.FIGURES[name] for name in figures if name in absent]
    assert [note.partition(":")[0] for note in figures["notes"]] == words
    assert figures["same_law"]["manifold"] is not None


def test_without_test_rows_one_note_says_so(case):
    *before, split = case
    none = replace(split, test=split.test[:0])
    figures = measured((*before, none), split.unlabeled[:200])
    assert len(figures["notes"]) == 1
    assert figures["manifold"] is not None
    assert figures["memorisation"] is figures["same_law"]["manifold"] is None


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
