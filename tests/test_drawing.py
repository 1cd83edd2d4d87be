"""Drawing: balanced, repeatable, and each block on its own stream."""

import numpy as np
import torch

from synthsieve import drawing
from synthsieve.config import ModelSettings
from synthsieve.data.encoding import ImageEncoding
from synthsieve.drawing import draw_samples
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


def test_noise_is_an_option():
    assert np.array_equal(draw().z, draw(noise=True).z)
    assert not np.array_equal(draw().x, draw(noise=True).x)


def test_a_block_depends_on_its_place_alone(monkeypatch):
    monkeypatch.setattr(drawing, "BLOCK", 8)
    drawn = draw()
    generator = drawing.torch_stream(0, "draw/8")
    prior = model().prior
    start = prior.reference_sample(8, generator=generator)
    y = torch.from_numpy(drawn.y[8:16])
    z = drawing.langevin.run(prior.conditional(y), start, settings=CHAINS, generator=generator).z
    assert np.array_equal(drawn.z[8:16], z.numpy())


def test_arrays_come_back_without_pickle(tmp_path):
    drawn = draw()
    drawn.write(tmp_path / "a.npz", ("x", "y", "z"))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as stored:
        assert stored["classes"].tolist() == ["x", "y", "z"]
        assert np.array_equal(stored["x"], drawn.x)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
