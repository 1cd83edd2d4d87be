"""`utility`: every kind of rows and of estimator, controls, refused input, and the same result from the same seed."""

import json
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import synthsieve
from synthsieve.errors import InputError
from synthsieve.evaluation.bootstrap import holm, two_sided_p_value
from synthsieve.evaluation.comparison import Verdict
from synthsieve.evaluation.utility import utility
from synthsieve.evaluation.utility_result import (
    ALL,
    LABELS_ONLY,
    METRICS,
    OVERSAMPLED,
    PERMUTED,
    RANDOM,
    SELF_LABELED,
)
from synthsieve.settings import Metric
from tests.errors import raises as refused

CLASSES = np.array(["blue", "green", "red"])


def points(n, seed, *, shape=(12,)):
    """Three Gaussian classes around different corners: rows and labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = np.random.default_rng(99).normal(size=(3, *shape)) * 0.6
    return centres[y] + rng.normal(size=(n, *shape)), CLASSES[y]


@contextmanager
def raises(error, code, words=""):
    with refused(error, code) as caught:
        yield
    assert words in str(caught.value)


LABELED, SYNTHETIC, TEST = points(9, 0), points(90, 1), points(150, 2)


def measured(estimator=None, labeled=LABELED, synthetic=SYNTHETIC, test=TEST, *, repeats=2, **more):
    tests = {} if test is None else {"X_test": test[0], "y_test": test[1]}
    more.setdefault("metrics", ())
    return utility(estimator or GaussianNB(), *labeled, synthetic, repeats=repeats, **tests, **more)


def test_rows_of_the_true_distribution_help_and_controls_do_not():
    found = measured(LogisticRegression(), metrics=METRICS)
    assert found.verdict is Verdict.HELPS
    assert found.answer.startswith("Yes: LogisticRegression has accuracy")
    scores = {arm: each[Metric.ACCURACY] for arm, each in found.scores.items()}
    assert list(scores) == [LABELS_ONLY, "1 times the labels", "3 times the labels", ALL, OVERSAMPLED, PERMUTED]
    assert scores[ALL] > scores[OVERSAMPLED] > scores[PERMUTED]
    assert scores[ALL] - scores[LABELS_ONLY] == pytest.approx(found.primary.value)
    assert found.rows == {
        LABELS_ONLY: 0,
        "1 times the labels": 9,
        "3 times the labels": 27,
        ALL: 90,
        OVERSAMPLED: 90,
        PERMUTED: 90,
    }
    assert (found.num_labels, found.num_synthetic, found.num_test, found.folds) == (9, 90, 150, None)
    assert found.compared(ALL, PERMUTED).verdict is Verdict.HELPS
    assert found.compared(ALL, metric=Metric.LOG_LOSS).value > 0


def test_rows_with_wrong_labels_hurt():
    x, y = SYNTHETIC
    found = measured(synthetic=(x, np.roll(y, 1)))
    assert found.verdict is Verdict.HURTS
    assert found.answer.startswith("No:")


def test_copies_of_the_labels_do_not_help():
    found = measured(LogisticRegression(), synthetic=(np.repeat(LABELED[0], 2, axis=0), np.repeat(LABELED[1], 2)))
    assert found.verdict is not Verdict.HELPS


def test_the_same_seed_gives_the_same_result():
    first, again, other = (measured(seed=seed).as_dict() for seed in (0, 0, 1))
    assert first == again != other
    assert json.loads(json.dumps(first)) == first


def test_the_primary_comparison_is_alone_and_the_others_are_corrected():
    found = measured(unlabeled=points(60, 3)[0], pool=points(200, 4))
    assert found.primary.primary
    assert not any(one.primary for one in found.others)
    assert {SELF_LABELED, RANDOM} <= set(found.scores)
    pairs = {(one.arm, one.against) for one in found.others}
    assert {(ALL, RANDOM), (ALL, SELF_LABELED), (SELF_LABELED, LABELS_ONLY)} <= pairs


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert two_sided_p_value(np.arange(1, 100.0)) == pytest.approx(2 / 100)
    assert two_sided_p_value(np.zeros(9)) == 1.0


def test_without_a_test_set_labels_are_held_out_in_turn():
    found = measured(labeled=points(24, 0), test=None)
    assert (found.folds, found.num_test) == (5, 24)
    assert "held out in 5 parts" in found.notes[0]
    answers = found.answers[ALL][0]
    assert answers.rows.tolist() == list(range(24))


def test_equal_labelled_rows_are_held_out_together():
    x, y = points(12, 0)
    found = measured(KNeighborsClassifier(1), labeled=(np.tile(x, (2, 1)), np.tile(y, 2)), test=None)
    alone = measured(KNeighborsClassifier(1), labeled=(x, y), test=None)
    assert found.folds == alone.folds == 4
    assert found.scores[LABELS_ONLY][Metric.ACCURACY] < 1


def test_rows_of_y_without_a_label_count_as_unlabelled():
    x, y = points(60, 0)
    partly = [label if i < 9 else None for i, label in enumerate(y)]
    found = measured(labeled=(x, partly))
    assert found.num_labels == 9
    assert found.rows[SELF_LABELED] == 51


def test_labels_of_a_teacher_for_unlabelled_rows():
    x, y = points(90, 5)
    right = measured(unlabeled=(x, y)).scores[SELF_LABELED][Metric.ACCURACY]
    wrong = measured(unlabeled=(x, np.roll(y, 1))).scores[SELF_LABELED][Metric.ACCURACY]
    assert right > wrong


# Kinds of rows.


def images(n, seed):
    return points(n, seed, shape=(2, 3, 3))


def test_images_are_flattened_for_estimators_that_need_it():
    found = measured(LogisticRegression(), images(9, 0), images(60, 1), images(90, 2))
    flat = [(x.reshape(len(x), -1), y) for x, y in (images(9, 0), images(60, 1), images(90, 2))]
    assert found.as_dict() == measured(LogisticRegression(), *flat).as_dict()


def test_data_frames_with_categories():
    pd = pytest.importorskip("pandas")

    def frame(n, seed):
        x, y = points(n, seed)
        words = pd.Series(np.where(x[:, 0] > 0, "high", "low")).astype("category")
        return pd.DataFrame({"a": x[:, 1], "b": words}), y

    few = frame(9, 0)
    few[0]["b"] = few[0]["b"].astype(str).astype("category").cat.remove_unused_categories()
    reordered = (frame(60, 1)[0][["b", "a"]], frame(60, 1)[1])
    encoder = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    assert measured(encoder, few, reordered, frame(90, 2)).num_synthetic == 60


def test_arrow_tables():
    pa = pytest.importorskip("pyarrow")

    def table(n, seed):
        x, y = points(n, seed)
        return pa.table({f"x{i}": x[:, i] for i in range(x.shape[1])}), y

    found = measured(None, table(9, 0), table(90, 1), table(150, 2))
    assert found.primary.value == pytest.approx(measured().primary.value)


def test_texts():
    words = {"blue": "sea sky", "green": "grass leaf", "red": "fire rose"}

    def texts(n, seed):
        rng = np.random.default_rng(seed)
        labels = [str(label) for label in CLASSES[np.arange(n) % 3]]
        other = list(words.values())
        return [f"{words[label]} {other[rng.integers(3)]} {rng.integers(10**6)}" for label in labels], labels

    found = measured(make_pipeline(TfidfVectorizer(), LogisticRegression()), texts(6, 0), texts(60, 1), texts(60, 2))
    assert found.estimator == "LogisticRegression"
    assert found.num_synthetic == 60


def test_sparse_matrices_and_tensors():
    sparse, torch = pytest.importorskip("scipy.sparse"), pytest.importorskip("torch")
    sets = (LABELED, SYNTHETIC, TEST)
    as_sparse = [(sparse.csr_matrix(x), y) for x, y in sets]
    as_tensors = [(torch.as_tensor(x), y) for x, y in sets]
    expected = measured(LogisticRegression()).primary.value
    assert measured(LogisticRegression(), *as_sparse).primary.value == pytest.approx(expected, abs=0.05)
    assert measured(LogisticRegression(), *as_tensors).primary.value == pytest.approx(expected)


def test_sounds_as_arrays():
    def sounds(n, seed):
        return points(n, seed, shape=(1, 4, 5))

    assert measured(LogisticRegression(), sounds(9, 0), sounds(60, 1), sounds(90, 2)).verdict is Verdict.HELPS


# Kinds of estimators.


class Torch:
    """A torch module with fit and predict, as skorch has it: no get_params, draws from torch's global generator."""

    def fit(self, X, y):
        import torch

        self.labels = np.unique(y)
        self.net = torch.nn.Linear(X.shape[1], len(self.labels))
        optimizer = torch.optim.Adam(self.net.parameters(), 0.1)
        for _ in range(20):
            optimizer.zero_grad()
            targets = torch.as_tensor(np.searchsorted(self.labels, y))
            torch.nn.functional.cross_entropy(self.net(torch.as_tensor(X).float()), targets).backward()
            optimizer.step()
        return self

    def predict(self, X):
        import torch

        return self.labels[self.net(torch.as_tensor(X).float()).argmax(dim=1).numpy()]

    def predict_proba(self, X):
        import torch

        return self.net(torch.as_tensor(X).float()).softmax(dim=1).detach().numpy()


