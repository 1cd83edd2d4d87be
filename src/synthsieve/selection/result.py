"""The result of a selection: rows, weights, what is guaranteed, and a summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.io.files import atomic_write
from synthsieve.selection.entropy import REJECTED, Reason, outcome_codes

if TYPE_CHECKING:
    from synthsieve.selection.curvature import CurvatureState
    from synthsieve.selection.options import Method, SelectionOptions
    from synthsieve.selection.reference import ReferenceFigures

# Above this share of survivors whose label the classifier contradicts, a note says what can be done.
_MANY_CONTRADICTED = 0.03
# A pick that represents more than this share of its class is noted; many such classes share one note.
_MAX_SHARE = 0.1
_MAX_HEAVY_NOTES = 8
_MAX_CLASSES_SHOWN = 20
_MAX_NOTES_SHOWN = 8
_ALL_REJECTED = (*REJECTED, Reason.COPY, Reason.LOW_QUALITY, Reason.OUTLIER)


@dataclass(frozen=True)
class ClassFigures:
    """What was done in one class: `size` rows, of which `distinct` differ and `selected` were picked.

    `weight` is the sum of the rows' weights and of the picks' weights; `heaviest` the share of it that one pick
    represents; `exchanges` how many picks the refinement exchanged; `random_bound` the approximate L of as many random
    picks, None if not estimated; `capped` how many weights `max_weight` lowered, and `cap_bound` the part of
    `gradient_bound` that comes from that.
    """

    label: int
    size: int
    distinct: int
    selected: int
    weight: float
    gradient_bound: float
    gradient_error: float
    heaviest: float
    method: Method
    exchanges: int
    random_bound: float | None = None
    capped: int = 0
    cap_bound: float = 0.0

    def as_dict(self, classes: Sequence[Any]) -> dict[str, Any]:
        same = ("distinct", "selected", "weight", "gradient_bound", "gradient_error", "exchanges", "capped")
        return {
            "label": str(classes[self.label]),
            "survivors": self.size,
            "heaviest_share": self.heaviest,
            "method": str(self.method),
            **{name: getattr(self, name) for name in same},
        }


@dataclass(frozen=True)
class Contradicted:
    """How many rows the classifier gives another label than their own, and the expected number among random picks."""

    survivors: int
    selected: int
    num_survivors: int
    num_selected: int
    expected_at_random: float

    @classmethod
    def count(cls, labels: np.ndarray, contradicted: np.ndarray, kept: np.ndarray, indices: np.ndarray) -> Contradicted:
        """From class indices (n,), contradicted and surviving rows, bool (n,), and the selected rows (k,)."""
        size = int(labels.max()) + 1
        survivors = np.bincount(labels[kept], minlength=size)
        wrong = np.bincount(labels[kept & contradicted], minlength=size)
        picks = np.bincount(labels[indices], minlength=size)
        expected = float((picks * wrong / np.maximum(survivors, 1)).sum())
        return cls(int(wrong.sum()), int(contradicted[indices].sum()), int(kept.sum()), len(indices), expected)

    def as_dict(self) -> dict[str, Any]:
        expected = round(self.expected_at_random, 2)
        return {"survivors": self.survivors, "selected": self.selected, "expected_at_random": expected}

    def notes(self) -> tuple[str, ...]:
        """A note if there are many."""
        if self.survivors <= _MANY_CONTRADICTED * self.num_survivors:
            return ()
        return (
            f"the classifier gives another label to {self.survivors / self.num_survivors:.1%} of the survivors and "
            f"{self.selected / self.num_selected:.1%} of the selected rows: coverage tends to pick wrong labels, as "
            "they are rare; require_label (--require-label) rejects such rows",
        )


@dataclass(frozen=True, repr=False)
class Selection:
    """Selected rows with weights, and a bound on the error of their weighted gradient sum.

    Attributes:
        indices: int64 (k,), selected rows, class by class, each class in pick order.
        weights: float64 (k,), how many rows (or how much sample weight) each represents; they sum to the class size.
            With `max_weight`, what remains of that under the cap.
        num_rows: how many rows were given.
        gradient_bound: L, an upper bound of the error of the weighted gradient sum.
        gradient_error: that error, measured; the length of `difference`.
        difference: float64 (d,), weighted gradient sum of all rows minus that of the selected rows.
        classes: the labels, in the order of the class indices in `figures`.
        figures: per class, what was done and achieved.
        notes: sentences worth reading.
        rejected_counts: number of rejected rows by reason, in words.
        entropy_ceiling: the ceiling applied; infinity if none.
        gains: float64 (k,), how much each pick lowered the bound.
        assignment: int64 (n,), the selected row that represents each row; -1 for rejected rows.
        entropy: float64 (n,), in nats; None if only gradients were given.
        reason: int8 (n,), an `entropy.Reason` for each row.
        seconds: wall time.
        compile_seconds: wall time of compiling or loading the kernels, not included in `seconds`.
        curvature_state: averages for the next selection; None without curvature.
        contradicted: rows that the classifier gives another label; None with gradients alone.
        reference: how the rows relate to real rows; None without any.
        of_embeddings: whether distances are between embeddings; `gradient_bound` and `gradient_error` are then theirs.
        points: (k, d), the embeddings of the selected rows, for `extend`; None without embeddings.
        options: the options of the selection; None on a cluster.
        extender: the function behind `extend`; None without embeddings.
        stages: wall seconds of each stage on a cluster.
        files: the files written by `select_file`.

    A selection on a cluster leaves `gains`, `assignment`, `entropy` and `reason` empty: its rows are on disk.
    """

    indices: np.ndarray
    weights: np.ndarray
    num_rows: int
    gradient_bound: float
    gradient_error: float
    difference: np.ndarray
    classes: tuple[Any, ...]
    figures: tuple[ClassFigures, ...]
    notes: tuple[str, ...]
    rejected_counts: dict[str, int] = field(default_factory=dict)
    entropy_ceiling: float = np.inf
    gains: np.ndarray = field(default_factory=lambda: np.empty(0))
    assignment: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    entropy: np.ndarray | None = None
    reason: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int8))
    seconds: float = 0.0
    compile_seconds: float = 0.0
    curvature_state: CurvatureState | None = None
    contradicted: Contradicted | None = None
    reference: ReferenceFigures | None = None
    of_embeddings: bool = False
    points: np.ndarray | None = None
    options: SelectionOptions | None = None
    extender: Callable[..., Selection] | None = None
    stages: dict[str, float] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        methods = ", ".join(sorted({str(figures.method) for figures in self.figures}))
        return (
            f"Selection({len(self):,} of {self.num_rows:,} rows, {self.num_rejected:,} rejected, "
            f"{len(self.figures):,} classes, gradient_bound={self.gradient_bound:.4g}, "
            f"gradient_error={self.gradient_error:.4g}, method={methods})"
        )

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def num_rejected(self) -> int:
        return sum(self.rejected_counts.values())

    @property
    def num_capped(self) -> int:
        """How many weights were above `max_weight` and lowered."""
        return sum(figures.capped for figures in self.figures)

    @property
    def rejected(self) -> np.ndarray:
        """Rejected rows: int64 (r,), ascending; `reason` says why."""
        return np.flatnonzero(self.reason != Reason.KEPT)

    @property
    def ranks(self) -> np.ndarray:
        """The turn of each selected row within its class, from 0: int64 (k,)."""
        return np.concatenate([np.arange(figures.selected) for figures in self.figures])

    @property
    def loss_weights(self) -> np.ndarray:
        """The weights scaled to mean 1, as a loss uses them."""
        return self.weights / self.weights.mean()

    @property
    def random_bound(self) -> float | None:
        """Approximate L of as many random picks of each class; None if not estimated."""
        bounds = [figures.random_bound for figures in self.figures]
        return None if None in bounds else float(sum(bounds))  # type: ignore[arg-type]

    def rows(self) -> dict[str, np.ndarray]:
        """A column for each property of a row: selected, weight and loss_weight (0 if not selected), entropy, rank in
        its class, assignment, reason."""
        if len(self.assignment) != self.num_rows:
            raise SelectionError(
                "expected rows in memory, got a selection on a cluster: read OUT/selection", code="rows"
            )
        entropy = np.full(self.num_rows, np.nan) if self.entropy is None else self.entropy
        picks = {"row": self.indices, "rank": self.ranks, "weight": self.weights}
        return row_columns(0, picks, float(self.weights.mean()), entropy, self.assignment, self.reason)

    def to_arrow(self) -> Any:
        """The columns of `rows` as an Arrow table with the reason in words (`.to_pandas()` makes a data frame).

        With a reference, also its nearest row and the distance, as `reference_row` and `reference_distance`.
        """
        table = outcome_table(self.rows())
        if self.reference is not None:
            table = table.append_column("reference_row", [self.reference.row])
            table = table.append_column("reference_distance", [self.reference.distance])
        return table

    def take(self, rows: Any) -> Any:
        """The selected rows in the form of `rows`, which must be those that were given to `select`.

        Arrays, tensors and lists in the order of `indices`. Tables likewise, with the columns weight, loss_weight,
        rank, entropy, assignment and reason (`coreset_weight`, ... if the name is taken). Of an `IterableDataset`, one
        that is filtered when it is read.
        """
        from synthsieve.selection.rows import take

        return take(rows, self.indices, self.num_rows, self.to_arrow().drop_columns(["row", "selected"]))

    def extend(self, embeddings: Any, labels: Any = None, **changes: Any) -> Selection:
        """This selection, and more rows chosen among new ones, numbered from `num_rows` on.

        The rows selected before stay; new ones are chosen where they are far from those. `budget` is a fraction of the
        new rows or a number of further picks. Each new row is assigned to the nearest pick, old or new; earlier rows
        keep theirs, so a new assignment of all rows could only lower the bound.

        Args:
            embeddings: (m, d), of the same encoder.
            labels: (m,), if the earlier rows had labels; new classes are possible.
            changes: other options than before, by name.
        """
        if self.extender is None:
            raise SelectionError(
                "expected a selection by embeddings to extend, got one by gradients: select again, with all rows",
                code="extend",
            )
        return self.extender(self, embeddings, labels, **changes)

    def to_parquet(self, path: Path | str) -> None:
        """Write a line for every row, atomically: the table of `to_arrow`."""
        import pyarrow.parquet as pq

        with atomic_write(Path(path)) as partial, partial.open("wb") as file:
            pq.write_table(self.to_arrow(), file)

    def with_notes(self, *notes: str) -> Selection:
        """The same selection with more notes, before the others."""
        return replace(self, notes=(*notes, *self.notes))

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain numbers and text, for JSON."""
        described = {
            "rows": self.num_rows,
            "rejected": self.rejected_counts,
            "selected": len(self),
            "capped": self.num_capped,
            "entropy_ceiling": self.entropy_ceiling if np.isfinite(self.entropy_ceiling) else None,
            "gradient_bound": self.gradient_bound,
            "gradient_error": self.gradient_error,
            "random_bound": self.random_bound,
            "contradicted": None if self.contradicted is None else self.contradicted.as_dict(),
            **({} if self.reference is None else {"reference": self.reference.as_dict()}),
            "seconds": round(self.seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "classes": [one.as_dict(self.classes) for one in self.figures],
            "notes": list(self.notes),
        }
        if self.stages:
            described["stage_seconds"] = {name: round(seconds, 2) for name, seconds in self.stages.items()}
        return described

    def summary(self) -> str:
        """One screen of text."""
        survive = self.num_rows - self.num_rejected
        lines = [f"{self.num_rows:,} rows, {survive:,} survive, {len(self):,} selected"]
        lines += [f"  rejected {number:,}: {words}" for words, number in self.rejected_counts.items()]
        if np.isfinite(self.entropy_ceiling):
            lines.append(f"  entropy ceiling {self.entropy_ceiling:.3g} nats")
        wrong = self.contradicted
        if wrong is not None:
            lines.append(
                f"  label contradicted by the classifier: {wrong.survivors:,} survivors "
                f"({wrong.survivors / wrong.num_survivors:.1%}), {wrong.selected:,} selected "
                f"({wrong.selected / wrong.num_selected:.1%})"
            )
        if self.of_embeddings:
            distances = self.gradient_bound - sum(figures.cap_bound for figures in self.figures)
            mean = distances / max(float(self.weights.sum()), 1e-300)
            lines.append(
                f"coverage: distance of a row to its selected row {mean:.4g} on average, {distances:.4g} in all; "
                f"error of the weighted sum {self.gradient_error:.4g}"
            )
        else:
            lines.append(f"gradient error {self.gradient_error:.4g}, guaranteed at most {self.gradient_bound:.4g}")
        if self.random_bound is not None:
            share = "" if wrong is None else f", {wrong.expected_at_random / wrong.num_selected:.1%} contradicted"
            what = "distances" if self.of_embeddings else "bound"
            lines.append(f"  as many random rows: {what} about {self.random_bound:.3g}{share}")
        if self.num_capped:
            lines.append(f"  {self.num_capped:,} of {len(self):,} weights capped")
        lines += [] if self.reference is None else self.reference.lines()
        lines += [f"{'class':>14} {'survivors':>10} {'selected':>9} {'bound':>10} {'error':>10} {'heaviest':>9} method"]
        for figures in self.figures[:_MAX_CLASSES_SHOWN]:
            lines.append(
                f"{_on_one_line(self.classes[figures.label])[:14]:>14} {figures.size:>10,} {figures.selected:>9,} "
                f"{figures.gradient_bound:>10.4g} {figures.gradient_error:>10.4g} {figures.heaviest:>9.1%} "
                f"{figures.method}"
            )
        if len(self.figures) > _MAX_CLASSES_SHOWN:
            lines.append(f"  ... and {len(self.figures) - _MAX_CLASSES_SHOWN} more classes")
        lines += [f"note: {_on_one_line(note)}" for note in self.notes[:_MAX_NOTES_SHOWN]]
        if len(self.notes) > _MAX_NOTES_SHOWN:
            lines.append(f"note: ... and {len(self.notes) - _MAX_NOTES_SHOWN} more")
        compiled = f" (and {self.compile_seconds:.1f} s to compile or load the kernels, once)"
        lines.append(f"{self.seconds:.2f} s" + (compiled if self.compile_seconds > 0.05 else ""))
        return "\n".join(lines)


def _on_one_line(text: Any) -> str:
    return " ".join(str(text).split())


def count_reasons(reason: np.ndarray) -> dict[str, int]:
    """How many rows were rejected for each reason, in words."""
    counts = np.bincount(reason, minlength=len(Reason)).tolist()
    return {code.describe(): counts[code] for code in _ALL_REJECTED if counts[code]}


def row_columns(
    first_row: int,
    picks: dict[str, np.ndarray],
    mean_weight: float,
    entropy: np.ndarray,
    assignment: np.ndarray,
    reason: np.ndarray,
) -> dict[str, np.ndarray]:
    """The columns of `Selection.rows` for consecutive rows from `first_row` on; `picks` has their row, rank, weight."""
    rank, weight = np.full(len(entropy), -1, dtype=np.int64), np.zeros(len(entropy))
    selected = picks["row"] - first_row
    rank[selected], weight[selected] = picks["rank"], picks["weight"]
    return {
        "row": np.arange(len(entropy)) + first_row,
        "selected": rank >= 0,
        "weight": weight,
        "loss_weight": weight / mean_weight,
        "entropy": entropy,
        "rank": rank,
        "assignment": assignment,
        "reason": reason,
    }


def outcome_table(rows: dict[str, np.ndarray]) -> Any:
    """An Arrow table of `Selection.rows`: unknown values are null, the reason is in words."""
    import pyarrow as pa

    words = [reason.describe() for reason in Reason]
    codes = outcome_codes(rows["reason"], rows["selected"])
    return pa.table(
        {
            **{name: rows[name] for name in ("row", "selected", "weight", "loss_weight")},
            "entropy": pa.array(rows["entropy"], mask=np.isnan(rows["entropy"])),
            "rank": pa.array(rows["rank"], mask=rows["rank"] < 0),
            "assignment": pa.array(rows["assignment"], mask=rows["assignment"] < 0),
            "reason": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(words)),
        }
    )


