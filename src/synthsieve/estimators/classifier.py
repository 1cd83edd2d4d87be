"""The generative classifier as a scikit-learn estimator, for arrays, tables, images, sounds and texts in memory."""

from __future__ import annotations

import copy
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from synthsieve.data.checks import check_dataset
from synthsieve.data.containers import as_array, as_items, check_names, is_frame, materialize, rows_of, take_rows
from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.formats.arrays import bytes_as_floats
from synthsieve.data.in_memory import MAX_COLUMNS, encode_like, kind_of, read_columns, read_in_memory, restore_container
from synthsieve.data.labels import Labels, as_labels, check_classes, is_known, read_groups, read_targets, stray_words
from synthsieve.errors import ConfigError, DataError, InputError, SelectionError, SynthsieveWarning
from synthsieve.evaluation import predict
from synthsieve.evaluation.labeling import (
    MIN_PROBABILITY,
    MIN_SOFT_PROBABILITY,
    LabeledRows,
    SoftLabels,
    label_rows,
    soft_labels,
)
from synthsieve.evaluation.metrics import Metrics, measure
from synthsieve.io.devices import AUTO, device_of
from synthsieve.io.progress import for_stream
from synthsieve.models.calibration import Calibration
from synthsieve.models.chains import DrawSettings
from synthsieve.models.generate import class_indices, draw_samples
from synthsieve.settings import Settings, load_settings
from synthsieve.training.data import TrainingData
from synthsieve.training.defaults import default_preset, settings_in_memory
from synthsieve.training.fit_reference import fit_to, wants_reference
from synthsieve.training.loop import SHARE, Trained, fit_in_memory, seconds_per_step
from synthsieve.training.state import CPU, check_precision

if TYPE_CHECKING:
    from synthsieve.estimators.augment import Augmentation

SOURCE = "the data in memory"
TRAINED = 0.05  # of the expected steps; with fewer done a model counts as untrained


class UntrainedWarning(SynthsieveWarning, ConvergenceWarning):
    """Training ended so early that the model is practically untrained."""


class LatentEBMClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):
    """A generative classifier y -> z -> x for few labels and many unlabelled examples.

    Unlabelled examples are rows whose y is -1, None, NaN or an empty text, or those of `unlabeled_X`. Data frames,
    Arrow tables and rows of mixed cells are tables, and so are arrays (n, columns), sparse matrices and torch tensors
    of up to 50 columns: the same numbers give the same model in any container. Longer rows are vectors; arrays (n,
    height, width) or (n, channels, height, width) images; a list or series of str text; sounds are waveforms or paths
    of wav files, with `modality="sound"`.

    Args:
        modality: "auto", or image, vector, table, sound, text, or the name of a registered modality.
        preset: a preset's name or a TOML file; None chooses by the data.
        settings: single settings on top, such as {"training.smoothness_weight": 0.5}.
        latent_dim: numbers in a latent; None chooses by the data.
        max_iter: training steps; None takes the preset's.
        max_time: seconds that `fit` may take, and `augment` again; the number of steps, at most `max_iter`, is chosen
            to use them.
        validation_fraction: of the labels, kept aside to choose the best weights; "auto" keeps a tenth of 200 labels or
            more, and none of fewer: then the last weights are kept.
        class_prior: the class shares that predictions assume: "labels", "uniform", "model" (whatever the networks
            learned), an array with a share for each class in the order of `classes_`, or "auto": "uniform" where one
            class has more than twice the labels of another, else "labels".
        random_state: an int for the same result each time, a numpy RandomState, or None for another result each time.
        n_jobs: threads of one fit; small networks are fastest with one. None keeps torch's number.
        device: "auto", "cpu", "cuda", "cuda:N" or "mps"; auto takes a GPU if there is one. It is not saved.
        verbose: show progress on standard error.
        schema: types of a table's columns that are inferred wrongly, such as {"zip": "category"}.
        rate: samples a second, of waveforms.

    Attributes:
        classes_ (ndarray): the labels, sorted, in the type they came in.
        history_ (list): a dict of figures for every evaluation.
        stopped_because_ (str): why training ended.
        calibration_: temperature and class prior of `predict_proba`; fitted to the validation rows, or by `calibrate`.
        n_iter_ (int): steps done.
        expected_iter_ (int): the steps of the preset, or `max_iter` where it is lower.
        settings_ (Settings): everything that decided the fit.
        model_ (GenerativeClassifier): the networks, with averaged weights.
        encoding_ (Encoding): how examples become network input.
        notes_ (tuple): how the data were read, such as the range that pixel values were scaled from.
        device_ (str): the name of the device that `fit` used.
        seed_ (int): the seed that `random_state` gave.
    """

    def __init__(
        self,
        *,
        modality: str = "auto",
        preset: str | None = None,
        settings: Mapping[str, Any] | None = None,
        latent_dim: int | None = None,
        max_iter: int | None = None,
        max_time: float | None = None,
        validation_fraction: float | str = "auto",
        class_prior: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = 1,
        device: Any = AUTO,
        verbose: bool = False,
        schema: Mapping[str, str] | None = None,
        rate: int | None = None,
    ) -> None:
        self.modality = modality
        self.preset = preset
        self.settings = settings
        self.latent_dim = latent_dim
        self.max_iter = max_iter
        self.max_time = max_time
        self.validation_fraction = validation_fraction
        self.class_prior = class_prior
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.schema = schema
        self.rate = rate

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        unlabeled_X: Any = None,
        sample_weight: Any = None,
        features: Any = None,
        groups: Any = None,
    ) -> LatentEBMClassifier:
        """Train the model.

        Args:
            X: the examples; with `features`, the raw items that the embeddings represent.
            y: (n,) labels, with -1, None, NaN or "" for unlabelled.
            unlabeled_X: more examples, without labels.
            sample_weight: (n,), how much each label counts; rows of weight 0 are left out.
            features: (n, d) embeddings of the items X, which are trained on instead; `predict` then takes
                embeddings, and samples are the nearest items.
            groups: (n,) group names; rows of one group stay on one side of the validation split.
        """
        started = time.monotonic()
        self.__dict__.pop("model_", None)  # if this fit fails, an earlier model must not answer
        with as_input_errors():
            self.device_ = str(device_of(self.device))
            dataset = self._read(X, y, unlabeled_X, sample_weight, features, groups)
            self.seed_ = _seed_of(self.random_state)
            self._train(dataset, self._settings_for(dataset), started)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of each example: (n,), in the type of the labels of `fit`."""
        probabilities = self.predict_proba(X)
        labels: np.ndarray = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(y given x): float64 (n, classes), in the order of `classes_`."""
        x = self._more(X)
        with self.resources(), as_input_errors():
            return predict.probabilities(self.model_, self.encoding_, x)

    def label(self, X: Any, *, min_probability: float = MIN_PROBABILITY) -> LabeledRows:
        """Labels for examples without, to train other models on; less probable ones than the limit are rejected."""
        return label_rows(self.predict_proba(X), self.classes_, min_probability=min_probability)

    def soft_label(self, X: Any, *, min_probability: float = MIN_SOFT_PROBABILITY) -> SoftLabels:
        """Probabilities as labels with weights, to train models on that take `sample_weight`.

        Each example has every class that is at least as probable as the limit, with its probability as weight.
        """
        return soft_labels(self.predict_proba(X), self.classes_, min_probability=min_probability)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the labelled rows; rows whose y is -1, None, NaN or "" are left out, with a warning."""
        raw = column_or_1d(as_labels(y))
        known = is_known(raw)
        if known.all():
            return float(super().score(X, y, sample_weight))
        if not known.any():
            message = f"score needs labelled rows, but none of {len(raw)} is: pass y without -1, None or NaN"
            raise InputError(message, code="no-labels")
        warnings.warn(
            f"{len(raw) - int(known.sum()):,} of {len(raw):,} rows of y are unlabelled and are left out of the score",
            SynthsieveWarning,
            stacklevel=2,
        )
        predicted = self.predict(X)
        if len(predicted) != len(raw):
            message = f"X and y must have equally many rows, got {len(predicted)} and {len(raw)}"
            raise InputError(message, code="different-lengths")
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(np.array(raw[known].tolist()), predicted[known], sample_weight=weights))

    def evaluate(self, X: Any, y: Any) -> Metrics:
        """Every metric on labelled examples: accuracy, balanced accuracy, F1, AUROC, log-loss, confusion, ...

        Rows of y without a label are left out.
        """
        check_is_fitted(self)
        with as_input_errors():
            targets = read_targets(column_or_1d(as_labels(y)), self.classes_).y
            x = self.read_more(X)
            with self.resources():
                before = predict.probabilities(self.model_, self.encoding_, x, calibrated=False)
            answers = self.model_.calibration.apply(before)
            if len(answers) != len(targets):
                message = f"X and y must have equally many rows, got {len(answers)} and {len(targets)}"
                raise InputError(message, code="different-lengths")
            known = targets != UNLABELED
            return measure(targets[known], answers[known], before[known])

    def transform(self, X: Any) -> np.ndarray:
        """The latent of each example, the mean of q(z given x): float64 (n, latent_dim)."""
        x = self._more(X)
        with self.resources(), as_input_errors():
            return predict.latents(self.model_, self.encoding_, x)

    def score_samples(self, X: Any) -> np.ndarray:
        """The ELBO of each example in nats, up to one constant for all of them (log Z): float64 (n,)."""
        x = self._more(X)
        with self.resources(), as_input_errors():
            return predict.elbo_of(self.model_, self.encoding_, x, seed=self.seed_)

    def sample(
        self,
        n_per_class: int = 1,
        *,
        classes: Sequence[Any] | None = None,
        temperature: float | None = None,
        random_state: Any = 0,
    ) -> tuple[Any, np.ndarray]:
        """New labelled examples: X in the form that `fit` was given, and y (n_per_class x classes,), class by class.

        Args:
            n_per_class: of each class.
            classes: labels to draw; None draws all. Which others are drawn does not change the examples of a class.
            temperature: of the chains; lower is more confident and less varied. None takes that of the settings.
            random_state: seed of the samples; None draws new ones at each call.
        """
        check_is_fitted(self)
        if not isinstance(n_per_class, Integral) or n_per_class < 1:
            message = f"n_per_class must be a whole number, 1 or more, got {n_per_class!r}"
            raise InputError(message, code="invalid-parameter")
        sampling = self.settings_.sampling
        chains = DrawSettings.of(sampling, temperature=temperature)
        if classes is not None and (isinstance(classes, str) or not isinstance(classes, Iterable)):
            message = f"classes must be a list of labels, got {classes!r}: put it into a list"
            raise InputError(message, code="invalid-parameter")
        with self.resources(), as_input_errors():
            self.fit_reference()
            drawn = draw_samples(
                self.model_,
                self.encoding_,
                per_class=int(n_per_class),
                classes=None if classes is None else class_indices(list(classes), self.classes_.tolist()),
                chains=chains,
                seed=_seed_of(random_state),
            )
        return self.as_given(drawn.x), self.classes_[drawn.y]

    def fit_reference(self) -> None:
        """Fit the mixture that samples are drawn from, if it is not yet; a loaded estimator has it, or draws without.

        `sample` and `save` call it.
        """
        trained: Trained | None = getattr(self, "_pretrained", None)
        if self.model_.reference is None and trained is not None and wants_reference(self.settings_):
            fit_to(self.model_, trained.data, self.settings_, seed=self.seed_)

    def augment(self, *, X_test: Any = None, y_test: Any = None, cv: int = 3, **augmentation: Any) -> Augmentation:
        """Draw synthetic samples, select some, continue training with them, and measure whether that helped.

        Args:
            X_test, y_test: labelled examples that `fit` never saw, to measure on. Without them cross-fitting measures:
                `cv` times a part of the labels is hidden, everything is trained again, and that part measures.
            cv: the number of parts.
            augmentation: settings of that section, such as pool_size=5000, coreset_fraction=0.1, entropy_ceiling=1e-3.
        """
        from synthsieve.estimators.augment import augment

        check_is_fitted(self)
        if not hasattr(self, "_pretrained"):
            message = "augment needs the data of fit, which a loaded or copied estimator does not have: fit again"
            raise InputError(message, code="no-training-data")
        with as_input_errors(), self.resources():
            return augment(self, X_test, y_test, cv=cv, options=augmentation)

    def calibrate(self, *, cv: int = 3) -> LatentEBMClassifier:
        """Fit the temperature of `predict_proba` by cross-fitting, for a `fit` with too few labels to validate on.

        `cv` times a part of the labels is hidden and the model trained again; all hidden labels together give the
        temperature. The predicted classes stay, unless `class_prior` moves them.
        """
        from synthsieve.estimators.augment import calibrate

        check_is_fitted(self)
        if not hasattr(self, "_pretrained"):
            message = "calibrate needs the data of fit, which a loaded or copied estimator does not have: fit again"
            raise InputError(message, code="no-training-data")
        with as_input_errors(), self.resources():
            self.model_.calibration = calibrate(self, cv=cv)
        return self

    @property
    def calibration_(self) -> Calibration:
        """The temperature and class prior of `predict_proba`, and the rows they were fitted to."""
        check_is_fitted(self)
        return self.model_.calibration

    def as_given(self, x: np.ndarray) -> Any:
        """Stored examples in the container that `fit` was given; the nearest items, where it was given items."""
        if self.items_ is not None:
            search = NearestNeighbors(n_neighbors=1).fit(np.asarray(self.features_))
            return take_rows(self.items_, search.kneighbors(x, return_distance=False)[:, 0])
        return restore_container(self.encoding_.items(x), self.held_)

    def save(self, path: str | Path) -> Path:
        """Write the fitted estimator to one file: weights as safetensors, the rest as JSON in its header."""
        from synthsieve.estimators.persistence import save

        check_is_fitted(self)
        return save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, device: Any = AUTO) -> LatentEBMClassifier:
        """The estimator that `save` wrote, to be used on `device`. Nothing in the file can run code."""
        from synthsieve.estimators.persistence import load

        estimator: LatentEBMClassifier = load(cls, Path(path), device)
        return estimator

    @contextmanager
    def resources(self) -> Iterator[None]:
        """Let torch use `n_jobs` threads, and afterwards as many as before; a fitted model is moved to `device`."""
        if hasattr(self, "model_"):
            self.model_.place(device_of(self.device))
        before = torch.get_num_threads()
        if self.n_jobs is not None:
            torch.set_num_threads(_threads_of(self.n_jobs))
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def read_more(self, X: Any) -> np.ndarray:
        """Examples like those of `fit`, as stored."""
        return encode_like(self._checked(materialize(X), self.held_.kind, reset=False), self.held_, rate=self.rate)

    @property
    def _n_features_out(self) -> int:
        return self.settings_.model.latent_dim

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __getstate__(self) -> dict[str, Any]:
        """Without the data and the training state of `fit`: a copy predicts and draws samples."""
        state: dict[str, Any] = super().__getstate__()
        if "model_" in state and self.model_.device.type != "cpu":  # the copy may be read where there is no GPU
            state = {**state, "model_": copy.deepcopy(self.model_).place(CPU)}
        return {name: value for name, value in state.items() if name != "_pretrained"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self.modality == Kind.TABLE
        return tags

    def _more(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        with as_input_errors():
            return self.read_more(X)

    def _read(self, X: Any, y: Any, unlabeled_X: Any, sample_weight: Any, features: Any, groups: Any) -> Dataset:
        """The arguments of `fit` as a data set; sets the attributes that describe it."""
        if y is None:
            message = "requires y to be passed, but the target y is None: give -1 where a label is not known"
            raise InputError(message, code="no-labels")
        examples = materialize(X if features is None else features)
        kind = kind_of(examples, self.modality) if features is None else Kind.VECTOR
        examples = self._checked(examples, kind, reset=True)
        count = rows_of(examples)
        labels = self._labels(y, count)
        unlabeled_X = materialize(unlabeled_X)
        guessed = self.modality == "auto" and features is None
        if guessed and kind == Kind.VECTOR and examples.shape[1] <= MAX_COLUMNS:
            held = read_columns(as_array(examples))
        else:
            held = read_in_memory(examples, modality=kind, schema=self.schema, rate=self.rate, others=unlabeled_X)
        self._keep_items(None if features is None else X, held.x)
        self.held_ = replace(held, x=held.x[:0])
        parts: dict[str, Any] = {
            "x": held.x,
            "y": labels,
            "groups": None if groups is None else read_groups(groups, count),
            "weights": None,
        }
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, np.empty((count, 1)), dtype=np.float64, ensure_non_negative=True
            )
            if not weights.any():  # newer versions of scikit-learn refuse this themselves
                raise ValueError("sample_weight is zero for every row: give at least one row a positive weight")
            parts = {name: None if part is None else part[weights > 0] for name, part in parts.items()}
            parts["weights"] = weights[weights > 0] / weights[weights > 0].mean()
        if unlabeled_X is not None and rows_of(unlabeled_X):
            parts = _with_unlabeled(parts, self.read_more(unlabeled_X))
        names = tuple(str(label) for label in self.classes_)
        self.notes_ = held.notes
        dataset = Dataset(SOURCE, held.kind, names, Examples(**parts), notes=held.notes, metadata=held.metadata)
        check_dataset(dataset)
        return dataset

    def _checked(self, X: Any, kind: str, *, reset: bool) -> Any:
        """X after scikit-learn's checks: finite numbers, known column names, the right number of columns."""
        if is_frame(X):
            check_names(X)
        if kind == Kind.VECTOR or (not reset and self.held_.array):
            _check_numbers(X)
            return validate_data(self, X, reset=reset, accept_sparse=True, dtype=[np.float64, np.float32])
        if reset:
            self.__dict__.pop("feature_names_in_", None)
        named = reset or hasattr(self, "feature_names_in_")  # a table's schema reports missing columns
        if named and (is_frame(X) or (kind == Kind.TABLE and isinstance(X, np.ndarray))):
            _check_feature_names(self, X, reset=reset)
        if rows_of(X) == 0:
            message = f"at least one example is needed, but X has 0 sample(s) (shape={np.shape(X)})"
            raise InputError(message, code="no-examples")
        if reset:
            self.n_features_in_ = _count_features(X, kind)
        return X

    def _labels(self, y: Any, count: int) -> np.ndarray:
        """Class indices of y (n,), -1 for unlabelled; `classes_` is set."""
        raw = column_or_1d(as_labels(y), warn=True)
        if len(raw) != count:
            message = f"X and y must have equally many rows, got inconsistent numbers: {count} and {len(raw)}"
            raise InputError(message, code="different-lengths")
        known = raw[is_known(raw)]
        if known.dtype.kind == "f" and np.isinf(known).any():
            message = "Input y contains infinity: give a label, or NaN where it is not known"
            raise InputError(message, code="invalid-label")
        if known.dtype.kind != "O":
            check_classification_targets(known)
        targets = read_targets(raw)
        if len(targets.classes) < 2:
            got, advice = "no label at all (-1, None, NaN and empty text mean unlabelled)", "give those that are known"
            if len(targets.classes):
                got, advice = f"only one class, {targets.classes[0]!s}", "add labels of another class"
            message = f"labels of at least two classes are needed, but y has {got}: {advice}"
            raise InputError(message, code="too-few-classes")
        for note in check_classes(Labels(targets.y, tuple(map(str, targets.classes))), origin="y"):
            warnings.warn(note, SynthsieveWarning, stacklevel=4)
        for word in stray_words(targets.classes):
            warnings.warn(
                f"the text {word!r} is taken as a class of its own: leave a label empty where it is not known",
                SynthsieveWarning,
                stacklevel=4,
            )
        self.classes_ = targets.classes
        return targets.y

    def _keep_items(self, items: Any, x: np.ndarray) -> None:
        self.items_ = None if items is None else as_items(items)
        self.features_ = None if items is None else x
        if self.items_ is not None and rows_of(self.items_) != len(x):
            count = rows_of(self.items_)
            message = f"features must have a row for each item, got {len(x)} rows for {count} items"
            raise InputError(message, code="different-lengths")

    def _settings_for(self, dataset: Dataset) -> Settings:
        if not isinstance(self.settings, Mapping | None):
            raise InputError(
                f'settings must be a mapping such as {{"training.smoothness_weight": 0.5}}, got {self.settings!r}:'
                " a preset or a TOML file goes into preset",
                code="invalid-parameter",
            )
        labeled = int((dataset.train.y != UNLABELED).sum())
        fraction = self.validation_fraction
        if fraction == "auto":
            fraction = 0.1 if labeled >= 200 else 0.0
        prior = self.class_prior if isinstance(self.class_prior, str) else np.asarray(self.class_prior).tolist()
        return settings_in_memory(
            dataset,
            preset=self.preset,
            changes={**dict(self.settings or {}), "training.class_prior": prior},
            seed=self.seed_,
            latent_dim=self.latent_dim,
            max_iter=self.max_iter,
            validation_fraction=fraction,
        )

    def _train(self, dataset: Dataset, settings: Settings, started: float) -> None:
        """Pretraining, in memory."""
        if self.max_time is not None and not (isinstance(self.max_time, Real) and self.max_time > 0):
            raise InputError(f"max_time must be above 0 seconds, got {self.max_time!r}", code="invalid-parameter")
        device = torch.device(self.device_)
        check_precision(settings, device)
        with self.resources():
            pretraining = settings.pretrained()
            data = TrainingData.prepare(dataset, pretraining)
            if self.max_time is not None:  # as many steps as fit into the time left, by the pace of the first few
                until = started + self.max_time
                pace = seconds_per_step(data, pretraining, device=device, until=until, clock=time.monotonic)
                fitting = int(SHARE * max(until - time.monotonic(), 0.0) / max(pace, 1e-9))
                pretraining = pretraining.over(max(1, min(pretraining.training.steps, fitting)))
            progress = for_stream("fit", quiet=not self.verbose, always=True)
            stop = None if self.max_time is None else _clock(started, self.max_time)
            self._pretrained = fit_in_memory(data, pretraining, device=device, progress=progress, stop=stop)
        result = self._pretrained.result
        self.settings_ = settings.model_copy(update={"training": pretraining.training})
        self.encoding_, self.model_ = data.encoding, self._pretrained.best_model()
        self.history_ = self._pretrained.recorder.rows
        self.n_iter_, self.stopped_because_ = result.steps, result.stopped_because
        usual = load_settings(self.preset or default_preset("", dataset)).training.steps
        self.expected_iter_ = min(settings.training.steps, usual)
        if message := untrained(self.n_iter_, self.expected_iter_):
            warnings.warn(f"{message}; {self.stopped_because_}: allow more time", UntrainedWarning, stacklevel=3)


