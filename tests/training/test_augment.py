"""Step 7: draw -> decode -> filter -> select, and every row drawn again from its seed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from synthsieve.data.modalities.encoding import ImageEncoding
from synthsieve.errors import ConfigError, SelectionError
from synthsieve.evaluation.predict import latents_and_logits
from synthsieve.models import generate
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.selection.entropy import Reason, entropy_of_logits
from synthsieve.settings import AugmentationSettings, ModelSettings, SamplingSettings
from synthsieve.training.augment import augment, draw_again, model_hash
from tests.errors import raises

ENCODING = ImageEncoding((1, 8, 8))
SAMPLING = SamplingSettings(num_steps=5)


def model(seed=0):
    settings = ModelSettings(latent_dim=4, encoder_width=8, generator_width=4, energy_width=8)
    made = GenerativeClassifier(settings, (1, 8, 8), 3, rng=torch.Generator().manual_seed(seed))
    with torch.no_grad():  # an untrained energy is nearly flat: this one has opinions
        for parameter in made.energy.parameters():
            parameter.mul_(4)
    return made.eval()


def made(seed=0, **settings):
    chosen = AugmentationSettings(**{"pool_size": 900, **settings})
    return augment(model(), ENCODING, settings=chosen, sampling=SAMPLING, seed=seed)


def logits_at_x(pool, rows):
    x = generate.decode(model(), ENCODING, pool.z[rows], pool.chain_seed[rows])
    return latents_and_logits(model(), ENCODING, x)[1]


def test_equal_classes_and_lowest_entropies_survive():
    pool, outcomes = made(keep_fraction=0.2, require_label=False)
    assert np.bincount(pool.y).tolist() == [300, 300, 300]
    assert outcomes.figures["survivors_per_class"] == [60, 60, 60]
    for label in range(3):
        own_values = pool.y == label
        kept = own_values & (pool.reason == Reason.KEPT)
        assert pool.entropy[kept].max() <= pool.entropy[own_values & ~kept].min()
    assert np.array_equal(pool.entropy[:50], entropy_of_logits(logits_at_x(pool, np.arange(50))))


def test_class_shares():
    chosen = AugmentationSettings(pool_size=900, keep_fraction=0.2, require_label=False)
    shares = np.array([0.5, 0.499, 0.001])
    pool, outcomes = augment(model(), ENCODING, settings=chosen, sampling=SAMPLING, seed=0, class_shares=shares)
    assert np.bincount(pool.y).tolist() == [450, 449, 1]
    assert outcomes.figures["survivors_per_class"] == [90, 90, 1]


def test_coreset_weights_add_up_to_the_survivors():
    pool, outcomes = made(coreset_fraction=0.1)
    figures = outcomes.figures
    for label in range(3):
        own_values = pool.y == label
        assert pool.weight[own_values].sum() == pytest.approx((own_values & (pool.reason == Reason.KEPT)).sum())
        ranks = pool.rank[own_values & (pool.weight > 0)]
        assert sorted(ranks) == list(range(len(ranks)))
    assert figures["selected_per_class"] == [round(0.1 * n) for n in figures["survivors_per_class"]]
    assert figures["gradient_error"] <= figures["gradient_bound"]
    assert figures["largest_weight"] == pool.weight.max()
    assert len(pool.x) == figures["selected"] == len(pool.selected)


def test_samples_predicted_as_another_class_are_rejected():
    pool = made(keep_fraction=1.0, coreset="everything")[0]
    predicted = logits_at_x(pool, np.arange(len(pool))).argmax(axis=1)
    assert 0 < (predicted != pool.y).sum() < len(pool)
    assert np.array_equal(pool.reason == Reason.OTHER_LABEL, predicted != pool.y)
    assert made(keep_fraction=1.0, coreset="everything", require_label=False)[1].figures["survivors"] == 900


@pytest.mark.parametrize("noise", [False, True])
def test_draw_again_gives_the_same_bytes(noise):
    pool = made(decode_noise=noise)[0]
    for place, row in enumerate(pool.selected[:4]):
        assert np.array_equal(draw_again(model(), ENCODING, pool, int(row)), pool.x[place])
    rejected = int(np.flatnonzero(pool.reason)[0])
    assert draw_again(model(), ENCODING, pool, rejected).shape == (1, 8, 8)


def test_the_pool_keeps_what_drawing_computed():
    pool, _ = augment(
        model(),
        ENCODING,
        settings=AugmentationSettings(pool_size=900),
        sampling=SAMPLING,
        seed=0,
        oracle=lambda x: x.reshape(len(x), -1).sum(axis=1) % 3,
    )
    z, logits = latents_and_logits(model(), ENCODING, pool.x)
    assert np.array_equal(pool.z_reencoded[pool.selected], z)
    assert np.array_equal(pool.logits_x[pool.selected], logits)
    with torch.no_grad():
        at_z = model().energy.class_logits(torch.from_numpy(pool.z)).numpy()
    np.testing.assert_allclose(pool.logits_z, at_z, rtol=1e-4, atol=1e-5)
    assert np.array_equal(pool.oracle_class[pool.selected], pool.x.reshape(len(pool.x), -1).sum(axis=1) % 3)
    assert pool.purity(pool.selected) == (pool.oracle_class == pool.y)[pool.selected].mean()
    alone = made()[0]
    assert alone.purity(alone.selected) is None


def test_draw_again_needs_the_same_weights():
    pool = made()[0]
    assert pool.origin["model_hash"] == model_hash(model())
    with raises(ConfigError, "other-model"):
        draw_again(model(seed=1), ENCODING, pool, 0)


def test_small_pool_is_part_of_a_large_one():
    small, large = made(pool_size=300)[0], made(pool_size=900)[0]
    assert np.array_equal(small.z.reshape(3, 100, 4), large.z.reshape(3, 300, 4)[:, :100])


def test_the_seed_decides_the_pool():
    one, two, other = made()[0], made()[0], made(seed=1)[0]
    assert all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("z", "x", "weight", "entropy"))
    assert not np.array_equal(one.z, other.z)


def test_entropy_at_z():
    pool = made(entropy_at="z")[0]
    with torch.no_grad():
        expected = entropy_of_logits(model().energy.class_logits(torch.from_numpy(pool.z)).numpy())
    assert np.allclose(pool.entropy, expected, rtol=1e-5)


@pytest.mark.parametrize("coreset", ["craig", "adacore"])
def test_gradient_sources_give_different_coresets(coreset):
    chosen = {
        source: tuple(made(coreset=coreset, gradients=source)[0].selected)
        for source in ("reencoded", "drawn", "last-layer")
    }
    assert len(set(chosen.values())) == 3


def test_adacore_keeps_its_averages():
    settings = AugmentationSettings(pool_size=300, coreset="adacore")
    _, first = augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0)
    _, again = augment(
        model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0, curvature_state=first.curvature_state
    )
    assert again.curvature_state.diagonal_updates == first.curvature_state.diagonal_updates + 1


def test_adacore_averages_gradients_of_the_same_latents_only():
    settings = AugmentationSettings(pool_size=300, coreset="adacore", keep_fraction=0.2, require_label=False)
    pool, first = augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0)

    def next_outcomes(seed, **more):
        options = {"curvature_state": first.curvature_state, **more}
        return augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=seed, **options)[1]

    other = next_outcomes(1)  # as many survivors, none of them the same
    assert other.curvature_state.gradients.shape == first.curvature_state.gradients.shape
    assert other.curvature_state.gradient_updates == 1
    _, alone = augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=1)
    assert np.array_equal(other.curvature_state.gradients, alone.curvature_state.gradients)
    assert next_outcomes(1, latents_of=pool).curvature_state.gradient_updates == 2


def test_herding_has_equal_weights_and_follows_the_reference():
    pool = made(coreset="herding", keep_fraction=1.0, require_label=False)[0]
    random = made(coreset="random", keep_fraction=1.0, require_label=False)[0]
    assert pool.weight.sum() == pytest.approx(len(pool))
    for label in np.unique(pool.y):
        assert len(set(pool.weight[pool.selected][pool.y[pool.selected] == label])) == 1
        everything = pool.z_reencoded[pool.y == label].mean(axis=0)

        def distance(some, label=label, everything=everything):
            rows = some.selected[some.y[some.selected] == label]
            return np.linalg.norm(some.z_reencoded[rows].mean(axis=0) - everything)

        assert distance(pool) < distance(random)  # without a fitted reference the samples themselves are followed
    assert (
        made(coreset="herding", keep_fraction=1.0, require_label=False)[0].selected.tolist() == pool.selected.tolist()
    )


def test_random_coreset_has_equal_weights():
    pool = made(coreset="random", keep_fraction=1.0, require_label=False)[0]
    assert np.bincount(pool.y[pool.selected]).tolist() == [30, 30, 30]
    assert set(pool.weight[pool.selected]) == {10.0}


def test_absolute_ceiling():
    half = float(np.median(made()[0].entropy))
    pool = made(entropy_ceiling=half, require_label=False, coreset="everything")[0]
    assert np.array_equal(pool.entropy < half, pool.reason == Reason.KEPT)
    with raises(SelectionError, "no-survivors"):
        made(entropy_ceiling=1e-30)


def test_auto_ceiling_is_best_on_validation():
    settings = AugmentationSettings(pool_size=300, entropy_ceiling="auto", coreset="everything")
    seen = []

    def try_pool(pool):
        seen.append(len(pool.selected))
        return -abs(len(pool.selected) - 60)

    pool, outcomes = augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0, try_pool=try_pool)
    assert abs(len(pool.selected) - 60) == min(abs(n - 60) for n in seen)
    assert len(outcomes.figures["ceilings_tried"]) == len(seen) > 3
    with raises(ConfigError, "no-validation"):
        augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0)


def test_latents_of_an_earlier_pool_are_scored_again():
    first = made()[0]
    settings = AugmentationSettings(pool_size=900)
    again = augment(model(seed=1), ENCODING, settings=settings, sampling=SAMPLING, seed=9, latents_of=first)[0]
    assert np.array_equal(again.z, first.z)
    assert not np.array_equal(again.entropy, first.entropy)
    with raises(ConfigError, "other-model"):
        draw_again(model(seed=1), ENCODING, again, 0)
    third = augment(model(seed=2), ENCODING, settings=settings, sampling=SAMPLING, seed=9, latents_of=again)[0]
    assert third.origin["latents_of"] == again.origin["latents_of"] == model_hash(model())


MEMORY = """
import torch
from synthsieve.data.modalities.encoding import ImageEncoding
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.settings import AugmentationSettings, ModelSettings, SamplingSettings
from synthsieve.training.augment import augment
def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status", encoding="utf-8") if line.startswith(name))
torch.set_num_threads(1)
before = kilobytes("VmRSS")
model = GenerativeClassifier(
    ModelSettings(latent_dim=48, encoder="strided", encoder_width=2, generator="strided", generator_width=2),
    (3, 32, 32), 10, rng=torch.Generator().manual_seed(0))
settings = AugmentationSettings(pool_size=200_000, gradients="last-layer", require_label=False)
pool, _ = augment(model, ImageEncoding((3, 32, 32)), settings=settings, sampling=SamplingSettings(num_steps=60), seed=0)
assert len(pool.survivors) == 60_000 and len(pool.selected) == 6_000
# Not getrusage: that of a child begins at what its parent once held, and a parent may have held all of SVHN.
print(kilobytes("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_of_200000_samples_is_below_2_gb():
    messages = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert int(messages.stdout) * 1024 < 2e9
