"""Losses and accuracy during training; the log-density of Langevin chains, and samples at several temperatures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from synthsieve.errors import NothingToDraw
from synthsieve.evaluation.quality import TemperatureRow
from synthsieve.experiments.arms import BASELINE
from synthsieve.models import generate
from synthsieve.results.charts.chart import Axis, Band, Chart, Dash, Layer, Line, Rule, Scale, Tone, numbers
from synthsieve.results.export.media import spaced_ranks
from synthsieve.results.finished import SINGLE_FIT, FinishedRun
from synthsieve.results.pool_view import PoolView
from synthsieve.training.history import Row, read
from synthsieve.training.run_dir import RunDirectory

CHAINS = 200
# Columns of the history that are cross-entropies, and their names.
CROSS_ENTROPIES = {
    "cross_entropy": ("labelled examples", Tone.BLUE, Dash.SOLID),
    "synthetic_cross_entropy": ("synthetic samples", Tone.ORANGE, Dash.DOTTED),
    "pseudo_cross_entropy": ("pseudo-labels", Tone.PINK, Dash.DASH_DOT),
    "implicit_cross_entropy": ("implicit samples", Tone.OCHRE, Dash.DASH_DOT),
    "validation_cross_entropy": ("validation examples", Tone.GREEN, Dash.DASHED),
}


def losses(run: FinishedRun, arm: str | None = None) -> Chart:
    """Cross-entropies during pretraining and augmented training of a variant, the default one if none is given."""
    name, rows, extra, note = _history(run, arm)
    layers: list[Layer] = []
    for term, (words, tone, dash) in CROSS_ENTROPIES.items():
        found = [row for row in rows if row.get(term, 0) > 0]
        if found:
            steps = numbers(row["step"] for row in found)
            layers.append(Line(words, steps, numbers(row[term] for row in found), tone, dash))
    if not layers:
        raise NothingToDraw("the history of this run has no losses", code="no-history")
    return Chart(
        title="Cross-entropy during training",
        description=f"Cross-entropy over {rows[-1]['step']:,} steps of {name}.",
        x=Axis("step"),
        y=Axis("cross-entropy, nats", Scale.LOG),
        layers=(*layers, *extra),
        note=note,
    )


def elbo(run: FinishedRun, arm: str | None = None) -> Chart:
    """The negative ELBO over the same steps as `losses`."""
    _, rows, extra, note = _history(run, arm)
    found = [row for row in rows if math.isfinite(row.get("elbo", math.nan))]
    if not found:
        raise NothingToDraw("this run was trained on labels only: it has no generator and no ELBO", code="no-elbo")
    values = numbers(row["elbo"] for row in found)
    return Chart(
        title="Negative ELBO during training",
        description=f"The negative ELBO per example, from {values[0]:.4g} to {values[-1]:.4g} nats.",
        x=Axis("step"),
        y=Axis("negative ELBO per example, nats", Scale.LOG if min(values) > 0 else Scale.LINEAR),
        layers=(Line("negative ELBO", numbers(row["step"] for row in found), values), *extra),
        note=note,
    )


def accuracy(run: FinishedRun, arm: str | None = None) -> Chart:
    """Validation accuracy during pretraining and of every variant after it; `arm` is highlighted."""
    first = _accuracies(read(run.pretrained.path / "history.jsonl"))
    begins = run.pretrained.settings.training.steps
    variants = {}
    for name, record in ({} if run.table is None else run.table.arms).items():
        if record.arm.branches_off:
            rows = _accuracies(read(run.path / f"seed-{run.seed}" / record.entry.slug / "history.jsonl"))
            variants[name] = [row for row in rows if row["step"] >= begins]
    variants = {name: rows for name, rows in variants.items() if rows}
    if not first and not variants:
        raise NothingToDraw("this run has no validation rows, so no accuracy was measured", code="no-validation")
    default = arm or (run.default_arm if run.pooled else None)
    shown = [name for name in dict.fromkeys((BASELINE.name, run.chosen, default)) if name in variants]
    others = [name for name in variants if name not in shown]
    words = "another variant" if len(others) == 1 else f"{len(others)} other variants"
    layers: list[Layer] = [_line("" if i else words, variants[name], Tone.QUIET) for i, name in enumerate(others)]
    if first:
        layers.append(_line("pretraining" if variants else "validation accuracy", first, Tone.INK))
    looks = ((Tone.BLUE, Dash.DASHED), (Tone.ORANGE, Dash.SOLID), (Tone.GREEN, Dash.DOTTED))
    layers += [_line(str(name), variants[str(name)], *look) for name, look in zip(shown, looks, strict=False)]
    best = 100 * max(row["validation_accuracy"] for rows in (first, *variants.values()) for row in rows)
    return Chart(
        title="Validation accuracy during training",
        description=f"Accuracy on the validation examples over the steps; {best:.2f} % at best.",
        x=Axis("step"),
        y=Axis("validation accuracy, %"),
        layers=tuple(layers),
    )


def _line(name: str, rows: Sequence[Row], tone: Tone, dash: Dash = Dash.SOLID) -> Line:
    steps = numbers(row["step"] for row in rows)
    return Line(name, steps, numbers(100 * row["validation_accuracy"] for row in rows), tone, dash)


def _accuracies(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if math.isfinite(row.get("validation_accuracy", math.nan))]


def _history(run: FinishedRun, arm: str | None) -> tuple[str, list[Row], tuple[Layer, ...], str]:
    """A variant's name and history, which begins with pretraining; a rule where that ends; and a note."""
    name = arm or (run.default_arm if run.pooled else SINGLE_FIT)
    folder = RunDirectory.open(run.arm_folder(name)) if name in run.pooled or arm else run.pretrained
    settings = folder.settings
    rule = (Rule(settings.training.steps, "augmented training"),) if settings.augmentation.steps else ()
    return name, read(folder.path / "history.jsonl"), rule, "" if name == SINGLE_FIT else f"Pretraining, then {name}."


