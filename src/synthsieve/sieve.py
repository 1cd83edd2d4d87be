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
from synthsieve.selection.blocks import row_blocks
from synthsieve.selection.gradients import OuterProducts, residuals_of_logits, residuals_of_probabilities
from synthsieve.sieve_judge import JUDGED, judged
from synthsieve.sieve_report import Contradicted, Told, fates, lost_classes

if TYPE_CHECKING:
    from synthsieve.selection.coreset import ClassFigures, Coreset, PointSource
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


@dataclass(frozen=True, repr=False)
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
        contradicted: how many rows the classifier gives another label than their own; None with gradients alone.
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
    contradicted: Contradicted | None = None

    def __repr__(self) -> str:
        methods = ", ".join(sorted({str(figures.method) for figures in self.figures}))
        return (
            f"Selection({len(self):,} of {self.num_rows:,} rows, {len(self.rejected):,} rejected, "
            f"{len(self.figures):,} classes, gradient_bound={self.gradient_bound:.4g}, "
            f"gradient_error={self.gradient_error:.4g}, method={methods})"
        )

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
        """A column for each question about a row: selected, weight and loss_weight (0 where it is not selected),
        entropy, rank in its class, assignment, reason."""
        rank = np.full(self.num_rows, -1, dtype=np.int64)
        rank[self.indices] = np.concatenate([np.arange(figures.selected) for figures in self.figures])
        weight, loss_weight = np.zeros(self.num_rows), np.zeros(self.num_rows)
        weight[self.indices], loss_weight[self.indices] = self.weights, self.loss_weights
        reason = np.zeros(self.num_rows, dtype=np.int8)
        reason[self.rejected.indices] = self.rejected.reasons
        entropy = np.full(self.num_rows, np.nan) if self.entropy is None else self.entropy
        return {
            "row": np.arange(self.num_rows),
            "selected": rank >= 0,
            "weight": weight,
            "loss_weight": loss_weight,
            "entropy": entropy,
            "rank": rank,
            "assignment": self.assignment,
            "reason": reason,
        }

    def to_parquet(self, path: Path | str) -> None:
        """Write a line for every row, atomically: the columns of `rows`, with the reason in words."""
        import pyarrow.parquet as pq

        with written_atomically(Path(path)) as partial, partial.open("wb") as file:
            pq.write_table(fates(self.rows()), file)

    def with_notes(self, *notes: str) -> Selection:
        """The same selection with more to say."""
        return replace(self, notes=(*notes, *self.notes))


