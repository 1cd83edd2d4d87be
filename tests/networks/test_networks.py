"""One contract for every encoder and generator: shapes, streams, and no global generator."""

import pytest
import torch

from synthsieve.config import ModelSettings, Norm, View
from synthsieve.errors import ConfigError
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.networks.layers import (
    BatchNorm2d,
    Dropout,
    IdentityConv2d,
    ImageView,
    attach_generator,
    build,
    fixed_statistics,
    norm_layer,
)
from synthsieve.networks.residual import ResidualEncoder

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
    return GenerativeClassifier(chosen, shape, 10, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("settings", PAIRS, ids=lambda s: f"{s.get('encoder')}-{s.get('generator')}")
@pytest.mark.parametrize("shape", IMAGES, ids=str)
def test_every_pair_maps_there_and_back(settings, shape):
    model = make(settings, shape)
    x = torch.rand(3, *shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    q = model.posterior(x)
    z = q.sample(generator=torch.Generator().manual_seed(2))
    back = model.generator(z)
    assert z.shape == (3, 12)
    assert back.shape == x.shape
    assert back.abs().max() <= 1
    assert torch.allclose(model.predict_proba(x).sum(dim=1), torch.ones(3))


def test_flat_vectors_go_through_mlps():
    model = make({"encoder_depth": 2}, (7,))
    assert model.generator(model.posterior(torch.zeros(4, 7)).mean).shape == (4, 7)


@pytest.mark.parametrize("settings", PAIRS, ids=lambda s: f"{s.get('encoder')}-{s.get('generator')}")
def test_weights_come_from_the_generator_alone(settings):
    before = torch.get_rng_state()
    one, same, other = (make(settings, (1, 8, 8), seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)
    assert all(torch.isfinite(value).all() for value in one.values())


def test_style_hidden_from_the_energy_cannot_change_the_class():
    settings = {"encoder": "mlp", "encoder_depth": 1, "label_latent_dim": 4, "style_in_energy": False}
    model = make(settings, (1, 8, 8))
    z = torch.randn(3, 12, generator=torch.Generator().manual_seed(1))
    other = torch.cat([z[:, :4], torch.zeros(3, 8)], dim=1)
    assert torch.equal(model.energy.class_logits(z), model.energy.class_logits(other))
    assert model.energy.visible == 4
    assert make({"encoder_depth": 1, "style_in_energy": False}, (7,)).energy.visible == 12  # one tower: all of z


def test_sides_that_are_not_multiples_of_four_are_refused_with_a_way_out():
    with pytest.raises(ConfigError, match=r"multiples of 4, got \(1, 30, 30\): pad or resize"):
        make({"encoder": "strided"}, (1, 30, 30))
    assert make({"encoder_depth": 1}, (1, 30, 30)).shape == (1, 30, 30)  # left alone, an mlp is chosen


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"encoder": "dcgan"}, "model.encoder can be"),
        ({"generator": "wide-resnet"}, "model.generator can be"),
        ({"generator": "residual"}, "model.generator can be"),
        ({"encoder": "wide-resnet", "encoder_depth": 12}, "depth is 6 n [+] 4"),
    ],
)
def test_networks_in_the_wrong_place(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        make(settings, (1, 8, 8))


def test_contrast_view_forgets_brightness_and_contrast():
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    view = ImageView(View.GREY_CONTRAST, 3)
    seen = view(x)
    assert seen.shape == (2, 1, 8, 8)
    assert torch.allclose(seen.mean(dim=(1, 2, 3)), torch.zeros(2), atol=1e-5)
    louder = view(100 * x + 7)
    assert torch.allclose(louder.std(dim=(1, 2, 3)), torch.ones(2), atol=1e-2)
    assert torch.equal(ImageView(View.PLAIN, 3)(x), x)


def test_dropout_draws_from_its_own_generator():
    layer = Dropout(0.5)
    x = torch.ones(1000, 10)
    with pytest.raises(RuntimeError, match="attach_generator"):
        layer(x)
    attach_generator(layer, torch.Generator().manual_seed(0))
    first = layer(x)
    assert abs(first.mean().item() - 1) < 4 / 10000**0.5  # four standard errors
    assert set(first.unique().tolist()) == {0.0, 2.0}
    layer.eval()
    assert torch.equal(layer(x), x)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 8, 12, 16, 24, 96])
def test_group_norm_fits_any_number_of_channels(channels):
    x = torch.rand(2, channels, 4, 4, generator=torch.Generator().manual_seed(0))
    assert norm_layer(Norm.GROUP, channels)(x).shape == x.shape


@pytest.mark.parametrize(("before", "after"), [(4, 4), (3, 7), (7, 3)])
def test_an_identity_convolution_passes_its_first_channels_on(before, after):
    conv = build(lambda: IdentityConv2d(before, after, 3, 1, 1, bias=False), generator=torch.Generator().manual_seed(0))
    x = torch.rand(2, before, 5, 6, generator=torch.Generator().manual_seed(1))
    same = min(before, after)
    assert torch.allclose(conv(x)[:, :same], x[:, :same], atol=1e-6)


def test_batch_norm_remembers_only_what_it_sees_outside_fixed_statistics():
    norm = BatchNorm2d(3).train()
    x = 5 + 2 * torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    with fixed_statistics(norm):
        moved = norm(x)
    assert torch.equal(norm.running_mean, torch.zeros(3))
    assert torch.equal(norm.running_var, torch.ones(3))
    assert norm.num_batches_tracked.item() == 0
    assert torch.allclose(norm(x), moved, atol=1e-6)  # the statistics of the batch in both
    assert torch.allclose(norm.running_mean, 0.1 * x.mean(dim=(0, 2, 3)), atol=1e-5)


def test_a_residual_tower_sees_every_pixel():
    for shape in [(1, 8, 8), (3, 12, 20), (1, 28, 28)]:
        tower = build(
            lambda shape=shape: ResidualEncoder(shape, 5, width=4, norm=Norm.GROUP, view=View.PLAIN),
            generator=torch.Generator().manual_seed(0),
        )
        x = torch.rand(1, *shape, generator=torch.Generator().manual_seed(1)).requires_grad_()
        tower(x).square().sum().backward()
        assert (x.grad.abs().sum(dim=1) > 0).all()
