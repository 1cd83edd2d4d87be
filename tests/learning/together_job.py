"""What each process of test_together.py runs: float64 steps of both phases, with every term that can be switched on."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from synthsieve.defaults import settings_for
from synthsieve.learning.additions import choose_additions
from synthsieve.learning.batch_source import BatchSource
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.learning.step import Weighted, take_step
from synthsieve.together import joined
from tests.learning.conftest import QUICK

EVERYTHING = (
    "learning.steps=4",
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
    "learning.clip_gradient=5",
)


def in_double(batch):
    def weighted(part):
        return None if part is None else Weighted(part.x.double(), part.y, part.weights.double())

    return replace(
        batch,
        labeled_x=batch.labeled_x.double(),
        unlabeled_x=batch.unlabeled_x.double(),
        synthetic=weighted(batch.synthetic),
        pseudo=weighted(batch.pseudo),
    )


def main(out):
    torch.set_num_threads(1)
    with joined() as together:
        dataset = Origin("digits").load()
        settings = settings_for("digits", overrides=[*QUICK, *EVERYTHING])
        run = RunFolder.create(Path(out), Origin("digits"), settings, dataset, write=False)
        learner, source = run.new_learner(together), BatchSource(run, dataset, together.share)
        learner.step = settings.learning.steps
        additions = choose_additions(learner, run, dataset, None)  # in float32: choices must not differ by rounding
        learner.step = 0
        learner.model.double()
        learner.averaged.double()
        learner.door = together.door(learner.model)  # anew: it was made for float32
        for step in range(settings.total_steps):
            if step == settings.learning.steps:
                source.add(additions)
            take_step(learner, in_double(next(source)))
        if together.first:
            state = {name: value.contiguous() for name, value in learner.averaged.state_dict().items()}
            state["latents"] = torch.from_numpy(np.ascontiguousarray(additions.pool.z))
            state["terms"] = torch.tensor([learner.terms[name] for name in sorted(learner.terms)], dtype=torch.float64)
            save_file(state, out)


if __name__ == "__main__":
    main(sys.argv[1])
