"""`synthsieve.select`: entropy filter, then a weighted coreset with a bound. For any generator and classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.io.progress import Progress
from synthsieve.io.random_streams import numpy_stream
from synthsieve.selection import validation
from synthsieve.selection.cross_validation import (
    CROSS_VALIDATED,
    MAX_CLASSES,
    NOT_CROSS_VALIDATED,
    TOO_MANY_CLASSES,
    can_train,
    out_of_fold_probabilities,
)
from synthsieve.selection.entropy import Reason, Survivors, entropy_of, filter_rows, search_ceiling
from synthsieve.selection.extension import ALL_ROWS, extend
from synthsieve.selection.gradients import outer_product_factors, residuals_of
from synthsieve.selection.kernels.blocks import row_blocks
from synthsieve.selection.options import AUTO, Curvature, Metric, ReferenceRole, SelectionOptions
from synthsieve.selection.reference import ReferenceFigures, coverage_of, default_leak_distance, nearest_rows
from synthsieve.selection.result import Contradicted, Selection, count_reasons, lost_class_notes
from synthsieve.selection.rows import columns_of, is_matrix, is_table
from synthsieve.selection.texts import TFIDF, TFIDF_NOTE, TfidfEncoder, encoded

if TYPE_CHECKING:
    from synthsieve.selection.coreset import Companions, PointSource
    from synthsieve.selection.curvature import CurvatureState

# By default labels are checked only by a classifier that avoids at least this part of the errors of the most frequent
# label.
MIN_SKILL = 0.2
NO_SKILL = "the classifier is hardly better than the most frequent label: no row was rejected for its label"
NO_REFERENCE_LABELS = "the reference has no labels: it was only checked for copies, and counts for no class"


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
    from synthsieve.selection.kernels.memory import estimate_curvature, estimate_filter, in_megabytes

    options = replace(options or SelectionOptions(), **changes)
    device = validation.product_device(options.device, embeddings, gradients, features)
    named = {"labels": labels, "logits": logits, "probabilities": probabilities, "gradients": gradients, "text": text}
    named |= {"embeddings": embeddings, "sample_weight": sample_weight, "quality": quality}
    features, arrays, reference, reference_labels = _columns(features, named, reference, reference_labels)
    if arrays["text"] is None and _is_texts(features):
        arrays["text"], features = features, None
    notes: tuple[str, ...] = ()
    if arrays["text"] is None and encoder is not None:
        raise SelectionError("expected text with an encoder, got none: pass text=", code="encoder")
    if arrays["text"] is not None and arrays["embeddings"] is None:
        arrays["embeddings"], reference, notes = _encode(arrays["text"], encoder, reference, options.seed)
    labels, embeddings, gradients = (arrays[name] for name in ("labels", "embeddings", "gradients"))
    logits, probabilities, sample_weight = (arrays[name] for name in ("logits", "probabilities", "sample_weight"))
    if embeddings is not None:
        labels, gradients = _check_embeddings(embeddings, labels, gradients, features, options.metric)
    elif options.metric is Metric.COSINE:
        raise SelectionError("expected embeddings with metric='cosine', got none: pass embeddings=", code="metric")
    given = _check_input(labels, logits, probabilities, gradients, features, classes, sample_weight, options.seed)
    if embeddings is not None and given.output is None and len(given.names) > 1:
        given = _with_classifier(given, options)
    reserved_bytes = estimate_filter(len(given.labels)) + given.converted_bytes
    if options.curvature is not Curvature.NONE and given.output is not None:
        reserved_bytes += estimate_curvature(len(given.labels), given.output.shape[1])
    if options.memory_limit is not None and reserved_bytes >= options.memory_limit:
        raise SelectionError(
            f"expected the rows to fit into memory_limit={in_megabytes(options.memory_limit)}, but "
            f"{len(given.labels):,} rows need {in_megabytes(reserved_bytes)} before the selection: raise the limit or "
            "select in parts",
            code="memory-limit-rows",
        )
    factor, rejected = _check_quality(arrays["quality"], len(given.labels), options)
    real = _check_reference(reference, reference_labels, embeddings, given, options)
    if real is not None:
        rejected[real.distance <= real.leak_distance] = Reason.COPY
    # The class the classifier gives each row, int32 (n,).
    predicted = None if given.output is None else given.output.argmax(axis=1).astype(np.int32)
    compared, filtering = predicted, options
    if predicted is not None and embeddings is not None and options.require_label is None:
        compared, weak = _confident_labels(given, predicted)
        filtering, notes = replace(options, require_label=True), notes + weak
    entropy, survivors = _filter(given, compared, filtering, ceiling_score)
    if rejected.any():
        survivors = _also_rejected(survivors, rejected)
    kept = None if survivors.kept.all() else np.flatnonzero(survivors.kept).astype(np.int32)
    points, split, state = _points(given, kept, options, curvature_state)
    chosen = coreset(
        points,
        given.labels if kept is None else given.labels[kept],
        options,
        rng=numpy_stream(options.seed, "selection"),
        split=split,
        sample_weight=given.weight if given.weight is None or kept is None else given.weight[kept],
        factor=factor if factor is None or kept is None else factor[kept],
        companions=None if real is None else real.companions(given, survivors.kept, options),
        reserved_bytes=reserved_bytes,
        progress=progress,
        names=given.names,
        control=True,
        device=device,
    )
    indices, assignment = chosen.indices, chosen.assignment
    if kept is not None:
        indices, assignment = kept[indices].astype(np.int64), np.full(len(given.labels), -1, dtype=np.int64)
        assignment[kept] = kept[chosen.assignment]
    notes += lost_class_notes(given.labels, survivors.kept, given.names)
    contradicted = None
    if predicted is not None:
        contradicted = Contradicted.count(given.labels, predicted != given.labels, survivors.kept, indices)
        notes += contradicted.notes()
    figures = None
    if real is not None:
        notes += real.notes
        assert given.gradients is not None
        rng = numpy_stream(options.seed, "selection.reference")
        rows = np.arange(len(given.labels)) if kept is None else kept
        of_row = np.zeros_like(given.labels) if real.labels is None else given.labels
        of_real = np.zeros(len(real.points)) if real.labels is None else real.labels
        covered = coverage_of(real.points, of_real, given.gradients, of_row, rng, indices, rows)
        figures = ReferenceFigures(len(real.points), real.row, real.distance, real.leak_distance, *covered)
    return replace(
        chosen,
        indices=indices,
        num_rows=len(given.labels),
        notes=given.notes + chosen.notes + tuple(notes),
        rejected_counts=count_reasons(survivors.reason),
        entropy_ceiling=survivors.ceiling,
        assignment=assignment,
        entropy=entropy,
        reason=survivors.reason,
        curvature_state=state,
        contradicted=contradicted,
        reference=figures,
        of_embeddings=embeddings is not None,
        points=None if embeddings is None or given.gradients is None else given.gradients[indices],
        options=options,
        extender=None if embeddings is None else extend,
    )


def _columns(
    rows: Any, given: dict[str, Any], reference: Any, reference_labels: Any
) -> tuple[Any, dict[str, Any], Any, Any]:
    """Arrays given by name as columns of `rows`; of a reference in the form of a table likewise.

    Returns the rows, None if they served as a table, the arrays, the reference and its labels.
    """
    names = {key: name for key, name in given.items() if isinstance(name, str)}
    if not names:
        return rows, given, reference, reference_labels
    if rows is None:
        key, name = next(iter(names.items()))
        raise SelectionError(
            f"expected rows to take the column {name!r} from, got {key} alone: pass select(rows, {key}={name!r})",
            code="no-columns",
        )
    found = columns_of(rows, list(names.values()))
    points = names.get("embeddings", names.get("text"))
    if points is not None and is_table(reference):
        wanted = {"points": points, "labels": names.get("labels")}
        real = columns_of(reference, [name for name in wanted.values() if name is not None])
        reference = real[points]
        reference_labels = real.get(names.get("labels", ""), reference_labels)
    return None, given | {key: found[name] for key, name in names.items()}, reference, reference_labels


def _is_texts(rows: Any) -> bool:
    return isinstance(rows, list | tuple) and len(rows) > 0 and all(isinstance(row, str) for row in rows)


def _encode(text: Any, encoder: Any, reference: Any, seed: int) -> tuple[np.ndarray, Any, tuple[str, ...]]:
    """Embeddings of the texts and of a reference of texts, and notes."""
    by_words = encoder is None or encoder == TFIDF
    used = TfidfEncoder(seed=seed) if by_words else encoder
    embeddings = encoded(used, text)
    if reference is not None and not is_matrix(reference):
        reference = encoded(used, reference, "reference")
    return embeddings, reference, (TFIDF_NOTE,) if by_words else ()


class _Input(NamedTuple):
    """Checked input; None where not given. Labels are indices of `names`; `output` is logits or probabilities."""

    labels: np.ndarray
    names: tuple[Any, ...]
    output: np.ndarray | None
    kind: str
    gradients: np.ndarray | None
    features: np.ndarray | None
    weight: np.ndarray | None
    notes: tuple[str, ...]
    converted_bytes: int

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """p - y of some rows, float64."""
        assert self.output is not None
        return residuals_of(self.output, self.kind, self.labels[rows], rows)


def _check_embeddings(
    embeddings: Any, labels: Any, gradients: Any, features: Any, metric: Metric
) -> tuple[Any, np.ndarray]:
    """Labels, of one class if none are given, and the points that distances are measured between."""
    if gradients is not None or features is not None:
        other = "features" if gradients is None else "gradients"
        raise SelectionError(f"expected embeddings or {other}, got both: leave one out", code="both-points")
    points = validation.matrix(embeddings, "embeddings")
    if metric is Metric.COSINE:
        points = validation.unit_rows(points, "embeddings")
    return np.full(len(points), ALL_ROWS) if labels is None else labels, points


def _check_quality(quality: Any, num_rows: int, options: SelectionOptions) -> tuple[np.ndarray | None, np.ndarray]:
    """The factor of each row's gain, if any, and a `Reason` for each row, int8 (n,)."""
    reason = np.zeros(num_rows, dtype=np.int8)
    used = options.quality_floor is not None or options.quality_factor
    if quality is None and not used:
        return None, reason
    if quality is None or not used:
        got = "no quality" if quality is None else "quality alone"
        raise SelectionError(
            f"expected quality with quality_floor or quality_factor, got {got}: pass both, or neither", code="quality"
        )
    numbers = validation.row_numbers(quality, num_rows, "quality", positive=options.quality_factor)
    if options.quality_floor is not None:
        reason[numbers < options.quality_floor] = Reason.LOW_QUALITY
    return numbers if options.quality_factor else None, reason


