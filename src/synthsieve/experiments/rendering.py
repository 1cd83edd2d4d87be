"""The table as Markdown, in the paper's shape and in full, and the figures beside it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from synthsieve import drawing
from synthsieve.charts import svg
from synthsieve.data.dataset import Kind
from synthsieve.entropy import entropy_of_logits
from synthsieve.evaluation.figures import write_entropy_figure, write_samples_figure
from synthsieve.evaluation.memorisation import copies_in_words
from synthsieve.evaluation.proof import Proof
from synthsieve.evaluation.temperature import TemperatureRow, temperature_chart
from synthsieve.experiments.arms import BASELINE, Arm, Cell, Group
from synthsieve.experiments.paper import PAPER_BASELINE, PAPER_SVHN
from synthsieve.learning.batch_source import encoded
from synthsieve.learning.run_folder import RunFolder
from synthsieve.sampling.langevin import LangevinSettings

NOTHING_TO_CHOOSE_ON = f"{BASELINE.name} is kept: there are no validation rows to choose an arm on"
FIGURE_CLASS = 3  # whose samples are shown by entropy, as in the paper's Fig. 1b


def as_markdown(report: dict[str, Any], proof: Proof, cells: tuple[Cell, ...], *, beside_paper: bool) -> str:
    """The whole report."""
    seeds = len(report["seeds"])
    lines = [
        f"# {report['source_name']}: does synthetic data help?",
        "",
        f"{report['labeled']:,} labels, {report['unlabeled']:,} unlabelled; {seeds} seed{'s' if seeds > 1 else ''}, "
        f"{report['validation_examples']:,} labelled validation examples, {proof.num_items[0]:,} test examples. "
        f"The arms of a seed branch off the same first phase and take "
        f"{report['settings']['augmentation']['steps']:,} more steps; of each, and of the first phase, the "
        f"{'weights best on validation' if report['validation_examples'] else 'last weights'} are judged. "
        "Figures are of the test set, in %.",
        "",
        *paper_shape(proof, cells, beside_paper=beside_paper),
        "",
        "## Every arm against real data alone",
        "",
        *full(proof, others_in(report)),
        "",
        *baselines(report),
        "## What the choices looked like",
        "",
        *selections(report),
        "",
    ]
    if report["judge_accuracy"] is not None:
        lines += [f"Purity is by a judge that is right on {100 * report['judge_accuracy']:.1f} % of the test set.", ""]
    lines += ["## The pool beside real data", "", *quality(report["quality"]), ""]
    if report["choice"] is None:
        lines += [f"{NOTHING_TO_CHOOSE_ON}.", ""]
    else:
        lines += [f"{report['choice']['words']}.", ""]
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


def others_in(report: dict[str, Any]) -> list[str]:
    """The rows of the proof that are other ways to learn."""
    return [name for name, group in report["groups"].items() if group == Group.BASELINE]


def baselines(report: dict[str, Any]) -> list[str]:
    """What the baselines see, how they were chosen, and what was chosen; nothing where there are none."""
    if not others_in(report):
        return []
    decided = "the first of each grid stands, for there are no validation rows"
    if report["validation_examples"]:
        decided = "weights and grids are decided on the validation rows that decide ours"
    lines = [
        f"Baselines: {Arm.SUPERVISED} is our classifying network on the {report['labeled']:,} labels alone, for as "
        f"many steps as a first phase has; the others are scikit-learn's, with small grids. {decided.capitalize()}. "
        "None of them is ever kept as the model.",
        "",
    ]
    for name, each in report["baselines"].items():
        sees = (
            f"the labels and {each[0]['unlabeled']:,} unlabelled rows" if each[0]["unlabeled"] else "the labels alone"
        )
        chosen = dict.fromkeys(one["chosen"] for one in each)
        failed = [one["failed"] for one in each if one["chosen"] is None]
        told = f"could not be fitted ({failed[0]})" if failed else f"chosen: {'; '.join(chosen)}"
        lines.append(f"- {name}: sees {sees}; {told}.")
    return [*lines, ""]


def full(proof: Proof, others: Collection[str] = ()) -> list[str]:
    """A line an arm: accuracy of each seed, mean, paired difference, interval, verdict; `others` as `Proof.table`."""
    lines = ["| arm | each seed | mean | difference | 95 % interval | verdict |", "|---|---|---|---|---|---|"]
    compared = {one.arm: one for one in proof.comparisons}
    for arm in proof.arms:
        each = ", ".join(f"{100 * value:.2f}" for value in arm.scores)
        line = f"| {arm.name} | {each} | {100 * arm.mean:.2f} |"
        if arm.name in compared:
            one = compared[arm.name]
            low, high = (100 * end for end in one.interval)
            verdict = one.verdict.of_another() if arm.name in others else one.verdict
            line += f" {100 * one.difference:+.2f} | {low:+.2f} to {high:+.2f} | {verdict} |"
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
    if any(arm.startswith(Arm.ADACORE) for arm in report["arms"]):
        lines += ["", "AdaCore's gradients are preconditioned: its error and bound are in a unit of their own."]
    return lines


def quality(measured: dict[str, Any]) -> list[str]:
    """Fidelity and memorisation in the encoder's feature space, the pool beside held-out real examples."""
    pool, real = measured["manifold"], measured["same_law"]["manifold"]
    rows = [(name, _figure(pool, name), _figure(real, name)) for name in ("precision", "recall", "density", "coverage")]
    rows.append(
        ("Fréchet distance", _figure(measured, "frechet_distance"), _figure(measured["same_law"], "frechet_distance"))
    )
    lines = [f"| {measured['of']} | samples | held-out real |", "|---|---|---|"]
    lines += [f"| {name} | {mine} | {theirs} |" for name, mine, theirs in rows]
    lines.append("")
    two_sample, alone = measured["two_sample"], measured["train_on_synthetic"]
    if two_sample is not None:
        lines.append(f"A classifier tells them from real ones {100 * two_sample['accuracy']:.1f} % of the time.")
    if alone is not None:
        lines.append(
            f"A linear classifier learned from them alone is right on {100 * alone['accuracy']:.1f} % of the test set, "
            f"from the real labels alone on {100 * alone['real_accuracy']:.1f} %."
        )
    if measured["memorisation"] is not None:
        words = copies_in_words(measured["memorisation"])
        lines.append(f"{words[0].upper()}{words[1:]}.")
    return [*lines, *measured["notes"]]


