"""Samples to look at, next to the .npz of arrays: an image, a table, a folder of sounds, sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.data.modalities.sound.format import Waveforms
from synthsieve.io.files import atomic_write
from synthsieve.results.export.block import unique_names
from synthsieve.results.export.formats import SampleForm, form_of
from synthsieve.results.export.media import write_image_grid, write_wav
from synthsieve.results.export.writers import METADATA, folder_names, write_csv

GRID_COLUMNS = 20


def write_items(
    stem: Path, items: Any, labels: Sequence[str], *, label_name: str = "label", **columns: Sequence[Any]
) -> list[Path]:
    """Write samples next to `stem` (OUT/samples, without a suffix) and return the paths written.

    | items | files |
    |---|---|
    | images, uint8 (n, 1 or 3, height, width) | STEM.png: one line per class, the first 20 of each |
    | a pyarrow table | STEM.csv and STEM.parquet: the columns, then the label and `columns` |
    | `Waveforms` | STEM/LABEL/NNNNN.wav and STEM/metadata.csv with the label and `columns` |
    | a list of sentences | STEM.csv: text, the label and `columns` |
    | anything else | none |
    """
    import pyarrow as pa
    from pyarrow import parquet

    form, columns = form_of(items), {label_name: list(labels), **columns}
    csv_path, parquet_path, png_path = (stem.with_name(f"{stem.name}.{suffix}") for suffix in ("csv", "parquet", "png"))
    if form is SampleForm.ROWS:
        table = _with_columns(items, columns)
        write_csv(csv_path, table)
        with atomic_write(parquet_path) as partial:
            parquet.write_table(table, partial)
        return [csv_path, parquet_path]
    if form is SampleForm.SOUNDS:
        return _write_sounds(stem, items, list(labels), columns)
    if form is SampleForm.SENTENCES:
        write_csv(csv_path, _with_columns(pa.table({"text": pa.array(items, pa.string())}), columns))
        return [csv_path]
    if form is SampleForm.IMAGES and items.shape[1] in (1, 3):
        names = np.asarray(labels)
        write_image_grid(png_path, [items[names == name][:GRID_COLUMNS] for name in dict.fromkeys(labels)])
        return [png_path]
    return []


def _with_columns(table: Any, columns: Mapping[str, Sequence[Any]]) -> Any:
    for name, values in zip(unique_names(table.column_names, columns), columns.values(), strict=True):
        table = table.append_column(name, [values])
    return table


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
