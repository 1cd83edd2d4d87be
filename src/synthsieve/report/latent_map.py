"""A map of the encoder's space: real examples, the pool and the picks, laid out by t-SNE.

PCA and discriminants of ten digits lay classes over each other that are apart in sixteen numbers; t-SNE does not. What
it keeps is who is near whom; distances between clusters mean nothing, and the figure says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synthsieve.charts.chart import SERIES, Axis, Chart, Layer, Points, Shape, Tone, Words, numbers
from synthsieve.errors import NothingToDraw
from synthsieve.randomness import numpy_stream
from synthsieve.report.pool_charts import named
from synthsieve.review.fate import Fate
from synthsieve.review.pool_view import PoolView

LABELED, REAL, PICKS, POOL = 200, 600, 300, 700  # at most so many of each: some seconds of one core
PERPLEXITY = 30.0
ITERATIONS = 500
NAMED = 40  # with more classes than that no name is readable
SHAPES = (Shape.CIRCLE, Shape.SQUARE, Shape.UP, Shape.DIAMOND, Shape.DOWN)


@dataclass(frozen=True)
class Shown:
    """Whom the map shows, as rows: of the real examples (labelled, unlabelled) and of the pool (picks, others)."""

    labeled: np.ndarray
    unlabeled: np.ndarray
    picks: np.ndarray
    others: np.ndarray


def latent_map(view: PoolView, fate: Fate) -> Chart:
    """Means of q(z given x) in two dimensions; pool and picks by class, picks sized by weight."""
    shown = chosen_rows(view, fate)
    count = view.run.settings.model.label_latent_dim  # of two towers the labels' own: style would hide the classes
    real = view.scores.real_features[np.concatenate([shown.labeled, shown.unlabeled])]
    drawn = view.scores.features[np.concatenate([shown.picks, shown.others])]
    places = two_dimensions(np.concatenate([real, drawn])[:, : count or None])
    ends = np.cumsum([len(shown.labeled), len(shown.unlabeled), len(shown.picks)])
    labeled, unlabeled, picks, others = np.split(places, ends)
    y, classes = view.pool.y, view.classes
    layers: list[Layer] = [_points("real, unlabelled", unlabeled, Tone.QUIET, Shape.CIRCLE, 1.6, faint=True)]
    for label in range(len(classes)):
        mine = others[y[shown.others] == label]
        if len(mine):
            layers.append(_points("", mine, *_look(label), 1.8))
    heaviest = float(fate.weight.max())
    for label in range(len(classes)):
        rows = np.flatnonzero(y[shown.picks] == label)
        if len(rows):
            layers.append(_picks(view, fate, shown.picks[rows], picks[rows], label, heaviest))
    if len(labeled):
        layers.append(_points("real, labelled", labeled, Tone.INK, Shape.CROSS, 3.5))
    rows = np.concatenate([shown.picks, shown.others])
    words = _names(view, np.concatenate([picks, others]), y[rows], fate.kept[rows])
    return Chart(
        title="A map of the latents: real examples, the pool, the picks",
        description=(
            f"{len(labeled)} labelled and {len(unlabeled)} unlabelled examples, {len(picks)} selected and "
            f"{len(others)} other samples of the pool in two dimensions, by class."
        ),
        x=Axis(plain=True),
        y=Axis(plain=True),
        layers=(*layers, *words),
        note=(
            f"t-SNE of the {'label tower' if count else 'encoder'}'s means: who is near whom; distances between "
            "clusters mean nothing. "
            + ("A class has its colour and shape; " if words else "There are too many classes to name; ")
            + "small marks are drawn samples, large ones selected, by weight."
        ),
        square=True,
    )


def chosen_rows(view: PoolView, fate: Fate) -> Shown:
    """Whom to show: everybody where there are few, else as many as the map has room for, the same every time."""
    count = len(view.run.split.labeled)
    stream = numpy_stream(0, "latent map")
    real = np.arange(len(view.scores.real_features))
    picks, others = fate.selected, np.flatnonzero(fate.weight == 0)
    if len(real) + len(view.pool) < 4:
        raise NothingToDraw("there are fewer than 4 examples and samples: too few for a map")
    return Shown(
        _some(real[:count], LABELED, stream),
        _some(real[count:], REAL, stream),
        _some(picks, PICKS, stream),
        _some(others, POOL, stream),
    )


def two_dimensions(features: np.ndarray) -> np.ndarray:
    """t-SNE of features (n, d): float64 (n, 2), the same every time; points that coincide stay together."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    features = features.astype(np.float64)
    features = np.pad(features, ((0, 0), (0, max(0, 2 - features.shape[1]))))
    if not np.ptp(features, axis=0).any():
        return np.zeros((len(features), 2))
    perplexity = min(PERPLEXITY, (len(features) - 1) / 3)
    with threadpool_limits(1):  # sums come in another order with more threads
        layout = TSNE(2, init="pca", perplexity=perplexity, max_iter=ITERATIONS, random_state=0, n_jobs=1)
        return np.asarray(layout.fit_transform(features), dtype=np.float64)


def _some(rows: np.ndarray, count: int, stream: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= count else np.sort(stream.choice(rows, count, replace=False))


def _look(label: int) -> tuple[Tone, Shape]:
    """A colour and a shape for each class; thirty classes differ in one of them."""
    return SERIES[label % len(SERIES)], SHAPES[(label + label // len(SERIES)) % len(SHAPES)]


def _points(name: str, places: np.ndarray, tone: Tone, shape: Shape, size: float, *, faint: bool = False) -> Points:
    return Points(name, numbers(places[:, 0]), numbers(places[:, 1]), tone, shape, (size,), faint)


def _picks(view: PoolView, fate: Fate, rows: np.ndarray, places: np.ndarray, label: int, heaviest: float) -> Points:
    weight, entropy, name = fate.weight[rows], view.pool.entropy[rows], named(view.classes[label])
    told = zip(rows.tolist(), weight.tolist(), entropy.tolist(), strict=True)
    return Points(
        "",
        numbers(places[:, 0]),
        numbers(places[:, 1]),
        *_look(label),
        sizes=numbers(2.5 + 4.5 * np.sqrt(weight / heaviest)),
        notes=tuple(f"sample {row}, {name}: stands for {w:.3g}, entropy {h:.2g} nats" for row, w, h in told),
        rows=tuple(rows.tolist()),
    )


def _names(view: PoolView, places: np.ndarray, y: np.ndarray, kept: np.ndarray) -> tuple[Layer, ...]:
    """Each class's name at the median of its samples: of those kept, or of all where none were."""
    present = np.unique(y)
    if not 0 < len(present) <= NAMED:
        return ()
    mine = [(y == label) & kept if ((y == label) & kept).any() else y == label for label in present]
    middles = np.stack([np.median(places[rows], axis=0) for rows in mine])
    words = tuple(named(view.classes[label]) for label in present)
    return (Words(numbers(middles[:, 0]), numbers(middles[:, 1]), words),)
