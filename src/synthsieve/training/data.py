"""What a model trains on: a data set, its split, and how examples become network input."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from scipy.stats import chisquare

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.modalities.encoding import Encoding
from synthsieve.data.modalities.registry import fit_encoding
from synthsieve.data.splits import Split, split_dataset
from synthsieve.errors import ConfigError
from synthsieve.evaluation.metrics import Metrics, measure
from synthsieve.evaluation.predict import part_of, probabilities
from synthsieve.io.random_streams import numpy_stream
from synthsieve.models.calibration import Calibration, fit_temperature, match_shares
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.settings import ClassPrior, Metric, Settings
from synthsieve.training.graph_labels import graph_labels
from synthsieve.training.parallel import SINGLE_PROCESS, ProcessGroup
from synthsieve.training.state import CPU, TrainState, init

ERRORS = 2.0  # standard errors of a share, within which a mean prediction is not moved
MEAN_ROWS = 2000  # images whose mean colour the generator starts at
MATCHED_ROWS = 2000  # unlabelled rows whose mean prediction is moved to the class shares


def data_hash(split: Split) -> str:
    """Identifies data and split: a checkpoint of other data is refused."""
    return f"{split.fingerprint}/{split.hash}"


@dataclass(frozen=True)
class ClassOffsets:
    """Offsets of log p, (num_classes,), by the class shares that the labels have."""

    shares: np.ndarray  # (num_classes,), summing to 1
    to_labels: np.ndarray  # with them the mean prediction of the unlabelled rows is near `shares`

    @property
    def to_uniform(self) -> np.ndarray:
        """The same for equally frequent classes."""
        offsets = self.to_labels - np.log(self.shares)
        return np.asarray(offsets - offsets.mean())


@dataclass(frozen=True)
class TrainingData:
    """A data set, its split, and its encoding as network input, fitted to the training rows; each computed once."""

    dataset: Dataset
    split: Split
    encoding: Encoding
    _graph_labels: dict[tuple[int, int], np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def prepare(cls, dataset: Dataset, settings: Settings) -> TrainingData:
        """Split the data set and fit its encoding."""
        split = split_dataset(dataset, settings.data, seed=settings.seed)
        return cls(dataset, split, fit_encoding(dataset, np.concatenate([split.labeled, split.unlabeled])))

    def init_state(
        self, settings: Settings, *, group: ProcessGroup = SINGLE_PROCESS, device: torch.device = CPU
    ) -> TrainState:
        """A training state for these data, before the first step."""
        spec, num_classes = self.encoding.input_spec, len(self.split.classes)
        return init(settings, spec, num_classes, data_hash=data_hash(self.split), group=group, device=device)

    def start_generator(self, state: TrainState) -> None:
        """Prepare the untrained generator for the mean colour of these images, if they are images."""
        if self.dataset.kind != Kind.IMAGE:
            return
        rows = np.concatenate([self.split.labeled, self.split.unlabeled])
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MEAN_ROWS)).astype(np.int64)]
        x = self.encoding.encode(self.dataset.train.x[rows])
        mean = torch.from_numpy(x.mean(axis=(0, 2, 3), dtype=np.float64).astype(np.float32)).to(state.model.device)
        for model in (state.model, state.averaged):
            model.generator.start_at(mean)

    def class_shares(self, settings: Settings) -> np.ndarray | None:
        """How often each class is expected among all rows, by the labels; None: equally often."""
        if settings.data.balanced:
            return None
        return class_shares(self.dataset.train.y[self.split.labeled], len(self.split.classes))

    def graph_labels(self, settings: Settings) -> np.ndarray | None:
        """p(y given x) of the unlabelled rows by a graph of neighbours, float32 (m, num_classes); None if unused."""
        if not settings.training.graph_weight:
            return None
        if self.dataset.kind == Kind.TEXT:
            message = (
                "training.graph_weight needs distances, and sentences have none: use 0, or embeddings (--features)"
            )
            raise ConfigError(message, code="graph-of-text")
        neighbors, split = settings.training.graph_neighbors, self.split
        if (neighbors, settings.seed) not in self._graph_labels:
            x = self.dataset.train.x
            self._graph_labels[neighbors, settings.seed] = graph_labels(
                self.encoding.encode(x[split.labeled]),
                self.dataset.train.y[split.labeled],
                self.encoding.encode(x[split.unlabeled]),
                num_classes=len(split.classes),
                neighbors=neighbors,
                class_shares=self.class_shares(settings),
                rng=numpy_stream(settings.seed, "graph labels"),
            )
        return self._graph_labels[neighbors, settings.seed]

    def score_validation(self, model: GenerativeClassifier, settings: Settings) -> tuple[Metrics | None, Calibration]:
        """The model's scores on the validation rows, None without any, and its calibration.

        Scores are those before the temperature, which would fit the rows that it is measured on, unless classes are
        predicted under another prior than the model's.
        """
        x, y = part_of(self.dataset, self.split, "validation")
        if not len(y):
            return None, self.with_class_prior(model, Calibration(), settings)
        p = probabilities(model, self.encoding, x, check=False, calibrated=False)
        calibration = Calibration(fit_temperature(p, y), len(y), "validation")
        calibration = self.with_class_prior(model, calibration, settings)
        return measure(y, calibration.apply(p) if calibration.offsets else p), calibration

    def with_class_prior(
        self, model: GenerativeClassifier, calibration: Calibration, settings: Settings
    ) -> Calibration:
        """The same with offsets, so that `model` predicts under the class prior of the settings.

        First the mean prediction of the training rows is moved to the class shares of the labels, then these to the
        prior.
        """
        prior = prior_of(settings, self.class_shares(settings), len(self.split.classes))
        if prior is None:
            return calibration
        offsets = self.offsets(model, settings, calibration)
        to_uniform = 0.0 if offsets is None else offsets.to_uniform
        moved = np.log(prior * len(prior)) + to_uniform
        return replace(calibration, offsets=tuple(moved.tolist()), class_prior=tuple(prior.tolist()))

    def offsets(
        self, model: GenerativeClassifier, settings: Settings, calibration: Calibration | None = None
    ) -> ClassOffsets | None:
        """What must be added to log p of `model` where labels are unbalanced; None where nothing must.

        A mean prediction that the labels do not contradict, within two standard errors of their shares, stays.
        """
        shares = self.class_shares(settings)
        if shares is None or settings.training.class_prior is ClassPrior.MODEL:
            return None
        rows = self.split.unlabeled if len(self.split.unlabeled) else self.split.labeled
        if len(rows) > MATCHED_ROWS:
            rows = np.sort(numpy_stream(settings.seed, "class prior").choice(rows, MATCHED_ROWS, replace=False))
        p = probabilities(model, self.encoding, self.dataset.train.x[rows], check=False, calibrated=False)
        p = p if calibration is None else calibration.apply(p)
        error = np.sqrt(shares * (1 - shares) / len(self.split.labeled))
        if (np.abs(p.mean(axis=0) - shares) <= ERRORS * error).all():
            return ClassOffsets(shares, np.zeros(len(shares)))
        return ClassOffsets(shares, match_shares(p, shares))


def class_shares(y: np.ndarray, num_classes: int) -> np.ndarray | None:
    """The share of each class among the labels, (labels of it + 1) / (labels + num_classes).

    None where the labels may well come from classes of equal size (chi-squared test at 5 %): few labels drawn at random
    differ by chance, and shares estimated from them would do harm.
    """
    counts = np.bincount(y, minlength=num_classes)
    if chisquare(counts).pvalue > 0.05:
        return None
    return (counts + 1) / (len(y) + num_classes)


def prior_of(settings: Settings, shares: np.ndarray | None, num_classes: int) -> np.ndarray | None:
    """The class shares that predictions assume, summing to 1: (num_classes,); None leaves predictions as they are."""
    chosen = settings.training.class_prior
    if isinstance(chosen, tuple):
        if len(chosen) != num_classes:
            raise ConfigError(
                f"training.class_prior has {len(chosen)} shares for {num_classes} classes: give one for each",
                code="bad-class-prior",
            )
        return np.array(chosen) / sum(chosen)
    if chosen is ClassPrior.AUTO:
        balanced = settings.training.keep_metric is Metric.BALANCED_ACCURACY
        chosen = ClassPrior.UNIFORM if balanced else ClassPrior.LABELS
    if shares is None or chosen is ClassPrior.MODEL:
        return None
    return shares if chosen is ClassPrior.LABELS else np.full(num_classes, 1 / num_classes)
