"""A kind of data of one's own: counts out of 16 with a binomial likelihood, registered without touching the package."""

from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits

import synthsieve
from synthsieve.data.dataset import Dataset, Examples
from synthsieve.layout import Layout
from synthsieve.model.generator import Generator
from synthsieve.networks.mlp import MLP

TRIALS = 16  # each number of a digit counts the dots of ink in a field of 4x4


def load_counts(request=None):
    """The source: counts (n, 64) and their labels."""
    x, y = load_digits(return_X_y=True)
    return Dataset("counted-digits", "counts", tuple("0123456789"), Examples(x.astype(np.uint8), y.astype(np.int64)))


class CountEncoding(NamedTuple):
    """Counts become shares for the networks, and shares become counts again."""

    layout: Layout

    def encode(self, x):
        return (x / TRIALS).astype(np.float32)

    def decode(self, x):
        return np.rint(x * TRIALS).astype(np.uint8)

    def items(self, x):
        return x

    def to_json(self):
        return {"kind": "counts", "size": self.layout.shape[0]}


class BinomialGenerator(Generator):
    """p(x given z): each number is Binomial(16, sigmoid(g(z))) / 16."""

    always_draws = True

    def __init__(self, settings, layout, *, generator):
        super().__init__()
        self.network = MLP((settings.latent_dim, settings.generator_width, *layout.shape), generator=generator)

    def forward(self, z):
        return self.network(z).sigmoid()

    def log_prob(self, x, z):
        law = torch.distributions.Binomial(TRIALS, logits=self.network(z))
        return law.log_prob((x * TRIALS).round()).sum(dim=1)

    def noise(self, *, generator):
        return torch.rand(self.network.sizes[-1], TRIALS, generator=generator)

    def sample(self, z, noise):
        return (noise < self(z)[..., None]).float().mean(dim=-1)  # sixteen coins for each number


def make_encoder(settings, layout, tower, *, generator):
    """x (n, 64) -> what q(z given x) is made of."""
    return MLP((*layout.shape, tower.width, tower.width, tower.out_features), generator=generator)


synthsieve.register_source("counted-digits", load_counts)
synthsieve.register_modality(
    "counts",
    fit_encoding=lambda dataset, rows: CountEncoding(Layout("counts", dataset.shape)),
    read_encoding=lambda value: CountEncoding(Layout("counts", (int(value["size"]),))),
    make_encoder=make_encoder,
    make_generator=BinomialGenerator,
)
