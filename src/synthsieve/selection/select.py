"""`synthsieve.select`: entropy filter, then a weighted coreset with a bound. For any generator and classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.io.progress import Progress
from synthsieve.io.random_streams import numpy_stream
from synthsieve.selection.entropy import Reason, Survivors, entropy_of, filter_rows, search_ceiling
from synthsieve.selection.extension import extend
from synthsieve.selection.gradients import outer_product_factors
from synthsieve.selection.input import Input, Reference, read_input
from synthsieve.selection.kernels.blocks import row_blocks
from synthsieve.selection.options import AUTO, Curvature, SelectionOptions
from synthsieve.selection.outliers import outliers
from synthsieve.selection.reference import ReferenceFigures, coverage_of
from synthsieve.selection.result import Contradicted, Selection, count_reasons, lost_class_notes
from synthsieve.selection.validation import product_device

if TYPE_CHECKING:
    from synthsieve.selection.coreset import PointSource
    from synthsieve.selection.curvature import CurvatureState

# By default labels are checked only by a classifier that avoids at least this part of the errors of the most frequent
# label.
MIN_SKILL = 0.2
NO_SKILL = "the classifier is hardly better than the most frequent label: no row was rejected for its label"


def select(
    features: Any = None,
    labels: Any = None,
    *,
    logits: Any = None,
    probabilities: Any = None,
    gradients: Any = None,
    embeddings: Any = None,
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
    reference: Any = None,
    reference_labels: Any = None,
    quality: Any = None,
    text: Any = None,
    encoder: Any = None,
    ceiling_score: Callable[[float], float] | None = None,
    curvature_state: CurvatureState | None = None,
    progress: Progress | None = None,
    options: SelectionOptions | None = None,
    **changes: Any,
) -> Selection:
    """Filter rows by entropy, then choose a weighted coreset in each class.

    Give `logits` or `probabilities` (for entropies and gradients), `gradients` or `embeddings` (to choose by), or both;
    or features alone, as in `select(X, y)`. Where labels come without logits or probabilities, a cross-validated
    logistic regression gives the probabilities, and a note says so. `select(embeddings=E)` needs no labels: all rows
    are one class. Arrays may be numpy, scipy.sparse, torch, Arrow, or pandas and polars frames.

    Rows of a table: `select(rows, embeddings="vector", labels="label")`. Arrays given by name are columns of the first
    argument: a pandas or polars frame, an Arrow table, a `datasets.Dataset` or `IterableDataset`, a dict of columns or
    a list of dicts. `Selection.take(rows)` returns the selected rows in the same form.

    Args:
        features: (n, f), alone: the input of the classifier to train. With logits or probabilities: the input of the
            last layer, and distances are between the outer products (p - y) h'.
        labels: (n,), of any type. Whole numbers are columns of the logits; see `classes` for others.
        logits, probabilities: (n, num_classes). Named columns are matched to the labels by name.
        gradients: (n, d), the points that distances are measured between; p - y by default.
        embeddings: (n, d), instead of gradients: the selection covers them in each class. See the option `metric`.
        classes: the label of each column. Without it and without names, columns are taken to be in the order of the
            labels (of a Categorical, else sorted, as numbers where all are), and a note says so.
        sample_weight: (n,), the weight of each row.
        reference: (m, d), embeddings of real rows. Copies of them are rejected (see the option `leak_distance`), and
            the selection covers them, too, or fills their gaps (see `reference_role`).
        reference_labels: (m,), needed with labels for anything but the check for copies.
        quality: (n,), a number for each row, higher is better; see the options `quality_floor` and `quality_factor`.
        text: (n,), instead of embeddings: they are those of the `encoder`, any object with `encode` (of
            sentence-transformers or model2vec); without one, or with "tfidf", TF-IDF of the words. The reference may be
            text then, too.
        ceiling_score: ceiling -> validation score, for `entropy_ceiling="auto"`.
        curvature_state: averages of earlier selections, from `Selection.curvature_state`.
        progress: is updated during the selection.
        options, changes: a `SelectionOptions`, or its fields by name, such as `budget=0.1, keep_fraction=0.5`.
    """
    from synthsieve.selection.coreset import coreset

    options = replace(options or SelectionOptions(), **changes)
    device = product_device(options.device, embeddings, gradients, features)
    arrays = {"labels": labels, "logits": logits, "probabilities": probabilities, "gradients": gradients, "text": text}
    arrays |= {"embeddings": embeddings, "sample_weight": sample_weight, "quality": quality}
    given = read_input(
        features, arrays, classes=classes, reference=reference, reference_labels=reference_labels, encoder=encoder,
        options=options,
    )  # fmt: skip
    filtered = _without_outliers(given, _filter(given, options, ceiling_score), options, curvature_state)
    kept = None if filtered.survivors.kept.all() else np.flatnonzero(filtered.survivors.kept).astype(np.int32)
    points, split, state = _points(given, kept, options, curvature_state)
    every, real = slice(None) if kept is None else kept, given.reference
    chosen = coreset(
        points,
        given.labels[every],
        options,
        rng=numpy_stream(options.seed, "selection"),
        split=split,
        sample_weight=None if given.weight is None else given.weight[every],
        factor=None if given.factor is None else given.factor[every],
        companions=None if real is None else real.companions(given, filtered.survivors.kept, options),
        reserved_bytes=given.reserved_bytes,
        progress=progress,
        names=given.names,
        control=True,
        device=device,
    )
    return _result(given, filtered, kept, chosen, state, options)


class _Filtered(NamedTuple):
    """What the filter found, with the classifier's class and entropy of each row, (n,); None without a classifier."""

    survivors: Survivors
    predicted: np.ndarray | None
    entropy: np.ndarray | None
    notes: tuple[str, ...]


