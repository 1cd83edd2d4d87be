"""How much common models gain from the data set that a run hands out, measured on rows that trained nothing.

Each of five common scikit-learn models is trained on

    labels only             the labelled rows
    self-labelled rows      and the unlabelled rows, with the labels of the run's model
    synthetic samples       and samples that the model drew and, after encoding them again, still gives the same class

An estimator of the user's own is trained beside them. Which addition to recommend is chosen on validation rows, by the
mean over the common models or by the user's own; without validation rows it is the first that there is. The gain of
that one on test rows is the primary comparison. Two controls show whether cheaper labels of the same unlabelled rows
would do: those of label spreading, and those of each common model itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.errors import DataError, InputError
from synthsieve.evaluation.answers import PARTS, Answers, concatenate
from synthsieve.evaluation.bootstrap import percentile_interval, resample_crossed, strata_of
from synthsieve.evaluation.common_models import COMMON_MODELS
from synthsieve.evaluation.metrics import METRIC_NAMES, weighted_metric
from synthsieve.evaluation.predict import part_of, probabilities
from synthsieve.evaluation.students import Student
from synthsieve.experiments.arms import TableEntry
from synthsieve.experiments.baselines.features import Views, stacked
from synthsieve.experiments.baselines.search import BaselineResult, refit
from synthsieve.experiments.baselines.sklearn_models import CLASSICAL
from synthsieve.experiments.experiment import Experiment, Unit
from synthsieve.io.progress import Progress
from synthsieve.io.random_streams import derive_seed, numpy_stream
from synthsieve.models import generate
from synthsieve.settings import Metric
from synthsieve.training import extra_data
from synthsieve.training.run_dir import RunDirectory

LABELS_ONLY = "labels only"
SELF_LABELED = "self-labelled rows"
SAMPLES = "synthetic samples"
SPREAD = "rows labelled by label spreading"
OWN = "rows labelled by each model itself"
CONTROLS = (SPREAD, OWN)
MAX_ADDED = 5_000  # rows of one addition
WIDE = 2_000  # with more features, principal components are used
RESAMPLES = 2_000

Found = dict[tuple[str, str, str], Answers]  # (model, addition, part) -> answers


@dataclass(frozen=True)
class Gain:
    """Mean score before and after a change, and the difference with its 95 % interval."""

    before: float
    after: float
    interval: tuple[float, float]

    @property
    def difference(self) -> float:
        return self.after - self.before

    def as_dict(self, before: str = "labels_only") -> dict[str, Any]:
        return {
            before: self.before,
            "with_addition": self.after,
            "difference": self.difference,
            "interval_95": list(self.interval),
        }


def measure_usefulness(
    experiment: Experiment, dataset: Dataset, kept: TableEntry, *, own: Student | None = None, progress: Progress
) -> dict[str, Any] | None:
    """The gains of common models, and of the user's `own`, as plain values for table.json; None with nothing to add.

    `kept` is the variant whose model labels and draws.
    """
    students = {name: Student.of(make(), weighted=False) for name, make in COMMON_MODELS.items()}
    if own is not None:
        students[own.name] = own
    metric = experiment.settings.comparison.metric
    metric = metric if metric in (Metric.ACCURACY, Metric.BALANCED_ACCURACY) else Metric.ACCURACY
    seeds: list[Found] = []
    counts: dict[str, int] = {}
    units = experiment.measuring_units
    for number, folds in enumerate(units):
        progress.update(number, len(units), "training common models")
        each = [_measure_unit(experiment, dataset, kept, unit, students, own) for unit in folds]
        counts = counts or each[0][1]
        common = set.intersection(*(set(found) for found, _ in each))
        seeds.append({key: concatenate(found[key] for found, _ in each) for key in sorted(common)})
    progress.update(len(units), len(units))
    additions = [
        name
        for name in (SELF_LABELED, SAMPLES)
        if any(all((model, name, "test") in found for found in seeds) for model in students)
    ]
    needed = [(name, "test") for name in (LABELS_ONLY, *additions)]
    measured = [model for model in students if all((model, *key) in found for found in seeds for key in needed)]
    models = [model for model in measured if own is None or model != own.name]
    if not additions or not models:
        return None
    shared = len(units[0]) > 1 or RunDirectory.open(experiment.pretrained(units[0][0])).split.test_is_own
    chosen, by_validation = _choose(seeds, models if own is None else [own.name], additions, metric)
    controls = [name for name in CONTROLS if all((model, name, "test") in found for found in seeds for model in models)]
    return {
        "metric": metric.value,
        "models": models,
        "own": None if own is None else own.name,
        "rows": counts,
        "chosen": chosen,
        "chosen_on_validation": by_validation,
        "mean": {name: _gain(seeds, models, name, metric, shared).as_dict() for name in additions},
        "each": {
            model: {name: _gain(seeds, [model], name, metric, shared).as_dict() for name in additions}
            for model in measured
        },
        "controls": {
            name: _gain(seeds, models, chosen, metric, shared, against=name).as_dict("control") for name in controls
        },
    }


def describe_usefulness(found: Mapping[str, Any], labels: int) -> tuple[str, ...]:
    """What the user's own model and the common models gain from the recommended data set, what controls reach, and what
    each common model gains."""
    name, own, metric = found["chosen"], found.get("own"), METRIC_NAMES[Metric(found["metric"])]
    added = {
        SELF_LABELED: f"{found['rows'][name]:,} unlabelled rows with our model's labels",
        SAMPLES: f"{found['rows'][name]:,} synthetic samples",
    }[name]
    means = {f"{len(found['models'])} common models have a mean {metric} of": found["mean"][name]}
    if own is not None:
        means = {f"Your model {own}: {metric}": found["each"][own][name], **means}
    gains = ", ".join(f"{model} {_gain_in_words(found['each'][model][name])}" for model in found["models"])
    return (
        *(
            f"{whose} {100 * one['labels_only']:.1f} % with the {labels:,} labels alone, and "
            f"{100 * one['with_addition']:.1f} % when {added} are added: "
            f"{_gain_in_words(one, ' points', '95 % interval ')}."
            for whose, one in means.items()
        ),
        *_describe_controls(found.get("controls", {})),
        f"Their gains in points (95 % intervals): {gains}.",
    )


def _gain_in_words(gain: Mapping[str, Any], unit: str = "", what: str = "") -> str:
    low, high = (100 * end for end in gain["interval_95"])
    return f"{100 * gain['difference']:+.1f}{unit} ({what}{low:+.1f} to {high:+.1f})"


def _describe_controls(controls: Mapping[str, Any]) -> Iterator[str]:
    """One sentence, if there are controls: their scores, and the difference from the best of them."""
    if controls:
        best = max(controls.values(), key=lambda one: one["control"])
        scores = ", ".join(f"{100 * one['control']:.1f} % with {name}" for name, one in controls.items())
        difference = _gain_in_words(best, " points", "95 % interval ")
        yield f"Controls: {scores}. The data set against the better control: {difference}."


def agreeing_samples(folder: RunDirectory) -> tuple[np.ndarray, np.ndarray] | None:
    """x, as stored, and y of the samples of a run's pool whose class after encoding them again is the requested class.

    None where it drew no pool, or no sample is left.
    """
    if not any("drawn" in figures for figures in extra_data.read_figures(folder.path)):
        return None
    pool = extra_data.latest(folder.path).pool
    if pool is None:
        return None
    rows = np.flatnonzero(pool.predicted == pool.y)
    if not len(rows):
        return None
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_ADDED)).astype(np.int64)]  # evenly: of every class
    model = extra_data.model_that_drew(folder, pool)
    return generate.decode(model, folder.encoding, pool.z[rows], pool.chain_seed[rows]), pool.y[rows]


def pooled_entry(experiment: Experiment, kept: TableEntry) -> TableEntry | None:
    """The variant whose samples are handed out: the kept one, or the one with the largest pool; None without pools."""
    pooled = [entry for entry in experiment.entries if entry.pool_size]
    if kept in pooled:
        return kept
    return max(pooled, key=lambda entry: entry.pool_size, default=None)


def _measure_unit(
    experiment: Experiment,
    dataset: Dataset,
    kept: TableEntry,
    unit: Unit,
    students: Mapping[str, Student],
    own: Student | None,
) -> tuple[Found, dict[str, int]]:
    """Answers of every model with every addition, and the number of added rows."""
    run = RunDirectory.open(experiment.folder(kept, unit))
    views = Views(dataset, run.split, unit.seed, MAX_ADDED, MAX_ADDED)
    view = _view(dataset)
    labeled, y = views(view, "labeled"), dataset.train.y[run.split.labeled]
    parts = {part: stacked(list(views.blocks(view, part))) for part in PARTS if len(getattr(run.split, part))}
    truth = {part: part_of(dataset, run.split, part)[1] for part in parts}
    classes = np.arange(dataset.num_classes)
    found: Found = {}
    counts: dict[str, int] = {}
    alone: dict[str, Any] = {}  # the models that were trained on the labels only
    for name, added, labels in _additions(experiment, dataset, kept, unit, run, views, view):
        if name not in CONTROLS:
            counts[name] = len(labels)
        rows = labeled if added is None else stacked([labeled, added])
        targets = np.concatenate([y, labels])
        for model, student in students.items():
            seed, answers = derive_seed(unit.seed, f"usefulness/{model}") % 2**31, {}
            try:
                if name == OWN and model in alone:
                    found_by_it, _ = student.probabilities(alone[model], added, classes, y)
                    targets = np.concatenate([y, found_by_it.argmax(axis=1)])
                fitted = student.fit(rows, targets, None, seed=seed)
                if name == LABELS_ONLY:
                    alone[model] = fitted
                for part, measured in parts.items():
                    p, _ = student.probabilities(fitted, measured, classes, targets)
                    answers[model, name, part] = Answers(getattr(run.split, part), truth[part], p)
            except (InputError, ValueError):  # such as three neighbours of two labels: this model is left out
                if student is own:
                    raise
                continue
            found |= answers
    return found, counts


def _additions(
    experiment: Experiment,
    dataset: Dataset,
    kept: TableEntry,
    unit: Unit,
    run: RunDirectory,
    views: Views,
    view: str,
) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Name, features (None for none) and classes of what is added to the labelled rows."""
    yield LABELS_ONLY, None, np.zeros(0, dtype=np.int64)
    rows = views.unlabeled_rows()
    if len(rows):
        model = run.load_model(device=experiment.device)
        labels = probabilities(model, run.encoding, dataset.train.x[rows]).argmax(axis=1)
        yield SELF_LABELED, views(view, "unlabeled"), labels
        yield OWN, views(view, "unlabeled"), labels  # each model puts its own labels in their place
        spread = _label_spreading(experiment, dataset, unit, views, rows)
        if spread is not None:
            yield SPREAD, views(view, "unlabeled"), spread
    entry = pooled_entry(experiment, kept)
    samples = None if entry is None else agreeing_samples(RunDirectory.open(experiment.folder(entry, unit)))
    if samples is not None:
        yield SAMPLES, views.of_new(view, samples[0]), samples[1]


