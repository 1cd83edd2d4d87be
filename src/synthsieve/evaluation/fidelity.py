"""How similar synthetic samples are to real data in a feature space: overlap, moments, two-sample test, utility.

Every function takes plain matrices (rows, features).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from synthsieve.errors import DataError
from synthsieve.evaluation.memorization import BLOCK_VALUES, same_space
from synthsieve.evaluation.metrics import wilson_interval
from synthsieve.io.random_streams import numpy_stream

EPOCHS = 30
MIN_ROWS = 10  # of each kind, half of them for training
RESAMPLES = 2000


class _Figures:
    """A result that is plain numbers."""

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Manifold(_Figures):
    """How two sets of points overlap, by balls around each point with its k-th nearest neighbour as radius."""

    precision: float  # share of synthetic points in some real ball, 0 to 1
    recall: float  # share of real points in some synthetic ball, 0 to 1
    # real balls around a synthetic point, over k, on average; about 1 for two samples of one distribution
    density: float
    coverage: float  # share of real balls with a synthetic point; about 1 - 2^-k for two samples of one distribution
    neighbours: int  # k
    num_real: int  # number of points
    num_synthetic: int


@dataclass(frozen=True)
class TwoSample(_Figures):
    """How well a classifier separates real from synthetic rows; an accuracy of one half means not at all."""

    accuracy: float  # share of held-out rows, as many real as synthetic, that are classified correctly
    low: float  # Wilson's 95 % interval of the accuracy
    high: float
    p_value: float  # probability of this accuracy or a higher one by guessing
    count: int  # held-out rows of both kinds


@dataclass(frozen=True)
class SyntheticTraining(_Figures):
    """A classifier trained on synthetic samples, tested on real examples, and one trained on real examples."""

    accuracy: float  # on real test examples, of the classifier trained on synthetic samples
    low: float  # Wilson's 95 % interval of it
    high: float
    count: int  # number of real test examples
    real_accuracy: float | None  # the same for the classifier trained on real examples; None without them
    gap: float | None  # real_accuracy - accuracy; None without real examples
    gap_low: float | None  # 95 % interval of the gap over the choice of test examples; None without real examples
    gap_high: float | None


def manifold(real: np.ndarray, synthetic: np.ndarray, *, neighbours: int = 5) -> Manifold:
    """Precision and recall (Kynkäänniemi 2019), density and coverage (Naeem 2020) of real (n, d), synthetic (m, d).

    With R_i from real i to its k-th nearest other real, S_j likewise for synthetic, D_ij = norm(real_i - synthetic_j):
    precision = mean_j any_i(D_ij < R_i), recall = mean_i any_j(D_ij < S_j),
    density = sum_ij(D_ij < R_i) / (k m), coverage = mean_i any_j(D_ij < R_i).
    A point at exactly that distance is outside. Distances are computed for a block of rows at a time.
    """
    real, synthetic = same_space(real=real, synthetic=synthetic)
    if not 1 <= neighbours < min(len(real), len(synthetic)):
        raise DataError(
            f"expected more rows than neighbours={neighbours} (at least 1), got {len(real)} real and {len(synthetic)} "
            "synthetic: use fewer neighbours or more rows",
            code="too-few-rows",
        )
    real_radius, synthetic_radius = _radius(real, neighbours), _radius(synthetic, neighbours)
    balls_around = np.zeros(len(synthetic), dtype=np.int64)
    covered, recalled = np.zeros(len(real), dtype=bool), np.zeros(len(real), dtype=bool)
    for rows in gen_batches(len(real), _block_rows(synthetic)):
        distances = cdist(real[rows], synthetic)
        inside = distances < real_radius[rows, None]
        balls_around += np.count_nonzero(inside, axis=0)
        covered[rows] = inside.any(axis=1)
        recalled[rows] = (distances < synthetic_radius).any(axis=1)
    return Manifold(
        precision=float((balls_around > 0).mean()),
        recall=float(recalled.mean()),
        density=float(balls_around.mean() / neighbours),
        coverage=float(covered.mean()),
        neighbours=neighbours,
        num_real=len(real),
        num_synthetic=len(synthetic),
    )


def frechet_distance(real: np.ndarray, synthetic: np.ndarray) -> float:
    """The squared Fréchet distance between Gaussians with the moments of real (n, d) and synthetic (m, d).

    |mu1 - mu2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), covariances over n - 1. With C = R^T R from the centred rows' QR,
    tr (C1 C2)^(1/2) is the sum of the singular values of R1 R2^T: no root of a covariance is taken, so singular ones,
    and fewer rows than features, cost no accuracy. It grows as samples shrink: compare it at equal sizes only.
    """
    real, synthetic = same_space(real=real, synthetic=synthetic)
    if min(len(real), len(synthetic)) < 2:
        message = (
            f"expected at least 2 rows of each kind for a covariance, got {len(real)} and {len(synthetic)}: add rows"
        )
        raise DataError(message, code="too-few-rows")
    first_mean, first = _mean_and_root(real)
    second_mean, second = _mean_and_root(synthetic)
    shared = np.linalg.svd(first @ second.T, compute_uv=False).sum()
    apart = ((first_mean - second_mean) ** 2).sum()
    return max(0.0, float(apart + (first**2).sum() + (second**2).sum() - 2 * shared))


def two_sample_accuracy(real: np.ndarray, synthetic: np.ndarray, *, rng: np.random.Generator) -> TwoSample:
    """How well a classifier trained on one half separates real (n, d) from synthetic (m, d) rows of the other half.

    As many rows of each kind are drawn as the smaller set has. The classifier is a network of one hidden layer on
    standardized features: a linear one does not see a wrong variance, and nearest neighbours favour the denser set. If
    both kinds have the same distribution, the one-sided p-value is not too small.
    """
    real, synthetic = same_space(real=real, synthetic=synthetic)
    size = min(len(real), len(synthetic))
    if size < MIN_ROWS:
        raise DataError(
            f"expected at least {MIN_ROWS} rows of each kind, got {len(real)} real and {len(synthetic)} synthetic: "
            "give more rows",
            code="too-few-rows",
        )
    kinds = [m[rng.permutation(len(m))[:size]].astype(np.float64) for m in (real, synthetic)]
    half = size // 2
    train, test = (np.concatenate([kind[part] for kind in kinds]) for part in (slice(half), slice(half, None)))
    seed, batch = int(rng.integers(2**31)), min(200, 2 * half)
    mlp = MLPClassifier(
        (32,), alpha=1.0, batch_size=batch, learning_rate_init=0.005, max_iter=EPOCHS, random_state=seed
    )
    network = make_pipeline(StandardScaler(), mlp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops early on purpose, against overfitting
        network.fit(train, np.repeat([0, 1], half))
    right = network.predict(test) == np.repeat([0, 1], size - half)
    p_value = stats.binomtest(int(right.sum()), len(right), 0.5, alternative="greater").pvalue
    low, high = wilson_interval(float(right.mean()), len(right))
    return TwoSample(float(right.mean()), low, high, float(p_value), len(right))


def train_on_synthetic(
    synthetic: np.ndarray,
    labels: np.ndarray,
    test_real: np.ndarray,
    test_labels: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    real: np.ndarray | None = None,
    real_labels: np.ndarray | None = None,
    seed: int,
) -> SyntheticTraining:
    """How well a multinomial logistic regression trained on synthetic (n, d), labels (n,) does on real examples.

    Each synthetic row counts `weights` (n,) times; features are standardized by the training rows. With `real` (m, d)
    and `real_labels` (m,) a second one is trained on those and compared on the same test examples. `seed` is used only
    then: the gap's interval is a bootstrap over the test examples.
    """
    if (real is None) != (real_labels is None):
        message = "expected `real` and `real_labels` together, got one of them: give both or neither"
        raise DataError(message, code="real-without-labels")
    given = {"synthetic": synthetic, "test_real": test_real} | ({} if real is None else {"real": real})
    samples, tests, *examples = same_space(**given)
    classes = _labels("labels", labels, samples)
    answers = _labels("test_labels", test_labels, tests)
    if set(classes.tolist()).isdisjoint(answers.tolist()):
        raise DataError(
            f"expected `labels` and `test_labels` to name the same classes, got {classes[0]!r} in one and "
            f"{answers[0]!r} in the other: encode both the same way",
            code="other-classes",
        )
    right = _fit("synthetic", samples, classes, _weights(weights, len(samples))).predict(tests) == answers
    low, high = wilson_interval(float(right.mean()), len(right))
    if real_labels is None:
        return SyntheticTraining(float(right.mean()), low, high, len(right), None, None, None, None)
    real_classes = _labels("real_labels", real_labels, examples[0])
    real_right = _fit("real", examples[0], real_classes, np.ones(len(real_classes))).predict(tests) == answers
    gain = real_right.astype(np.int64) - right
    gap_low, gap_high = _bootstrap(gain, numpy_stream(seed, "gap of training on synthetic"))
    real_accuracy, gap = float(real_right.mean()), float(gain.mean())
    return SyntheticTraining(float(right.mean()), low, high, len(right), real_accuracy, gap, gap_low, gap_high)


def _radius(points: np.ndarray, neighbours: int) -> np.ndarray:
    """Distance from each point to its k-th nearest other point: float64 (n,)."""
    radius = np.empty(len(points))
    for rows in gen_batches(len(points), _block_rows(points)):
        radius[rows] = np.partition(cdist(points[rows], points), neighbours, axis=1)[:, neighbours]  # 0 is the point
    return radius


def _block_rows(others: np.ndarray) -> int:
    return max(1, BLOCK_VALUES // len(others))


def _mean_and_root(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean (d,) and R (at most d, d) with R^T R the covariance."""
    rows = matrix.astype(np.float64)
    mean = rows.mean(axis=0)
    rows -= mean
    return mean, np.linalg.qr(rows, mode="r") / np.sqrt(len(rows) - 1)


