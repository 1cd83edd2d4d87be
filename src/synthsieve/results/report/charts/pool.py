"""The samples of a pool by outcome: over entropy, class and weight."""

from __future__ import annotations

import math

import numpy as np

from synthsieve.errors import NothingToDraw
from synthsieve.results.charts.chart import Axis, Bars, Chart, Fill, Layer, Rule, Scale, Tone, numbers
from synthsieve.results.pool_view import PoolView
from synthsieve.selection.entropy import REJECTED, Reason
from synthsieve.training.pool import Outcomes, SyntheticPool

BINS = 36
MIN_ENTROPY = 1e-12  # nats; lower ones, such as 0, are counted in the lowest bin
MAX_CLASSES = 30
HEAVY = 20  # times the median weight
# The look of each outcome, in stacking order.
LOOKS: dict[str, tuple[Tone, Fill]] = {
    "selected": (Tone.BLUE, Fill.FULL),
    Reason.KEPT.describe(): (Tone.BLUE, Fill.LIGHT),
    Reason.HIGH_ENTROPY.describe(): (Tone.ORANGE, Fill.STRIPED),
    Reason.OTHER_LABEL.describe(): (Tone.INK, Fill.DOTS),
    Reason.BY_HAND.describe(): (Tone.PINK, Fill.FULL),
}


def entropy_histogram(pool: SyntheticPool, outcome: Outcomes) -> Chart:
    """How many samples have which entropy, stacked by outcome, with a line at the ceiling."""
    entropy = pool.entropy
    edges = entropy_edges(entropy, outcome.entropy_ceiling)
    clipped = np.clip(entropy, edges[0], edges[-1])
    layers: list[Layer] = []
    base = np.zeros(len(edges) - 1)
    for name, rows in _masks(outcome).items():
        if rows.any():
            count = np.histogram(clipped[rows], edges)[0].astype(float)
            layers.append(_stack(f"{name} ({rows.sum():,})", edges, count, base, *LOOKS[name]))
            base = base + count
    if math.isfinite(outcome.entropy_ceiling):
        layers.append(Rule(outcome.entropy_ceiling, _describe_ceiling(outcome)))
    below = int((entropy < edges[0]).sum())
    counts = ", ".join(f"{number:,} {words}" for words, number in outcome.counts().items() if number)
    return Chart(
        title=f"Entropy of {len(entropy):,} synthetic samples by outcome",
        description=f"{len(entropy):,} samples with a median entropy of {np.median(entropy):.3g} nats: {counts}.",
        x=Axis("entropy of the classifier's prediction, nats", Scale.LOG, low=float(edges[0]), high=float(edges[-1])),
        y=Axis("samples", low=0.0, whole=True),
        layers=tuple(layers),
        note=f"{below:,} samples below {edges[0]:.0e} nats are counted in the lowest bar." if below else "",
    )


def entropy_edges(entropy: np.ndarray, ceiling: float) -> np.ndarray:
    """Edges of the bins, evenly spaced on a log axis, one of them at the ceiling: float64, ascending."""
    low = max(MIN_ENTROPY, float(entropy[entropy > 0].min(initial=1.0)) * 0.999)
    high = max(float(entropy.max()) * 1.001, 2 * low)
    if not math.isfinite(ceiling) or not low < ceiling < high:
        return np.geomspace(low, high, BINS + 1)
    step = math.log(high / low) / BINS
    below, above = (math.ceil(math.log(ratio) / step - 1e-9) for ratio in (ceiling / low, high / ceiling))
    return ceiling * np.exp(step * np.arange(-below, above + 1))


def _describe_ceiling(outcome: Outcomes) -> str:
    if outcome.settings.keep_fraction is None:
        return f"ceiling {outcome.entropy_ceiling:.3g} nats"
    return (
        f"{outcome.entropy_ceiling:.3g} nats: the highest of the class ceilings "
        f"(the lowest {100 * outcome.settings.keep_fraction:.3g} % of each class are kept)"
    )


def _masks(outcome: Outcomes) -> dict[str, np.ndarray]:
    """Outcome -> bool (n,); every sample is in one of them."""
    selected = outcome.weight > 0
    masks = {"selected": selected, Reason.KEPT.describe(): outcome.kept & ~selected}
    return masks | {reason.describe(): (outcome.reason == reason) & ~selected for reason in REJECTED}


