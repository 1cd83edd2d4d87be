"""What a selection will cost: memory and time, before anything is computed."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.selection import validation
from synthsieve.selection.files import Table
from synthsieve.selection.options import DistanceMetric, Method, ReferenceRole, SelectionOptions
from synthsieve.selection.texts import TfidfEncoder

# For estimates: checking, entropy and gradient of one number of a row; one class; one pick.
_SECONDS_A_NUMBER = 5e-8
_SECONDS_A_CLASS = 1.5e-3
_SECONDS_A_PICK = 1e-5
# With matrix products: a pair of points costs that many products of it, and as much again as so many in 384 dimensions
# (benchmarks/selection.py).
_PRODUCTS, _PRODUCTS_IF_GUESSED = 2.9, 1.8
_REST, _REST_DIMS = 2.0, 384
_SHARED = 0.4  # of the time of tiles, the part that all threads share
NOT_ESTIMATED = "the time of the cross-validated classifier is not included"


def estimate_cost(table: Table, options: SelectionOptions, reference: Table | None = None) -> dict[str, Any]:
    """Rough cost of a selection: memory beyond the input and the program, and time on this machine.

    `reference` holds the real rows, if there are any.
    """
    from synthsieve.selection.budget import class_targets
    from synthsieve.selection.kernels.blocks import BLOCK_NUMBERS
    from synthsieve.selection.kernels.cells import largest_cell
    from synthsieve.selection.kernels.dense import GUESSED, MIN_DIMS
    from synthsieve.selection.kernels.memory import estimate_filter, estimate_outliers, make_plan
    from synthsieve.selection.kernels.workers import available_cores

    if options.epsilon is not None:
        raise SelectionError(
            "expected a budget to estimate the cost, got epsilon: how many rows it needs is only known afterwards",
            code="epsilon",
        )
    if table.num_rows == 0:
        raise SelectionError(
            f"expected at least one row in {table.path.name}, got none: check that it is not empty", code="no-rows"
        )
    cores = options.n_jobs or available_cores()
    known = validation.any_labels(np.zeros(table.num_rows, np.int8) if table.labels is None else table.labels)
    sizes = np.bincount(known.indices)
    widths = {kind: validation.as_array(output).shape[1] for kind, output in table.outputs.items()}
    if table.embeddings is not None or table.texts is not None:
        widths["gradients"] = TfidfEncoder().dimensions if table.embeddings is None else table.embeddings.shape[1]
    columns = widths.get("gradients", max(widths.values(), default=len(sizes)))
    points = table.embeddings if table.embeddings is not None else table.outputs.get("gradients")
    itemsize = 8 if points is None else max(4, validation.as_array(points).dtype.itemsize)
    counts = np.minimum(sizes, [target.count for target in class_targets(options, sizes, sizes.astype(np.float64))])
    reserved = estimate_filter(table.num_rows) + _copied_bytes(table.embeddings, options)
    if options.outlier_fraction:
        reserved += estimate_outliers(int(sizes.max()), columns)
    trains = table.labels is not None and len(sizes) > 1 and not {"logits", "probabilities"} & set(table.outputs)
    if trains:
        reserved += 8 * table.num_rows * len(sizes)  # the probabilities of the classifier
    dense = columns >= MIN_DIMS and ("gradients" in widths or not table.outputs)
    real, others = 0, np.zeros(len(sizes), dtype=np.int64)
    if reference is not None:
        real, others = reference.num_rows, _rows_beside(reference, known, options)
        reserved += _copied_bytes(reference.embeddings, options) + 4 * real * columns + 4 * BLOCK_NUMBERS
    sizes = sizes + others
    plan = make_plan(
        sizes.tolist(),
        counts.tolist(),
        columns,
        options,
        reserved_bytes=reserved,
        bytes_a_row=itemsize * columns if others.any() else 0 if "gradients" in widths else 8 * columns,
        called=[str(name) for name in known.names],
        dense=dense,
        itemsize=min(itemsize, 8),
    )
    seconds = _SECONDS_A_NUMBER * table.num_rows * max(widths.values(), default=columns)
    speed = _seconds_a_pair(_REST_DIMS)
    if real:
        seconds += (_seconds_a_pair(columns) + _REST * speed) * table.num_rows * real
    for size, count, method in zip(sizes.tolist(), counts.tolist(), plan.methods, strict=True):
        if dense and not options.refine and method in (Method.EXACT, Method.FAST):
            pairs = size * (size if method is Method.EXACT else largest_cell(size))
            guessed = method is Method.EXACT and GUESSED[0] < size**2 <= GUESSED[1]
            products = _PRODUCTS_IF_GUESSED if guessed else _PRODUCTS
            a_pair = products * _seconds_a_pair(columns) + _REST * speed
            seconds += a_pair * pairs / cores + _SECONDS_A_PICK * count
            continue
        pairs = _pairs_by_tiles(size, method) * (columns / 10) ** (0.6 if columns < 10 else 1.8)
        shared = _SHARED / cores + 1.0 - _SHARED  # the picks after the first hardly gain from threads
        seconds += pairs * speed * (3.0 if options.refine else 1.0) * shared
        seconds += _SECONDS_A_CLASS + _SECONDS_A_PICK * count
    return {
        "rows": table.num_rows,
        "classes": len(sizes),
        "selected": int(counts.sum()),
        "method": str(options.method),
        "memory_bytes": plan.memory_bytes,
        "seconds": round(seconds, 1),
        "cores": cores,
        "notes": [*plan.notes, *([NOT_ESTIMATED] if trains else [])],
    }


def _copied_bytes(embeddings: np.ndarray | None, options: SelectionOptions) -> int:
    """The copies of embeddings that are made before the selection: of another type, or of length 1."""
    if embeddings is None:
        return 0
    copies = (embeddings.dtype not in (np.float32, np.float64)) + (options.metric is DistanceMetric.COSINE)
    return int(copies) * embeddings.size * max(4, embeddings.dtype.itemsize)


def _rows_beside(reference: Table, known: Any, options: SelectionOptions) -> np.ndarray:
    """How many rows of a reference each class covers beside its own, (num_classes,)."""
    beside = np.zeros(len(known.names), dtype=np.int64)
    idle = options.reference_role is ReferenceRole.COVER and not options.reference_weight
    if idle or options.reference_role is ReferenceRole.CHECK:
        return beside
    if len(beside) == 1:
        return beside + reference.num_rows
    if reference.labels is not None:
        counted = Counter(validation.label_array(reference.labels).astype(str).tolist())
        return np.array([counted[str(name)] for name in known.names])
    return beside


def _pairs_by_tiles(size: int, method: Method) -> float:
    """The time of a class of points of ten numbers, in pairs of a matrix product of 384 (benchmarks/selection.py)."""
    from synthsieve.selection.greedy import CELL, MIN_COARSE
    from synthsieve.selection.kernels.lanes import LANES

    if method is Method.EXACT or (method is Method.FAST and size < MIN_COARSE):
        return 0.42 * size**2
    cell = CELL * LANES if method is Method.FAST and size > 2 * CELL * LANES else size
    return 118.0 * cell**1.32 * size / cell


def _seconds_a_pair(dims: int) -> float:
    """Processor time of a pair of points in a float32 matrix product on a core of this machine, the best of a few."""
    from threadpoolctl import threadpool_limits

    rows, columns = (np.ones((count, dims), dtype=np.float32) for count in (256, 2_048))
    best = np.inf
    with threadpool_limits(1, user_api="blas"):
        for _ in range(6):
            started = time.thread_time()
            rows @ columns.T
            best = min(best, time.thread_time() - started)
    return best / (len(rows) * len(columns))
