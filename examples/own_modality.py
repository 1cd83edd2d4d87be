"""A modality outside the package: counts out of 16 with a binomial likelihood."""

from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits

import synthsieve
from synthsieve.data.dataset import Dataset, Examples, InputSpec
from synthsieve.models.generator import Generator
from synthsieve.models.networks.mlp import MLP

TRIALS = 16  # each number of a digit counts the black pixels in a block of 4x4


def load_counts(request=None):
    """The source: counts (n, 64) and their labels."""
    x, y = load_digits(return_X_y=True)
    return Dataset("counted-digits", "counts", tuple("0123456789"), Examples(x.astype(np.uint8), y.astype(np.int64)))


class CountEncoding(NamedTuple):
    """Counts as fractions in [0, 1] for the networks."""

    input_spec: InputSpec

    def encode(self, x):
        return (x / TRIALS).astype(np.float32)

    def decode(self, x):
        return np.rint(x * TRIALS).astype(np.uint8)

    def items(self, x):
        return x

    def to_json(self):
        return {"kind": "counts", "size": self.input_spec.shape[0]}


class BinomialGenerator(Generator):
    """p(x given z): each number is Binomial(16, sigmoid(g(z))) / 16."""

    always_draws = True

    def __init__(self, settings, input_spec, *, rng):
        super().__init__()
        self.network = MLP((settings.latent_dim, settings.generator_width, *input_spec.shape), rng=rng)

    def forward(self, z):
        return self.network(z).sigmoid()

    def log_prob(self, x, z):
        binomial = torch.distributions.Binomial(TRIALS, logits=self.network(z))
        return binomial.log_prob((x * TRIALS).round()).sum(dim=1)

    def noise(self, *, rng):
        return torch.rand(self.network.sizes[-1], TRIALS, generator=rng)

    def sample(self, z, noise):
        return (noise < self(z)[..., None]).float().mean(dim=-1)  # 16 Bernoulli trials for each number


def make_encoder(settings, input_spec, tower, *, rng):
    """x (n, 64) -> mean and log-scale of q(z given x)."""
    return MLP((*input_spec.shape, tower.width, tower.width, tower.out_features), rng=rng)


synthsieve.register_source("counted-digits", load_counts)
synthsieve.register_modality(
    "counts",
    fit_encoding=lambda dataset, rows: CountEncoding(InputSpec("counts", dataset.shape)),
    read_encoding=lambda value: CountEncoding(InputSpec("counts", (int(value["size"]),))),
    make_encoder=make_encoder,
    make_generator=BinomialGenerator,
)
