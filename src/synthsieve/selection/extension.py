"""More rows for an earlier selection, without starting over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.io.random_streams import numpy_stream
from synthsieve.selection import validation
from synthsieve.selection.options import DistanceMetric, SelectionOptions
from synthsieve.selection.result import ClassFigures, Selection

ALL_ROWS = "all rows"  # the class of rows without labels


def extend(earlier: Selection, embeddings: Any, labels: Any, **changes: Any) -> Selection:
    """See `Selection.extend`."""
    from synthsieve.selection.coreset import Companions, coreset

    options = replace(earlier.options or SelectionOptions(), **changes)
    points, indices, names = _check(earlier, embeddings, labels, options)
    assert earlier.points is not None
    of_pick = _label_of_picks(earlier)
    found = coreset(
        points,
        indices,
        options,
        rng=numpy_stream(options.seed, "selection.extension"),
        companions=Companions(earlier.points, of_pick, np.zeros(len(earlier)), fixed=True, assignable=True),
        names=names,
        control=True,
    )
    num_new, first = len(points), earlier.num_rows
    to_earlier = found.assignment >= num_new
    old_pick = found.assignment[to_earlier] - num_new
    assignment = found.assignment + first
    assignment[to_earlier] = earlier.indices[old_pick]
    label = np.concatenate([of_pick, _label_of_picks(found)])
    order = np.argsort(label, kind="stable")
    weights = np.concatenate([earlier.weights + np.bincount(old_pick, minlength=len(earlier)), found.weights])
    difference = earlier.difference + found.difference
    return replace(
        earlier,
        indices=np.concatenate([earlier.indices, found.indices + first])[order],
        weights=weights[order],
        num_rows=first + num_new,
        gradient_bound=earlier.gradient_bound + found.gradient_bound,
        gradient_error=float(np.linalg.norm(difference)),
        difference=difference,
        classes=names,
        figures=tuple(_joined(one, earlier, found, weights[label == one]) for one in np.unique(label).tolist()),
        notes=earlier.notes + found.notes,
        gains=np.concatenate([earlier.gains, found.gains])[order],
        assignment=np.concatenate([earlier.assignment, assignment]),
        entropy=None if earlier.entropy is None else np.concatenate([earlier.entropy, np.full(num_new, np.nan)]),
        reason=np.concatenate([earlier.reason, found.reason]),
        points=np.concatenate([earlier.points, points[found.indices].astype(earlier.points.dtype)])[order],
        reference=None,
        contradicted=None,
        seconds=found.seconds,
        compile_seconds=found.compile_seconds,
        files=(),
    )


def _label_of_picks(selection: Selection) -> np.ndarray:
    """The class index of each selected row, int64 (k,)."""
    labels, counts = [one.label for one in selection.figures], [one.selected for one in selection.figures]
    return np.repeat(np.array(labels, dtype=np.int64), counts)


def _check(
    earlier: Selection, embeddings: Any, labels: Any, options: SelectionOptions
) -> tuple[np.ndarray, np.ndarray, tuple[Any, ...]]:
    """The new points, their classes as indices, and the names of all classes, earlier ones first."""
    assert earlier.points is not None
    quality = options.quality_floor is not None or options.quality_factor
    if options.filters or quality or options.refine or options.outlier_fraction or options.max_weight is not None:
        raise SelectionError(
            "expected no filter, quality, refine or max_weight to extend a selection, got one: filter the new rows "
            "first, and turn it off here, for instance require_label=False",
            code="extend",
        )
    points = validation.matrix(embeddings, "embeddings")
    if len(points) == 0 or points.shape[1] != earlier.points.shape[1]:
        raise SelectionError(
            f"expected new embeddings of shape (m, {earlier.points.shape[1]}) as before, got {points.shape}: use the "
            "same encoder",
            code="shape",
        )
    if options.metric is DistanceMetric.COSINE:
        points = validation.unit_rows(points, "embeddings")
    if labels is None:
        if len(earlier.classes) > 1:
            raise SelectionError("expected labels, as in the earlier selection, got none: pass them", code="no-labels")
        return points, np.zeros(len(points), dtype=np.int32), earlier.classes
    if earlier.classes == (ALL_ROWS,):
        raise SelectionError("expected no labels, as in the earlier selection, got some: leave them out", code="labels")
    known = validation.any_labels(labels)
    validation.same_length(len(points), labels=known.indices)
    names = (*earlier.classes, *(name for name in known.names if str(name) not in map(str, earlier.classes)))
    place = {str(name): index for index, name in enumerate(names)}
    return points, np.array([place[str(name)] for name in known.names], dtype=np.int32)[known.indices], names


def _joined(label: int, earlier: Selection, found: Selection, weights: np.ndarray) -> ClassFigures:
    """The figures of one class; its error is at most the sum of both, and so is L of random rows."""
    parts = [one for one in (*earlier.figures, *found.figures) if one.label == label]
    at_random = [one.random_bound for one in parts]
    summed = ("size", "distinct", "selected", "weight", "gradient_bound", "gradient_error", "exchanges")
    return replace(
        parts[-1],
        **{name: sum(getattr(one, name) for one in parts) for name in (*summed, "capped", "cap_bound")},
        heaviest=float(weights.max() / max(weights.sum(), 1e-300)),
        random_bound=None if None in at_random else sum(bound for bound in at_random if bound is not None),
    )
