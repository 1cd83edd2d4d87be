"""Tiles, duplicates, gradients, curvature and memory, each against its definition."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from numba import njit

from synthsieve.errors import SelectionError
from synthsieve.selection.curvature import (
    CurvatureState,
    class_diagonal,
    hutchinson_diagonal,
    precondition,
)
from synthsieve.selection.duplicates import distinct_rows
from synthsieve.selection.gradients import residuals_of, residuals_of_logits
from synthsieve.selection.kernels import compiled, lanes, plain, vectors
from synthsieve.selection.kernels.cells import largest_cell
from synthsieve.selection.kernels.memory import estimate_memory
from synthsieve.selection.kernels.tiles import lay_out
from synthsieve.selection.options import Curvature, Method, bytes_in
from tests.errors import raises


@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 700])
def test_tiles_hold_every_point_once_inside_its_box(n):
    points = np.random.default_rng(n).normal(size=(n, 3))
    tiles = lay_out(points, np.arange(n, dtype=float))
    flat = tiles.rows.ravel()
    assert sorted(flat[flat >= 0]) == list(range(n))
    assert tiles.num_points == n
    for row, place in enumerate(tiles.positions()):
        tile, lane = divmod(int(place), 16)
        own = tiles.coords[tile, :, lane]
        assert np.array_equal(own * tiles.magnitude, points[row])
        assert (tiles.low[tile] <= own).all()
        assert (own <= tiles.high[tile]).all()
        assert tiles.weight[tile, lane] == row


def test_distinct_rows_are_the_first_of_each_group():
    rng = np.random.default_rng(0)
    points = rng.integers(0, 3, (400, 4)).astype(float) * np.where(rng.random((400, 4)) < 0.5, 1, -1)
    rows = np.sort(rng.choice(400, 300, replace=False)).astype(np.int32)
    found = distinct_rows(points, rows)
    _, first, kinds = np.unique(points[rows] + 0.0, axis=0, return_index=True, return_inverse=True)
    assert np.array_equal(found.rows, rows[np.sort(first)])
    assert np.array_equal(points[found.rows[found.which]], points[rows])
    assert len(np.unique(found.which)) == kinds.max() + 1


def test_residuals_are_exact_for_certain_predictions():
    mpmath.mp.dps = 200
    for gap in (1.0, 10.0, 32.5, 300.0):
        logits = np.array([[gap, 0.0, -1.25], [0.0, gap, 0.5]])
        labels = np.array([0, 1])
        residuals = residuals_of_logits(logits, labels)
        for row in range(2):
            powers = [mpmath.exp(mpmath.mpf(value)) for value in logits[row]]
            for k in range(3):
                exact = powers[k] / sum(powers) - (k == labels[row])
                assert abs(residuals[row, k] - exact) <= abs(exact) * 1e-12


def test_residuals_of_probabilities_never_subtract_one():
    tiny = 1e-14
    residuals = residuals_of(np.array([[1.0, tiny / 2, tiny / 2]]), "probabilities", np.array([0]))
    assert residuals[0, 0] == -tiny
    assert residuals_of_logits(np.array([[0.0, -200.0]]), np.array([0]))[0, 0] == pytest.approx(
        -np.exp(-200.0), rel=1e-12
    )


def dense_diagonal(residuals, labels, label):
    """The mean of diag(p) - p p' over a label's rows, as a matrix."""
    rows = residuals[labels == label]
    p = rows + np.eye(rows.shape[1])[label]
    return np.mean([np.diag(row) - np.outer(row, row) for row in p], axis=0)


def test_curvature_diagonals_match_a_dense_reference():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(60, 4)), np.arange(60) % 4
    residuals = residuals_of_logits(logits, labels)
    exact = np.array([np.diag(dense_diagonal(residuals, labels, label)) for label in range(4)])
    assert class_diagonal(residuals, labels, Curvature.SOFTMAX, rng=rng) == pytest.approx(exact)
    probes = 4_000
    estimate = class_diagonal(residuals, labels, Curvature.HUTCHINSON, rng=rng, num_probes=probes)
    spread = np.array([np.sqrt((dense_diagonal(residuals, labels, k) ** 2).sum()) for k in range(4)])[:, None]
    assert (np.abs(estimate - exact) < 5 * spread / np.sqrt(probes)).all()
    diagonal = hutchinson_diagonal(lambda v: np.array([3.0, -2.0]) * v, 2, 1, rng=rng)
    assert diagonal.tolist() == [3.0, -2.0]  # exact for a diagonal matrix, with one probe


def test_preconditioning_over_three_selections():
    rng = np.random.default_rng(1)
    labels = np.array([0, 1, 1])
    steps = [(rng.normal(size=(3, 2)), rng.random((2, 2)) + 0.1) for _ in range(3)]
    state, slow_g, slow_d = None, np.zeros((3, 2)), np.zeros((2, 2))
    for t, (gradient, diagonal) in enumerate(steps, start=1):
        gradients, state = precondition(gradient, labels, diagonal, state, damping=0.05)
        slow_g = 0.9 * slow_g + 0.1 * gradient
        slow_d = 0.99 * slow_d + 0.01 * diagonal**2
        smooth = np.sqrt(slow_d / (1 - 0.99**t))
        expected = slow_g / (1 - 0.9**t) / ((smooth + 0.05) / 1.05)[labels]
        assert gradients == pytest.approx(expected)
    assert state.for_other_points().gradients is None
    assert state.for_other_points().diagonal_updates == 3


def test_unit_curvature_leaves_the_gradients_unchanged():
    gradient = np.random.default_rng(2).normal(size=(50, 3))
    gradients, _ = precondition(gradient, np.zeros(50, dtype=int), np.ones((3, 3)), CurvatureState())
    assert np.array_equal(gradients, gradient)


def test_kernel_cache_is_stale_if_any_kernel_file_changed(tmp_path):
    """A kernel in one file calls another's; both versions print what the disk holds."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(compiled.__file__, package / "compiled.py")
    (package / "outer.py").write_text(
        "from package.compiled import kernel\nfrom package.inner import inner\n"
        "@kernel\ndef outer(x):\n    return inner(x)\nprint(outer(1))\n",
        encoding="utf-8",
    )
    for value in (10, 20):
        (package / "inner.py").write_text(
            f"from package.compiled import kernel\n@kernel\ndef inner(x):\n    return x + {value}\n",
            encoding="utf-8",
        )
        # -B: bytecode of a file of the same size and second would be taken for that of the other version.
        command = [sys.executable, "-B", "-c", "import package.outer"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
        assert done.stdout.split() == [str(1 + value).encode()]


def test_memory_estimates():
    assert estimate_memory(2_000_000, 10, 1) < 2 * estimate_memory(1_000_000, 10, 1)
    assert estimate_memory(1_000_000, 10, 100_000, itemsize=4) < 50e6 + 200 * 1e6  # float32, as in the benchmark
    assert estimate_memory(1000, 10, 100, method=Method.STOCHASTIC) < estimate_memory(1000, 10, 100, method="exact")
    expected = [estimate_memory(n, 384, n // 50, dense=True, method="exact") for n in (10_000, 20_000)]
    assert expected[1] < 1.5 * expected[0]  # stored pairs are limited
    assert estimate_memory(20_000, 384, 400, dense=True, method="exact", at_most=True) > expected[1]
    assert estimate_memory(20_000, 384, 400, dense=True) < expected[0]  # in cells
    assert [largest_cell(n) for n in (1, 8_000, 8_001, 20_000, 100_000)] == [1, 8_000, 4_001, 5_000, 6_250]
    assert bytes_in("1.5 GB") == 1_500_000_000
    assert bytes_in("2GiB") == 2**31
    assert bytes_in(5e6) == 5_000_000
    assert bytes_in(None) is None
    with raises(SelectionError, "method"):
        estimate_memory(10, 10, 1, method="best")
    for bad in ("much", "5 parsecs", ".", -1, 0):
        with raises(SelectionError, "memory-limit"):
            bytes_in(bad)


def distance_kernel(kernels):
    units_of, shift, lowest = kernels.units_to_tile, kernels.shift_gains, kernels.lowest_bit
    add = kernels.add_gains

    @njit
    def run(coords, norms, split, scale, units, gains):
        units_of(coords, norms, 1, coords, norms, 0, 3, split, scale, units)
        shift(coords, norms, 1, coords, norms, 0, 3, split, scale, gains, 2.0, 0.0, 2.0 * scale)
        reach = np.full((2, 16), 2.0 * scale)
        add(coords, norms, 1, coords, norms, 0, 2, split, scale, gains, 2.0, 2.0 * scale, reach / scale, reach, gains)
        return lowest(40)

    return run


def box_kernel(kernels):
    boxes_within, lanes_within = kernels.boxes_within, kernels.lanes_within

    @njit
    def run(boxes_low, boxes_high, low, high, coords, reach):
        near = boxes_within(boxes_low, boxes_high, 0, low, high, 1, 1.0)
        return near, lanes_within(coords, coords, 1, low, high, 0, 4.0, reach)

    return run


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_distances_equal_the_vector_ones(dtype):
    """Up to one unit: the vector code fuses multiplication and addition, so rounding may differ."""
    points = np.random.default_rng(0).normal(size=(40, 5)).astype(dtype)
    kernels = [distance_kernel(kernels) for kernels in (plain, vectors)]
    for split in (2, 5):
        tiles = lay_out(points, np.ones(40), split=split)
        found = [(np.empty(16), np.zeros((3, 16))) for _ in kernels]
        for run, (units, gains) in zip(kernels, found, strict=True):
            assert run(tiles.coords, tiles.norms, split, 2.0**30, units, gains) == 3
        assert np.abs(found[0][0] - found[1][0]).max() <= 1
        assert np.abs(found[0][1] - found[1][1]).max() <= 4  # two sums with weights of 2
        assert found[0][1][1].any()


def test_plain_box_tests_equal_the_vector_ones():
    rng = np.random.default_rng(0)
    coords, reach = rng.normal(size=(2, 3, 16)), rng.random((2, 16)) * 8
    low, high = np.sort(rng.normal(size=(2, 2, 3)), axis=0)
    boxes_low, boxes_high = np.sort(rng.normal(size=(2, 1, 3, 16)), axis=0)
    bits = [box_kernel(kernels)(boxes_low, boxes_high, low, high, coords, reach) for kernels in (plain, vectors)]
    assert bits[0] == bits[1]
    assert 0 < bits[0][0] < 2**16 - 1
    assert 0 < bits[0][1] < 2**16 - 1


def test_plain_kernels_are_the_fallback():
    def fails(coords, norms, out):
        raise NotImplementedError("no such instruction")

    assert lanes.implementation(vectors) is vectors
    assert lanes.implementation(SimpleNamespace(probe=fails)) is plain
    assert lanes.implementation(SimpleNamespace(probe=lambda coords, norms, out: None)) is plain