def lost_class_notes(labels: np.ndarray, kept: np.ndarray, names: Sequence[Any]) -> tuple[str, ...]:
    """A note for each class of which no row survived, from labels and surviving rows, bool (n,)."""
    lost = sorted(set(np.unique(labels).tolist()) - set(np.unique(labels[kept]).tolist()))
    return tuple(f"class {names[label]}: no row survived the filter" for label in lost)


def heavy_notes(classes: Sequence[ClassFigures], names: Sequence[str]) -> tuple[str, ...]:
    """A note for each class in which one pick represents much; one for all of them if there are many."""
    heavy = [(figures, name) for figures, name in zip(classes, names, strict=True) if figures.heaviest > _MAX_SHARE]
    if len(heavy) > _MAX_HEAVY_NOTES:
        figures, name = max(heavy, key=lambda pair: pair[0].heaviest)
        return (
            f"in {len(heavy)} of {len(classes)} classes one pick stands for more than {_MAX_SHARE:.0%} of the class, "
            f"at most for {figures.heaviest:.0%} (class {name}: {figures.size} rows, {figures.selected} picks)",
        )
    return tuple(
        f"class {name}: one pick stands for {figures.heaviest:.0%} of the class ({figures.size} rows, "
        f"{figures.distinct} distinct, {figures.selected} picks)"
        for figures, name in heavy
    )
