"""From what every arm and rival got right to the pages people read: RESULTS.json and RESULTS.md of `modalities.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from modalities_columns import columns_in_markdown

from synthsieve.evaluation.comparison import ComparisonResult, Verdict, compare_paired
from synthsieve.io.files import write_json, write_text
from synthsieve.io.progress import describe
from synthsieve.io.random_streams import numpy_stream

SUPERVISED_BASELINE = "supervised baseline"
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
        validation: arm or rival -> bool (n,) a seed, which validation examples it gets right.
        test: the same of test examples.
        shared_items: all seeds are measured on the same test examples.
        seconds: arm or rival -> wall time of each seed; pretraining under the name of the first of `ours`.
        grids: rival -> what its grid came to, a seed at a time.
        counts: part -> class -> rows, of the first seed's split; unlabelled rows are counted under their true class.
        metadata: settings, versions and split hashes, for JSON.
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
    metadata: Mapping[str, Any]
    columns: dict[str, Any] | None = None


def write_report(results: Path, evidence: Sequence[Evidence], grid_notes: Sequence[str]) -> str:
    """Write RESULTS.json and RESULTS.md: the text of the latter."""
    sections = {one.name: conclude(one) for one in evidence}
    write_json(results.with_suffix(".json"), sections)
    text = as_markdown(sections, grid_notes)
    write_text(results.with_suffix(".md"), text)
    return text


def conclude(evidence: Evidence) -> dict[str, Any]:
    """All figures of one data set, for JSON: comparisons, choices, accuracies on validation, times, settings."""
    chosen = choices(evidence.validation, evidence.ours)
    validation, test = (
        {**right, CHOSEN: [right[arm][s] for s, arm in enumerate(chosen)]}
        for right in (evidence.validation, evidence.test)
    )
    accuracy = {name: [float(each.mean()) for each in right] for name, right in validation.items()}
    best_rival = max(evidence.rivals, key=lambda name: float(np.mean(accuracy[name])))
    ours = (*evidence.ours, CHOSEN)
    against_supervised_baseline = _compare(
        test, SUPERVISED_BASELINE, (*ours, SUPERVISED_BASELINE, *evidence.rivals), evidence.shared_items
    )
    against_rival = _compare(test, best_rival, (*ours, best_rival), evidence.shared_items)
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
        "against_supervised_baseline": against_supervised_baseline.as_dict(),
        "against_best_rival": against_rival.as_dict(),
        "validation": accuracy,
        "grids": {name: list(each) for name, each in evidence.grids.items()},
        "seconds": {name: list(each) for name, each in evidence.seconds.items()},
        "columns": evidence.columns,
        **evidence.metadata,
    }


def choices(validation: Right, ours: Sequence[str]) -> list[str]:
    """The arm of ours that is best on validation, for each seed; among equals the first."""
    seeds = range(len(validation[ours[0]]))
    return [max(ours, key=lambda arm: float(validation[arm][s].mean())) for s in seeds]


def _compare(test: Right, baseline: str, names: Sequence[str], shared_items: bool) -> ComparisonResult:
    right = {name: test[name] for name in names}
    return compare_paired(right, baseline=baseline, shared_items=shared_items, rng=numpy_stream(0, "paired_comparison"))


def as_markdown(sections: Mapping[str, dict[str, Any]], grid_notes: Sequence[str]) -> str:
    """The whole page."""
    lines = [
        "# Few labels, several kinds of data: against scikit-learn",
        "",
        "Every method uses the same labelled rows and, if it can, the same unlabelled rows without their labels. "
        "Everything that is chosen (the weights of a run, our variant, the hyperparameters of a scikit-learn method) "
        "is chosen on validation rows, separately for each seed. The figures are of the test rows, which are used for "
        "nothing else.",
        "",
        "`joint` is our pretrained model. The variants below it continue from it: without new data, with a filtered "
        "coreset of its own samples, and with pseudo-labels as well. The supervised baseline is the same encoder and "
        "energy, trained on the labels only and evaluated five times as often during training. Differences are paired, "
        "in points, with a 95 % bootstrap interval over seeds and test rows; better or worse means that the interval "
        "excludes zero.",
        "",
        *_summary(sections),
        "",
    ]
    for section in sections.values():
        lines += [*_section(section), ""]
    lines += ["## Grids of the scikit-learn methods", "", *(f"- {note}" for note in grid_notes), ""]
    return "\n".join(lines)


def _summary(sections: Mapping[str, dict[str, Any]]) -> list[str]:
    lines = [
        f"| data | labels | unlabelled | supervised baseline | best scikit-learn method | {CHOSEN} | "
        "difference to that method | 95 % interval | verdict |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, section in sections.items():
        mean, rival = section["against_supervised_baseline"]["mean"], section["best_rival"]
        one = section["against_best_rival"]["comparisons"][CHOSEN]
        lines.append(
            f"| [{name}](#{name}) | {section['sizes']['labeled']:,} | {section['sizes']['unlabeled']:,} | "
            f"{_percent(mean[SUPERVISED_BASELINE])} | {_percent(mean[rival])} ({rival}) | {_percent(mean[CHOSEN])} | "
            f"{_points(one['difference'])} | {_interval(one)} | {_verdict(one)} |"
        )
    return lines


def _section(section: dict[str, Any]) -> list[str]:
    sizes, paired_comparison, machine = section["sizes"], section["against_supervised_baseline"], section["machine"]
    shared = "published" if paired_comparison["shared_test_examples"] else "held out separately for each seed"
    seeds = len(section["seeds"])
    return [
        f"## {section['name']}",
        "",
        f"{sizes['labeled']:,} labels, {sizes['unlabeled']:,} unlabelled rows, {sizes['validation']:,} validation "
        f"rows, {sizes['test']:,} test rows ({shared}); {seeds} seed{'s' if seeds > 1 else ''}. Always predicting the "
        f"most frequent class has an accuracy of {_percent(section['commonest_class'])} %. "
        "Test accuracy in %:",
        "",
        "| variant | each seed | mean | difference to the supervised baseline | 95 % interval | verdict | "
        "validation mean |",
        "|---|---|---|---|---|---|---|",
        *(_row(section, name) for name in (*section["ours"], SUPERVISED_BASELINE, *section["rivals"])),
        "",
        standing(section),
        "",
        _chosen_words(section),
        "",
        _seconds_words(section, machine),
        *_columns(section["columns"]),
    ]


def _row(section: dict[str, Any], name: str) -> str:
    paired_comparison = section["against_supervised_baseline"]
    each = ", ".join(_percent(value) for value in paired_comparison["scores"][name])
    mean = _percent(paired_comparison["mean"][name])
    shown = f"**{mean}**" if paired_comparison["mean"][name] == max(paired_comparison["mean"].values()) else mean
    middle = " | | "
    if name in paired_comparison["comparisons"]:
        one = paired_comparison["comparisons"][name]
        middle = f" {_points(one['difference'])} | {_interval(one)} | {_verdict(one)} "
    return f"| {name} | {each} | {shown} |{middle}| {_percent(float(np.mean(section['validation'][name])))} |"


def standing(section: dict[str, Any]) -> str:
    """The best method on test, and our choice compared with the best scikit-learn method."""
    mean, rival = section["against_supervised_baseline"]["mean"], section["best_rival"]
    first = max(mean.values())
    leaders = [name for name, value in mean.items() if value == first]
    ours = [name for name in leaders if name in section["ours"]]
    if not ours:
        verdict = "none of our variants"
    elif CHOSEN in ours:
        verdict = "the chosen variant" if len(leaders) == 1 else "the chosen variant is among them"
    else:
        verdict = "one of our variants, but not the chosen one"
    one = section["against_best_rival"]["comparisons"][CHOSEN]
    return (
        f"Best on test: {' and '.join(leaders)} with {_percent(first)} % ({verdict}). Synthsieve, chosen on "
        f"validation, has {_percent(mean[CHOSEN])} %. That is {_points(one['difference'])} points compared with "
        f"{rival}, the scikit-learn method with the best validation accuracy, which has {_percent(mean[rival])} % "
        f"(95 % interval {_interval(one)}): {_verdict(one)}."
    )


def _chosen_words(section: dict[str, Any]) -> str:
    arms = list(section["chosen"].values())
    times = {name: arms.count(name) for name in section["ours"] if name in arms}
    named = [f"{name} {'once' if count == 1 else f'{count} times'}" for name, count in times.items()]
    note = section["against_supervised_baseline"]["note"]
    optimistic = "the validation mean of this row is too optimistic, because it was used to choose"
    return f"Chosen on validation: {', '.join(named)}; {optimistic}. {note}"


def _seconds_words(section: dict[str, Any], machine: Mapping[str, Any]) -> str:
    """The median wall time of each."""
    median = {name: describe(float(np.median(each))) for name, each in section["seconds"].items()}
    first, *arms = (name for name in section["ours"] if name != CHOSEN)
    return (
        f"Median wall time of a seed: pretraining {median[first]}; retraining: "
        f"{', '.join(f'{name} {median[name]}' for name in arms)}; supervised baseline {median[SUPERVISED_BASELINE]}; "
        "scikit-learn methods with their whole grids: "
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
