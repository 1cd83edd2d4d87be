"""How near synthetic samples are to real data, in any feature space: shape, moments, tellable, fit to learn from.

Every function takes plain matrices (rows, features); none knows where they come from.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from synthsieve.errors import DataError
from synthsieve.evaluation.memorisation import (
    BLOCK_ROWS,
    Frame,
    Placed,
    check_block_rows,
    k_nearest,
    same_space,
    tiles,
)
from synthsieve.randomness import numpy_stream

EPOCHS = 30
FEWEST_TOLD = 10  # rows of each kind, half of them to learn from
RESAMPLES = 2000


@dataclass(frozen=True)
class Manifold:
    """How two sets of points overlap, by balls that reach from each point to its k-th neighbour in its own set.

    Attributes:
        precision: share of synthetic points in some real ball, 0 to 1.
        recall: share of real points in some synthetic ball, 0 to 1.
        density: real balls around a synthetic point, over k, on average; about 1 for two samples of one law, or more.
        coverage: share of real balls that hold a synthetic point, 0 to 1; for two samples of one law 1 - 2^-k, about.
        neighbours: k.
        num_real, num_synthetic: how many points there are.
    """

    precision: float
    recall: float
    density: float
    coverage: float
    neighbours: int
    num_real: int
    num_synthetic: int

    def as_dict(self) -> dict[str, float | int]:
        return asdict(self)


@dataclass(frozen=True)
class TwoSample:
    """How often held-out rows are told apart as real or synthetic; one half means they cannot be.

    Attributes:
        accuracy: share of held-out rows, as many real as synthetic, that are told rightly.
        low, high: Wilson's 95 % interval of the accuracy.
        p_value: probability of this accuracy or a higher one by fair coins.
        count: held-out rows of both kinds.
    """

    accuracy: float
    low: float
    high: float
    p_value: float
    count: int

    def as_dict(self) -> dict[str, float | int]:
        return asdict(self)


@dataclass(frozen=True)
class SyntheticTraining:
    """A classifier learned from synthetic samples, judged on real examples, next to one learned from real ones.

    Attributes:
        accuracy: share of real test examples that the one learned from synthetic samples gets right.
        low, high: Wilson's 95 % interval of it.
        count: real test examples.
        real_accuracy: the same for the one learned from real examples; None without them.
        gap: real_accuracy - accuracy; None without real examples.
        gap_low, gap_high: 95 % interval of the gap over the choice of test examples; None without real examples.
    """

    accuracy: float
    low: float
    high: float
    count: int
    real_accuracy: float | None
    gap: float | None
    gap_low: float | None
    gap_high: float | None

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


def manifold(real: np.ndarray, synthetic: np.ndarray, *, neighbours: int = 5, block_rows: int = BLOCK_ROWS) -> Manifold:
    """Precision and recall (Kynkäänniemi 2019), density and coverage (Naeem 2020) of real (n, d), synthetic (m, d).

    With R_i from real i to its k-th nearest other real, S_j alike for synthetic, D_ij = norm(real_i - synthetic_j):
    precision = mean_j any_i(D_ij < R_i), recall = mean_i any_j(D_ij < S_j),
    density = sum_ij(D_ij < R_i) / (k m), coverage = mean_i any_j(D_ij < R_i).
    A point on the rim of a ball is outside. At most `block_rows`^2 distances are held at a time.
    """
    real, synthetic = same_space(real=real, synthetic=synthetic)
    check_block_rows(block_rows)
    if not 1 <= neighbours < min(len(real), len(synthetic)):
        raise DataError(
            f"expected more rows than neighbours={neighbours} (at least 1), got {len(real)} real and {len(synthetic)} "
            "synthetic: ask for fewer neighbours or give more rows"
        )
    frame = Frame.around(real, synthetic)
    here, there = frame.of(real), frame.of(synthetic)
    real_reach = _reach(real, neighbours, block_rows) / frame.magnitude
    synthetic_reach = _reach(synthetic, neighbours, block_rows) / frame.magnitude
    doubt = here.doubt(there)
    balls_around = np.zeros(len(synthetic), dtype=np.int64)
    covered = np.zeros(len(real), dtype=bool)
    recalled = np.zeros(len(real), dtype=bool)
    for rows, columns, tile in tiles(here, there, block_rows):
        most = doubt[rows].max()
        inside = _nearer(tile, real_reach[rows, None], most, here, there, rows, columns)
        balls_around[columns] += np.count_nonzero(inside, axis=0)
        covered[rows] |= inside.any(axis=1)
        recalled[rows] |= _nearer(tile, synthetic_reach[None, columns], most, here, there, rows, columns).any(axis=1)
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
    for name, matrix in (("real", real), ("synthetic", synthetic)):
        if len(matrix) < 2:
            raise DataError(f"expected at least 2 rows in `{name}` for a covariance, got {len(matrix)}: give more rows")
    first_mean, first = _mean_and_root(real)
    second_mean, second = _mean_and_root(synthetic)
    shared = np.linalg.svd(first @ second.T, compute_uv=False).sum()
    apart = ((first_mean - second_mean) ** 2).sum()
    return max(0.0, float(apart + (first**2).sum() + (second**2).sum() - 2 * shared))


def two_sample_accuracy(real: np.ndarray, synthetic: np.ndarray, *, generator: np.random.Generator) -> TwoSample:
    """How often a classifier learned on one half tells the other half's real (n, d) from synthetic (m, d) rows.

    As many rows of each kind are drawn as the smaller set has; half of each is learned from. The classifier is a
    network of one hidden layer on standardised features: a linear one is blind to samples of the right mean but the
    wrong spread, and neighbours vote for the denser set everywhere. If nothing tells the kinds apart, the number right
    varies at most as that of fair coins, so that the p-value, one-sided, is not too small.
    """
    real, synthetic = same_space(real=real, synthetic=synthetic)
    size = min(len(real), len(synthetic))
    if size < FEWEST_TOLD:
        raise DataError(
            f"expected at least {FEWEST_TOLD} rows of each kind, got {len(real)} real and {len(synthetic)} synthetic: "
            "give more rows"
        )
    kinds = [m[generator.permutation(len(m))[:size]].astype(np.float64) for m in (real, synthetic)]
    half = size // 2
    learn, told = (np.concatenate([kind[part] for kind in kinds]) for part in (slice(half), slice(half, None)))
    network = make_pipeline(
        StandardScaler(),
        MLPClassifier(
            (32,),
            alpha=1.0,
            batch_size=min(200, 2 * half),
            learning_rate_init=0.005,
            max_iter=EPOCHS,
            random_state=int(generator.integers(2**31)),
        ),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops early on purpose, lest it learn rows by heart
        network.fit(learn, np.repeat([0, 1], half))
    right = network.predict(told) == np.repeat([0, 1], size - half)
    test = stats.binomtest(int(right.sum()), len(right), 0.5, alternative="greater")
    low, high = _wilson(right)
    return TwoSample(float(right.mean()), low, high, float(test.pvalue), len(right))


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
    """How well a multinomial logistic regression learned from synthetic (n, d), labels (n,) does on real examples.

    Each synthetic row counts `weights` (n,) times, once without them; features are standardised by the rows learned
    from. With `real` (m, d) and `real_labels` (m,) the same is learned from those and compared on the same test
    examples. `seed` matters only then: the gap's interval is a bootstrap over the test examples.
    """
    if (real is None) != (real_labels is None):
        raise DataError("expected `real` and `real_labels` together, got one of them: give both or neither")
    given = {"synthetic": synthetic, "test_real": test_real} | ({} if real is None else {"real": real})
    samples, tests, *examples = same_space(**given)
    classes = _labels("labels", labels, samples)
    answers = _labels("test_labels", test_labels, tests)
    if set(classes.tolist()).isdisjoint(answers.tolist()):
        raise DataError(
            f"expected `labels` and `test_labels` to name the same classes, got {classes[0]!r} in one and "
            f"{answers[0]!r} in the other: give both in one coding"
        )
    right = _learn("synthetic", samples, classes, _weights(weights, len(samples))).predict(tests) == answers
    low, high = _wilson(right)
    if real_labels is None:
        return SyntheticTraining(float(right.mean()), low, high, len(right), None, None, None, None)
    real_classes = _labels("real_labels", real_labels, examples[0])
    real_right = _learn("real", examples[0], real_classes, np.ones(len(real_classes))).predict(tests) == answers
    gain = real_right.astype(np.int64) - right
    gap_low, gap_high = _bootstrap(gain, numpy_stream(seed, "gap of training on synthetic"))
    real_accuracy, gap = float(real_right.mean()), float(gain.mean())
    return SyntheticTraining(float(right.mean()), low, high, len(right), real_accuracy, gap, gap_low, gap_high)


def _reach(points: np.ndarray, neighbours: int, block_rows: int) -> np.ndarray:
    """Distance from each point to its k-th other one; around its own centre, where rounding is least."""
    frame = Frame.around(points)
    placed = frame.of(points)
    distances, _ = k_nearest(placed, placed, neighbours + 1, block_rows=block_rows)  # the nearest is the point itself
    return distances[:, -1] * frame.magnitude


def _nearer(
    tile: np.ndarray, reach: np.ndarray, doubt: float, here: Placed, there: Placed, rows: slice, columns: slice
) -> np.ndarray:
    """bool (b, c): whether each distance is below `reach`, (b, 1) or (1, c); doubtful ones by differences."""
    square = reach**2
    inside = tile < square + doubt
    doubtful = np.flatnonzero(inside & (tile > square - doubt))
    if len(doubtful):
        row, column = np.divmod(doubtful, tile.shape[1])
        exact = here.frame.by_differences(here, row + rows.start, there, column + columns.start)
        inside[row, column] = np.sqrt(exact) < np.broadcast_to(reach, tile.shape)[row, column]
    return inside


def _mean_and_root(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean (d,) and R (at most d, d) with R^T R the covariance."""
    rows = matrix.astype(np.float64)
    mean = rows.mean(axis=0)
    rows -= mean
    return mean, np.linalg.qr(rows, mode="r") / np.sqrt(len(rows) - 1)


