"""Encodings of images and vectors: range, exact round trips, fitted on training rows only."""

from __future__ import annotations

import json

import numpy as np
import pytest

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.formats.arrays import ImageForm
from synthsieve.data.modalities.encoding import ImageEncoding, VectorEncoding
from synthsieve.data.modalities.registry import fit_encoding, from_json
from synthsieve.errors import DataError
from tests.errors import raises


def test_every_pixel_value_makes_the_round_trip() -> None:
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    encoding = ImageEncoding((1, 16, 16))
    encoded = encoding.encode(pixels)
    assert (encoded.dtype, encoded.min(), encoded.max()) == (np.float32, -1.0, 1.0)
    np.testing.assert_array_equal(encoding.decode(encoded), pixels)


def test_decoding_clips() -> None:
    extreme = np.array([-7.0, -1.0, 0.0, 7.0], np.float32).reshape(1, 1, 1, 4).repeat(4, axis=2)
    assert ImageEncoding((1, 4, 4)).decode(extreme)[0, 0, 0].tolist() == [0, 0, 128, 255]


@pytest.mark.parametrize("shape", [(1, 7, 9), (3, 30, 33), (1, 1, 1), (3, 8, 10)])
def test_padding_to_multiples_of_four(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 256, (5, *shape)).astype(np.uint8)
    encoding = ImageEncoding(shape)
    encoded = encoding.encode(x)
    assert encoded.shape[1:] == encoding.input_spec.shape
    assert all(
        0 <= padded - side < 4 and padded % 4 == 0 for padded, side in zip(encoded.shape[2:], shape[1:], strict=True)
    )
    np.testing.assert_array_equal(encoding.decode(encoded), x)


def test_image_form_in_json() -> None:
    plain, ranged = ImageEncoding((1, 8, 8)), ImageEncoding((1, 8, 8), ImageForm("hw", "int64", (0.0, 16.0)))
    assert plain.to_json() == {"kind": "image", "shape": [1, 8, 8]}
    for encoding in (plain, ranged):
        assert from_json(json.loads(json.dumps(encoding.to_json()))) == encoding
    for damage in ([0], [3, 2], ["a", "b"], [0, 1e999], 5):
        with raises(DataError, "damaged-encoding"):
            from_json({**ranged.to_json(), "form": {**ranged.form.to_json(), "value_range": damage}})


def test_denormal_columns_are_constant() -> None:
    x = np.stack([np.arange(20) * 1e-42, np.arange(20.0)], axis=1).astype(np.float32)
    dataset = Dataset("a", Kind.VECTOR, ("0", "1"), Examples(x, np.arange(20) % 2))
    encoded = fit_encoding(dataset, np.arange(20)).encode(x)
    assert np.abs(encoded).max() < 2


def test_float_images_are_unchanged() -> None:
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 1, 4, 4)
    assert ImageEncoding((1, 4, 4)).encode(x) is x


@pytest.fixture
def table() -> Dataset:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(5, 3, 100), np.full(100, 0.1), rng.normal(-2, 0.01, 100)]).astype(np.float32)
    return Dataset("t", Kind.VECTOR, ("a", "b"), Examples(x, np.arange(100) % 2))


def test_vectors_are_standardized_by_training_rows_only(table: Dataset) -> None:
    rows = np.arange(60)
    encoding = fit_encoding(table, rows)
    encoded = encoding.encode(table.train.x[rows])
    np.testing.assert_allclose(encoded.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(encoded.std(axis=0), [1, 0, 1], atol=1e-4)
    table.train.x[60:] = 1e6
    again = fit_encoding(table, rows)
    assert again.to_json() == encoding.to_json()


def test_constant_columns_have_scale_one(table: Dataset) -> None:
    encoding = fit_encoding(table, np.arange(100))
    assert isinstance(encoding, VectorEncoding)
    assert encoding.scale[1] == 1.0
    np.testing.assert_allclose(encoding.decode(encoding.encode(table.train.x)), table.train.x, rtol=1e-5)


def test_json_keeps_every_bit(table: Dataset) -> None:
    encoding = fit_encoding(table, np.arange(100))
    back = from_json(json.loads(json.dumps(encoding.to_json())))
    np.testing.assert_array_equal(back.encode(table.train.x), encoding.encode(table.train.x))
    image = ImageEncoding((3, 8, 8))
    assert from_json(json.loads(json.dumps(image.to_json()))) == image


def test_invalid_json_and_input(table: Dataset) -> None:
    with raises(DataError, "unknown-modality"):
        from_json({"kind": "smell"})
    for value in ({}, {"kind": "vector", "mean": [0.0], "scale": [0.0]}, {"kind": "image"}):
        with raises(DataError, "damaged-encoding"):
            from_json(value)
    with raises(DataError, "shape"):
        ImageEncoding((1, 4, 4)).encode(np.zeros((2, 1, 8, 8), np.uint8))
    with raises(DataError, "dtype"):
        ImageEncoding((1, 4, 4)).encode(np.zeros((2, 1, 4, 4), np.int64))
    with raises(DataError, "no-training-rows"):
        fit_encoding(table, np.zeros(0, np.int64))
