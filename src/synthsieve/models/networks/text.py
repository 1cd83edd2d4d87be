"""Networks for text: an encoder of embedded words, and a recurrent network for the next word.

A sentence is int64 (n, length): word indices, then EOS, then padding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from synthsieve.models.networks.layers import Dropout, build

PAD = 0
SPECIAL = 4  # the first indices are pad, bos, unk, eos
SENTENCE_NORM = 3.0  # norm of a sentence vector: a larger one overfits a few labels


class SentenceEncoder(nn.Module):
    """The normalized sum of all words; optionally each word with its two neighbours; then a linear head.

    output = V dropout[3 s / |s|, mean_t h_t, max_t h_t] + c, s = sum_t e_t, h_t = silu(W [e_{t-1}, e_t, e_{t+1}] + b).
    Word vectors are not trained: a few hundred labels would move each word independently.

    Args:
        vocabulary: the number of words; word 0 is padding.
        out_features: outputs for each sentence.
        embedding: width of an embedded word.
        width: of h; 0 means no h: word order is ignored, which overfits less on few labels.
        dropout: rate, for whole words and for the pooled features.
    """

    def __init__(self, vocabulary: int, out_features: int, *, embedding: int, width: int, dropout: float) -> None:
        super().__init__()
        self.words: Tensor
        self.register_buffer("words", torch.empty(vocabulary, embedding))
        self.scale = math.sqrt(embedding)
        self.window = nn.Linear(3 * embedding, width) if width else None
        self.dropout = Dropout(dropout)
        self.head = nn.Linear(embedding + 2 * width, out_features)

    def embed(self, x: Tensor) -> Tensor:
        """Words as vectors, then 1; padding as zeros. int64 (n, length) -> (n, length, embedding + 1)."""
        mask = (x != PAD).unsqueeze(2).to(self.words)
        return torch.cat([functional.embedding(x, self.words) * mask, mask], dim=2)

    def forward(self, x: Tensor) -> Tensor:
        """Sentences int64 (n, length), or their (perhaps perturbed) embeddings. -> (n, out_features)."""
        embedded = x if x.is_floating_point() else self.embed(x)
        # The last column marks which positions have words, even slightly perturbed; it has no gradient.
        mask = embedded[:, :, -1] > 0.5
        words = embedded[:, :, :-1] * self.dropout(mask.to(embedded)).unsqueeze(2)
        pooled = SENTENCE_NORM * functional.normalize(words.sum(dim=1), dim=1)
        if self.window is not None:
            pooled = torch.cat([pooled, *self._with_neighbours(self.scale * words, mask, self.window)], dim=1)
        output: Tensor = self.head(self.dropout(pooled))
        return output

    def _with_neighbours(self, words: Tensor, mask: Tensor, window: nn.Linear) -> tuple[Tensor, Tensor]:
        """The mean and the maximum of h over the positions that have words. Each (n, width)."""
        before, after = functional.pad(words, (0, 0, 1, 0))[:, :-1], functional.pad(words, (0, 0, 0, 1))[:, 1:]
        # Only where there are words: two positions of three are padding.
        hidden = functional.silu(window(torch.cat([before[mask], words[mask], after[mask]], dim=1)))
        spread = hidden.new_full((*mask.shape, hidden.shape[1]), -math.inf).masked_scatter(mask.unsqueeze(2), hidden)
        total = spread.masked_fill(~mask.unsqueeze(2), 0.0).sum(dim=1)
        return total / mask.sum(dim=1, keepdim=True).clamp_min(1), spread.amax(dim=1)


class NextWord(nn.Module):
    """The probability of the next word, from z and the previous words: a GRU that sees z at each step.

    state_t = GRU(state_{t-1}, [e(word_{t-1}), z]); log p(word_t) is an adaptive softmax of [state_t, z] (Grave 2017),
    normalized like any other at a fraction of the cost.

    Args:
        vocabulary: the number of words, frequent before rare.
        choices: how many of them, the last ones, may come next; 2 or more.
        latent_dim: of z.
        embedding: width of an embedded word.
        width: of the state.
        word_dropout: share of the previous words that are hidden in training, so that z must encode them.
    """

    def __init__(
        self, vocabulary: int, choices: int, *, latent_dim: int, embedding: int, width: int, word_dropout: float
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, embedding)
        self.hide = Dropout(word_dropout)
        self.start = nn.Linear(latent_dim, width)
        self.recurrent = nn.GRU(embedding + latent_dim, width, batch_first=True)
        self.output = nn.AdaptiveLogSoftmaxWithLoss(
            width + latent_dim, choices, cutoffs=[max(1, choices // 8)], head_bias=True
        )

    def first_state(self, z: Tensor) -> Tensor:
        """The state before any word. (n, latent_dim) -> (1, n, width)."""
        state: Tensor = self.start(z).tanh().unsqueeze(0)
        return state

    def states(self, previous: Tensor, z: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """The features from which each next word is predicted, and the last state of the GRU.

        int64 (n, steps), (n, latent_dim), (1, n, width) -> (n, steps, width + latent_dim), (1, n, width).
        """
        kept = self.hide(torch.ones(previous.shape, dtype=z.dtype)) > 0
        known = self.words(previous) * kept.unsqueeze(2).to(z)
        everywhere = z.unsqueeze(1).expand(-1, previous.shape[1], -1)
        hidden, state = self.recurrent(torch.cat([known, everywhere], dim=2), state)
        return torch.cat([hidden, everywhere], dim=2), state

    def log_prob(self, known: Tensor, choice: Tensor) -> Tensor:
        """log p of given choices. (n, width + latent_dim), int64 (n,) -> (n,)."""
        log_prob: Tensor = self.output(known, choice).output
        return log_prob

    def log_probs(self, known: Tensor) -> Tensor:
        """log p of every choice. (n, width + latent_dim) -> (n, choices)."""
        log_probs: Tensor = self.output.log_prob(known)
        return log_probs


def make_sentence_encoder(
    vectors: Tensor, out_features: int, *, width: int, dropout: float, rng: torch.Generator
) -> SentenceEncoder:
    """A `SentenceEncoder` with word vectors `vectors` (vocabulary, embedding); other weights are drawn from `rng`."""
    vocabulary, embedding = vectors.shape
    encoder = build(
        lambda: SentenceEncoder(vocabulary, out_features, embedding=embedding, width=width, dropout=dropout), rng=rng
    )
    # A word without a vector gets a random one; pad, bos, unk and eos get zeros. A mean square norm of 1 gives a
    # smoothness radius a meaning (Miyato 2017).
    random = torch.randn(vectors.shape, generator=rng) / math.sqrt(embedding)
    vectors = torch.where(vectors.norm(dim=1, keepdim=True) == 0, random, vectors)
    vectors[:SPECIAL] = 0
    encoder.words.copy_(vectors * math.sqrt(max(1, vocabulary - SPECIAL)) / vectors.norm().clamp_min(1e-12))
    return encoder


def make_next_word(
    vectors: Tensor, choices: int, *, latent_dim: int, width: int, word_dropout: float, rng: torch.Generator
) -> NextWord:
    """A `NextWord` with initial embeddings `vectors` (vocabulary, embedding); other weights are drawn from `rng`."""
    vocabulary, embedding = vectors.shape
    network = build(
        lambda: NextWord(
            vocabulary, choices, latent_dim=latent_dim, embedding=embedding, width=width, word_dropout=word_dropout
        ),
        rng=rng,
    )
    with torch.no_grad():
        for part in network.modules():  # what `build` does not initialize
            if isinstance(part, nn.Embedding):
                part.weight.normal_(generator=rng)
            elif isinstance(part, nn.GRU):
                bound = 1 / math.sqrt(part.hidden_size)
                for weight in part.parameters():
                    weight.uniform_(-bound, bound, generator=rng)
        known = vectors.norm(dim=1, keepdim=True) > 0
        initial = torch.where(known, vectors * math.sqrt(embedding), network.words.weight)
        network.words.weight.copy_(initial)
    return network
