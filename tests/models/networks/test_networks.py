"""One contract for every encoder and generator: shapes, random streams, and no global random state."""

import pytest
import torch

from synthsieve.data.dataset import InputSpec
from synthsieve.errors import ConfigError
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.modalities import Tower, make_array_encoder
from synthsieve.models.networks.convolutional import ResidualEncoder
from synthsieve.models.networks.layers import (
    BatchNorm2d,
    Dropout,
    ImageView,
    attach_rng,
    build,
    fixed_statistics,
    norm_layer,
    without_dropout,
)
from synthsieve.settings import ModelSettings, NetworkKind, Norm, View
from tests.errors import raises

IMAGES = [(3, 32, 32), (1, 28, 28), (1, 8, 8), (2, 12, 20)]
PAIRS = [
    {"encoder": "strided", "generator": "strided", "encoder_width": 8, "generator_width": 4},
    {"encoder": "wide-resnet", "encoder_depth": 10, "encoder_width": 1, "generator": "dcgan", "generator_width": 4},
    {"encoder": "wide-resnet", "encoder_depth": 10, "encoder_width": 1, "generator": "dcgan", "norm": "batch"},
    {"encoder": "residual", "encoder_width": 8, "generator": "strided", "generator_width": 4},
    {"encoder": "residual", "encoder_width": 4, "generator": "mlp", "norm": "batch", "view": "grey-contrast"},
    {"encoder": "mlp", "encoder_depth": 2, "generator": "mlp"},
    {"encoder": "strided", "encoder_width": 8, "label_latent_dim": 4, "label_width": 8, "view": "grey-contrast"},
]


def make(settings, shape, seed=0):
    chosen = ModelSettings.model_validate({"latent_dim": 12, "energy_width": 16, **settings})
    return GenerativeClassifier(chosen, shape, 10, rng=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("settings", PAIRS, ids=lambda s: f"{s.get('encoder')}-{s.get('generator')}")
@pytest.mark.parametrize("shape", IMAGES, ids=str)
def test_encoder_and_generator_shapes(settings, shape):
    model = make(settings, shape)
    x = torch.rand(3, *shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    q = model.posterior(x)
    z = q.sample(rng=torch.Generator().manual_seed(2))
    back = model.generator(z)
    assert z.shape == (3, 12)
    assert back.shape == x.shape
    assert back.abs().max() <= 1
    assert torch.allclose(model.predict_proba(x).sum(dim=1), torch.ones(3))


@pytest.mark.parametrize("kind", ["strided", "dcgan"])
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (2, 12, 20)], ids=str)
def test_a_generator_starts_at_the_mean_colour(kind, shape):
    model, mean = make({"generator": kind, "generator_width": 4}, shape), torch.linspace(-0.9, 0.5, shape[0])
    convolutions = [layer for layer in model.generator.network.layers if hasattr(layer, "kernel_size")]
    with torch.no_grad():
        convolutions[-1].weight.zero_()
    model.generator.start_at(mean)
    found = model.generator(torch.randn(2, 12, generator=torch.Generator().manual_seed(1)))
    assert torch.allclose(found, mean[:, None, None].expand(2, *shape), atol=1e-5)
    model.generator.start_at(torch.full((shape[0],), -1.0))  # a black image: tanh keeps a gradient
    assert torch.allclose(model.generator(torch.zeros(1, 12)), torch.tensor(-0.95), atol=1e-5)


def test_other_generators_start_as_they_are():
    for settings, shape in (({"generator": "mlp"}, (1, 8, 8)), ({}, (7,))):
        model, other = make(settings, shape), make(settings, shape)
        model.generator.start_at(torch.tensor([0.5]))
        x, y = (each.generator(torch.ones(1, 12)) for each in (model, other))
        assert torch.equal(x, y)
    spectrograms = GenerativeClassifier(
        ModelSettings(generator="strided", latent_dim=12), InputSpec("sound", (1, 8, 8)), 3, rng=torch.Generator()
    )
    before = spectrograms.generator(torch.ones(1, 12))
    spectrograms.generator.start_at(torch.tensor([0.5]))
    assert torch.equal(spectrograms.generator(torch.ones(1, 12)), before)


def test_vectors_use_mlps():
    model = make({"encoder_depth": 2}, (7,))
    assert model.generator(model.posterior(torch.zeros(4, 7)).mean).shape == (4, 7)


