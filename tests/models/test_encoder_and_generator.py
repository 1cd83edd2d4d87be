"""q(z given x) and p(x given z) against closed forms, and the gradient of each tower."""

import math

import pytest
import torch
from torch import nn

from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.encoder import GradientScale, Posterior
from synthsieve.models.generator import GaussianGenerator
from synthsieve.settings import ModelSettings


def test_kl_to_reference():
    rng = torch.Generator().manual_seed(0)
    q = Posterior(torch.randn(5, 3, generator=rng), torch.randn(5, 3, generator=rng))
    normal = torch.distributions.Normal(q.mean, q.log_scale.exp())
    expected = torch.distributions.kl_divergence(normal, torch.distributions.Normal(0.0, 1.0))
    assert torch.allclose(q.kl_to_reference(), expected, atol=1e-5)


def test_posterior_samples():
    q = Posterior(torch.full((20000, 1), 2.0), torch.full((20000, 1), math.log(0.5)))
    z = q.sample(rng=torch.Generator().manual_seed(0))
    assert abs(z.mean().item() - 2.0) < 4 * 0.5 / 20000**0.5
    assert abs(z.std().item() - 0.5) < 4 * 0.5 / (2 * 20000) ** 0.5


def test_gaussian_likelihood_is_normalized():
    model = GaussianGenerator(nn.Linear(2, 3), shape=(3,), observation_noise=0.7)
    rng = torch.Generator().manual_seed(0)
    x, z = torch.randn(4, 3, generator=rng), torch.randn(4, 2, generator=rng)
    expected = torch.distributions.Normal(model(z), 0.7).log_prob(x).sum(dim=1)
    assert torch.allclose(model.log_prob(x, z), expected, atol=1e-5)


def two_towers(label_latent_dim=2, **more):
    settings = ModelSettings(
        latent_dim=5,
        label_latent_dim=label_latent_dim,
        label_width=8,
        encoder_width=8,
        encoder_depth=1,
        energy_width=8,
        **more,
    )
    return GenerativeClassifier(settings, (6,), 3, rng=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("share", "label_scale", "style_scale"),
    [
        (GradientScale(1, 1), 1, 1),
        (GradientScale(0, 1), 0, 1),
        (GradientScale(1, 0), 1, 0),
        (GradientScale(0.25, 1), 0.25, 1),
    ],
)
def test_gradient_scale_of_each_tower(share, label_scale, style_scale):
    model, x = two_towers(), torch.ones(4, 6)

    def gradients(share):
        model.zero_grad(set_to_none=True)
        model.posterior(x, share).mean.square().sum().backward()
        towers = (model.encoder.label_tower, model.encoder.style_tower)
        return [sum(p.grad.abs().sum().item() for p in t.parameters() if p.grad is not None) for t in towers]

    full, scaled = gradients(GradientScale()), gradients(share)
    assert scaled == pytest.approx([full[0] * label_scale, full[1] * style_scale], rel=1e-5)


def test_style_of_another_x():
    model = two_towers()
    x, other = torch.zeros(4, 6), torch.ones(4, 6)
    mixed = model.encoder.with_style_of(other, model.posterior(x).mean)
    assert torch.equal(mixed[:, :2], model.posterior(other).mean[:, :2])
    assert torch.equal(mixed[:, 2:], model.posterior(x).mean[:, 2:])
    one = two_towers(label_latent_dim=0)
    assert torch.equal(one.encoder.with_style_of(other, one.posterior(x).mean), one.posterior(other).mean)


def test_a_fixed_scale_of_the_label_latents():
    model = two_towers(label_scale=0.2)
    q, learned = model.posterior(torch.ones(4, 6)), two_towers().posterior(torch.ones(4, 6))
    torch.testing.assert_close(q.log_scale[:, :2].exp(), torch.full((4, 2), 0.2))
    assert torch.equal(q.mean, learned.mean)
    assert torch.equal(q.log_scale[:, 2:], learned.log_scale[:, 2:])