def _wilson(right: np.ndarray) -> tuple[float, float]:
    interval = stats.binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def _bootstrap(gain: np.ndarray, generator: np.random.Generator) -> tuple[float, float]:
    """95 % interval of the mean of values -1, 0, 1: only their counts are drawn again."""
    shares = np.bincount(gain + 1, minlength=3) / len(gain)
    counts = generator.multinomial(len(gain), shares, size=RESAMPLES)
    low, high = np.quantile((counts[:, 2] - counts[:, 0]) / len(gain), [0.025, 0.975])
    return float(low), float(high)


def _learn(name: str, x: np.ndarray, classes: np.ndarray, weights: np.ndarray) -> Pipeline:
    kept = weights > 0
    if len(np.unique(classes[kept])) < 2:
        raise DataError(f"expected at least two classes among the `{name}` rows, got one: draw samples of every class")
    learner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return learner.fit(
        x[kept].astype(np.float64),
        classes[kept],
        standardscaler__sample_weight=weights[kept],
        logisticregression__sample_weight=weights[kept],
    )


def _labels(name: str, given: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    labels = np.asarray(given)
    if labels.shape != (len(matrix),):
        raise DataError(f"expected one label a row in `{name}` ({len(matrix)}), got shape {labels.shape}: give (rows,)")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError(f"expected a class for every row in `{name}`, got NaN or infinity: drop unlabelled rows")
    if labels.dtype.kind in "if" and (labels == -1).any():
        raise DataError(f"expected a class for every row in `{name}`, got -1 (unlabelled): drop unlabelled rows")
    return labels


def _weights(given: np.ndarray | None, count: int) -> np.ndarray:
    weights = np.ones(count) if given is None else np.asarray(given, dtype=np.float64)
    if weights.shape != (count,):
        raise DataError(f"expected one weight a row ({count}), got shape {weights.shape}: give (rows,)")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError(
            f"expected weights of 0 or more, got one of {weights.min():g}: give how often each synthetic row counts"
        )
    return weights
