"""The classifier: scikit-learn's contract, accepted inputs, fitting, and errors."""

import io
import json
import os
import tempfile
import warnings
from contextlib import redirect_stderr

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from synthsieve import LatentEBMClassifier
from synthsieve.data.in_memory import MAX_COLUMNS, guess_kind
from synthsieve.data.labels import read_groups, read_targets
from synthsieve.errors import CheckpointError, InputError, SynthsieveError
from synthsieve.estimators import classifier as estimator_module
from synthsieve.estimators.classifier import _threads_of
from synthsieve.io.tensors import signed
from synthsieve.results.export.media import write_wav
from tests.errors import raises

SMALL = {
    "model.encoder_width": 32,
    "model.generator_width": 32,
    "model.energy_width": 32,
    "sampling.training_steps": 5,
    "sampling.num_steps": 10,
    "augmentation.steps": 10,
    "augmentation.pool_size": 100,
    "training.generator_ratio": 0.5,
}
STRINGS = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else object  # NumPy 2
EQUIVALENT = "steps see random mini-batches: a weight of two is a row twice in expectation, not to the last bit"
EXPECTED_FAILURES = {
    "check_classifiers_classes": "it uses -1 as a class, and -1 means unlabelled here, as in sklearn.semi_supervised",
    "check_sample_weight_equivalence_on_dense_data": EQUIVALENT,
    "check_sample_weight_equivalence_on_sparse_data": EQUIVALENT,
}


def small(**arguments):
    return LatentEBMClassifier(**{"max_iter": 40, "random_state": 0, "settings": SMALL, **arguments})


