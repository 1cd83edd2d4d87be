"""Which draw of z is nearest to the data, and which samples are most useful to other classifiers.

    python benchmarks/prior.py RUN [RUN ...] [--per-class 100] [--json OUT.json] [--markdown OUT.md]

RUN are folders that `synthsieve fit` wrote, one for each seed. For each way to draw latents it measures the AUC of a
classifier that tells them from encoded examples (training rows, and test rows that no fit has seen), the share of
samples that the model gives the requested class, and the test accuracy of scikit-learn classifiers trained on the
labels and the samples (of 50 principal components where data have more than 1,000 features). All ways have the same
labels, test rows and classifiers; differences are paired by test row.
"By chance" is the AUC of the worst class of any seed where drawn and encoded latents are mixed at random.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from usefulness import MAX_FEATURES

from synthsieve.evaluation.memorization import memorization
from synthsieve.evaluation.predict import latents_and_logits, part_of
from synthsieve.evaluation.prior_match import MAX_ROWS, PriorMatch, prior_match
from synthsieve.experiments.baselines.features import BLOCK, COMPONENTS
from synthsieve.io.random_streams import numpy_stream
from synthsieve.models.chains import DrawSettings
from synthsieve.models.generate import chain_seeds, decode, draw_latents
from synthsieve.settings import Draw
from synthsieve.training.fit_reference import Encoded, encode_rows, fit_reference
from synthsieve.training.run_dir import RunDirectory

BASELINE, REAL = "langevin", "real rows, our labels"
ONE, FIVE = "one Gaussian per class", "five Gaussians per class"
OTHERS = (BASELINE, ONE, FIVE, REAL)
FILTERED = "mixture+langevin, requested class at z"
NOISY = "mixture+langevin, observation noise"
REBUILT = "real rows, encoded and decoded"
MAX_TEST = 2000
COMPONENT_ROWS = 5_000  # that principal components are fitted to
Latents = Callable[[np.ndarray, np.ndarray], np.ndarray]  # y, seeds -> z


def classifiers(seed: int) -> dict[str, Any]:
    return {
        "logistic regression": LogisticRegression(max_iter=500),
        "forest": RandomForestClassifier(100, random_state=seed),
        "kNN": KNeighborsClassifier(5),
        "MLP": MLPClassifier((64,), max_iter=60, random_state=seed),
    }


def gaussians(encoded: Encoded, count: int, seed: int) -> Latents:
    """`count` Gaussians for each class, fitted to the means of q of the rows that the model gives the class."""
    predicted = encoded.probabilities.argmax(axis=1)
    fitted = [
        GaussianMixture(count, reg_covar=1e-2, random_state=seed).fit(encoded.mean[predicted == label])
        for label in range(encoded.probabilities.shape[1])
    ]

    def draw(y: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        z = np.empty((len(y), encoded.mean.shape[1]), dtype=np.float32)
        for label, mixture in enumerate(fitted):
            mixture.set_params(random_state=int(seeds[0] % 2**31))
            z[y == label] = mixture.sample(int((y == label).sum()))[0]
        return z

    return draw


def encoded_rows(encoded: Encoded, num_labeled: int) -> Latents:
    """The means of q of unlabelled rows that the model gives the class, each once before any twice."""
    predicted = encoded.probabilities[num_labeled:].argmax(axis=1)

    def draw(y: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(seeds[0])
        rows = np.empty(len(y), dtype=np.int64)
        for label in np.unique(y):
            rows[y == label] = np.resize(rng.permutation(np.flatnonzero(predicted == label)), (y == label).sum())
        return encoded.mean[num_labeled + rows].astype(np.float32)

    return draw


def measure(
    path: Path, per_class: int, repeats: int, only: list[str] | None = None, *, correct: bool = False
) -> dict[str, Any]:
    """Everything about one run, by the name of the draw; of the draws `only`, where given."""
    run = RunDirectory.open(path)
    model, dataset, split, seed = run.load_model(), run.origin.load(), run.split, run.settings.seed
    x, y_true = dataset.train.x, dataset.train.y
    rows = {"labeled": split.labeled, "unlabeled": split.unlabeled}
    encoded = encode_rows(model, run.encoding, x, y_true, **rows, seed=seed)
    test_x, test_y = part_of(dataset, split, "test")
    test_x, test_y = test_x[:MAX_TEST], test_y[:MAX_TEST]
    test = encode_rows(
        model, run.encoding, test_x, test_y, labeled=np.arange(0), unlabeled=np.arange(len(test_y)), seed=seed
    )
    model.reference = fit_reference(encoded, seed=seed, correct=correct)
    components = np.bincount(model.reference.mixture.labels.numpy())
    corrected = model.reference.correction is not None
    print(f"{path.name}: components {components.tolist()}, correction {corrected}", flush=True)

    def chains(draw: Draw, temperature: float = 1.0) -> Latents:
        settings = DrawSettings(60, 0.08, temperature, draw)
        return lambda y, seeds: draw_latents(model, y, seeds, chains=settings)

    draws: dict[str, Latents] = {
        BASELINE: chains(Draw.LANGEVIN),
        ONE: gaussians(encoded, 1, seed),
        FIVE: gaussians(encoded, 5, seed),
        "mixture": chains(Draw.MIXTURE),
        "mixture, T = 0.5": chains(Draw.MIXTURE, 0.5),
        "mixture+langevin": chains(Draw.MIXTURE_LANGEVIN),
        "mixture+langevin, T = 0.7": chains(Draw.MIXTURE_LANGEVIN, 0.7),
        "mixture+langevin, T = 0.5": chains(Draw.MIXTURE_LANGEVIN, 0.5),
        FILTERED: chains(Draw.MIXTURE_LANGEVIN),
        NOISY: chains(Draw.MIXTURE_LANGEVIN),
        REBUILT: encoded_rows(encoded, len(split.labeled)),
    }
    if only:
        draws = {name: draw for name, draw in draws.items() if name in only}
    y = np.arange(model.num_classes).repeat(max(per_class, 200))
    unlabeled_p = encoded.probabilities[len(split.labeled) :]
    results: dict[str, Any] = {}
    training = np.concatenate([split.labeled, split.unlabeled])
    features = features_of(run, x, training)
    train_x, labeled_x, answers = features(x[training]), features(x[split.labeled]), features(test_x)
    for name in (*draws, REAL):
        correct, requested_x, requested_z, matches = [], [], [], []
        copies: dict[str, Any] = {}
        for repeat in range(repeats):
            rng = numpy_stream(seed, f"{name}/{repeat}")
            if name == REAL:
                predicted = unlabeled_p.argmax(axis=1)
                chosen = [rng.permutation(np.flatnonzero(predicted == c))[:per_class] for c in range(model.num_classes)]
                picked = np.concatenate(chosen)
                extra_x, extra_y = x[split.unlabeled[picked]], predicted[picked]
            else:
                seeds = chain_seeds(1000 * seed + repeat, y)
                z = draws[name](y, seeds)
                if not repeat:
                    labels = encoded.probabilities.argmax(axis=1)
                    of_q, of_test = encoded.draw(1, rng=rng)[0], test.draw(1, rng=rng)[0]
                    against_test = (of_test, test.probabilities.argmax(axis=1))
                    options: dict[str, Any] = {"num_classes": model.num_classes, "seed": 0}
                    found = [
                        prior_match(z, y, of_q, labels, **options),
                        prior_match(z, y, *against_test, **options),
                        match_by_chance(z, y, of_q, labels, **options),
                    ]
                    matches = [each.as_dict() for each in found]
                eligible = np.ones(len(y), dtype=bool)
                if name == FILTERED:
                    with torch.no_grad():
                        eligible = model.energy.class_logits(model.to_tensor(z)).argmax(dim=1).numpy() == y
                rows_of = [np.flatnonzero((y == c) & eligible)[:per_class] for c in range(model.num_classes)]
                take = np.concatenate(rows_of)
                extra_x = decode(model, run.encoding, z[take], seeds[take], noise=name == NOISY)
                extra_y = y[take]
                if not repeat:
                    copies = memorization(features(extra_x), train_x, answers).as_dict()
                at_x = latents_and_logits(model, run.encoding, extra_x)[1].argmax(axis=1)
                requested_x.append((at_x == extra_y).mean())
                with torch.no_grad():
                    at_z = model.energy.class_logits(model.to_tensor(z[take])).argmax(dim=1).numpy()
                requested_z.append((at_z == extra_y).mean())
            fit_x = np.concatenate([labeled_x, features(extra_x)])
            fit_y = np.concatenate([y_true[split.labeled], extra_y])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                each = [c.fit(fit_x, fit_y).predict(answers) == test_y for c in classifiers(repeat).values()]
            correct.append(np.array(each))
        by_row = np.mean(correct, axis=(0, 1))  # (test rows,), over repeats and classifiers
        results[name] = {
            "accuracy": float(by_row.mean()),
            "by_row": by_row.tolist(),
            "requested_x": float(np.mean(requested_x)) if requested_x else None,
            "requested_z": float(np.mean(requested_z)) if requested_z else None,
            "copies": copies or None,
            "match": matches[0] if matches else None,
            "match_test": matches[1] if matches else None,
            "match_by_chance": matches[2] if matches else None,
        }
        shown = "" if not matches else f"AUC {matches[0]['mean']:.3f}, worst {matches[0]['worst']:.3f}"
        print(f"  {name:26s} accuracy {100 * by_row.mean():.1f}  {shown}", flush=True)
    return {"run": path.name, "components": components.tolist(), "corrected": corrected, "draws": results}


def match_by_chance(
    drawn: np.ndarray, drawn_y: np.ndarray, encoded: np.ndarray, encoded_y: np.ndarray, *, num_classes: int, seed: int
) -> PriorMatch:
    """The match of two groups of the same sizes, with drawn and encoded latents mixed at random: what chance gives."""
    rng = numpy_stream(seed, "match by chance")
    groups: tuple[list[np.ndarray], list[np.ndarray]] = [], []
    for label in range(num_classes):
        kinds = [drawn[drawn_y == label][:MAX_ROWS], encoded[encoded_y == label][:MAX_ROWS]]
        size = min(map(len, kinds))
        mixed = rng.permutation(np.concatenate([kind[:size] for kind in kinds]))
        groups[0].append(mixed[:size])
        groups[1].append(mixed[size:])
    y = np.repeat(np.arange(num_classes), [len(group) for group in groups[0]])
    mixed_drawn, mixed_encoded = (np.concatenate(group) for group in groups)
    return prior_match(mixed_drawn, y, mixed_encoded, y, num_classes=num_classes, seed=seed)


Features = Callable[[np.ndarray], np.ndarray]


def features_of(run: RunDirectory, x: np.ndarray, rows: np.ndarray) -> Features:
    """Examples as stored -> one vector each: encoded, or principal components of some of `rows` where that is wide."""

    def flat(given: np.ndarray) -> np.ndarray:
        return run.encoding.encode(given).reshape(len(given), -1)

    if flat(x[:1]).shape[1] <= MAX_FEATURES:
        return flat
    some = numpy_stream(run.settings.seed, "components").permutation(rows)[:COMPONENT_ROWS]
    fitted = PCA(COMPONENTS, svd_solver="randomized", random_state=0).fit(flat(x[some]))
    return lambda given: np.concatenate(
        [fitted.transform(flat(given[start : start + BLOCK])) for start in range(0, len(given), BLOCK)]
    )


def difference(runs: list[dict[str, Any]], name: str, other: str) -> str:
    """Mean difference in points with a 95 % interval, paired by run and test row."""
    gaps = [np.array(r["draws"][name]["by_row"]) - np.array(r["draws"][other]["by_row"]) for r in runs]
    mean = float(np.mean([gap.mean() for gap in gaps]))
    error = float(np.sqrt(sum(gap.var(ddof=1) / len(gap) for gap in gaps))) / len(gaps)
    if len(gaps) > 1:  # the spread between runs, where it is larger
        error = max(error, float(np.std([gap.mean() for gap in gaps], ddof=1)) / np.sqrt(len(gaps)))
    return f"{100 * mean:+.1f} ({100 * (mean - 1.96 * error):+.1f} to {100 * (mean + 1.96 * error):+.1f})"


def markdown(runs: list[dict[str, Any]]) -> str:
    columns = ["draw of z", "AUC, training rows", "worst class of any seed", "by chance", "AUC, test rows"]
    columns += ["requested class at z", "at x", "accuracy", *(f"against {other}" for other in OTHERS)]
    columns += ["near a training row", "expected", "reached: training", "held-out"]
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for name in runs[0]["draws"]:
        found = [run["draws"][name] for run in runs]

        def mean(get: Callable[[dict[str, Any]], float | None], digits: int, found: Any = found) -> str:
            values = [value for each in found if (value := get(each)) is not None]
            return f"{np.mean(values):.{digits}f}" if values else ""

        cells = [
            name,
            mean(lambda each: each["match"] and each["match"]["mean"], 2),
            *(
                f"{max(each[kind]['worst'] for each in found):.2f}" if found[0][kind] else ""
                for kind in ("match", "match_by_chance")
            ),
            mean(lambda each: each["match_test"] and each["match_test"]["mean"], 2),
            mean(lambda each: each["requested_z"], 3),
            mean(lambda each: each["requested_x"], 3),
            mean(lambda each: 100 * each["accuracy"], 1),
            *("" if name == other else difference(runs, name, other) for other in OTHERS),
            *(
                mean(lambda each, figure=figure: each["copies"] and 100 * each["copies"][figure], 1)
                for figure in ("near_share", "expected_share", "reached_share", "reached_held_out_share")
            ),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--per-class", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", nargs="+", help="measure only these draws, and real rows")
    parser.add_argument("--correct", action="store_true", help="also learn the correction f of the mixture")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    given = options.per_class, options.repeats, options.only
    runs = [measure(path, *given, correct=options.correct) for path in options.runs]
    table = markdown(runs) if not options.only or set(OTHERS[:-1]) <= set(options.only) else ""
    print(table)
    if options.json:
        options.json.write_text(json.dumps(runs), encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
