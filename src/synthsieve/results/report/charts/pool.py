"""The samples of a pool: by outcome over entropy, class and weight; the bound of its coreset; a map of the latents."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from synthsieve.errors import NothingToDraw
from synthsieve.io.random_streams import numpy_stream
from synthsieve.results.charts.chart import (
    SERIES,
    Axis,
    Band,
    Bars,
    Chart,
    Dash,
    Fill,
    Layer,
    Line,
    Points,
    Rule,
    Scale,
    Shape,
    TextLabels,
    Tone,
    numbers,
)
from synthsieve.results.pool_view import PoolView
from synthsieve.selection.entropy import Reason
from synthsieve.selection.options import EXACT_UP_TO
from synthsieve.selection.result import Selection
from synthsieve.settings import Coreset
from synthsieve.training.augment import select_coreset
from synthsieve.training.pool import Outcomes, SyntheticPool

BINS = 36
MIN_ENTROPY = 1e-12  # nats; lower ones, such as 0, are counted in the lowest bin
MAX_CLASSES = 30
OUTLYING = 20  # times the median weight
# The look of each outcome, in stacking order.
LOOKS = {
    Reason.SELECTED: (Tone.BLUE, Fill.FULL),
    Reason.KEPT: (Tone.BLUE, Fill.LIGHT),
    Reason.HIGH_ENTROPY: (Tone.ORANGE, Fill.STRIPED),
    Reason.OTHER_LABEL: (Tone.INK, Fill.DOTS),
    Reason.BY_HAND: (Tone.PINK, Fill.FULL),
}
EXTENT = 5  # the curve of bounds ends at this multiple of the budget
REPEATS = 5  # random selections
STOPS = 60  # points of the curve
NOTES = {
    Coreset.RANDOM: ("This variant selected at random.",),
    Coreset.HERDING: ("This variant selected by herding; the line is CRAIG's selection.",),
    Coreset.ADACORE: ("Measured with the curvature of this pool; training also averaged over earlier selections.",),
}
MAX_LABELED, MAX_REAL, MAX_SELECTED, MAX_POOL = 200, 600, 300, 700  # on the map; some seconds on one core
PERPLEXITY = 30.0
ITERATIONS = 500
MAX_NAMES = 40  # with more classes, names are not readable
SHAPES = (Shape.CIRCLE, Shape.SQUARE, Shape.UP, Shape.DIAMOND, Shape.DOWN)


def entropy_histogram(pool: SyntheticPool, outcome: Outcomes) -> Chart:
    """How many samples have which entropy, stacked by outcome, with a line at the ceiling."""
    entropy = pool.entropy
    edges = entropy_edges(entropy, outcome.entropy_ceiling)
    clipped = np.clip(entropy, edges[0], edges[-1])
    layers: list[Layer] = []
    base, codes = np.zeros(len(edges) - 1), outcome.codes
    for reason, look in LOOKS.items():
        rows = codes == reason
        if rows.any():
            count = np.histogram(clipped[rows], edges)[0].astype(float)
            layers.append(_stack(f"{reason.describe()} ({rows.sum():,})", edges, count, base, *look))
            base = base + count
    if math.isfinite(outcome.entropy_ceiling):
        words, fraction = f"ceiling {outcome.entropy_ceiling:.3g} nats", outcome.settings.keep_fraction
        if fraction is not None:
            kept = f"the lowest {100 * fraction:.3g} % of each class are kept"
            words = f"{outcome.entropy_ceiling:.3g} nats: the highest of the class ceilings ({kept})"
        layers.append(Rule(outcome.entropy_ceiling, words))
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


def class_yield(view: PoolView, outcome: Outcomes) -> Chart:
    """How many samples of each class were drawn, kept by the filter and selected."""
    count = len(view.classes)
    drawn, kept, selected = view.class_counts(outcome).values()
    shown = np.arange(count)
    notes = []
    if count > MAX_CLASSES:
        shown = np.sort(np.argsort(kept / np.maximum(drawn, 1), kind="stable")[:MAX_CLASSES])
        notes.append(f"The {MAX_CLASSES} of {count} classes with the smallest kept share.")
    purities = [view.class_purity(outcome)[label] for label in shown]
    if any(share is not None for share in purities):
        notes.append("On the right: purity, the share of the selected samples that the oracle gives their class.")
    places, names = np.arange(len(shown)), tuple(named(view.classes[i]) for i in shown)

    def bars(words: str, counts: np.ndarray, half: float, tone: Tone, fill: Fill) -> Bars:
        notes = tuple(f"{label}: {number:,} {words}" for label, number in zip(names, counts[shown], strict=True))
        start, end, value = (numbers(each) for each in (places - half, places + half, counts[shown]))
        return Bars(words, start, end, value, (0.0,) * len(shown), tone, fill, across=True, notes=notes)

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
    """How many selected samples have which weight; on a log axis where a few weights are much larger than the rest."""
    check_coreset(outcome)
    weight = outcome.weight[outcome.selected]
    if weight.max() > BINS and weight.max() > OUTLYING * np.median(weight):
        edges, scale = np.geomspace(weight.min() * 0.99, weight.max() * 1.01, BINS + 1), Scale.LOG
    else:
        step = max(1.0, math.ceil(weight.max() / BINS))
        edges, scale = np.arange(0.5, weight.max() + step, step), Scale.LINEAR
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


def check_coreset(outcome: Outcomes) -> None:
    """NothingToDraw where there are no weights to show."""
    weight = outcome.weight[outcome.selected]
    if not len(weight):
        reason = "nothing was selected, so there are no weights: raise the ceiling or the budget"
    elif (weight == 1).all():
        reason = "this variant trains on every kept sample with weight 1: there is no coreset to show"
    else:
        return
    raise NothingToDraw(reason, code="no-coreset")


def _stack(name: str, edges: np.ndarray, count: np.ndarray, base: np.ndarray, tone: Tone, fill: Fill) -> Bars:
    return Bars(name, numbers(edges[:-1]), numbers(edges[1:]), numbers(count), numbers(base), tone, fill)


def bound_against_budget(view: PoolView, outcome: Outcomes) -> Chart:
    """L, CRAIG's bound on the gradient error, after as many greedy picks of each class as a budget allows."""
    check_coreset(outcome)
    kept = np.flatnonzero(outcome.kept)
    sizes = np.bincount(view.pool.y[kept])
    used = outcome.settings.coreset_fraction
    # In large classes the first picks depend on the budget: nothing is known beyond it.
    largest = min(1.0, EXTENT * used) if sizes.max() <= EXACT_UP_TO else used
    settings = outcome.settings.model_copy(update={"coreset_fraction": largest})
    select = partial(select_coreset, view.model, view.pool, kept, settings)
    greedy = select(seed=view.selection_seed)
    random = [select(seed=seed, method="random") for seed in range(REPEATS)]
    stops = np.unique(np.append(np.geomspace(min(1 / sizes.max(), used), largest, STOPS), used))
    greedy_bound, random_bound = bounds_at(greedy, stops), np.stack([bounds_at(each, stops) for each in random])
    shares = numbers(100 * stops)
    adacore = outcome.settings.coreset is Coreset.ADACORE
    layers: list[Layer] = [
        Band("", shares, numbers(random_bound.min(axis=0)), numbers(random_bound.max(axis=0)), Tone.ORANGE),
        Line(f"random, {REPEATS} repeats", shares, numbers(random_bound.mean(axis=0)), Tone.ORANGE, Dash.DASHED),
        Line("AdaCore" if adacore else "CRAIG", shares, numbers(greedy_bound), Tone.BLUE),
        Rule(100 * used, f"used: {100 * used:.3g} % of the {len(kept):,} kept"),
    ]
    at = int(np.searchsorted(stops, used))
    return Chart(
        title="Bound on the gradient error by coreset size",
        description=(
            f"The bound falls as more samples are selected; at {100 * used:.3g} % it is {greedy_bound[at]:.3g}, "
            f"random selection has {random_bound.mean(axis=0)[at]:.3g}."
        ),
        x=Axis("selected share of the kept samples, %", Scale.LOG, low=shares[0], high=shares[-1]),
        y=Axis("L, the bound on the gradient error" + (", in AdaCore's own unit" if adacore else ""), low=0.0),
        layers=tuple(layers),
        note=" ".join(("Lower is better.", *NOTES.get(outcome.settings.coreset, ()))),
    )