def _figure(figures: dict[str, Any] | None, name: str) -> str:
    return "" if figures is None or figures[name] is None else f"{figures[name]:.2f}"


def write_figures(folder: Path, run: RunFolder, curve: list[TemperatureRow], *, temperature: float) -> list[Path]:
    """The paper's Fig. 1a and 1b for images of one or three channels, and the temperature curve: what was written.

    Samples are drawn from the run's model by chains of that temperature.
    """
    written = []
    layout = run.encoding.layout
    if layout.kind == Kind.IMAGE and layout.shape[0] in (1, 3):
        sampling = run.settings.sampling
        chains = LangevinSettings(sampling.num_steps, sampling.step_size, temperature)
        written += _write_samples(folder, run, chains)
    written.append(folder / "temperature.svg")
    svg.write(written[-1], temperature_chart(curve))
    return written


@torch.no_grad()
def _write_samples(folder: Path, run: RunFolder, chains: LangevinSettings) -> list[Path]:
    """Fig. 1a, a row a class; Fig. 1b, one class from the lowest entropy at x to the highest."""
    samples, by_entropy = folder / "fig-1a-samples.png", folder / "fig-1b-by-entropy.png"
    model, encoding, seed = run.model(), run.encoding, run.settings.seed
    drawn = drawing.draw_samples(model, encoding, per_class=20, chains=chains, seed=seed)
    write_samples_figure(samples, drawn.x, drawn.y, columns=20)
    y = np.full(drawing.BLOCK, min(FIGURE_CLASS, model.num_classes - 1))
    seeds = drawing.chain_seeds(seed, y)
    x = drawing.decode(model, encoding, drawing.draw_latents(model, y, seeds, chains=chains), seeds)
    entropy = entropy_of_logits(model.predict_logits(encoded(encoding, x)).numpy())
    write_entropy_figure(by_entropy, x, entropy, columns=20, rows=5)
    return [samples, by_entropy]


def _cell(proof: Proof, cell: Cell) -> str:
    mean = f"{100 * proof.arm(cell.name).mean:.1f}"
    if cell == BASELINE:
        return mean
    one = proof.comparison(cell.name)
    verdict = one.verdict.of_another() if cell.arm.group is Group.BASELINE else one.verdict
    return f"{mean} ({100 * one.difference:+.1f}, {verdict})"


def _mean(rows: list[dict[str, Any]], name: str) -> str:
    values = [row[name] for row in rows if row.get(name) is not None]
    if not values:
        return ""
    mean = float(np.mean(values))
    if name.endswith("purity"):
        return f"{100 * mean:.1f} %"
    return f"{mean:,.0f}" if mean >= 100 or mean == int(mean) else f"{mean:.3g}"
