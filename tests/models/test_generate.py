"""Drawing: balanced, repeatable, each chain from a seed of its own."""

import numpy as np
import pytest
import torch

from synthsieve.data.modalities.encoding import ImageEncoding
from synthsieve.errors import ConfigError
from synthsieve.models import generate
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.generate import class_indices, draw_samples
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.settings import ModelSettings
from tests.errors import raises

CHAINS = LangevinSettings(num_steps=5)


def model():
    settings = ModelSettings(latent_dim=4, encoder_width=8, generator_width=4, energy_width=8)
    return GenerativeClassifier(settings, (1, 8, 8), 3, rng=torch.Generator().manual_seed(0))


def draw(seed=0, **more):
    return draw_samples(model(), ImageEncoding((1, 8, 8)), per_class=7, chains=CHAINS, seed=seed, **more)


def test_equal_classes_in_the_form_of_the_source():
    drawn = draw()
    assert np.bincount(drawn.y).tolist() == [7, 7, 7]
    assert drawn.x.dtype == np.uint8
    assert drawn.x.shape == (21, 1, 8, 8)
    assert drawn.z.shape == (21, 4)


def test_same_seed_same_bytes():
    assert np.array_equal(draw().x, draw().x)
    assert not np.array_equal(draw().z, draw(seed=1).z)


@pytest.mark.parametrize("classes", [(0,), (2,), (0, 2), (2, 1)])
def test_samples_of_a_class_do_not_depend_on_other_classes(classes):
    every, some = draw(noise=True), draw(noise=True, classes=classes)
    rows = np.isin(every.y, classes)
    for name in ("x", "y", "z", "chain_seed"):
        assert np.array_equal(getattr(some, name), getattr(every, name)[rows])


def test_more_samples_than_memory_are_refused():
    with raises(ConfigError, "too-many-samples"):
        draw_samples(model(), ImageEncoding((1, 8, 8)), per_class=10**12, chains=CHAINS, seed=0)


def test_classes_by_name():
    assert class_indices(["spam", "ham", "spam"], ("eggs", "ham", "spam")) == (1, 2)
    assert class_indices([9, "3"], (3.0, 9.0, "3")) == (1, 2)
    with raises(ConfigError, "unknown-class") as caught:
        class_indices(["spma"], ("eggs", "ham", "spam"))
    assert "'spam'" in str(caught.value)
    with raises(ConfigError, "unknown-class") as caught:
        class_indices(["xyzzy"], ("eggs", "ham"))
    assert "'eggs', 'ham'" in str(caught.value)
    with raises(ConfigError, "no-classes"):
        class_indices([], ("eggs", "ham"))


def test_noise_is_an_option():
    assert np.array_equal(draw().z, draw(noise=True).z)
    assert not np.array_equal(draw().x, draw(noise=True).x)


def test_any_sample_is_drawn_again_from_its_seed():
    drawn = draw(noise=True)
    for row in (0, 9, 20):
        alone = slice(row, row + 1)
        z = generate.draw_latents(model(), drawn.y[alone], drawn.chain_seed[alone], chains=CHAINS)
        x = generate.decode(model(), ImageEncoding((1, 8, 8)), z, drawn.chain_seed[alone], noise=True)
        assert np.array_equal(z[0], drawn.z[row])
        assert np.array_equal(x[0], drawn.x[row])


def test_chain_seeds_of_a_small_pool_are_among_those_of_a_larger_one():
    small, large = np.repeat([0, 1, 2], 4), np.repeat([0, 1, 2], 9)
    seeds = generate.chain_seeds(3, large)
    assert len(set(seeds.tolist())) == 27
    assert np.array_equal(generate.chain_seeds(3, small).reshape(3, 4), seeds.reshape(3, 9)[:, :4])


def test_same_distribution_as_one_langevin_run():
    rng = torch.Generator().manual_seed(1)
    prior = model().prior
    y = torch.full((4000,), 1)
    explicit = generate.langevin.run(
        prior.conditional(y), prior.reference_sample(4000, rng=rng), settings=CHAINS, rng=rng
    ).z
    z = torch.from_numpy(generate.draw_latents(model(), y.numpy(), generate.chain_seeds(0, y.numpy()), chains=CHAINS))
    error = (explicit.var(dim=0) / 2000).sqrt()  # of a difference of two means of 4,000
    assert ((z.mean(dim=0) - explicit.mean(dim=0)).abs() < 4 * error).all()
    assert torch.allclose(z.var(dim=0), explicit.var(dim=0), rtol=4 * (2 * 2 / 4000) ** 0.5)


def test_written_without_pickle(tmp_path):
    drawn = draw()
    drawn.write(tmp_path / "a.npz", ("x", "y", "z"))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as stored:
        assert stored["classes"].tolist() == ["x", "y", "z"]
        assert np.array_equal(stored["x"], drawn.x)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
