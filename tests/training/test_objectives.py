"""Every term against its definition, worked out in another way."""

import math
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.energy import Energy
from synthsieve.settings import ModelSettings
from synthsieve.training import objectives


def linear_energy():
    network = nn.Linear(2, 3, bias=False)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]]))
    return Energy(network, latent_dim=2, num_classes=3)


def test_contrast_is_the_difference_of_mean_negative_free_energies():
    energy = linear_energy()
    z, zero = torch.tensor([[1.0, 2.0]]), torch.zeros(4, 2)
    expected = math.log(math.exp(1) + math.exp(2) + math.exp(3)) - math.log(3)
    assert objectives.contrast(energy, z, zero).item() == pytest.approx(expected, rel=1e-6)


def test_elbo_adds_up():
    settings = ModelSettings(latent_dim=2, encoder_width=4, encoder_depth=1, generator_width=4, energy_width=4)
    model = GenerativeClassifier(settings, (3,), 3, rng=torch.Generator().manual_seed(0))
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    q = model.posterior(x)
    z = q.sample(rng=torch.Generator().manual_seed(2))
    normal, standard = torch.distributions.Normal(q.mean, q.log_scale.exp()), torch.distributions.Normal(0.0, 1.0)
    expected = (
        torch.distributions.Normal(model.generator(z), settings.observation_noise).log_prob(x).sum(dim=1)
        - torch.distributions.kl_divergence(normal, standard).sum(dim=1)
        + model.energy.class_logits(z).exp().sum(dim=1).log()
    )
    assert torch.allclose(objectives.elbo(model, x, q, z).total, expected, atol=1e-4)


def test_weighted_cross_entropy_of_unit_weights_is_the_plain_one():
    logits, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
    plain = objectives.cross_entropy(logits, y)
    assert plain.item() == pytest.approx((math.log(1 + math.exp(-2)) + math.log(1 + math.e)) / 2, rel=1e-6)
    assert objectives.cross_entropy(logits, y, torch.ones(2)).item() == pytest.approx(plain.item())
    assert objectives.cross_entropy(logits, y, torch.tensor([2.0, 0.0])).item() == pytest.approx(
        math.log(1 + math.exp(-2)), rel=1e-6
    )


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        (100 * torch.eye(4), math.log(4)),  # sure and balanced: all there is to know
        (torch.zeros(4, 4), 0.0),  # says nothing
        (100 * torch.eye(4)[[0, 0, 0, 0]], 0.0),  # sure, but always of the same class
    ],
)
def test_mutual_information_at_its_extremes(logits, expected):
    assert objectives.mutual_information(logits).item() == pytest.approx(expected, abs=1e-5)


def test_with_class_shares_the_best_predictions_are_sure_and_in_these_proportions():
    shares = torch.tensor([0.75, 0.25])
    in_proportion, even = (100 * torch.eye(2)[rows] for rows in ([0, 0, 0, 1], [0, 1, 0, 1]))
    assert objectives.mutual_information(in_proportion, class_shares=shares).item() == pytest.approx(0, abs=1e-5)
    expected = 0.5 * math.log(0.75 / 0.5) + 0.5 * math.log(0.25 / 0.5)  # -KL(even || shares)
    assert objectives.mutual_information(even, class_shares=shares).item() == pytest.approx(expected, abs=1e-5)


def test_with_equal_class_shares_mutual_information_is_the_plain_one_less_a_constant():
    logits = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    plain, shared = (objectives.mutual_information(logits, class_shares=s) for s in (None, torch.full((4,), 0.25)))
    assert (plain - shared).item() == pytest.approx(math.log(4), abs=1e-5)


def test_divergence_is_kl():
    p, q = torch.tensor([[0.5, 0.5], [0.9, 0.1]]), torch.tensor([[0.25, 0.75], [0.9, 0.1]])
    expected = (0.5 * math.log(2) + 0.5 * math.log(2 / 3)) / 2
    assert objectives.divergence(p.log(), q.log()).item() == pytest.approx(expected, rel=1e-5)


