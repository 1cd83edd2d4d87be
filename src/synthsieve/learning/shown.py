"""Synthetic examples as people take them home: read by the encoding, or as the real items they are nearest to."""

from __future__ import annotations

from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset
from synthsieve.evaluation.memorisation import Nearest, nearest_distances
from synthsieve.learning.run_folder import RunFolder


def shown_items(run: RunFolder, x: np.ndarray, dataset: Dataset | None = None) -> Any:
    """What `export.samples.write_items` takes, for synthetic x as stored, (n, ...).

    Nobody can read an embedding: where embeddings stand for the rows of a table, each synthetic one is shown by the
    nearest training row. The table then has the columns nearest_row (its number in the data), distance, and
    nearest_NAME for each column NAME that the user looks at. `dataset` is the run's, where it is already read.
    """
    if run.origin.features is None:
        return run.encoding.items(x)
    import pyarrow as pa

    dataset = dataset or run.origin.load()
    run.split.check_against(dataset)
    rows = np.concatenate([run.split.labeled, run.split.unlabeled])
    nearest = nearest_items(x, dataset.train.x, rows)
    items = dataset.about.take(nearest.indices)
    columns = {"nearest_row": nearest.indices, "distance": nearest.distances}
    return pa.table(columns | {f"nearest_{name}": items.column(name) for name in items.column_names})


def nearest_items(x: np.ndarray, train_x: np.ndarray, rows: np.ndarray) -> Nearest:
    """The nearest of `rows` of train_x to each x, by Euclidean distance in the units of the source.

    Shapes: x (n, features), train_x (m, features), rows (k,). The indices that come out count rows of train_x.
    """
    rows = np.sort(rows)  # at a tie the lowest row
    found = nearest_distances(x, train_x[rows])
    return Nearest(found.distances, rows[found.indices])
