"""The sieve: entropy filter, then a weighted coreset, then the certificate. Usable with any generator and classifier.

This module joins two rooms that do not know each other, `entropy` and `selection`, and checks what comes in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synthsieve.entropy import (
    Reason,
    Survivors,
    entropy_of_logits,
    entropy_of_probabilities,
    filter_by_entropy,
    search_ceiling,
)
from synthsieve.errors import SelectionError
from synthsieve.files import written_atomically
from synthsieve.progress import Progress
from synthsieve.randomness import numpy_stream
from synthsieve.selection import door
from synthsieve.selection.gradients import OuterProducts, residuals_of_logits, residuals_of_probabilities
from synthsieve.sieve_report import Told, fates, lost_classes

if TYPE_CHECKING:
    from synthsieve.selection.coreset import ClassFigures, Coreset
    from synthsieve.selection.curvature import Curvature, CurvatureState

AUTO = "auto"


@dataclass(frozen=True)
class Rejected:
    """Rows that did not pass the entropy filter.

    Attributes:
        indices: int64 (r,), rows of the input, ascending.
        reasons: int8 (r,), an `entropy.Reason` for each.
    """

    indices: np.ndarray
    reasons: np.ndarray

    def __len__(self) -> int:
        return len(self.indices)

    def counts(self) -> dict[str, int]:
        """How many rows for each reason, in words."""
        return {Reason(code).in_words(): number for code, number in sorted(Counter(self.reasons.tolist()).items())}


@dataclass(frozen=True)
class Selection(Told):
    """What `select` chose, and what it guarantees.

    Attributes:
        indices: int64 (k,), selected rows, class by class, each class in pick order.
        weights: float64 (k,), how many rows (or how much sample weight) each stands for; they sum to the class's size.
        entropy: float64 (n,), in nats; None when only gradients were given.
        gains: float64 (k,), what each pick took off the bound in its turn.
        assignment: int64 (n,), the selected row that stands for each row; -1 for rejected rows.
        gradient_bound: L, what the error of the weighted gradient sum cannot exceed.
        gradient_error: that error, measured.
        rejected: the rows the entropy filter rejected, with reasons.
        entropy_ceiling: the ceiling applied; infinity if none.
        classes: the labels, in the order of the class indices in `figures`.
        figures: per class, what was done and achieved.
        notes: sentences worth reading.
        seconds: wall time of the selection; compile_seconds: of compiling or loading its kernels, not counted in it.
        curvature_state: averages for the next selection; None without curvature.
    """

    indices: np.ndarray
    weights: np.ndarray
    entropy: np.ndarray | None
    gains: np.ndarray
    assignment: np.ndarray
    gradient_bound: float
    gradient_error: float
    rejected: Rejected
    entropy_ceiling: float
    classes: tuple[Any, ...]
    figures: tuple[ClassFigures, ...]
    notes: tuple[str, ...]
    seconds: float
    compile_seconds: float
    curvature_state: CurvatureState | None = None

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def num_rows(self) -> int:
        """How many rows were given."""
        return len(self.assignment)

    @property
    def rejected_counts(self) -> dict[str, int]:
        return self.rejected.counts()

    @property
    def loss_weights(self) -> np.ndarray:
        """The weights scaled to mean 1, as a loss uses them."""
        return self.weights / self.weights.mean()

    def rows(self) -> dict[str, np.ndarray]:
        """A column for each question about a row: selected, weight, entropy, rank in its class, assignment, reason."""
        rank = np.full(self.num_rows, -1, dtype=np.int64)
        rank[self.indices] = np.concatenate([np.arange(figures.selected) for figures in self.figures])
        weight = np.zeros(self.num_rows)
        weight[self.indices] = self.weights
        reason = np.zeros(self.num_rows, dtype=np.int8)
        reason[self.rejected.indices] = self.rejected.reasons
        entropy = np.full(self.num_rows, np.nan) if self.entropy is None else self.entropy
        return {
            "row": np.arange(self.num_rows),
            "selected": rank >= 0,
            "weight": weight,
            "entropy": entropy,
            "rank": rank,
            "assignment": self.assignment,
            "reason": reason,
        }

    def to_parquet(self, path: Path | str) -> None:
        """Write every row's fate, atomically: row, selected, weight, entropy, rank, assignment and reason."""
        import pyarrow.parquet as pq

        with written_atomically(Path(path)) as partial, partial.open("wb") as file:
            pq.write_table(fates(self.rows()), file)

    def with_notes(self, *notes: str) -> Selection:
        """The same selection with more to say."""
        return replace(self, notes=(*notes, *self.notes))


