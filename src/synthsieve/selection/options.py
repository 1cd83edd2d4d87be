"""The options of a selection, under the same names in Python, on the command line and on a cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from synthsieve.errors import SelectionError

if TYPE_CHECKING:
    from synthsieve.settings import AugmentationSettings

AUTO = "auto"
# Up to this many points `auto` takes the exact method: a second or two on two cores.
EXACT_UP_TO = 20_000
MIN_PART_ROWS = 1_000
_MAX_FLOAT = float(np.finfo(np.float64).max)
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_Choice = TypeVar("_Choice", bound=StrEnum)


class Method(StrEnum):
    """How picks are chosen."""

    AUTO = "auto"
    EXACT = "exact"
    FAST = "fast"
    STOCHASTIC = "stochastic"
    RANDOM = "random"

    @property
    def is_greedy(self) -> bool:
        return self not in (Method.STOCHASTIC, Method.RANDOM)

    def for_size(self, num_points: int) -> Method:
        """`auto` resolved for a class of `num_points`; the others as they are."""
        if self is not Method.AUTO:
            return self
        return Method.EXACT if num_points <= EXACT_UP_TO else Method.FAST


class DistanceMetric(StrEnum):
    """How far apart two embeddings are: as they are, or scaled to length 1 (sqrt(2 - 2 cosine similarity))."""

    EUCLIDEAN = "euclidean"
    COSINE = "cosine"


class ReferenceRole(StrEnum):
    """What the rows of a reference count for, apart from the check for copies of them.

    `cover`: they are to be represented, too, so that regions of the reference get picks. `fill`: they count as picked,
    so that picks go where the reference has none. `check`: nothing.
    """

    COVER = "cover"
    FILL = "fill"
    CHECK = "check"


class Curvature(StrEnum):
    """Which diagonal preconditions the gradients (AdaCore)."""

    NONE = "none"
    UNIT = "unit"
    SOFTMAX = "softmax"
    HUTCHINSON = "hutchinson"


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """How rows are filtered and a coreset is chosen. Values are checked and normalised on construction.

    Enums may be given as text, and `memory_limit` as text such as "500MB".

    Attributes:
        budget: a fraction of each class (float in (0, 1]) or a count over all classes (int).
        epsilon: instead of `budget`, the smallest coreset with gradient bound at most this.
        entropy_ceiling: in nats; rows at or above it are rejected. "auto" searches it with `ceiling_score`.
        keep_fraction: instead of a ceiling, keep this fraction of the rows, those with the lowest entropy.
        keep_per_class: apply `keep_fraction` within each class.
        require_label: also reject rows that the classifier gives another label. By default, with embeddings, those of
            which it is confident, except in classes most of whose rows would be rejected (decision 0210).
        method: "auto", "exact", "fast", "stochastic" or "random".
        refine: exchange picks until no exchange lowers the bound.
        metric: of embeddings, "euclidean" or "cosine".
        leak_distance: rows at most this far from a row of the reference are rejected as copies. By default, those that
            differ by rounding only: a ten-thousandth of the reference's mean length.
        reference_role: "cover", "fill" or "check"; see `ReferenceRole`.
        reference_weight: with "cover", the weight of the whole reference relative to that of all rows.
        quality_floor: rows of a lower quality are rejected.
        quality_factor: multiply gains by the quality when picks are compared, so that better rows are preferred.
        outlier_fraction: in [0, 1); of each class, reject this share of the rows that nothing else rejects: those with
            the largest mean distance to their 10 nearest rows. In classes of more than 20,000 rows, neighbours are
            searched among that many random ones.
        max_weight: at least 1; no weight may exceed this many times the mean weight of its class. The excess goes to
            the other selected rows of the class, in proportion to their weights.
        curvature: "none" (CRAIG), "softmax", "hutchinson" or "unit": AdaCore's preconditioner.
        memory_limit: bytes to use beyond the input and the program itself. Over it, a method that needs less memory is
            used and noted, or an error says how much is needed.
        n_jobs: threads; all cores if None or -1. The result does not depend on it.
        device: where the matrix products of many dimensions are computed: "cpu", "cuda", "cuda:N" or "mps"; "auto" is
            the device of the tensors given. The result does not depend on it.
        seed: of `stochastic`, `random`, Hutchinson's probes, the folds of the cross-validation, and neighbours among
            which outliers are found.
        part_rows: on a cluster, classes with more rows are split into parts of about this size.
    """

    budget: float | int = 0.1
    epsilon: float | None = None
    entropy_ceiling: float | str | None = None
    keep_fraction: float | None = None
    keep_per_class: bool = False
    require_label: bool | None = None
    method: Method = Method.AUTO
    refine: bool = False
    metric: DistanceMetric = DistanceMetric.EUCLIDEAN
    leak_distance: float | None = None
    reference_role: ReferenceRole = ReferenceRole.COVER
    reference_weight: float = 1.0
    quality_floor: float | None = None
    quality_factor: bool = False
    outlier_fraction: float = 0.0
    max_weight: float | None = None
    curvature: Curvature = Curvature.NONE
    memory_limit: int | None = None
    n_jobs: int | None = None
    device: Any = AUTO
    seed: int = 0
    part_rows: int = 100_000

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "method": one_of(Method, self.method, "method"),
            "metric": one_of(DistanceMetric, self.metric, "metric"),
            "reference_role": one_of(ReferenceRole, self.reference_role, "reference-role"),
            "curvature": one_of(Curvature, self.curvature, "curvature"),
            "memory_limit": bytes_in(self.memory_limit),
            "n_jobs": _threads(self.n_jobs),
        }
        ceiling: Any = None if self.entropy_ceiling is None or self.entropy_ceiling == AUTO else self.entropy_ceiling
        if ceiling is not None:
            try:
                checked["entropy_ceiling"] = ceiling = float(ceiling)
            except (TypeError, ValueError):
                raise SelectionError(
                    f"expected entropy_ceiling as a number or 'auto', got {ceiling!r}: try 1e-6", code="entropy-ceiling"
                ) from None
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        _check_budget(self.budget, self.epsilon)
        check_filter(ceiling, self.keep_fraction, keep_per_class=self.keep_per_class)
        for name, lowest, tried in (
            ("leak_distance", 0.0, 0.1),
            ("reference_weight", 0.0, 1),
            ("quality_floor", None, 3),
            ("max_weight", 1.0, 3),
        ):
            _check_finite(getattr(self, name), name, lowest, tried)
        if not _is_number(self.outlier_fraction) or not 0 <= self.outlier_fraction < 1:
            raise SelectionError(
                f"expected outlier_fraction in [0, 1), got {str(self.outlier_fraction)[:50]}: 0.05 rejects a twentieth",
                code="outlier-fraction",
            )
        if self.max_weight is not None and self.epsilon is not None:
            raise SelectionError(
                "expected max_weight or epsilon, got both: a cap on weights raises the bound, so leave one out",
                code="max-weight",
            )
        if self.quality_factor and self.refine:
            raise SelectionError(
                "expected quality_factor or refine, got both: refinement lowers the bound alone, so leave one out",
                code="refine",
            )
        if self.part_rows < MIN_PART_ROWS:
            raise SelectionError(
                f"expected parts of at least {MIN_PART_ROWS:,} rows, got {self.part_rows}: try 100000", code="part-rows"
            )

    @classmethod
    def from_settings(cls, settings: AugmentationSettings, *, ceiling: float | None, **others: Any) -> SelectionOptions:
        """The options of the section `augmentation`; `ceiling` is the number that its ceiling, maybe "auto", became."""
        return cls(
            budget=settings.coreset_fraction,
            entropy_ceiling=ceiling,
            keep_fraction=settings.keep_fraction if ceiling is None else None,
            keep_per_class=ceiling is None and settings.keep_fraction is not None,
            require_label=settings.require_label,
            curvature=Curvature.HUTCHINSON if str(settings.coreset) == "adacore" else Curvature.NONE,
            **others,
        )

    def without_filter(self) -> SelectionOptions:
        """The same for rows that are filtered already."""
        none: dict[str, Any] = dict.fromkeys(("entropy_ceiling", "keep_fraction", "require_label"))
        return replace(self, **none, keep_per_class=False, outlier_fraction=0.0)

    @property
    def filters(self) -> bool:
        """Whether any row can be rejected, which needs the classifier's output."""
        return self.entropy_ceiling is not None or self.keep_fraction is not None or bool(self.require_label)


