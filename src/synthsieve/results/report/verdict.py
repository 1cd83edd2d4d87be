"""Did it help? The first screen: the overall gain, what synthetic samples added, warnings and next steps."""

from __future__ import annotations

from dataclasses import dataclass

from synthsieve.evaluation.comparison import Verdict, visible_difference
from synthsieve.evaluation.metrics import Metrics
from synthsieve.evaluation.prior_match import PriorMatch
from synthsieve.experiments.arms import Arm
from synthsieve.experiments.experiment import CHOSEN
from synthsieve.experiments.usefulness import describe_usefulness
from synthsieve.results.report.sections import verdict_sentence
from synthsieve.results.report.wording import counted, listed, percent, points, sentence, signed, span
from synthsieve.results.table import ResultsTable

SATURATED = 0.95  # a score of real data alone above which there is little to gain
LOW_PURITY = 0.8  # below it, the samples themselves are the problem
MIN_SEEDS = 3
MEANINGFUL = 0.01  # ruling out a gain of this size allows the answer "No"
Z = 1.96  # standard errors in half a 95 % interval
BASELINE_KEPT = "the model without synthetic data is kept"


@dataclass(frozen=True)
class Answer:
    """The answer to what a reader asks first."""

    gain: str  # of the kept model over the labels alone; empty where it was not measured
    word: str  # whether synthetic data helped: `Yes`, `No`, `Cannot tell ...` or `Not compared`
    sentence: str  # what follows the word
    warnings: tuple[str, ...]  # what to know before using the model
    reasons: tuple[str, ...]  # what the answer is based on
    next_steps: tuple[str, ...]
    kept: str | None  # the variant whose model was kept; None where nothing was compared
    usefulness: tuple[str, ...] = ()  # what common models gain from the data set of the run; empty if not measured

    def __str__(self) -> str:
        return f"{self.word}: {self.sentence}"

    def lines(self) -> list[str]:
        """The first screen, for a terminal."""
        return [
            *self.usefulness,
            *([f"Our own model: {self.gain}" if self.usefulness else self.gain] if self.gain else []),
            f"Does synthetic data help? {self.word}: {self.sentence}",
            *(f"Warning: {warning}" for warning in self.warnings),
        ]


def answer_of(table: ResultsTable) -> Answer:
    """The answer of a comparison."""
    kept, used = table.kept, table.usefulness
    if table.choice is None:
        word, text = "Cannot tell", f"there are no labels to choose on, so {BASELINE_KEPT}."
    elif kept in table.arms and table.arms[kept].arm in (Arm.PSEUDO, Arm.BORN_AGAIN):  # they add no synthetic samples
        one = table.comparisons[kept]
        result = f"{points(one.difference)} points on test ({span(*one.interval)}), {one.verdict}"
        word, text = "No", f"pseudo-labels of real examples are kept instead: {result}."
    elif table.choice.keeps_baseline:
        word, text = _baseline_kept(table)
    else:
        word, text = _variant_kept(table, kept)
    chosen = "" if table.choice is None else sentence(table.choice.describe())
    return Answer(
        gain=_gain(table),
        word=word,
        sentence=text,
        warnings=tuple(_warnings(table)),
        reasons=tuple(reason for reason in (chosen, verdict_sentence(table), _label_use(table)) if reason),
        next_steps=tuple(_next_steps(table, word)),
        kept=kept,
        usefulness=() if used is None else tuple(map(signed, describe_usefulness(used, table.labeled))),
    )


def answer_of_fit(scores: Metrics | None, match: PriorMatch | None = None, *, drew: bool) -> Answer:
    """The answer of a single fit, which compares nothing."""
    measured = [] if scores is None else [sentence(scores.describe("Test"))]
    measured += [] if match is None else [sentence(match.describe())]
    trained = "with a synthetic pool" if drew else "on real data alone"
    return Answer(
        gain="",
        word="Not compared",
        sentence="this is a single fit, and only a comparison shows whether synthetic data helps.",
        warnings=(),
        reasons=(*measured, f"One model was trained, {trained}."),
        next_steps=("Run synthsieve run on the same source: it trains every variant and compares them on test.",),
        kept=None,
    )


def _gain(table: ResultsTable) -> str:
    """What the kept model gains over the labels alone; with an interval where that model is the baseline."""
    kept, alone, score = table.kept, table.best_supervised, table.score_name.capitalize()
    ours = table.means[kept]
    if alone is None:
        return f"{score} of the model: {percent(ours)}."
    method = "the same network" if alone == Arm.SUPERVISED else alone
    interval = ""
    if kept == table.paired_comparison.baseline:
        low, high = table.comparisons[alone].interval
        interval = f" (95 % interval {span(-high, -low)})"
    return (
        f"{score} {percent(table.means[alone])} with the {table.labeled:,} labels alone ({method}), "
        f"{percent(ours)} {'with unlabelled data' if table.unlabeled else 'with our model'}: "
        f"{points(ours - table.means[alone])} points{interval}."
    )