class _Reference(NamedTuple):
    """Real rows (m, d), their classes (m,) if known, and of each row the nearest of them and its distance, (n,)."""

    points: np.ndarray
    labels: np.ndarray | None
    row: np.ndarray
    distance: np.ndarray
    leak_distance: float
    role: ReferenceRole
    notes: tuple[str, ...]

    def companions(self, given: _Input, kept: np.ndarray, options: SelectionOptions) -> Companions | None:
        """The real rows as points beside the survivors; None if they count for nothing."""
        idle = self.role is ReferenceRole.COVER and not options.reference_weight
        if self.labels is None or self.role is ReferenceRole.CHECK or idle:
            return None
        own = np.bincount(given.labels[kept], None if given.weight is None else given.weight[kept], len(given.names))
        share = options.reference_weight * own / np.maximum(np.bincount(self.labels, minlength=len(own)), 1)
        from synthsieve.selection.coreset import Companions

        fills = self.role is ReferenceRole.FILL
        weight = np.zeros(len(self.points)) if fills else share[self.labels]
        return Companions(self.points, self.labels, weight, fixed=fills)


def _check_reference(
    reference: Any, labels: Any, embeddings: Any, given: _Input, options: SelectionOptions
) -> _Reference | None:
    if reference is None:
        return None
    if embeddings is None or given.gradients is None:
        raise SelectionError(
            "expected embeddings with a reference, got none: pass embeddings= from the same encoder", code="reference"
        )
    if options.refine or options.epsilon is not None:
        other = "refine" if options.refine else "epsilon"
        raise SelectionError(f"expected a reference or {other}, got both: leave one out", code="reference-options")
    points = validation.matrix(reference, "reference")
    if len(points) == 0 or points.shape[1] != given.gradients.shape[1]:
        raise SelectionError(
            f"expected a reference of shape (m, {given.gradients.shape[1]}), like the embeddings, got {points.shape}: "
            "use the same encoder for both",
            code="reference",
        )
    if options.metric is Metric.COSINE:
        points = validation.unit_rows(points, "reference")
    row, distance = nearest_rows(given.gradients, points)
    least = default_leak_distance(points) if options.leak_distance is None else options.leak_distance
    role, notes = options.reference_role, tuple[str, ...]()
    indices: np.ndarray | None = np.zeros(len(points), dtype=np.int32)
    if labels is not None and len(given.names) > 1:
        values = validation.label_array(labels)
        validation.same_length(len(points), reference_labels=values)
        names = np.array([str(name) for name in given.names])
        indices = validation.index_among(names, values.astype(str))
        unknown = names[indices] != values.astype(str)
        if unknown.any():
            raise SelectionError(
                f"expected reference_labels among the labels, got {values[unknown][0].item()!r}: drop those rows",
                code="unknown-label",
            )
    elif len(given.names) > 1:
        indices = None
        notes = () if role is ReferenceRole.CHECK else (NO_REFERENCE_LABELS,)
    return _Reference(points, indices, row, distance, float(least), role, notes)