def _result(
    given: Input,
    filtered: _Filtered,
    kept: np.ndarray | None,
    chosen: Selection,
    state: CurvatureState | None,
    options: SelectionOptions,
) -> Selection:
    """What was `chosen` among the rows `kept` (k,), all if None, as a selection among all rows."""
    survivors = filtered.survivors
    indices, assignment = chosen.indices, chosen.assignment
    if kept is not None:
        indices, assignment = kept[indices].astype(np.int64), np.full(len(given.labels), -1, dtype=np.int64)
        assignment[kept] = kept[chosen.assignment]
    notes = filtered.notes + lost_class_notes(given.labels, survivors.kept, given.names)
    contradicted = None
    if filtered.predicted is not None:
        wrong = filtered.predicted != given.labels
        contradicted = Contradicted.count(given.labels, wrong, survivors.kept, indices)
        notes += contradicted.notes()
    figures = None
    if given.reference is not None:
        notes += given.reference.notes
        figures = _reference_figures(given, given.reference, indices, kept, options.seed)
    return replace(
        chosen,
        indices=indices,
        num_rows=len(given.labels),
        notes=given.notes + chosen.notes + notes,
        rejected_counts=count_reasons(survivors.reason),
        entropy_ceiling=survivors.ceiling,
        assignment=assignment,
        entropy=filtered.entropy,
        reason=survivors.reason,
        curvature_state=state,
        contradicted=contradicted,
        reference=figures,
        of_embeddings=given.of_embeddings,
        points=given.gradients[indices] if given.of_embeddings and given.gradients is not None else None,
        options=options,
        extender=extend if given.of_embeddings else None,
    )


def _reference_figures(
    given: Input, real: Reference, indices: np.ndarray, kept: np.ndarray | None, seed: int
) -> ReferenceFigures:
    assert given.gradients is not None
    rng = numpy_stream(seed, "selection.reference")
    rows = np.arange(len(given.labels)) if kept is None else kept
    of_row = np.zeros_like(given.labels) if real.labels is None else given.labels
    of_real = np.zeros(len(real.points)) if real.labels is None else real.labels
    covered = coverage_of(real.points, of_real, given.gradients, of_row, rng, indices, rows)
    return ReferenceFigures(len(real.points), real.row, real.distance, real.leak_distance, *covered)


