"""What each process of test_parallel.py runs: float64 steps of both phases, with every term that can be switched on."""

import sys
from dataclasses import replace
from glob import glob
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from synthsieve.data.origin import Origin
from synthsieve.training.batches import BatchSource
from synthsieve.training.defaults import settings_for
from synthsieve.training.extra_data import choose_extra_data
from synthsieve.training.parallel import init_process_group
from synthsieve.training.run_dir import RunDirectory
from synthsieve.training.step import take_step
from tests.training.conftest import QUICK

EVERYTHING = (
    "training.steps=4",
    "augmentation.steps=4",
    "augmentation.pool_size=100",
    "augmentation.batch_synthetic=16",
    "augmentation.gradients=last-layer",
    "pseudo_labels.batch=10",
    "implicit.enabled=true",
    "implicit.batch=14",
    "implicit.num_steps=2",
    "implicit.gradient=all",
    "sampling.training_start=reference",
    "training.clip_gradient=5",
    "training.generator_ratio=1",
)


def in_double(batch):
    def weighted(part):
        return None if part is None else (part[0].double(), part[1], part[2].double())

    return replace(
        batch,
        labeled_x=batch.labeled_x.double(),
        unlabeled_x=batch.unlabeled_x.double(),
        synthetic=weighted(batch.synthetic),
        pseudo=weighted(batch.pseudo),
    )


def main(out):
    torch.set_num_threads(1)
    with init_process_group() as group:
        dataset = Origin("digits").load()
        settings = settings_for("digits", overrides=[*QUICK, *EVERYTHING])
        run = RunDirectory.create(Path(out), Origin("digits"), settings, dataset, write=False)
        train_state, source = run.new_train_state(group), BatchSource(run.data(dataset), run.settings, group)
        train_state.step = settings.training.steps
        extra_data = choose_extra_data(
            train_state, run.data(dataset), None
        )  # in float32: choices must not differ by rounding
        train_state.step = 0
        train_state.model.double()
        train_state.averaged.double()
        for step in range(settings.total_steps):
            if step == settings.training.steps:
                source.add(extra_data)
            take_step(train_state, in_double(next(source)))
        if group.first:
            state = {name: value.contiguous() for name, value in train_state.averaged.state_dict().items()}
            state["latents"] = torch.from_numpy(np.ascontiguousarray(extra_data.pool.z))
            state["terms"] = torch.tensor(
                [train_state.metrics[name] for name in sorted(train_state.metrics)], dtype=torch.float64
            )
            save_file(state, out)
    threads = [Path(name).read_text(encoding="utf-8") for name in glob("/proc/self/task/*/comm")]
    assert not any("gloo" in name for name in threads), threads  # one that outlives the group may abort at the exit


if __name__ == "__main__":
    main(sys.argv[1])
