"""What temperature does to samples, measured: how sure the classifier is of them, how often they are what was asked.

A lower temperature is Section 2.5's soft version of the entropy ceiling, but only loosely: the chains raise F(z)[y],
not F(z)[y] - f(z). So the entropy at each temperature is measured here, never assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from synthsieve.charts.chart import Axis, Chart, Dash, Line, Tone, numbers
from synthsieve.entropy import entropy_of_logits
from synthsieve.model.classifier import GenerativeClassifier
from synthsieve.model.generator import Generator
from synthsieve.randomness import torch_stream
from synthsieve.sampling import langevin

BLOCK = 1000  # chains at a time: their states and images fit in a few megabytes

Judge = Callable[[Tensor], np.ndarray]
"""A classifier that is not the model: x (n, *shape), as networks see it -> class indices (n,)."""


@dataclass(frozen=True)
class TemperatureRow:
    """What was measured at one temperature. At z: of the drawn latent; at x: of g(z) at the mean of q(z given x).

    Attributes:
        temperature: T of the chains.
        count: samples drawn, the same number of each class.
        mean_entropy_z: mean of H(p(y given z)), in nats.
        median_entropy_z: its median: a few undecided samples carry the mean.
        asked_share_z: share of samples whose most probable class at z is the one asked for.
        mean_entropy_x: as at z, after decoding and encoding again.
        median_entropy_x: likewise.
        asked_share_x: likewise.
        purity: share of samples to which the judge gives the class asked for; None without a judge.
    """

    temperature: float
    count: int
    mean_entropy_z: float
    median_entropy_z: float
    asked_share_z: float
    mean_entropy_x: float
    median_entropy_x: float
    asked_share_x: float
    purity: float | None


def temperature_curve(
    model: GenerativeClassifier,
    temperatures: Sequence[float],
    *,
    per_class: int,
    chains: langevin.LangevinSettings,
    judge: Judge | None = None,
    seed: int,
) -> list[TemperatureRow]:
    """A row for each temperature, in the order given: y -> z by Langevin from p0 -> x = g(z) -> mean of q(z given x).

    Every temperature has the same starts and the same noise, so a row does not depend on which others were asked for,
    and differences between rows are the temperature's alone.

    Args:
        model: is put into evaluation mode.
        temperatures: each 0 or more.
        per_class: samples of each class, 1 or more.
        chains: how far and how fast; its own temperature is not used.
        judge: what `purity` is measured by.
        seed: of the chains' streams.
    """
    if per_class < 1:
        raise ValueError(f"per_class must be 1 or more; got {per_class}")
    model.eval()
    return [
        _measure(model, replace(chains, temperature=temperature), per_class, judge, seed=seed)
        for temperature in temperatures
    ]


def temperature_chart(rows: Sequence[TemperatureRow]) -> Chart:
    """Entropies and shares over the temperature."""
    lines: dict[str, tuple[list[float], Tone, Dash]] = {
        "entropy at z, nats": ([row.mean_entropy_z for row in rows], Tone.BLUE, Dash.SOLID),
        "entropy at x, nats": ([row.mean_entropy_x for row in rows], Tone.ORANGE, Dash.DASHED),
        "share with the asked class at x": ([row.asked_share_x for row in rows], Tone.GREEN, Dash.DOTTED),
    }
    if all(row.purity is not None for row in rows):
        lines["purity by the judge"] = ([float(row.purity or 0) for row in rows], Tone.PINK, Dash.DASH_DOT)
    x = numbers(row.temperature for row in rows)
    return Chart(
        title="What the temperature does to the samples",
        description="Mean entropies, and the share of samples that are what was asked for, at each temperature.",
        x=Axis("temperature of the chains"),
        y=Axis("nats, or share", low=0.0),
        layers=tuple(Line(name, x, numbers(y), tone, dash) for name, (y, tone, dash) in lines.items()),
    )


@torch.no_grad()
def _measure(
    model: GenerativeClassifier,
    chains: langevin.LangevinSettings,
    per_class: int,
    judge: Judge | None,
    *,
    seed: int,
) -> TemperatureRow:
    asked = torch.arange(model.num_classes).repeat_interleave(per_class)
    at_z, at_x, judged = [], [], []
    for first in range(0, len(asked), BLOCK):
        generator = torch_stream(seed, f"temperature/{first}")
        y = asked[first : first + BLOCK]
        start = model.prior.reference_sample(len(y), generator=generator)
        z = langevin.run(model.prior.conditional(y), start, settings=chains, generator=generator).z
        x = _decoded(model.generator, z, generator=generator)
        at_z.append(model.energy.class_logits(z).numpy())
        at_x.append(model.predict_logits(x).numpy())
        if judge is not None:
            judged.append(_judged(judge, x))
    labels, logits_z, logits_x = asked.numpy(), np.concatenate(at_z), np.concatenate(at_x)
    entropy_z, entropy_x = entropy_of_logits(logits_z), entropy_of_logits(logits_x)
    return TemperatureRow(
        temperature=chains.temperature,
        count=len(labels),
        mean_entropy_z=float(entropy_z.mean()),
        median_entropy_z=float(np.median(entropy_z)),
        asked_share_z=float((logits_z.argmax(axis=1) == labels).mean()),
        mean_entropy_x=float(entropy_x.mean()),
        median_entropy_x=float(np.median(entropy_x)),
        asked_share_x=float((logits_x.argmax(axis=1) == labels).mean()),
        purity=float((np.concatenate(judged) == labels).mean()) if judged else None,
    )


def _decoded(generates: Generator, z: Tensor, *, generator: torch.Generator) -> Tensor:
    if not generates.always_draws:
        mean: Tensor = generates(z)
        return mean
    return generates.sample(z, torch.stack([generates.noise(generator=generator) for _ in z]))


def _judged(judge: Judge, x: Tensor) -> np.ndarray:
    labels = np.asarray(judge(x))
    if labels.shape != (len(x),):
        raise ValueError(f"the judge must give one class index a sample, ({len(x)},); got shape {labels.shape}")
    return labels