def test_roughness_finds_the_worst_direction_of_a_linear_classifier():
    weight = torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])  # only the first coordinate turns the prediction

    def classify(x):
        return x @ weight.T

    x = torch.tensor([[0.3, 5.0, -2.0]])
    log_p = classify(x).log_softmax(dim=1)
    worst = max(
        objectives.divergence(log_p, classify(x + torch.tensor([[r, 0.0, 0.0]])).log_softmax(dim=1)).item()
        for r in (-0.5, 0.5)
    )
    found = [
        objectives.roughness(classify, x, log_p, radius=0.5, rng=torch.Generator().manual_seed(seed)).item()
        for seed in range(10)
    ]
    # The direction's sign is a coin's toss (the divergence is even to second order); its line is not.
    assert max(found) == pytest.approx(worst, rel=1e-3)
    assert min(found) > 0.5 * worst


def test_a_confident_target_is_nearly_the_predicted_class():
    p = torch.tensor([[0.7, 0.2, 0.1], [0.02, 0.95, 0.03]])
    target = objectives.confident_target(p.log(), 0.9).exp()
    assert torch.allclose(target[0], p[0])
    assert target[1].tolist() == pytest.approx([0.02 / 3, 0.98 + 0.02 / 3, 0.02 / 3], rel=1e-5)
    assert torch.allclose(objectives.confident_target(p.log(), 1.0).exp(), p)


def test_roughness_compares_with_its_target_and_probes_in_its_context():
    def classify(x):
        probed.append(inside)
        return x @ torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).T

    @contextmanager
    def probing():
        nonlocal inside
        inside = True
        yield
        inside = False

    inside, probed = False, []
    x = torch.tensor([[0.3, 5.0]])
    log_p = classify(x).log_softmax(dim=1)
    probed.clear()
    target = torch.tensor([[0.999, 0.001]]).log()
    rough = objectives.roughness(
        classify, x, log_p, radius=0.0, rng=torch.Generator().manual_seed(0), target=target, probing=probing
    )
    assert probed == [True, False]
    assert rough.item() == pytest.approx(objectives.divergence(target, log_p).item(), rel=1e-5)


def linear_moves():
    """A classifier of two numbers, and a generator whose second latent alone changes what it looks at."""
    weight, decode = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[0.0, 2.0], [1.0, 0.0]])  # g(z) = decode z
    x = torch.tensor([[0.3, 5.0], [-0.2, 1.0]])

    def classify(x):
        return x @ weight.T

    return classify, lambda r: x + r @ decode.T, x, classify(x).log_softmax(dim=1)


def test_latent_roughness_finds_the_worst_direction_of_a_linear_generator():
    classify, move, x, log_p = linear_moves()
    worst = [
        objectives.divergence(log_p[i : i + 1], classify(x + torch.tensor([[2 * r, 0.0]]))[i : i + 1].log_softmax(1))
        for i in (0, 1)
        for r in (-0.5, 0.5)
    ]
    found = [
        objectives.roughness(
            classify, torch.zeros(2, 2), log_p, radius=0.5, rng=torch.Generator().manual_seed(seed), move=move
        ).item()
        for seed in range(10)
    ]
    highest, lowest = (sum(choose(worst[2 * i : 2 * i + 2]).item() for i in (0, 1)) / 2 for choose in (max, min))
    assert max(found) == pytest.approx(highest, rel=1e-3)
    assert min(found) >= lowest * (1 - 1e-3)


def test_latent_roughness_of_radius_zero_is_zero():
    classify, move, _, log_p = linear_moves()
    rough = objectives.roughness(
        classify, torch.zeros(2, 2), log_p, radius=0.0, rng=torch.Generator().manual_seed(0), move=move
    )
    assert rough.item() == pytest.approx(0.0, abs=1e-6)


def test_logit_size_is_zero_only_where_f_is_zero_too():
    assert objectives.logit_size(torch.zeros(2, 4)).item() == pytest.approx(math.log(4) ** 2)