def _bootstrap(gain: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """95 % bootstrap interval of the mean of values -1, 0, 1, by resampling their counts."""
    shares = np.bincount(gain + 1, minlength=3) / len(gain)
    counts = rng.multinomial(len(gain), shares, size=RESAMPLES)
    low, high = np.quantile((counts[:, 2] - counts[:, 0]) / len(gain), [0.025, 0.975])
    return float(low), float(high)


def _fit(name: str, x: np.ndarray, classes: np.ndarray, weights: np.ndarray) -> Pipeline:
    kept = weights > 0
    if len(np.unique(classes[kept])) < 2:
        message = f"expected at least two classes among the `{name}` rows, got one: draw samples of every class"
        raise DataError(message, code="one-class")
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(
        x[kept].astype(np.float64),
        classes[kept],
        standardscaler__sample_weight=weights[kept],
        logisticregression__sample_weight=weights[kept],
    )


def _labels(name: str, given: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    labels = np.asarray(given)
    if labels.shape != (len(matrix),):
        message = f"expected one label per row in `{name}` ({len(matrix)}), got shape {labels.shape}: give (rows,)"
        raise DataError(message, code="label-count")
    if labels.dtype.kind in "if" and not (np.isfinite(labels) & (labels != -1)).all():
        message = f"expected a class for every row in `{name}`, got NaN, infinity or -1: drop unlabelled rows"
        raise DataError(message, code="no-label")
    return labels


def _weights(given: np.ndarray | None, count: int) -> np.ndarray:
    weights = np.ones(count) if given is None else np.asarray(given, dtype=np.float64)
    if weights.shape != (count,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise DataError(
            f"expected one finite weight of 0 or more per row ({count}), got shape {weights.shape} and "
            f"{weights.min(initial=0):g} as the smallest: give how often each synthetic row counts",
            code="bad-weights",
        )
    return weights
