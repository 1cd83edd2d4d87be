"""The implicit chain: its law, its gradient against finite differences and by hand, and who feels it."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.func import functional_call

from synthsieve.io.random_streams import torch_stream
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.encoder import WHOLE, GradientScale
from synthsieve.sampling import langevin
from synthsieve.settings import Classify, GradientThrough, ImplicitSettings, ModelSettings
from synthsieve.training.implicit import implicit_cross_entropy, run_chain, uniform_classes
from synthsieve.training.objectives import cross_entropy

STEP_SIZE = 0.1
PARTS = ("energy", "generator", "encoder")


def small_model(*, label_latent_dim=0, energy_layers=2, dtype=torch.float64):
    settings = ModelSettings(
        latent_dim=3,
        label_latent_dim=label_latent_dim,
        encoder="mlp",
        encoder_width=4,
        encoder_depth=1,
        label_width=4,
        generator="mlp",
        generator_width=4,
        energy_width=5,
        energy_layers=energy_layers,
    )
    return GenerativeClassifier(settings, (4,), 3, rng=torch_stream(0, "weights")).to(dtype)


def implicit(gradient=GradientThrough.ALL, *, num_steps=3, temperature=0.7, gradient_steps=5, freeze_generator=False):
    return ImplicitSettings(
        num_steps=num_steps,
        temperature=temperature,
        gradient=gradient,
        gradient_steps=gradient_steps,
        freeze_generator=freeze_generator,
    )


def loss_of(model, settings, *, n=6, train_on=Classify.DRAW, share=WHOLE, seed=1):
    return implicit_cross_entropy(
        model,
        n,
        settings=settings,
        step_size=STEP_SIZE,
        train_on=train_on,
        share=share,
        rng=torch_stream(seed, "implicit"),
    )


def chain_of(model, settings, y, start, *, noise="noise", train_on=Classify.DRAW):
    return run_chain(
        model, y, start, settings=settings, step_size=STEP_SIZE, train_on=train_on, rng=torch_stream(2, noise)
    )


def classes_and_start(model, n=6):
    rng = torch_stream(1, "start")
    return uniform_classes(model, n, rng=rng), model.prior.reference_sample(n, rng=rng)


def gradients(model, loss):
    """By parameter's name; zeros for a parameter the loss does not know."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return dict(zip(names, found, strict=True))


def size_of(found, part):
    return sum(gradient.abs().sum().item() for name, gradient in found.items() if name.startswith(part))


def assert_close(one, other, parts=PARTS):
    for name in one:
        if name.startswith(tuple(parts)):
            assert torch.allclose(one[name], other[name], rtol=1e-9, atol=1e-13), name


class Checked(nn.Module):
    """The loss as a function of the parameters alone: its noise is the same at each call."""

    def __init__(self, model, **options):
        super().__init__()
        self.model = model
        self.options = options

    def forward(self):
        return loss_of(self.model, **self.options)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("train_on", Classify)
def test_the_gradient_of_the_whole_chain_is_that_of_finite_differences(part, train_on):
    checked = Checked(small_model(), settings=implicit(num_steps=3), train_on=train_on)
    names, values = zip(
        *((name, value) for name, value in checked.named_parameters() if name.startswith(f"model.{part}")), strict=True
    )

    def loss(*values):
        return functional_call(checked, dict(zip(names, values, strict=True)), ())

    assert torch.autograd.gradcheck(loss, [value.detach().clone().requires_grad_() for value in values])


def test_the_gradient_with_a_frozen_generator_and_two_towers_is_that_of_finite_differences():
    settings = implicit(num_steps=3, freeze_generator=True)
    checked = Checked(small_model(label_latent_dim=1), settings=settings)
    scale_gradient = {n: v for n, v in checked.named_parameters() if not n.startswith("model.generator")}

    def loss(*values):
        return functional_call(checked, dict(zip(scale_gradient, values, strict=True)), ())

    assert torch.autograd.gradcheck(
        loss, [value.detach().clone().requires_grad_() for value in scale_gradient.values()]
    )