def select(
    features: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    probabilities: Any = None,
    gradients: Any = None,
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

    Give `logits` or `probabilities` (for entropies and gradients), `gradients` (to choose by), or both; or features
    alone, as in `select(X, y)`: then a cross-validated logistic regression gives the probabilities, and a note says so.
    Arrays may be numpy, scipy.sparse, torch, Arrow, or pandas and polars frames.

    Args:
        features: (n, f), alone: what a classifier is trained on. Beside logits or probabilities: what the last layer
            saw, and distances are between the outer products (p - y) h'.
        labels: (n,), of any type. Whole numbers are columns of the logits; see `classes` for others.
        logits, probabilities: (n, num_classes). Named columns are matched to the labels by name.
        gradients: (n, d), what distances are measured between; p - y by default.
        classes: the label of each column. Without it and without names, columns are taken to be in the order of the
            labels (of a Categorical, else sorted, as numbers where all are), and a note says so.
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
        memory_limit: bytes or text like "500MB", beyond the input and the program itself; over it a leaner way is
            taken and noted, or an error says what is needed.
        n_jobs: threads; all cores if None or -1. The result does not depend on it.
        seed: of `stochastic`, `random`, Hutchinson's probes and the folds of the logistic regression.
        progress: told how far the selection has come.
    """
    from synthsieve.selection.coreset import coreset
    from synthsieve.selection.curvature import Curvature
    from synthsieve.selection.memory import bytes_in, in_megabytes
    from synthsieve.selection.methods import Method

    chosen_method = door.one_of(Method, method, "method")
    chosen_curvature = door.one_of(Curvature, curvature, "curvature")
    target = door.budget_of(budget, epsilon)
    limit_bytes = bytes_in(memory_limit)
    jobs = door.jobs(n_jobs)
    given = _checked(labels, logits, probabilities, gradients, features, classes, sample_weight, seed)
    reserved_bytes = _reserved(given, chosen_curvature)
    if limit_bytes is not None and reserved_bytes >= limit_bytes:
        raise SelectionError(
            f"expected the rows to fit into memory_limit={in_megabytes(limit_bytes)}, but {len(given.labels):,} rows "
            f"need {in_megabytes(reserved_bytes)} before any is chosen: raise the limit or select in parts"
        )

    predicted = _predicted(given)
    entropy, survivors = _sift(
        given,
        predicted if require_label else None,
        entropy_ceiling,
        ceiling_score,
        keep_fraction,
        per_class=keep_per_class,
        require_label=require_label,
    )
    kept = None if survivors.kept.all() else np.flatnonzero(survivors.kept).astype(np.int32)
    points, split, state = _points(given, kept, chosen_curvature, curvature_state, seed)
    chosen = coreset(
        points,
        given.labels if kept is None else given.labels[kept],
        target,
        generator=numpy_stream(seed, "selection"),
        split=split,
        method=chosen_method,
        refine=refine,
        sample_weight=given.weight if given.weight is None or kept is None else given.weight[kept],
        memory_limit=limit_bytes,
        reserved_bytes=reserved_bytes,
        n_jobs=jobs,
        progress=progress,
        names=given.names,
        control=True,
    )
    return _told(given, entropy, predicted, survivors, kept, chosen, state)


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
    notes: tuple[str, ...]
    converted_bytes: int

    @property
    def answers(self) -> np.ndarray | None:
        """The classifier's output, in either form."""
        return self.logits if self.logits is not None else self.probabilities


def _checked(
    labels: Any,
    logits: Any,
    probabilities: Any,
    gradients: Any,
    features: Any,
    classes: Sequence[Any] | None,
    sample_weight: Any,
    seed: int,
) -> _Given:
    if logits is not None and probabilities is not None:
        raise SelectionError("expected logits or probabilities, got both: leave one out")
    if all(one is None for one in (logits, probabilities, gradients, features)):
        raise SelectionError("expected logits, probabilities, gradients or features, got none of them: pass one")
    if labels is None:
        raise SelectionError("expected labels, got none: pass labels=, or select(X, y)")
    notes: tuple[str, ...] = ()
    checked_features = None if features is None else door.matrix(features, "features")
    if logits is None and probabilities is None and gradients is None:
        assert checked_features is not None
        probabilities, classes = judged(checked_features, labels, seed)
        notes, checked_features = (JUDGED,), None
    checked_logits = None if logits is None else door.matrix(logits, "logits")
    checked_probabilities = None if probabilities is None else door.probabilities(probabilities)
    checked_gradients = None if gradients is None else door.matrix(gradients, "gradients")
    answers = checked_logits if checked_logits is not None else checked_probabilities
    first = answers if answers is not None else checked_gradients
    assert first is not None
    if len(first) == 0:
        raise SelectionError("expected at least one row, got none: check that the input is not empty")
    if answers is None:
        told = door.any_labels(labels)
    else:
        columns = door.column_names(logits if logits is not None else probabilities)
        told = door.column_labels(labels, answers.shape[1], classes, columns=columns)
    door.same_length(len(first), labels=told.indices, gradients=checked_gradients, features=checked_features)
    weight = None if sample_weight is None else door.weights(sample_weight, len(first))
    pairs = (
        (logits, checked_logits),
        (probabilities, checked_probabilities),
        (gradients, checked_gradients),
        (features, checked_features),
    )
    converted = sum(array.nbytes for value, array in pairs if array is not None and _is_copy(array, value))
    if notes:  # the probabilities were made here
        converted += first.nbytes
    return _Given(
        told.indices,
        told.names,
        checked_logits,
        checked_probabilities,
        checked_gradients,
        checked_features,
        weight,
        notes + told.notes,
        converted,
    )


def _is_copy(array: np.ndarray, value: Any) -> bool:
    """Whether an array was made anew of what the caller gave, and is no view of it."""
    return array.flags.owndata and array is not (value.values if isinstance(value, door.NamedMatrix) else value)


def _reserved(given: _Given, curvature: Curvature) -> int:
    """Bytes that everything but the choice in the classes takes, beyond the input as it came."""
    from synthsieve.selection.curvature import Curvature
    from synthsieve.selection.memory import estimate_curvature, estimate_filter

    reserved = estimate_filter(len(given.labels)) + given.converted_bytes
    if curvature is not Curvature.NONE and given.answers is not None:
        reserved += estimate_curvature(len(given.labels), given.answers.shape[1])
    return reserved


def _predicted(given: _Given) -> np.ndarray | None:
    """The class the classifier gives each row, int32 (n,)."""
    if given.answers is None:
        return None
    predicted = np.empty(len(given.answers), dtype=np.int32)
    for part in row_blocks(*given.answers.shape):
        predicted[part] = given.answers[part].argmax(axis=1)
    return predicted


def _sift(
    given: _Given,
    predicted: np.ndarray | None,
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
    return entropy, filter_by_entropy(
        entropy, given.labels, ceiling=limit, keep_fraction=keep_fraction, per_class=per_class, predicted=predicted
    )


def _as_number(ceiling: float | str) -> float:
    try:
        return float(ceiling)
    except (TypeError, ValueError):
        raise SelectionError(f"expected entropy_ceiling as a number or 'auto', got {ceiling!r}: try 1e-6") from None


def _points(
    given: _Given, kept: np.ndarray | None, curvature: Curvature, state: CurvatureState | None, seed: int
) -> tuple[np.ndarray | PointSource, int | None, CurvatureState | None]:
    """What distances are measured between: gradients, preconditioned if asked, with features beside them if given.

    Of the rows `kept` (k,), all if None. They are made class by class, except under a curvature: its averages need all.
    """
    from synthsieve.selection.coreset import PointSource
    from synthsieve.selection.curvature import Curvature

    gradients, split = given.gradients, None
    if gradients is not None:
        if curvature is not Curvature.NONE:
            raise SelectionError(
                "expected logits or probabilities for a curvature, got gradients: precondition those first"
            )
        state = None
        if kept is None and given.features is None:
            return gradients, None, None
    prepared = None
    if curvature is not Curvature.NONE:
        everybody = np.arange(len(given.labels), dtype=np.int32) if kept is None else kept
        prepared, state = _preconditioned(given, everybody, curvature, state, seed)
        if given.features is None:
            return prepared, None, state
    if given.features is not None:
        split = (gradients if gradients is not None else _answers(given)).shape[1]

    def make(places: np.ndarray) -> np.ndarray:
        rows = places if kept is None else kept[places]
        if prepared is not None:
            points = prepared[places]
        else:
            points = _residuals(given, rows) if gradients is None else np.ascontiguousarray(gradients[rows])
        if given.features is None:
            return points
        return OuterProducts(points, given.features[rows].astype(points.dtype, copy=False)).joined()[0]

    width = (gradients if gradients is not None else _answers(given)).shape[1]
    if given.features is not None:
        width += given.features.shape[1]
    return PointSource(width, make, "float64" if gradients is None else str(gradients.dtype)), split, state


def _answers(given: _Given) -> np.ndarray:
    assert given.answers is not None
    return given.answers


def _residuals(given: _Given, rows: np.ndarray) -> np.ndarray:
    """p - y of some rows, float64."""
    residuals = residuals_of_logits if given.logits is not None else residuals_of_probabilities
    return residuals(_answers(given), given.labels[rows], rows)


def _preconditioned(
    given: _Given, rows: np.ndarray, curvature: Curvature, state: CurvatureState | None, seed: int
) -> tuple[np.ndarray, CurvatureState]:
    from synthsieve.selection.curvature import class_diagonal, precondition

    points, labels = _residuals(given, rows), given.labels[rows]
    if state is not None and state.gradients is not None and state.gradients.shape != points.shape:
        state = state.for_other_points()
    diagonal = class_diagonal(points, labels, curvature, generator=numpy_stream(seed, "selection.curvature"))
    prepared = precondition(points, labels, diagonal, state)
    return prepared.gradients, prepared.state


def _told(
    given: _Given,
    entropy: np.ndarray | None,
    predicted: np.ndarray | None,
    survivors: Survivors,
    kept: np.ndarray | None,
    chosen: Coreset,
    state: CurvatureState | None,
) -> Selection:
    """The coreset of the survivors, told in rows of the input."""
    indices, assignment = chosen.indices, chosen.assignment
    if kept is not None:
        indices, assignment = kept[indices].astype(np.int64), np.full(len(given.labels), -1, dtype=np.int64)
        assignment[kept] = kept[chosen.assignment]
    out = np.flatnonzero(~survivors.kept)
    present = {figures.label for figures in chosen.classes}
    notes = lost_classes(present, np.unique(given.labels).tolist(), given.names)
    contradicted = None
    if predicted is not None:
        contradicted = Contradicted.counted(given.labels, predicted != given.labels, survivors.kept, indices)
        notes += contradicted.notes()
    return Selection(
        indices=indices,
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
        notes=given.notes + chosen.notes + notes,
        seconds=chosen.seconds,
        compile_seconds=chosen.compile_seconds,
        curvature_state=state,
        contradicted=contradicted,
    )
