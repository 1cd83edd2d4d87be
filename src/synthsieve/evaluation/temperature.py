"""What temperature does to samples, measured: how sure the classifier is of them, how often they have their class.

A lower temperature is Section 2.5's soft version of the entropy ceiling, but only loosely: the chains raise F(z)[y],
not F(z)[y] - f(z). So the entropy at each temperature is measured here, never assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synthsieve.data.modalities.encoding import Encoding
from synthsieve.evaluation.predict import Oracle, draw_and_score
from synthsieve.io.random_streams import derive_seed
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.generate import chain_seeds
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.selection.entropy import entropy_of_logits


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
        for place, logits in (("z", drawn.logits_z), ("x", drawn.logits_x)):
            entropy = entropy_of_logits(logits)
            measured[f"mean_entropy_{place}"] = float(entropy.mean())
            measured[f"median_entropy_{place}"] = float(np.median(entropy))
            measured[f"requested_share_{place}"] = float((logits.argmax(axis=1) == y).mean())
        purity = None if oracle is None else float((drawn.oracle_class == y).mean())
        rows.append(TemperatureRow(temperature=temperature, count=len(y), purity=purity, **measured))
    return rows