@pytest.mark.parametrize("gradient", GradientThrough)
def test_at_temperature_one_z_is_the_explicit_sampler_s(gradient):
    model = small_model()
    y, start = classes_and_start(model, n=40)
    chain = chain_of(model, implicit(gradient, num_steps=12, temperature=1.0), y, start)
    chains = langevin.LangevinSettings(num_steps=12, step_size=STEP_SIZE, temperature=1.0)
    explicit = langevin.run(
        model.prior.conditional(y), start, settings=chains, rng=torch_stream(2, "noise"), differentiable=False
    ).z
    assert torch.allclose(chain.z, explicit, rtol=0, atol=1e-12)
    assert torch.equal(chain.x, model.generator(chain.z))
    assert torch.equal(chain.logits, model.energy.class_logits(chain.z_reencoded))


def test_at_temperature_one_moments_are_those_of_many_explicit_chains():
    model, n, num_steps = small_model(), 24000, 30
    with torch.no_grad():
        model.energy.network.layers[-1].weight.mul_(3)  # classes that differ
    y, start = classes_and_start(model, n)
    settings = implicit(GradientThrough.LAST, num_steps=num_steps, temperature=1.0, gradient_steps=2)
    ours = chain_of(model, settings, y, start).z.detach()

    rng = torch_stream(3, "explicit")
    other_values = model.prior.reference_sample(n, rng=rng)
    for _ in range(num_steps):
        density = model.prior.conditional(y)
        other_values = langevin.step(other_values, density, step_size=STEP_SIZE, temperature=1.0, rng=rng)
    means = []
    for label in range(model.num_classes):
        a, b = ours[y == label], other_values[y == label]
        means.append(a.mean(dim=0))
        for moment in (lambda z: z, torch.square):
            error = ((moment(a).var(dim=0) + moment(b).var(dim=0)) / len(a)).sqrt()
            # 18 comparisons at 4.5 standard errors: a fair pair fails once in 8,000 seeds.
            assert ((moment(a).mean(dim=0) - moment(b).mean(dim=0)).abs() < 4.5 * error).all()
    assert all((a - b).norm() > 0.3 for a, b in pairwise(means))  # the check could tell one class from another


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
def test_moments_at_each_temperature_by_closed_form(temperature):
    """With F linear, p(z given y) is N(weight_y, I), and K steps from p0 have a known mean and variance."""
    model, n, num_steps = small_model(energy_layers=1), 9000, 10
    y, start = classes_and_start(model, n)
    z = chain_of(model, implicit(num_steps=num_steps, temperature=temperature), y, start).z.detach()
    keep = 1 - STEP_SIZE
    variance = 1.0
    for _ in range(num_steps):
        variance = keep**2 * variance + 2 * temperature * STEP_SIZE
    for label, weight in enumerate(model.energy.network.layers[0].weight.detach()):
        own = z[y == label]
        expected = (1 - keep**num_steps) * weight
        assert ((own.mean(dim=0) - expected).abs() < 4.5 * math.sqrt(variance / len(own))).all()
        assert ((own.var(dim=0) - variance).abs() < 4.5 * variance * math.sqrt(2 / len(own))).all()


@pytest.mark.parametrize("gradient", GradientThrough)
def test_at_temperature_zero_z_is_its_start_s_alone(gradient):
    model = small_model()
    y, start = classes_and_start(model)

    def ends(temperature, start=start):
        settings = implicit(gradient, num_steps=8, temperature=temperature, gradient_steps=3)
        return [chain_of(model, settings, y, start, noise=noise).z for noise in ("one", "another")]

    cold, warm = ends(0.0), ends(1e-3)
    assert torch.equal(*cold)
    assert not torch.isclose(*warm).any()  # where there is noise, the two generators do differ
    assert not torch.isclose(cold[0], start).any()  # and the chains do move
    assert not torch.isclose(cold[0], ends(0.0, start + 0.1)[0]).any()


