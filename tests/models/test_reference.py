"""Draws by name: seeds, replay, storing the reference, and errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from synthsieve.data.modalities.encoding import ImageEncoding
from synthsieve.errors import ConfigError
from synthsieve.models.chains import DrawSettings, resolve
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.generate import draw_latents, draw_samples, replay_chain, replay_diagnostics
from synthsieve.models.reference import FittedReference, new_correction
from synthsieve.sampling.mixture import fit_class_mixture
from synthsieve.settings import Draw, ModelSettings
from tests.errors import raises

FITTED = [Draw.MIXTURE, Draw.MIXTURE_LANGEVIN]


def model(*, fitted: bool = True) -> GenerativeClassifier:
    settings = ModelSettings(latent_dim=4, encoder_width=8, generator_width=4, energy_width=8)
    made = GenerativeClassifier(settings, (1, 8, 8), 3, rng=torch.Generator().manual_seed(0)).requires_grad_(False)
    if fitted:
        rng = np.random.default_rng(0)
        y = np.arange(3).repeat(60)
        z = rng.normal(size=(180, 4)) * 0.3 + 2 * np.eye(3, 4)[y]
        mixture = fit_class_mixture(z, np.eye(3)[y], rng=rng)
        correction = new_correction(4, rng=torch.Generator().manual_seed(1))
        correction.linears()[-1].weight.data += 0.1
        offsets = torch.tensor([0.0, 0.5, -0.5])
        made.reference = FittedReference(mixture, correction.requires_grad_(False), 0.5, offsets)
    return made


def chains(draw: Draw, num_steps: int = 5) -> DrawSettings:
    return DrawSettings(num_steps, 0.08, 1.0, draw)


@pytest.mark.parametrize("draw", FITTED)
def test_a_sample_depends_on_its_seed_and_class_alone(draw):
    y, seeds = np.array([0, 1, 2, 1]), np.array([7, 8, 9, 10])
    together = draw_latents(model(), y, seeds, chains=chains(draw))
    alone = draw_latents(model(), y[2:3], seeds[2:3], chains=chains(draw))
    assert np.array_equal(together[2:3], alone)
    assert len(np.unique(together[:, 0])) == 4


@pytest.mark.parametrize("draw", FITTED)
def test_replay_ends_at_the_sample(draw):
    of, settings = model(), chains(draw)
    steps = resolve(settings, of).num_steps
    assert steps == (0 if draw is Draw.MIXTURE else 5)
    replayed = replay_chain(of, 1, 8, chains=settings, at=[0, steps])
    z = draw_latents(of, np.array([1]), np.array([8]), chains=settings)
    assert np.array_equal(replayed[-1], z[0])
    start = draw_latents(of, np.array([1]), np.array([8]), chains=chains(Draw.MIXTURE))
    assert np.array_equal(replayed[0], start[0])


def test_diagnostics_are_those_of_the_fitted_prior():
    of, y, seeds = model(), np.array([0, 2]), np.array([3, 4])
    measured = replay_diagnostics(of, y, seeds, chains=chains(Draw.MIXTURE_LANGEVIN))
    z = torch.from_numpy(draw_latents(of, y, seeds, chains=chains(Draw.MIXTURE_LANGEVIN)))
    assert of.fitted_prior is not None
    expected = of.fitted_prior.conditional_log_density(z, torch.from_numpy(y)).mean()
    assert float(measured.log_density[-1]) == pytest.approx(float(expected), rel=1e-3)


@pytest.mark.parametrize("temperature", [0.0, 0.3])
def test_lower_temperatures_are_nearer_to_the_means(temperature):
    y, seeds, reference = np.zeros(200, dtype=np.int64), np.arange(200), model().reference
    assert reference is not None
    means = reference.mixture.means.numpy()
    warm, cold = (
        draw_latents(model(), y, seeds, chains=DrawSettings(0, 0.08, heat, Draw.MIXTURE)) for heat in (1, temperature)
    )
    apart = [np.linalg.norm(z[:, None] - means, axis=2).min(axis=1).mean() for z in (warm, cold)]
    assert apart[1] < 0.8 * apart[0]  # sqrt(temperature) of it, at most 0.55


def test_auto_is_langevin_until_a_reference_is_fitted():
    assert resolve(chains(Draw.AUTO), model(fitted=False)).draw is Draw.LANGEVIN
    assert resolve(chains(Draw.AUTO), model()).draw is Draw.MIXTURE_LANGEVIN


@pytest.mark.parametrize("draw", FITTED)
def test_a_mixture_that_was_not_fitted_is_refused(draw):
    with raises(ConfigError, "no-mixture"):
        draw_samples(model(fitted=False), ImageEncoding((1, 8, 8)), per_class=1, chains=chains(draw), seed=0)


def test_a_stored_reference_draws_the_same():
    first, second = model(), model(fitted=False)
    assert first.reference is not None
    second.reference = FittedReference.from_tensors(first.reference.tensors(), latent_dim=4, num_classes=3)
    y, seeds = np.array([0, 1]), np.array([1, 2])
    settings = chains(Draw.MIXTURE_LANGEVIN)
    assert np.array_equal(
        draw_latents(first, y, seeds, chains=settings), draw_latents(second, y, seeds, chains=settings)
    )


@pytest.mark.parametrize("change", ["infinite", "classes", "shape", "missing"])
def test_a_reference_that_does_not_fit_is_refused(change):
    reference = model().reference
    assert reference is not None
    tensors, num_classes = dict(reference.tensors()), 3
    if change == "infinite":
        tensors["mixture/means"] = tensors["mixture/means"] / 0
    elif change == "classes":
        num_classes = 4
    elif change == "shape":
        tensors["mixture/scales"] = tensors["mixture/scales"][:, :2]
    else:
        del tensors["mixture/labels"]
    with pytest.raises((ValueError, TypeError)):
        FittedReference.from_tensors(tensors, latent_dim=4, num_classes=num_classes)
