"""Step 7: draw -> decode -> filter -> select, and every row drawn again from its seed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from synthsieve.augmentation import augment, draw_again, model_hash
from synthsieve.config import AugmentationSettings, ModelSettings, SamplingSettings
from synthsieve.data.encoding import ImageEncoding
from synthsieve.entropy import Reason, entropy_of_logits
from synthsieve.errors import ConfigError, SelectionError
from synthsieve.model.classifier import GenerativeClassifier

ENCODING = ImageEncoding((1, 8, 8))
SAMPLING = SamplingSettings(num_steps=5)


def model(seed=0):
    settings = ModelSettings(latent_dim=4, encoder_width=8, generator_width=4, energy_width=8)
    made = GenerativeClassifier(settings, (1, 8, 8), 3, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():  # an untrained energy is nearly flat: this one has opinions
        for parameter in made.energy.parameters():
            parameter.mul_(4)
    return made.eval()


def made(seed=0, **settings):
    chosen = AugmentationSettings(**{"pool_size": 900, **settings})
    return augment(model(), ENCODING, settings=chosen, sampling=SAMPLING, seed=seed)


def logits_at_x(pool, rows):
    from synthsieve import drawing

    x = drawing.decode(model(), ENCODING, pool.z[rows], pool.chain_seed[rows])
    with torch.no_grad():
        return model().predict_logits(torch.from_numpy(ENCODING.encode(x))).numpy()


def test_equal_numbers_are_drawn_and_the_surest_of_each_class_survive():
    done = made(keep_fraction=0.2, require_asked_class=False)
    pool = done.pool
    assert np.bincount(pool.y).tolist() == [300, 300, 300]
    assert done.figures["survivors_per_class"] == [60, 60, 60]
    for label in range(3):
        mine = pool.y == label
        kept = mine & (pool.reason == Reason.KEPT)
        assert pool.entropy[kept].max() <= pool.entropy[mine & ~kept].min()
    assert np.allclose(pool.entropy[:50], entropy_of_logits(logits_at_x(pool, np.arange(50))))


def test_classes_can_be_drawn_in_given_shares():
    chosen = AugmentationSettings(pool_size=900, keep_fraction=0.2, require_asked_class=False)
    shares = np.array([0.5, 0.499, 0.001])
    done = augment(model(), ENCODING, settings=chosen, sampling=SAMPLING, seed=0, class_shares=shares)
    assert np.bincount(done.pool.y).tolist() == [450, 449, 1]
    assert done.figures["survivors_per_class"] == [90, 90, 1]


def test_a_coreset_stands_for_all_survivors():
    done = made(coreset_fraction=0.1)
    pool, figures = done.pool, done.figures
    for label in range(3):
        mine = pool.y == label
        assert pool.weight[mine].sum() == pytest.approx((mine & (pool.reason == Reason.KEPT)).sum())
        ranks = pool.rank[mine & (pool.weight > 0)]
        assert sorted(ranks) == list(range(len(ranks)))
    assert figures["selected_per_class"] == [round(0.1 * n) for n in figures["survivors_per_class"]]
    assert figures["gradient_error"] <= figures["gradient_bound"]
    assert figures["largest_weight"] == pool.weight.max()
    assert len(pool.x) == figures["selected"] == len(pool.selected)


def test_a_sample_that_became_another_class_is_rejected_and_the_reason_kept():
    pool = made(keep_fraction=1.0, coreset="everything").pool
    predicted = logits_at_x(pool, np.arange(len(pool))).argmax(axis=1)
    assert 0 < (predicted != pool.y).sum() < len(pool)
    assert np.array_equal(pool.reason == Reason.OTHER_LABEL, predicted != pool.y)
    assert made(keep_fraction=1.0, coreset="everything", require_asked_class=False).figures["survivors"] == 900


@pytest.mark.parametrize("noise", [False, True])
def test_every_row_is_drawn_again_from_its_seed_bit_for_bit(noise):
    pool = made(decode_noise=noise).pool
    for place, row in enumerate(pool.selected[:4]):
        assert np.array_equal(draw_again(model(), ENCODING, pool, int(row)), pool.x[place])
    rejected = int(np.flatnonzero(pool.reason)[0])
    assert draw_again(model(), ENCODING, pool, rejected).shape == (1, 8, 8)


def test_drawing_again_needs_the_same_weights():
    pool = made().pool
    assert pool.origin["model_hash"] == model_hash(model())
    with pytest.raises(ConfigError, match="drawn from other weights"):
        draw_again(model(seed=1), ENCODING, pool, 0)


def test_a_small_pool_is_part_of_a_large_one():
    small, large = made(pool_size=300).pool, made(pool_size=900).pool
    assert np.array_equal(small.z.reshape(3, 100, 4), large.z.reshape(3, 300, 4)[:, :100])


def test_the_same_seed_gives_the_same_pool_and_another_seed_another():
    one, two, other = made().pool, made().pool, made(seed=1).pool
    assert all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("z", "x", "weight", "entropy"))
    assert not np.array_equal(one.z, other.z)


def test_entropy_can_be_measured_at_the_drawn_latent():
    pool = made(entropy_at="z").pool
    with torch.no_grad():
        expected = entropy_of_logits(model().energy.class_logits(torch.from_numpy(pool.z)).numpy())
    assert np.allclose(pool.entropy, expected, rtol=1e-5)


@pytest.mark.parametrize("coreset", ["craig", "adacore"])
def test_coresets_differ_by_the_gradient_they_are_chosen_by(coreset):
    chosen = {
        source: tuple(made(coreset=coreset, gradients=source).pool.selected)
        for source in ("reencoded", "drawn", "last-layer")
    }
    assert len(set(chosen.values())) == 3


def test_adacore_carries_its_averages_on():
    settings = AugmentationSettings(pool_size=300, coreset="adacore")
    first = augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0)
    again = augment(
        model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0, curvature_state=first.curvature_state
    )
    assert again.curvature_state.diagonal_updates == first.curvature_state.diagonal_updates + 1


def test_adacore_averages_gradients_only_where_the_same_latents_survive_again():
    settings = AugmentationSettings(pool_size=300, coreset="adacore", keep_fraction=0.2, require_asked_class=False)
    first = augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0)

    def next_choice(seed, **more):
        options = {"curvature_state": first.curvature_state, **more}
        return augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=seed, **options)

    other = next_choice(1)  # as many survivors, none of them the same
    assert other.curvature_state.gradients.shape == first.curvature_state.gradients.shape
    assert other.curvature_state.gradient_updates == 1
    alone = augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=1)
    assert np.array_equal(other.curvature_state.gradients, alone.curvature_state.gradients)
    assert next_choice(1, latents_of=first.pool).curvature_state.gradient_updates == 2


def test_a_random_tenth_has_equal_weights_within_a_class():
    pool = made(coreset="random", keep_fraction=1.0, require_asked_class=False).pool
    assert np.bincount(pool.y[pool.selected]).tolist() == [30, 30, 30]
    assert set(pool.weight[pool.selected]) == {10.0}


def test_an_absolute_ceiling_replaces_the_fraction_and_starves_in_one_sentence():
    half = float(np.median(made().pool.entropy))
    pool = made(entropy_ceiling=half, require_asked_class=False, coreset="everything").pool
    assert np.array_equal(pool.entropy < half, pool.reason == Reason.KEPT)
    with pytest.raises(SelectionError, match=r"no sample under entropy_ceiling=1e-30 \(lowest was"):
        made(entropy_ceiling=1e-30)


def test_auto_takes_the_ceiling_that_validation_likes_best():
    settings = AugmentationSettings(pool_size=300, entropy_ceiling="auto", coreset="everything")
    seen = []

    def try_pool(pool):
        seen.append(len(pool.selected))
        return -abs(len(pool.selected) - 60)

    done = augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0, try_pool=try_pool)
    assert abs(len(done.pool.selected) - 60) == min(abs(n - 60) for n in seen)
    assert len(done.figures["ceilings_tried"]) == len(seen) > 3
    with pytest.raises(ConfigError, match="needs validation rows"):
        augment(model(), ENCODING, settings=settings, sampling=SAMPLING, seed=0)


def test_the_first_pool_s_latents_can_be_judged_anew():
    first = made().pool
    settings = AugmentationSettings(pool_size=900)
    again = augment(model(seed=1), ENCODING, settings=settings, sampling=SAMPLING, seed=9, latents_of=first).pool
    assert np.array_equal(again.z, first.z)
    assert not np.array_equal(again.entropy, first.entropy)
    with pytest.raises(ConfigError, match="latents came from an earlier model"):
        draw_again(model(seed=1), ENCODING, again, 0)
    third = augment(model(seed=2), ENCODING, settings=settings, sampling=SAMPLING, seed=9, latents_of=again).pool
    assert third.origin["latents_of"] == again.origin["latents_of"] == model_hash(model())


MEMORY = """
import torch
from synthsieve.augmentation import augment
from synthsieve.config import AugmentationSettings, ModelSettings, SamplingSettings
from synthsieve.data.encoding import ImageEncoding
from synthsieve.model.classifier import GenerativeClassifier
def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status", encoding="utf-8") if line.startswith(name))
torch.set_num_threads(1)
before = kilobytes("VmRSS")
model = GenerativeClassifier(
    ModelSettings(latent_dim=48, encoder="strided", encoder_width=2, generator="strided", generator_width=2),
    (3, 32, 32), 10, generator=torch.Generator().manual_seed(0))
settings = AugmentationSettings(pool_size=200_000, gradients="last-layer", require_asked_class=False)
done = augment(model, ImageEncoding((3, 32, 32)), settings=settings, sampling=SamplingSettings(num_steps=60), seed=0)
assert done.figures["survivors"] == 60_000 and done.figures["selected"] == 6_000
# Not getrusage: that of a child begins at what its parent once held, and a parent may have held all of SVHN.
print(kilobytes("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_two_hundred_thousand_samples_fit_in_two_gigabytes_beyond_the_program():
    told = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, encoding="utf-8")
    assert int(told.stdout) * 1024 < 2e9
