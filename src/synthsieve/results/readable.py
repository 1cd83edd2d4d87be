"""Synthetic examples in the user's form, as pixels (sounds as their spectrograms), and as cells of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, Kind
from synthsieve.evaluation.memorization import Nearest, nearest_distances
from synthsieve.training.run_dir import RunDirectory

QUIET_TO_LOUD = ((13, 18, 43), (34, 74, 125), (46, 145, 160), (160, 212, 150), (252, 246, 200))


def shown_items(run: RunDirectory, x: np.ndarray, dataset: Dataset | None = None) -> Any:
    """What `export.samples.write_items` takes, for synthetic x as stored, (n, ...).

    Nobody can read an embedding: where embeddings represent the rows of a table, each synthetic one is shown by the
    nearest training row. The table then has the columns nearest_row (its number in the data), distance, and
    nearest_NAME for each column NAME that the user has. `dataset` is the run's, where it is already read.
    """
    if run.origin.features is None:
        return run.encoding.items(x)
    import pyarrow as pa

    dataset = dataset or run.origin.load()
    run.split.check_against(dataset)
    nearest = nearest_items(x, dataset.train.x, np.concatenate([run.split.labeled, run.split.unlabeled]))
    items = dataset.metadata.take(nearest.indices)
    columns = {"nearest_row": nearest.indices, "distance": nearest.distances}
    return pa.table(columns | {f"nearest_{name}": items.column(name) for name in items.column_names})


def nearest_items(x: np.ndarray, train_x: np.ndarray, rows: np.ndarray) -> Nearest:
    """The nearest of `rows` of train_x to each x, by Euclidean distance in the units of the source.

    Shapes: x (n, features), train_x (m, features), rows (k,). The indices that come out count rows of train_x.
    """
    rows = np.sort(rows)  # at a tie the lowest row
    found = nearest_distances(x, train_x[rows])
    return Nearest(found.distances, rows[found.indices])


def has_pixels(dataset: Dataset) -> bool:
    """Images of one or three channels, and sounds that are stored as spectrograms."""
    shape = dataset.shape
    return dataset.kind in (Kind.IMAGE, Kind.SOUND) and len(shape) == 3 and shape[0] in (1, 3)


def pixels_of(dataset: Dataset, x: np.ndarray) -> np.ndarray:
    """Examples as stored, (n, channels, height, width), -> uint8 (n, 1 or 3, height, width)."""
    if dataset.kind == Kind.SOUND:
        floor = float(dataset.metadata.floor)  # decibels: from here to 0
        levels = 1.0 - np.clip(x[:, 0, ::-1], floor, 0.0) / floor  # low notes at the bottom
        stops = np.linspace(0, 1, len(QUIET_TO_LOUD))
        channels = [np.interp(levels, stops, colours) for colours in zip(*QUIET_TO_LOUD, strict=True)]
        return np.rint(np.stack(channels, axis=1)).astype(np.uint8)
    if x.dtype == np.uint8:
        return x
    return np.rint((np.clip(np.nan_to_num(x), -1, 1) + 1) * 127.5).astype(np.uint8)


def text_cells(
    items: Any, feature_names: Sequence[str] | None = None, *, max_columns: int, max_length: int, digits: int
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The first columns of a pyarrow table, or of numbers (n, features): their names, and the cells of each row."""
    if isinstance(items, np.ndarray):
        names: Sequence[str] = feature_names or [f"x{i + 1}" for i in range(items.shape[1])]
        columns = items.T[:max_columns].tolist()
    else:
        names, columns = items.column_names, [column.to_pylist() for column in items.columns[:max_columns]]

    def cell(value: Any) -> str:
        if value is None or value != value:
            return "–"
        return f"{value:.{digits}g}" if isinstance(value, float) else cut(str(value), max_length)

    shown = tuple(cut(str(name), max_length) for name in names[:max_columns])
    return shown, [tuple(map(cell, row)) for row in zip(*columns, strict=True)]


def cut(text: str, longest: int = 60) -> str:
    """A label of any length, shortened to fit a line."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