def bounds_at(selection: Selection, shares: np.ndarray) -> np.ndarray:
    """L with each share of every class selected, at least one of each: float64, as long as `shares`.

    L(k picks) = L(all picks) + sum of the gains of the picks after the k-th
    """
    total = np.zeros(len(shares))
    first = 0
    for figures in selection.figures:
        gains = selection.gains[first : first + figures.selected]
        first += figures.selected
        after = figures.gradient_bound + np.append(np.cumsum(gains[::-1])[::-1], 0.0)  # after 0, 1, ... picks
        picks = np.maximum(1, np.floor(shares * figures.size + 0.5)).astype(np.int64)
        total += after[np.minimum(picks, figures.selected)]
    return total


def latent_map(view: PoolView, outcome: Outcomes) -> Chart:
    """Means of q(z given x) in two dimensions; samples by class, the selected ones sized by weight."""
    labeled, unlabeled, selected, others = rows = _rows(view, outcome)
    dims = view.run.settings.model.label_latent_dim or None  # of two towers that of the labels: style hides classes
    real, pool = view.real_latents, view.pool.z_reencoded
    features = [real[labeled], real[unlabeled], pool[selected], pool[others]]
    xy = two_dimensions(np.concatenate(features)[:, :dims])
    labeled_xy, unlabeled_xy, selected_xy, others_xy = np.split(xy, np.cumsum([len(each) for each in rows[:3]]))
    y = view.pool.y
    layers: list[Layer] = [_points("real, unlabelled", unlabeled_xy, Tone.QUIET, Shape.CIRCLE, 1.6, faint=True)]
    layers += [_points("", others_xy[y[others] == c], *_look(int(c)), 1.8) for c in np.unique(y[others])]
    for c in np.unique(y[selected]):
        chosen = selected[y[selected] == c]
        weight, name = outcome.weight[chosen], named(view.classes[c])
        columns = zip(chosen.tolist(), weight.tolist(), view.pool.entropy[chosen].tolist(), strict=True)
        notes = tuple(f"sample {row}, {name}: stands for {w:.3g}, entropy {h:.2g} nats" for row, w, h in columns)
        sizes = numbers(2.5 + 4.5 * np.sqrt(weight / outcome.weight.max()))
        one = _points("", selected_xy[y[selected] == c], *_look(int(c)), 0)
        layers.append(replace(one, sizes=sizes, notes=notes, rows=tuple(chosen.tolist())))
    if len(labeled):
        layers.append(_points("real, labelled", labeled_xy, Tone.INK, Shape.CROSS, 3.5))
    shown = np.concatenate([selected, others])
    names = _names(view, np.concatenate([selected_xy, others_xy]), y[shown], outcome.kept[shown])
    return Chart(
        title="Map of the latents: real examples, pool and selected samples",
        description=(
            f"{len(labeled)} labelled and {len(unlabeled)} unlabelled examples, {len(selected)} selected and "
            f"{len(others)} other samples of the pool in two dimensions, by class."
        ),
        x=Axis(plain=True),
        y=Axis(plain=True),
        layers=(*layers, *names),
        note=(
            f"t-SNE of the means of the {'label tower' if dims else 'encoder'}: distances between clusters mean "
            f"nothing. {'Each class has a colour and shape' if names else 'There are too many classes to name'}; "
            "small marks are samples, large ones selected samples, by weight."
        ),
        square=True,
    )


