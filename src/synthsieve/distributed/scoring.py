"""Scoring a block: its classes, its entropies, and who lies under the ceiling."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from synthsieve.distributed.job import Job, block_name
from synthsieve.entropy import PrecisionWarning, Reason, entropy_of_logits, entropy_of_probabilities
from synthsieve.selection import door


def look(job: Job, number: int) -> dict[str, Any]:
    """The labels that occur in a block."""
    return {"labels": np.unique(door.label_array(job.named_labels(number))).tolist()}


def score(job: Job, number: int) -> dict[str, Any]:
    """Leave class, entropy, reason and disagreement of every row of a block; return counts and what is worth a note.

    With a fraction to keep, everybody of the right label is kept until the threshold is known.
    """
    first_row, kind = job.blocks[number].first_row, job.judged_by
    told = job.named_labels(number)
    if kind is None:
        assert job.classes is not None
        label = door.places_among(np.asarray(job.classes), door.label_array(told))
        entropy, reason = np.full(len(label), np.nan), np.zeros(len(label), dtype=np.int8)
        other = np.zeros(len(label), dtype=bool)
        job.work.save(block_name(number), label=label, entropy=entropy, reason=reason, other=other)
        return {**counts(label, reason, entropy, other), "columns": 0, "warnings": []}
    answers = job.answers(number, kind)
    label = door.column_labels(told, answers.shape[1], job.classes, first_row=first_row).indices
    ceiling = job.sieving.entropy_ceiling
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrecisionWarning)
        if kind == "logits":
            entropy = entropy_of_logits(answers)
        else:
            entropy = entropy_of_probabilities(answers, entropy_ceiling=ceiling)
    other = answers.argmax(axis=1) != label
    eligible = ~other if job.sieving.require_label else np.ones(len(label), dtype=bool)
    reason = np.where(eligible, Reason.KEPT, Reason.OTHER_LABEL).astype(np.int8)
    if ceiling is not None:
        reason[eligible & ~(entropy < ceiling)] = Reason.HIGH_ENTROPY
    job.work.save(block_name(number), label=label, entropy=entropy, reason=reason, other=other)
    return {
        **counts(label, reason, entropy, other),
        "columns": answers.shape[1],
        "lowest": float(entropy[eligible].min(initial=np.inf)),
        "warnings": [str(warning.message) for warning in caught],
    }


def counts(label: np.ndarray, reason: np.ndarray, entropy: np.ndarray, other: np.ndarray) -> dict[str, Any]:
    """How many rows each class has, how many are kept, how many of these the classifier contradicts, and reasons."""
    kept = reason == Reason.KEPT
    return {
        "rows": np.bincount(label).tolist(),
        "kept": np.bincount(label[kept]).tolist(),
        "contradicted": np.bincount(label[kept & other]).tolist(),
        "reasons": np.bincount(reason, minlength=len(Reason)).tolist(),
        "highest_kept": float(entropy[kept].max(initial=-np.inf)),
    }