@pytest.mark.parametrize(
    "estimator",
    [
        Torch(),
        Torch,
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        lambda random_state: LogisticRegression(random_state=random_state),
    ],
    ids=["module", "class", "factory", "seeded factory"],
)
def test_any_estimator_with_fit_and_predict(estimator):
    found = measured(estimator)
    assert found.verdict is Verdict.HELPS
    assert found.as_dict() == measured(estimator).as_dict()


def boosting(library):
    if library == "lightgbm":
        return pytest.importorskip(library).LGBMClassifier(n_estimators=20, min_child_samples=2, n_jobs=1, verbose=-1)
    return pytest.importorskip(library).XGBClassifier(n_estimators=20, n_jobs=1)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosting_of_other_libraries(library):
    number = {name: position for position, name in enumerate(sorted(set(LABELED[1])))}  # XGBoost takes 0, 1, 2, ...
    sets = [(x, np.array([number[label] for label in y])) for x, y in (LABELED, SYNTHETIC, TEST)]
    found = measured(boosting(library), *sets)
    assert found.verdict is not Verdict.HURTS
    assert found.primary.value > 0
    assert found.as_dict() == measured(boosting(library), *sets).as_dict()


def test_a_given_estimator_and_global_generators_are_left_alone():
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    given = LogisticRegression(random_state=3)
    measured(given)
    assert given.random_state == 3
    assert not hasattr(given, "coef_")
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_without_probabilities_only_predictions_are_measured():
    found = measured(RidgeClassifier(), metrics=METRICS)
    assert found.scores[ALL][Metric.LOG_LOSS] is None
    assert found.scores[ALL][Metric.BALANCED_ACCURACY] is not None
    assert "no probabilities" in found.notes[-1]
    with raises(InputError, "needs-probabilities"):
        measured(RidgeClassifier(), metric="log-loss")


