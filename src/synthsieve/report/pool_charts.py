"""What became of a pool's samples: by entropy, by class, by weight."""

from __future__ import annotations

import math

import numpy as np

from synthsieve.charts.chart import Axis, Bars, Chart, Fill, Layer, Rule, Scale, Tone, numbers
from synthsieve.entropy import Reason
from synthsieve.errors import NothingToDraw
from synthsieve.pool import SyntheticPool
from synthsieve.review.fate import NOT_CHOSEN, Fate, purity
from synthsieve.review.pool_view import PoolView

BINS = 36
LOWEST = 1e-12  # nats; what lies below, 0 among it, is counted in the lowest bin
MOST_CLASSES = 30
HEAVY = 20  # times the middle weight
# How each fate looks, in the order of stacking.
LOOKS: dict[str, tuple[Tone, Fill]] = {
    "selected": (Tone.BLUE, Fill.FULL),
    NOT_CHOSEN: (Tone.BLUE, Fill.LIGHT),
    Reason.HIGH_ENTROPY.in_words(): (Tone.ORANGE, Fill.STRIPED),
    Reason.OTHER_LABEL.in_words(): (Tone.INK, Fill.DOTS),
    Reason.BY_HAND.in_words(): (Tone.PINK, Fill.FULL),
}


def entropy_histogram(pool: SyntheticPool, fate: Fate) -> Chart:
    """How many samples of each entropy there are, stacked by what became of them, with a line at the ceiling."""
    entropy = pool.entropy
    edges = entropy_edges(entropy, fate.entropy_ceiling)
    clipped = np.clip(entropy, edges[0], edges[-1])
    layers: list[Layer] = []
    base = np.zeros(len(edges) - 1)
    for name, rows in fates(fate).items():
        if not rows.any():
            continue
        count = np.histogram(clipped[rows], edges)[0].astype(float)
        tone, fill = LOOKS[name]
        layers.append(_stack(f"{name} ({rows.sum():,})", edges, count, base, tone, fill))
        base = base + count
    if math.isfinite(fate.entropy_ceiling):
        layers.append(Rule(fate.entropy_ceiling, ceiling_in_words(fate)))
    below = int((entropy < edges[0]).sum())
    note = f"{below:,} samples below {edges[0]:.0e} nats are counted in the lowest bar." if below else ""
    return Chart(
        title=f"Entropy of {len(entropy):,} synthetic samples, and what became of them",
        description=_in_words(entropy, fate),
        x=Axis("entropy of the classifier's answer, nats", Scale.LOG, low=float(edges[0]), high=float(edges[-1])),
        y=Axis("samples", low=0.0, whole=True),
        layers=tuple(layers),
        note=note,
    )


def entropy_edges(entropy: np.ndarray, ceiling: float) -> np.ndarray:
    """Edges of the bins, evenly spaced on a log axis, one of them at the ceiling: float64, ascending."""
    low = max(LOWEST, float(entropy[entropy > 0].min(initial=1.0)) * 0.999)
    high = max(float(entropy.max()) * 1.001, 2 * low)
    if not math.isfinite(ceiling) or not low < ceiling < high:
        return np.geomspace(low, high, BINS + 1)
    step = math.log(high / low) / BINS
    below, above = (math.ceil(math.log(ratio) / step - 1e-9) for ratio in (ceiling / low, high / ceiling))
    return ceiling * np.exp(step * np.arange(-below, above + 1))


def ceiling_in_words(fate: Fate) -> str:
    """What the line at the ceiling means."""
    if fate.settings.keep_fraction is None:
        return f"ceiling {fate.entropy_ceiling:.3g} nats"
    return (
        f"{fate.entropy_ceiling:.3g} nats: the highest of the classes' ceilings "
        f"(the surest {100 * fate.settings.keep_fraction:.3g} % of each class stay)"
    )


def fates(fate: Fate) -> dict[str, np.ndarray]:
    """Who ended where, in words: bool (n,) each; every sample is in one of them."""
    selected = fate.weight > 0
    told = {"selected": selected, NOT_CHOSEN: fate.kept & ~selected}
    for reason in list(Reason)[1:]:
        told[reason.in_words()] = (fate.reason == reason) & ~selected
    return told


