"""New examples from single files of arrays, without labels."""

import struct

import numpy as np
import pytest
from scipy.io import savemat

from synthsieve.data.dataset import Kind
from synthsieve.data.formats.arrays import PIXELS
from synthsieve.data.formats.new_examples import ExpectedInput, read_new
from synthsieve.data.in_memory import InMemoryData
from synthsieve.errors import DataError
from tests.errors import raises

X = np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8)).astype(np.uint8)


def images(shape):
    return ExpectedInput(InMemoryData(np.empty(0), Kind.IMAGE, PIXELS), shape)


def test_a_mat_file_needs_no_labels(tmp_path):
    savemat(tmp_path / "new.mat", {"X": X.transpose(2, 3, 1, 0)})
    assert np.array_equal(read_new(tmp_path / "new.mat", images((3, 8, 8))).x, X)
    savemat(tmp_path / "other.mat", {"Y": X})
    with raises(DataError, "missing-array"):
        read_new(tmp_path / "other.mat", images((3, 8, 8)))


def test_an_idx_file_needs_no_labels_beside_it(tmp_path):
    grey = X[:, 0]
    (tmp_path / "new-idx3-ubyte").write_bytes(struct.pack(">HBB3I", 0, 8, 3, *grey.shape) + grey.tobytes())
    assert np.array_equal(read_new(tmp_path / "new-idx3-ubyte", images((1, 8, 8))).x, grey[:, None])


def test_npz_with_a_range_and_other_arrays(tmp_path):
    np.savez(tmp_path / "new.npz", x=X / 1000.0, range=np.array([0.0, 0.5]), more=np.zeros(2))
    found = read_new(tmp_path / "new.npz", images((3, 8, 8)))
    assert found.x == pytest.approx(X / 1000.0 * 4 - 1, abs=1e-6)
    assert found.notes == ("arrays other than x are ignored (1): 'more'",)
    np.savez(tmp_path / "none.npz", z=X)
    with raises(DataError, "missing-array"):
        read_new(tmp_path / "none.npz", images((3, 8, 8)))
    np.save(tmp_path / "empty.npy", X[:0])
    with raises(DataError, "no-rows"):
        read_new(tmp_path / "empty.npy", images((3, 8, 8)))