@parametrize_with_checks([small()], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    return rng.normal(0, 1, (120, 4)) + 4 * np.eye(3, 4)[y], y


@pytest.fixture(scope="module")
def fitted(clouds):
    x, y = clouds
    return small(max_iter=150).fit(x, np.where(np.arange(120) < 60, y, -1))


def test_evaluate_gives_every_metric_and_leaves_unlabelled_rows_out(fitted, clouds):
    x, y = clouds
    found = fitted.evaluate(x, y)
    assert found.count == 120
    assert found.accuracy == fitted.score(x, y)
    assert np.sum(found.confusion) == 120
    assert found.auroc > 0.9
    some = np.where(np.arange(120) < 30, y, -1)
    assert fitted.evaluate(x, some).count == 30
    with raises(InputError, "different-lengths"):
        fitted.evaluate(x[:5], y)


@pytest.fixture(scope="module")
def vectors(clouds):
    return small(max_iter=2, modality="vector").fit(*clouds)


def test_few_labels_and_many_rows_without_are_enough(fitted, clouds):
    x, y = clouds
    assert fitted.score(x[60:], y[60:]) > 0.85
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.n_iter_ == 150
    assert fitted.stopped_because_ == "all 150 steps were done"
    assert fitted.history_[-1]["step"] == 150
    assert {"elbo", "contrast", "cross_entropy"} <= set(fitted.history_[-1])


def test_unlabelled_rows_may_come_apart(clouds):
    x, y = clouds
    within = small().fit(x, np.where(np.arange(120) < 30, y, -1))
    apart = small().fit(x[:30], y[:30], unlabeled_X=x[30:])
    assert np.array_equal(within.predict_proba(x), apart.predict_proba(x))


@pytest.mark.parametrize(
    ("labels", "hidden"),
    [
        (np.array(["ant", "bee", "cat"]), ""),
        (np.array(["ant", "bee", "cat"], dtype=object), None),
        (np.array(["ant", "bee", "cat"], dtype=object), float("nan")),
        (np.array([3, 5, 9]), -1),
        (np.array([3.0, 5.0, 9.0]), np.nan),
        (np.array([3, 5, 9], dtype=object), pd.NA),
    ],
)
def test_any_labels_and_any_word_for_unlabelled(clouds, fitted, labels, hidden):
    x, y = clouds
    given = labels[y].copy()
    given[60:] = hidden
    estimator = small(max_iter=150).fit(x, given)
    assert estimator.classes_.tolist() == labels.tolist()
    assert np.array_equal(estimator.predict_proba(x), fitted.predict_proba(x))
    assert set(estimator.predict(x)) <= set(labels.tolist())


@pytest.mark.parametrize(
    ("given", "classes", "y"),
    [
        (["ant", "bee", float("nan")], ["ant", "bee"], [0, 1, -1]),
        (["ant", "bee", -1], ["ant", "bee"], [0, 1, -1]),
        ([7, 3, ""], [3, 7], [1, 0, -1]),
        ([True, None, False], [False, True], [1, -1, 0]),
        (torch.tensor([2.0, 1.0, -1.0], requires_grad=True), [1, 2], [1, 0, -1]),
        (pd.to_datetime(["2021", "2020", None]), pd.to_datetime(["2020", "2021"]).to_numpy().tolist(), [1, 0, -1]),
        (pd.array([True, False, None], dtype="boolean"), [False, True], [1, 0, -1]),
        (pd.Categorical(["b", "a", None]), ["a", "b"], [1, 0, -1]),
        (pa.chunked_array([["b", "a", None]]), ["a", "b"], [1, 0, -1]),
        (np.array(["b", "a", ""], dtype=STRINGS), ["a", "b"], [1, 0, -1]),
    ],
)
def test_labels_of_any_container_keep_their_type(given, classes, y):
    targets = read_targets(given)
    assert targets.classes.tolist() == classes
    assert targets.y.tolist() == y


@pytest.mark.parametrize("given", [[1, "1"], np.array([1, "1"], dtype=object), [1.5, "a", None]])
def test_text_beside_numbers_is_refused(given):
    with raises(SynthsieveError, "mixed-labels"):
        read_targets(given)


def test_a_marker_for_unlabelled_that_became_text_is_noted(clouds):
    x, y = clouds
    with pytest.warns(UserWarning, match="'-1' is taken as a class"):
        small(max_iter=1).fit(x, np.where(np.arange(120) < 60, np.array(["a", "b", "c"])[y], "-1"))


def as_frame(x):
    return pd.DataFrame(x, columns=list("abcd"))


def test_numbers_in_any_container_are_the_same_vectors(fitted, clouds):
    x, _ = clouds
    expected = fitted.predict_proba(x)
    for given in (x.tolist(), sparse.csr_matrix(x), sparse.csr_array(x), torch.from_numpy(x), np.asfortranarray(x)):
        assert np.array_equal(fitted.predict_proba(given), expected)


@pytest.mark.parametrize("make", [as_frame, lambda x: pa.Table.from_pandas(as_frame(x))], ids=["pandas", "arrow"])
def test_a_table_of_numbers_goes_in_and_comes_out_as_one(clouds, make):
    x, y = clouds
    estimator = small().fit(make(x), y)
    assert estimator.score(make(x), y) > 0.8
    drawn, labels = estimator.sample(4)
    assert type(drawn) is type(make(x))
    assert (list(drawn.columns) if make is as_frame else drawn.column_names) == list("abcd")
    assert labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_the_same_numbers_give_the_same_model_in_a_data_frame_and_in_an_array(clouds, tmp_path):
    x, y = clouds
    x = np.column_stack([x, np.round(np.exp(x[:, 0]), 1), np.arange(120) % 5])  # skewed, and of few values
    of_frame, of_array = (small(max_iter=10).fit(given, np.where(y == 2, -1, y)) for given in (pd.DataFrame(x), x))
    expected = of_frame.predict_proba(pd.DataFrame(x))
    again = LatentEBMClassifier.load(of_array.save(tmp_path / "a"))
    for estimator in (of_array, again):
        assert np.array_equal(estimator.predict_proba(x), expected)
        drawn, _ = estimator.sample(5)
        assert isinstance(drawn, np.ndarray)
        assert np.array_equal(drawn, of_frame.sample(5)[0].to_numpy())
        assert set(drawn[:, 5]) <= set(range(5))
    with pytest.raises(ValueError, match="NaN"):
        of_array.predict(np.full((1, 6), np.nan))


def test_rows_of_more_numbers_than_a_table_has_are_vectors(clouds):
    _, y = clouds
    x = np.random.default_rng(0).normal(size=(120, MAX_COLUMNS + 1)) + y[:, None]
    assert small(max_iter=1).fit(x, y).held_.kind == "vector"
    assert small(max_iter=1).fit(x[:, 1:], y).held_.kind == "table"
    assert small(max_iter=1, modality="vector").fit(x[:, 1:], y).held_.kind == "vector"


def test_a_series_of_sentences_is_text():
    sentences = pd.Series(["a good day", "a bad day"] * 20)
    assert guess_kind(sentences) == guess_kind(sentences.to_numpy()) == guess_kind(sentences.tolist()) == "text"
    assert (
        guess_kind(pd.Series([1.0, 2.0])) == "vector"
    )  # which scikit-learn then refuses: one number a row is no table


class Stream:
    """What polars and others show of a table: Arrow's stream, and neither a length nor a shape."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_an_arrow_stream_a_record_batch_and_an_array_are_read_as_the_table_that_was_learned_from(clouds):
    x, y = clouds
    table = pa.Table.from_pandas(as_frame(x))
    estimator = small(max_iter=3).fit(Stream(table), y)
    assert estimator.n_features_in_ == 4
    expected = estimator.predict_proba(table)
    for given in (Stream(table), table.to_batches()[0], table.to_reader(), table.select(list("dcba")), x, as_frame(x)):
        assert np.array_equal(estimator.predict_proba(given), expected)


def test_a_data_frame_comes_back_with_its_names_and_types(tmp_path):
    frame = pd.DataFrame(
        {
            0: np.arange(60.0) % 7,
            1: pd.array([1, 2, None] * 20, dtype="Int64"),
            2: pd.array([True, False, None] * 20, dtype="boolean"),
            3: pd.Categorical(["u", "v", "w"] * 20),
            4: pd.array(["q", "r", None] * 20, dtype="string"),
            5: pd.date_range("2020", periods=60),
        },
        index=range(100, 160),
    )
    estimator = small(max_iter=3).fit(frame, pd.Series(np.arange(60) % 3, index=range(60)))
    for fitted_so in (estimator, LatentEBMClassifier.load(estimator.save(tmp_path / "a"))):
        drawn, _ = fitted_so.sample(20)
        assert drawn.columns.tolist() == frame.columns.tolist()
        for name in range(5):
            assert type(drawn[name].dtype) is type(frame[name].dtype)
        assert fitted_so.predict(drawn).shape == (60,)
    LatentEBMClassifier.load(rewritten(tmp_path / "a", lambda header: header["held"].update(frame="{]"))).sample(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: x.astype(np.float32),
        lambda x: 255 * x,
        lambda x: 2 * x - 1,
        lambda x: 16 * x,
        lambda x: np.rint(16 * x).astype(np.uint8),
        lambda x: 3 * x - 7,
        lambda x: x[:, :7, :5],
        lambda x: (255 * x).astype(np.uint8),
        lambda x: (255 * x).astype(int)[:, None],
        lambda x: x > 0.5,
        lambda x: np.stack([x, x, x], axis=3),
        torch.from_numpy,
    ],
)
def test_images_come_back_in_the_form_they_came_in(make, tmp_path):
    images = make(np.random.default_rng(0).random((40, 8, 8)))
    estimator = small(max_iter=3).fit(images, np.arange(40) % 2)
    drawn, _ = LatentEBMClassifier.load(estimator.save(tmp_path / "a")).sample(3)
    given = np.asarray(images)
    assert (drawn.dtype, drawn.shape[1:]) == (given.dtype, given.shape[1:])
    assert given.min() - 0.5 <= drawn.min() <= drawn.max() <= given.max() + 0.5
    assert np.ptp(drawn.astype(float)) > 0
    assert estimator.predict(drawn).shape == (6,)


def test_unlabelled_images_may_be_bytes_beside_floats():
    images, y = np.random.default_rng(0).integers(0, 256, (40, 8, 8)).astype(np.uint8), np.arange(20) % 2
    ours = small(max_iter=3).fit(images[:20] / 255.0, y, unlabeled_X=images[20:])
    other_values = small(max_iter=3).fit(images[:20] / 255.0, y, unlabeled_X=images[20:] / 255.0)
    np.testing.assert_allclose(ours.predict_proba(images), other_values.predict_proba(images), atol=1e-4)
    small(max_iter=1).fit(images[:20], y, unlabeled_X=images[:0])
    for given in (np.zeros((3, 12, 12)), np.zeros((3, 8))):
        with raises(InputError, "different-shapes"):
            small(max_iter=1).fit(images[:20], y, unlabeled_X=given)


def test_images_of_any_range_are_learned_from_alike(tmp_path):
    images, y = np.random.default_rng(0).integers(0, 17, (40, 8, 8)), np.arange(40) % 2
    unit = small(max_iter=3).fit(images / 16, y)
    for given in (images, images.astype(np.uint8), images * 1.0, images * 1000.0):
        estimator = small(max_iter=3).fit(given, y)
        assert estimator.notes_ == (f"pixel values 0 to {given.max():g} are scaled to [-1, 1]",)
        loaded = LatentEBMClassifier.load(estimator.save(tmp_path / "a"))
        dark = given[:5] // 4  # new images by the range of training, not by their own
        for fitted_so in (estimator, loaded):
            np.testing.assert_allclose(fitted_so.predict_proba(dark), unit.predict_proba(dark / given.max()), atol=1e-5)


def test_new_pixel_values_outside_the_range_are_clipped_with_a_warning_or_refused():
    images, y = np.random.default_rng(0).integers(0, 17, (40, 8, 8)), np.arange(40) % 2
    estimator = small(max_iter=1).fit(images, y)
    with pytest.warns(UserWarning, match="outside the range of training, 0 to 16"):
        found = estimator.predict_proba(np.where(images == 16, 20, images))
    np.testing.assert_array_equal(found, estimator.predict_proba(images))
    with raises(InputError, "pixel-range"):
        estimator.predict(images * 10)


def test_the_range_is_that_of_labelled_and_unlabelled_images():
    images, y = np.random.default_rng(0).integers(0, 17, (40, 8, 8)), np.arange(20) % 2
    images[:20] //= 4
    assert small(max_iter=1).fit(images[:20], y, unlabeled_X=images[20:]).encoding_.form.value_range == (0, 16)


def test_masked_cells_are_missing(clouds):
    x, y = clouds
    masked = np.ma.masked_greater(x, 1)
    with raises(InputError, "missing-values"):
        small(max_iter=1).fit(masked, y)
    as_table = small(max_iter=2, modality="table").fit(masked, y)
    other = small(max_iter=2, modality="table").fit(masked.filled(np.nan), y)
    np.testing.assert_array_equal(as_table.predict_proba(masked), other.predict_proba(masked.filled(np.nan)))
    assert not np.array_equal(as_table.predict_proba(masked), as_table.predict_proba(x))
    vectors = small(max_iter=2).fit(np.ma.masked_array(x, False), np.ma.masked_array(y, np.arange(len(y)) > 20))
    hidden = small(max_iter=2).fit(x, np.where(np.arange(len(y)) > 20, -1, y))
    np.testing.assert_array_equal(vectors.predict_proba(x), hidden.predict_proba(x))
    with raises(InputError, "missing-values"):
        vectors.predict(masked)


def test_dates_are_no_vectors(clouds):
    with raises(InputError, "not-numbers"):
        small().fit(np.zeros((4, 2), "datetime64[s]"), [0, 1, 0, 1])


def test_texts_may_be_missing_and_come_in_any_column():
    texts, y = ["good day", "bad night", None, "good night"] * 5, [1, 0, -1, 1] * 5
    estimator = small(max_iter=3).fit(texts, y)
    expected = estimator.predict_proba(texts)
    frame = pd.DataFrame({"said": texts})
    for given in (frame["said"], frame, np.array(texts, dtype=object)[:, None], pa.array(texts), pa.table(frame)):
        assert np.array_equal(estimator.predict_proba(given), expected)
    assert estimator.predict(["", None]).shape == (2,)
    for given, words in (("good", "single one"), (frame.assign(b=1), "one text a row"), ([["a"]], "must be a str")):
        with pytest.raises(InputError, match=words):
            estimator.predict(given)


def test_paths_of_wav_files_are_sounds_and_drawn_sounds_go_in_again(tmp_path):
    sounds = np.random.default_rng(0).normal(0, 0.1, (8, 2000))
    paths = [tmp_path / f"{i}.wav" for i in range(8)]
    for path, sound in zip(paths, sounds, strict=True):
        write_wav(path, sound, 8000)
    estimator = small(max_iter=2).fit([str(path) for path in paths], [0, 1] * 4)
    assert estimator.held_.kind == "sound"
    assert estimator.predict(estimator.sample(2)[0]).shape == (4,)
    with pytest.raises(InputError, match=r"gone\.wav"):
        estimator.predict([tmp_path / "gone.wav"])


def test_a_row_s_answer_does_not_depend_on_its_neighbours(fitted, clouds):
    x, _ = clouds
    for method in ("predict_proba", "transform", "score_samples"):
        answer = getattr(fitted, method)
        assert np.array_equal(answer(x)[[7]], answer(x[[7]]))


def test_the_elbo_is_higher_where_the_data_are(fitted, clouds):
    x, _ = clouds
    assert fitted.score_samples(x).mean() > fitted.score_samples(x + 30).mean() + 10


def test_the_same_random_state_gives_the_same_bytes_and_none_gives_others(clouds):
    x, y = clouds
    first, second = (small().fit(x, y) for _ in range(2))
    assert np.array_equal(first.predict_proba(x), second.predict_proba(x))
    assert np.array_equal(first.sample(3)[0], second.sample(3)[0])
    assert not np.array_equal(first.sample(3)[0], first.sample(3, random_state=1)[0])
    assert not np.array_equal(*(first.sample(3, random_state=None)[0] for _ in range(2)))
    with raises(InputError, "invalid-parameter"):
        first.sample(2.5)
    state = np.random.RandomState(0)
    assert (
        small(random_state=state, max_iter=2).fit(x, y).seed_ != small(random_state=state, max_iter=2).fit(x, y).seed_
    )
    assert small(random_state=None, max_iter=2).fit(x, y).seed_ != small(random_state=None, max_iter=2).fit(x, y).seed_


def test_weights_count_and_a_weight_of_nothing_leaves_a_row_out(clouds):
    x, y = clouds
    wrong = np.where(np.arange(120) < 60, (y + 1) % 3, y)
    weights = np.where(np.arange(120) < 60, 0.0, 2.0)
    without = small().fit(x[60:], y[60:], sample_weight=weights[60:])
    assert np.array_equal(small().fit(x, wrong, sample_weight=weights).predict_proba(x), without.predict_proba(x))
    mixed = small(max_iter=80).fit(x, wrong, sample_weight=np.where(np.arange(120) < 60, 0.02, 1.0))
    assert mixed.score(x, y) > 0.8


def test_settings_are_chosen_by_the_data_unless_given(clouds):
    x, y = clouds
    assert small(max_iter=1, modality="vector").fit(x, y).settings_.model.latent_dim == 4
    wide = np.random.default_rng(0).normal(0, 1, (120, 200))
    assert small(max_iter=1).fit(wide, y).settings_.model.latent_dim == 64
    towers = small(max_iter=1, latent_dim=1).fit(x, y).settings_.model
    assert (towers.latent_dim, towers.label_latent_dim) == (1, 0)
    messages = small(max_iter=1, latent_dim=7, settings={"model": {"energy_width": 16}}).fit(x, y)
    assert (messages.settings_.model.latent_dim, messages.settings_.model.energy_width) == (7, 16)
    image = small(max_iter=1).fit(np.random.default_rng(0).random((120, 8, 8)), y)
    assert (image.held_.kind, image.encoding_.input_spec.shape) == ("image", (1, 8, 8))


def test_validation_rows_choose_the_weights_where_there_are_labels_enough(clouds):
    x, y = clouds
    assert "validation_accuracy" not in small().fit(x, y).history_[0]
    kept = small(validation_fraction=0.2).fit(x, y)
    assert all("validation_accuracy" in row for row in kept.history_)


class Clock:
    """A clock that moves on whenever it is read: by `tick` seconds, after `quick` readings by `slow`."""

    def __init__(self, tick, *, quick=10**9, slow=0.0):
        self.now, self.tick, self.quick, self.slow = 0.0, tick, quick, slow

    def monotonic(self):
        self.quick -= 1
        self.now += self.tick if self.quick >= 0 else self.slow
        return self.now


def test_max_time_is_used_and_kept_whatever_max_iter_says(clouds, monkeypatch):
    x, y = clouds
    clock = Clock(0.1)  # it is read once a step
    monkeypatch.setattr("synthsieve.estimators.classifier.time", clock)
    estimator = small(max_iter=1_000_000, max_time=3.0).fit(x, y)
    assert estimator.stopped_because_ == f"all {estimator.n_iter_} steps were done"
    assert estimator.n_iter_ > 5
    assert 2.4 < clock.now <= 3.0
    assert small(max_iter=3, max_time=60.0).fit(x, y).n_iter_ == 3


def test_max_time_ends_a_fit_that_becomes_slower_than_its_first_steps(clouds, monkeypatch):
    x, y = clouds
    clock = Clock(0.01, quick=20, slow=0.5)
    monkeypatch.setattr("synthsieve.estimators.classifier.time", clock)
    estimator = small(max_iter=1_000_000, max_time=3.0).fit(x, y)
    assert estimator.stopped_because_ == "max_time of 3 s was reached"
    assert 5 < estimator.n_iter_ < 20
    assert 3.0 <= clock.now < 3.5  # at most one step late


def test_it_works_in_a_pipeline_a_grid_search_and_through_joblib(clouds, tmp_path):
    x, y = clouds
    pipeline = make_pipeline(StandardScaler(), small(max_iter=20))
    assert pipeline.fit(x, y).score(x, y) > 0.5
    grid = {"latentebmclassifier__latent_dim": [3, 4]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, error_score="raise", refit=True).fit(x[:60], y[:60])
    assert search.best_params_["latentebmclassifier__latent_dim"] in (3, 4)
    joblib.dump(search.best_estimator_, tmp_path / "a.joblib")
    again = joblib.load(tmp_path / "a.joblib")
    assert np.array_equal(again.predict_proba(x), search.predict_proba(x))
    assert clone(small(latent_dim=9)).get_params() == small(latent_dim=9).get_params()


def test_transform_returns_a_frame_if_asked_and_tags_describe_it(clouds):
    x, y = clouds
    estimator = small(max_iter=5).set_output(transform="pandas").fit(x, y)
    frame = estimator.transform(x[:4])
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(estimator.get_feature_names_out())
    tags = get_tags(estimator)
    assert (tags.estimator_type, tags.input_tags.sparse, tags.target_tags.required) == ("classifier", True, True)
    scores = cross_val_score(small(max_iter=5), x, y, cv=2, error_score="raise")
    assert np.all((scores >= 0) & (scores <= 1))


def test_saved_and_loaded_it_says_and_draws_the_same(fitted, clouds, tmp_path):
    x, _ = clouds
    path = fitted.save(tmp_path / "a.safetensors")
    again = LatentEBMClassifier.load(path)
    for method in ("predict", "predict_proba", "transform", "score_samples"):
        assert np.array_equal(getattr(again, method)(x), getattr(fitted, method)(x))
    assert np.array_equal(again.sample(5)[0], fitted.sample(5)[0])
    assert again.get_params() == fitted.get_params()
    assert (again.history_, again.stopped_because_) == (fitted.history_, fitted.stopped_because_)
    assert again.classes_.dtype == fitted.classes_.dtype
    with raises(InputError, "no-training-data"):
        again.augment()


def test_damaged_files_are_refused_in_one_sentence(fitted, tmp_path):
    path = fitted.save(tmp_path / "a.safetensors")
    whole = path.read_bytes()
    with safe_open(path, framework="pt") as file:
        assert json.loads(file.metadata()["synthsieve"])["versions"]["torch"]
    for spoiled in (b"", whole[:1000], whole[:-4] + b"\0\1\2\3", whole.replace(b'\\"settings\\"', b'\\"sattings\\"')):
        path.write_bytes(spoiled)
        with pytest.raises(CheckpointError):
            LatentEBMClassifier.load(path)
    with raises(CheckpointError, "missing-file"):
        LatentEBMClassifier.load(tmp_path / "none")
    with raises(InputError, "folder"):
        fitted.save(tmp_path)


def rewritten(path, change):
    """The file with another header, its tensors untouched."""
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["synthsieve"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    del header["header_sha256"]
    text = change(header)
    save_file(tensors, path, metadata={"synthsieve": text if isinstance(text, str) else signed(json.dumps(header))})
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["settings"]["model"].update(encoder_width=65536, encoder_depth=1000),
        lambda header: header["settings"]["model"].update(latent_dim=65536),
        lambda header: header["settings"]["model"].update(energy_layers=10**12),
        lambda header: header["encoding"].update(mean=[0.0] * 10**5, scale=[1.0] * 10**5),
        lambda header: header["encoding"].update(mean=[float("nan")] * 4),
        lambda header: header["classes"].update(values=list(range(10**5))),
        lambda header: header["classes"].update(values=[1, 1, 1]),
        lambda header: header["classes"].update(values=[1, 2, 10**400]),
        lambda header: header["held"].update(kind="table"),
        lambda header: header["held"].update(images={"axes": "hw", "dtype": "O", "value_range": None}),
        lambda header: header["held"].update(frame="{}"),
        lambda header: header["held"].update(array=True),
        lambda header: header["held"].update(array="yes"),
        lambda header: header.update(n_iter=float("inf")),
        lambda header: header.update(items=["a"]),
        lambda header: header.update(parameters=["a"]),
        lambda header: "[" * 100_000,
    ],
)
def test_a_header_that_claims_anything_is_refused_in_one_sentence_before_memory_is_taken(vectors, tmp_path, change):
    path = rewritten(vectors.save(tmp_path / "a"), change)
    with pytest.raises(CheckpointError) as caught:
        LatentEBMClassifier.load(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_augment_compares_on_held_out_labels_and_writes_no_file(fitted, clouds, tmp_path, monkeypatch):
    x, y = clouds
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with raises(InputError, "incomplete-test-set"):
        fitted.augment(y_test=y)
    done = fitted.augment(X_test=x[60:], y_test=y[60:], coreset_fraction=0.3)
    assert [arm.name.split(",")[0] for arm in done.paired_comparison.arms] == [
        "real only",
        "entropy + CRAIG",
        "entropy + CRAIG + PL",
    ]
    assert done.paired_comparison.num_items == (60,)
    assert len(done.X) == len(done.y) == len(done.sample_weight) == len(done.pool.selected) > 0
    assert len(done.pool) == 99
    assert done.sample_weight.mean() == pytest.approx(1)
    assert set(done.y.tolist()) <= {0, 1, 2}
    assert done.helped == (done.paired_comparison.comparisons[0].interval[0] > 0)
    assert done.classifier.predict(x).shape == (120,)
    assert "synthetic examples kept of 99 drawn" in str(done)
    assert not list(tmp_path.iterdir())


def test_augment_goes_on_from_a_fit_that_the_clock_ended(clouds, monkeypatch):
    x, y = clouds
    requested = iter(range(100))
    monkeypatch.setattr(estimator_module, "_clock", lambda *_: lambda: "time is up" if next(requested) == 4 else None)
    estimator = small(max_time=60, max_iter=20).fit(x, y)
    assert (estimator.n_iter_, estimator.stopped_because_) == (5, "time is up")
    assert estimator.augment(X_test=x, y_test=y).paired_comparison.num_items == (120,)


def test_without_a_test_set_the_comparison_is_by_cross_fitting(clouds):
    x, y = clouds
    done = small(max_iter=10).fit(x, np.where(np.arange(120) < 31, y, -1)).augment(cv=2)
    assert sum(done.paired_comparison.num_items) == 31
    lonely = small(max_iter=2).fit(x[:4], y[:4])
    with raises(InputError, "too-few-labels"):
        lonely.augment()


def test_embeddings_are_learned_from_and_their_items_come_back(clouds, tmp_path):
    x, y = clouds
    items = np.array([f"item {i} of {label}" for i, label in enumerate(y)])
    estimator = small().fit(items, y, features=x)
    drawn, labels = estimator.sample(5)
    assert set(drawn) <= set(items)
    assert labels.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert estimator.as_given(x[:7].astype(np.float32)).tolist() == items[:7].tolist()
    again = LatentEBMClassifier.load(estimator.save(tmp_path / "a"))
    assert again.sample(5)[0].tolist() == drawn.tolist()
    assert estimator.predict(x).shape == (120,)
    with raises(InputError, "different-lengths"):
        small().fit(items[:-1], y, features=x)
    frame = pd.DataFrame({"name": items, "price": 1.0})
    shown, _ = small(max_iter=2, modality="table").fit(frame, y, features=pd.DataFrame(x)).sample(2)
    assert shown.columns.tolist() == ["name", "price"]
    ragged = [np.arange(i % 3 + 1) for i in range(120)]
    assert len(small(max_iter=2).fit(ragged, y, features=x).sample(2)[0]) == 6


def test_groups_stay_on_one_side(clouds):
    x, y = clouds
    groups = np.repeat(np.arange(12), 10)
    estimator = small(max_iter=2, validation_fraction=0.25).fit(x, y, groups=groups)
    split = estimator._pretrained.data.split
    assert not set(groups[split.validation]) & set(groups[split.labeled])
    assert read_groups(["b", None, "a", float("nan"), "b"], 5).tolist() == [0, 1, 2, 3, 0]
    with raises(InputError, "group-shape"):
        small().fit(x, y, groups=groups[:5], sample_weight=np.ones(120))


def test_verbose_tells_and_silence_is_the_default(clouds):
    x, y = clouds
    output = io.StringIO()
    with redirect_stderr(output):
        small(max_iter=3).fit(x, y)
    assert output.getvalue() == ""
    with redirect_stderr(output):
        small(max_iter=3, verbose=True).fit(x, y)
    assert "fit: 3/3" in output.getvalue()


def test_a_fit_that_fails_leaves_no_half_and_no_folder_and_the_threads_as_they_were(clouds, tmp_path, monkeypatch):
    x, y = clouds
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        estimator = small(max_iter=2).fit(as_frame(x), y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            estimator.fit(["one two", "three four"] * 4, [0, 1] * 4)
        assert not hasattr(estimator, "feature_names_in_")
        assert not list(tmp_path.iterdir())  # everything is in memory
        estimator.set_params(settings={"training.prior_learning_rate": 1e30, "training.elbo_learning_rate": 1e30})
        with pytest.raises(SynthsieveError):
            estimator.set_params(max_iter=50).fit(x, y)
        with pytest.raises(NotFittedError):
            estimator.predict(x)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_threads_are_counted_as_joblib_does_and_never_beyond_the_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert [_threads_of(n) for n in (1, 3, 10**9, -1, -2, -9)] == [1, 3, 4, 4, 3, 1]
    for bad in (0, 1.0, "2"):
        with raises(InputError, "invalid-parameter"):
            _threads_of(bad)


def test_max_time_that_reading_took_already_still_leaves_a_model(clouds):
    x, y = clouds
    with pytest.warns(ConvergenceWarning, match=r"practically untrained: only 1 of 40 steps"):
        estimator = small(max_time=1e-6).fit(x, y)
    assert (estimator.n_iter_, estimator.stopped_because_) == (1, "max_time of 1e-06 s was reached")
    assert estimator.predict(x).shape == (120,)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"y": lambda x, y: np.full(120, -1)}, "too-few-classes"),
        ({"y": lambda x, y: np.arange(120)}, "not-classes"),
        ({"y": lambda x, y: [None, *np.arange(119) / 7]}, "not-classes"),
        ({"x": lambda x, y: pd.DataFrame({"a": [2**70] * 120, "b": y})}, "unreadable-table"),
        ({"y": lambda x, y: y[:-1]}, "different-lengths"),
        ({"y": lambda x, y: None}, "no-labels"),
        ({"x": lambda x, y: np.where(x > 3, np.nan, x)}, "missing-values"),
        ({"x": lambda x, y: x[:0]}, None),
        ({"x": lambda x, y: pd.DataFrame(x, columns=list("aabc"))}, "repeated-column"),
        ({"max_time": 0}, "invalid-parameter"),
        ({"max_time": "5"}, "invalid-parameter"),
        ({"max_iter": 2.5}, "bad-max-iter"),
        ({"random_state": "a"}, "invalid-parameter"),
        ({"modality": None}, "modality"),
        ({"settings": "a.toml"}, "invalid-parameter"),
        ({"settings": {"seed": 3}}, "seed-in-settings"),
        ({"settings": {"training.stepz": 3}}, "unknown-setting"),
        ({"settings": {"training.steps": "many"}}, "bad-setting"),
        ({"preset": "svhn-cpi"}, "unknown-preset"),
        ({"modality": "smell"}, "unknown-modality"),
        ({"modality": "image"}, "modality"),
        ({"sample_weight": np.zeros(120)}, None),
        ({"unlabeled_X": np.zeros((3, 5))}, None),
    ],
)
def test_bad_input_is_one_clear_sentence(clouds, change, code):
    """`code` is None for errors of scikit-learn's own checks."""
    x, y = clouds
    x, y = change.pop("x", lambda x, y: x)(x, y), change.pop("y", lambda x, y: y)(x, y)
    given = {name: change.pop(name) for name in ("sample_weight", "unlabeled_X") if name in change}
    with pytest.raises(ValueError) as caught:
        small(**{"max_iter": 2, **change}).fit(x, y, **given)
    assert getattr(caught.value, "code", None) == code
    assert code is None or "\n" not in str(caught.value)


def test_every_method_refuses_before_fit(clouds):
    for ask in (lambda e: e.sample(), lambda e: e.predict(clouds[0]), lambda e: e.augment(), lambda e: e.save("x")):
        with pytest.raises(NotFittedError):
            ask(small())


def test_huge_sparse_matrices_are_refused_before_they_are_made_dense():
    huge = sparse.csr_matrix((np.ones(2), ([0, 1], [0, 1])), shape=(100_000, 1_000_000))
    with pytest.raises((SynthsieveError, ValueError), match="TruncatedSVD"):
        small().fit(huge, np.arange(100_000) % 2)


def test_requested_few_steps_do_not_warn(clouds):
    x, y = clouds
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert small(max_iter=1).fit(x, y).expected_iter_ == 1


@pytest.mark.parametrize("far", [1e38, -1e38])
def test_a_row_too_far_away_is_named_and_never_answered_with_nan(fitted, clouds, far):
    x = clouds[0][:5].copy()
    x[3, 1] = far
    for answer in (fitted.predict_proba, fitted.predict, fitted.transform, fitted.score_samples):
        found, output = None, ""
        try:
            found = answer(x)
        except InputError as error:
            output = str(error)
        assert "row 3" in output or not np.isnan(found).any()


def test_unlabelled_rows_are_left_out_of_a_score_with_a_warning(fitted, clouds):
    x, y = clouds
    hidden = np.where(np.arange(120) % 4 == 0, -1, y)
    with pytest.warns(UserWarning, match="30 of 120 rows of y are unlabelled"):
        found = fitted.score(x, hidden)
    assert found == fitted.score(x[hidden >= 0], y[hidden >= 0])
    weights = np.arange(120.0)
    with pytest.warns(UserWarning, match="unlabelled"):
        assert fitted.score(x, np.where(hidden < 0, None, y), weights) == pytest.approx(
            fitted.score(x[hidden >= 0], y[hidden >= 0], weights[hidden >= 0])
        )
    with raises(InputError, "no-labels"):
        fitted.score(x, np.full(120, -1))
    with pytest.warns(UserWarning, match="unlabelled"):
        scores = cross_val_score(small(max_iter=100), x, hidden, cv=2)
    assert scores.min() > 0.7


def test_single_classes_are_drawn_by_their_labels(clouds):
    x, y = clouds
    names = np.array(["ant", "bee", "cat"])
    estimator = small(max_iter=3).fit(x, names[y])
    every, some = estimator.sample(4), estimator.sample(4, classes=["cat", "ant"])
    assert some[1].tolist() == ["ant"] * 4 + ["cat"] * 4
    assert np.array_equal(some[0], every[0][every[1] != "bee"])
    with raises(InputError, "unknown-class"):
        estimator.sample(1, classes=["bees"])
    with raises(InputError, "invalid-parameter"):
        estimator.sample(1, classes="bee")
    with raises(InputError, "too-many-samples"):
        estimator.sample(10**12)
    assert small(max_iter=1).fit(x, y).sample(2, classes=[np.int64(1)])[1].tolist() == [1, 1]


def test_soft_labels_of_samples_train_another_model(fitted, clouds):
    x, y = clouds
    samples, _ = fitted.sample(60)
    soft = fitted.soft_label(samples)
    assert np.bincount(soft.rows, soft.weight).min() > 0.9
    other = LogisticRegression().fit(samples[soft.rows], soft.y, sample_weight=soft.weight)
    assert other.score(x, y) > 0.9