def test_weights_reach_the_estimator_and_a_pipeline():
    x, y = SYNTHETIC
    wrong = np.arange(90) >= 45
    labels = np.where(wrong, np.roll(y, 1), y)
    weights = np.where(wrong, 0.0, 1.0)
    for estimator in (GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())):
        ignored = measured(estimator, synthetic=(x, labels), weights=weights).primary.value
        assert ignored > measured(estimator, synthetic=(x, labels)).primary.value


# Refused input.


def test_leaks_are_named_and_can_be_dropped():
    x, y = (part.copy() for part in SYNTHETIC)
    x[7] = TEST[0][21]
    with raises(InputError, "leak", words="row 7 of synthetic = row 21 of X_test"):
        measured(synthetic=(x.astype(np.float32), y), test=(TEST[0].astype(np.float32), TEST[1]))
    found = measured(synthetic=(x, y), drop_leaks=True)
    assert found.num_synthetic == 89
    assert "1 rows of synthetic" in found.notes[0]
    with raises(InputError, "leak", words="row 2 of X = row 0 of X_test"):
        measured(labeled=(np.concatenate([LABELED[0][:2], TEST[0][:1], LABELED[0][3:]]), LABELED[1]))


def test_copies_of_labelled_rows_leak_only_where_labels_measure():
    copies = (np.concatenate([SYNTHETIC[0], LABELED[0][:1]]), np.append(SYNTHETIC[1], LABELED[1][0]))
    assert measured(synthetic=copies).num_synthetic == 91
    with raises(InputError, "leak", words="row 90 of synthetic = row 0 of X"):
        measured(synthetic=copies, test=None)


