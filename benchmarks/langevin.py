"""Langevin chains against their own matrix products, and against a plain autograd loop.

For batches of 100 and 10,000, on one thread and on torch's default, it prints the time of 60 steps on an energy of
three layers (latent 100, width 200, 10 classes):

- the matrix products alone: three forward, three back, into buffers made beforehand, nothing else;
- ours: `langevin.run` on the tilted prior, for each activation, towards p(z) and towards p(z given y);
- naive: the same chain with GELU by a plain autograd loop.

Ratios are to the matrix products. The contestants take turns; since other work may share the machine, the ratio of the
medians is printed beside that of each one's quickest turn. The same figures go as
JSON beside this file, or to --output.

    python benchmarks/langevin.py [--batches 100 10000] [--threads 1 2] [--repeats N] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor

from synthsieve.io.random_streams import torch_stream
from synthsieve.models.energy import Energy
from synthsieve.models.networks.mlp import MLP
from synthsieve.models.prior import TiltedPrior
from synthsieve.sampling import langevin
from synthsieve.settings import Activation

LATENT, CLASSES, STEPS = 100, 10, 60
GOAL = 1.5


def products_alone(energy: Energy, z: Tensor) -> Callable[[], None]:
    """The six matrix products of each step, on the whole batch, into buffers made beforehand."""
    assert isinstance(energy.network, MLP)
    first, second, third = (layer.weight.detach() for layer in energy.network.linears())
    one, two = (z.new_empty(len(z), 200) for _ in range(2))
    logits, gradient = z.new_empty(len(z), CLASSES), z.new_empty(len(z), LATENT)

    def work() -> None:
        for _ in range(STEPS):
            torch.mm(z, first.t(), out=one)
            torch.mm(one, second.t(), out=two)
            torch.mm(two, third.t(), out=logits)
            torch.mm(logits, third, out=two)
            torch.mm(two, second, out=one)
            torch.mm(one, first, out=gradient)

    return work


def naive(prior: TiltedPrior, z: Tensor) -> Callable[[], None]:
    """The loop one would write first."""

    def work() -> None:
        rng, moving, settings = torch_stream(0, "noise"), z, langevin.LangevinSettings(STEPS)
        for _ in range(STEPS):
            moving = moving.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(prior.log_density(moving).sum(), moving)
            noise = torch.randn(moving.shape, generator=rng)
            moving = moving + settings.step_size * gradient + (2 * settings.step_size) ** 0.5 * noise

    return work


def ours(prior: TiltedPrior, z: Tensor, y: Tensor | None) -> Callable[[], None]:
    density = prior.unconditional() if y is None else prior.conditional(y)
    settings = langevin.LangevinSettings(STEPS)

    def work() -> None:
        langevin.run(density, z, settings=settings, rng=torch_stream(0, "noise"))

    return work


def contestants(batch: int) -> dict[str, Callable[[], None]]:
    priors = {
        activation: TiltedPrior(Energy.mlp(LATENT, CLASSES, activation=activation, rng=torch_stream(0, "energy")))
        for activation in Activation
    }
    z = priors[Activation.GELU].reference_sample(batch, rng=torch_stream(0, "start"))
    y = torch.arange(batch) % CLASSES
    racing = {"matrix products": products_alone(priors[Activation.GELU].energy, z)}
    for activation, prior in priors.items():
        racing[f"ours, {activation}, p(z)"] = ours(prior, z, None)
        racing[f"ours, {activation}, p(z given y)"] = ours(prior, z, y)
    racing["naive autograd, gelu, p(z)"] = naive(priors[Activation.GELU], z)
    return racing


def race(racing: dict[str, Callable[[], None]], repeats: int) -> dict[str, list[float]]:
    """The seconds of each contestant at each turn; they take turns."""
    times: dict[str, list[float]] = {name: [] for name in racing}
    for work in racing.values():
        work()  # first use: compiled loops, touched memory
    for _ in range(repeats):
        for name, work in racing.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description="Langevin chains against their own matrix products.")
    parser.add_argument("--batches", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, torch.get_num_threads()])
    parser.add_argument("--repeats", type=int, help="turns of each (default: 31 for small batches, 3 for large)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()

    races: list[dict[str, object]] = []
    for threads in dict.fromkeys(arguments.threads):
        torch.set_num_threads(threads)
        for batch in arguments.batches:
            times = race(contestants(batch), arguments.repeats or (31 if batch <= 1000 else 3))
            median = {name: statistics.median(taken) for name, taken in times.items()}
            least = {name: min(taken) for name, taken in times.items()}
            races.append({"threads": threads, "batch": batch, "median_seconds": median, "least_seconds": least})
            print(
                f"\n{STEPS} steps, batch {batch:,}, {threads} thread(s)   median   ratio   ratio of the quickest turns"
            )
            for name in times:
                ratio, quickest = (taken[name] / taken["matrix products"] for taken in (median, least))
                print(f"  {name:32} {median[name] * 1e3:9.1f} ms  {ratio:5.2f} x  {quickest:5.2f} x", flush=True)
            write_report(arguments.output, races)  # after each race: a run cut short leaves what it has
    print(f"\nwritten: {arguments.output.name}")


def write_report(output: Path, races: list[dict[str, object]]) -> None:
    report = {
        "steps": STEPS,
        "sizes": [LATENT, 200, 200, CLASSES],
        "goal": GOAL,
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numba": version("numba")},
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
        "races": races,
    }
    output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
