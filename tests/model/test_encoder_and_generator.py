"""q(z given x) and p(x given z) against closed forms, and who feels which gradient."""

import math

import pytest
import torch
from torch import nn

from synthsieve.config import ModelSettings
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.model.encoder import GradientShare, Posterior
from synthsieve.model.generator import GaussianGenerator


def test_kl_to_the_reference_equals_torch_distributions():
    generator = torch.Generator().manual_seed(0)
    q = Posterior(torch.randn(5, 3, generator=generator), torch.randn(5, 3, generator=generator))
    normal = torch.distributions.Normal(q.mean, q.log_scale.exp())
    expected = torch.distributions.kl_divergence(normal, torch.distributions.Normal(0.0, 1.0))
    assert torch.allclose(q.kl_to_reference(), expected, atol=1e-5)


def test_draws_of_q_have_its_mean_and_scale():
    q = Posterior(torch.full((20000, 1), 2.0), torch.full((20000, 1), math.log(0.5)))
    z = q.sample(generator=torch.Generator().manual_seed(0))
    assert abs(z.mean().item() - 2.0) < 4 * 0.5 / 20000**0.5
    assert abs(z.std().item() - 0.5) < 4 * 0.5 / (2 * 20000) ** 0.5


def test_the_likelihood_is_a_normalised_gaussian():
    model = GaussianGenerator(nn.Linear(2, 3), shape=(3,), observation_noise=0.7)
    generator = torch.Generator().manual_seed(0)
    x, z = torch.randn(4, 3, generator=generator), torch.randn(4, 2, generator=generator)
    expected = torch.distributions.Normal(model(z), 0.7).log_prob(x).sum(dim=1)
    assert torch.allclose(model.log_prob(x, z), expected, atol=1e-5)


def two_towers(label_latent_dim=2):
    settings = ModelSettings(
        latent_dim=5, label_latent_dim=label_latent_dim, label_width=8, encoder_width=8, encoder_depth=1, energy_width=8
    )
    return GenerativeClassifier(settings, (6,), 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("share", "label_felt", "style_felt"),
    [
        (GradientShare(1, 1), 1, 1),
        (GradientShare(0, 1), 0, 1),
        (GradientShare(1, 0), 1, 0),
        (GradientShare(0.25, 1), 0.25, 1),
    ],
)
def test_each_tower_feels_its_share(share, label_felt, style_felt):
    model, x = two_towers(), torch.ones(4, 6)

    def gradients(share):
        model.zero_grad(set_to_none=True)
        model.posterior(x, share).mean.square().sum().backward()
        towers = (model.encoder.label_tower, model.encoder.style_tower)
        return [sum(p.grad.abs().sum().item() for p in t.parameters() if p.grad is not None) for t in towers]

    whole, felt = gradients(GradientShare()), gradients(share)
    assert felt == pytest.approx([whole[0] * label_felt, whole[1] * style_felt], rel=1e-5)


def test_style_can_be_held_while_x_changes():
    model = two_towers()
    x, other = torch.zeros(4, 6), torch.ones(4, 6)
    held = model.encoder.with_style_of(other, model.posterior(x).mean)
    assert torch.equal(held[:, :2], model.posterior(other).mean[:, :2])
    assert torch.equal(held[:, 2:], model.posterior(x).mean[:, 2:])
    one = two_towers(label_latent_dim=0)
    assert torch.equal(one.encoder.with_style_of(other, one.posterior(x).mean), one.posterior(other).mean)
