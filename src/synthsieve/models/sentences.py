"""The networks of text: q(z given a sentence), and p(sentence given z), generated word by word."""

from __future__ import annotations

import base64
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from synthsieve.data.dataset import InputSpec
from synthsieve.errors import ConfigError
from synthsieve.models.generator import Generator
from synthsieve.models.modalities import Networks, Tower
from synthsieve.models.networks.layers import default_device
from synthsieve.models.networks.text import NextWord, SentenceEncoder, make_next_word, make_sentence_encoder
from synthsieve.settings import ModelSettings, NetworkKind

PAD, BOS, UNKNOWN, END = range(4)  # as in data.modalities.text.encoding
FIRST_CHOICE = UNKNOWN  # PAD and BOS are never generated


class SentenceGenerator(Generator):
    """p(x given z) = prod_t p(x_t given x_{<t}, z), up to and including END, or to `length` words.

    Args:
        network: the probability of the next word.
        length: the maximum number of words, END included.
    """

    always_draws = True
    differentiable = False

    def __init__(self, network: NextWord, *, length: int) -> None:
        super().__init__()
        self.network = network
        self.length = length

    @torch.no_grad()
    def forward(self, z: Tensor) -> Tensor:
        """Greedy decoding: the most probable word at each step; no gradient. -> int64 (n, length)."""
        return self._generate(z, lambda log_probs, _: log_probs.argmax(dim=1))

    def mean_near(self, x: Tensor, z: Tensor, embed: Callable[[Tensor], Tensor]) -> Tensor:
        """sum_w p(w given x_{<t}, z) embed(w) at each position t of x that has a word; zeros elsewhere."""
        written = x != PAD
        known, _ = self.network.states(functional.pad(x, (1, 0), value=BOS)[:, :-1], z, self.network.first_state(z))
        p = self.network.log_probs(known[written]).exp()  # (words of all sentences, choices)
        choices = torch.arange(FIRST_CHOICE, FIRST_CHOICE + p.shape[1], device=x.device)
        means = p @ embed(choices.unsqueeze(1)).squeeze(1)
        return means.new_zeros(*x.shape, means.shape[1]).masked_scatter(written.unsqueeze(2), means)

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """sum_t log p(x_t given x_{<t}, z) over words and END, in nats. (n, length), (n, latent_dim) -> (n,)."""
        written = x != PAD
        steps = max(1, int(written.sum(dim=1).max()))  # skip what is padding in all of them
        x, written = x[:, :steps], written[:, :steps]
        previous = functional.pad(x, (1, 0), value=BOS)[:, :-1]
        known, _ = self.network.states(previous, z, self.network.first_state(z))
        each = self.network.log_prob(known[written], x[written] - FIRST_CHOICE)  # (words of all sentences,)
        return torch.zeros_like(known[:, :, 0]).masked_scatter(written, each).sum(dim=1)

    def noise(self, *, rng: torch.Generator) -> Tensor:
        """A uniform number for each word. (length,)."""
        return torch.rand(self.length, generator=rng)

    @torch.no_grad()
    def sample(self, z: Tensor, noise: Tensor) -> Tensor:
        """A sample of p(x given z, no unknown word in x). (n, latent_dim), (n, length) -> int64 (n, length)."""

        def draw(log_probs: Tensor, step: int) -> Tensor:
            p = log_probs.cpu().double().exp()  # not every device has float64
            p[:, UNKNOWN - FIRST_CHOICE] = 0  # samples are read by people: no unknown words
            below = p.cumsum(dim=1)
            threshold = noise[:, step, None].cpu().double() * below[:, -1:]
            return (below <= threshold).sum(dim=1).clamp_max(p.shape[1] - 1).to(z.device)

        return self._generate(z, draw)

    def _generate(self, z: Tensor, choose: Callable[[Tensor, int], Tensor]) -> Tensor:
        """Word after word until every sentence has ended. -> int64 (n, length).

        choose: log p (n, choices) and the step -> choices (n,).
        """
        x = torch.full((len(z), self.length), PAD, dtype=torch.int64, device=z.device)
        state, word = self.network.first_state(z), torch.full_like(x[:, 0], BOS)
        ended = torch.zeros_like(word, dtype=torch.bool)
        for step in range(self.length):
            known, state = self.network.states(word[:, None], z, state)
            word = choose(self.network.log_probs(known[:, 0]), step) + FIRST_CHOICE
            x[:, step] = word.masked_fill(ended, PAD)
            ended |= word == END
            if ended.all():
                break
        return x


def make_encoder(
    settings: ModelSettings, input_spec: InputSpec, tower: Tower, *, rng: torch.Generator
) -> SentenceEncoder:
    """For text: a bag of words; `strided` uses each word with its neighbours too."""
    if tower.kind not in (NetworkKind.AUTO, NetworkKind.MLP, NetworkKind.STRIDED):
        raise ConfigError(
            f"model.encoder can be auto, mlp or strided for text, got {tower.kind.value}", code="network-kind"
        )
    width = tower.width if tower.kind is NetworkKind.STRIDED else 0
    vectors = _vectors(input_spec)
    return make_sentence_encoder(vectors, tower.out_features, width=width, dropout=tower.dropout, rng=rng)


def make_generator(settings: ModelSettings, input_spec: InputSpec, *, rng: torch.Generator) -> SentenceGenerator:
    """For text: a recurrent network that generates one word after another."""
    vectors = _vectors(input_spec)
    network = make_next_word(
        vectors,
        len(vectors) - FIRST_CHOICE,
        latent_dim=settings.latent_dim,
        width=settings.generator_width,
        word_dropout=settings.word_dropout,
        rng=rng,
    )
    return SentenceGenerator(network, length=input_spec.shape[0])


def _vectors(input_spec: InputSpec) -> Tensor:
    """The initial embedding of each word, from input_spec. (vocabulary, embedding)."""
    vocabulary, *_, text = input_spec.details
    vectors = np.frombuffer(base64.b64decode(text), dtype="<f2").reshape(vocabulary, -1)
    return torch.from_numpy(vectors.astype(np.float32)).to(default_device())


NETWORKS = Networks(make_encoder, make_generator)
