"""table.md: the comparison as Markdown, in the paper's shape and in full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from synthsieve.evaluation.comparison import ComparisonResult
from synthsieve.experiments.arms import BASELINE, PAPER_BASELINE, PAPER_SVHN, Arm, TableEntry
from synthsieve.results.table import QualityRecord, ResultsTable

NOTHING_TO_CHOOSE_ON = f"kept {BASELINE.name}: there are no validation rows to choose a variant on"
SELECTION_FIGURES = (
    *("drawn", "survivors", "selected", "purity", "largest_weight", "gradient_error", "gradient_bound"),
    *("pseudo_labels", "pseudo_label_purity"),
)


def as_markdown(table: ResultsTable, *, beside_paper: bool = False) -> str:
    """All tables; `beside_paper` adds the paper's own figures."""
    weights = "the weights with the best validation score" if table.validation_examples else "the last weights"
    entries = [record.entry for record in table.arms.values()]
    lines = [
        f"# {table.source_name}: does synthetic data help?",
        "",
        f"{table.labeled:,} labels, {table.unlabeled:,} unlabelled; {len(table.seeds)} "
        f"seed{'s' if len(table.seeds) > 1 else ''}, {table.validation_examples:,} labelled validation examples, "
        f"{table.measured_labels:,} test examples. The variants of a seed continue from the same pretrained model for "
        f"{table.settings['augmentation']['steps']:,} steps; of each, {weights} are measured. "
        "Figures are of the test set, in %.",
        "",
        *paper_shape(table, entries),
        *(paper_figures() if beside_paper else []),
        "",
        "## Every variant against real data alone",
        "",
        *all_variants(table),
        "",
        *(best_without_samples(table) if table.against_best is not None else []),
        *baselines(table),
        "## Selections",
        "",
        *selections(table),
        "",
    ]
    if table.oracle_accuracy is not None:
        accuracy = f"{100 * table.oracle_accuracy:.1f} %"
        lines += [f"Purity is measured by a classifier with a test accuracy of {accuracy}.", ""]
    if table.quality is not None:
        lines += ["## Samples compared with real data", "", *quality(table.quality), ""]
    kept = NOTHING_TO_CHOOSE_ON if table.choice is None else table.choice.describe()
    return "\n".join([*lines, f"{kept}.", ""])


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def _by_pool_size(cells: dict[TableEntry, str]) -> list[str]:
    """Rows are variants, columns are pool sizes L."""
    sizes = sorted({entry.pool_size for entry in cells})
    rows = [
        (str(arm), *(cells.get(TableEntry(arm, size), "") for size in sizes))
        for arm in dict.fromkeys(entry.arm for entry in cells)
    ]
    return _markdown_table(("test accuracy", *(f"L = {size:,}" for size in sizes)), rows)


def paper_shape(table: ResultsTable, entries: Iterable[TableEntry]) -> list[str]:
    """The mean of each variant and its difference from real data alone."""
    cells = {}
    for entry in entries:
        one = table.comparisons.get(entry.name)
        difference = "" if one is None else f" ({100 * one.difference:+.1f}, {table.verdict_word(entry.name)})"
        cells[entry] = f"{100 * table.means[entry.name]:.1f}{difference}"
    return _by_pool_size(cells)


def paper_figures() -> list[str]:
    """The same table as the paper has it."""
    cells = {
        TableEntry(arm, size): f"{value:.1f}" + ("" if arm is Arm.REAL_ONLY else f" ({value - PAPER_BASELINE:+.1f})")
        for arm, row in PAPER_SVHN.items()
        for size, value in row.items()
    }
    return ["", "The paper's Table 1 (Wide ResNet, 1,200,000 steps):", "", *_by_pool_size(cells)]


def best_without_samples(table: ResultsTable) -> list[str]:
    """Every variant with samples against the best one without."""
    compared = table.against_best
    assert compared is not None
    return [
        "## Every variant with samples against the best one without",
        "",
        f"Of the variants without samples, {compared.baseline} has the best validation score. A variant that is better "
        "than real data alone, but not than this one, may only undo harm.",
        "",
        *_rows(table, compared),
        "",
    ]