def _confident_labels(given: _Input, predicted: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
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


def _label_probability(given: _Input, rows: np.ndarray) -> np.ndarray:
    """The probability of each row's own label."""
    labels = given.labels[rows]
    return 1.0 + given.residuals(rows)[np.arange(len(rows)), labels]


def _also_rejected(survivors: Survivors, rejected: np.ndarray) -> Survivors:
    """Rows rejected by quality or as copies, too; that comes before what the filter says."""
    reason = np.where(rejected > 0, rejected, survivors.reason).astype(np.int8)
    if not (reason == Reason.KEPT).any():
        raise SelectionError(
            f"expected rows that are no copies and of enough quality, but none of {len(reason):,} is left: lower "
            "leak_distance or quality_floor",
            code="no-survivors",
        )
    return Survivors(reason, survivors.ceiling)


def _with_classifier(given: _Input, options: SelectionOptions) -> _Input:
    """Embeddings with labels: with the probabilities of a cross-validated classifier, if one can be trained."""
    if not can_train(given.labels) or len(given.names) > MAX_CLASSES:
        reason = TOO_MANY_CLASSES if len(given.names) > MAX_CLASSES else NOT_CROSS_VALIDATED
        return given._replace(notes=(*given.notes, reason))
    assert given.gradients is not None
    output = out_of_fold_probabilities(given.gradients, given.labels, seed=options.seed)
    converted = given.converted_bytes + output.nbytes
    return given._replace(
        output=output, kind="probabilities", notes=(*given.notes, CROSS_VALIDATED), converted_bytes=converted
    )


def _check_input(
    labels: Any,
    logits: Any,
    probabilities: Any,
    gradients: Any,
    features: Any,
    classes: Sequence[Any] | None,
    sample_weight: Any,
    seed: int,
) -> _Input:
    if logits is not None and probabilities is not None:
        raise SelectionError("expected logits or probabilities, got both: leave one out", code="both-outputs")
    if all(one is None for one in (logits, probabilities, gradients, features)):
        raise SelectionError(
            "expected logits, probabilities, gradients, embeddings or features, got none: pass one", code="no-input"
        )
    if labels is None:
        raise SelectionError(
            "expected labels, got none: pass labels=, or select(embeddings=X), which needs none", code="no-labels"
        )
    notes: tuple[str, ...] = ()
    checked = {
        "logits": None if logits is None else validation.matrix(logits, "logits"),
        "probabilities": None if probabilities is None else validation.probabilities(probabilities),
        "gradients": None if gradients is None else validation.matrix(gradients, "gradients"),
        "features": None if features is None else validation.matrix(features, "features"),
    }
    pairs = zip((logits, probabilities, gradients, features), checked.values(), strict=True)
    converted = sum(array.nbytes for value, array in pairs if array is not None and _is_copy(array, value))
    if logits is None and probabilities is None and gradients is None:
        inputs = checked["features"]
        assert inputs is not None
        known = validation.any_labels(labels)
        validation.same_length(len(inputs), labels=known.indices)
        computed = out_of_fold_probabilities(inputs, known.indices, seed=seed)
        checked |= {"probabilities": computed, "features": None}
        classes, notes, converted = known.names, (CROSS_VALIDATED,), computed.nbytes
    kind = "logits" if logits is not None else "probabilities"
    output = checked[kind]
    first = output if output is not None else checked["gradients"]
    assert first is not None
    if len(first) == 0:
        raise SelectionError("expected at least one row, got none: check that the input is not empty", code="no-rows")
    if output is None:
        known = validation.any_labels(labels)
    else:
        columns = validation.column_names(logits if logits is not None else probabilities)
        known = validation.column_labels(labels, output.shape[1], classes, columns=columns)
    validation.same_length(
        len(first), labels=known.indices, gradients=checked["gradients"], features=checked["features"]
    )
    weight = None if sample_weight is None else validation.sample_weights(sample_weight, len(first))
    return _Input(
        known.indices, known.names, output, kind, checked["gradients"], checked["features"], weight,
        notes + known.notes, converted,
    )  # fmt: skip


def _is_copy(array: np.ndarray, value: Any) -> bool:
    """Whether an array is new, rather than the input itself or a view of it."""
    return array.flags.owndata and array is not (value.values if isinstance(value, validation.NamedMatrix) else value)


def _filter(
    given: _Input,
    predicted: np.ndarray | None,
    options: SelectionOptions,
    ceiling_score: Callable[[float], float] | None,
) -> tuple[np.ndarray | None, Survivors]:
    if given.output is None or predicted is None:
        check_can_filter(options, has_output=False)
        return None, Survivors(np.zeros(len(given.labels), dtype=np.int8), np.inf)
    search = options.entropy_ceiling == AUTO
    entropy = entropy_of(given.output, given.kind, entropy_ceiling=None if search else options.entropy_ceiling)  # type: ignore[arg-type]
    if search:
        if ceiling_score is None:
            raise SelectionError(
                "expected ceiling_score with entropy_ceiling='auto', got none: pass ceiling -> score",
                code="ceiling-score",
            )
        options = replace(options, entropy_ceiling=search_ceiling(entropy, ceiling_score).ceiling)
    return entropy, filter_rows(entropy, given.labels, predicted, options)


def check_can_filter(options: SelectionOptions, *, has_output: bool) -> None:
    """Raise if rows are to be filtered without logits or probabilities."""
    if options.filters and not has_output:
        raise SelectionError(
            "expected logits or probabilities to filter by, got gradients only: pass those too", code="no-output"
        )


def _points(
    given: _Input, kept: np.ndarray | None, options: SelectionOptions, state: CurvatureState | None
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
    given: _Input, rows: np.ndarray, options: SelectionOptions, state: CurvatureState | None
) -> tuple[np.ndarray, CurvatureState]:
    from synthsieve.selection.curvature import class_diagonal, precondition

    points, labels = given.residuals(rows), given.labels[rows]
    if state is not None and state.gradients is not None and state.gradients.shape != points.shape:
        state = state.for_other_points()
    rng = numpy_stream(options.seed, "selection.curvature")
    diagonal = class_diagonal(points, labels, options.curvature, rng=rng)
    return precondition(points, labels, diagonal, state)
