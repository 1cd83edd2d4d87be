"""Samples as people take them home: a picture, a table, a folder of sounds, sentences; beside the .npz of arrays."""

from __future__ import annotations

import csv
import io
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.export.images import write_image_grid
from synthsieve.files import write_text, written_atomically
from synthsieve.waveforms import Waveforms

GRID_COLUMNS = 20
LONGEST_NAME = 60  # characters of a folder's name: 255 bytes at most, whatever the script


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

    columns = {label_name: list(labels), **columns}
    if isinstance(items, pa.Table):
        return _write_table(stem, items, columns)
    if isinstance(items, Waveforms):
        return _write_sounds(stem, items, list(labels), columns)
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        return [_write_csv(stem.with_name(f"{stem.name}.csv"), _beside({"text": items}, columns))]
    if isinstance(items, np.ndarray) and items.dtype == np.uint8 and items.ndim == 4 and items.shape[1] in (1, 3):
        names = np.asarray(labels)
        rows = [items[names == name][:GRID_COLUMNS] for name in dict.fromkeys(labels)]
        path = stem.with_name(f"{stem.name}.png")
        write_image_grid(path, rows)
        return [path]
    return []


def _write_table(stem: Path, table: Any, columns: Mapping[str, Sequence[Any]]) -> list[Path]:
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    for name, values in _beside(dict.fromkeys(table.column_names, ()), columns).items():
        if name not in table.column_names:
            table = table.append_column(name, [values])
    paths = [stem.with_name(f"{stem.name}.csv"), stem.with_name(f"{stem.name}.parquet")]
    with written_atomically(paths[0]) as partial:
        arrow_csv.write_csv(_plain_text(table), partial)
    with written_atomically(paths[1]) as partial:
        parquet.write_table(table, partial)
    return paths


def _plain_text(table: Any) -> Any:
    """The table with text in the one form that Arrow writes as CSV."""
    import pyarrow as pa

    fields = [field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))


def _write_sounds(
    folder: Path, items: Waveforms, labels: Sequence[str], columns: Mapping[str, Sequence[Any]]
) -> list[Path]:
    names = [f"{_safe(label)}/{number:05d}.wav" for number, label in enumerate(labels)]
    for name, sound in zip(names, items.sounds, strict=True):
        write_wav(folder / name, sound, items.rate)
    return [folder, _write_csv(folder / "metadata.csv", _beside({"file": names}, columns))]


def write_wav(path: Path, sound: np.ndarray, rate: int) -> None:
    """One channel of 16-bit samples; values outside [-1, 1] are clipped."""
    with written_atomically(path) as partial:
        partial.write_bytes(wav_bytes(sound, rate))


def wav_bytes(sound: np.ndarray, rate: int) -> bytes:
    """The same as the bytes of the file."""
    samples, file = np.rint(np.clip(sound, -1, 1) * 32767).astype("<i2"), io.BytesIO()
    with wave.open(file, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(rate)
        target.writeframes(samples.tobytes())
    return file.getvalue()


def _beside(taken: Mapping[str, Sequence[Any]], columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """All columns; one whose name is taken is called synthetic_NAME."""
    together = dict(taken)
    for name, values in columns.items():
        while name in together:
            name = f"synthetic_{name}"
        together[name] = values
    return together


def _write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    write_text(path, text.getvalue())
    return path


def _safe(label: str) -> str:
    """A label as a folder's name: what is not a letter, a digit, - or _ becomes _; no longer than disks take."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in label)[:LONGEST_NAME] or "_"
