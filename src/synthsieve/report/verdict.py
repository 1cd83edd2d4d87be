"""Did it help? The answer in words: what unlabelled data gained, what synthetic data added, what to watch out for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from synthsieve.config import Metric
from synthsieve.evaluation.accuracy import Scores
from synthsieve.evaluation.metrics import METRIC_NAMES
from synthsieve.evaluation.proof import Verdict, visible_difference
from synthsieve.experiments.arms import Arm, Group
from synthsieve.experiments.classical_methods import MAJORITY
from synthsieve.experiments.table import CHOSEN
from synthsieve.report.wording import counted, listed, percent, points, span

LITTLE_ROOM = 0.95  # score of real data alone, above which there is little left to gain
IMPURE = 0.8  # purity below which the samples themselves are the trouble
FEW_SEEDS = 3
MEANINGFUL = 0.01  # a difference that is ruled out allows to say no
Z = 1.96  # half-widths of a 95 % interval are so many standard errors


@dataclass(frozen=True)
class Answer:
    """What a reader wants to know first.

    Attributes:
        gain: what unlabelled data gained over the labels alone; empty where it was not measured.
        word: `Yes`, `No`, `Cannot tell ...` or `Not asked`: whether synthetic data helped.
        sentence: what follows the word.
        warnings: what the user should know before using the model.
        reasons: sentences that carry the answer.
        next_steps: what to do now.
        kept: the variant whose model was kept; None where nothing was compared.
    """

    gain: str
    word: str
    sentence: str
    warnings: tuple[str, ...]
    reasons: tuple[str, ...]
    next_steps: tuple[str, ...]
    kept: str | None

    def __str__(self) -> str:
        return f"{self.word}: {self.sentence}"

    def lines(self) -> list[str]:
        """The first screen, for a terminal."""
        return [
            *([self.gain] if self.gain else []),
            f"Does synthetic data help? {self.word}: {self.sentence}",
            *(f"Warning: {warning}" for warning in self.warnings),
        ]


def groups_of(table: dict[str, Any]) -> dict[str, Group]:
    """Every row of the comparison and what kind of thing it is."""
    return {name: Group(group) for name, group in table["groups"].items()}


def answer_of(table: dict[str, Any]) -> Answer:
    """The answer of a whole run."""
    choice, baseline = table["choice"], table["proof"]["baseline"]
    kept = baseline if choice is None else choice["arm"]
    if choice is None:
        word, sentence = "Cannot tell", "there are no labels to choose on, so the model without synthetic data is kept."
    elif table["arms"].get(kept, {}).get("arm") == Arm.PSEUDO:
        word, sentence = "No", _of_pseudo_labels(table["proof"]["comparisons"][kept])
    elif kept == baseline:
        word, sentence = _of_the_baseline(table)
    else:
        word, sentence = _of_the_chosen(table, kept)
    reasons = [*_why_chosen(choice), *_on_test(table), *_labels_used(table)]
    return Answer(
        _gain(table, kept),
        word,
        sentence,
        tuple(_warnings(table, kept)),
        tuple(reasons),
        tuple(_next_steps(table, word, kept)),
        kept,
    )


def answer_of_fit(scores: Scores | None, *, drew: bool) -> Answer:
    """The answer of a single fit, which compares nothing."""
    reasons = [] if scores is None else [f"{scores.in_words('Test').capitalize()}."]
    learned = "a synthetic pool" if drew else "real data alone"
    reasons.append(f"One model was trained, on {learned}; nothing stands beside it to be compared with.")
    return Answer(
        "",
        "Not asked",
        "this is a single fit, and only a comparison can tell whether synthetic data helps.",
        (),
        tuple(reasons),
        ("Give the same source to synthsieve run: it trains every variant, chooses on validation, measures on test.",),
        None,
    )


def measured_labels(table: dict[str, Any]) -> int:
    """How many labelled examples measured every variant."""
    return int(table["proof"]["test_examples"][0])


def score_name(table: dict[str, Any]) -> str:
    """`accuracy`, or what else was compared."""
    return METRIC_NAMES[Metric(table["proof"]["metric"])]


def labels_alone(table: dict[str, Any]) -> str | None:
    """The best method that learns from the labels alone, chosen on validation where there is one; None without any."""
    names = [name for name, each in table["baselines"].items() if not each[0]["unlabeled"] and name != MAJORITY]
    return _best_of(table, [*names, str(Arm.SUPERVISED)])


def simpler(table: dict[str, Any]) -> str | None:
    """The best of scikit-learn's methods, chosen on validation where there is one; None without any."""
    return _best_of(table, [name for name in table["baselines"] if name != MAJORITY])


