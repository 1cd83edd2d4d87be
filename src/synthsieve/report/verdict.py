"""Did it help? The answer in words, from what validation chose and what test then showed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from synthsieve.evaluation.accuracy import Scores
from synthsieve.evaluation.proof import FEW_ANSWERS, Verdict
from synthsieve.experiments.arms import Arm, Group
from synthsieve.report.wording import counted, listed, percent, points, span

LITTLE_ROOM = 0.95  # accuracy of real data alone, above which there is little left to gain
IMPURE = 0.8  # purity below which the samples themselves are the trouble
FEW_SEEDS = 3


@dataclass(frozen=True)
class Answer:
    """What a reader wants to know first.

    Attributes:
        word: `Yes`, `No`, `Cannot tell` or `Not asked`.
        sentence: what follows the word.
        reasons: sentences that carry it.
        next_steps: what to do now.
        kept: the arm whose model was kept; None where nothing was compared.
    """

    word: str
    sentence: str
    reasons: tuple[str, ...]
    next_steps: tuple[str, ...]
    kept: str | None

    def __str__(self) -> str:
        return f"{self.word}: {self.sentence}"


def groups_of(table: dict[str, Any]) -> dict[str, Group]:
    """Every row of the proof and what kind of thing it is; tables written before there were groups have arms alone."""
    given = table.get("groups")
    if given is None:
        return {name: Arm(entry["arm"]).group for name, entry in table["arms"].items()}
    return {name: Group(group) for name, group in given.items()}


def answer_of(table: dict[str, Any]) -> Answer:
    """The answer of a whole run."""
    proof, choice = table["proof"], table["choice"]
    baseline = proof["baseline"]
    kept = baseline if choice is None else choice["arm"]
    if choice is None:
        word, sentence = "Cannot tell", "there are no validation rows to choose on, so real data alone are kept."
    elif table["arms"].get(kept, {}).get("arm") == Arm.PSEUDO:
        word, sentence = "No", _of_pseudo_labels(proof["comparisons"][kept])
    elif kept == baseline:
        word, sentence = "No", "real data alone are kept; nothing added was clearly better on validation."
    else:
        word, sentence = _of_the_chosen(kept, proof["comparisons"][kept])
    reasons = [*_why_chosen(choice), *_on_test(table), *_beside_others(table, kept)]
    return Answer(word, sentence, tuple(reasons), tuple(_next_steps(table, word, kept)), kept)


def answer_of_fit(scores: Scores | None, *, drew: bool) -> Answer:
    """The answer of a single fit, which compares nothing."""
    reasons = [] if scores is None else [f"{scores.in_words('Test').capitalize()}."]
    learned = "a synthetic pool" if drew else "real data alone"
    reasons.append(f"One model was learned, from {learned}; nothing stands beside it to be compared with.")
    return Answer(
        "Not asked",
        "this is a single fit, and only a comparison can tell whether synthetic data help.",
        tuple(reasons),
        ("Give the same source to synthsieve run: it learns every arm, chooses on validation and proves on test.",),
        None,
    )


def _of_the_chosen(kept: str, shown: dict[str, Any]) -> tuple[str, str]:
    """Chosen on validation: what test shows of it."""
    difference, interval = shown["difference"], span(*shown["interval_95"])
    if shown["verdict"] == Verdict.HELPS and shown.get("differing_answers", FEW_ANSWERS) < FEW_ANSWERS:
        told = f"{kept} is at {points(difference)} points on test ({interval}), but only"
        return "Cannot tell", f"{told} {shown['differing_answers']} answers differ, too few to trust."
    if shown["verdict"] == Verdict.HELPS:
        return "Yes", f"{kept} adds {points(difference)} points on test (95 % interval {interval})."
    if shown["verdict"] == Verdict.HURTS:
        return "No", f"{kept} did better on validation, but on test it is at {points(difference)} points ({interval})."
    return (
        "Cannot tell",
        f"{kept} did better on validation and is kept; on test it is at {points(difference)} points, "
        f"and zero lies in the interval ({interval}).",
    )


def _of_pseudo_labels(shown: dict[str, Any]) -> str:
    """They add no synthetic samples, so that nothing is said of those by what they do."""
    return (
        f"no synthetic samples are kept. Pseudo-labels of real examples are: {points(shown['difference'])} points on "
        f"test ({span(*shown['interval_95'])}), {shown['verdict']}."
    )


def on_test_in_one_line(table: dict[str, Any]) -> str:
    """The heading over all arms."""
    counts = _verdicts(table)
    total, helping, hurting = counts.total(), counts[Verdict.HELPS], counts[Verdict.HURTS]
    if not total:
        return "No arm with additions was learned"
    if not helping and not hurting:
        return "On test, no arm with additions can be told from real data alone"
    if not helping:
        return f"On test, no arm with additions helps, and {hurting} of {total} {_verb('hurt', hurting)}"
    told = f"On test, {helping} of {total} arms with additions {_verb('help', helping)}"
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
        return [f"On test none of {counted(total, 'arm')} with additions can be told from real data alone."]
    told = [
        f"{counts[verdict]} {_verb('help' if verdict is Verdict.HELPS else 'hurt', counts[verdict])}"
        for verdict in (Verdict.HELPS, Verdict.HURTS)
        if counts[verdict]
    ]
    if counts[Verdict.CANNOT_TELL]:
        told.append(f"{counts[Verdict.CANNOT_TELL]} cannot be told from real data alone")
    return [f"On test, of {counted(total, 'arm')} with additions, {listed(told)}."]


def _beside_others(table: dict[str, Any], kept: str) -> list[str]:
    """The kept model beside labels alone and the best classical method."""
    mean, groups = table["proof"]["mean"], groups_of(table)
    others = {name: mean[name] for name, group in groups.items() if group is Group.BASELINE and name in mean}
    told = []
    if Arm.SUPERVISED in others:
        told.append(f"the same network on the {table['labeled']:,} labels alone {percent(others.pop(Arm.SUPERVISED))}")
    if others:
        best = max(others, key=lambda name: others[name])
        told.append(f"the classical method that is best on test, {best}, {percent(others[best])}")
    start = f"The model kept ({kept}) is right on {percent(mean[kept])} of the test set"
    return [f"{start}; {listed(told)}."] if told else [f"{start}."]


def _next_steps(table: dict[str, Any], word: str, kept: str) -> list[str]:
    baseline = table["proof"]["baseline"]
    steps = [f"Use model/, {'learned from real data alone' if kept == baseline else f'the model of {kept}'}."]
    if table["arms"].get(kept, {}).get("pool_size"):
        steps.append("Take its samples home with synthsieve export.")
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