def class_yield(view: PoolView, fate: Fate) -> Chart:
    """Of each class, how many samples were drawn, kept by the filter and selected."""
    y, count = view.pool.y, len(view.classes)
    selected = np.bincount(y[fate.selected], minlength=count)
    kept, drawn = np.bincount(y[fate.kept], minlength=count), np.bincount(y, minlength=count)
    shown = np.arange(count)
    note = ""
    if count > MOST_CLASSES:
        shown = np.sort(np.argsort(kept / np.maximum(drawn, 1), kind="stable")[:MOST_CLASSES])
        note = f"The {MOST_CLASSES} of {count} classes of which the smallest share was kept."
    pure = [purity(view.pool, view.scores, np.flatnonzero((y == label) & (fate.weight > 0))) for label in shown]
    if any(share is not None for share in pure):
        note = (
            f"{note} In the right column: purity, the share of the selected that a judge calls by their class.".strip()
        )
    places = np.arange(len(shown))
    layers = tuple(
        _lying(name, places, counted[shown], places_from, half, tone, fill, [named(view.classes[i]) for i in shown])
        for name, counted, places_from, half, tone, fill in (
            ("drawn", drawn, np.zeros(len(shown)), 0.4, Tone.QUIET, Fill.LIGHT),
            ("kept by the filter", kept, np.zeros(len(shown)), 0.3, Tone.BLUE, Fill.LIGHT),
            ("selected", selected, np.zeros(len(shown)), 0.2, Tone.BLUE, Fill.FULL),
        )
    )
    return Chart(
        title="What each class yields: drawn, kept, selected",
        description=f"Of {drawn.sum():,} samples drawn, {kept.sum():,} were kept and {selected.sum():,} selected.",
        x=Axis("samples", low=0.0, whole=True),
        y=Axis(
            categories=tuple(named(view.classes[i]) for i in shown),
            beside=tuple("" if share is None else f"{100 * share:.0f} %" for share in pure),
        ),
        layers=layers,
        note=note,
    )


def named(label: str) -> str:
    """What to call a class in a figure; a name may be empty."""
    return label if label.strip() else "(no name)"


def weights(fate: Fate) -> Chart:
    """How many selected samples stand for how many."""
    if (why := why_no_coreset(fate)) is not None:
        raise NothingToDraw(why)
    weight = fate.weight[fate.selected]
    edges, scale = _weight_bins(weight)
    count = np.histogram(weight, np.append(edges[:-1], np.inf))[0].astype(float)
    mean = float(weight.mean())
    return Chart(
        title=f"How many samples each of the {len(weight):,} selected stands for",
        description=f"Weights of the coreset: {weight.min():.3g} to {weight.max():.3g}, {mean:.3g} on average.",
        x=Axis("weight: samples that a selected one stands for", scale, low=float(edges[0]), high=float(edges[-1])),
        y=Axis("selected samples", low=0.0, whole=True),
        layers=(
            _stack("selected", edges, count, np.zeros(len(count)), Tone.BLUE, Fill.FULL),
            Rule(mean, f"mean {mean:.3g}"),
        ),
    )


def _weight_bins(weight: np.ndarray) -> tuple[np.ndarray, Scale]:
    """Edges of bins and the axis they are even on: of whole numbers, or on a log axis where a few outweigh the rest."""
    if weight.max() > BINS and weight.max() > HEAVY * np.median(weight):
        return np.geomspace(weight.min() * 0.99, weight.max() * 1.01, BINS + 1), Scale.LOG
    step = max(1.0, math.ceil(weight.max() / BINS))
    return np.arange(0.5, weight.max() + step, step), Scale.LINEAR


def why_no_coreset(fate: Fate) -> str | None:
    """Why a fate has no weights to show; None where it has."""
    weight = fate.weight[fate.selected]
    if not len(weight):
        return "nothing was selected, so there are no weights: raise the ceiling or the budget"
    if (weight == 1).all():
        return "this arm learns from every sample that it keeps, each with weight 1: there is no coreset to look at"
    return None


def _stack(name: str, edges: np.ndarray, count: np.ndarray, base: np.ndarray, tone: Tone, fill: Fill) -> Bars:
    return Bars(name, numbers(edges[:-1]), numbers(edges[1:]), numbers(count), numbers(base), tone, fill)


def _lying(
    name: str,
    places: np.ndarray,
    count: np.ndarray,
    base: np.ndarray,
    half: float,
    tone: Tone,
    fill: Fill,
    classes: list[str],
) -> Bars:
    notes = tuple(f"{label}: {number:,} {name}" for label, number in zip(classes, count.tolist(), strict=True))
    start, end = numbers(places - half), numbers(places + half)
    return Bars(name, start, end, numbers(count), numbers(base), tone, fill, across=True, notes=notes)


def _in_words(entropy: np.ndarray, fate: Fate) -> str:
    counted = ", ".join(f"{number:,} {words}" for words, number in fate.counts().items() if number)
    middle = np.quantile(entropy, 0.5)
    return f"{len(entropy):,} samples by the classifier's entropy, {middle:.3g} nats in the middle: {counted}."
