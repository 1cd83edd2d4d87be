"""The encoding of tables: round trips, monotone scores, spikes, rare categories, missing cells."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.modalities.registry import fit_encoding, from_json
from synthsieve.data.modalities.table.cells import decimals_of
from synthsieve.data.modalities.table.encoding import CategoryCode, FixedCode, NumberCode, fit_code
from synthsieve.data.modalities.table.rows import read_rows, rows_like
from synthsieve.errors import DataError
from tests.errors import raises
from tests.modalities import table as mixed


def number(cells: np.ndarray, decimals: int | None = None) -> NumberCode:
    code = fit_code(np.asarray(cells, dtype=np.float64), is_category=False, decimals=decimals)
    assert isinstance(code, NumberCode)
    return code


def category(cells: np.ndarray) -> CategoryCode:
    code = fit_code(np.asarray(cells, dtype=np.float64), is_category=True)
    assert isinstance(code, CategoryCode)
    return code


def as_network(code: NumberCode | CategoryCode, cells: np.ndarray) -> np.ndarray:
    return code.encode(np.asarray(cells, dtype=np.float64)).astype(np.float32)


@settings(deadline=None, max_examples=100)
@given(
    cells=st.lists(st.one_of(st.integers(-1000, 1000), st.none()), min_size=2, max_size=200).filter(
        lambda values: len(set(values) - {None}) > 1
    )
)
def test_integers_and_missing_cells_decode_exactly(cells: list[int | None]) -> None:
    given = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    code = number(given, decimals=0)
    np.testing.assert_array_equal(code.decode(as_network(code, given)), given)
    scores = code.encode(np.unique(given[~np.isnan(given)]))[:, 0]
    assert (np.diff(scores) > 0).all()


def test_scores_are_normal_and_clipped() -> None:
    cells = np.random.default_rng(0).lognormal(3, 2, 5000)
    code = number(cells)
    encoded = as_network(code, cells)
    assert encoded.shape == (5000, 1)
    assert stats.kstest(encoded[:, 0], "norm").statistic < 0.01
    np.testing.assert_allclose(code.decode(encoded), cells, rtol=1e-4)
    far = code.decode(as_network(code, np.array([-1e9, 1e9])))
    np.testing.assert_allclose(far, [cells.min(), cells.max()])
    np.testing.assert_allclose(code.decode(np.array([[-50.0], [50.0]])), [cells.min(), cells.max()])


def test_spikes() -> None:
    cells = np.concatenate([np.zeros(900), np.arange(1, 101)])
    code = number(cells, decimals=0)
    assert (code.spikes.tolist(), code.size, code.missing) == ([0.0], 2, False)
    encoded = as_network(code, cells)
    np.testing.assert_array_equal(encoded[:, 1], cells == 0)
    np.testing.assert_array_equal(code.decode(encoded), cells)
    assert code.decode(np.array([[2.0, 0.4]], np.float32)) > 0  # more likely a continuous value
    assert code.decode(np.array([[2.0, 0.6]], np.float32)) == 0


def test_number_with_few_values() -> None:
    code = number(np.tile([0.0, 1.0, 5.0, np.nan], 30), decimals=0)
    assert (code.spikes.tolist(), code.missing, code.continuous) == ([0, 1, 5], True, False)
    np.testing.assert_array_equal(code.decode(as_network(code, np.array([4.9, 0.0, np.nan, 77]))), [5, 0, np.nan, 5])


def test_unexpected_missing_number_is_the_median() -> None:
    code = number(np.arange(101.0))
    assert as_network(code, np.array([np.nan]))[0, 0] == 0
    np.testing.assert_allclose(code.decode(as_network(code, np.array([np.nan]))), [50])


def test_ten_thousand_categories() -> None:
    rng = np.random.default_rng(0)
    cells = np.concatenate([rng.zipf(1.3, 40000) % 10000, np.arange(10000)]).astype(np.float64)
    code = category(cells)
    assert (len(code.kept), len(code.rare), code.size) == (100, 9900, 101)
    np.testing.assert_array_equal(code.decode(as_network(code, cells)), cells)
    counts = np.bincount(cells.astype(int), minlength=10000)
    decoded = np.zeros((50000, 101), np.float32)
    decoded[:, 100] = 1 - 0.1 * rng.random(50000)
    got = np.bincount(code.decode(decoded).astype(int), minlength=10000)
    common = code.rare[-5:]
    expected = 50000 * counts[common] / counts[code.rare].sum()
    np.testing.assert_allclose(got[common], expected, atol=5 * np.sqrt(expected.max()))


def test_unknown_and_missing_categories() -> None:
    code = category(np.array([0, 1, 1, 2]))
    assert as_network(code, np.array([np.nan, 7])).tolist() == [[0, 0, 0]] * 2
    code = category(np.array([0, 1, 1, np.nan]))
    assert as_network(code, np.array([np.nan, 7, 1])).tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_constant_columns_have_no_inputs() -> None:
    for cells, value in (([3.0, 3.0], 3.0), ([np.nan, np.nan], np.nan)):
        code = fit_code(np.array(cells), is_category=False)
        assert isinstance(code, FixedCode)
        assert code.encode(np.array([1.0, 2.0])).shape == (2, 0)
        np.testing.assert_array_equal(code.decode(np.zeros((2, 0))), [value] * 2)
    assert number(np.array([3.0, np.nan])).size == 3


@pytest.fixture
def dataset() -> Dataset:
    return mixed.dataset(200)


def test_mixed_table_round_trip(dataset: Dataset) -> None:
    encoding = fit_encoding(dataset, np.arange(200))
    encoded = encoding.encode(dataset.train.x)
    assert (encoded.dtype, encoded.shape[1:]) == (np.float32, encoding.input_spec.shape)
    assert np.isfinite(encoded).all()
    np.testing.assert_allclose(encoding.decode(encoded), dataset.train.x, rtol=1e-5, atol=1e-5)
    given, _ = mixed.arrow_table(200)
    back = encoding.items(encoding.decode(encoded))
    assert back.schema == given.schema
    assert back.column("id").to_pylist() == list(range(200, 400))
    for name in ("price", "gain", "colour", "paid", "day"):
        assert back.column(name).to_pylist() == given.column(name).to_pylist()


def test_blocks_are_contiguous(dataset: Dataset) -> None:
    input_spec = fit_encoding(dataset, np.arange(200)).input_spec
    assert input_spec.kind == "table"
    assert [block[0] for block in input_spec.details] == [
        "number",
        "number",
        "number",
        "category",
        "category",
        "number",
    ]
    assert [block[1] for block in input_spec.details] == np.cumsum([0, *(block[2] for block in input_spec.details)])[
        :-1
    ].tolist()
    hash(input_spec)


def test_json_keeps_every_bit(dataset: Dataset) -> None:
    encoding = fit_encoding(dataset, np.arange(150))
    again = from_json(json.loads(json.dumps(encoding.to_json(), allow_nan=False)))
    np.testing.assert_array_equal(again.encode(dataset.train.x), encoding.encode(dataset.train.x))
    assert again.input_spec == encoding.input_spec


def test_held_out_rows_are_not_used(dataset: Dataset) -> None:
    before = fit_encoding(dataset, np.arange(150)).to_json()
    dataset.train.x[150:] = 7
    assert fit_encoding(dataset, np.arange(150)).to_json() == before


def test_new_rows_with_unknown_categories_and_gaps_are_encoded(dataset: Dataset) -> None:
    encoding = fit_encoding(dataset, np.arange(200))
    given, _ = mixed.arrow_table(5, seed=9)
    strange = given.set_column(4, "colour", [["mauve"] * 5]).set_column(5, "paid", [pa.nulls(5, pa.bool_())])
    encoded = encoding.encode(rows_like(strange, dataset.metadata))
    assert np.isfinite(encoded).all()


def test_invalid_json_and_shapes(dataset: Dataset) -> None:
    encoding = fit_encoding(dataset, np.arange(200))
    good = encoding.to_json()
    falling = {**good["codes"][1], "knots": good["codes"][1]["knots"][::-1]}
    edges = {**good["codes"][4], "rare": [1], "edges": [0.0]}
    for codes in ([], [good["codes"][0], falling, *good["codes"][2:]], [*good["codes"][:4], edges, *good["codes"][5:]]):
        with raises(DataError, "damaged-encoding"):
            from_json({**good, "codes": codes})
    for wrong in (encoding.encode, encoding.decode):
        with raises(DataError, "shape"):
            wrong(np.zeros((3, 2)))
    with raises(DataError, "shape"):
        encoding.items(np.zeros((3, 2)))


def test_tables_without_information() -> None:
    rows = read_rows(pa.table({"a": [1, 1, 2], "b": ["x", "x", "x"]}))
    dataset = Dataset("t", Kind.TABLE, ("a", "b"), Examples(rows.x, np.array([0, 1, 1])), metadata=rows.schema)
    with raises(DataError, "constant-columns"):
        fit_encoding(dataset, np.arange(2))
    with raises(DataError, "no-training-rows"):
        fit_encoding(dataset, np.arange(0))
    with raises(DataError, "no-schema"):
        fit_encoding(Dataset("t", Kind.TABLE, ("a", "b"), dataset.train), np.arange(2))


def test_decimals_are_those_of_training_rows() -> None:
    rows = read_rows(pa.table({"a": [*np.arange(30) / 2, 0.123456]}))
    given = Dataset("t", Kind.TABLE, ("p", "q"), Examples(rows.x, np.arange(31) % 2), metadata=rows.schema)
    code = fit_encoding(given, np.arange(30)).to_json()["codes"][0]
    assert (rows.schema.columns[0].decimals, code["decimals"]) == (6, 1)


@pytest.mark.parametrize("damage", ["type", "kept", "fixed"])
def test_code_that_does_not_match_its_column(damage: str) -> None:
    rows = read_rows(pa.table({"a": ["x", "y"] * 10, "b": ["z"] * 20}))
    given = Dataset("t", Kind.TABLE, ("p", "q"), Examples(rows.x, np.arange(20) % 2), metadata=rows.schema)
    value = json.loads(json.dumps(fit_encoding(given, np.arange(20)).to_json()))
    if damage == "type":
        value["schema"][0]["arrow"] = "smell"
    elif damage == "kept":
        value["codes"][0]["kept"] = [0, 2]
    else:
        value["codes"][1]["value"] = 1.0
    with raises(DataError, "damaged-encoding"):
        from_json(value)


def max_decimals(cells: pa.ChunkedArray) -> int:
    """Digits after the point of the cell that has most, as Arrow writes it."""
    texts = [format(Decimal(text), "f").rstrip("0") for text in cells.cast(pa.string()).to_pylist()]
    return max(len(text.partition(".")[2]) for text in texts)


@pytest.mark.parametrize(
    ("kind", "digits"), [*(("float64", digits) for digits in range(16)), *(("float32", digits) for digits in range(7))]
)
def test_decoded_numbers_have_no_more_decimals_than_the_column(kind: str, digits: int) -> None:
    rng = np.random.default_rng(digits)
    column = np.array([round(float(value), digits) for value in rng.random(60)]).astype(kind)
    rows = read_rows(pa.table({"a": column, "b": np.arange(60) % 7 * 0.5}))
    given = Dataset("t", Kind.TABLE, ("p", "q"), Examples(rows.x, np.arange(60) % 2), metadata=rows.schema)
    encoding = fit_encoding(given, np.arange(60))
    decoded = rng.normal(size=(500, *encoding.input_spec.shape)).astype(np.float32)
    items = encoding.items(encoding.decode(decoded))  # type: ignore[arg-type]
    assert str(items.schema.field("a").type) == {"float64": "double", "float32": "float"}[kind]
    assert max_decimals(items.column("a")) <= max_decimals(pa.chunked_array([column])) <= digits


def test_decimals_beyond_float64() -> None:
    assert decimals_of(np.random.default_rng(0).normal(size=50)) is None
    assert decimals_of(np.array([0.5, 2.0**60])) is None
    assert decimals_of(np.array([2.0**60, 3.0])) == 0
