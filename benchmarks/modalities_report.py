"""From what every arm and rival got right to the pages people read: RESULTS.json and RESULTS.md of `modalities.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from modalities_columns import columns_in_markdown

from synthsieve.evaluation.proof import Proof, Verdict, prove
from synthsieve.files import write_json, write_text
from synthsieve.progress import in_words
from synthsieve.randomness import numpy_stream

TWIN = "supervised twin"
CHOSEN = "synthsieve, chosen on validation"
WORDS = {Verdict.HELPS: "better", Verdict.HURTS: "worse", Verdict.CANNOT_TELL: "cannot tell"}
Right = Mapping[str, Sequence[np.ndarray]]


@dataclass(frozen=True)
class Evidence:
    """What is known of one data set, for the seeds that are finished.

    Attributes:
        name: the data set's.
        seeds: the finished ones.
        ours: names of our arms, the simpler first.
        rivals: names of the rivals.
        validation: arm or rival -> bool (n,) a seed, which validation examples it gets right; the twin's too.
        test: the same of test examples.
        shared_items: all seeds are judged by the same test examples.
        seconds: arm or rival -> wall time of each seed; the first phase under the name of the first of `ours`.
        grids: rival -> what its grid came to, a seed at a time.
        counts: part -> class -> rows, of the first seed's split; unlabelled rows are counted under their true class.
        about: settings, versions, split hashes: all that JSON must carry beside.
        columns: for tables, figures of real beside synthetic columns; None otherwise.
    """

    name: str
    seeds: tuple[int, ...]
    ours: tuple[str, ...]
    rivals: tuple[str, ...]
    validation: Right
    test: Right
    shared_items: bool
    seconds: Mapping[str, Sequence[float]]
    grids: Mapping[str, Sequence[dict[str, Any]]]
    counts: Mapping[str, Mapping[str, int]]
    about: Mapping[str, Any]
    columns: dict[str, Any] | None = None


def write_report(results: Path, evidence: Sequence[Evidence], grid_notes: Sequence[str]) -> str:
    """Write RESULTS.json and RESULTS.md: the text of the latter."""
    sections = {one.name: conclude(one) for one in evidence}
    write_json(results.with_suffix(".json"), sections)
    text = as_markdown(sections, grid_notes)
    write_text(results.with_suffix(".md"), text)
    return text


def conclude(evidence: Evidence) -> dict[str, Any]:
    """All figures of one data set, for JSON: both proofs, the choices, accuracies on validation, times, settings."""
    chosen = choices(evidence.validation, evidence.ours)
    validation, test = (
        {**right, CHOSEN: [right[arm][s] for s, arm in enumerate(chosen)]}
        for right in (evidence.validation, evidence.test)
    )
    accuracy = {name: [float(each.mean()) for each in right] for name, right in validation.items()}
    best_rival = max(evidence.rivals, key=lambda name: float(np.mean(accuracy[name])))
    ours = (*evidence.ours, CHOSEN)
    against_twin = _prove(test, TWIN, (*ours, TWIN, *evidence.rivals), evidence.shared_items)
    against_rival = _prove(test, best_rival, (*ours, best_rival), evidence.shared_items)
    of_test = list(evidence.counts["test"].values())
    return {
        "name": evidence.name,
        "seeds": list(evidence.seeds),
        "sizes": {part: sum(each.values()) for part, each in evidence.counts.items()},
        "commonest_class": max(of_test) / sum(of_test),
        "ours": list(ours),
        "rivals": list(evidence.rivals),
        "chosen": dict(zip(map(str, evidence.seeds), chosen, strict=True)),
        "best_rival": best_rival,
        "against_twin": against_twin.as_dict(),
        "against_best_rival": against_rival.as_dict(),
        "validation": accuracy,
        "grids": {name: list(each) for name, each in evidence.grids.items()},
        "seconds": {name: list(each) for name, each in evidence.seconds.items()},
        "columns": evidence.columns,
        **evidence.about,
    }


def choices(validation: Right, ours: Sequence[str]) -> list[str]:
    """The arm of ours that is best on validation, for each seed; among equals the first."""
    seeds = range(len(validation[ours[0]]))
    return [max(ours, key=lambda arm: float(validation[arm][s].mean())) for s in seeds]


def _prove(test: Right, baseline: str, names: Sequence[str], shared_items: bool) -> Proof:
    right = {name: test[name] for name in names}
    return prove(right, baseline=baseline, shared_items=shared_items, generator=numpy_stream(0, "proof"))


def as_markdown(sections: Mapping[str, dict[str, Any]], grid_notes: Sequence[str]) -> str:
    """The whole page."""
    lines = [
        "# Few labels, several kinds of data: against scikit-learn",
        "",
        "Every method sees the same labelled rows and, where it can use them, the same unlabelled rows without their "
        "labels. Everything that is chosen (the weights of a run, the arm of ours, a rival's settings) is chosen on "
        "validation rows, seed by seed; the figures are of the test rows, which nothing else ever sees. `joint` is our "
        "model after its first phase; the arms below it branch off it and take a second phase, with nothing new, with "
        "a filtered coreset of its own samples, and with pseudo-labels too. The supervised twin is the same encoder "
        "and energy, learned from the labels alone and looked at five times as often. Differences are paired, in "
        "points, with a 95 % bootstrap interval over seeds and test rows; better or worse means that it leaves out "
        "zero.",
        "",
        *_summary(sections),
        "",
    ]
    for section in sections.values():
        lines += [*_section(section), ""]
    lines += ["## The rivals' grids", "", *(f"- {note}" for note in grid_notes), ""]
    return "\n".join(lines)


def _summary(sections: Mapping[str, dict[str, Any]]) -> list[str]:
    lines = [
        f"| data | labels | unlabelled | twin | best rival | {CHOSEN} | difference to the best rival | "
        "95 % interval | verdict |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, section in sections.items():
        mean, rival = section["against_twin"]["mean"], section["best_rival"]
        one = section["against_best_rival"]["comparisons"][CHOSEN]
        lines.append(
            f"| [{name}](#{name}) | {section['sizes']['labeled']:,} | {section['sizes']['unlabeled']:,} | "
            f"{_percent(mean[TWIN])} | {_percent(mean[rival])} ({rival}) | {_percent(mean[CHOSEN])} | "
            f"{_points(one['difference'])} | {_interval(one)} | {_verdict(one)} |"
        )
    return lines


def _section(section: dict[str, Any]) -> list[str]:
    sizes, proof, machine = section["sizes"], section["against_twin"], section["machine"]
    shared = "the source's own" if proof["shared_test_examples"] else "held out anew for each seed"
    seeds = len(section["seeds"])
    return [
        f"## {section['name']}",
        "",
        f"{sizes['labeled']:,} labels, {sizes['unlabeled']:,} unlabelled rows, {sizes['validation']:,} validation "
        f"rows, {sizes['test']:,} test rows ({shared}); {seeds} seed{'s' if seeds > 1 else ''}. Always naming the "
        f"commonest class would be right on {_percent(section['commonest_class'])} % of the test rows. "
        "Test accuracy in %:",
        "",
        "| arm | each seed | mean | difference to the twin | 95 % interval | verdict | validation mean |",
        "|---|---|---|---|---|---|---|",
        *(_row(section, name) for name in (*section["ours"], TWIN, *section["rivals"])),
        "",
        standing(section),
        "",
        _chosen_words(section),
        "",
        _seconds_words(section, machine),
        *_columns(section["columns"]),
    ]


def _row(section: dict[str, Any], name: str) -> str:
    proof = section["against_twin"]
    each = ", ".join(_percent(value) for value in proof["scores"][name])
    mean = _percent(proof["mean"][name])
    shown = f"**{mean}**" if proof["mean"][name] == max(proof["mean"].values()) else mean
    middle = " | | "
    if name in proof["comparisons"]:
        one = proof["comparisons"][name]
        middle = f" {_points(one['difference'])} | {_interval(one)} | {_verdict(one)} "
    return f"| {name} | {each} | {shown} |{middle}| {_percent(float(np.mean(section['validation'][name])))} |"


def standing(section: dict[str, Any]) -> str:
    """Who is first on test, and where our choice stands beside the best rival, plainly."""
    mean, rival = section["against_twin"]["mean"], section["best_rival"]
    first = max(mean.values())
    leaders = [name for name, value in mean.items() if value == first]
    ours = [name for name in leaders if name in section["ours"]]
    if not ours:
        verdict = "none of ours"
    elif CHOSEN in ours:
        verdict = "our choice" if len(leaders) == 1 else "our choice among them"
    else:
        verdict = "ours, though not our choice"
    one = section["against_best_rival"]["comparisons"][CHOSEN]
    return (
        f"First on test: {' and '.join(leaders)} with {_percent(first)} % ({verdict}). Synthsieve, chosen on "
        f"validation, has {_percent(mean[CHOSEN])} %: {_points(one['difference'])} points against {rival}, the best "
        f"rival on validation, which has {_percent(mean[rival])} % (95 % interval {_interval(one)}): {_verdict(one)}."
    )


def _chosen_words(section: dict[str, Any]) -> str:
    arms = list(section["chosen"].values())
    times = {name: arms.count(name) for name in section["ours"] if name in arms}
    named = [f"{name} {'once' if count == 1 else f'{count} times'}" for name, count in times.items()]
    note = section["against_twin"]["note"]
    return f"Chosen on validation: {', '.join(named)}; the choice's own validation mean flatters it. {note}"


def _seconds_words(section: dict[str, Any], machine: Mapping[str, Any]) -> str:
    """The median wall time of each."""
    median = {name: in_words(float(np.median(each))) for name, each in section["seconds"].items()}
    first, *arms = (name for name in section["ours"] if name != CHOSEN)
    return (
        f"Median wall time of a seed: first phase {median[first]}; second phases: "
        f"{', '.join(f'{name} {median[name]}' for name in arms)}; twin {median[TWIN]}; rivals with their whole grids: "
        f"{', '.join(f'{name} {median[name]}' for name in section['rivals'])}. {machine['cores']} cores, "
        f"{machine['workers']} process{'es' if machine['workers'] > 1 else ''} of this comparison at a time, "
        "one thread each."
    )


def _columns(columns: dict[str, Any] | None) -> list[str]:
    return [] if columns is None else ["", *columns_in_markdown(columns)]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _points(difference: float) -> str:
    return f"{100 * difference:+.1f}"


def _interval(one: Mapping[str, Any]) -> str:
    low, high = one["interval_95"]
    return f"{_points(low)} to {_points(high)}"


def _verdict(one: Mapping[str, Any]) -> str:
    return WORDS[Verdict(one["verdict"])]
