"""How useful is the data set that synthsieve hands out, and does choosing samples beat chance?

    python benchmarks/usefulness.py --source digits --work WORK --seeds 5 -o docs/results/usefulness-digits.md
    python benchmarks/usefulness.py --source mnist --data-dir DATA --work WORK --seeds 2 -o OUT.md

For each seed one model is trained (`synthsieve fit SOURCE`; kept in WORK and used again), and draws a pool of samples.
Common scikit-learn models are then trained on the labelled rows and what each row of the tables adds, and measured on
the test rows; of data of more than 1,000 features they get 50 principal components. Differences are means over seeds
and models in points of accuracy; the 95 % interval is a bootstrap over seeds and, within them, test rows."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

import synthsieve
from synthsieve.data.dataset import UNLABELED, Kind
from synthsieve.evaluation.common_models import COMMON_MODELS
from synthsieve.evaluation.labeling import soft_labels
from synthsieve.evaluation.predict import latents_and_logits, part_of
from synthsieve.evaluation.students import weight_argument
from synthsieve.experiments.baselines.features import COMPONENTS, Views
from synthsieve.selection.entropy import entropy_of_probabilities
from synthsieve.training.run_dir import RunDirectory

POOL = 1_500  # samples, the same number of each class
MAX_REAL = 3_000  # unlabelled rows that are used
MAX_TEST = 3_000
TEMPERATURE = 0.5
MAX_FEATURES = 1_000  # the common models get principal components of wider data
SHARES = (0.01, 0.03, 0.10)
RANDOM_DRAWS = 3
RESAMPLES = 2_000
# Models for the search: quick ones, two of which take weights.
SEARCH_MODELS = {
    "logistic regression": lambda: LogisticRegression(max_iter=200),
    "random forest": lambda: RandomForestClassifier(n_estimators=50),
    "1-NN": lambda: KNeighborsClassifier(1),
}


@dataclass(frozen=True)
class Case:
    """One seed: the rows of its split, its pool, and what its model says of them. x: features as in `run`."""

    seed: int
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    x_real: np.ndarray  # unlabelled
    y_real: np.ndarray  # the model's labels
    z_real: np.ndarray
    x_pool: np.ndarray
    y_pool: np.ndarray
    p_pool: np.ndarray
    z_pool: np.ndarray

    @property
    def agreeing(self) -> np.ndarray:
        """Samples whose class, after encoding them again, is the requested class."""
        return np.flatnonzero(self.p_pool.argmax(axis=1) == self.y_pool)


def load_case(source: str, data_dir: Path | None, work: Path, seed: int) -> Case:
    folder = work / f"{source}-{seed}"
    if not (folder / "reference.safetensors").is_file():
        synthsieve.fit(source, folder, seed=seed, data_dir=data_dir, log=lambda _: None)
    run = RunDirectory.open(folder)
    dataset, split, model = run.origin.load(), run.split, run.load_model()
    views = Views(dataset, split, seed, MAX_REAL, MAX_REAL)
    is_wide = dataset.kind == Kind.TEXT or views("plain", "labeled").shape[1] > MAX_FEATURES
    view = "reduced" if is_wide else "plain"
    drawn = work / f"{source}-{seed}.npz"
    per_class = POOL // dataset.num_classes
    synthsieve.sample(folder, per_class=per_class, temperature=TEMPERATURE, seed=seed, to=drawn)
    with np.load(drawn, allow_pickle=False) as found:
        pool, y_pool = found["x"], found["y"]
    real = dataset.train.x[views.unlabeled_rows()]
    test, y_test = part_of(dataset, split, "test")
    z_real, logits_real = latents_and_logits(model, run.encoding, real)
    z_pool, logits_pool = latents_and_logits(model, run.encoding, pool)
    return Case(
        seed,
        views(view, "labeled"),
        dataset.train.y[split.labeled],
        views.of_new(view, test[:MAX_TEST]),
        y_test[:MAX_TEST],
        views(view, "unlabeled"),
        logits_real.argmax(axis=1),
        z_real,
        views.of_new(view, pool),
        y_pool,
        softmax(logits_pool, axis=1),
        z_pool,
    )


def fitted(case: Case, make: Callable, rows: tuple | None, weights: np.ndarray | None = None) -> Any:
    """A model trained on the labels and `rows` (x, y) with weights; a label weighs 1."""
    x, y = case.x, case.y
    if rows is not None:
        x, y = np.concatenate([x, rows[0]]), np.concatenate([y, rows[1]])
    model, arguments = make(), {}
    if "random_state" in model.get_params():
        model.set_params(random_state=case.seed)
    if weights is not None and weight_argument(model):
        arguments["sample_weight"] = np.concatenate([np.ones(len(case.y)), weights])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(x, y, **arguments)


def right(case: Case, make: Callable, rows: tuple | None, weights: np.ndarray | None = None) -> np.ndarray:
    """Which test rows a model gets right that was trained as by `fitted`: (n,)."""
    return (fitted(case, make, rows, weights).predict(case.x_test) == case.y_test).astype(np.float64)


def _half(score: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The half of each class with the lowest score."""
    lowest = [
        rows[np.argsort(score[rows], kind="stable")[: len(rows) // 2]]
        for rows in (np.flatnonzero(y == c) for c in np.unique(y))
    ]
    return np.concatenate(lowest)


def _spread(case: Case) -> np.ndarray:
    """Classes of the unlabelled rows by label spreading from the labelled ones, in 50 components or fewer."""
    x = np.concatenate([case.x, case.x_real])
    if x.shape[1] > COMPONENTS:
        x = PCA(COMPONENTS, svd_solver="randomized", random_state=0).fit_transform(x)
    y = np.concatenate([case.y, np.full(len(case.x_real), UNLABELED)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spread = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.2, max_iter=100).fit(x, y)
    return spread.transduction_[len(case.x) :]


def _soft(case: Case, *, weighted: bool) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None]:
    """All samples with soft labels; for a model that takes no weights, with their most probable class."""
    if not weighted:
        return (case.x_pool, case.p_pool.argmax(axis=1)), None
    soft = soft_labels(case.p_pool, np.arange(case.p_pool.shape[1]))
    return (case.x_pool[soft.rows], soft.y), soft.weight


def interval(differences: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """Mean and 95 % interval, in points, of differences (n_s,) of each seed, each a mean over models."""
    rng, count = np.random.default_rng(0), len(differences)
    draws = np.zeros(RESAMPLES)
    for b in range(RESAMPLES):
        for s in rng.integers(0, count, count):
            d = differences[s]
            draws[b] += d[rng.integers(0, len(d), len(d))].mean() / count
    low, high = np.quantile(draws, [0.025, 0.975])
    return 100 * float(np.mean([d.mean() for d in differences])), 100 * float(low), 100 * float(high)


def usefulness(cases: Sequence[Case]) -> tuple[dict, dict]:
    """Scores of every model with every addition, and the differences between additions."""
    pairs = {
        "labels + all samples - labels alone": ("all samples", "labels alone"),
        "labels + self-labelled real rows - labels alone": ("self-labelled real rows", "labels alone"),
        "labels + self-labelled real rows - labels + all samples": ("self-labelled real rows", "all samples"),
        "our labels of real rows - label spreading's": ("self-labelled real rows", "real rows, label spreading"),
        "our labels of real rows - each model's own": ("self-labelled real rows", "real rows, the model's own labels"),
        "only samples whose class is confirmed - all samples": ("agreeing samples", "all samples"),
        "all samples with soft labels - those whose class is confirmed": ("soft labels", "agreeing samples"),
        "lowest-entropy half - random half": ("lowest-entropy half", "random half"),
    }
    found: dict[str, dict[str, list[np.ndarray]]] = {}
    for case in cases:
        n, rng = len(case.y_pool), np.random.default_rng(case.seed)
        entropy = entropy_of_probabilities(case.p_pool)

        def of(rows: np.ndarray, case: Case = case) -> tuple[np.ndarray, np.ndarray]:
            return case.x_pool[rows], case.y_pool[rows]

        additions = {
            "labels alone": None,
            "all samples": of(np.arange(n)),
            "self-labelled real rows": (case.x_real, case.y_real),
            "real rows, label spreading": (case.x_real, _spread(case)),
            "real rows, the model's own labels": None,
            "agreeing samples": of(case.agreeing),
            "soft labels": None,
            "lowest-entropy half": of(_half(entropy, case.y_pool)),
            "random half": of(_half(rng.random(n), case.y_pool)),
        }
        for name, rows in additions.items():
            for model, make in COMMON_MODELS.items():
                weights = None
                if name == "real rows, the model's own labels":
                    rows = case.x_real, fitted(case, make, None).predict(case.x_real)
                elif name == "soft labels":
                    rows, weights = _soft(case, weighted=weight_argument(make()) is not None)
                found.setdefault(name, {}).setdefault(model, []).append(right(case, make, rows, weights))
        print(f"seed {case.seed}: usefulness measured", flush=True)
    scores = {
        name: {m: 100 * float(np.mean([r.mean() for r in rs])) for m, rs in each.items()}
        for name, each in found.items()
    }
    differences = {}
    for words, (arm, base) in pairs.items():
        each = {
            model: interval([a - b for a, b in zip(found[arm][model], found[base][model], strict=True)])
            for model in COMMON_MODELS
        }
        over = [
            np.mean([found[arm][m][s] - found[base][m][s] for m in COMMON_MODELS], axis=0) for s in range(len(cases))
        ]
        differences[words] = {"mean": interval(over), **each}
    return scores, differences


# Ways to choose: case, rows to choose from, number of picks -> rows (places among the given ones), weights or None.


def _per_class(y: np.ndarray, budget: int) -> dict[int, int]:
    """Picks of each class, in proportion to its rows."""
    classes, counts = np.unique(y, return_counts=True)
    exact = budget * counts / counts.sum()
    picks = np.maximum(1, np.floor(exact).astype(int))
    for place in np.argsort(exact - np.floor(exact))[::-1][: max(0, budget - picks.sum())]:
        picks[place] += 1
    return dict(zip(classes.tolist(), picks.tolist(), strict=True))


def _coverage(points: np.ndarray, y: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """CRAIG's facility location within each class, in the space of `points`: greedy, exact."""
    chosen, weights = [], []
    for c, picks in _per_class(y, budget).items():
        rows = np.flatnonzero(y == c)
        distance = cdist(points[rows], points[rows])
        nearest, own = np.full(len(rows), distance.max() + 1), []
        for _ in range(min(picks, len(rows))):
            gains = np.maximum(nearest[:, None] - distance, 0).sum(axis=0)
            own.append(int(gains.argmax()))
            nearest = np.minimum(nearest, distance[:, own[-1]])
        counts = np.bincount(distance[:, own].argmin(axis=1), minlength=len(own))
        chosen += rows[own].tolist()
        weights += np.maximum(counts, 1).tolist()
    return np.array(chosen), np.array(weights, dtype=float)


def _herding(
    case: Case, rows: np.ndarray, budget: int, points: np.ndarray, targets: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Kernel herding towards the targets (points, classes) of the same class; those of the pool itself if it has none.

    `points` are those of `rows`. The kernel is Gaussian, and its width the median distance.
    """
    near = np.concatenate([targets[0][:300], points[:300]])
    scale = np.median(cdist(near, near)) ** 2
    chosen, y = [], case.y_pool[rows]
    for c, picks in _per_class(y, budget).items():
        own, towards = np.flatnonzero(y == c), targets[0][targets[1] == c]
        among = np.exp(-cdist(points[own], points[own], "sqeuclidean") / scale)
        wanted = np.exp(-cdist(points[own], towards, "sqeuclidean") / scale) if len(towards) else among
        score_of, taken, total = wanted.mean(axis=1), [], np.zeros(len(own))
        for step in range(min(picks, len(own))):
            score = score_of - total / (step + 1)
            score[taken] = -np.inf
            taken.append(int(score.argmax()))
            total += among[:, taken[-1]]
        chosen += own[taken].tolist()
    return np.array(chosen)


def _cover_real(case: Case, rows: np.ndarray, budget: int) -> np.ndarray:
    """Facility location of the real latents of the class by samples: every real row has a chosen sample nearby."""
    chosen, y = [], case.y_pool[rows]
    for c, picks in _per_class(y, budget).items():
        own, real = np.flatnonzero(y == c), case.z_real[case.y_real == c]
        points = case.z_pool[rows[own]]
        distance = cdist(real if len(real) else points, points)
        nearest, taken = np.full(len(distance), distance.max() + 1), []
        for _ in range(min(picks, len(own))):
            gains = np.maximum(nearest[:, None] - distance, 0).sum(axis=0)
            gains[taken] = -1
            taken.append(int(gains.argmax()))
            nearest = np.minimum(nearest, distance[:, taken[-1]])
        chosen += own[taken].tolist()
    return np.array(chosen)


def _hardest(case: Case, rows: np.ndarray, budget: int) -> np.ndarray:
    """Samples that a forest of the labels alone gets most wrong."""
    student = RandomForestClassifier(100, random_state=case.seed).fit(case.x, case.y)
    p = student.predict_proba(case.x_pool[rows])[np.arange(len(rows)), case.y_pool[rows]]
    y, chosen = case.y_pool[rows], []
    for c, picks in _per_class(y, budget).items():
        own = np.flatnonzero(y == c)
        chosen += own[np.argsort(p[own], kind="stable")[:picks]].tolist()
    return np.array(chosen)


def _ways(case: Case, rows: np.ndarray, budget: int) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    y, residual = case.y_pool[rows], case.p_pool[rows] - np.eye(case.p_pool.shape[1])[case.y_pool[rows]]
    latent, latent_weights = _coverage(case.z_pool[rows], y, budget)
    pixel, pixel_weights = _coverage(case.x_pool[rows], y, budget)
    craig, craig_weights = _coverage(residual, y, budget)
    return {
        "CRAIG on p - y, weights": (craig, craig_weights),
        "coverage of latents, weights": (latent, latent_weights),
        "coverage of latents, no weights": (latent, None),
        "coverage of latents, weights at most twice the mean": (
            latent,
            np.minimum(latent_weights, 2 * latent_weights.mean()),
        ),
        "coverage of pixels, weights": (pixel, pixel_weights),
        "coverage of pixels, no weights": (pixel, None),
        "herding to real latents, no weights": (
            _herding(case, rows, budget, case.z_pool[rows], (case.z_real, case.y_real)),
            None,
        ),
        "herding to the samples' own latents, no weights": (
            _herding(case, rows, budget, case.z_pool[rows], (case.z_pool[rows], y)),
            None,
        ),
        "herding to real features, no weights": (
            _herding(case, rows, budget, case.x_pool[rows], (case.x_real, case.y_real)),
            None,
        ),
        "herding to the samples' own features, no weights": (
            _herding(case, rows, budget, case.x_pool[rows], (case.x_pool[rows], y)),
            None,
        ),
        "coverage of real latents, no weights": (_cover_real(case, rows, budget), None),
        "hardest for a forest of the labels, no weights": (_hardest(case, rows, budget), None),
    }


def search(cases: Sequence[Case]) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Every way to choose against random choices of the same size from the same samples."""
    found: dict[str, dict[str, list[np.ndarray]]] = {}
    for case in cases:
        for share in SHARES:
            rows, budget = case.agreeing, round(share * len(case.y_pool))
            rng = np.random.default_rng([case.seed, budget])
            drawn = [_stratified(case.y_pool[rows], budget, rng) for _ in range(RANDOM_DRAWS)]
            chance = {
                model: np.mean([right(case, make, (case.x_pool[rows[d]], case.y_pool[rows[d]])) for d in drawn], axis=0)
                for model, make in SEARCH_MODELS.items()
            }
            for way, (picks, weights) in _ways(case, rows, budget).items():
                added = case.x_pool[rows[picks]], case.y_pool[rows[picks]]
                weights = None if weights is None else weights / weights.mean()
                each = [right(case, make, added, weights) - chance[model] for model, make in SEARCH_MODELS.items()]
                found.setdefault(way, {}).setdefault(f"{share:.0%}", []).append(np.mean(each, axis=0))
                for model, d in zip(SEARCH_MODELS, each, strict=True):
                    found[way].setdefault(f"{share:.0%}, {model}", []).append(d)
        print(f"seed {case.seed}: choices measured", flush=True)
    return {way: {key: interval(each) for key, each in of.items()} for way, of in found.items()}


def _stratified(y: np.ndarray, budget: int, rng: np.random.Generator) -> np.ndarray:
    return np.concatenate(
        [rng.permutation(np.flatnonzero(y == c))[:picks] for c, picks in _per_class(y, budget).items()]
    )


def as_markdown(scores: dict, differences: dict, choices: dict, source: str, cases: Sequence[Case]) -> str:
    models, labels, seeds = list(COMMON_MODELS), len(cases[0].y), len(cases)
    lines = [
        f"# Usefulness of the data set on {source}, {labels} labels",
        "",
        f"`python benchmarks/usefulness.py --source {source} --seeds {seeds}`: {len(cases[0].y_pool):,} samples at",
        f"temperature {TEMPERATURE}; common scikit-learn models of {cases[0].x.shape[1]:,} features are trained on the",
        "labelled rows and what is added, and measured on the test rows. Means over seeds and models in points of",
        "accuracy, with 95 % intervals over seeds and test rows; * = clear of zero.",
        "",
        "## Accuracy, %",
        "",
        f"| trained on | {' | '.join(models)} | mean |",
        f"|---|{'---|' * (len(models) + 1)}",
    ]
    for name, each in scores.items():
        cells = [f"{each[m]:.1f}" for m in models]
        lines.append(f"| {name} | {' | '.join(cells)} | {np.mean([each[m] for m in models]):.1f} |")
    lines += ["", "## Differences", "", f"| difference | mean of five | {' | '.join(models)} |", f"|---|{'---|' * 6}"]
    for words, each in differences.items():
        lines.append(f"| {words} | **{_cell(each['mean'])}** | {' | '.join(_cell(each[m]) for m in models)} |")
    keys = [f"{share:.0%}" for share in SHARES]
    lines += [
        "",
        "## Choosing samples",
        "",
        "Against random choices of the same size from the same samples (those whose class is confirmed after encoding "
        f"them again), mean of {', '.join(SEARCH_MODELS)}; the same number of each class.",
        "",
        f"| way to choose | {' | '.join(f'{key} of the pool' for key in keys)} |",
        f"|---|{'---|' * len(keys)}",
    ]
    lines += [f"| {way} | {' | '.join(_cell(of[key]) for key in keys)} |" for way, of in choices.items()]
    lines += [
        "",
        "By model:",
        "",
        f"| way to choose | {' | '.join(f'{k}, {m}' for m in SEARCH_MODELS for k in keys)} |",
    ]
    lines.append(f"|---|{'---|' * (len(keys) * len(SEARCH_MODELS))}")
    for way, of in choices.items():
        lines.append(
            f"| {way} | {' | '.join(_cell(of[f'{k}, {m}'], short=True) for m in SEARCH_MODELS for k in keys)} |"
        )
    return "\n".join(lines) + "\n"


def _cell(found: tuple[float, float, float], *, short: bool = False) -> str:
    mean, low, high = found
    star = "*" if low > 0 or high < 0 else ""
    return f"{mean:+.1f}{star}" if short else f"{mean:+.1f}{star} ({low:+.1f} to {high:+.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("usefulness-work"), help="folder of the trained models")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/results/usefulness.md"))
    parser.add_argument("--source", default="digits", help="a data set by name, with its preset")
    parser.add_argument("--data-dir", type=Path, help="folder of the data sets' files")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    cases = [load_case(given.source, given.data_dir, given.work, seed) for seed in range(given.seeds)]
    scores, differences = usefulness(cases)
    for find in (dict, lambda: search(cases)):  # the search takes longer: the first tables are written before it
        choices = find()
        given.out.write_text(as_markdown(scores, differences, choices, given.source, cases), encoding="utf-8")
        figures = {"seeds": len(cases), "scores": scores, "differences": differences, "choices": choices}
        given.out.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
