"""Training under Ray Train: `learning.loop.fit` in several workers, each with its share of every batch.

Ray starts the workers and lets them meet; from then on they are the processes of `together`, as under torchrun.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from synthsieve.config import Settings
from synthsieve.distributed.on_ray import required
from synthsieve.errors import ClusterError
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.lock import locked
from synthsieve.together import backend


def fit_on_cluster(out: Path, origin: Origin, settings: Settings, *, workers: int, gpu: bool = False) -> RunFolder:
    """Fit a run in OUT on the cluster this process is connected to (`on_ray.connected`); go on with one that is there.

    Every worker must see OUT and the data under the same names. One that is lost ends the training, whose last
    checkpoint is whole: call this again.
    """
    required()
    with locked(out):
        _train(out, origin, settings, workers=workers, gpu=gpu)
    return RunFolder.open(out)


def _train(out: Path, origin: Origin, settings: Settings, *, workers: int, gpu: bool) -> None:
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    storage = out.resolve() / ".ray-train"
    asked = {
        "out": str(out.resolve()),
        "origin": vars(origin),
        "settings": settings.model_dump(mode="json"),
        "gpu": gpu,
    }
    trainer = TorchTrainer(
        _fit,
        train_loop_config=asked,
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=gpu),
        torch_config=TorchConfig(backend=backend(gpu=gpu)),
        run_config=RunConfig(name="fit", storage_path=str(storage)),
    )
    try:
        trainer.fit()
    except Exception as error:
        sentence = str(error.__cause__ or error).strip().splitlines()[-1]
        raise ClusterError(
            f"training in {workers} workers ended ({sentence}): find out why, then call it again to go on"
        ) from error
    finally:
        shutil.rmtree(storage, ignore_errors=True)  # Ray's own notes


def _fit(asked: dict[str, Any]) -> None:
    """What each worker does."""
    import torch
    from ray.train.torch import get_device

    from synthsieve.config import settings_from
    from synthsieve.learning.learner import CPU
    from synthsieve.learning.loop import fit
    from synthsieve.together import joined

    torch.set_num_threads(1)
    out, origin, settings = Path(asked["out"]), Origin(**asked["origin"]), settings_from(asked["settings"])
    dataset = origin.load()
    with joined() as together:
        there = RunFolder.exists(out)
        together.wait()  # until all have looked
        if there:
            run = RunFolder.open(out)
            run.check_asked(settings, dataset)
        else:
            run = RunFolder.create(out, origin, settings, dataset, write=together.first)
        together.wait()
        fit(run, dataset, together=together, device=get_device() if asked["gpu"] else CPU)
