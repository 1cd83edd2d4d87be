"""A map of the encoder's space: real examples, the pool and the selected samples, by t-SNE.

PCA and discriminants put classes on top of each other that are separate in 16 dimensions; t-SNE does not. It keeps
neighbourhoods; distances between clusters mean nothing, and the figure says so.
"""

from __future__ import annotations

import numpy as np

from synthsieve.errors import NothingToDraw
from synthsieve.io.random_streams import numpy_stream
from synthsieve.results.charts.chart import SERIES, Axis, Chart, Labels, Layer, Points, Shape, Tone, numbers
from synthsieve.results.pool_view import PoolView
from synthsieve.results.report.charts.pool import named
from synthsieve.training.pool import Outcomes

MAX_LABELED, MAX_REAL, MAX_SELECTED, MAX_POOL = 200, 600, 300, 700  # some seconds on one core
PERPLEXITY = 30.0
ITERATIONS = 500
MAX_NAMES = 40  # with more classes, names are not readable
SHAPES = (Shape.CIRCLE, Shape.SQUARE, Shape.UP, Shape.DIAMOND, Shape.DOWN)


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
        chosen = y[selected] == c
        layers.append(_selected(view, outcome, selected[chosen], selected_xy[chosen], int(c)))
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


def _selected(view: PoolView, outcome: Outcomes, rows: np.ndarray, xy: np.ndarray, label: int) -> Points:
    weight, name = outcome.weight[rows], named(view.classes[label])
    columns = zip(rows.tolist(), weight.tolist(), view.pool.entropy[rows].tolist(), strict=True)
    return Points(
        "",
        numbers(xy[:, 0]),
        numbers(xy[:, 1]),
        *_look(label),
        sizes=numbers(2.5 + 4.5 * np.sqrt(weight / outcome.weight.max())),
        notes=tuple(f"sample {row}, {name}: stands for {w:.3g}, entropy {h:.2g} nats" for row, w, h in columns),
        rows=tuple(rows.tolist()),
    )


def _names(view: PoolView, xy: np.ndarray, y: np.ndarray, kept: np.ndarray) -> tuple[Layer, ...]:
    """The name of each class at the median of its kept samples, or of all where none is kept."""
    present = np.unique(y)
    if not 0 < len(present) <= MAX_NAMES:
        return ()
    masks = [(y == label) & kept if ((y == label) & kept).any() else y == label for label in present]
    middles = np.stack([np.median(xy[mask], axis=0) for mask in masks])
    names = tuple(named(view.classes[label]) for label in present)
    return (Labels(numbers(middles[:, 0]), numbers(middles[:, 1]), names),)
