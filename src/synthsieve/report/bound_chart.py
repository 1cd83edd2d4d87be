"""How far the gradient of a coreset can be off, against how many samples it may have: the greedy choice and chance."""

from __future__ import annotations

import numpy as np

from synthsieve.augmentation import select_among
from synthsieve.charts.chart import Axis, Band, Chart, Dash, Layer, Line, Rule, Scale, Tone, numbers
from synthsieve.config import Coreset
from synthsieve.errors import NothingToDraw
from synthsieve.report.pool_charts import why_no_coreset
from synthsieve.review.fate import Fate, judged_again
from synthsieve.review.pool_view import PoolView
from synthsieve.selection.methods import EXACT_UP_TO
from synthsieve.sieve import Selection

FURTHER = 5  # how many times the budget that was used the curve goes on to
CHANCES = 5  # how often picks are drawn at random
STOPS = 60  # places along the curve
NOTES = {
    Coreset.RANDOM: ("This arm itself took random picks.",),
    Coreset.ADACORE: ("Measured with this pool's curvature alone; training averaged over its earlier choices, too.",),
}


def bound_against_budget(view: PoolView, fate: Fate) -> Chart:
    """L, CRAIG's bound on the gradient error, at every budget: that of the picks, and of as many random ones.

    The bound at a budget is what the greedy choice had reached when it had made so many picks of each class.
    """
    if (why := why_no_coreset(fate)) is not None:
        raise NothingToDraw(why)
    kept = np.flatnonzero(fate.kept)
    sizes = np.bincount(view.pool.y[kept])
    used = fate.settings.coreset_fraction
    # Where classes are large the first picks depend on how many are asked for: nothing is known beyond the budget.
    most = min(1.0, FURTHER * used) if sizes.max() <= EXACT_UP_TO else used
    settings = fate.settings.model_copy(update={"coreset_fraction": most})
    judged = judged_again(view.model, view.pool, view.scores, settings)
    greedy = select_among(judged, kept, settings, seed=view.choice_seed)
    chance = [select_among(judged, kept, settings, seed=seed, method="random") for seed in range(CHANCES)]
    stops = np.unique(np.append(np.geomspace(min(1 / sizes.max(), used), most, STOPS), used))
    lower, higher = bounds_at(greedy, stops), np.stack([bounds_at(each, stops) for each in chance])
    shares = numbers(100 * stops)
    adacore = fate.settings.coreset is Coreset.ADACORE
    layers: list[Layer] = [
        Band("", shares, numbers(higher.min(axis=0)), numbers(higher.max(axis=0)), Tone.ORANGE),
        Line(f"random picks, {CHANCES} times", shares, numbers(higher.mean(axis=0)), Tone.ORANGE, Dash.DASHED),
        Line("AdaCore's picks" if adacore else "CRAIG's picks", shares, numbers(lower), Tone.BLUE),
        Rule(100 * used, f"used: {100 * used:.3g} % of the {len(kept):,} kept"),
    ]
    at = int(np.searchsorted(stops, used))
    return Chart(
        title="How far the coreset's gradient can be off, by its size",
        description=(
            f"The bound falls as more samples are selected; at {100 * used:.3g} % it is {lower[at]:.3g}, "
            f"where random picks have {higher.mean(axis=0)[at]:.3g}."
        ),
        x=Axis("share of the kept samples that is selected, %", Scale.LOG, low=shares[0], high=shares[-1]),
        y=Axis("L, the bound on the gradient error" + (", in AdaCore's unit" if adacore else ""), low=0.0),
        layers=tuple(layers),
        note=" ".join(("Lower is better.", *NOTES.get(fate.settings.coreset, ()))),
    )


def bounds_at(selection: Selection, shares: np.ndarray) -> np.ndarray:
    """L after each share of every class was picked, at least one of each: float64, as long as `shares`.

    L(k picks) = L(all picks) + what the picks after the k-th took off
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