@pytest.mark.parametrize("settings", PAIRS, ids=lambda s: f"{s.get('encoder')}-{s.get('generator')}")
def test_weights_come_from_rng_only(settings):
    before = torch.get_rng_state()
    one, same, other = (make(settings, (1, 8, 8), seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)
    assert all(torch.isfinite(value).all() for value in one.values())


def test_style_outside_the_energy_does_not_change_the_class():
    settings = {"encoder": "mlp", "encoder_depth": 1, "label_latent_dim": 4, "style_in_energy": False}
    model = make(settings, (1, 8, 8))
    z = torch.randn(3, 12, generator=torch.Generator().manual_seed(1))
    other = torch.cat([z[:, :4], torch.zeros(3, 8)], dim=1)
    assert torch.equal(model.energy.class_logits(z), model.energy.class_logits(other))
    assert model.energy.visible == 4
    assert make({"encoder_depth": 1, "style_in_energy": False}, (7,)).energy.visible == 12  # one tower: all of z


def test_sides_that_are_not_multiples_of_four():
    with raises(ConfigError, "image-shape"):
        make({"encoder": "strided"}, (1, 30, 30))
    assert make({"encoder_depth": 1}, (1, 30, 30)).shape == (1, 30, 30)  # the default is an mlp


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"encoder": "dcgan"}, "network-kind"),
        ({"generator": "wide-resnet"}, "network-kind"),
        ({"generator": "residual"}, "network-kind"),
        ({"encoder": "wide-resnet", "encoder_depth": 12}, "network-depth"),
    ],
)
def test_invalid_networks(settings, code):
    with raises(ConfigError, code):
        make(settings, (1, 8, 8))


def test_contrast_view_is_invariant_to_brightness_and_contrast():
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    view = ImageView(View.GREY_CONTRAST, 3)
    seen = view(x)
    assert seen.shape == (2, 1, 8, 8)
    assert torch.allclose(seen.mean(dim=(1, 2, 3)), torch.zeros(2), atol=1e-5)
    louder = view(100 * x + 7)
    assert torch.allclose(louder.std(dim=(1, 2, 3)), torch.ones(2), atol=1e-2)
    assert torch.equal(ImageView(View.PLAIN, 3)(x), x)


def test_dropout_draws_from_its_rng():
    layer = Dropout(0.5)
    x = torch.ones(1000, 10)
    with pytest.raises(RuntimeError, match="attach_rng"):
        layer(x)
    attach_rng(layer, torch.Generator().manual_seed(0))
    first = layer(x)
    assert abs(first.mean().item() - 1) < 4 / 10000**0.5  # four standard errors
    assert set(first.unique().tolist()) == {0.0, 2.0}
    layer.eval()
    assert torch.equal(layer(x), x)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 8, 12, 16, 24, 96])
def test_group_norm_with_any_number_of_channels(channels):
    x = torch.rand(2, channels, 4, 4, generator=torch.Generator().manual_seed(0))
    assert norm_layer(Norm.GROUP, channels)(x).shape == x.shape


def test_without_dropout_nothing_is_dropped_and_no_random_number_is_drawn():
    layer, rng = Dropout(0.5), torch.Generator().manual_seed(0)
    attach_rng(layer, rng)
    x, before = torch.ones(10, 10), rng.get_state()
    with without_dropout(layer):
        assert torch.equal(layer(x), x)
    assert torch.equal(rng.get_state(), before)
    assert not torch.equal(layer(x), x)


@pytest.mark.parametrize("kind", ["mlp", "strided", "residual", "wide-resnet"])
def test_smoothness_sees_images_as_the_encoder_does(kind):
    tower = Tower(6, NetworkKind(kind), 4, View.GREY_CONTRAST)
    rng = torch.Generator().manual_seed(0)
    encoder = make_array_encoder(ModelSettings(encoder_depth=10), InputSpec.of((3, 8, 8)), tower, rng=rng)
    encoder.eval()
    x = torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    embedded = encoder.embed(x)
    assert embedded.shape == (5, 1, 8, 8)
    assert torch.allclose(embedded.std(dim=(1, 2, 3)), torch.ones(5), atol=0.2)
    assert torch.equal(encoder.forward_embedded(embedded), encoder(x))


def test_batch_norm_within_fixed_statistics():
    norm = BatchNorm2d(3).train()
    x = 5 + 2 * torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    with fixed_statistics(norm):
        moved = norm(x)
    assert torch.equal(norm.running_mean, torch.zeros(3))
    assert torch.equal(norm.running_var, torch.ones(3))
    assert norm.num_batches_tracked.item() == 0
    assert torch.allclose(norm(x), moved, atol=1e-6)  # the statistics of the batch in both
    assert torch.allclose(norm.running_mean, 0.1 * x.mean(dim=(0, 2, 3)), atol=1e-5)


def test_residual_encoder_depends_on_every_pixel():
    for shape in [(1, 8, 8), (3, 12, 20), (1, 28, 28)]:
        tower = build(
            lambda shape=shape: ResidualEncoder(shape, 5, width=4, norm=Norm.GROUP, view=View.PLAIN),
            rng=torch.Generator().manual_seed(0),
        )
        x = torch.rand(1, *shape, generator=torch.Generator().manual_seed(1)).requires_grad_()
        tower(x).square().sum().backward()
        assert (x.grad.abs().sum(dim=1) > 0).all()
