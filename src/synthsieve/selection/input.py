"""The arrays that `synthsieve.select` takes, checked and in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection import validation
from synthsieve.selection.cross_validation import (
    CROSS_VALIDATED,
    MAX_CLASSES,
    NOT_CROSS_VALIDATED,
    TOO_MANY_CLASSES,
    can_train,
    out_of_fold_probabilities,
)
from synthsieve.selection.entropy import Reason
from synthsieve.selection.extension import ALL_ROWS
from synthsieve.selection.gradients import residuals_of
from synthsieve.selection.options import Curvature, DistanceMetric, ReferenceRole, SelectionOptions
from synthsieve.selection.reference import default_leak_distance, nearest_rows
from synthsieve.selection.rows import columns_of, is_matrix, is_table
from synthsieve.selection.texts import TFIDF, TFIDF_NOTE, TfidfEncoder, encoded

if TYPE_CHECKING:
    from synthsieve.selection.coreset import Companions

NO_REFERENCE_LABELS = "the reference has no labels: it was only checked for copies, and counts for no class"


def read_input(
    features: Any,
    arrays: Mapping[str, Any],
    *,
    classes: Sequence[Any] | None,
    reference: Any,
    reference_labels: Any,
    encoder: Any,
    options: SelectionOptions,
) -> Input:
    """The arguments of `select`, checked; `arrays` are those that may be names of columns of `features`."""
    features, given, reference, reference_labels = _columns(features, dict(arrays), reference, reference_labels)
    if given["text"] is None and _is_texts(features):
        given["text"], features = features, None
    notes: tuple[str, ...] = ()
    if given["text"] is None and encoder is not None:
        raise SelectionError("expected text with an encoder, got none: pass text=", code="encoder")
    if given["text"] is not None and given["embeddings"] is None:
        given["embeddings"], reference, notes = _encode(given["text"], encoder, reference, options.seed)
    of_embeddings = given["embeddings"] is not None
    if of_embeddings:
        given["labels"], given["gradients"] = _check_embeddings(given, features, options.metric)
    elif options.metric is DistanceMetric.COSINE:
        raise SelectionError("expected embeddings with metric='cosine', got none: pass embeddings=", code="metric")
    checked = _check_arrays(given, features, classes, options.seed)
    if of_embeddings and checked.output is None and len(checked.names) > 1:
        checked = _with_classifier(checked, options)
    factor, rejected = _check_quality(given["quality"], len(checked.labels), options)
    checked = checked._replace(
        notes=checked.notes + notes,
        of_embeddings=of_embeddings,
        reserved_bytes=_reserved_bytes(checked, options),
        factor=factor,
        rejected=rejected,
    )
    real = _check_reference(reference, reference_labels, checked, options)
    if real is not None:
        rejected[real.distance <= real.leak_distance] = Reason.COPY
    return checked._replace(reference=real)


def _reserved_bytes(given: Input, options: SelectionOptions) -> int:
    """The memory that is needed before the selection; an error if that is over the limit."""
    from synthsieve.selection.kernels.memory import (
        estimate_curvature,
        estimate_filter,
        estimate_outliers,
        in_megabytes,
    )

    reserved = estimate_filter(len(given.labels)) + given.converted_bytes
    if options.curvature is not Curvature.NONE and given.output is not None:
        reserved += estimate_curvature(len(given.labels), given.output.shape[1])
    if options.outlier_fraction:
        matrices = (given.output if given.gradients is None else given.gradients, given.features)
        width = sum(matrix.shape[1] for matrix in matrices if matrix is not None)
        reserved += estimate_outliers(int(np.bincount(given.labels).max()), width)
    if options.memory_limit is not None and reserved >= options.memory_limit:
        raise SelectionError(
            f"expected the rows to fit into memory_limit={in_megabytes(options.memory_limit)}, but "
            f"{len(given.labels):,} rows need {in_megabytes(reserved)} before the selection: raise the limit or "
            "select in parts",
            code="memory-limit-rows",
        )
    return reserved


class Input(NamedTuple):
    """Checked input; None where not given. Labels are indices of `names`; `output` is logits or probabilities.

    `gradients` are the points that distances are measured between, of embeddings as well (`of_embeddings`).
    `converted_bytes` and `reserved_bytes` are the memory of copies of the input, and all that is needed before a
    selection. `factor` (n,) multiplies the gain of each row; `rejected` (n,) is a `Reason`, 0 for most rows.
    """

    labels: np.ndarray
    names: tuple[Any, ...]
    output: np.ndarray | None
    kind: str
    gradients: np.ndarray | None
    features: np.ndarray | None
    weight: np.ndarray | None
    notes: tuple[str, ...]
    converted_bytes: int
    of_embeddings: bool = False
    reserved_bytes: int = 0
    factor: np.ndarray | None = None
    rejected: np.ndarray | None = None
    reference: Reference | None = None

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """p - y of some rows, float64."""
        assert self.output is not None
        return residuals_of(self.output, self.kind, self.labels[rows], rows)


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


def _check_embeddings(given: Mapping[str, Any], features: Any, metric: DistanceMetric) -> tuple[Any, np.ndarray]:
    """Labels, of one class if none are given, and the points that distances are measured between."""
    if given["gradients"] is not None or features is not None:
        other = "features" if given["gradients"] is None else "gradients"
        raise SelectionError(f"expected embeddings or {other}, got both: leave one out", code="both-points")
    points = validation.matrix(given["embeddings"], "embeddings")
    if metric is DistanceMetric.COSINE:
        points = validation.unit_rows(points, "embeddings")
    return np.full(len(points), ALL_ROWS) if given["labels"] is None else given["labels"], points


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


class Reference(NamedTuple):
    """Real rows (m, d), their classes (m,) if known, and of each row the nearest of them and its distance, (n,)."""

    points: np.ndarray
    labels: np.ndarray | None
    row: np.ndarray
    distance: np.ndarray
    leak_distance: float
    role: ReferenceRole
    notes: tuple[str, ...]

    def companions(self, given: Input, kept: np.ndarray, options: SelectionOptions) -> Companions | None:
        """The real rows as points next to the survivors; None if they count for nothing."""
        idle = self.role is ReferenceRole.COVER and not options.reference_weight
        if self.labels is None or self.role is ReferenceRole.CHECK or idle:
            return None
        own = np.bincount(given.labels[kept], None if given.weight is None else given.weight[kept], len(given.names))
        share = options.reference_weight * own / np.maximum(np.bincount(self.labels, minlength=len(own)), 1)
        from synthsieve.selection.coreset import Companions

        fills = self.role is ReferenceRole.FILL
        weight = np.zeros(len(self.points)) if fills else share[self.labels]
        return Companions(self.points, self.labels, weight, fixed=fills)


def _check_reference(reference: Any, labels: Any, given: Input, options: SelectionOptions) -> Reference | None:
    if reference is None:
        return None
    if not given.of_embeddings or given.gradients is None:
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
    if options.metric is DistanceMetric.COSINE:
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
    return Reference(points, indices, row, distance, float(least), role, notes)


def _with_classifier(given: Input, options: SelectionOptions) -> Input:
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


def _check_arrays(given: Mapping[str, Any], features: Any, classes: Sequence[Any] | None, seed: int) -> Input:
    labels, logits, probabilities = given["labels"], given["logits"], given["probabilities"]
    gradients, sample_weight = given["gradients"], given["sample_weight"]
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
    return Input(
        known.indices, known.names, output, kind, checked["gradients"], checked["features"], weight,
        notes + known.notes, converted,
    )  # fmt: skip


def _is_copy(array: np.ndarray, value: Any) -> bool:
    """Whether an array is new, rather than the input itself or a view of it."""
    return array.flags.owndata and array is not (value.values if isinstance(value, validation.NamedMatrix) else value)
