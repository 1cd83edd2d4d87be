"""Exports the samples of a pool, with the outcome of a selection, to a directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.modalities.table.cells import ids_to_arrow
from synthsieve.data.modalities.table.encoding import TableEncoding
from synthsieve.data.modalities.table.schema import ColumnType
from synthsieve.errors import SelectionError
from synthsieve.io.printable import one_line
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.models import generate
from synthsieve.results.export.block import MAX_COLUMNS, Block, PoolInfo, array_columns
from synthsieve.results.export.directory import ExportPlan, check_destination, write_export
from synthsieve.results.export.formats import AVAILABLE, Format, SampleForm, Which, form_of, resolve_formats
from synthsieve.results.pool_view import PoolView
from synthsieve.results.provenance import MEANINGS, provenance, words_for_card
from synthsieve.results.readable import shown_items
from synthsieve.selection.entropy import Reason
from synthsieve.training.pool import Outcomes

MAX_CLASSES = 20  # listed in one sentence


@dataclass(frozen=True)
class ExportResult:
    """An export on disk."""

    path: Path  # the directory
    manifest: dict[str, Any]  # the content of its manifest.json

    @property
    def files(self) -> dict[str, dict[str, int]]:
        """Bytes of each file, or of each folder of samples, and the number of `samples` in it."""
        files: dict[str, dict[str, int]] = {}
        for name, file in self.manifest["files"].items():
            files.setdefault(name.partition("/")[0], {"bytes": 0})["bytes"] += file["bytes"]
        for name, rows in self.manifest["rows"].items():
            files[name]["samples"] = rows
        return files

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "export": str(self.path),
            "formats": self.manifest["formats"],
            "files": self.files,
            "counts": self.manifest["counts"],
            "paired_comparison": self.manifest["paired_comparison"]["words"],
            "recommended": self.manifest["recommended"],
        }

    def lines(self) -> list[str]:
        """A summary to print: samples per class, files with their sizes, and whether the samples helped."""
        counts = self.manifest["counts"]
        per_class = [f"{one_line(label)}: {number['selected']:,}" for label, number in counts["classes"].items()]
        num_classes, empty = counts["num_classes"], [one_line(label) for label in counts["empty_classes"]]
        lines = [
            f"{counts['selected']:,} of {counts['drawn']:,} samples of {self.manifest['source']['arm']} are selected, "
            f"of {num_classes:,} class{'' if num_classes == 1 else 'es'}",
            f"  {_listed(per_class)}",
        ]
        if empty:
            lines.append(f"no sample of {len(empty):,} of {len(per_class):,} classes: {_listed(empty)}")
        for name, file in self.files.items():
            samples = f"{file['samples']:,} samples, " if "samples" in file else ""
            size = f"{file['bytes'] / 1e6:,.1f} MB" if file["bytes"] >= 1e6 else f"{file['bytes'] / 1e3:.1f} kB"
            lines.append(f"  {self.path / name}: {samples}{size}")
        lines.append(self.manifest["paired_comparison"]["words"])
        if self.manifest["recommended"] is not None:
            lines.append(f"{self.manifest['recommended']} It is dataset.npz of the run; --real-rows exports it, too.")
        return lines


def export_pool(
    view: PoolView,
    outcomes: Outcomes,
    *,
    to: Path | str,
    formats: Sequence[Format] | None = None,
    which: Which = Which.DEFAULT,
    table: Any = None,
    allow_empty_classes: bool = False,
    real_rows: Sequence[Path] = (),
    progress: Progress | None = None,
) -> ExportResult:
    """Write the samples of a pool to the directory `to`, atomically.

    Args:
        outcomes: of its samples: `view.select(...)`.
        to: the directory; an earlier export there is replaced at the end, anything else is refused.
        formats: None takes the default ones for the kind of data.
        table: `Run.table`, for the results in the card.
        allow_empty_classes: write even if the selection leaves no sample of a class; else that is an error.
        real_rows: files of the labelled data set of the run, to copy into the directory.
    """
    to = Path(to)
    check_destination(to)
    selected = outcomes.selected
    if not len(selected):
        raise SelectionError("no sample is selected: raise the entropy ceiling or the budget", code="nothing-selected")
    lost = view.lost_classes(outcomes)
    if len(lost) and not allow_empty_classes:
        raise SelectionError(_describe_lost(view, outcomes, lost), code="empty-classes")
    first = readable_samples(view, selected[:1], view.decode(selected[:1]))
    label_name = view.run.origin.label or "label"
    info = PoolInfo(form_of(first), view.classes, label_name, total=len(view), selected=len(selected))
    plan = ExportPlan(info, resolve_formats(info.form, formats), which, MEANINGS)
    rows = np.arange(len(view)) if any(which.is_all(one) for one in plan.formats) else selected
    facts = provenance(view, outcomes, table, formats=formats, which=which)
    if real_rows:
        facts["command"] += " --real-rows"
    words = words_for_card(outcomes, table)
    progress = progress or NullProgress()
    with closing(progress):
        blocks = sample_blocks(view, outcomes, rows)
        manifest = write_export(to, blocks, plan, facts, words, progress, real_rows=real_rows)
    return ExportResult(to, manifest)


def available_formats(view: PoolView) -> tuple[Format, ...]:
    """The formats that a pool can be exported in; the first two are the default."""
    row = np.zeros(1, dtype=np.int64)
    return AVAILABLE[form_of(readable_samples(view, row, view.decode(row)))]


def sample_blocks(view: PoolView, outcomes: Outcomes, rows: np.ndarray) -> Iterator[Block]:
    """Rows of the pool, (n,) ascending, decoded a few hundred at a time, with all properties."""
    import pyarrow as pa

    pool, codes = view.pool, outcomes.codes
    source = pa.array([f"{view.name}, weights {pool.origin['model_hash']}"], pa.string())
    reasons = pa.array([reason.describe() for reason in Reason], pa.string())
    for part in generate.blocks(len(rows)):
        at = rows[part]
        selected = outcomes.weight[at] > 0
        x, nearest = view.decode(at), view.nearest(at)
        columns = {
            "weight": outcomes.weight[at],
            "entropy": pool.entropy[at],
            "log_density": pool.log_density[at],
            "nearest_real_row": nearest.indices,
            "nearest_real_distance": nearest.distances,
            "rank": outcomes.rank[at],
            "selected": selected,
            "reason": pa.DictionaryArray.from_arrays(pa.array(codes[at]), reasons),
            "source": pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(at), dtype=np.int8)), source),
            "seed": pool.chain_seed[at],
        }
        yield Block(at, x, readable_samples(view, at, x), pool.y[at], selected, columns, pool.z[at])


def readable_samples(view: PoolView, rows: np.ndarray, x: np.ndarray) -> Any:
    """x (n, *shape) of those rows of the pool, in the form that is written.

    Vectors become rows of a table, as do embeddings, together with the real rows nearest to them. Ids of a table
    continue those of the data by the row in the pool, so they are unique.
    """
    import pyarrow as pa

    items, encoding = shown_items(view.run, x, view.dataset), view.run.encoding
    if view.run.origin.features is not None:
        return items.append_column("embedding", array_columns(x, as_list=True)["x"])
    if form_of(items) is SampleForm.ARRAYS and items.ndim == 2 and items.shape[1] <= MAX_COLUMNS:
        names = view.dataset.feature_names or tuple(array_columns(items))
        return pa.table(dict(zip(names, items.T, strict=True)))
    if isinstance(encoding, TableEncoding):
        for i, column in enumerate(encoding.schema.columns):
            if column.type is ColumnType.ID:
                items = items.set_column(i, items.schema.field(i), ids_to_arrow(rows, column))
    return items


def _describe_lost(view: PoolView, outcomes: Outcomes, lost: np.ndarray) -> str:
    """Which classes would be missing, why, and what to try."""
    reasons, by_entropy = [], False
    for label in lost:
        of_class = view.pool.y == label
        above = of_class & (outcomes.reason == Reason.HIGH_ENTROPY)
        if above.any():
            by_entropy, why = True, f"lowest entropy {view.pool.entropy[above].min():.3g}"
        elif (outcomes.reason[of_class] == Reason.BY_HAND).any():
            why = "rejected by hand"
        else:
            why = "the classifier predicts another class"
        reasons.append(f"{view.classes[label]!r} ({why})")
    ceiling = outcomes.settings.entropy_ceiling
    under = f" below an entropy of {ceiling:g}" if by_entropy and isinstance(ceiling, float) else ""
    hint = "keep a fraction of each class (--keep-fraction 0.3), raise the ceiling," if by_entropy else ""
    return (
        f"no sample would be left of {len(lost)} of {len(view.classes)} classes{under}: {_listed(reasons)}; "
        f"{hint or 'restore samples in the gallery,'} or pass --allow-empty-classes"
    )


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - MAX_CLASSES:,} more" if len(names) > MAX_CLASSES else ""
    return ", ".join(names[:MAX_CLASSES]) + more
