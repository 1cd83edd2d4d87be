"""Drawing on many workers: each shard is a fixed range of chains, drawn, decoded, scored and written as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.distributed.engine import Engine
from synthsieve.distributed.selection.job import HIDDEN, WorkFolder
from synthsieve.errors import ConfigError
from synthsieve.io.files import atomic_write, write_json
from synthsieve.io.progress import NullProgress, Progress
from synthsieve.models.generate import BLOCK, chain_seed
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.selection.entropy import entropy_of_logits

METADATA = "_samples.json"  # hidden from readers of Parquet folders
SHARD = 10 * BLOCK  # chains of a file


@dataclass(frozen=True)
class SampleJob:
    """What every worker must know.

    Attributes:
        run: the folder of the fitted run; out: the folder that the shards are written to.
        per_class, labels: how many chains there are of each class, and of which classes.
        chains, noise, seed: as in `models.generate.draw_samples`.
    """

    run: Path
    out: Path
    per_class: int
    labels: Sequence[int]
    chains: LangevinSettings
    noise: bool
    seed: int

    @property
    def count(self) -> int:
        return self.per_class * len(self.labels)

    @property
    def shards(self) -> list[str]:
        """The names of the files."""
        return [f"part-{number:05d}.parquet" for number in range(-(-self.count // SHARD))]

    def rows(self, number: int) -> np.ndarray:
        return np.arange(number * SHARD, min((number + 1) * SHARD, self.count))


def sample_shards(job: SampleJob, *, engine: Engine, progress: Progress | None = None) -> list[Path]:
    """Draw `per_class` samples of each class into OUT/part-NNNNN.parquet, next to OUT/_samples.json; all or none.

    The samples are those of `draw_samples` with one thread. Columns: `class`, `latent`, `chain_seed`, `x` (flat; its
    shape is in _samples.json), `logit_CLASS` for every class, `entropy`. `synthsieve select` reads the folder.
    """
    progress, out = progress or NullProgress(), job.out
    present = [path.name for path in out.iterdir() if path.name != HIDDEN] if out.is_dir() else []
    if present or (out.exists() and not out.is_dir()):
        found = present[0] if present else "a file of that name"
        raise ConfigError(
            f"expected --to as a new or empty folder, got {out} with {found}: choose another", code="output-exists"
        )
    created, work = not out.exists(), WorkFolder.within(out)
    try:
        settings = {"per_class": job.per_class, "seed": job.seed, "noise": job.noise}
        metadata = {"rows": job.count, **settings, **asdict(job.chains), "shards": job.shards}
        for number, stored in enumerate(engine.blocks(partial(draw_shard, job), len(job.shards)), 1):
            metadata |= stored
            progress.update(number, len(job.shards))
        write_json(work.path / METADATA, metadata)
        for name in (*job.shards, METADATA):
            work.publish(name, out / name)
        return [out / name for name in job.shards]
    finally:
        progress.close()
        work.remove()
        if created and not any(out.iterdir()):
            out.rmdir()


def draw_shard(job: SampleJob, number: int) -> dict[str, Any]:
    """Draw one shard and write it; returns the classes, and the shape and type of x."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch

    from synthsieve.evaluation.predict import draw_and_score
    from synthsieve.settings import EntropyAt

    torch.set_num_threads(1)  # another number may round sums otherwise
    run, model = _open_run(job.run)
    rows = job.rows(number)
    y, place = np.asarray(job.labels)[rows // job.per_class], rows % job.per_class
    pairs = zip(y.tolist(), place.tolist(), strict=True)
    seeds = np.array([chain_seed(job.seed, label, within) for label, within in pairs])
    drawn = draw_and_score(model, run.encoding, y, seeds, chains=job.chains, noise=job.noise, keep_x=True)
    logits = drawn["logits_x" if run.settings.augmentation.entropy_at is EntropyAt.X else "logits_z"]
    x, classes = drawn["x"], [str(name) for name in run.split.classes]
    columns = {
        "class": pa.array([classes[label] for label in y], pa.string()),
        "latent": _lists(drawn["z"]),
        "chain_seed": pa.array(seeds),
        "x": _lists(x.reshape(len(x), -1)),
        **{f"logit_{name}": pa.array(np.ascontiguousarray(logits[:, k])) for k, name in enumerate(classes)},
        "entropy": pa.array(entropy_of_logits(logits)),
    }
    with atomic_write(job.out / HIDDEN / job.shards[number]) as partial_name:
        pq.write_table(pa.table(columns), partial_name)
    return {"classes": classes, "x": {"shape": list(x.shape[1:]), "dtype": str(x.dtype)}}


@cache
def _open_run(path: Path) -> tuple[Any, Any]:
    """The run and its model, once for each worker."""
    from synthsieve.training.reference_file import attach
    from synthsieve.training.run_dir import RunDirectory

    run = RunDirectory.open(path)
    model = run.load_model()
    attach(run, model)
    return run, model


def _lists(matrix: np.ndarray) -> Any:
    """(n, d) as an Arrow column of lists of length d."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(matrix).ravel()), matrix.shape[1])
