"""Training under Ray Train: `training.loop.fit` in several workers, which form a process group as under torchrun."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from synthsieve.data.origin import Origin
from synthsieve.distributed.ray_engine import required
from synthsieve.errors import ClusterError
from synthsieve.io.locks import locked
from synthsieve.settings import Settings
from synthsieve.training.parallel import backend
from synthsieve.training.run_dir import RunDirectory


def fit_on_cluster(out: Path, origin: Origin, settings: Settings, *, workers: int, gpu: bool = False) -> RunDirectory:
    """Fit or resume a run in OUT on the cluster that this process is connected to.

    Every worker must see OUT and the data under the same names. A lost worker ends the training; call this again to
    resume from the last checkpoint.
    """
    required()
    with locked(out):
        _train(out, origin, settings, workers=workers, gpu=gpu)
    return RunDirectory.open(out)


def _train(out: Path, origin: Origin, settings: Settings, *, workers: int, gpu: bool) -> None:
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    storage = out.resolve() / ".ray-train"
    config = {
        "out": str(out.resolve()),
        "origin": vars(origin),
        "settings": settings.model_dump(mode="json"),
        "gpu": gpu,
    }
    trainer = TorchTrainer(
        _fit,
        train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=gpu),
        torch_config=TorchConfig(backend=backend(gpu=gpu)),
        run_config=RunConfig(name="fit", storage_path=str(storage)),
    )
    try:
        trainer.fit()
    except Exception as error:
        reason = str(error.__cause__ or error).strip().splitlines()[-1]
        raise ClusterError(
            f"training in {workers} workers ended ({reason}): find out why, then call it again to resume",
            code="training-failed",
        ) from error
    finally:
        shutil.rmtree(storage, ignore_errors=True)


def _fit(config: dict[str, Any]) -> None:
    """Runs in each worker."""
    import torch
    from ray.train.torch import get_device

    from synthsieve.settings import settings_from
    from synthsieve.training.loop import fit
    from synthsieve.training.parallel import init_process_group
    from synthsieve.training.state import CPU

    torch.set_num_threads(1)
    out, origin, settings = Path(config["out"]), Origin(**config["origin"]), settings_from(config["settings"])
    dataset = origin.load()
    with init_process_group() as group:
        device = get_device() if config["gpu"] else CPU
        run = RunDirectory.open_or_create(out, origin, settings, dataset, group=group, device=device)
        fit(run, dataset, group=group, device=device)
