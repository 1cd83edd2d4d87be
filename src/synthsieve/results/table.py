"""table.json as one typed record: `run` and `reproduce` write it, `open_run` reads it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic import model_validator as validator

from synthsieve.errors import CheckpointError, OldRunError
from synthsieve.evaluation.comparison import Choice, Comparison, ComparisonResult
from synthsieve.evaluation.fidelity import Manifold, SyntheticTraining, TwoSample
from synthsieve.evaluation.memorization import describe_copies
from synthsieve.evaluation.metrics import METRIC_NAMES, Metrics
from synthsieve.evaluation.quality import TemperatureRow
from synthsieve.experiments.arms import Arm, Group, TableEntry
from synthsieve.experiments.baselines.sklearn_models import MAJORITY
from synthsieve.experiments.experiment import CrossFitting
from synthsieve.io.files import parse_json
from synthsieve.settings import MAX_POOL_SIZE

FILE = "table.json"


def _comparison_fields(value: Any) -> Any:
    """`ComparisonResult.as_dict` as the fields of a ComparisonResult."""
    if value is None or isinstance(value, ComparisonResult):
        return value
    renamed = {"differences": "differences", "interval": "interval_95", "differing": "differing_answers"}
    compared = value["comparisons"].items()
    return {
        **{name: value[name] for name in ("baseline", "resamples", "note", "metric")},
        "arms": [{"name": name, "scores": scores} for name, scores in value["scores"].items()],
        "comparisons": [{"arm": arm, **{new: one[old] for new, old in renamed.items()}} for arm, one in compared],
        "num_items": value["test_examples"],
        "shared_items": value["shared_test_examples"],
    }


def _choice_fields(value: Any) -> Any:
    """`Choice.as_dict` as the fields of a Choice."""
    if value is None or isinstance(value, Choice):
        return value
    names = ("accuracy", "difference", "standard_error")
    candidates = [{"arm": arm, **{name: one[name] for name in names}} for arm, one in value["candidates"].items()]
    return {
        **{name: value[name] for name in ("arm", "baseline", "baseline_accuracy", "margin")},
        "candidates": candidates,
    }


def _plain(value: Any) -> Any:
    return None if value is None else value.as_dict()


class _Record(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


class VariantRecord(_Record):
    """One variant: what it is, the best row of its history and its selections, seed by seed."""

    arm: Arm
    pool_size: int = Field(ge=0, le=MAX_POOL_SIZE)
    best: list[dict[str, float]] = []
    selections: list[list[dict[str, Any]]] = []

    @property
    def entry(self) -> TableEntry:
        return TableEntry(self.arm, self.pool_size)

    def last_selections(self) -> list[dict[str, Any]]:
        """The figures of the last selection of each seed that made one."""
        return [rows[-1] for rows in self.selections if rows]


class BaselineRecord(_Record):
    """A classical method at one seed: the hyperparameters chosen, None where it failed, and the rows it saw."""

    chosen: str | None
    unlabeled: int
    failed: Any = None


class CopiesRecord(_Record):
    """Nearest training examples; see `evaluation.memorization`."""

    verdict: str
    near_share: float
    expected_share: float
    duplicates: int
    held_out_duplicates: int
    num_synthetic: int
    num_held_out: int

    def describe(self) -> str:
        return describe_copies(self.model_dump())


class RealQuality(_Record):
    """The same measures of held-out real examples."""

    manifold: Manifold | None
    frechet_distance: float | None


class QualityRecord(_Record):
    """Fidelity and memorization of one variant's samples; None where there are too few rows, and `notes` say why."""

    of: str
    synthetic: int
    manifold: Manifold | None
    frechet_distance: float | None
    two_sample: TwoSample | None
    train_on_synthetic: SyntheticTraining | None
    memorisation: CopiesRecord | None
    same_law: RealQuality
    notes: list[str] = []


