"""The result of a benchmark: the table, the answer to "which method should I use here?", and a chart of the compute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.evaluation.comparison import ComparisonResult, Verdict, compare_paired
from synthsieve.evaluation.metrics import METRIC_NAMES
from synthsieve.experiments.baselines.registry import METHODS, OURS, SKLEARN
from synthsieve.experiments.benchmark import TRIAL_SHARE, Benchmark, MethodResult, MethodResults
from synthsieve.io.files import write_json, write_text
from synthsieve.io.printable import html_table
from synthsieve.io.random_streams import numpy_stream
from synthsieve.io.versions import versions
from synthsieve.results.charts import svg
from synthsieve.results.charts.chart import SERIES, Axis, Chart, Dash, Layer, Line, Scale, numbers
from synthsieve.results.report.wording import counted, listed, percent, span
from synthsieve.results.report.wording import points as in_points

HEAD = ("method", "publication", "test {metric} %", "against ours", "95 % interval", "verdict", "validation %", "s")
SHOWN = 8  # methods in the chart


@dataclass(frozen=True)
class BenchmarkResult:
    """What `benchmark` found."""

    out: Path  # the folder
    source: str  # name or path of the data
    comparison: ComparisonResult  # every method against ours, on test rows
    best: str  # the method with the best validation score
    against_best: ComparisonResult  # every method against it
    validation: dict[str, float]  # mean score; empty without validation rows
    outcomes: MethodResults  # budget -> method -> result; the first budget is compared
    left_out: dict[str, str]  # methods that do not apply or diverged, with the reason
    settings: dict[str, Any]  # those of all trainings, and the seeds
    sizes: dict[str, int]  # labels, unlabelled rows, validation rows, test rows

    @property
    def metric(self) -> str:
        return METRIC_NAMES[self.comparison.metric]

    @property
    def first(self) -> dict[str, MethodResult]:
        return next(iter(self.outcomes.values()))

    @property
    def answer(self) -> str:
        """Which method to use here, in a sentence, with the interval."""
        ranked = sorted(self.first, key=lambda name: -self._rank(name))
        rival = next((name for name in ranked if name not in (self.best, OURS)), OURS) if self.best == OURS else OURS
        score = percent(self.against_best.arm(self.best).mean)
        if rival == self.best:
            return f"Only {self.best} was measured: {score} test {self.metric}."
        one = self.against_best.comparison(rival)
        low, high = (-end for end in reversed(one.interval))
        gap = f"{in_points(-one.difference)} points of test {self.metric} against {rival}"
        gap += f" (95 % interval {span(low, high)})"
        chosen = "validation" if self.validation else "test rows, as there are no validation rows"
        if Verdict.of(low, high) is Verdict.HELPS:
            return f"Use {self.best} here: the best on {chosen}, and {gap}.{self._equals()}"
        if Verdict.of(low, high) is Verdict.HURTS:
            return f"Use {rival} here: {self.best} is the best on {chosen}, but on test rows it has {gap}."
        rows = f"{self.sizes['test']:,} test rows and {counted(len(self.comparison.num_items), 'seed')}"
        found = f"{self.best} is the best on {chosen} ({score} on test), with {gap}"
        return f"Cannot tell from {rows}: {found}.{self._equals()}"

    def _rank(self, name: str) -> float:
        return self.validation.get(name, self.comparison.arm(name).mean)

    def _equals(self) -> str:
        """The methods that cannot be distinguished from the best one, other than those of the answer."""
        close = [one.arm for one in self.against_best.comparisons if one.verdict is Verdict.CANNOT_TELL]
        return (
            f" Cannot be distinguished from {self.best}: {listed(close)}."
            if close
            else " It is better than all others."
        )

    def rows(self) -> list[tuple[str, ...]]:
        """The table: the best test score first."""
        compared = {one.arm: one for one in self.comparison.comparisons}
        rows: list[tuple[str, ...]] = []
        for arm in sorted(self.comparison.arms, key=lambda arm: -arm.mean):
            one, outcome = compared.get(arm.name), self.first[arm.name]
            verdict = "" if one is None else one.verdict.of_another()
            gap = ("", "") if one is None else (in_points(one.difference), span(*one.interval))
            seconds = [trial["seconds"] for trial in outcome.trials]
            rows.append(
                (
                    arm.name,
                    METHODS[arm.name].cites if arm.name in METHODS else "scikit-learn",
                    f"{100 * arm.mean:.1f}",
                    *gap,
                    verdict,
                    f"{100 * self.validation[arm.name]:.1f}" if arm.name in self.validation else "",
                    f"{np.median(seconds):.0f}" if seconds else "",
                )
            )
        return rows

    @property
    def head(self) -> tuple[str, ...]:
        return tuple(name.format(metric=self.metric) for name in HEAD)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "source": self.source,
            "answer": self.answer,
            "best": self.best,
            "sizes": self.sizes,
            "paired_comparison": self.comparison.as_dict(),
            "against_best": self.against_best.as_dict(),
            "validation": self.validation,
            "left_out": self.left_out,
            "budgets": {f"{share:g}": _as_dict(each) for share, each in self.outcomes.items()},
            "trial_share": TRIAL_SHARE,
            "grids": {name: list(METHODS[name].grid) for name in self.first if name in METHODS},
            "settings": self.settings,
            "versions": versions(),
        }

    def markdown(self) -> str:
        """The table with its settings, as a page."""
        share, sizes, seeds = next(iter(self.outcomes)), self.sizes, len(self.comparison.num_items)
        budgets = [trial["budget"] for one in self.first.values() for trial in one.trials]
        lines = [
            f"# {Path(self.source).name}: which method?",
            "",
            self.answer,
            "",
            f"{sizes['labeled']:,} labels train, {sizes['unlabeled']:,} rows are unlabelled, {sizes['validation']:,} "
            f"further labels choose checkpoints and hyperparameters, {sizes['test']:,} measure; "
            f"{counted(seeds, 'seed')}. Each network has {np.median(budgets) / 1e9:,.0f} GFLOP to train, {share:g} "
            f"times the compute of our own preset, after {counted(len(METHODS[OURS].grid), 'trial')} of "
            f"{TRIAL_SHARE:g} times that each. Differences are in points, paired by seed and test row. The "
            "last column has the median seconds of one training.",
            "",
            f"| {' | '.join(self.head)} |",
            "|---" * len(self.head) + "|",
            *(f"| {' | '.join(row)} |" for row in self.rows()),
            "",
        ]
        if len(self.outcomes) > 1:
            lines += [*self._budget_table(), ""]
        if self.left_out:
            lines += ["Left out:", "", *(f"- {name}: {reason}." for name, reason in self.left_out.items()), ""]
        lines += ["Hyperparameters that validation chose, seed by seed:", ""]
        lines += [f"- {name}: {'; '.join(one.chosen)}" for name, one in self.first.items()]
        named = ", ".join(f"{name} {version}" for name, version in versions().items())
        return "\n".join([*lines, "", self.comparison.note, "", f"Versions: {named}.", ""])

    def by_budget(self, name: str) -> dict[float, float]:
        """The mean test score of a network for each budget that it was trained with, from small to large."""
        trained = {share: found[name].test for share, found in sorted(self.outcomes.items()) if name in found}
        metric = self.comparison.metric
        return {share: float(np.mean([a.score(metric) for a in each])) for share, each in trained.items()}

    def _budget_table(self) -> list[str]:
        """Mean test scores for each budget."""
        rows = [["method", *(f"{share:g} x" for share in sorted(self.outcomes))], ["---"] * (1 + len(self.outcomes))]
        for name in self.first:
            if name in METHODS:
                scores = self.by_budget(name)
                rows.append([name, *(f"{100 * scores[s]:.1f}" if s in scores else "" for s in sorted(self.outcomes))])
        title = f"Test {self.metric} in % by budget, as a multiple of the compute of our own training:"
        return [title, "", *(f"| {' | '.join(row)} |" for row in rows)]

    def chart(self) -> Chart:
        """Score against compute: on test rows after a training for each budget, or during the one training.

        Those measure the best weights so far on validation rows, or the last ones on test rows where there are none.
        """
        several = len(self.outcomes) > 1
        ranked = sorted((name for name in self.first if name in METHODS), key=lambda name: -self._rank(name))
        part = "test" if several or not self.validation else "validation"
        shown = [name for name in METHODS if name in {*ranked[: SHOWN - 1], OURS}]
        layers: list[Layer] = []
        for i, name in enumerate(shown):
            if several:
                share, score = map(np.array, zip(*self.by_budget(name).items(), strict=True))
            else:
                share, score = _curve(self.first[name], part)
            tone, dash = SERIES[i % len(SERIES)], list(Dash)[i // len(SERIES)]
            layers.append(Line(name, numbers(share), numbers(100 * score), tone, dash))
        return Chart(
            title=f"{Path(self.source).name}: {self.metric} against compute",
            description=self.answer,
            x=Axis(f"compute, as a {'multiple of our own training' if several else 'share of the budget'}", Scale.LOG),
            y=Axis(f"{part} {self.metric}, %"),
            layers=tuple(layers),
            note="Means over seeds. "
            + ("Each budget is a training of its own." if several else "Learning rates fall with the whole budget."),
        )

    def lines(self) -> list[str]:
        """What the command line prints."""
        rows = [self.head, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        left_out = [f"left out: {name}, as {reason}" for name, reason in self.left_out.items()]
        return ["", *table, *left_out, self.comparison.note, "", self.answer, "", f"table and chart: {self.out}"]

    def write(self) -> None:
        """OUT/benchmark.json, .md and .svg."""
        write_json(self.out / "benchmark.json", self.as_dict())
        write_text(self.out / "benchmark.md", self.markdown())
        svg.write(self.out / "benchmark.svg", self.chart())

    def _repr_html_(self) -> str:
        return html_table(self.head, self.rows(), note=self.answer)


def result_of(
    benchmark: Benchmark,
    outcomes: MethodResults,
    left_out: dict[str, str],
    *,
    shared_items: bool,
    sizes: dict[str, int],
) -> BenchmarkResult:
    """The comparisons of all methods at the first budget."""
    first, metric = outcomes[benchmark.shares[0]], benchmark.settings.comparison.metric
    diverged = [name for name in benchmark.methods if name not in first and name not in left_out]
    reasons = {name: "it gave no finite answers" if name in METHODS else "it could not be fitted" for name in diverged}
    chosen = {name: one.validation for name, one in first.items() if one.validation is not None}
    validation = {name: float(np.mean([a.score(metric) for a in each])) for name, each in chosen.items()}
    test = {name: one.test for name, one in first.items()}
    scores = validation or {name: float(np.mean([a.score(metric) for a in each])) for name, each in test.items()}
    best = max(scores, key=lambda name: scores[name])

    def compared(baseline: str) -> ComparisonResult:
        rng = numpy_stream(0, "benchmark")
        return compare_paired(test, baseline=baseline, shared_items=shared_items, rng=rng, metric=metric)

    settings = {"seeds": list(benchmark.seeds), **benchmark.settings.model_dump(mode="json", exclude={"seed"})}
    ours, theirs = compared(OURS), compared(best)
    places = benchmark.out, benchmark.origin.source
    return BenchmarkResult(*places, ours, best, theirs, validation, outcomes, {**left_out, **reasons}, settings, sizes)


def _as_dict(outcomes: dict[str, MethodResult]) -> dict[str, Any]:
    kept = ("budget", "spent", "steps", "costs", "history", "diverged", "seconds", "split_hash")
    return {
        name: {
            "kind": "scikit-learn" if name in SKLEARN else "network",
            "chosen": one.chosen,
            "runs": [{key: trial[key] for key in kept} for trial in one.trials],
        }
        for name, one in outcomes.items()
    }


def _curve(outcome: MethodResult, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the budget and the mean score of the best weights so far, from where every seed has one."""
    curves = []
    for trial in outcome.trials:
        spent, score = (np.array([row[name] for row in trial["history"]]) for name in ("spent", part))
        curves.append((spent / trial["budget"], np.maximum.accumulate(score) if part == "validation" else score))
    start, end = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    share = np.geomspace(start, max(end, start * (1 + 1e-6)), 40)
    scores = [y[np.searchsorted(x, share * (1 + 1e-9), side="right") - 1] for x, y in curves]
    return share, np.mean(scores, axis=0)