def all_variants(table: ResultsTable) -> list[str]:
    """A row for each variant: score of each seed, mean, difference, interval, verdict."""
    compared = table.paired_comparison
    lines = _rows(table, compared)
    return [*lines, "", compared.note] if compared.note else lines


def _rows(table: ResultsTable, compared: ComparisonResult) -> list[str]:
    rows = [
        (arm.name, ", ".join(f"{100 * score:.2f}" for score in arm.scores), *row[1:4], "" if not row[2] else row[4])
        for arm, row in zip(compared.arms, compared.rows(table.other_methods), strict=True)
    ]
    return _markdown_table(("variant", "each seed", "mean", "difference", "95 % interval", "verdict"), rows)


def baselines(table: ResultsTable) -> list[str]:
    """What the baselines are trained on and which hyperparameters were chosen; empty where there are none."""
    if not table.other_methods:
        return []
    grids = "chosen on the validation rows" if table.validation_examples else "the first of each grid"
    lines = [
        f"Baselines: {Arm.SUPERVISED} is our classification network trained on the {table.labeled:,} labels alone, for "
        f"as many steps as pretraining; the others are from scikit-learn, with small grids ({grids}). "
        "None of them is ever kept as the model.",
        "",
    ]
    for name, each in table.baselines.items():
        unlabeled = each[0].unlabeled
        rows = f"the labels and {unlabeled:,} unlabelled rows" if unlabeled else "the labels alone"
        failed = [one.failed for one in each if one.chosen is None]
        chosen = "; ".join(dict.fromkeys(str(one.chosen) for one in each))
        lines.append(f"- {name}: uses {rows}; {f'failed ({failed[0]})' if failed else f'chosen: {chosen}'}.")
    return [*lines, ""]


def selections(table: ResultsTable) -> list[str]:
    """The last selection of each variant, averaged over seeds: counts, purity, gradient error."""
    rows = [
        (name, *(_mean(last, figure) for figure in SELECTION_FIGURES))
        for name, record in table.arms.items()
        if (last := record.last_selections())
    ]
    lines = _markdown_table(("variant", *(name.replace("_", " ") for name in SELECTION_FIGURES)), rows)
    if any(record.arm is Arm.ADACORE for record in table.arms.values()):
        lines += ["", "AdaCore's gradients are preconditioned: its error and bound have a unit of their own."]
    return lines


def quality(measured: QualityRecord) -> list[str]:
    """Fidelity and memorization in the encoder's feature space, samples and held-out real examples."""
    real = measured.same_law
    names = ("precision", "recall", "density", "coverage")
    figures = {name: [getattr(each.manifold, name, None) for each in (measured, real)] for name in names}
    figures["Fréchet distance"] = [measured.frechet_distance, real.frechet_distance]
    rows = [(name, *("" if value is None else f"{value:.2f}" for value in values)) for name, values in figures.items()]
    lines = [*_markdown_table((measured.of, "samples", "held-out real"), rows), ""]
    if measured.two_sample is not None:
        lines.append(f"A classifier tells them from real ones {100 * measured.two_sample.accuracy:.1f} % of the time.")
    if (alone := measured.train_on_synthetic) is not None:
        beside = "" if alone.real_accuracy is None else f", on the real labels alone {100 * alone.real_accuracy:.1f} %"
        accuracy = f"{100 * alone.accuracy:.1f} %"
        lines.append(f"A linear classifier trained on them alone has a test accuracy of {accuracy}{beside}.")
    if measured.memorisation is not None:
        words = measured.memorisation.describe()
        lines.append(f"{words[0].upper()}{words[1:]}.")
    return [*lines, *measured.notes]


def _mean(rows: list[dict[str, Any]], name: str) -> str:
    values = [row[name] for row in rows if row.get(name) is not None]
    if not values:
        return ""
    mean = float(np.mean(values))
    if name.endswith("purity"):
        return f"{100 * mean:.1f} %"
    return f"{mean:,.0f}" if mean >= 100 or mean == int(mean) else f"{mean:.3g}"