class ResultsTable(_Record):
    """Every figure of a finished comparison; dictionaries are by the name of a variant or method."""

    source_name: str
    classes: list[str] = Field(min_length=1)
    source: str
    settings: dict[str, Any]
    seeds: list[int] = Field(min_length=1)
    versions: dict[str, str]
    split_hashes: dict[str, str]  # by seed
    cross_fitting: CrossFitting | None
    labeled: int  # training rows of the first seed
    unlabeled: int
    validation_examples: int  # labelled rows that chose
    labels_for_choosing: int  # those of them that trained no model
    oracle_accuracy: float | None  # of the classifier that purity is measured by
    paired_comparison: Annotated[ComparisonResult, BeforeValidator(_comparison_fields), PlainSerializer(_plain)]
    # of variants with samples, with the best without them; None without validation rows, and in older files
    against_best: Annotated[ComparisonResult | None, BeforeValidator(_comparison_fields), PlainSerializer(_plain)] = (
        None
    )
    choice: Annotated[Choice | None, BeforeValidator(_choice_fields), PlainSerializer(_plain)]
    validation: dict[str, list[float]]  # the score of each seed
    metrics: dict[str, Metrics]  # on test
    groups: dict[str, Group]  # in the order of the comparison
    arms: dict[str, VariantRecord]
    baselines: dict[str, list[BaselineRecord]]  # classical methods, an entry a seed
    quality: QualityRecord | None = None  # of one variant's samples
    temperature: list[TemperatureRow] = []
    usefulness: dict[str, Any] | None = None  # gains of common models, see `experiments.usefulness`

    @validator(mode="after")
    def _check_names(self) -> ResultsTable:
        compared = self.paired_comparison
        scored = {arm.name for arm in compared.arms if arm.scores}
        missing = {compared.baseline, self.kept, *self.comparisons} - scored
        if missing or not compared.num_items or not all(one.differences for one in compared.comparisons):
            raise ValueError(f"no score of {', '.join(sorted(missing)) or 'any example'}")
        if self.kept not in self.metrics:
            raise ValueError(f"no metrics of {self.kept}")
        return self

    @classmethod
    def read(cls, path: Path) -> ResultsTable:
        """Read a table.json; a damaged one, or one of another version, is a CheckpointError."""
        try:
            stored = parse_json(path.read_text(encoding="utf-8"))
            if isinstance(stored, dict) and "proof" in stored:  # the name of paired_comparison in 0.1
                raise OldRunError(path.parent)
            return cls.model_validate(stored)
        except ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = str(error)
        message = f"{path} cannot be read ({' '.join(reason.split())[:200]}): repeat the same `synthsieve run`"
        raise CheckpointError(message, code="damaged-table")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as in the file."""
        return self.model_dump(mode="json")

    @property
    def kept(self) -> str:
        """The variant whose model is kept."""
        return self.paired_comparison.baseline if self.choice is None else self.choice.arm

    @property
    def comparisons(self) -> dict[str, Comparison]:
        """Every variant and method but the baseline."""
        return {one.arm: one for one in self.paired_comparison.comparisons}

    def of_best(self, name: str) -> Comparison | None:
        """A variant with samples against the best one without; None where it was not compared."""
        found = () if self.against_best is None else self.against_best.comparisons
        return next((one for one in found if one.arm == name), None)

    @property
    def means(self) -> dict[str, float]:
        """name -> mean test score over seeds."""
        return {arm.name: arm.mean for arm in self.paired_comparison.arms}

    @property
    def score_name(self) -> str:
        """`accuracy`, or the other metric that is compared."""
        return METRIC_NAMES[self.paired_comparison.metric]

    @property
    def measured_labels(self) -> int:
        """How many labelled examples each variant is measured on."""
        return self.paired_comparison.num_items[0]

    @property
    def other_methods(self) -> list[str]:
        """Rows of the comparison that are other ways to train."""
        return [name for name, group in self.groups.items() if group is Group.BASELINE]

    def names_in(self, group: Group) -> list[str]:
        """Rows of the comparison of one group, in its order."""
        return [name for name, one in self.groups.items() if one is group and name in self.means]

    def validation_mean(self, name: str) -> float | None:
        """Mean validation score over seeds; None where it was not measured."""
        scores = self.validation.get(name)
        return float(np.mean(scores)) if scores else None

    def best_and_majority(self) -> list[str]:
        """The kept model, the best classical method and the majority class, as far as they were measured."""
        names = (self.kept, self.best_classical, MAJORITY)
        return [name for name in names if name is not None and name in self.metrics]

    @property
    def best_supervised(self) -> str | None:
        """The best method that uses labels only."""
        names = [name for name, each in self.baselines.items() if each and not each[0].unlabeled]
        return self._best_of([*names, str(Arm.SUPERVISED)])

    @property
    def best_classical(self) -> str | None:
        """The best of scikit-learn's methods."""
        return self._best_of(self.baselines)

    def _best_of(self, names: Iterable[str]) -> str | None:
        """Chosen on validation where all have a score there; None without any."""
        means = self.means
        known = [name for name in names if name in means and name != MAJORITY]
        if all(self.validation.get(name) for name in known):
            means = {name: float(np.mean(self.validation[name])) for name in known}
        return max(known, key=lambda name: means[name], default=None)

    def verdict_word(self, name: str) -> str:
        """`helps`, `hurts` or `cannot tell`; `better` or `worse` for other methods; `baseline`."""
        one = self.comparisons.get(name)
        if one is None:
            return "baseline"
        return one.verdict.of_another() if self.groups.get(name) is Group.BASELINE else one.verdict.value
