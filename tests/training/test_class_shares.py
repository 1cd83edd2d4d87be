"""How often each class is expected among unlabelled rows, by the labels."""

import numpy as np
import pytest

from synthsieve.training.batches import _class_shares


def test_labels_of_unequal_numbers_give_smoothed_shares():
    assert _class_shares(np.array([0] * 16 + [1] * 4), 2).tolist() == pytest.approx([17 / 22, 5 / 22])
    assert _class_shares(np.array([0] * 6 + [1] * 6), 3).tolist() == pytest.approx([7 / 15, 7 / 15, 1 / 15])


@pytest.mark.parametrize("y", [[0, 1, 2], [0, 0, 1, 2], [0, 0, 0, 0, 1, 1, 2]])
def test_labels_that_may_come_from_equal_classes_give_none(y):
    assert _class_shares(np.array(y), 3) is None