def untrained(steps: int, expected: int) -> str | None:
    """A message if so few of the expected steps were done that the model is hardly trained; otherwise None."""
    if steps >= TRAINED * expected:
        return None
    return f"the model is practically untrained: only {steps:,} of {expected:,} steps were done"


@contextmanager
def as_input_errors() -> Iterator[None]:
    """Turn our errors into InputErrors, which are ValueErrors too."""
    try:
        yield
    except (DataError, ConfigError, SelectionError) as error:
        raise InputError(str(error), code=error.code) from None


def _seed_of(random_state: Any) -> int:
    """An int as it is; a draw of a numpy generator; a random one for None."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if not isinstance(random_state, Integral):
        message = f"random_state must be an int, a numpy generator or None, got {random_state!r}"
        raise InputError(message, code="invalid-parameter")
    return int(random_state)


def _threads_of(n_jobs: Any) -> int:
    """As joblib counts: -1 means every core, -2 all but one; never more than there are."""
    cores = os.cpu_count() or 1
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        message = f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}"
        raise InputError(message, code="invalid-parameter")
    wanted = int(n_jobs)
    return min(wanted, cores) if wanted > 0 else max(1, cores + 1 + wanted)


def _count_features(X: Any, kind: str) -> int:
    """Numbers or cells of one example; 1 for a text, a path or a sound of any length."""
    if hasattr(X, "shape"):
        return int(np.prod(X.shape[1:]))
    return len(X[0]) if kind == Kind.TABLE else 1


def _check_numbers(X: Any) -> None:
    """Refuse dates and missing numbers with better advice than scikit-learn's."""
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind in ("m", "M"):
        message = f"X must be numbers, got {X.dtype}: give a DataFrame, which may hold dates"
        raise InputError(message, code="not-numbers")
    if kind == "f" and isinstance(X, np.ndarray) and X.ndim == 2 and np.isnan(X).any():
        raise InputError(
            f"Input X contains NaN: an array must have every number, but {int(np.isnan(X).sum()):,} are missing: give a"
            ' DataFrame, or modality="table", which may have missing cells, or fill them with SimpleImputer',
            code="missing-values",
        )


def _with_unlabeled(parts: dict[str, Any], more: np.ndarray) -> dict[str, Any]:
    """The same with rows `more` appended, without labels, each its own group."""
    x, y, groups, weights = parts["x"], parts["y"], parts["groups"], parts["weights"]
    if more.shape[1:] != x.shape[1:]:
        message = f"unlabeled_X must be like X, {x.shape[1:]} each, got {more.shape[1:]}"
        raise InputError(message, code="different-shapes")
    if np.uint8 in (x.dtype, more.dtype) and x.dtype != more.dtype:  # images of bytes and images of floats
        x, more = bytes_as_floats(x), bytes_as_floats(more)
    return {
        "x": np.concatenate([x, more]),
        "y": np.concatenate([y, np.full(len(more), UNLABELED)]),
        "groups": None if groups is None else np.concatenate([groups, groups.max() + 1 + np.arange(len(more))]),
        "weights": None if weights is None else np.concatenate([weights, np.ones(len(more))]),
    }


def _clock(started: float, max_time: float) -> Callable[[], str | None]:
    def stop() -> str | None:
        spent = time.monotonic() - started
        return f"max_time of {max_time:g} s was reached" if spent >= max_time else None

    return stop
