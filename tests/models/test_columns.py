"""The likelihood of a table row: normalized, and samples follow it."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from synthsieve.data.dataset import InputSpec
from synthsieve.data.modalities.registry import fit_encoding
from synthsieve.io.random_streams import torch_stream
from synthsieve.models.columns import NETWORKS, ColumnsGenerator, make_generator
from synthsieve.settings import ModelSettings
from tests.modalities import table

# A number with a spike and continuous values, a category of three, and a number of two states only.
BLOCKS = (("number", 0, 2, (-0.5,), True), ("category", 2, 3, -1, 0.1), ("number", 5, 3, (0.0, 1.0), False))
INPUT_SPEC = InputSpec("table", (8,), BLOCKS)
SETTINGS = ModelSettings(latent_dim=4, generator_width=16, encoder_depth=2, encoder_width=16)


@pytest.fixture
def generator():
    return make_generator(SETTINGS, INPUT_SPEC, rng=torch_stream(0, "weights"))


def rows_of(category, state, score=None):
    """Encoded rows: the first number at `score` (its spike for None), a category, a state."""
    first = torch.tensor([[-0.5, 1.0]]) if score is None else torch.stack([score, torch.zeros_like(score)], dim=1)
    other = torch.zeros(1, 6)
    other[0, category] = 1
    other[0, 3] = (0.0, 1.0)[state]
    other[0, 4 + state] = 1
    return torch.cat([first, other.expand(len(first), -1)], dim=1)


def test_likelihood_is_normalized(generator):
    z = torch.randn(1, 4, generator=torch_stream(1, "z"))
    grid = torch.linspace(-30, 30, 60001)
    total = 0.0
    with torch.no_grad():
        for category, state in product(range(3), range(2)):
            total += generator.log_prob(rows_of(category, state), z).exp().item()
            dense = generator.log_prob(rows_of(category, state, grid), z.expand(len(grid), -1)).exp()
            total += torch.trapezoid(dense, grid).item()
    assert total == pytest.approx(1, abs=1e-4)


def test_samples_have_the_right_mean(generator):
    n = 40000
    z = torch.randn(1, 4, generator=torch_stream(1, "z")).expand(n, -1)
    noise = torch.rand(n, generator.noise(rng=torch_stream(0, "one")).numel(), generator=torch_stream(2, "noise"))
    with torch.no_grad():
        x, mean = generator.sample(z, noise), generator(z[:1])[0]
    error = 5 * x.std(dim=0) / math.sqrt(n) + 1e-4
    assert ((x.mean(dim=0) - mean).abs() < error).all()
    assert set(x[:, 2:5].sum(dim=1).tolist()) == {1.0}
    assert set(x[:, 6:8].sum(dim=1).tolist()) == {1.0}
    assert (x[x[:, 1] == 1, 0] == -0.5).all()


def test_the_same_noise_gives_the_same_row_in_any_batch(generator):
    z = torch.randn(6, 4, generator=torch_stream(1, "z"))
    noise = torch.stack([generator.noise(rng=torch_stream(seed, "x")) for seed in range(6)])
    with torch.no_grad():
        torch.testing.assert_close(generator.sample(z, noise)[2:3], generator.sample(z[2:3], noise[2:3]))


def test_the_mean_is_differentiable_and_buffers_are_not_stored(generator):
    z = torch.zeros(2, 4, requires_grad=True)
    generator(z).square().sum().backward()
    assert z.grad.abs().sum() > 0
    assert all(name.startswith("network.") for name in generator.state_dict())


def test_a_column_whose_slots_are_all_zero_is_marginalized(generator):
    z = torch.zeros(1, 4)
    unknown = rows_of(0, 0)
    unknown[0, 2] = 0
    with torch.no_grad():
        known = torch.cat([rows_of(category, 0) for category in range(3)])
        summed = generator.log_prob(known, z.expand(3, -1)).logsumexp(dim=0)
        torch.testing.assert_close(generator.log_prob(unknown, z)[0], summed)


def test_a_shared_slot_has_a_uniform_position():
    input_spec = InputSpec("table", (3,), (("category", 0, 3, 1, 0.1),))
    generator = make_generator(SETTINGS, input_spec, rng=torch_stream(0, "weights"))
    n = 5000
    noise = torch.rand(n, 2, generator=torch_stream(2, "noise"))
    with torch.no_grad():
        x = generator.sample(torch.zeros(n, 4), noise)
    shared = x[x[:, 1] > 0, 1]
    assert 0.9 <= shared.min() < shared.max() <= 1
    assert shared.mean().item() == pytest.approx(0.95, abs=0.005)


def test_only_numbers_or_only_categories():
    for blocks, width in (((("number", 0, 1, (), True),), 1), ((("category", 0, 2, -1, 0.1),), 2)):
        made = make_generator(SETTINGS, InputSpec("table", (width,), blocks), rng=torch_stream(0, "weights"))
        x = made.sample(torch.zeros(3, 4), torch.rand(3, made.noise(rng=torch_stream(0, "x")).numel()))
        assert x.shape == (3, width)
        assert torch.isfinite(made.log_prob(x, torch.zeros(3, 4))).all()


def test_a_trained_generator_reproduces_a_table():
    data = table.dataset(400)
    encoding = fit_encoding(data, np.arange(400))
    x = torch.from_numpy(encoding.encode(data.train.x))
    made = NETWORKS.make_generator(SETTINGS, encoding.input_spec, rng=torch_stream(0, "weights"))
    assert isinstance(made, ColumnsGenerator)
    z = torch.from_numpy(data.train.y).float()[:, None].expand(-1, 4)
    adam = torch.optim.Adam(made.parameters(), 1e-2)
    for _ in range(150):
        loss = -made.log_prob(x, z).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    noise = torch.rand(400, made.noise(rng=torch_stream(0, "x")).numel(), generator=torch_stream(3, "noise"))
    with torch.no_grad():
        drawn = encoding.decode(made.sample(z, noise).numpy())
    for y in (0, 1):
        real, made_up = data.train.x[data.train.y == y], drawn[data.train.y == y]
        for column in range(1, 7):
            spread = np.nanstd(real[:, column]) + 0.1
            assert abs(np.nanmean(real[:, column]) - np.nanmean(made_up[:, column])) < 0.35 * spread
            gaps = [np.isnan(rows[:, column]).mean() for rows in (real, made_up)]
            assert abs(gaps[0] - gaps[1]) < 0.08
