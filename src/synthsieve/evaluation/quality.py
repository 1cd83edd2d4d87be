"""How good samples are: close to real data, not copied from it, enough to train on by themselves; and what the
temperature does to them.

Pools are measured in the encoder's feature space, the mean of q(z given x). A lower temperature is Section 2.5's soft
version of the entropy ceiling, but only loosely: the chains raise F(z)[y], not F(z)[y] - f(z). So the entropy at each
temperature is measured here, never assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset
from synthsieve.data.modalities.encoding import Encoding
from synthsieve.data.splits import Split
from synthsieve.errors import DataError
from synthsieve.evaluation.fidelity import frechet_distance, manifold, train_on_synthetic, two_sample_accuracy
from synthsieve.evaluation.memorization import memorization
from synthsieve.evaluation.predict import Oracle, draw_and_score, latents, part_of
from synthsieve.io.random_streams import derive_seed, numpy_stream
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.generate import chain_seeds
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.selection.entropy import entropy_of_logits

MAX_ROWS = 5000  # that a figure is measured on; neighbours are searched among all training rows
FIGURES = {  # what readers call them
    "manifold": "precision, recall, density and coverage",
    "frechet_distance": "Fréchet distance",
    "two_sample": "two-sample test",
    "train_on_synthetic": "training on samples only",
    "memorisation": "copies",
}


def pool_quality(
    model: GenerativeClassifier,
    encoding: Encoding,
    dataset: Dataset,
    split: Split,
    *,
    x: np.ndarray,
    y: np.ndarray,
    seed: int,
) -> dict[str, Any]:
    """Fidelity, memorisation and training on synthetic samples x (n, *shape), y (n,) alone; plain numbers for JSON.

    Real examples are the labelled and unlabelled rows; held-out ones are test. A figure that needs more rows is
    None, and `notes` says why; without test rows, one note covers all figures that need them.
    """
    stream = numpy_stream(seed, "pool quality")
    chosen = _sample(len(x), stream)
    x, y = x[chosen], y[chosen]
    train_rows = np.concatenate([split.labeled, split.unlabeled])
    train = latents(model, encoding, dataset.train.x[train_rows], check=False)
    test_x, test_y = part_of(dataset, split, "test")
    held = _sample(len(test_x), stream)
    held_out, held_y = latents(model, encoding, test_x[held], check=False), test_y[held]
    synthetic = latents(model, encoding, x, check=False)
    real = train[_sample(len(train), stream)]
    labeled = train[: len(split.labeled)]
    labels = dataset.train.y[split.labeled]
    notes: list[str] = []

    def measured(name: str, figure: Callable[[], Any], *, of: str = "") -> Any:
        try:
            return figure()
        except DataError as error:
            notes.append(f"{FIGURES[name]}{of}: {error}")
            return None

    found = {
        "synthetic": len(synthetic),
        "manifold": measured("manifold", lambda: manifold(real, synthetic).as_dict()),
        "frechet_distance": measured("frechet_distance", lambda: frechet_distance(real, synthetic)),
        "two_sample": measured("two_sample", lambda: two_sample_accuracy(real, synthetic, rng=stream).as_dict()),
        "train_on_synthetic": None,
        "memorisation": None,
        "same_law": {"manifold": None, "frechet_distance": None},
        "notes": notes,
    }
    if not len(held_out):
        notes.append("what needs held-out rows, such as copies: all labels train here")
        return found
    trained = measured(
        "train_on_synthetic",
        lambda: train_on_synthetic(
            synthetic, y, held_out, held_y, real=labeled, real_labels=labels, seed=seed
        ).as_dict(),
    )
    of = " of held-out rows"
    return found | {
        "train_on_synthetic": trained,
        "memorisation": measured("memorisation", lambda: memorization(synthetic, train, held_out).as_dict()),
        "same_law": {
            "manifold": measured("manifold", lambda: manifold(real, held_out).as_dict(), of=of),
            "frechet_distance": measured("frechet_distance", lambda: frechet_distance(real, held_out), of=of),
        },
    }


def _sample(count: int, stream: np.random.Generator) -> np.ndarray:
    """All rows, or a random `MAX_ROWS` of them: int64, ascending."""
    return np.arange(count) if count <= MAX_ROWS else np.sort(stream.choice(count, MAX_ROWS, replace=False))


@dataclass(frozen=True)
class TemperatureRow:
    """What was measured at one temperature. At z: of the drawn latent; at x: at the mean of q(z given x)."""

    temperature: float  # T of the chains
    count: int  # samples drawn, the same number of each class
    mean_entropy_z: float  # mean of H(p(y given z)), in nats
    median_entropy_z: float  # its median: a few undecided samples carry the mean
    requested_share_z: float  # share of samples whose most probable class at z is the one requested
    mean_entropy_x: float  # the same after decoding and encoding again
    median_entropy_x: float
    requested_share_x: float
    purity: float | None  # share of samples to which the oracle gives the class requested; None without an oracle


def temperature_curve(
    model: GenerativeClassifier,
    encoding: Encoding,
    temperatures: Sequence[float],
    *,
    per_class: int,
    chains: LangevinSettings,
    oracle: Oracle | None = None,
    seed: int,
) -> list[TemperatureRow]:
    """A row for each temperature, in the order given: y -> z by Langevin from p0 -> x = g(z) -> mean of q(z given x).

    Every temperature has the same starts and the same noise, so a row does not depend on the other temperatures, and
    differences between rows come from the temperature alone. The temperature of `chains` itself is not used.
    """
    if per_class < 1:
        raise ValueError(f"per_class must be 1 or more; got {per_class}")
    y = np.arange(model.num_classes).repeat(per_class)
    seeds = chain_seeds(derive_seed(seed, "temperature"), y)
    rows = []
    for temperature in temperatures:
        at_temperature = replace(chains, temperature=temperature)
        drawn = draw_and_score(model, encoding, y, seeds, chains=at_temperature, oracle=oracle)
        measured: dict[str, float] = {}
        for place, logits in (("z", drawn["logits_z"]), ("x", drawn["logits_x"])):
            entropy = entropy_of_logits(logits)
            measured[f"mean_entropy_{place}"] = float(entropy.mean())
            measured[f"median_entropy_{place}"] = float(np.median(entropy))
            measured[f"requested_share_{place}"] = float((logits.argmax(axis=1) == y).mean())
        purity = None if oracle is None else float((drawn["oracle_class"] == y).mean())
        rows.append(TemperatureRow(temperature=temperature, count=len(y), purity=purity, **measured))
    return rows
