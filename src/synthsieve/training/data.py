"""What a model trains on: a data set, its split, and how examples become network input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from synthsieve.data.dataset import Dataset
from synthsieve.data.modalities.encoding import Encoding, fit_encoding
from synthsieve.data.splits import Split, split_dataset
from synthsieve.evaluation.metrics import Metrics
from synthsieve.evaluation.predict import score_part
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.settings import Settings
from synthsieve.training.parallel import SINGLE_PROCESS, ProcessGroup
from synthsieve.training.state import CPU, TrainState, init


def data_hash(split: Split) -> str:
    """Identifies data and split: a checkpoint of other data is refused."""
    return f"{split.fingerprint}/{split.hash}"


@dataclass(frozen=True)
class TrainingData:
    """A data set, its split, and its encoding as network input, fitted to the training rows; each computed once."""

    dataset: Dataset
    split: Split
    encoding: Encoding

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

    def score_validation(self, model: GenerativeClassifier) -> Metrics | None:
        """The model's scores on the validation rows; None without any."""
        return score_part(model, self.encoding, self.dataset, self.split, "validation")
