"""How useful is the data set that synthsieve hands out, and does choosing samples beat chance? Digits, 50 labels.

    python benchmarks/usefulness.py --work WORK --seeds 5 -o docs/results/usefulness.md

For each seed one model is trained with 50 labels (`synthsieve fit digits`; kept in WORK and used again), and draws a
pool of samples. Common scikit-learn models are then trained on the labelled rows and what each row of the tables adds,
and measured on the test rows. Differences are means over seeds and models in points of accuracy; the 95 % interval is
a bootstrap over seeds and, within them, test rows.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import synthsieve
from synthsieve.evaluation.common_models import COMMON_MODELS
from synthsieve.evaluation.students import weight_argument
from synthsieve.selection.entropy import entropy_of_probabilities
from synthsieve.training.run_dir import RunDirectory

PER_CLASS = 150
TEMPERATURE = 0.5
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
    """One seed: the rows of its split, its pool, and what its model says of them. x are pixels in [0, 1], (n, 64)."""

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
        """Samples whose class, after encoding them again, is the class asked."""
        return np.flatnonzero(self.p_pool.argmax(axis=1) == self.y_pool)


def load_case(work: Path, seed: int) -> Case:
    folder = work / f"fit-{seed}"
    if not (folder / "best.safetensors").is_file():
        synthsieve.fit("digits", folder, seed=seed, overrides=["augmentation.steps=0"], log=lambda _: None)
    run = RunDirectory.open(folder)
    dataset, split, model = run.origin.load(), run.split, synthsieve.load(folder)
    x_all, x_real = dataset.train.x, dataset.train.x[split.unlabeled]
    pool, labels = model.sample(PER_CLASS, temperature=TEMPERATURE, random_state=seed)
    index = {label: i for i, label in enumerate(model.classes_.tolist())}
    pool = np.asarray(pool)
    return Case(
        seed,
        _pixels(x_all[split.labeled]),
        dataset.train.y[split.labeled],
        _pixels(x_all[split.test]),
        dataset.train.y[split.test],
        _pixels(x_real),
        model.predict_proba(x_real).argmax(axis=1),
        model.transform(x_real),
        _pixels(pool),
        np.array([index[label] for label in labels.tolist()]),
        model.predict_proba(pool),
        model.transform(pool),
    )


def _pixels(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), -1).astype(np.float64) / 255


def right(case: Case, make: Callable, rows: tuple | None, weights: np.ndarray | None = None) -> np.ndarray:
    """Which test rows a model gets right, trained on the labels and `rows` (x, y) with weights of mean 1: (n,)."""
    x, y = case.x, case.y
    if rows is not None:
        x, y = np.concatenate([x, rows[0]]), np.concatenate([y, rows[1]])
    model, arguments = make(), {}
    if "random_state" in model.get_params():
        model.set_params(random_state=case.seed)
    if weights is not None and weight_argument(model):
        arguments["sample_weight"] = np.concatenate([np.ones(len(case.y)), weights / weights.mean()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, y, **arguments)
    return (model.predict(case.x_test) == case.y_test).astype(np.float64)


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
        "only samples whose class is confirmed - all samples": ("agreeing samples", "all samples"),
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
            "agreeing samples": of(case.agreeing),
            "lowest-entropy half": of(np.argsort(entropy, kind="stable")[: n // 2]),
            "random half": of(rng.permutation(n)[: n // 2]),
        }
        for name, rows in additions.items():
            for model, make in COMMON_MODELS.items():
                found.setdefault(name, {}).setdefault(model, []).append(right(case, make, rows))
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
        distance = np.linalg.norm(points[rows][:, None] - points[rows][None], axis=2)
        nearest, own = np.full(len(rows), distance.max() + 1), []
        for _ in range(min(picks, len(rows))):
            gains = np.maximum(nearest[:, None] - distance, 0).sum(axis=0)
            own.append(int(gains.argmax()))
            nearest = np.minimum(nearest, distance[:, own[-1]])
        counts = np.bincount(distance[:, own].argmin(axis=1), minlength=len(own))
        chosen += rows[own].tolist()
        weights += np.maximum(counts, 1).tolist()
    return np.array(chosen), np.array(weights, dtype=float)


def _herding(case: Case, rows: np.ndarray, budget: int) -> np.ndarray:
    """Kernel herding towards the latents of the real rows that the model gives the same class."""
    z = np.concatenate([case.z_real, case.z_pool[rows]])
    scale = np.median(np.linalg.norm(z[:300, None] - z[None, :300], axis=2)) ** 2
    chosen = []
    y = case.y_pool[rows]
    for c, picks in _per_class(y, budget).items():
        own, real = np.flatnonzero(y == c), case.z_real[case.y_real == c]
        points = case.z_pool[rows[own]]
        among = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=2) / scale)
        towards = (
            np.exp(-((points[:, None] - real[None]) ** 2).sum(axis=2) / scale).mean(axis=1)
            if len(real)
            else among.mean(1)
        )
        taken, total = [], np.zeros(len(own))
        for step in range(min(picks, len(own))):
            score = towards - total / (step + 1)
            score[taken] = -np.inf
            taken.append(int(score.argmax()))
            total += among[:, taken[-1]]
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
        "herding to real latents, no weights": (_herding(case, rows, budget), None),
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


def as_markdown(scores: dict, differences: dict, choices: dict, seeds: int, pool: int) -> str:
    models = list(COMMON_MODELS)
    lines = [
        "# Usefulness of the data set on digits, 50 labels",
        "",
        f"`python benchmarks/usefulness.py --seeds {seeds}`: {pool:,} samples of each model at",
        f"temperature {TEMPERATURE}; common scikit-learn models are trained on the labelled rows and what is added,",
        "and measured on the test rows. Means over seeds and models in points of accuracy, with 95 % intervals over",
        "seeds and test rows; * = clear of zero.",
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
    given = parser.parse_args()
    cases = [load_case(given.work, seed) for seed in range(given.seeds)]
    pool = len(cases[0].y_pool)
    scores, differences = usefulness(cases)
    for find in (dict, lambda: search(cases)):  # the search takes longer: the first tables are written before it
        choices = find()
        given.out.write_text(as_markdown(scores, differences, choices, len(cases), pool), encoding="utf-8")
        figures = {"seeds": len(cases), "pool": pool, "scores": scores, "differences": differences, "choices": choices}
        given.out.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
