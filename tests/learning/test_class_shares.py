"""How often each class is expected among unlabelled rows, by the labels."""

import numpy as np
import pytest

from synthsieve.learning.batch_source import _class_shares


def test_labels_of_unequal_numbers_give_smoothed_shares():
    assert _class_shares(np.array([0] * 8 + [1] * 2), 2).tolist() == pytest.approx([9 / 12, 3 / 12])
    assert _class_shares(np.array([0] * 3 + [1] * 3), 3).tolist() == pytest.approx([4 / 9, 4 / 9, 1 / 9])


@pytest.mark.parametrize("y", [[0, 1, 2], [0, 0, 1, 2], [0, 0, 1, 1, 2]])
def test_labels_as_many_of_each_class_to_within_one_give_none(y):
    assert _class_shares(np.array(y), 3) is None
