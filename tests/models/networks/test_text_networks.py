"""The networks for text: padding, embeddings, word vectors, dropout."""

import pytest
import torch

from synthsieve.io.random_streams import torch_stream
from synthsieve.models.networks.layers import attach_rng
from synthsieve.models.networks.text import make_next_word, make_sentence_encoder


def vectors(words=9, width=5):
    drawn = torch.randn(words, width, generator=torch_stream(0, "vectors"))
    drawn[:4] = 0
    return drawn


def encoder(dropout=0.0, width=7):
    return make_sentence_encoder(vectors(), 3, width=width, dropout=dropout, rng=torch_stream(0, "weights"))


X = torch.tensor([[4, 5, 6, 3, 0, 0], [8, 3, 0, 0, 0, 0], [4, 4, 5, 6, 7, 8]])


@pytest.mark.parametrize("width", [0, 7])
def test_padding_is_ignored(width):
    network = encoder(width=width)
    for row in range(2):
        alone = X[row : row + 1, : int((X[row] != 0).sum())]
        torch.testing.assert_close(network(alone), network(X)[row : row + 1])


@pytest.mark.parametrize("width", [0, 7])
def test_words_and_their_embeddings_give_the_same_output(width):
    network = encoder(width=width)
    embedded = network.embed(X)
    assert embedded.shape == (3, 6, 6)
    assert (embedded[X == 0] == 0).all()
    torch.testing.assert_close(network(embedded), network(X))


def test_word_vectors_are_scaled_to_unit_mean_square():
    words = encoder().words
    assert words[4:].square().sum(dim=1).mean().item() == pytest.approx(1, rel=1e-5)
    torch.testing.assert_close(words[4:] / words[4:].norm(), vectors()[4:] / vectors()[4:].norm())
    assert (words[:4] == 0).all()


def test_a_word_without_a_vector_gets_a_random_one():
    given = vectors()
    given[5] = 0
    network = make_sentence_encoder(given, 3, width=0, dropout=0.0, rng=torch_stream(0, "weights"))
    assert network.words[5].norm() > 0


def test_a_sentence_without_words_gives_the_bias():
    network = encoder(width=0)
    torch.testing.assert_close(network(torch.tensor([[3, 0, 0]])), network.head.bias[None])


def test_a_perturbed_embedding_keeps_its_mask():
    network = encoder()
    embedded = network.embed(X).detach()
    moved = (embedded + 0.02 * torch.randn(embedded.shape, generator=torch_stream(0, "move"))).requires_grad_()
    network(moved).sum().backward()
    assert (moved.grad[X == 0] == 0).all()
    assert (moved.grad[:, :, -1] == 0).all()
    assert (moved.grad[X > 3][:, :-1] != 0).any(dim=1).all()
    still = embedded.clone()
    still[X == 0] = 0.3  # below one half: still padding
    torch.testing.assert_close(network(still), network(X))


def test_word_order_matters_only_with_neighbours():
    a, b = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[5, 4, 6, 3]])
    ordered, unordered = encoder(width=7), encoder(width=0)
    assert not torch.allclose(ordered(a), ordered(b))
    torch.testing.assert_close(unordered(a), unordered(b))


def test_initial_embeddings_of_the_generator():
    words = make_next_word(
        vectors(), 7, latent_dim=2, width=4, word_dropout=0.0, rng=torch_stream(0, "weights")
    ).words.weight.detach()
    torch.testing.assert_close(words[4:], vectors()[4:] * 5**0.5)
    assert (words[:4].norm(dim=1) > 0).all()


def test_dropout_draws_from_its_rng():
    network = encoder(dropout=0.5).train()
    with pytest.raises(RuntimeError, match="attach_rng"):
        network(X)
    outputs = []
    for _ in range(2):
        attach_rng(network, torch_stream(0, "dropout"))
        outputs.append(network(X))
    torch.testing.assert_close(*outputs, rtol=0, atol=0)


def test_the_same_rng_gives_the_same_weights():
    first, second = (
        make_next_word(
            vectors(), 7, latent_dim=2, width=4, word_dropout=0.1, rng=torch_stream(0, "weights")
        ).state_dict()
        for _ in range(2)
    )
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert all(value.isfinite().all() for value in first.values())


def test_word_dropout_hides_words():
    network = make_next_word(vectors(), 7, latent_dim=2, width=4, word_dropout=0.999999, rng=torch_stream(0, "w"))
    attach_rng(network, torch_stream(0, "dropout"))
    z, words = torch.ones(1, 2), torch.tensor([[4, 5, 6]])
    start = network.first_state(z)
    hidden = [network.train().states(one, z, start)[0] for one in (words, words.flip(1))]
    torch.testing.assert_close(*hidden)
    seen = [network.eval().states(one, z, start)[0] for one in (words, words.flip(1))]
    assert not torch.allclose(*seen)