def _baseline_kept(table: ResultsTable) -> tuple[str, str]:
    """No variant was clearly better on validation: the test result of the one that came nearest."""
    assert table.choice is not None
    best = max(table.choice.candidates, key=lambda candidate: candidate.accuracy).arm
    nearest = CHOSEN if CHOSEN in table.comparisons else best
    one, count = table.comparisons[nearest], table.measured_labels
    result = f"{nearest} is at {points(one.difference)} points on test ({span(*one.interval)})"
    if one.interval[1] < MEANINGFUL:
        return "No", f"{result}; {BASELINE_KEPT}."
    visible = f"{count:,} labels can show differences of about {100 * visible_difference(count):.0f} points or more"
    return f"Cannot tell from {count:,} labels", f"{result}, and {visible}; {BASELINE_KEPT}."


def _variant_kept(table: ResultsTable, kept: str) -> tuple[str, str]:
    """Chosen on validation: its test result, or that of the same choice made on other rows."""
    one, name = table.comparisons[kept], kept
    if CHOSEN in table.comparisons:
        one, name = table.comparisons[CHOSEN], f"{kept} (chosen on validation, measured on labels that did not choose)"
    difference, interval = points(one.difference), span(*one.interval)
    if one.verdict is Verdict.HELPS:
        best, stricter = table.against_best, table.of_best(kept)
        if best is not None and stricter is not None and stricter.verdict is not Verdict.HELPS:  # it may only undo harm
            return (
                f"Cannot tell from {table.measured_labels:,} labels",
                f"{name} adds {difference} points to real data alone on test (95 % interval {interval}), but against "
                f"{best.baseline}, the best without samples, it is at {points(stricter.difference)} "
                f"({span(*stricter.interval)}).",
            )
        return "Yes", f"{name} adds {difference} points on test (95 % interval {interval})."
    if one.verdict is Verdict.HURTS:
        return "No", f"{name} is better on validation, but on test it is at {difference} points ({interval})."
    return (
        f"Cannot tell from {table.measured_labels:,} labels",
        f"{name} is better on validation and is kept; on test it is at {difference} points ({interval}).",
    )


def _warnings(table: ResultsTable) -> list[str]:
    """A class that is never found, a model no better than the majority class, a simpler model that is better."""
    kept, measured = table.kept, table.metrics[table.kept]
    warnings = []
    lost = [f"{table.classes[c]!r} (0 of {sum(measured.confusion[c])})" for c in measured.never_predicted()]
    if lost:
        warnings.append(f"the model never finds class {listed(lost)}: label more of it, or use balanced classes")
    if measured.accuracy <= measured.majority_accuracy:
        warnings.append(
            f"its accuracy, {percent(measured.accuracy)}, is not above that of always predicting the most frequent "
            f"class, {percent(measured.majority_accuracy)}"
        )
    better = table.best_classical
    low, high = (0.0, 0.0) if better is None else table.comparisons[better].interval
    error = (high - low) / (2 * Z)
    if better is not None and table.means[better] - table.means[kept] > error:
        warnings.append(
            f"a simpler model is better here: {better} has {percent(table.means[better])}, ours "
            f'{percent(table.means[kept])}; predict with it by adding --method "{better}"'
        )
    return warnings


def _label_use(table: ResultsTable) -> str:
    """How many labels trained, chose and measured."""
    cross, labels, measured = table.cross_fitting, f"{table.labeled:,} labels", counted(table.measured_labels, "label")
    if cross is None:
        number = table.labels_for_choosing
        chose = f"{number:,} further labels chose weights and variants" if number else "no further labels chose"
        return f"{labels} train, {chose}, {measured} measured."
    rest = "they also chose and measured" if cross.measures else f"they chose; {measured} measured"
    return f"All {labels} train the model; held out in {cross.folds} parts in turn, {rest}."


def _next_steps(table: ResultsTable, word: str) -> list[str]:
    kept, baseline = table.kept, table.paired_comparison.baseline
    trained = "trained on real data alone" if kept == baseline else f"the model of {kept}"
    steps = [f"Use model/, {trained}: synthsieve predict."]
    if kept in table.arms and table.arms[kept].pool_size:
        steps.append("Save its samples with synthsieve export.")
    if len(table.seeds) < MIN_SEEDS:
        seeds = counted(len(table.seeds), "seed")
        steps.append(f"{seeds} cannot show how much training runs differ: repeat with --seeds 5.")
    if word == "Yes":
        return steps
    if table.means[baseline] >= SATURATED:
        steps.append(f"Real data alone reach {percent(table.means[baseline])}: there is little left to gain.")
    last = [figures.get("purity") for record in table.arms.values() for figures in record.last_selections()]
    purities = [purity for purity in last if purity is not None]
    if purities and max(purities) < LOW_PURITY:
        steps.append(
            "Many samples show another class than the requested one: train longer (training.steps), or sample at a "
            "lower temperature (augmentation.temperature)."
        )
    return steps
