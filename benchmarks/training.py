"""A training step against its own convolutions and matrix products.

For each preset it takes a step on random images of the right shape and notes every convolution and matrix product that
the step computes, forward and backward, with sizes and memory layout. Then it times, in turns, whole steps and those
operations alone, on tensors made beforehand. Printed are the ratio of the medians and that of each one's quickest turn,
since other work may share the machine; the goal is a ratio of at most 1.6. The same figures go as JSON to --output,
with a step's time by kind of operation where --profile is given.

    python benchmarks/training.py [--presets svhn-cpu mnist-minutes] [--set a.b=c ...] [--threads 1] [--repeats N]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.origin import Origin
from synthsieve.settings import load_settings
from synthsieve.training.batches import BatchSource
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.step import take_step

SHAPES = {"svhn": (3, 32, 32), "mnist": (1, 28, 28), "digits": (1, 8, 8)}
ROWS, LABELS = 3000, 500  # the other rows are unlabelled
GOAL = 1.6
PRODUCTS = ("convolution", "convolution_backward", "mm", "addmm", "addmm_", "bmm", "linear", "linear_backward")


class Products(TorchDispatchMode):
    """Notes each convolution and matrix product that is computed while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Callable[[], Any]] = []
        self.tensors: dict[Any, torch.Tensor] = {}

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        name = operation.name().removeprefix("aten::").partition(".")[0]
        if name in PRODUCTS:
            place = iter(range(100))
            own_values, my_named = tree_map(lambda value: self._like(value, next(place)), (arguments, named or {}))
            self.calls.append(lambda: operation(*own_values, **my_named))
        return operation(*arguments, **(named or {}))

    def _like(self, value: Any, place: int) -> Any:
        """Random numbers of the same size and layout; the same tensor for the same place of equal calls."""
        if not isinstance(value, torch.Tensor):
            return value
        key = (place, tuple(value.shape), value.stride(), value.dtype)
        if key not in self.tensors:
            made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
            self.tensors[key] = made.normal_(std=0.01) if value.is_floating_point() else made.zero_()
        return self.tensors[key]

    @torch.no_grad()
    def work(self) -> None:
        for call in self.calls:
            call()


def noise(preset: str) -> Dataset:
    """Random images of the shape that a preset is for."""
    shape = SHAPES[preset.partition("-")[0]]
    x = np.random.default_rng(0).integers(0, 256, (ROWS, *shape), dtype=np.uint8)
    train = Examples(x, np.arange(ROWS) % 10)
    return Dataset("noise", Kind.IMAGE, tuple(map(str, range(10))), train, train)


def measure(preset: str, overrides: list[str], *, repeats: int, profile: bool) -> dict[str, Any]:
    """Milliseconds of processor time of a step and of its products: medians and quickest turns."""
    dataset = noise(preset)
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(preset, [f"data.labels={LABELS}", *overrides])
        run = RunDirectory.create(Path(folder) / "run", Origin("noise"), settings, dataset)
        train_state, source = run.new_train_state(), BatchSource(run.data(dataset), run.settings)

        def step() -> None:
            take_step(train_state, next(source))

        for _ in range(3):
            step()
        products = Products()
        with products:
            step()
        turns: dict[str, list[float]] = {"step": [], "products": []}
        for _ in range(repeats):
            for name, work in (("step", step), ("products", products.work)):
                started = time.process_time()
                work()
                turns[name].append(1000 * (time.process_time() - started))
        by_kind = _profiled(step) if profile else {}
    medians = {name: statistics.median(times) for name, times in turns.items()}
    quickest = {name: min(times) for name, times in turns.items()}
    return {
        "preset": preset,
        "set": overrides,
        "calls": len(products.calls),
        "median_ms": medians,
        "quickest_ms": quickest,
        "ratio": medians["step"] / medians["products"],
        "ratio_of_quickest": quickest["step"] / quickest["products"],
        **by_kind,
    }


def _profiled(step: Callable[[], None], steps: int = 5) -> dict[str, Any]:
    """The share of each kind of operation in the time of a few steps, in %, the largest first."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(steps):
            step()
    averages = profiler.key_averages()
    total = sum(row.self_cpu_time_total for row in averages)
    shares = {row.key: round(100 * row.self_cpu_time_total / total, 1) for row in averages}
    largest = sorted(shares.items(), key=lambda pair: -pair[1])[:15]
    return {"profile": dict(largest)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=["svhn-cpu", "mnist-minutes"], metavar="NAME")
    parser.add_argument("--set", nargs="+", default=[], dest="overrides", metavar="a.b=c")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--output", type=Path, metavar="FILE")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for preset in args.presets:
        row = measure(preset, args.overrides, repeats=args.repeats, profile=args.profile)
        rows.append(row)
        step, products = row["median_ms"]["step"], row["median_ms"]["products"]
        print(
            f"{preset}: step {step:.1f} ms, its {row['calls']} products {products:.1f} ms, ratio {row['ratio']:.2f} "
            f"({row['ratio_of_quickest']:.2f} of the quickest; goal {GOAL})"
        )
        for kind, share in row.get("profile", {}).items():
            print(f"  {share:5.1f} %  {kind}")
    if args.output is not None:
        machine = {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "torch": version("torch"),
            "threads": args.threads,
            "load": os.getloadavg()[0],
        }
        args.output.write_text(json.dumps({"machine": machine, "goal": GOAL, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
