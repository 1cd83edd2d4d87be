"""Marginals and pairs of tables against closed forms and other libraries."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from synthsieve.data.modalities.table.rows import read_rows
from synthsieve.errors import DataError
from synthsieve.evaluation.columns import (
    compare_tables,
    correlation,
    correlation_ratio,
    cramers_v,
    kolmogorov_smirnov,
    total_variation,
)
from tests.errors import raises
from tests.modalities import table

GENERATOR = np.random.default_rng(0)


def test_total_variation_by_hand():
    nan = np.nan
    assert total_variation(np.array([0, 0, 1, nan]), np.array([0, 2, 2, nan])) == pytest.approx(0.5)
    assert total_variation(np.array([0.0, 1.0]), np.array([1.0, 0.0])) == 0
    assert total_variation(np.array([0.0]), np.array([nan])) == 1


def test_kolmogorov_smirnov_by_hand():
    a, b = GENERATOR.integers(0, 20, 300).astype(float), GENERATOR.normal(9, 5, 200)
    at = np.concatenate([a, b])
    largest = np.abs((a[:, None] <= at).mean(axis=0) - (b[:, None] <= at).mean(axis=0)).max()
    assert kolmogorov_smirnov(a, b) == pytest.approx(largest)
    assert kolmogorov_smirnov(a, np.concatenate([b, [np.nan]])) == pytest.approx(largest)
    assert kolmogorov_smirnov(a, np.full(3, np.nan)) == 1
    assert kolmogorov_smirnov(np.full(2, np.nan), np.full(3, np.nan)) == 0


def test_associations_equal_closed_forms():
    a, b = GENERATOR.normal(size=(2, 200))
    assert correlation(a, a + b) == pytest.approx(np.corrcoef(a, a + b)[0, 1])
    assert correlation(a, np.ones(200)) == 0
    c, d = GENERATOR.integers(0, 4, 500), GENERATOR.integers(0, 3, 500)
    counts = pd.crosstab(c, np.where(c == 0, 0, d)).to_numpy()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / 500
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert cramers_v(c, np.where(c == 0, 0, d)) == pytest.approx(np.sqrt(chi_squared / (500 * 2)))
    assert cramers_v(c, c) == pytest.approx(1)
    assert cramers_v(c, np.zeros(500, int)) == 0
    groups = np.repeat([0, 1], 100)
    assert correlation_ratio(groups, groups * 3.0) == pytest.approx(1)
    assert correlation_ratio(groups, np.tile([1.0, 2.0], 100)) == pytest.approx(0, abs=1e-12)
    two = groups + GENERATOR.normal(size=200)
    assert correlation_ratio(groups, two) == pytest.approx(abs(np.corrcoef(groups, two)[0, 1]))


def test_distances_of_same_shuffled_and_shifted_rows():
    data = table.dataset(600)
    x = data.train.x
    same = compare_tables(x, x, data.metadata)
    assert (same.marginal_distance, same.association_distance, same.floor) == (0, 0, None)
    shuffled = np.column_stack([GENERATOR.permutation(x[:, i]) for i in range(x.shape[1])])
    torn = compare_tables(x, shuffled, data.metadata)
    assert torn.marginal_distance == 0
    assert torn.association_distance > 0.2
    one_class = compare_tables(x, x[data.train.y == 0], data.metadata, held_out=table.dataset(600, seed=1).train.x)
    assert one_class.marginal_distance > 0.3
    assert one_class.floor.marginal_distance < 0.08
    assert one_class.floor.association_distance < 0.08


def test_ids_are_left_out_and_result_is_json():
    data = table.dataset(50)
    found = compare_tables(data.train.x, data.train.x[:20], data.metadata)
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert [column["name"] for column in plain["columns"]] == ["weight", "price", "gain", "colour", "paid", "day"]
    assert plain["columns"][3]["measure"] == "total variation"
    assert np.array(plain["association_real"]).shape == (6, 6)
    assert plain["columns"][1]["missing_real"] == pytest.approx(np.isnan(data.train.x[:, 2]).mean())


def test_many_categories_and_new_ones_are_merged():
    rows = read_rows(pa.table({"zip": [f"z{i % 3000}" for i in range(9000)], "n": np.arange(9000) % 7}))
    found = compare_tables(rows.x, rows.x[:100], rows.schema)
    assert 0 <= found.association_distance <= 1


def test_rows_of_wrong_shape_are_refused():
    data = table.dataset(50)
    for rows in (data.train.x[:, :3], data.train.x[:0]):
        with raises(DataError, "bad-shape"):
            compare_tables(data.train.x, rows, data.metadata)


@pytest.mark.filterwarnings("error")
def test_large_numbers_do_not_overflow() -> None:
    a = np.random.default_rng(0).normal(size=50)
    assert correlation(a * 1e307, a * 1e-300) == pytest.approx(1)
    groups = (a > 0).astype(np.int64)
    assert correlation_ratio(groups, a * 1e307) == pytest.approx(correlation_ratio(groups, a))
