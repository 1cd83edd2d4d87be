"""The result of a selection, and `CoresetSelector`."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from synthsieve import CoresetSelector, select
from synthsieve.errors import SelectionError
from synthsieve.selection import validation
from synthsieve.selection.options import SelectionOptions
from tests.errors import raises

GENERATOR = np.random.default_rng(0)
LABELS = GENERATOR.integers(0, 3, 600)
FEATURES = GENERATOR.normal(size=(600, 4)) + 3.0 * np.eye(3, 4)[LABELS]
LOGITS = 3.0 * np.eye(3)[LABELS] + GENERATOR.normal(size=(600, 3))


def noisy():
    """Logits of a sure classifier, and labels of which a fifth is wrong."""
    rng = np.random.default_rng(1)
    right = rng.integers(0, 3, 900)
    wrong = rng.random(900) < 0.2
    logits = 6.0 * np.eye(3)[right] + rng.normal(size=(900, 3))
    return np.where(wrong, (right + 1) % 3, right), logits


def test_repr_and_summary():
    chosen = select(labels=LABELS, logits=LOGITS, keep_fraction=0.5)
    text = repr(chosen)
    assert len(text) < 240
    assert "\n" not in text
    for figure in ("30 of 600 rows", "300 rejected", "3 classes", "gradient_bound=", "method=exact"):
        assert figure in text
    assert len(chosen.summary().splitlines()) > 5


def test_features_alone_use_cross_validation():
    chosen = select(FEATURES, LABELS, budget=0.2)
    named = select(features=FEATURES, labels=LABELS, budget=0.2)
    fitted = CoresetSelector(budget=0.2).fit(FEATURES, LABELS)
    assert chosen.indices.tolist() == named.indices.tolist() == fitted.indices_.tolist()
    assert sum("logistic regression" in note for note in chosen.notes) == 1
    assert chosen.entropy is not None
    with raises(SelectionError, "no-labels"):
        select(FEATURES)
    with raises(SelectionError, "length"):
        select(FEATURES, LABELS[:500])


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.coo_array, pd.DataFrame, np.asfortranarray])
def test_containers_of_features_and_logits(kind):
    plain = select(FEATURES, LABELS)
    assert select(kind(FEATURES), LABELS).indices.tolist() == plain.indices.tolist()
    by_logits = select(labels=LABELS, logits=LOGITS)
    assert select(labels=LABELS, logits=kind(LOGITS)).indices.tolist() == by_logits.indices.tolist()
    rows, labels = CoresetSelector().fit_resample(kind(FEATURES), LABELS)
    assert np.allclose(validation.as_array(rows), FEATURES[plain.indices])
    assert labels.tolist() == LABELS[plain.indices].tolist()


def test_sparse_matrix_too_large_for_memory():
    with raises(SelectionError, "too-large"):
        select(scipy.sparse.csr_matrix((600, 10**7)), LABELS)


def test_fit_resample():
    frame, series = pd.DataFrame(FEATURES), pd.Series(np.array(["a", "b", "c"])[LABELS])
    selector = CoresetSelector(budget=0.1)
    rows, labels = selector.fit_resample(frame, series)
    assert isinstance(rows, pd.DataFrame)
    assert isinstance(labels, pd.Series)
    assert rows.index.tolist() == labels.index.tolist() == selector.indices_.tolist()
    sizes = labels.to_frame("y").assign(weight=selector.weights_).groupby("y").weight.sum()
    assert sizes.to_dict() == series.value_counts().to_dict()
    assert selector.loss_weights_.mean() == pytest.approx(1.0)
    LogisticRegression().fit(rows, labels, sample_weight=selector.loss_weights_)
    with raises(SelectionError, "length"):
        selector.transform(frame[:10])


def test_contradicted_labels():
    labels, logits = noisy()
    other = logits.argmax(axis=1) != labels
    chosen = select(labels=labels, logits=logits, keep_fraction=0.8)
    kept = chosen.assignment >= 0
    assert chosen.contradicted.survivors == (other & kept).sum()
    assert chosen.contradicted.selected == other[chosen.indices].sum()
    expected = sum(
        (labels[chosen.indices] == label).sum() * other[kept & (labels == label)].mean() for label in range(3)
    )
    assert chosen.contradicted.expected_at_random == pytest.approx(expected)
    assert chosen.contradicted.selected > expected  # the reason for the note
    assert sum("--require-label" in note for note in chosen.notes) == 1
    assert f"contradicted by the classifier: {chosen.contradicted.survivors} survivors" in chosen.summary()
    assert chosen.as_dict()["contradicted"]["selected"] == chosen.contradicted.selected
    strict = select(labels=labels, logits=logits, keep_fraction=0.8, require_label=True)
    assert strict.contradicted.survivors == strict.contradicted.selected == 0
    assert not any("--require-label" in note for note in strict.notes)
    assert select(labels=labels, gradients=logits).contradicted is None


@pytest.mark.parametrize("features", [None, FEATURES])
def test_random_bound_estimates_random_picks(features):
    given = {"labels": LABELS, "logits": LOGITS, "features": features, "budget": 0.2}
    chosen = select(**given)
    bounds = np.array([select(**given, method="random", seed=seed).gradient_bound for seed in range(8)])
    # 200 rows a class are sampled from, all of them: what is left is the spread of the picks.
    assert abs(chosen.random_bound - bounds.mean()) < 5 * bounds.std() * np.sqrt(1 + 1 / 8)
    assert chosen.gradient_bound < chosen.random_bound
    assert f"about {chosen.random_bound:.3g}" in chosen.summary()
    assert select(**given, method="random").random_bound is None
    assert select(labels=LABELS, logits=LOGITS, budget=1.0).random_bound == 0.0


def test_random_bound_does_not_change_the_picks():
    from synthsieve.io.random_streams import numpy_stream
    from synthsieve.selection.coreset import coreset

    options = SelectionOptions(method="stochastic")
    with_it, without = (
        coreset(LOGITS, LABELS, options, rng=numpy_stream(0, "s"), control=control) for control in (True, False)
    )
    assert with_it.indices.tolist() == without.indices.tolist()


def test_points_computed_class_by_class():
    from synthsieve.selection.gradients import residuals_of_logits

    whole = select(labels=LABELS, gradients=residuals_of_logits(LOGITS, LABELS), refine=True)
    by_class = select(labels=LABELS, logits=LOGITS, refine=True)
    assert whole.indices.tolist() == by_class.indices.tolist()
    assert whole.assignment.tolist() == by_class.assignment.tolist()
    assert whole.gradient_error == by_class.gradient_error
