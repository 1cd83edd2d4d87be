"""What table.json must hold so that a run can be shown: checked once, when it is opened, and trusted after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from synthsieve.config import LARGEST_POOL, Metric
from synthsieve.errors import CheckpointError
from synthsieve.evaluation.proof import Verdict
from synthsieve.experiments.arms import Arm, Group
from synthsieve.files import json_of


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


class _Arm(_Part):
    arm: Arm
    pool_size: int = Field(ge=0, le=LARGEST_POOL)
    best: list[dict[str, float]] = []
    selections: list[list[dict[str, Any]]] = []


class _Comparison(_Part):
    difference: float
    interval_95: tuple[float, float]
    verdict: Verdict


class _Proof(_Part):
    baseline: str
    mean: dict[str, float]
    metric: Metric
    scores: dict[str, list[float]] = {}
    test_examples: list[int] = Field(min_length=1)
    comparisons: dict[str, _Comparison]

    @model_validator(mode="after")
    def _belong_together(self) -> _Proof:
        strangers = {self.baseline, *self.comparisons} - set(self.mean)
        if strangers:
            raise ValueError(f"no accuracy of {', '.join(sorted(strangers))}")
        return self


class _Choice(_Part):
    arm: str
    words: str = Field(min_length=1)


class _Metrics(_Part):
    accuracy: float
    majority_accuracy: float
    recall: list[float | None]
    confusion: list[list[int]]


class _CrossFitting(_Part):
    folds: int
    measures: bool


class _Table(_Part):
    source: str
    source_name: str | None = None
    settings: dict[str, Any]
    seeds: list[int] = Field(min_length=1)
    versions: dict[str, str]
    split_hashes: dict[str, str]
    labeled: int
    unlabeled: int
    proof: _Proof
    choice: _Choice | None
    validation: dict[str, list[float]] = {}
    groups: dict[str, Group]
    classes: list[str] = Field(min_length=1)
    metrics: dict[str, _Metrics]
    cross_fitting: _CrossFitting | None
    labels_for_choosing: int
    baselines: dict[str, list[dict[str, Any]]]
    arms: dict[str, _Arm]
    quality: dict[str, Any] | None = None
    temperature: list[dict[str, float | None]] = []

    @model_validator(mode="after")
    def _belong_together(self) -> _Table:
        if self.choice is not None and self.choice.arm not in self.proof.mean:
            raise ValueError(f"no accuracy of the chosen arm, {self.choice.arm}")
        return self


def read_table(path: Path) -> dict[str, Any]:
    """The table in a table.json, as plain values."""
    try:
        table: dict[str, Any] = json_of(path.read_text(encoding="utf-8"))
        _Table.model_validate(table, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        raise _damaged(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from None
    return table


def _damaged(path: Path, reason: str) -> CheckpointError:
    told = " ".join(reason.split())[:200]
    return CheckpointError(f"{path} cannot be read ({told}): give the same `synthsieve run` again to write it anew")