def _label_spreading(
    experiment: Experiment, dataset: Dataset, unit: Unit, views: Views, rows: np.ndarray
) -> np.ndarray | None:
    """Classes of unlabelled rows by the label spreading of the run's baselines; None where it could not be fitted."""
    (method,) = (one for one in CLASSICAL if one.name == "label spreading")
    path = experiment.classical(unit) / f"{method.slug}.npz"
    result = BaselineResult.read(path) if path.exists() else None
    chosen = method.grid(dataset)[0].name if result is None else result.metadata["chosen"]
    if chosen is None:
        return None
    try:
        return refit(method, chosen, views)(dataset.train.x[rows]).argmax(axis=1)
    except DataError:
        return None


def _view(dataset: Dataset) -> str:
    wide = dataset.kind == Kind.TEXT or int(np.prod(dataset.shape)) > WIDE
    return "reduced" if wide or dataset.kind == Kind.SOUND else "plain"


def _choose(
    seeds: Sequence[Found], models: Sequence[str], additions: Sequence[str], metric: Metric
) -> tuple[str, bool]:
    """The addition with the best mean over models on validation; the first where there is no validation."""
    scores = {}
    for name in additions:
        keys = [(model, name, "validation") for model in models]
        each = [found[key] for found in seeds for key in keys if key in found]
        if each:
            values = [weighted_metric(metric, one.y, one.probabilities, np.ones(len(one))) for one in each]
            scores[name] = float(np.mean(values))
    if len(scores) < len(additions):
        return additions[0], False
    return max(additions, key=lambda name: scores[name]), True