def temperature_chart(rows: Sequence[TemperatureRow]) -> Chart:
    """Entropies and shares against the temperature."""
    lines: dict[str, tuple[list[float], Tone, Dash]] = {
        "entropy at z, nats": ([row.mean_entropy_z for row in rows], Tone.BLUE, Dash.SOLID),
        "entropy at x, nats": ([row.mean_entropy_x for row in rows], Tone.ORANGE, Dash.DASHED),
        "share with the requested class at x": ([row.requested_share_x for row in rows], Tone.GREEN, Dash.DOTTED),
    }
    if all(row.purity is not None for row in rows):
        lines["purity by the oracle"] = ([float(row.purity or 0) for row in rows], Tone.PINK, Dash.DASH_DOT)
    x = numbers(row.temperature for row in rows)
    return Chart(
        title="The effect of the temperature on samples",
        description="Mean entropies, and the share of samples of the requested class, at each temperature.",
        x=Axis("temperature of the chains"),
        y=Axis("nats, or share", low=0.0),
        layers=tuple(Line(name, x, numbers(y), tone, dash) for name, (y, tone, dash) in lines.items()),
    )


def chain_log_density(view: PoolView) -> Chart:
    """The log-density along the Langevin steps of some chains of the pool, replayed: mean and 5 to 95 %."""
    check_chains(view)
    chains = view.pool.chains
    rows = spaced_ranks(len(view.pool), CHAINS)
    measured = generate.replay_diagnostics(view.model, view.pool.y[rows], view.pool.chain_seed[rows], chains=chains)
    steps = numbers(range(chains.num_steps + 1))
    mean, ends = measured.log_density.numpy(), measured.log_density_range.numpy()
    late = measured.late_climb if chains.num_steps else 0.0
    return Chart(
        title="Log-density of the chains",
        description=(
            f"Mean log-density of {len(rows)} chains along {chains.num_steps} Langevin steps: from {mean[0]:.3g} to "
            f"{mean[-1]:.3g}, of which {late:+.3g} in the last quarter."
        ),
        x=Axis("Langevin step"),
        y=Axis("log p(z given y), up to a constant of each class; nats"),
        layers=(
            Band("5 to 95 % of the chains", steps, numbers(ends[:, 0]), numbers(ends[:, 1]), Tone.BLUE),
            Line("mean", steps, numbers(mean), Tone.BLUE),
        ),
        note=(
            f"{len(rows)} chains of the pool, at temperature {chains.temperature:g}. A flat end means that they have "
            "converged."
        ),
    )


def check_chains(view: PoolView) -> None:
    """NothingToDraw where chains cannot be replayed."""
    if "latents_of" in view.pool.origin:
        reason = "this pool's latents came from an earlier model, so its chains cannot be replayed"
        raise NothingToDraw(reason, code="no-chains")
    if not view.pool.origin["num_steps"]:
        raise NothingToDraw("the samples of this pool were drawn without Langevin steps", code="no-chains")
