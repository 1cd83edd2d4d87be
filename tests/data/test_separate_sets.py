"""Test and validation sets in separate files are read in the same way as the training data."""

import numpy as np
import pytest
from PIL import Image

from synthsieve.data.origin import Origin
from synthsieve.errors import DataError
from tests.errors import raises


def write_table(path, rows, header="size,colour,kind"):
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    rows = [f"{i / 10:.1f},{'red' if i % 3 else 'blue'},{'cat' if i % 2 else 'dog'}" for i in range(40)]
    return write_table(tmp_path / "train.csv", rows)


def test_a_table_is_read_by_the_schema_of_the_training_data(tmp_path, table):
    separate = write_table(tmp_path / "test.csv", ["cat,blue,1.5", "dog,red,2.0", ",red,3.0"], "kind,colour,size")
    plain = Origin.of(str(table), label="kind").load()
    found = Origin.of(str(table), label="kind", test=separate, validation=separate).load()
    assert found.classes == ("cat", "dog")
    np.testing.assert_array_equal(found.test.y, [0, 1])
    np.testing.assert_array_equal(found.validation.y, [0, 1])
    same = [i for i in range(40) if i == 15]  # size 1.5, which no other row has
    assert found.test.x[0, 0] == plain.train.x[same[0], 0]
    assert any("1 rows without a label are left out" in note for note in found.notes)
    np.testing.assert_array_equal(found.train.x, plain.train.x)


def test_arrays_are_scaled_as_the_training_images_were(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.random((30, 8, 8)) * 16, np.arange(30) % 3
    np.savez(tmp_path / "train.npz", x=x, y=y)
    np.savez(tmp_path / "test.npz", x=x[:6] / 2 + 4, y=y[:6])
    found = Origin.of(str(tmp_path / "train.npz"), test=tmp_path / "test.npz").load()
    low, high = x.min(), x.max()
    np.testing.assert_allclose(found.test.x[:, 0], 2 * (x[:6] / 2 + 4 - low) / (high - low) - 1, atol=1e-5)
    np.testing.assert_array_equal(found.test.y, y[:6])


def test_images_are_brought_to_the_size_of_training(tmp_path):
    for part, side in (("train", 16), ("separate", 40)):
        for name in ("a", "b"):
            (tmp_path / part / name).mkdir(parents=True)
            for i in range(3):
                Image.new("L", (side, side), 80 * i).save(tmp_path / part / name / f"{i}.png")
    found = Origin.of(str(tmp_path / "train"), test=tmp_path / "separate").load()
    assert found.train.x.shape[1:] == found.test.x.shape[1:] == (1, 16, 16)
    np.testing.assert_array_equal(found.test.y, [0, 0, 0, 1, 1, 1])


def test_sets_unlike_the_training_data(tmp_path, table):
    other = write_table(tmp_path / "other.csv", ["1.0,red,bird", "2.0,red,cat"])
    with raises(DataError, "unknown-class"):
        Origin.of(str(table), label="kind", test=other).load()
    lacking = write_table(tmp_path / "lacking.csv", ["1.0,cat", "2.0,dog"], "size,kind")
    with pytest.raises(DataError, match="colour"):
        Origin.of(str(table), label="kind", test=lacking).load()
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 3)), y=np.arange(4) % 2)
    with raises(DataError, "unlike-training"):
        Origin.of(str(table), label="kind", test=tmp_path / "x.npz").load()
    with raises(DataError, "unknown-source"):
        Origin.of(str(table), label="kind", test=tmp_path / "nowhere.csv").load()