def _rows(view: PoolView, outcome: Outcomes) -> list[np.ndarray]:
    """Labelled and unlabelled real rows, selected and other rows of the pool; a fixed random part where many."""
    if len(view.real_latents) + len(view.pool) < 4:
        raise NothingToDraw("there are fewer than 4 examples and samples, too few for a map", code="too-few-rows")
    count, stream = len(view.run.split.labeled), numpy_stream(0, "latent map")
    real = np.arange(len(view.real_latents))
    rows = (real[:count], real[count:], outcome.selected, np.flatnonzero(outcome.weight == 0))
    limits = (MAX_LABELED, MAX_REAL, MAX_SELECTED, MAX_POOL)
    return [
        each if len(each) <= limit else np.sort(stream.choice(each, limit, replace=False))
        for each, limit in zip(rows, limits, strict=True)
    ]


def two_dimensions(features: np.ndarray) -> np.ndarray:
    """t-SNE of features (n, d) with a fixed seed: float64 (n, 2)."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    features = features.astype(np.float64)
    features = np.pad(features, ((0, 0), (0, max(0, 2 - features.shape[1]))))
    if not np.ptp(features, axis=0).any():
        return np.zeros((len(features), 2))
    perplexity = min(PERPLEXITY, (len(features) - 1) / 3)
    with threadpool_limits(1):  # for the same sums on every machine
        layout = TSNE(2, init="pca", perplexity=perplexity, max_iter=ITERATIONS, random_state=0, n_jobs=1)
        return np.asarray(layout.fit_transform(features), dtype=np.float64)


def _look(label: int) -> tuple[Tone, Shape]:
    """A colour and a shape for each class, different for up to thirty classes."""
    return SERIES[label % len(SERIES)], SHAPES[(label + label // len(SERIES)) % len(SHAPES)]


def _points(name: str, xy: np.ndarray, tone: Tone, shape: Shape, size: float, *, faint: bool = False) -> Points:
    return Points(name, numbers(xy[:, 0]), numbers(xy[:, 1]), tone, shape, (size,), faint)


def _names(view: PoolView, xy: np.ndarray, y: np.ndarray, kept: np.ndarray) -> tuple[Layer, ...]:
    """The name of each class at the median of its kept samples, or of all where none is kept."""
    present = np.unique(y)
    if not 0 < len(present) <= MAX_NAMES:
        return ()
    masks = [(y == label) & kept if ((y == label) & kept).any() else y == label for label in present]
    middles = np.stack([np.median(xy[mask], axis=0) for mask in masks])
    names = tuple(named(view.classes[label]) for label in present)
    return (TextLabels(numbers(middles[:, 0]), numbers(middles[:, 1]), names),)