def _confident_labels(given: Input, predicted: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """The class that the classifier is confident of, the label where it is of none; and a note on classes left out.

    It is confident of a class if it gives it at least the mean probability that it gives rows of that class (confident
    learning, Northcutt et al. 2021). Classes most of whose rows would get another label keep their labels, and so do
    all rows if the classifier is hardly better than the most frequent label.
    """
    sizes = np.bincount(given.labels, minlength=len(given.names))
    wrong, rest = float((predicted != given.labels).mean()), 1.0 - float(sizes.max() / sizes.sum())
    if wrong > (1.0 - MIN_SKILL) * rest:
        return given.labels, (NO_SKILL,)
    total = np.zeros(len(sizes))
    for part in row_blocks(len(given.labels), len(sizes)):
        rows = np.arange(part.start, part.stop)
        total += np.bincount(given.labels[part], _label_probability(given, rows), len(sizes))
    threshold = np.where(sizes > 0, total / np.maximum(sizes, 1), np.inf)
    confident = given.labels.copy()
    for part in row_blocks(len(given.labels), len(sizes)):
        rows = np.arange(part.start, part.stop)
        p = given.residuals(rows)
        p[np.arange(len(rows)), given.labels[part]] += 1.0
        p[p < threshold] = -1.0
        found = p.max(axis=1) > 0.0
        confident[part][found] = p[found].argmax(axis=1)
    weak = np.bincount(given.labels[confident == given.labels], minlength=len(sizes)) * 2 < sizes
    if not weak.any():
        return confident, ()
    names = ", ".join(str(name) for name, is_weak in zip(given.names, weak, strict=True) if is_weak)
    more = names if len(names) < 80 else f"{names[:80]}... ({weak.sum()} in all)"
    note = f"the classifier gives another label to most rows of {more}: none of these was rejected for its label"
    return np.where(weak[given.labels], given.labels, confident), (note,)


def _label_probability(given: Input, rows: np.ndarray) -> np.ndarray:
    """The probability of each row's own label."""
    labels = given.labels[rows]
    return 1.0 + given.residuals(rows)[np.arange(len(rows)), labels]


def _also_rejected(survivors: Survivors, rejected: np.ndarray | None) -> Survivors:
    """Rows rejected by quality or as copies, too; that comes before what the filter says."""
    if rejected is None or not rejected.any():
        return survivors
    reason = np.where(rejected > 0, rejected, survivors.reason).astype(np.int8)
    if not (reason == Reason.KEPT).any():
        raise SelectionError(
            f"expected rows that are no copies and of enough quality, but none of {len(reason):,} is left: lower "
            "leak_distance or quality_floor",
            code="no-survivors",
        )
    return Survivors(reason, survivors.ceiling)


def _filter(given: Input, options: SelectionOptions, ceiling_score: Callable[[float], float] | None) -> _Filtered:
    if given.output is None:
        check_can_filter(options, has_output=False)
        survivors = Survivors(np.zeros(len(given.labels), dtype=np.int8), np.inf)
        return _Filtered(_also_rejected(survivors, given.rejected), None, None, ())
    notes: tuple[str, ...] = ()
    predicted = compared = given.output.argmax(axis=1).astype(np.int32)
    if given.of_embeddings and options.require_label is None:
        compared, notes = _confident_labels(given, predicted)
        options = replace(options, require_label=True)
    search = options.entropy_ceiling == AUTO
    entropy = entropy_of(given.output, given.kind, entropy_ceiling=None if search else options.entropy_ceiling)  # type: ignore[arg-type]
    if search:
        if ceiling_score is None:
            raise SelectionError(
                "expected ceiling_score with entropy_ceiling='auto', got none: pass ceiling -> score",
                code="ceiling-score",
            )
        options = replace(options, entropy_ceiling=search_ceiling(entropy, ceiling_score).ceiling)
    survivors = filter_rows(entropy, given.labels, compared, options)
    return _Filtered(_also_rejected(survivors, given.rejected), predicted, entropy, notes)


def _without_outliers(
    given: Input, filtered: _Filtered, options: SelectionOptions, state: CurvatureState | None
) -> _Filtered:
    """Also rejected: outliers among the survivors, by the distances that the selection uses."""
    if not options.outlier_fraction:
        return filtered
    survivors = filtered.survivors
    kept = np.flatnonzero(survivors.kept).astype(np.int32)
    points, split, _ = _points(given, kept, options, state)
    make = points.__getitem__ if isinstance(points, np.ndarray) else points.make
    rng = numpy_stream(options.seed, "selection.outliers")
    reason = survivors.reason.copy()
    reason[kept[outliers(make, given.labels[kept], options.outlier_fraction, split=split, rng=rng)]] = Reason.OUTLIER
    return filtered._replace(survivors=Survivors(reason, survivors.ceiling))


def check_can_filter(options: SelectionOptions, *, has_output: bool) -> None:
    """Raise if rows are to be filtered without logits or probabilities."""
    if options.filters and not has_output:
        raise SelectionError(
            "expected logits or probabilities to filter by, got gradients only: pass those too", code="no-output"
        )


def _points(
    given: Input, kept: np.ndarray | None, options: SelectionOptions, state: CurvatureState | None
) -> tuple[np.ndarray | PointSource, int | None, CurvatureState | None]:
    """The points that distances are measured between: gradients, optionally preconditioned, with features if given.

    Of the rows `kept` (k,), all if None. Computed class by class, except with a curvature: its averages need all rows.
    """
    from synthsieve.selection.coreset import PointSource

    gradients, features = given.gradients, given.features
    prepared, curved = None, options.curvature is not Curvature.NONE
    if gradients is not None:
        if curved:
            raise SelectionError(
                "expected logits or probabilities for a curvature, got gradients: precondition those first",
                code="curvature",
            )
        state = None
        if kept is None and features is None:
            return gradients, None, None
    if curved:
        everything = np.arange(len(given.labels), dtype=np.int32) if kept is None else kept
        prepared, state = _preconditioned(given, everything, options, state)
        if features is None:
            return prepared, None, state

    def make(places: np.ndarray) -> np.ndarray:
        rows = places if kept is None else kept[places]
        if prepared is not None:
            points = prepared[places]
        else:
            points = given.residuals(rows) if gradients is None else np.ascontiguousarray(gradients[rows])
        if features is None:
            return points
        return outer_product_factors(points, features[rows].astype(points.dtype, copy=False))

    first = gradients if gradients is not None else given.output
    assert first is not None
    num_dims, dtype = first.shape[1], "float64" if gradients is None else str(gradients.dtype)
    if features is None:
        return PointSource(num_dims, make, dtype), None, state
    return PointSource(num_dims + features.shape[1], make, dtype), num_dims, state


def _preconditioned(
    given: Input, rows: np.ndarray, options: SelectionOptions, state: CurvatureState | None
) -> tuple[np.ndarray, CurvatureState]:
    from synthsieve.selection.curvature import class_diagonal, precondition

    points, labels = given.residuals(rows), given.labels[rows]
    if state is not None and state.gradients is not None and state.gradients.shape != points.shape:
        state = state.for_other_points()
    rng = numpy_stream(options.seed, "selection.curvature")
    diagonal = class_diagonal(points, labels, options.curvature, rng=rng)
    return precondition(points, labels, diagonal, state)
