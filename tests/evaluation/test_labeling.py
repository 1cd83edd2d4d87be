"""Labels from probabilities: one for each row, or every class with a weight."""

import numpy as np
import pytest

from synthsieve.errors import InputError
from synthsieve.evaluation.labeling import label_rows, soft_labels

CLASSES = np.array(["ham", "spam", "unsure"])
P = np.array([[0.7, 0.3, 0.0], [0.005, 0.99, 0.005], [0.4, 0.35, 0.25]])


def test_a_soft_label_is_every_class_with_its_probability_as_weight():
    found = soft_labels(P, CLASSES)
    assert found.rows.tolist() == [0, 0, 1, 2, 2, 2]
    assert found.y.tolist() == ["ham", "spam", "spam", "ham", "spam", "unsure"]
    assert found.weight.tolist() == [0.7, 0.3, 0.99, 0.4, 0.35, 0.25]
    assert len(found) == 6


def test_without_a_limit_the_weights_of_each_row_sum_to_one():
    found = soft_labels(P, CLASSES, min_probability=0)
    assert len(found) == P.size
    assert np.bincount(found.rows, found.weight) == pytest.approx(np.ones(len(P)))


def test_a_hard_label_is_the_most_probable_class_and_less_sure_rows_are_rejected():
    found = label_rows(P, CLASSES)
    assert found.y.tolist() == ["ham", "spam", "ham"]
    assert found.kept.tolist() == [0, 1]
    assert found.weight.tolist() == [0.7, 0.99, 0.0]


@pytest.mark.parametrize("function", [label_rows, soft_labels])
@pytest.mark.parametrize("limit", [-0.1, 1.1, np.nan])
def test_a_limit_is_a_probability(function, limit):
    with pytest.raises(InputError) as refused:
        function(P, CLASSES, min_probability=limit)
    assert refused.value.code == "invalid-parameter"
