"""What a sieve tells when it is done: its figures as text and as plain numbers, and every row's fate as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synthsieve.entropy import Reason

if TYPE_CHECKING:
    from synthsieve.selection.coreset import ClassFigures


# Above this share of survivors whose label the classifier contradicts, a note tells what can be done.
_MANY_CONTRADICTED = 0.03


@dataclass(frozen=True)
class Contradicted:
    """Rows that the classifier gives another label than their own.

    Attributes:
        survivors, selected: how many of each.
        num_survivors, num_selected: of how many.
        expected_at_random: how many there would be on average among as many random picks of each class.
    """

    survivors: int
    selected: int
    num_survivors: int
    num_selected: int
    expected_at_random: float

    @classmethod
    def counted(
        cls, labels: np.ndarray, contradicted: np.ndarray, kept: np.ndarray, indices: np.ndarray
    ) -> Contradicted:
        """From class indices (n,), who is contradicted and who survived, bool (n,), and the selected rows (k,)."""
        size = int(labels.max()) + 1
        survivors = np.bincount(labels[kept], minlength=size)
        wrong = np.bincount(labels[kept & contradicted], minlength=size)
        picks = np.bincount(labels[indices], minlength=size)
        return cls.of(survivors, wrong, picks, int(contradicted[indices].sum()))

    @classmethod
    def of(cls, survivors: np.ndarray, wrong: np.ndarray, picks: np.ndarray, selected: int) -> Contradicted:
        """From survivors, contradicted ones among them and picks of each class (c,), and contradicted picks in all."""
        return cls(
            survivors=int(wrong.sum()),
            selected=selected,
            num_survivors=int(survivors.sum()),
            num_selected=int(picks.sum()),
            expected_at_random=float((picks * wrong / np.maximum(survivors, 1)).sum()),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "survivors": self.survivors,
            "selected": self.selected,
            "expected_at_random": round(self.expected_at_random, 2),
        }

    def notes(self) -> tuple[str, ...]:
        """A sentence where they are many."""
        if self.survivors <= _MANY_CONTRADICTED * self.num_survivors:
            return ()
        return (
            f"the classifier gives another label to {self.survivors / self.num_survivors:.1%} of the survivors and "
            f"{self.selected / self.num_selected:.1%} of the selected rows: gradient coverage tends to pick wrong "
            "labels, whose gradients are rare; require_label (--require-label) rejects such rows",
        )


class Told:
    """The figures that every sieve ends with, whether its rows fit in memory or not.

    Attributes:
        gradient_bound, gradient_error: L, and the measured error of the weighted gradient sum.
        entropy_ceiling: the ceiling applied; infinity if none.
        classes: the labels, in the order of the class indices in `figures`.
        figures: per class, what was done and achieved.
        notes: sentences worth reading.
        seconds: wall time of the selection; compile_seconds: of compiling or loading its kernels, not counted in it.
        contradicted: rows that the classifier gives another label, where they were counted.
    """

    gradient_bound: float
    gradient_error: float
    entropy_ceiling: float
    classes: tuple[Any, ...]
    figures: tuple[ClassFigures, ...]
    notes: tuple[str, ...]
    seconds: float
    compile_seconds: float
    contradicted: Contradicted | None = None

    @property
    def num_rows(self) -> int:
        """How many rows were given."""
        raise NotImplementedError

    @property
    def rejected_counts(self) -> dict[str, int]:
        """How many rows were rejected for each reason, in words."""
        raise NotImplementedError

    @property
    def num_selected(self) -> int:
        return sum(figures.selected for figures in self.figures)

    @property
    def random_bound(self) -> float | None:
        """About what L would be with as many random picks of each class; None where that was not estimated."""
        bounds = [figures.random_bound for figures in self.figures if figures.random_bound is not None]
        return float(sum(bounds)) if len(bounds) == len(self.figures) else None

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain numbers and text, for JSON."""
        return {
            "rows": self.num_rows,
            "rejected": self.rejected_counts,
            "selected": self.num_selected,
            "entropy_ceiling": self.entropy_ceiling if np.isfinite(self.entropy_ceiling) else None,
            "gradient_bound": self.gradient_bound,
            "gradient_error": self.gradient_error,
            "random_bound": self.random_bound,
            "contradicted": None if self.contradicted is None else self.contradicted.as_dict(),
            "seconds": round(self.seconds, 3),
            "compile_seconds": round(self.compile_seconds, 3),
            "classes": [
                {
                    "label": str(self.classes[figures.label]),
                    "survivors": figures.size,
                    "distinct": figures.distinct,
                    "selected": figures.selected,
                    "weight": figures.weight,
                    "gradient_bound": figures.gradient_bound,
                    "gradient_error": figures.gradient_error,
                    "heaviest_share": figures.heaviest,
                    "method": str(figures.method),
                    "exchanges": figures.exchanges,
                }
                for figures in self.figures
            ],
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """One screen of text."""
        rejected = self.rejected_counts
        survive = self.num_rows - sum(rejected.values())
        lines = [f"{self.num_rows:,} rows, {survive:,} survive, {self.num_selected:,} selected"]
        lines += [f"  rejected {number:,}: {words}" for words, number in rejected.items()]
        if np.isfinite(self.entropy_ceiling):
            lines.append(f"  entropy ceiling {self.entropy_ceiling:.3g} nats")
        wrong = self.contradicted
        if wrong is not None:
            lines.append(
                f"  label contradicted by the classifier: {wrong.survivors:,} survivors "
                f"({_share(wrong.survivors, wrong.num_survivors)}), {wrong.selected:,} selected "
                f"({_share(wrong.selected, wrong.num_selected)})"
            )
        lines.append(f"gradient error {self.gradient_error:.4g}, guaranteed at most {self.gradient_bound:.4g}")
        if self.random_bound is not None:
            share = "" if wrong is None else f", {_share(wrong.expected_at_random, wrong.num_selected)} contradicted"
            lines.append(f"  as many random rows: bound about {self.random_bound:.3g}{share}")
        lines += [
            f"{'class':>14} {'survivors':>10} {'selected':>9} {'bound':>10} {'error':>10} {'heaviest':>9}  method",
        ]
        for figures in self.figures[:20]:
            lines.append(
                f"{_on_one_line(self.classes[figures.label])[:14]:>14} {figures.size:>10,} {figures.selected:>9,} "
                f"{figures.gradient_bound:>10.4g} {figures.gradient_error:>10.4g} {figures.heaviest:>9.1%}  "
                f"{figures.method}"
            )
        if len(self.figures) > 20:
            lines.append(f"  ... and {len(self.figures) - 20} more classes")
        lines += [f"note: {_on_one_line(note)}" for note in self.notes[:8]]
        if len(self.notes) > 8:
            lines.append(f"note: ... and {len(self.notes) - 8} more")
        lines.append(f"{self.seconds:.2f} s" + _compiled(self.compile_seconds))
        return "\n".join(lines)


def _share(part: float, whole: int) -> str:
    return f"{part / whole:.1%}"


def _on_one_line(text: Any) -> str:
    return " ".join(str(text).split())


def fates(rows: dict[str, np.ndarray]) -> Any:
    """An Arrow table from `Selection.rows`: what is not known of a row is null, the reason is in words."""
    import pyarrow as pa

    return pa.table(
        {
            **{name: rows[name] for name in ("row", "selected", "weight", "loss_weight")},
            "entropy": pa.array(rows["entropy"], mask=np.isnan(rows["entropy"])),
            "rank": pa.array(rows["rank"], mask=rows["rank"] < 0),
            "assignment": pa.array(rows["assignment"], mask=rows["assignment"] < 0),
            "reason": _reasons_in_words(rows["selected"], rows["reason"]),
        }
    )


def lost_classes(present: set[int], labels: list[int], names: tuple[Any, ...]) -> tuple[str, ...]:
    """A sentence for each of `labels` of which nobody is among the `present` any more."""
    return tuple(f"class {names[label]}: no row survived the filter" for label in labels if label not in present)


def _reasons_in_words(selected: np.ndarray, reason: np.ndarray) -> Any:
    """An Arrow dictionary column: why each row is where it is."""
    import pyarrow as pa

    words = ["not selected: a pick stands for it", *(code.in_words() for code in list(Reason)[1:]), "selected"]
    codes = np.where(selected, len(words) - 1, reason).astype(np.int8)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(words))


def _compiled(seconds: float) -> str:
    return f" (and {seconds:.1f} s to compile or load the kernels, once)" if seconds > 0.05 else ""