def _best_of(table: dict[str, Any], names: list[str]) -> str | None:
    mean = table["proof"]["mean"]
    there = [name for name in names if name in mean]
    validation = {name: table["validation"][name] for name in there if table["validation"].get(name)}
    if len(validation) == len(there):
        return max(there, key=lambda name: sum(validation[name]) / len(validation[name]), default=None)
    return max(there, key=lambda name: mean[name], default=None)


def _gain(table: dict[str, Any], kept: str) -> str:
    """What the kept model gains over the labels alone."""
    mean, alone = table["proof"]["mean"], labels_alone(table)
    if alone is None:
        return f"{score_name(table).capitalize()} of the model: {percent(mean[kept])}."
    called = "the same network" if alone == Arm.SUPERVISED else alone
    return (
        f"{score_name(table).capitalize()} {percent(mean[alone])} with the {table['labeled']:,} labels alone"
        f" ({called}), {percent(mean[kept])} {'with unlabelled data' if table['unlabeled'] else 'with our model'}:"
        f" {points(mean[kept] - mean[alone])} points{_gain_interval(table, alone, kept)}."
    )


def _gain_interval(table: dict[str, Any], alone: str, kept: str) -> str:
    """The interval of that gain, where the model kept is what the others are compared with."""
    if kept != table["proof"]["baseline"]:
        return ""
    low, high = table["proof"]["comparisons"][alone]["interval_95"]
    return f" (95 % interval {span(-high, -low)})"


def _of_the_baseline(table: dict[str, Any]) -> tuple[str, str]:
    """No variant was clearly better on validation: what test says of the one that came nearest."""
    candidates = table["choice"]["candidates"]
    nearest = (
        CHOSEN if CHOSEN in table["proof"]["comparisons"] else max(candidates, key=lambda n: candidates[n]["accuracy"])
    )
    shown, count = table["proof"]["comparisons"][nearest], measured_labels(table)
    low, high = shown["interval_95"]
    told = f"{nearest} is at {points(shown['difference'])} points on test ({span(low, high)})"
    kept = "the model without synthetic data is kept"
    if high < MEANINGFUL:
        return "No", f"{told}; {kept}."
    seen = f"{count:,} labels can show differences of about {100 * visible_difference(count):.0f} points or more"
    return f"Cannot tell from {count:,} labels", f"{told}, and {seen}; {kept}."


def _of_the_chosen(table: dict[str, Any], kept: str) -> tuple[str, str]:
    """Chosen on validation: what test shows of it, or of choices made like it on other rows."""
    compared = table["proof"]["comparisons"]
    shown = compared.get(CHOSEN, compared[kept])
    told = kept if CHOSEN not in compared else f"{kept} (chosen on validation, measured on labels that did not choose)"
    difference, interval = points(shown["difference"]), span(*shown["interval_95"])
    if shown["verdict"] == Verdict.HELPS:
        return "Yes", f"{told} adds {difference} points on test (95 % interval {interval})."
    if shown["verdict"] == Verdict.HURTS:
        return "No", f"{told} did better on validation, but on test it is at {difference} points ({interval})."
    return (
        f"Cannot tell from {measured_labels(table):,} labels",
        f"{told} did better on validation and is kept; on test it is at {difference} points ({interval}).",
    )


def _warnings(table: dict[str, Any], kept: str) -> list[str]:
    """What must not be overlooked: a class that is never found, a model no better than the majority, a simpler one."""
    measured, classes = table["metrics"][kept], table["classes"]
    warnings = []
    lost = [classes[c] for c, share in enumerate(measured["recall"]) if share == 0.0]
    if lost:
        counts = [sum(measured["confusion"][classes.index(name)]) for name in lost]
        named = listed([f"{name!r} (0 of {count})" for name, count in zip(lost, counts, strict=True)])
        warnings.append(f"the model never finds class {named}: label more of it, or use balanced classes")
    if measured["accuracy"] <= measured["majority_accuracy"]:
        warnings.append(
            f"its accuracy, {percent(measured['accuracy'])}, is not above that of always answering the most frequent"
            f" class, {percent(measured['majority_accuracy'])}"
        )
    better = better_simple_model(table, kept)
    if better is not None:
        mean = table["proof"]["mean"]
        warnings.append(
            f"a simpler model is better here: {better} has {percent(mean[better])}, ours {percent(mean[kept])};"
            f' predict with it by adding --method "{better}"'
        )
    return warnings


