"""The memory a selection needs, in bytes, estimated before anything is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synthsieve.errors import SelectionError
from synthsieve.selection.greedy import MIN_COARSE, THINNING
from synthsieve.selection.kernels.blocks import BLOCK_NUMBERS
from synthsieve.selection.kernels.cells import largest_cell
from synthsieve.selection.kernels.dense import MAX_PAIRS, PRODUCT
from synthsieve.selection.kernels.facility_location import GATHERED_NUMBERS
from synthsieve.selection.kernels.workers import available_cores
from synthsieve.selection.options import Method, SelectionOptions, one_of
from synthsieve.selection.outliers import BLOCK, MAX_CANDIDATES

# Code, threads and buffers that do not grow with the points: blocks of rows (see `blocks`) and their results.
_FIXED = 24_000_000
# Label, entropy, reason, predicted class, order, rows and assignment of each row, and its part of the result.
_BYTES_A_ROW = 80
# Pairs of near points that are stored on average, of those that could be: 0.6 to 0.75 on clustered embeddings.
_STORED_PAIRS = 0.7


def estimate_memory(
    n: int,
    d: int,
    k: int,
    *,
    method: Method | str = Method.FAST,
    refine: bool = False,
    dense: bool = False,
    at_most: bool = False,
    itemsize: int = 8,
) -> int:
    """Bytes a selection of `k` among `n` points of `d` numbers needs beyond the points themselves, in one class.

    This is what to expect, or with `at_most` what it cannot exceed.

    A point needs its coordinates, numbers of `itemsize` bytes, its share of a box, and its weight, reach, nearest pick
    and gain. With matrix products (`dense`), those of a cell or of all points in float32, products, and pairs of near
    points.
    """
    method = one_of(Method, method, "method")
    if dense and not refine and method in (Method.EXACT, Method.FAST):
        at_once = largest_cell(n) if method is Method.FAST else n
        pairs = int(8 * min(MAX_PAIRS, at_once**2 // 2) * (1.0 if at_most else _STORED_PAIRS))
        return _FIXED + pairs + at_once * (4 * d + 600) + 8 * min(PRODUCT, 256 * at_once) + n * 60 + k * 24
    fixed = _FIXED if at_most else 16 * min(BLOCK_NUMBERS, n * d)
    points = n * (itemsize * d + 2 * d + 12)
    state = n * (8 + 4 + 4 + 8)
    gains = 8 * n + 9 * min(n * d // 2, GATHERED_NUMBERS) if method.is_greedy else 0
    is_coarse = method in (Method.FAST, Method.AUTO) and n >= MIN_COARSE
    coarse = n // THINNING * ((2 * itemsize + 2) * d + 56) * THINNING // (THINNING - 1) if is_coarse else 0
    second = n * (8 + 8 + 8 + 1) + k * (9 * d + 24) if refine else 0
    return fixed + points + state + max(gains + second, coarse, n * d - state) + n * 24 + k * 24


@dataclass(frozen=True)
class MemoryPlan:
    """How the classes are processed.

    Attributes:
        methods: of each class.
        classes_at_once: how many classes at a time; threads: how many work on one.
        memory_bytes: estimate, beyond points given as an array.
        notes: a sentence for every concession to the memory limit.
    """

    methods: tuple[Method, ...]
    classes_at_once: int
    threads: int
    memory_bytes: int
    notes: tuple[str, ...]


def make_plan(
    sizes: Sequence[int],
    counts: Sequence[int],
    dims: int,
    options: SelectionOptions,
    *,
    reserved_bytes: int = 0,
    bytes_a_row: int = 0,
    called: Sequence[str] | None = None,
    dense: bool = False,
    itemsize: int = 8,
) -> MemoryPlan:
    """Methods and threads that stay within the memory limit, and a note for every concession.

    Args:
        sizes, counts: rows and picks of each class; dims: numbers of a point.
        options: method, refine, memory_limit and n_jobs.
        reserved_bytes: memory that is already in use and counts towards the limit.
        bytes_a_row: size of a point, where points are computed class by class.
        called: the name of each class, for notes.
        dense: whether distances are computed by matrix products; itemsize: bytes of a number of a point.
    """
    methods = [options.method.for_size(size) for size in sizes]
    threads = options.n_jobs or available_cores()

    def need(place: int, at_most: bool = True) -> int:
        size, count, chosen = sizes[place], min(counts[place], sizes[place]), methods[place]
        needed = estimate_memory(
            size, dims, count, method=chosen, refine=options.refine, dense=dense, at_most=at_most, itemsize=itemsize
        )
        return size * bytes_a_row + needed

    def total(needs: list[int]) -> int:
        return reserved_bytes + sum(sorted(needs)[-at_once:])

    needs = [need(place) for place in range(len(sizes))]
    at_once, notes = min(threads, len(sizes)), []
    if options.memory_limit is not None:
        limit = f"memory_limit={in_megabytes(options.memory_limit)}"
        if at_once > 1 and total(needs) > options.memory_limit:
            at_once = 1
            notes.append(f"one class at a time, to stay within {limit}")
        names = [str(place) for place in range(len(sizes))] if called is None else called
        for place in [place for place, needed in enumerate(needs) if reserved_bytes + needed > options.memory_limit]:
            if methods[place].is_greedy:
                needed = in_megabytes(reserved_bytes + needs[place])
                notes.append(f"class {names[place]}: {methods[place]} needs {needed}, over {limit}: used stochastic")
                methods[place] = Method.STOCHASTIC
                needs[place] = need(place)
            if reserved_bytes + needs[place] > options.memory_limit:
                raise SelectionError(
                    f"expected each class to fit into {limit}, but {sizes[place]:,} points of {dims:,} numbers need "
                    f"{in_megabytes(reserved_bytes + needs[place])} even with {methods[place]}: raise the limit or "
                    "select in parts",
                    code="memory-limit-class",
                )
    expected = total([need(place, at_most=False) for place in range(len(sizes))])
    return MemoryPlan(tuple(methods), at_once, threads if at_once == 1 else 1, expected, tuple(notes))


def estimate_filter(num_rows: int) -> int:
    """Bytes that checking and filtering `num_rows` rows needs until the end of the selection."""
    return num_rows * _BYTES_A_ROW


def estimate_curvature(num_rows: int, num_classes: int) -> int:
    """Bytes for preconditioning: gradients of all classes, averaged and divided, and a diagonal for each class."""
    return 8 * num_classes * (4 * num_rows + 4 * num_classes)


def estimate_outliers(num_rows: int, num_dims: int) -> int:
    """Bytes to find the outliers of a class: its rows twice in float64, and blocks of products and neighbours."""
    return 16 * min(num_rows, MAX_CANDIDATES) * num_dims + 6 * 8 * min(BLOCK, num_rows * max(num_rows, num_dims))


def in_megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