def class_yield(view: PoolView, outcome: Outcomes) -> Chart:
    """How many samples of each class were drawn, kept by the filter and selected."""
    y, count = view.pool.y, len(view.classes)
    selected = np.bincount(y[outcome.selected], minlength=count)
    kept, drawn = np.bincount(y[outcome.kept], minlength=count), np.bincount(y, minlength=count)
    shown = np.arange(count)
    notes = []
    if count > MAX_CLASSES:
        shown = np.sort(np.argsort(kept / np.maximum(drawn, 1), kind="stable")[:MAX_CLASSES])
        notes.append(f"The {MAX_CLASSES} of {count} classes with the smallest kept share.")
    purities = [view.pool.purity(np.flatnonzero((y == label) & (outcome.weight > 0))) for label in shown]
    if any(share is not None for share in purities):
        notes.append("On the right: purity, the share of the selected samples that the oracle gives their class.")
    places, names = np.arange(len(shown)), tuple(named(view.classes[i]) for i in shown)

    def bars(words: str, counts: np.ndarray, half: float, tone: Tone, fill: Fill) -> Bars:
        return Bars(
            name=words,
            start=numbers(places - half),
            end=numbers(places + half),
            value=numbers(counts[shown]),
            base=(0.0,) * len(shown),
            tone=tone,
            fill=fill,
            across=True,
            notes=tuple(f"{label}: {number:,} {words}" for label, number in zip(names, counts[shown], strict=True)),
        )

    return Chart(
        title="Samples of each class: drawn, kept, selected",
        description=f"Of {drawn.sum():,} samples drawn, {kept.sum():,} were kept and {selected.sum():,} selected.",
        x=Axis("samples", low=0.0, whole=True),
        y=Axis(categories=names, beside=tuple("" if share is None else f"{100 * share:.0f} %" for share in purities)),
        layers=(
            bars("drawn", drawn, 0.4, Tone.QUIET, Fill.LIGHT),
            bars("kept by the filter", kept, 0.3, Tone.BLUE, Fill.LIGHT),
            bars("selected", selected, 0.2, Tone.BLUE, Fill.FULL),
        ),
        note=" ".join(notes),
    )


def named(label: str) -> str:
    """The name of a class in a figure; a label may be empty."""
    return label if label.strip() else "(no name)"


def weights(outcome: Outcomes) -> Chart:
    """How many selected samples have which weight."""
    if (reason := why_no_coreset(outcome)) is not None:
        raise NothingToDraw(reason, code="no-coreset")
    weight = outcome.weight[outcome.selected]
    edges, scale = _weight_bins(weight)
    count = np.histogram(weight, np.append(edges[:-1], np.inf))[0].astype(float)
    mean = float(weight.mean())
    return Chart(
        title=f"Weights of the {len(weight):,} selected samples",
        description=f"Weights of the coreset: {weight.min():.3g} to {weight.max():.3g}, {mean:.3g} on average.",
        x=Axis("weight: samples that a selected one stands for", scale, low=float(edges[0]), high=float(edges[-1])),
        y=Axis("selected samples", low=0.0, whole=True),
        layers=(
            _stack("selected", edges, count, np.zeros(len(count)), Tone.BLUE, Fill.FULL),
            Rule(mean, f"mean {mean:.3g}"),
        ),
    )


def _weight_bins(weight: np.ndarray) -> tuple[np.ndarray, Scale]:
    """Edges at integers, or evenly spaced on a log axis where a few weights are much larger than the rest."""
    if weight.max() > BINS and weight.max() > HEAVY * np.median(weight):
        return np.geomspace(weight.min() * 0.99, weight.max() * 1.01, BINS + 1), Scale.LOG
    step = max(1.0, math.ceil(weight.max() / BINS))
    return np.arange(0.5, weight.max() + step, step), Scale.LINEAR


def why_no_coreset(outcome: Outcomes) -> str | None:
    """Why there are no weights to show; None where there are."""
    weight = outcome.weight[outcome.selected]
    if not len(weight):
        return "nothing was selected, so there are no weights: raise the ceiling or the budget"
    if (weight == 1).all():
        return "this variant trains on every kept sample with weight 1: there is no coreset to show"
    return None


def _stack(name: str, edges: np.ndarray, count: np.ndarray, base: np.ndarray, tone: Tone, fill: Fill) -> Bars:
    return Bars(name, numbers(edges[:-1]), numbers(edges[1:]), numbers(count), numbers(base), tone, fill)
