"""For tables: fresh synthetic rows beside real ones, by column and by pair; held-out rows as the floor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from synthsieve import drawing
from synthsieve.data.dataset import Dataset
from synthsieve.evaluation.accuracy import part_of
from synthsieve.evaluation.columns import compare_tables
from synthsieve.learning.run_folder import RunFolder
from synthsieve.randomness import derive_seed, numpy_stream
from synthsieve.sampling.langevin import LangevinSettings

ROWS = 5000


def measure_columns(run: RunFolder, dataset: Dataset, *, temperature: float) -> dict[str, Any]:
    """Rows drawn from a run's model, classes as often as among its labelled rows, beside its training rows: for JSON.

    The floor is made of as many test rows.
    """
    model, sampling, seed = run.model(), run.settings.sampling, derive_seed(run.settings.seed, "columns")
    shares = np.bincount(dataset.train.y[run.split.labeled], minlength=model.num_classes) / len(run.split.labeled)
    y = np.arange(model.num_classes).repeat(np.maximum(1, np.rint(ROWS * shares).astype(np.int64)))
    seeds = drawing.chain_seeds(seed, y)
    chains = LangevinSettings(sampling.num_steps, sampling.step_size, temperature)
    z = drawing.draw_latents(model, y, seeds, chains=chains)
    synthetic = drawing.decode(model, run.encoding, z, seeds, noise=True)
    real = dataset.train.x[np.concatenate([run.split.labeled, run.split.unlabeled])]
    test, _ = part_of(dataset, run.split, "test")
    held_out = test[numpy_stream(seed, "held out").permutation(len(test))[: len(y)]]
    fidelity = compare_tables(real, synthetic, dataset.about, held_out=held_out)
    return {"rows": len(y), "temperature": temperature, "seed": run.settings.seed, **fidelity.as_dict()}


def columns_in_markdown(columns: Mapping[str, Any]) -> list[str]:
    """A line a column: distance of the synthetic cells from the real ones, and of held-out ones."""
    floor = columns["floor"]
    lines = [
        f"{columns['rows']:,} rows drawn from the first phase of seed {columns['seed']} (temperature "
        f"{columns['temperature']:g}, nothing filtered) beside its training rows; held-out rows, as many, show what "
        "chance alone makes. Distances go from 0, alike, to 1.",
        "",
        "| column | measure | synthetic | held-out | missing, real | missing, synthetic |",
        "|---|---|---|---|---|---|",
    ]
    for mine, real in zip(columns["columns"], floor["columns"], strict=True):
        lines.append(
            f"| {mine['name']} | {mine['measure']} | {mine['distance']:.3f} | {real['distance']:.3f} | "
            f"{100 * mine['missing_real']:.1f} % | {100 * mine['missing_synthetic']:.1f} % |"
        )
    lines.append(f"| mean | | {columns['marginal_distance']:.3f} | {floor['marginal_distance']:.3f} | | |")
    return [
        *lines,
        "",
        f"Pairs of columns (Pearson's correlation, correlation ratio or Cramér's V): the mean absolute difference "
        f"from the real ones is {columns['association_distance']:.3f}, for held-out rows "
        f"{floor['association_distance']:.3f}.",
    ]
