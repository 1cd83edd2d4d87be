"""Are the samples like real data? Each figure beside what real examples get, which way is good, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from synthsieve.evaluation import memorisation
from synthsieve.evaluation.memorisation import Verdict
from synthsieve.report.wording import figure, percent

NEAR_ENOUGH = 0.9  # of what held-out real examples get


@dataclass(frozen=True)
class Measure:
    """One line: the figure of the samples, of held-out real examples (empty where it has none), and its meaning."""

    name: str
    samples: str
    real: str
    good: str
    meaning: str


def measures(quality: dict[str, Any]) -> list[Measure]:
    """All that could be measured."""
    real = quality["same_law"]
    found = [
        *_of_the_manifold(quality["manifold"], real["manifold"]),
        *_moments(quality["frechet_distance"], real["frechet_distance"]),
        *_told_apart(quality["two_sample"]),
        *_alone(quality["train_on_synthetic"]),
        *_copies(quality["memorisation"]),
    ]
    return found


def in_one_line(quality: dict[str, Any]) -> str:
    """The heading: near, varied, copied or not."""
    pool, real = quality["manifold"], quality["same_law"]["manifold"]
    if pool is None or real is None:
        return "Too few rows to tell how near the samples are to real data"
    near = pool["precision"] >= NEAR_ENOUGH * real["precision"]
    varied = pool["recall"] >= NEAR_ENOUGH * real["recall"]
    words = {
        (True, True): "The samples look like real examples and vary like them",
        (True, False): "One by one the samples look real; together they vary less than real data",
        (False, True): "The samples vary like real data, but many lie where no real example does",
        (False, False): "The samples differ from real data, and vary less",
    }[near, varied]
    copied = quality["memorisation"]
    return f"{words}; copies are suspected" if copied and copied["verdict"] == Verdict.COPIES else words


def copies_in_words(quality: dict[str, Any]) -> str:
    """For the summary: the verdict and what it rests on, in the words of the export's card."""
    copied = quality["memorisation"]
    if copied is None:
        return "not measured: too few rows"
    return memorisation.copies_in_words(copied)


def _of_the_manifold(pool: dict[str, Any] | None, real: dict[str, Any] | None) -> list[Measure]:
    if pool is None:
        return []
    told = {
        "precision": ("higher", "The share of samples that lie among real examples: does each one look real?"),
        "recall": ("higher", "The share of real examples that lie among samples: is everything real also drawn?"),
        "density": (
            "near 1",
            "How densely real examples lie round a sample; above 1, samples crowd where data are dense.",
        ),
        "coverage": ("higher", "The share of real examples with a sample as near as their own neighbours."),
    }
    return [
        Measure(name.capitalize(), figure(pool[name]), "" if real is None else figure(real[name]), good, meaning)
        for name, (good, meaning) in told.items()
    ]


def _moments(mine: float | None, theirs: float | None) -> list[Measure]:
    if mine is None:
        return []
    meaning = "How far the mean and the spread of all samples lie from those of real data; 0 is none."
    return [Measure("Fréchet distance", figure(mine), figure(theirs), "lower", meaning)]


def _told_apart(told: dict[str, Any] | None) -> list[Measure]:
    if told is None:
        return []
    span = percent(told["accuracy"])
    meaning = (
        "How often a classifier tells a sample from a real example; half is a guess "
        f"(95 % interval {percent(told['low'])} to {percent(told['high'])})."
    )
    return [Measure("Two-sample test", span, percent(0.5, 0), "near 50\N{NO-BREAK SPACE}%", meaning)]


def _alone(alone: dict[str, Any] | None) -> list[Measure]:
    if alone is None:
        return []
    meaning = (
        "A linear classifier learned from the samples alone, on test; beside it, learned from the real labels alone."
    )
    name = "Learned from samples alone"
    return [Measure(name, percent(alone["accuracy"]), percent(alone["real_accuracy"]), "higher", meaning)]


def _copies(copied: dict[str, Any] | None) -> list[Measure]:
    if copied is None:
        return []
    near = Measure(
        "Unusually near",
        percent(copied["near_share"]),
        percent(copied["expected_share"]),
        "no higher",
        "The share that is nearer to a training example than almost any held-out example is: "
        f"are samples copies? {copied['verdict'].capitalize()}.",
    )
    equal = Measure(
        "Equal to a training example",
        f"{copied['duplicates']:,} of {copied['num_synthetic']:,}",
        f"{copied['held_out_duplicates']:,} of {copied['num_held_out']:,}",
        "0",
        "Samples that repeat a training example to the last digit.",
    )
    return [near, equal]
