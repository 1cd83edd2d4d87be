"""Samples to look at, beside the .npz of arrays: a picture, a table, a folder of sounds, sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.export.class_folders import METADATA
from synthsieve.export.csv_file import write_csv
from synthsieve.export.formats import Form, form_of
from synthsieve.export.images import write_image_grid
from synthsieve.export.media import write_wav
from synthsieve.export.names import beside, folder_names
from synthsieve.files import written_atomically
from synthsieve.waveforms import Waveforms

GRID_COLUMNS = 20


def write_items(
    stem: Path, items: Any, labels: Sequence[str], *, label_name: str = "label", **columns: Sequence[Any]
) -> list[Path]:
    """Write samples beside `stem` (OUT/samples, without a suffix), by what they are; returns what was written.

    | items | files |
    |---|---|
    | images, uint8 (n, 1 or 3, height, width) | STEM.png: a row a class, the first 20 of each |
    | a pyarrow table | STEM.csv and STEM.parquet: the columns, then the label and `columns` |
    | `Waveforms` | STEM/LABEL/NNNNN.wav and STEM/metadata.csv with the label and `columns` |
    | a list of sentences | STEM.csv: text, the label and `columns` |
    | anything else | nothing: the .npz has it |
    """
    import pyarrow as pa

    form, columns = form_of(items), {label_name: list(labels), **columns}
    if form is Form.ROWS:
        return _write_rows(stem, _with_columns(items, columns))
    if form is Form.SOUNDS:
        return _write_sounds(stem, items, list(labels), columns)
    if form is Form.SENTENCES:
        path = stem.with_name(f"{stem.name}.csv")
        write_csv(path, _with_columns(pa.table({"text": pa.array(items, pa.string())}), columns))
        return [path]
    if form is Form.IMAGES and items.shape[1] in (1, 3):
        names = np.asarray(labels)
        rows = [items[names == name][:GRID_COLUMNS] for name in dict.fromkeys(labels)]
        path = stem.with_name(f"{stem.name}.png")
        write_image_grid(path, rows)
        return [path]
    return []


def _with_columns(table: Any, columns: Mapping[str, Sequence[Any]]) -> Any:
    """The table, then these columns; one whose name is taken is moved aside."""
    for name, values in zip(beside(table.column_names, columns), columns.values(), strict=True):
        table = table.append_column(name, [values])
    return table


def _write_rows(stem: Path, table: Any) -> list[Path]:
    from pyarrow import parquet

    paths = [stem.with_name(f"{stem.name}.csv"), stem.with_name(f"{stem.name}.parquet")]
    write_csv(paths[0], table)
    with written_atomically(paths[1]) as partial:
        parquet.write_table(table, partial)
    return paths


def _write_sounds(
    folder: Path, items: Waveforms, labels: Sequence[str], columns: Mapping[str, Sequence[Any]]
) -> list[Path]:
    import pyarrow as pa

    classes = list(dict.fromkeys(labels))
    folders = dict(zip(classes, folder_names(classes), strict=True))
    names = [f"{folders[label]}/{number:05d}.wav" for number, label in enumerate(labels)]
    for name, sound in zip(names, items.sounds, strict=True):
        write_wav(folder / name, sound, items.rate)
    write_csv(folder / METADATA, _with_columns(pa.table({"file": names}), columns))
    return [folder, folder / METADATA]