def test_at_temperature_zero_the_generator_s_noise_comes_from_q_alone():
    model = small_model()
    y, start = classes_and_start(model)
    logits = {
        train_on: [
            chain_of(model, implicit(temperature=0.0), y, start, noise=noise, train_on=train_on).logits
            for noise in ("one", "another")
        ]
        for train_on in Classify
    }
    assert torch.equal(*logits[Classify.MEAN])
    assert not torch.isclose(*logits[Classify.DRAW]).any()


def test_last_of_all_steps_is_all_and_last_of_no_step_is_none():
    model = small_model()

    def found(gradient, steps):
        return gradients(model, loss_of(model, implicit(gradient, num_steps=4, gradient_steps=steps)))

    everything = found(GradientThrough.ALL, 0)
    for steps in (4, 9):
        last = found(GradientThrough.LAST, steps)
        assert all(torch.equal(everything[name], last[name]) for name in everything)
    assert_close(found(GradientThrough.NOTHING, 5), found(GradientThrough.LAST, 0))
    sizes = [size_of(found(GradientThrough.LAST, steps), "energy") for steps in range(5)]
    assert len(set(sizes)) == 5  # each step adds its own


@pytest.mark.parametrize("freeze_generator", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_last_is_a_chain_cut_by_hand(steps, freeze_generator):
    model, num_steps, temperature = small_model(label_latent_dim=1), 5, 0.7
    y, start = classes_and_start(model)
    settings = implicit(
        GradientThrough.LAST, num_steps=num_steps, gradient_steps=steps, freeze_generator=freeze_generator
    )
    chain = chain_of(model, settings, y, start)
    ours = gradients(model, cross_entropy(chain.logits, y))

    rng = torch_stream(2, "noise")
    z = start
    for index in range(num_steps):
        if index == num_steps - steps:
            z = z.detach()
        z = z.requires_grad_()
        log_density = model.energy.network(z)[torch.arange(len(y)), y] - 0.5 * z.square().sum(dim=1)
        (uphill,) = torch.autograd.grad(log_density.sum(), z, create_graph=True)
        noise = torch.randn(z.shape, dtype=z.dtype, generator=rng)
        z = z + STEP_SIZE * uphill + math.sqrt(2 * temperature * STEP_SIZE) * noise
    q = model.encoder(model.generator.network(z))
    z_hat = q.mean + q.log_scale.exp() * torch.randn(z.shape, dtype=z.dtype, generator=rng)
    log_p = model.energy.network(z_hat).log_softmax(dim=1)
    by_hand = gradients(model, -log_p[torch.arange(len(y)), y].mean())

    assert_close(ours, by_hand, ("energy", "encoder") if freeze_generator else PARTS)
    assert (size_of(ours, "generator") == 0) == freeze_generator


def test_detached_and_frozen_nothing_is_recorded_up_to_x():
    model = small_model()
    y, start = classes_and_start(model)
    chain = chain_of(model, implicit(GradientThrough.NOTHING, freeze_generator=True), y, start)
    assert not chain.z.requires_grad
    assert not chain.x.requires_grad
    found = gradients(model, cross_entropy(chain.logits, y))
    assert size_of(found, "generator") == 0
    # The energy and the encoder learn as from any labelled x.
    q = model.posterior(chain.x)
    z = q.mean + (chain.z_reencoded - q.mean).detach() / q.log_scale.exp().detach() * q.log_scale.exp()
    assert_close(found, gradients(model, cross_entropy(model.energy.class_logits(z), y)))
    assert size_of(found, "energy") > 0
    assert size_of(found, "encoder") > 0


def test_detached_but_not_frozen_the_generator_learns_and_z_does_not():
    model = small_model()
    y, start = classes_and_start(model)
    chain = chain_of(model, implicit(GradientThrough.NOTHING), y, start)
    assert not chain.z.requires_grad
    assert size_of(gradients(model, cross_entropy(chain.logits, y)), "generator") > 0


@pytest.mark.parametrize("gradient", [GradientThrough.ALL, GradientThrough.LAST])
def test_a_frozen_generator_feels_nothing_and_passes_the_gradient_on(gradient):
    model = small_model()
    y, start = classes_and_start(model)
    results = {}
    for frozen in (False, True):
        chain = chain_of(model, implicit(gradient, gradient_steps=2, freeze_generator=frozen), y, start)
        loss = cross_entropy(chain.logits, y)
        (at_z,) = torch.autograd.grad(loss, chain.z, retain_graph=True)
        results[frozen] = (chain, at_z, gradients(model, loss))
    free, frozen = results[False], results[True]
    assert torch.equal(free[0].x, frozen[0].x)
    assert frozen[1].abs().min() > 0
    assert torch.allclose(free[1], frozen[1], rtol=1e-9, atol=1e-13)
    assert size_of(free[2], "generator") > 0
    assert size_of(frozen[2], "generator") == 0
    assert_close(free[2], frozen[2], ("energy", "encoder"))
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("gradient", GradientThrough)
@pytest.mark.parametrize("freeze_generator", [False, True])
def test_running_touches_no_parameter_no_gradient_and_no_global_generator(gradient, freeze_generator):
    model = small_model(dtype=torch.float32)
    first = next(model.parameters())
    first.grad = torch.full_like(first, 7.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kept, global_state = dict(model.named_parameters()), torch.get_rng_state()
    settings = implicit(gradient, freeze_generator=freeze_generator)
    losses = [loss_of(model, settings) for _ in range(2)]
    assert torch.equal(*losses)
    assert losses[0].shape == ()
    assert losses[0].dtype == torch.float32
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(kept[name] is value for name, value in model.named_parameters())
    assert torch.equal(first.grad, torch.full_like(first, 7.0))
    assert all(parameter.grad is None for parameter in model.parameters() if parameter is not first)
    assert torch.equal(global_state, torch.get_rng_state())


def test_a_tower_that_feels_none_passes_none_on():
    model = small_model(label_latent_dim=1)
    found = gradients(model, loss_of(model, implicit(), share=GradientScale(label=1.0, style=0.0)))
    assert size_of(found, "encoder.label_tower") > 0
    assert size_of(found, "encoder.style_tower") == 0
    assert size_of(found, "generator") > 0  # by way of the label tower
    found = gradients(model, loss_of(model, implicit(), share=GradientScale(label=0.0, style=0.0)))
    assert size_of(found, "encoder") == size_of(found, "generator") == 0
    assert size_of(found, "energy") > 0


def test_classes_are_balanced_and_each_is_uniform():
    model, rng = small_model(), torch_stream(0, "classes")
    counts = torch.zeros(5, model.num_classes)
    for _ in range(3000):
        y = uniform_classes(model, 5, rng=rng)
        assert sorted(torch.bincount(y, minlength=3).tolist()) == [1, 2, 2]
        counts[torch.arange(5), y] += 1
    # 15 shares of 3,000 draws at 4.5 standard errors.
    assert ((counts / 3000 - 1 / 3).abs() < 4.5 * math.sqrt(2 / 9 / 3000)).all()
    assert torch.bincount(uniform_classes(model, 9, rng=rng)).tolist() == [3, 3, 3]
    with pytest.raises(ValueError, match="1 chain or more; got 0"):
        uniform_classes(model, 0, rng=rng)


def test_learning_from_it_lowers_it():
    model = small_model(dtype=torch.float32)
    settings = implicit(GradientThrough.LAST, num_steps=6, gradient_steps=3)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for index in range(150):
        loss = loss_of(model, settings, n=60, seed=index)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])
