"""Drawing: balanced, repeatable, each chain from a seed of its own."""

import numpy as np
import pytest
import torch

from synthsieve import drawing
from synthsieve.config import ModelSettings
from synthsieve.data.encoding import ImageEncoding
from synthsieve.drawing import class_indices, draw_samples
from synthsieve.errors import ConfigError
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.sampling.langevin import LangevinSettings

CHAINS = LangevinSettings(num_steps=5)


def model():
    settings = ModelSettings(latent_dim=4, encoder_width=8, generator_width=4, energy_width=8)
    return GenerativeClassifier(settings, (1, 8, 8), 3, generator=torch.Generator().manual_seed(0))


def draw(seed=0, **more):
    return draw_samples(model(), ImageEncoding((1, 8, 8)), per_class=7, chains=CHAINS, seed=seed, **more)


def test_equal_numbers_of_each_class_and_the_source_s_own_pixels():
    drawn = draw()
    assert np.bincount(drawn.y).tolist() == [7, 7, 7]
    assert drawn.x.dtype == np.uint8
    assert drawn.x.shape == (21, 1, 8, 8)
    assert drawn.z.shape == (21, 4)


def test_same_seed_same_bytes():
    assert np.array_equal(draw().x, draw().x)
    assert not np.array_equal(draw().z, draw(seed=1).z)


@pytest.mark.parametrize("classes", [(0,), (2,), (0, 2), (2, 1)])
def test_samples_of_a_class_are_the_same_whichever_others_are_drawn(classes):
    every, some = draw(noise=True), draw(noise=True, classes=classes)
    rows = np.isin(every.y, classes)
    for name in ("x", "y", "z", "chain_seed"):
        assert np.array_equal(getattr(some, name), getattr(every, name)[rows])


def test_more_samples_than_memory_holds_are_refused_before_any_is_drawn():
    with pytest.raises(ConfigError, match="draw fewer"):
        draw_samples(model(), ImageEncoding((1, 8, 8)), per_class=10**12, chains=CHAINS, seed=0)


def test_classes_are_found_by_name_and_an_unknown_one_is_told_the_nearest():
    assert class_indices(["spam", "ham", "spam"], ("eggs", "ham", "spam")) == (1, 2)
    assert class_indices([9, "3"], (3.0, 9.0, "3")) == (1, 2)
    with pytest.raises(ConfigError, match="did you mean 'spam'"):
        class_indices(["spma"], ("eggs", "ham", "spam"))
    with pytest.raises(ConfigError, match="'eggs', 'ham'"):
        class_indices(["xyzzy"], ("eggs", "ham"))
    with pytest.raises(ConfigError, match="at least one class"):
        class_indices([], ("eggs", "ham"))


def test_noise_is_an_option():
    assert np.array_equal(draw().z, draw(noise=True).z)
    assert not np.array_equal(draw().x, draw(noise=True).x)


def test_any_sample_comes_again_bit_for_bit_from_its_own_seed():
    drawn = draw(noise=True)
    for row in (0, 9, 20):
        alone = slice(row, row + 1)
        z = drawing.draw_latents(model(), drawn.y[alone], drawn.chain_seed[alone], chains=CHAINS)
        x = drawing.decode(model(), ImageEncoding((1, 8, 8)), z, drawn.chain_seed[alone], noise=True)
        assert np.array_equal(z[0], drawn.z[row])
        assert np.array_equal(x[0], drawn.x[row])


def test_the_chains_of_a_small_pool_are_among_those_of_a_larger_one():
    small, large = np.repeat([0, 1, 2], 4), np.repeat([0, 1, 2], 9)
    seeds = drawing.chain_seeds(3, large)
    assert len(set(seeds.tolist())) == 27
    assert np.array_equal(drawing.chain_seeds(3, small).reshape(3, 4), seeds.reshape(3, 9)[:, :4])


def test_draws_of_a_class_follow_the_explicit_sampler_s_law():
    generator = torch.Generator().manual_seed(1)
    prior = model().prior
    y = torch.full((4000,), 1)
    explicit = drawing.langevin.run(
        prior.conditional(y), prior.reference_sample(4000, generator=generator), settings=CHAINS, generator=generator
    ).z
    z = torch.from_numpy(drawing.draw_latents(model(), y.numpy(), drawing.chain_seeds(0, y.numpy()), chains=CHAINS))
    error = (explicit.var(dim=0) / 2000).sqrt()  # of a difference of two means of 4,000
    assert ((z.mean(dim=0) - explicit.mean(dim=0)).abs() < 4 * error).all()
    assert torch.allclose(z.var(dim=0), explicit.var(dim=0), rtol=4 * (2 * 2 / 4000) ** 0.5)


def test_arrays_come_back_without_pickle(tmp_path):
    drawn = draw()
    drawn.write(tmp_path / "a.npz", ("x", "y", "z"))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as stored:
        assert stored["classes"].tolist() == ["x", "y", "z"]
        assert np.array_equal(stored["x"], drawn.x)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
