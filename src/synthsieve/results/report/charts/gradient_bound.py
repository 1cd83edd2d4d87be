"""The bound on the gradient error of a coreset against its size: greedy and random selection."""

from __future__ import annotations

from functools import partial

import numpy as np

from synthsieve.errors import NothingToDraw
from synthsieve.results.charts.chart import Axis, Band, Chart, Dash, Layer, Line, Rule, Scale, Tone, numbers
from synthsieve.results.pool_view import PoolView
from synthsieve.results.report.charts.pool import why_no_coreset
from synthsieve.selection.options import EXACT_UP_TO
from synthsieve.selection.result import Selection
from synthsieve.settings import Coreset
from synthsieve.training.augment import select_coreset
from synthsieve.training.pool import Outcomes

EXTENT = 5  # the curve ends at this multiple of the budget
REPEATS = 5  # random selections
STOPS = 60  # points of the curve
NOTES = {
    Coreset.RANDOM: ("This variant selected at random.",),
    Coreset.ADACORE: ("Measured with the curvature of this pool; training also averaged over earlier selections.",),
}


def bound_against_budget(view: PoolView, outcome: Outcomes) -> Chart:
    """L, CRAIG's bound on the gradient error, after as many greedy picks of each class as a budget allows."""
    if (reason := why_no_coreset(outcome)) is not None:
        raise NothingToDraw(reason, code="no-coreset")
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
