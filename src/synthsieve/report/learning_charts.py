"""How learning went: losses and accuracy over the steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from synthsieve.charts.chart import Axis, Chart, Dash, Layer, Line, Rule, Scale, Tone, numbers
from synthsieve.errors import NothingToDraw
from synthsieve.experiments.arms import BASELINE, Arm, Cell
from synthsieve.learning.history import Row, read
from synthsieve.learning.run_folder import RunFolder
from synthsieve.review.run import ALONE, Run

# Terms of the history that are cross-entropies, and what to call them.
CROSS_ENTROPIES = {
    "cross_entropy": ("labelled examples", Tone.BLUE, Dash.SOLID),
    "synthetic_cross_entropy": ("synthetic samples", Tone.ORANGE, Dash.DOTTED),
    "pseudo_cross_entropy": ("pseudo-labels", Tone.PINK, Dash.DASH_DOT),
    "implicit_cross_entropy": ("implicit samples", Tone.OCHRE, Dash.DASH_DOT),
    "validation_cross_entropy": ("validation examples", Tone.GREEN, Dash.DASHED),
}


def losses(run: Run, arm: str | None = None) -> Chart:
    """Cross-entropies over the steps of the first phase and of an arm, that which is looked at if none is given."""
    name, rows = _looked_at(run, arm)
    layers: list[Layer] = []
    for term, (called, tone, dash) in CROSS_ENTROPIES.items():
        mine = [row for row in rows if row.get(term, 0) > 0]
        if mine:
            steps = numbers(row["step"] for row in mine)
            layers.append(Line(called, steps, numbers(row[term] for row in mine), tone, dash))
    if not layers:
        raise NothingToDraw("this run's history has no losses: nothing was learned, or it ended before the first row")
    return Chart(
        title="Cross-entropy as learning goes on",
        description=f"Cross-entropy over {rows[-1]['step']:,} steps of {name}.",
        x=Axis("step"),
        y=Axis("cross-entropy, nats", Scale.LOG),
        layers=(*layers, *_second_phase(run, arm)),
        note=_of(name),
    )


def elbo(run: Run, arm: str | None = None) -> Chart:
    """The negative ELBO over the steps of the first phase and of an arm, as `losses`."""
    name, rows = _looked_at(run, arm)
    mine = [row for row in rows if math.isfinite(row.get("elbo", math.nan))]
    if not mine:
        raise NothingToDraw("this run learned from labels alone: it has no generator, and no ELBO")
    values = numbers(row["elbo"] for row in mine)
    return Chart(
        title="Negative ELBO as learning goes on",
        description=f"The negative ELBO of an example, from {values[0]:.4g} to {values[-1]:.4g} nats.",
        x=Axis("step"),
        y=Axis("negative ELBO of an example, nats", Scale.LOG if min(values) > 0 else Scale.LINEAR),
        layers=(Line("negative ELBO", numbers(row["step"] for row in mine), values), *_second_phase(run, arm)),
        note=_of(name),
    )


def accuracy(run: Run, arm: str | None = None) -> Chart:
    """Validation accuracy over the steps: of the first phase, and of every arm after it, `arm` standing out."""
    first = _accuracies(_rows(run.first_phase))
    begins = run.first_phase.settings.learning.steps
    arms = {name: _accuracies(rows) for name, rows in _arm_rows(run, begins).items() if _accuracies(rows)}
    if not first and not arms:
        raise NothingToDraw("this run kept no validation rows, so that no accuracy was measured on the way")
    shown = [name for name in dict.fromkeys((BASELINE.name, run.chosen, arm or _pool_name(run))) if name in arms]
    others = [name for name in arms if name not in shown]
    layers: list[Layer] = [
        _line("" if i else _others(len(others)), arms[name], Tone.QUIET) for i, name in enumerate(others)
    ]
    if first:
        layers.append(_line("first phase" if arms else "validation accuracy", first, Tone.INK))
    looks = ((Tone.BLUE, Dash.DASHED), (Tone.ORANGE, Dash.SOLID), (Tone.GREEN, Dash.DOTTED))
    layers += [_line(name, arms[name], tone, dash=dash) for name, (tone, dash) in zip(shown, looks, strict=False)]
    best = 100 * max(row["validation_accuracy"] for rows in (first, *arms.values()) for row in rows)
    return Chart(
        title="Validation accuracy as learning goes on",
        description=f"Accuracy on the validation examples over the steps; {best:.2f} % at best.",
        x=Axis("step"),
        y=Axis("validation accuracy, %"),
        layers=tuple(layers),
    )


def _line(name: str, rows: Sequence[Row], tone: Tone, *, dash: Dash = Dash.SOLID) -> Line:
    steps = numbers(row["step"] for row in rows)
    return Line(name, steps, numbers(100 * row["validation_accuracy"] for row in rows), tone, dash)


def _accuracies(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if math.isfinite(row.get("validation_accuracy", math.nan))]


def _rows(folder: RunFolder) -> list[Row]:
    return read(folder.path / "history.jsonl")


def _arm_rows(run: Run, begins: int) -> dict[str, list[Row]]:
    """Of every arm that goes on from the first phase, its rows from the step on at which it left that."""
    found = {}
    for name, entry in ({} if run.table is None else run.table["arms"]).items():
        cell = Cell(Arm(entry["arm"]), int(entry["pool_size"]))
        if cell.arm.branches_off:
            rows = read(run.path / f"seed-{run.seed}" / cell.slug / "history.jsonl")
            found[name] = [row for row in rows if row["step"] >= begins]
    return found


def _pool_name(run: Run) -> str | None:
    return run.looked_at if run.pooled else None


def _folder(run: Run, arm: str | None) -> RunFolder:
    """The folder of an arm with a pool, which begins with the history of the first phase; else the first phase's."""
    name = arm or _pool_name(run)
    return run.first_phase if name is None else RunFolder.open(run.arm_folder(name))


def _looked_at(run: Run, arm: str | None) -> tuple[str, list[Row]]:
    """What an arm is called, and its history."""
    return arm or _pool_name(run) or ALONE, _rows(_folder(run, arm))


def _second_phase(run: Run, arm: str | None) -> tuple[Layer, ...]:
    """A line where the second phase begins; none where there is none."""
    settings = _folder(run, arm).settings
    return (Rule(settings.learning.steps, "second phase"),) if settings.augmentation.steps else ()


def _others(count: int) -> str:
    return "another arm" if count == 1 else f"{count} other arms"


def _of(name: str) -> str:
    return "" if name == ALONE else f"The first phase, then {name}."