def _gain(
    seeds: Sequence[Found],
    models: Sequence[str],
    name: str,
    metric: Metric,
    shared: bool,
    *,
    against: str = LABELS_ONLY,
) -> Gain:
    """The mean over seeds and models; the interval is over test rows and seeds, for these models."""
    base = [[s[model, against, "test"] for model in models] for s in seeds]
    with_it = [[s[model, name, "test"] for model in models] for s in seeds]
    differences = [
        np.mean([a.right.astype(float) - b.right.astype(float) for a, b in zip(after, before, strict=True)], axis=0)
        for after, before in zip(with_it, base, strict=True)
    ]
    strata = strata_of([one[0] for one in base], metric)
    rng, count = numpy_stream(0, f"usefulness/{name}/{against}/{'/'.join(models)}"), len(seeds)
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    if shared:
        draws = resample_crossed({name: differences}, drawn, strata[0], rng=rng)[name]
    else:
        ones = np.ones((RESAMPLES, 1), dtype=np.int64)
        of_seeds = [
            resample_crossed({name: [d]}, ones, group, rng=rng)[name]
            for d, group in zip(differences, strata, strict=True)
        ]
        draws = (np.stack(of_seeds, axis=1) * drawn).sum(axis=1) / count

    def mean(each: Sequence[Sequence[Answers]]) -> float:
        return float(
            np.mean([weighted_metric(metric, a.y, a.probabilities, np.ones(len(a))) for one in each for a in one])
        )

    return Gain(mean(base), mean(with_it), percentile_interval(draws))
