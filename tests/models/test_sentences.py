"""p(sentence given z): normalized over all sentences, and samples follow it."""

import base64
from itertools import product

import numpy as np
import pytest
import torch

from synthsieve.data.dataset import InputSpec
from synthsieve.errors import ConfigError
from synthsieve.io.random_streams import torch_stream
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.settings import ModelSettings, load_settings
from synthsieve.training.state import init
from tests.errors import raises

LENGTH, WORDS, LATENTS = 3, 7, 2  # three words beside pad, bos, unk and end


def input_spec(length=LENGTH, words=WORDS):
    vectors = np.random.default_rng(0).normal(size=(words, 4)).astype("<f2")
    return InputSpec("text", (length,), (words, 0, 1, 3, 2, base64.b64encode(vectors.tobytes()).decode()))


def model(**settings):
    chosen = ModelSettings(latent_dim=LATENTS, generator_width=6, encoder_width=6, **settings)
    return GenerativeClassifier(chosen, input_spec(), 2, rng=torch_stream(0, "weights")).eval()


def all_sentences():
    """Every sentence there can be: words, then the end, or as many words as fit."""
    found = []
    for count in range(LENGTH + 1):
        for words in product((2, 4, 5, 6), repeat=count):
            ended = [*words, 3][:LENGTH]
            found.append(ended + [0] * (LENGTH - len(ended)))
    return torch.tensor(found)


@torch.no_grad()
def stepwise(generator, x, z):
    """log p of one sentence, a word at a time."""
    network, total = generator.network, 0.0
    state, word = network.first_state(z), torch.tensor([[1]])
    for number in x.tolist():
        if number == 0:
            break
        known, state = network.states(word, z, state)
        total += float(network.log_probs(known[:, 0])[0, number - 2])
        word = torch.tensor([[number]])
    return total


def test_the_probabilities_of_all_sentences_sum_to_one():
    generator, sentences = model().generator, all_sentences()
    for z in torch.randn(5, LATENTS, generator=torch_stream(0, "z")):
        total = generator.log_prob(sentences, z.expand(len(sentences), -1)).exp().sum()
        assert total.item() == pytest.approx(1, abs=1e-5)


def test_log_prob_is_the_sum_over_words():
    generator, sentences = model().generator, all_sentences()[::7]
    z = torch.randn(len(sentences), LATENTS, generator=torch_stream(0, "z"))
    wanted = [stepwise(generator, x, one[None]) for x, one in zip(sentences, z, strict=True)]
    np.testing.assert_allclose(generator.log_prob(sentences, z).detach().numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_samples_have_the_right_frequencies():
    """Given that no word is unknown at each step, p(x) = prod p(word) / (1 - p(unknown))."""
    generator, draws = model().generator, 20_000
    z = torch.tensor([[0.5, -1.0]])
    noise = torch.rand(draws, LENGTH, generator=torch_stream(0, "noise"))
    drawn = generator.sample(z.expand(draws, -1), noise)
    kinds, counts = torch.unique(drawn, dim=0, return_counts=True)
    assert (kinds != 2).all()
    assert (kinds != 1).all()
    expected = np.array([np.exp(known_log_prob(generator, x, z)) for x in kinds])
    assert expected.sum() == pytest.approx(1, abs=1e-3)
    error = np.sqrt(draws * expected * (1 - expected))
    assert (np.abs(counts.numpy() - draws * expected) < 4.5 * error + 1).all()


@torch.no_grad()
def known_log_prob(generator, x, z):
    network, total = generator.network, 0.0
    state, word = network.first_state(z), torch.tensor([[1]])
    for number in x.tolist():
        if number == 0:
            break
        known, state = network.states(word, z, state)
        log_probs = network.log_probs(known[:, 0])[0].double()
        total += float(log_probs[number - 2] - torch.log1p(-log_probs[0].exp()))
        word = torch.tensor([[number]])
    return total


def test_padding_follows_the_end():
    generator = model().generator
    z = torch.randn(200, LATENTS, generator=torch_stream(0, "z"))
    for x in (generator(z), generator.sample(z, torch.rand(200, LENGTH, generator=torch_stream(0, "noise")))):
        assert x.dtype == torch.int64
        ended = (x == 3).cumsum(dim=1)
        assert (x[(ended > 0) & (x != 3)] == 0).all()
        assert (ended <= 1).all()
        assert (x[ended == 0] >= 2).all()


def test_extreme_noise_gives_a_word():
    generator = model().generator
    z = torch.zeros(2, LATENTS)
    noise = torch.tensor([[0.0] * LENGTH, [float(np.nextafter(np.float32(1), np.float32(0)))] * LENGTH])
    assert (generator.sample(z, noise)[:, 0] >= 3).all()


def test_forward_takes_the_most_probable_word():
    generator = model().generator
    z = torch.randn(1, LATENTS, generator=torch_stream(1, "z"))
    known, _ = generator.network.states(torch.tensor([[1]]), z, generator.network.first_state(z))
    assert generator(z)[0, 0] == generator.network.log_probs(known[:, 0]).argmax() + 2


def test_training_raises_the_probability():
    whole = model()
    x, z = torch.tensor([[4, 5, 3], [6, 3, 0]]), torch.eye(2)
    optimiser = torch.optim.Adam(whole.generator.parameters(), lr=0.02)
    for _ in range(150):
        optimiser.zero_grad()
        loss = -whole.generator.log_prob(x, z).mean()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.3
    assert whole.generator(z).tolist() == x.tolist()


def test_implicit_gradient_through_words_is_refused():
    overrides = ["implicit.enabled=true", "implicit.gradient=last", "model.latent_dim=4"]
    with raises(ConfigError, "no-gradient"):
        init(load_settings(None, overrides), input_spec(), 2, data_hash="none")
    init(load_settings(None, [overrides[0], overrides[2]]), input_spec(), 2, data_hash="none")
