"""From a pool and the fate of its samples to a data set on disk: what `synthsieve export` and the gallery call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve import drawing
from synthsieve.data.cells_out import ids_out
from synthsieve.data.schema import ColumnType
from synthsieve.data.table_encoding import TableEncoding
from synthsieve.entropy import Reason
from synthsieve.errors import SelectionError
from synthsieve.export.block import About, Block
from synthsieve.export.data_set import Plan, sizes, write_export
from synthsieve.export.formats import POSSIBLE, Form, Format, Which, asked_formats, form_of
from synthsieve.export.place import check_place
from synthsieve.export.sheet import MOST_COLUMNS, array_columns
from synthsieve.learning.shown import shown_items
from synthsieve.progress import Progress, Silent
from synthsieve.review.fate import NOT_CHOSEN, Fate
from synthsieve.review.pool_view import PoolView
from synthsieve.review.provenance import MEANINGS, provenance, words_for_card

MOST_NAMED = 20  # classes in one sentence
REASONS = ("selected", NOT_CHOSEN, *(reason.in_words() for reason in list(Reason)[1:]))


@dataclass(frozen=True)
class Exported:
    """A data set on disk.

    Attributes:
        folder: where it lies.
        manifest: what its manifest.json says.
    """

    folder: Path
    manifest: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Files with rows and bytes, counts and the verdict: plain values for JSON."""
        told = {name: {"bytes": size} for name, size in sizes(self.manifest).items()}
        for name, rows in self.manifest["rows"].items():
            told[name]["samples"] = rows
        return {
            "export": str(self.folder),
            "formats": self.manifest["formats"],
            "files": told,
            "counts": self.manifest["counts"],
            "proof": self.manifest["proof"]["words"],
        }


def export_view(
    view: PoolView,
    fate: Fate,
    *,
    to: Path | str,
    formats: Sequence[Format] | None = None,
    which: Which = Which.USUAL,
    table: dict[str, Any] | None = None,
    allow_empty_classes: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write the samples of a pool, with that fate, to the folder `to`: whole, or not at all.

    Args:
        view: the pool.
        fate: what became of its samples: `view.sieved(...)`.
        to: the folder; an earlier export in it is replaced when the new one is whole, anything else is refused.
        formats: how they are written; those usual for the kind of data if not given.
        which: which of them; see `Which`.
        table: what the run's table.json says, `Run.table`: the proof that the card tells of.
        allow_empty_classes: write it even where another filter leaves no sample of a class; else that is refused.
        progress: told how many samples are written.
    """
    to = Path(to)
    check_place(to)
    if not len(fate.selected):
        raise SelectionError("no sample is selected, so that there is none to export: raise the ceiling or the budget")
    lost = view.lost_classes(fate)
    if len(lost) and not allow_empty_classes:
        raise SelectionError(_lost_in_words(view, fate, lost))
    first = items_of(view, fate.selected[:1], view.decode(fate.selected[:1]))
    about = About(
        form_of(first), view.classes, view.run.origin.label or "label", total=len(view), selected=len(fate.selected)
    )
    plan = Plan(about, asked_formats(about.form, formats), which, MEANINGS)
    rows = np.arange(len(view)) if any(which.is_all(one) for one in plan.formats) else fate.selected
    facts = provenance(view, fate, table, formats=formats, which=which)
    words = words_for_card(view, fate, table)
    progress = progress or Silent()
    with closing(progress):
        manifest = write_export(to, blocks(view, fate, rows), plan, facts, words, progress)
    return Exported(to, manifest)


def _lost_in_words(view: PoolView, fate: Fate, lost: np.ndarray) -> str:
    """Which classes would be missing, why, and what to try."""
    told, by_entropy = [], False
    for label in lost:
        mine = view.pool.y == label
        above = mine & (fate.reason == Reason.HIGH_ENTROPY)
        if above.any():
            by_entropy, why = True, f"lowest entropy {view.pool.entropy[above].min():.3g}"
        elif (fate.reason[mine] == Reason.BY_HAND).any():
            why = "marked as bad"
        else:
            why = "the classifier gives another class"
        told.append(f"{view.classes[label]!r} ({why})")
    more = f" and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    ceiling = fate.settings.entropy_ceiling
    under = f" under an entropy ceiling of {ceiling:g}" if by_entropy and isinstance(ceiling, float) else ""
    hint = "keep a share of each class instead (--keep-fraction 0.3), raise the ceiling," if by_entropy else ""
    return (
        f"no sample would be left of {len(lost)} of {len(view.classes)} classes{under}: "
        f"{', '.join(told[:MOST_NAMED])}{more}; {hint or 'take marks back in the gallery,'} or allow it with "
        "--allow-empty-classes"
    )


def possible_formats(view: PoolView) -> tuple[Format, ...]:
    """The formats that a pool's samples can be written in; the first two are usual."""
    row = np.zeros(1, dtype=np.int64)
    return POSSIBLE[form_of(items_of(view, row, view.decode(row)))]


def blocks(view: PoolView, fate: Fate, rows: np.ndarray) -> Iterator[Block]:
    """Those rows of the pool, (n,) ascending, decoded some hundred at a time, with all that is known of each."""
    import pyarrow as pa

    pool, scores = view.pool, view.scores
    source = pa.array([f"{view.name}, weights {pool.origin['model_hash']}"], pa.string())
    reasons = pa.array(REASONS, pa.string())
    for part in drawing.blocks(len(rows)):
        mine = rows[part]
        selected = fate.weight[mine] > 0
        codes = np.where(selected, 0, 1 + fate.reason[mine]).astype(np.int8)
        x = view.decode(mine)
        columns = {
            "weight": fate.weight[mine],
            "entropy": pool.entropy[mine],
            "log_density": scores.log_density[mine],
            "nearest_real_row": scores.nearest_row[mine],
            "nearest_real_distance": scores.nearest_distance[mine],
            "rank": fate.rank[mine],
            "selected": selected,
            "reason": pa.DictionaryArray.from_arrays(pa.array(codes), reasons),
            "source": pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(mine), dtype=np.int8)), source),
            "seed": pool.chain_seed[mine],
        }
        yield Block(mine, x, items_of(view, mine, x), pool.y[mine], selected, columns, pool.z[mine])


def items_of(view: PoolView, rows: np.ndarray, x: np.ndarray) -> Any:
    """x (n, *shape) of those rows of the pool, as it is written.

    Vectors become the rows of a table; embeddings too, beside the real rows that are nearest to them. Ids of a table
    count on from those of the data by the row in the pool, so that no two samples share one.
    """
    import pyarrow as pa

    items, encoding = shown_items(view.run, x, view.dataset), view.run.encoding
    if view.run.origin.features is not None:
        return items.append_column("embedding", array_columns(x, as_list=True)["x"])
    if form_of(items) is Form.ARRAYS and items.ndim == 2 and items.shape[1] <= MOST_COLUMNS:
        names = view.dataset.feature_names or tuple(array_columns(items))
        return pa.table(dict(zip(names, items.T, strict=True)))
    if isinstance(encoding, TableEncoding):
        for i, column in enumerate(encoding.schema.columns):
            if column.type is ColumnType.ID:
                items = items.set_column(i, items.schema.field(i), ids_out(rows, column))
    return items