def one_of(kind: type[_Choice], value: str, name: str) -> _Choice:
    """The member of an enum with this value."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise SelectionError(
            f"expected {name.replace('-', '_')} to be one of {known}, got {value!r}: pick one of those", code=name
        ) from None


def check_filter(entropy_ceiling: float | None, keep_fraction: float | None, *, keep_per_class: bool = False) -> None:
    """Raise unless at most one of ceiling and fraction is given and it is in range."""
    if entropy_ceiling is not None and keep_fraction is not None:
        raise SelectionError(
            "expected an entropy_ceiling or a keep_fraction, got both: leave one out", code="two-filters"
        )
    if entropy_ceiling is not None and not entropy_ceiling > 0:
        raise SelectionError(
            f"expected entropy_ceiling above 0 nats, got {entropy_ceiling:g}: try 1e-6, or use keep_fraction",
            code="entropy-ceiling",
        )
    if keep_fraction is not None and not 0 < keep_fraction <= 1:
        raise SelectionError(
            f"expected keep_fraction in (0, 1], got {keep_fraction:g}: 0.1 keeps a tenth", code="keep-fraction"
        )
    if keep_per_class and keep_fraction is None:
        raise SelectionError(
            "expected keep_fraction with keep_per_class, got none: give both, or neither", code="keep-fraction"
        )


def bytes_in(limit: int | float | str | None) -> int | None:
    """`"1.5GB"` -> 1500000000; numbers are bytes already."""
    if limit is None:
        return None
    number: Any = limit
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([A-Za-z]*)\s*", limit)
        known = match is not None and match[2].upper() in _BYTES
        number = float(match[1]) * _BYTES[match[2].upper()] if match and known else None
    if not _is_number(number) or not 0 < number < float("inf"):
        raise SelectionError(
            f"expected memory_limit as bytes above 0 or text such as '500MB', got {str(limit)[:50]!r}: try '1GB'",
            code="memory-limit",
        )
    return int(number)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _check_budget(budget: Any, epsilon: Any) -> None:
    if epsilon is not None:
        if not _is_number(epsilon) or not 0 < epsilon < _MAX_FLOAT:  # an int may be too large for a float
            raise SelectionError(
                f"expected epsilon above 0, got {str(epsilon)[:50]}: it is a length in gradient units", code="epsilon"
            )
        return
    whole = isinstance(budget, int | np.integer)
    if not _is_number(budget) or not (budget >= 1 if whole else 0 < budget <= 1):
        raise SelectionError(
            f"expected budget as a fraction in (0, 1] or a count of at least 1, got {budget!r}: try 0.1 or 500",
            code="budget",
        )


def _check_finite(value: Any, name: str, lowest: float | None, tried: float) -> None:
    """Raise unless the value is None or a finite number of at least `lowest`."""
    known = _is_number(value) and np.isfinite(value) and (lowest is None or value >= lowest)
    if value is not None and not known:
        least = "" if lowest is None else f" of at least {lowest:g}"
        raise SelectionError(
            f"expected {name} as a finite number{least}, got {str(value)[:50]}: try {tried:g}",
            code=name.replace("_", "-"),
        )


def _threads(value: Any) -> int | None:
    """None, or -1 as in scikit-learn, means all cores."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is None or (whole and value == -1):
        return None
    if not whole or value < 1:
        raise SelectionError(
            f"expected n_jobs of at least 1 or -1 for all cores, got {value!r}: leave it out to use all cores",
            code="n-jobs",
        )
    return int(value)