def better_simple_model(table: dict[str, Any], kept: str) -> str | None:
    """The best simple method, where it is better than the kept model by more than a standard error; else None."""
    name, mean = simpler(table), table["proof"]["mean"]
    if name is None:
        return None
    low, high = table["proof"]["comparisons"][name]["interval_95"]
    return name if mean[name] - mean[kept] > (high - low) / (2 * Z) else None


def _labels_used(table: dict[str, Any]) -> list[str]:
    """How many labels trained, chose and measured."""
    cross, labels = table["cross_fitting"], f"{table['labeled']:,} labels"
    measured = counted(measured_labels(table), "label")
    if cross is None:
        chose = (
            f"{table['labels_for_choosing']:,} further labels chose weights and variants"
            if (table["labels_for_choosing"])
            else "no further labels chose"
        )
        return [f"{labels} train, {chose}, {measured} measured."]
    if cross["measures"]:
        return [
            f"All {labels} train the model; held out in {cross['folds']} parts in turn, they also chose and measured."
        ]
    return [
        f"All {labels} train the model; held out in {cross['folds']} parts in turn, they chose; {measured} measured."
    ]


def _of_pseudo_labels(shown: dict[str, Any]) -> str:
    """They add no synthetic samples, so that nothing is said of those by what they do."""
    return (
        f"pseudo-labels of real examples are kept instead: {points(shown['difference'])} points on "
        f"test ({span(*shown['interval_95'])}), {shown['verdict']}."
    )


def on_test_in_one_line(table: dict[str, Any]) -> str:
    """The heading over all arms."""
    counts = _verdicts(table)
    total, helping, hurting = counts.total(), counts[Verdict.HELPS], counts[Verdict.HURTS]
    if not total:
        return "No variant with additions was trained"
    if not helping and not hurting:
        return "On test, no variant with additions is clearly different from real data alone"
    if not helping:
        return f"On test, no variant with additions helps, and {hurting} of {total} {_verb('hurt', hurting)}"
    told = f"On test, {helping} of {total} variants with additions {_verb('help', helping)}"
    return f"{told}, and {hurting} {_verb('hurt', hurting)}" if hurting else told


def _verb(word: str, number: int) -> str:
    return f"{word}s" if number == 1 else word


def _verdicts(table: dict[str, Any]) -> Counter[str]:
    """How many arms with additions have which verdict on test."""
    groups, compared = groups_of(table), table["proof"]["comparisons"]
    return Counter(one["verdict"] for name, one in compared.items() if groups.get(name) is Group.SYNTHETIC)


def _why_chosen(choice: dict[str, Any] | None) -> list[str]:
    return [] if choice is None else [f"{choice['words'][0].upper()}{choice['words'][1:]}."]


def _on_test(table: dict[str, Any]) -> list[str]:
    """How all arms with additions stand on test."""
    counts = _verdicts(table)
    total = counts.total()
    if not total:
        return []
    if counts[Verdict.CANNOT_TELL] == total:
        return [
            f"On test none of {counted(total, 'variant')} with additions is clearly different from real data alone."
        ]
    told = [
        f"{counts[verdict]} {_verb('help' if verdict is Verdict.HELPS else 'hurt', counts[verdict])}"
        for verdict in (Verdict.HELPS, Verdict.HURTS)
        if counts[verdict]
    ]
    if counts[Verdict.CANNOT_TELL]:
        told.append(f"{counts[Verdict.CANNOT_TELL]} are not clearly different from real data alone")
    return [f"On test, of {counted(total, 'variant')} with additions, {listed(told)}."]


def _next_steps(table: dict[str, Any], word: str, kept: str) -> list[str]:
    baseline = table["proof"]["baseline"]
    trained = "trained on real data alone" if kept == baseline else f"the model of {kept}"
    steps = [f"Use model/, {trained}: synthsieve predict."]
    if table["arms"].get(kept, {}).get("pool_size"):
        steps.append("Save its samples with synthsieve export.")
    if len(table["seeds"]) < FEW_SEEDS:
        seeds = counted(len(table["seeds"]), "seed")
        steps.append(f"{seeds.capitalize()} cannot show how much trainings differ: repeat with --seeds 5.")
    if word == "Yes":
        return steps
    if table["proof"]["mean"][baseline] >= LITTLE_ROOM:
        steps.append(
            f"Real data alone reach {percent(table['proof']['mean'][baseline])}: there is little left to gain."
        )
    purities = [
        choices[-1]["purity"]
        for entry in table["arms"].values()
        for choices in entry["selections"]
        if choices and choices[-1].get("purity") is not None
    ]
    if purities and max(purities) < IMPURE:
        steps.append(
            "Many samples show another class than the one asked for: learn longer (learning.steps), "
            "or draw colder (augmentation.temperature)."
        )
    return steps