def select(
    *,
    labels: Any,
    logits: Any = None,
    probabilities: Any = None,
    gradients: Any = None,
    features: Any = None,
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
    budget: float | int | None = 0.1,
    epsilon: float | None = None,
    entropy_ceiling: float | str | None = None,
    ceiling_score: Callable[[float], float] | None = None,
    keep_fraction: float | None = None,
    keep_per_class: bool = False,
    require_label: bool = False,
    method: str = "auto",
    refine: bool = False,
    curvature: str = "none",
    curvature_state: CurvatureState | None = None,
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Selection:
    """Filter rows by entropy, then choose a weighted coreset in each class.

    Give `logits` or `probabilities` (for entropies and gradients), `gradients` (to choose by), or both. Arrays may be
    numpy, torch or Arrow.

    Args:
        labels: (n,), of any type. With logits, integers are columns; other types follow `classes`.
        logits, probabilities: (n, num_classes).
        gradients: (n, d), what distances are measured between; p - y by default.
        features: (n, f), what the last layer saw: distances are then between the outer products (p - y) h'.
        classes: the label of each column; the sorted labels by default when they are as many.
        sample_weight: (n,), what each row counts.
        budget: a fraction of each class (float in (0, 1]) or a count over all classes (int).
        epsilon: instead of `budget`, the fewest picks with gradient bound at most this.
        entropy_ceiling: in nats; rows at or above it are rejected. "auto" asks `ceiling_score`.
        ceiling_score: ceiling -> validation score, for "auto".
        keep_fraction: instead of a ceiling, keep this fraction of lowest entropy (of each class if `keep_per_class`).
        require_label: also reject rows that the classifier gives another label.
        method: "auto", "exact", "fast", "stochastic" or "random".
        refine: exchange picks until no exchange lowers the bound.
        curvature: "none" (CRAIG), "softmax", "hutchinson" or "unit": AdaCore's preconditioner.
        curvature_state: averages of earlier selections, from `Selection.curvature_state`.
        memory_limit: bytes or text like "500MB" beyond the input; over it a leaner way is taken and noted.
        n_jobs: threads; all cores if None or -1. The result does not depend on it.
        seed: of `stochastic`, `random` and Hutchinson's probes.
        progress: told how far the selection has come.
    """
    from synthsieve.selection.coreset import coreset
    from synthsieve.selection.curvature import Curvature
    from synthsieve.selection.memory import bytes_in
    from synthsieve.selection.methods import Method

    chosen_method = door.one_of(Method, method, "method")
    chosen_curvature = door.one_of(Curvature, curvature, "curvature")
    target = door.budget_of(budget, epsilon)
    limit_bytes = bytes_in(memory_limit)
    jobs = door.jobs(n_jobs)
    given = _checked(labels, logits, probabilities, gradients, features, classes, sample_weight)

    entropy, survivors = _sift(
        given, entropy_ceiling, ceiling_score, keep_fraction, per_class=keep_per_class, require_label=require_label
    )
    kept = None if survivors.kept.all() else np.flatnonzero(survivors.kept)
    survived = given if kept is None else given.take(kept)
    points, split, state = _points(survived, chosen_curvature, curvature_state, seed)
    chosen = coreset(
        points,
        survived.labels,
        target,
        generator=numpy_stream(seed, "selection"),
        split=split,
        method=chosen_method,
        refine=refine,
        sample_weight=survived.weight,
        memory_limit=limit_bytes,
        n_jobs=jobs,
        progress=progress,
        names=given.names,
    )
    return _told(given, entropy, survivors, kept, chosen, state)


@dataclass(frozen=True)
class _Given:
    """Checked input; whatever was not given is None. Labels are class indices, `names` what they stand for."""

    labels: np.ndarray
    names: tuple[Any, ...]
    logits: np.ndarray | None
    probabilities: np.ndarray | None
    gradients: np.ndarray | None
    features: np.ndarray | None
    weight: np.ndarray | None

    @property
    def answers(self) -> np.ndarray | None:
        """The classifier's output, in either form."""
        return self.logits if self.logits is not None else self.probabilities

    def take(self, rows: np.ndarray) -> _Given:
        arrays = (self.logits, self.probabilities, self.gradients, self.features, self.weight)
        return _Given(self.labels[rows], self.names, *(None if array is None else array[rows] for array in arrays))


def _checked(
    labels: Any,
    logits: Any,
    probabilities: Any,
    gradients: Any,
    features: Any,
    classes: Sequence[Any] | None,
    sample_weight: Any,
) -> _Given:
    if logits is not None and probabilities is not None:
        raise SelectionError("expected logits or probabilities, got both: leave one out")
    if logits is None and probabilities is None and gradients is None:
        raise SelectionError("expected logits, probabilities or gradients, got none of them: pass one")
    checked_logits = None if logits is None else door.matrix(logits, "logits")
    checked_probabilities = None if probabilities is None else door.probabilities(probabilities)
    checked_gradients = None if gradients is None else door.matrix(gradients, "gradients")
    answers = checked_logits if checked_logits is not None else checked_probabilities
    first = answers if answers is not None else checked_gradients
    assert first is not None
    if len(first) == 0:
        raise SelectionError("expected at least one row, got none: check that the input is not empty")
    told = door.any_labels(labels) if answers is None else door.column_labels(labels, answers.shape[1], classes)
    checked_features = None if features is None else door.matrix(features, "features")
    door.same_length(len(first), labels=told.indices, gradients=checked_gradients, features=checked_features)
    weight = None if sample_weight is None else door.weights(sample_weight, len(first))
    return _Given(
        told.indices, told.names, checked_logits, checked_probabilities, checked_gradients, checked_features, weight
    )


def _sift(
    given: _Given,
    ceiling: float | str | None,
    score: Callable[[float], float] | None,
    keep_fraction: float | None,
    *,
    per_class: bool,
    require_label: bool,
) -> tuple[np.ndarray | None, Survivors]:
    """Entropies, and who lies under the ceiling."""
    if per_class and keep_fraction is None:
        raise SelectionError("expected keep_fraction beside keep_per_class, got none: give both, or neither")
    if given.answers is None:
        if ceiling is not None or keep_fraction is not None or require_label:
            raise SelectionError("expected logits or probabilities to filter by, got gradients only: pass those too")
        return None, Survivors(np.zeros(len(given.labels), dtype=np.int8), np.inf)
    limit = None if ceiling is None or ceiling == AUTO else _as_number(ceiling)
    if given.logits is not None:
        entropy = entropy_of_logits(given.logits)
    else:
        assert given.probabilities is not None
        entropy = entropy_of_probabilities(given.probabilities, entropy_ceiling=limit)
    if ceiling == AUTO:
        if score is None:
            raise SelectionError("expected ceiling_score with entropy_ceiling='auto', got none: pass ceiling -> score")
        limit = search_ceiling(entropy, score).ceiling
    predicted = given.answers.argmax(axis=1) if require_label else None
    return entropy, filter_by_entropy(
        entropy, given.labels, ceiling=limit, keep_fraction=keep_fraction, per_class=per_class, predicted=predicted
    )


def _as_number(ceiling: float | str) -> float:
    try:
        return float(ceiling)
    except (TypeError, ValueError):
        raise SelectionError(f"expected entropy_ceiling as a number or 'auto', got {ceiling!r}: try 1e-6") from None


def _points(
    given: _Given, curvature: Curvature, state: CurvatureState | None, seed: int
) -> tuple[np.ndarray, int | None, CurvatureState | None]:
    """What distances are measured between: gradients, preconditioned if asked, with features beside them if given."""
    from synthsieve.selection.curvature import Curvature, class_diagonal, precondition

    if given.gradients is not None:
        points = given.gradients
        if curvature is not Curvature.NONE:
            raise SelectionError(
                "expected logits or probabilities for a curvature, got gradients: precondition those first"
            )
        state = None
    elif given.logits is not None:
        points = residuals_of_logits(given.logits, given.labels)
    else:
        assert given.probabilities is not None
        points = residuals_of_probabilities(given.probabilities, given.labels)
    if curvature is not Curvature.NONE:
        if state is not None and state.gradients is not None and state.gradients.shape != points.shape:
            state = state.for_other_points()
        stream = numpy_stream(seed, "selection.curvature")
        diagonal = class_diagonal(points, given.labels, curvature, generator=stream)
        prepared = precondition(points, given.labels, diagonal, state)
        points, state = prepared.gradients, prepared.state
    if given.features is None:
        return points, None, state
    return *OuterProducts(points, given.features.astype(points.dtype, copy=False)).joined(), state


def _told(
    given: _Given,
    entropy: np.ndarray | None,
    survivors: Survivors,
    kept: np.ndarray | None,
    chosen: Coreset,
    state: CurvatureState | None,
) -> Selection:
    """The coreset of the survivors, told in rows of the input."""
    original = np.arange(len(given.labels)) if kept is None else kept
    assignment = np.full(len(given.labels), -1, dtype=np.int64)
    assignment[original] = original[chosen.assignment]
    out = np.flatnonzero(~survivors.kept)
    present = {figures.label for figures in chosen.classes}
    notes = lost_classes(present, np.unique(given.labels).tolist(), given.names)
    return Selection(
        indices=original[chosen.indices],
        weights=chosen.weights,
        entropy=entropy,
        gains=chosen.gains,
        assignment=assignment,
        gradient_bound=chosen.gradient_bound,
        gradient_error=chosen.gradient_error,
        rejected=Rejected(out, survivors.reason[out]),
        entropy_ceiling=survivors.ceiling,
        classes=given.names,
        figures=chosen.classes,
        notes=chosen.notes + notes,
        seconds=chosen.seconds,
        compile_seconds=chosen.compile_seconds,
        curvature_state=state,
    )
