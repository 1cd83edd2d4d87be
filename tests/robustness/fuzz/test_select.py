"""Any input of `select` gives a selection or one of our errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import synthsieve
from synthsieve.errors import SelectionError
from tests.robustness.fuzz.guard import refused_or_read

MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
ROWS = st.integers(0, 12)
EXTREMES = [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-300, 2.0**63]


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    synthsieve.select(labels=np.arange(8) % 2, logits=np.eye(8, 2), budget=0.5, n_jobs=1)


@st.composite
def matrices(draw: st.DrawFn, rows: int) -> Any:
    """Something like a matrix of `rows`: of any type of number, with extremes, duplicates, or no matrix at all."""
    columns = draw(st.integers(0, 4))
    way = draw(st.integers(0, 9))
    if way == 0:
        return draw(st.lists(st.lists(st.none() | st.integers() | st.text(max_size=3), max_size=3), max_size=rows))
    if way == 1:
        return np.ma.masked_invalid(np.full((rows, columns), draw(st.sampled_from(EXTREMES))))
    if way == 2:
        return draw(hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=3, max_side=4)))
    if way == 3:
        return np.full((rows, columns), draw(st.sampled_from([None, "x", 10**30, 1j, {}])), dtype=object)
    if way == 4:
        return np.tile(draw(hnp.arrays(np.float64, columns, elements=st.floats(-5, 5))), (rows, 1))
    if way == 5:
        return torch.full(
            (rows, columns), 0.5, dtype=draw(st.sampled_from([torch.float16, torch.bfloat16, torch.int8]))
        )
    elements = st.floats(-50, 50) | st.sampled_from(EXTREMES) if way == 6 else st.floats(-50, 50, width=32)
    return draw(hnp.arrays(np.float64 if way == 6 else np.float32, (rows, columns), elements=elements))


@st.composite
def labels(draw: st.DrawFn, rows: int) -> Any:
    """Something like a label a row."""
    way = draw(st.integers(0, 8))
    if way == 0:
        return draw(st.lists(st.none() | st.integers() | st.text(max_size=3) | st.floats(), max_size=rows + 1))
    if way == 1:
        return draw(hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=2, max_side=6)))
    if way == 2:
        return np.ma.masked_equal(np.arange(rows) % 3, 1)
    if way == 3:
        return [draw(st.sampled_from([10**30, -1, 2**63, "a", b"a", (1,), 1.5, True]))] * rows
    if way == 4:
        return pa.array(draw(st.lists(st.none() | st.integers(0, 3), min_size=rows, max_size=rows)), pa.int8())
    if way == 5:
        return np.zeros(rows, dtype=int)  # one class
    if way == 6:
        return np.array(["a", "b", ""] * rows)[:rows]
    return np.arange(rows) % draw(st.integers(1, 4))


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(ROWS)
    requested: dict[str, Any] = {"labels": draw(labels(rows)), "n_jobs": 1}
    for name in ("logits", "probabilities", "gradients", "features"):
        if draw(st.integers(0, 2)) == 0:
            requested[name] = draw(matrices(rows))
    if draw(st.integers(0, 3)) == 0:
        requested["sample_weight"] = draw(matrices(rows) | st.just(np.ones(rows)) | st.just([1] * rows))
    if draw(st.integers(0, 3)) == 0:
        requested["classes"] = draw(labels(draw(st.integers(0, 4))))
    options = {
        "budget": st.sampled_from(
            [0.1, 0.5, 1.0, 0, 1, 3, 10**30, -1, 1.5, np.nan, np.inf, None, "x", True, np.int8(2)]
        ),
        "epsilon": st.sampled_from([None, 0.1, 1e300, 0, -1, np.nan, "x", 10**400]),
        "entropy_ceiling": st.sampled_from([None, 0.3, 1e-6, 0, -1, np.nan, np.inf, "auto", "x", [1], 10**400]),
        "keep_fraction": st.sampled_from([None, 0.5, 1, 0, 2, -1, np.nan, "x", [0.5]]),
        "method": st.sampled_from(["auto", "exact", "fast", "stochastic", "random", "none", None, 3, ["exact"]]),
        "curvature": st.sampled_from(["none", "unit", "softmax", "hutchinson", "", None]),
        "memory_limit": st.sampled_from([None, 1, "1MB", "x", -1, np.nan, 1e9, [], "1" * 5000]),
        "refine": st.booleans(),
        "require_label": st.booleans(),
        "keep_per_class": st.booleans(),
        "seed": st.sampled_from([0, -1, 2**70, "x", 1.5]),
        "n_jobs": st.sampled_from([1, 1, 1, 0, -1, "x", 1.5]),
    }
    for name in draw(st.lists(st.sampled_from(sorted(options)), max_size=2)):
        requested[name] = draw(options[name])
    return requested


@MANY
@given(questions())
def test_any_question_is_answered_or_refused_in_a_sentence(requested: dict[str, Any]) -> None:
    error = refused_or_read(lambda: synthsieve.select(**requested))
    assert error is None or isinstance(error, SelectionError)
    assert error is None or "\n" not in str(error)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_selected_from_odd_rows_keeps_the_laws(data: st.DataObject) -> None:
    """Finite numbers of any size, with duplicates: weights stand for every row that passed, and the bound holds."""
    rows, columns = data.draw(st.integers(1, 30)), data.draw(st.integers(2, 4))
    scale = data.draw(st.sampled_from([0.0, 1e-300, 1e-30, 1.0, 700.0, 1e30, 1e300]))
    logits = scale * data.draw(hnp.arrays(np.float64, (rows, columns), elements=st.floats(-1, 1)))
    y = np.arange(rows) % columns
    method = data.draw(st.sampled_from(["exact", "fast", "stochastic", "random"]))
    chosen = synthsieve.select(labels=y, logits=logits, budget=0.4, method=method, n_jobs=1)
    assert np.isclose(chosen.weights.sum(), rows)
    assert len(set(chosen.indices.tolist())) == len(chosen)
    assert chosen.gradient_error <= chosen.gradient_bound * (1 + 1e-9) + 1e-9
