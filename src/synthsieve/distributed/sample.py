"""Drawing on many workers: each shard is a fixed range of chains, drawn, decoded, scored and written as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.distributed.engine import Engine
from synthsieve.distributed.work_folder import HIDDEN, WorkFolder
from synthsieve.drawing import BLOCK, chain_seed, decode, draw_latents
from synthsieve.entropy import entropy_of_logits
from synthsieve.errors import ConfigError
from synthsieve.files import write_json, written_atomically
from synthsieve.progress import Progress, Silent
from synthsieve.sampling.langevin import LangevinSettings

ABOUT = "_samples.json"  # hidden from readers of Parquet folders
SHARD = 10 * BLOCK  # chains of a file


@dataclass(frozen=True)
class Drawing:
    """What every worker must know.

    Attributes:
        run: the folder of the fitted run; out: the folder that the shards are written under.
        per_class, labels: how many chains there are of each class, and of which classes.
        chains, noise, seed: as in `drawing.draw_samples`.
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
    def num_shards(self) -> int:
        return -(-self.count // SHARD)

    def rows(self, number: int) -> np.ndarray:
        return np.arange(number * SHARD, min((number + 1) * SHARD, self.count))


def sample_shards(drawing: Drawing, *, engine: Engine, progress: Progress | None = None) -> list[Path]:
    """Draw `per_class` samples of each class into OUT/part-NNNNN.parquet, beside OUT/_samples.json; all or none.

    The samples are those of `drawing.draw_samples` with one thread. Columns: `class`, `latent`, `chain_seed`, `x`
    (flat; its shape is in _samples.json), `logit_CLASS` for every class, `entropy`. `select` reads the folder.
    """
    progress, out = progress or Silent(), drawing.out
    there = [path.name for path in out.iterdir() if path.name != HIDDEN] if out.is_dir() else []
    if there or (out.exists() and not out.is_dir()):
        found = there[0] if there else "a file of that name"
        raise ConfigError(f"expected --to as a new or empty folder, got {out} with {found}: choose another")
    created, work = not out.exists(), WorkFolder.within(out)
    try:
        about: dict[str, Any] = {}
        for number, told in enumerate(engine.blocks(partial(draw_shard, drawing), drawing.num_shards), 1):
            about = _about(drawing, told)
            progress.update(number, drawing.num_shards)
        write_json(work.path / ABOUT, about)
        names = _names(drawing)
        for name in (*names, ABOUT):
            work.publish(name, out / name)
        return [out / name for name in names]
    finally:
        progress.close()
        work.remove()
        if created and not any(out.iterdir()):
            out.rmdir()


def draw_shard(drawing: Drawing, number: int) -> dict[str, Any]:
    """Draw one shard and write it; returns the shape and type of x."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch

    torch.set_num_threads(1)  # another number may round sums otherwise
    run, model = _opened(drawing.run)
    rows = drawing.rows(number)
    y, place = np.asarray(drawing.labels)[rows // drawing.per_class], rows % drawing.per_class
    pairs = zip(y.tolist(), place.tolist(), strict=True)
    seeds = np.array([chain_seed(drawing.seed, label, within) for label, within in pairs])
    z = draw_latents(model, y, seeds, chains=drawing.chains)
    x = decode(model, run.encoding, z, seeds, noise=drawing.noise)
    logits = _judged(run, model, x, z)
    classes = run.split.classes
    columns = {
        "class": pa.array([str(classes[label]) for label in y], pa.string()),
        "latent": _lists(z),
        "chain_seed": pa.array(seeds),
        "x": _lists(x.reshape(len(x), -1)),
        **{f"logit_{name}": pa.array(np.ascontiguousarray(logits[:, k])) for k, name in enumerate(classes)},
        "entropy": pa.array(entropy_of_logits(logits)),
    }
    with written_atomically(drawing.out / HIDDEN / _name(number)) as partial_name:
        pq.write_table(pa.table(columns), partial_name)
    return {"shape": list(x.shape[1:]), "dtype": str(x.dtype), "classes": [str(name) for name in classes]}


@cache
def _opened(path: Path) -> tuple[Any, Any]:
    """The run and its model, once for each worker."""
    from synthsieve.learning.run_folder import RunFolder

    run = RunFolder.open(path)
    return run, run.model()


def _judged(run: Any, model: Any, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The logits that entropies are taken from, as the run's settings say: float32 (n, num_classes)."""
    import torch

    from synthsieve.config import EntropyAt

    found = []
    with torch.no_grad():
        for start in range(0, len(z), BLOCK):
            part = slice(start, start + BLOCK)
            at = torch.from_numpy(z[part])
            if run.settings.augmentation.entropy_at is EntropyAt.X:
                at = model.posterior(torch.from_numpy(run.encoding.encode(x[part]))).mean
            found.append(model.energy.class_logits(at).numpy())
    return np.concatenate(found)


def _lists(matrix: np.ndarray) -> Any:
    """(n, d) as an Arrow column of lists of length d."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(matrix).ravel()), matrix.shape[1])


def _about(drawing: Drawing, told: dict[str, Any]) -> dict[str, Any]:
    return {
        "rows": drawing.count,
        "per_class": drawing.per_class,
        "classes": told["classes"],
        "x": {"shape": told["shape"], "dtype": told["dtype"]},
        "seed": drawing.seed,
        "num_steps": drawing.chains.num_steps,
        "step_size": drawing.chains.step_size,
        "temperature": drawing.chains.temperature,
        "noise": drawing.noise,
        "shards": _names(drawing),
    }


def _names(drawing: Drawing) -> list[str]:
    return [_name(number) for number in range(drawing.num_shards)]


def _name(number: int) -> str:
    return f"part-{number:05d}.parquet"