class NoPredict(BaseEstimator):
    def fit(self, X, y):
        return self


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("different-shapes", {"synthetic": points(9, 0, shape=(5,))}),
        ("different-shapes", {"test": points(9, 3, shape=(5,))}),
        ("unseen-label", {"synthetic": (SYNTHETIC[0], np.where(np.arange(90) == 3, "violet", SYNTHETIC[1]))}),
        ("unseen-label", {"test": (TEST[0], np.where(np.arange(150) == 3, "violet", TEST[1]))}),
        ("different-lengths", {"synthetic": (SYNTHETIC[0], SYNTHETIC[1][:-1])}),
        ("different-lengths", {"labeled": (LABELED[0], LABELED[1][:-1])}),
        ("not-a-pair", {"synthetic": SYNTHETIC[0]}),
        ("no-rows", {"synthetic": (SYNTHETIC[0][:0], SYNTHETIC[1][:0])}),
        ("one-class", {"labeled": (LABELED[0], ["red"] * 9)}),
        ("no-predict", {"estimator": NoPredict()}),
        ("no-fit", {"estimator": object}),
        ("no-sample-weight", {"estimator": KNeighborsClassifier(), "weights": np.ones(90)}),
        ("bad-weights", {"weights": np.ones(89)}),
        ("bad-weights", {"weights": -np.ones(90)}),
        ("unknown-metric", {"metric": "r2"}),
        ("invalid-parameter", {"repeats": 0}),
        ("estimator-failed", {"labeled": (np.full((9, 12), np.nan), LABELED[1])}),
        ("too-few-labels", {"labeled": (LABELED[0][:3], LABELED[1][:3]), "test": None}),
    ],
)
def test_refused(code, change):
    with raises(InputError, code):
        measured(**change)


def test_the_error_for_a_torch_module_names_skorch():
    torch = pytest.importorskip("torch")
    with raises(InputError, "no-predict", words="skorch"):
        measured(torch.nn.Linear(12, 3))


def test_different_columns_are_named():
    pd = pytest.importorskip("pandas")
    frames = [(pd.DataFrame(x, columns=list("abcdefghijkl")), y) for x, y in (LABELED, SYNTHETIC, TEST)]
    frames[1] = (frames[1][0].rename(columns={"d": "weight"}), frames[1][1])
    with raises(InputError, "different-columns", words="lacks 'd' and also has 'weight'"):
        measured(None, *frames)


def test_public_function_charts_and_display(tmp_path):
    found = synthsieve.utility(GaussianNB(), *LABELED, SYNTHETIC, X_test=TEST[0], y_test=TEST[1], repeats=2)
    assert "<svg" in found._repr_html_()
    path = found.save_chart(tmp_path / "utility.svg")
    assert path.read_text(encoding="utf-8").startswith("<svg")
    assert found.answer in str(found)
