"""The table as Markdown, in the paper's shape and in full, and the figures beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from synthsieve import drawing
from synthsieve.evaluation.figures import (
    spaced_ranks,
    write_curve_figure,
    write_entropy_figure,
    write_samples_figure,
)
from synthsieve.evaluation.proof import Proof
from synthsieve.evaluation.temperature import TemperatureRow
from synthsieve.experiments.arms import BASELINE, Arm, Cell
from synthsieve.experiments.paper import PAPER_BASELINE, PAPER_SVHN
from synthsieve.learning.run_folder import RunFolder
from synthsieve.pool import SyntheticPool
from synthsieve.sampling.langevin import LangevinSettings


def as_markdown(report: dict[str, Any], proof: Proof, cells: tuple[Cell, ...], *, beside_paper: bool) -> str:
    """The whole report."""
    seeds = len(report["seeds"])
    lines = [
        f"# {report['source_name']}: does synthetic data help?",
        "",
        f"{report['labeled']:,} labels, {report['unlabeled']:,} unlabelled; {seeds} seed{'s' if seeds > 1 else ''}, "
        f"{proof.num_items[0]:,} test examples. All arms of a seed branch off the same first phase and take "
        f"{report['settings']['augmentation']['steps']:,} more steps; weights are chosen on validation, figures are "
        "of the test set, in %.",
        "",
        *paper_shape(proof, cells, beside_paper=beside_paper),
        "",
        "## Every arm against real data alone",
        "",
        *full(proof),
        "",
        "## What the choices looked like",
        "",
        *selections(report),
        "",
    ]
    if report["choice"] is not None:
        lines += [f"On validation: {report['choice']['words']}.", ""]
    return "\n".join(lines)


def paper_shape(proof: Proof, cells: tuple[Cell, ...], *, beside_paper: bool) -> list[str]:
    """Rows are arms, columns are L; a cell has the mean and the difference from real data alone."""
    sizes = sorted({cell.pool_size for cell in cells})
    lines = [
        "| test accuracy | " + " | ".join(f"L = {size:,}" for size in sizes) + " |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    for arm in dict.fromkeys(cell.arm for cell in cells):
        mine = {cell.pool_size: _cell(proof, cell) for cell in cells if cell.arm is arm}
        lines.append(f"| {arm} | " + " | ".join(mine.get(size, "") for size in sizes) + " |")
    if not beside_paper:
        return lines
    sizes = sorted({size for row in PAPER_SVHN.values() for size in row})
    lines += [
        "",
        "The paper's (its Table 1; Wide ResNet, 1,200,000 steps):",
        "",
        "| test accuracy | " + " | ".join(f"L = {size:,}" for size in sizes) + " |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    for arm, row in PAPER_SVHN.items():
        shown = {
            size: f"{value:.1f}" + ("" if arm is Arm.REAL_ONLY else f" ({value - PAPER_BASELINE:+.1f})")
            for size, value in row.items()
        }
        lines.append(f"| {arm} | " + " | ".join(shown.get(size, "") for size in sizes) + " |")
    return lines


def full(proof: Proof) -> list[str]:
    """A line an arm: accuracy of each seed, mean, paired difference, interval, verdict."""
    lines = ["| arm | each seed | mean | difference | 95 % interval | verdict |", "|---|---|---|---|---|---|"]
    compared = {one.arm: one for one in proof.comparisons}
    for arm in proof.arms:
        each = ", ".join(f"{100 * value:.2f}" for value in arm.accuracies)
        line = f"| {arm.name} | {each} | {100 * arm.mean:.2f} |"
        if arm.name in compared:
            one = compared[arm.name]
            low, high = (100 * end for end in one.interval)
            line += f" {100 * one.difference:+.2f} | {low:+.2f} to {high:+.2f} | {one.verdict} |"
        else:
            line += " | | |"
        lines.append(line)
    return [*lines, "", proof.note] if proof.note else lines


def selections(report: dict[str, Any]) -> list[str]:
    """Of the last choice of each arm, means over seeds: how many, how pure, how far the coreset's gradient is off."""
    names = ["drawn", "survivors", "selected", "purity", "largest_weight", "gradient_error", "gradient_bound"]
    names += ["pseudo_labels", "pseudo_label_purity"]
    lines = ["| arm | " + " | ".join(name.replace("_", " ") for name in names) + " |", "|---" * (len(names) + 1) + "|"]
    for arm, figures in report["arms"].items():
        last = [rows[-1] for rows in figures["selections"] if rows]
        if last:
            lines.append(f"| {arm} | " + " | ".join(_mean(last, name) for name in names) + " |")
    return lines


def write_figures(
    folder: Path, run: RunFolder, pool: SyntheticPool, curve: list[TemperatureRow], *, label: int
) -> list[Path]:
    """The paper's Fig. 1a and 1b for images, and the temperature curve: what was written."""
    written = []
    model, encoding = run.model(), run.encoding
    if len(encoding.shape) == 3:
        sampling = run.settings.sampling
        chains = LangevinSettings(sampling.num_steps, sampling.step_size, pool.origin["temperature"])
        drawn = drawing.draw_samples(model, encoding, per_class=20, chains=chains, seed=run.settings.seed)
        written.append(folder / "fig-1a-samples.png")
        write_samples_figure(written[-1], drawn.x, drawn.y, columns=20)
        rows = np.flatnonzero(pool.y == label)
        rows = rows[np.argsort(pool.entropy[rows], kind="stable")]
        rows = rows[spaced_ranks(len(rows), min(len(rows), 100))]
        written.append(folder / "fig-1b-by-entropy.png")
        x = drawing.decode(model, encoding, pool.z[rows])
        write_entropy_figure(written[-1], x, pool.entropy[rows], columns=20, rows=5)
    written.append(folder / "temperature.svg")
    lines = {
        "entropy at z, nats": [row.mean_entropy_z for row in curve],
        "entropy at x, nats": [row.mean_entropy_x for row in curve],
        "asked class at x": [row.asked_share_x for row in curve],
    }
    if all(row.purity is not None for row in curve):
        lines["purity by the judge"] = [float(row.purity or 0) for row in curve]
    write_curve_figure(
        written[-1],
        [row.temperature for row in curve],
        lines,
        title="What the temperature does to the samples",
        x_label="temperature of the chains",
        y_label="nats, or share",
    )
    return written


def _cell(proof: Proof, cell: Cell) -> str:
    mean = f"{100 * proof.arm(cell.name).mean:.1f}"
    if cell == BASELINE:
        return mean
    one = proof.comparison(cell.name)
    return f"{mean} ({100 * one.difference:+.1f}, {one.verdict})"


def _mean(rows: list[dict[str, Any]], name: str) -> str:
    values = [row[name] for row in rows if row.get(name) is not None]
    if not values:
        return ""
    mean = float(np.mean(values))
    if name.endswith("purity"):
        return f"{100 * mean:.1f} %"
    return f"{mean:,.0f}" if mean >= 100 or mean == int(mean) else f"{mean:.3g}"
