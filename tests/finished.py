"""Finished runs to look at: small, of every kind of data, made once for all processes that test."""

import fcntl
import functools
import os
import shutil
from pathlib import Path

import pytest
import torch

from synthsieve.data.origin import Origin
from synthsieve.data.registry import register_source, source_names
from synthsieve.experiments.arms import BASELINE, Arm, TableEntry
from synthsieve.experiments.experiment import Experiment
from synthsieve.results.outcome import keep_model, keep_synthetic, run_experiment
from synthsieve.training.defaults import settings_for
from tests.experiments.conftest import work_here
from tests.modalities import image, sound, table, text, vector
from tests.scratch import SESSION

KINDS = {"image": image, "sound": sound, "table": table, "text": text, "vector": vector}
CRAIG = TableEntry(Arm.CRAIG, 60)
CELLS = (TableEntry(Arm.PRETRAINED, 0), BASELINE, TableEntry(Arm.ENTROPY, 60), CRAIG)
SMALL = (
    "data.labels=20",
    "data.validation=extra",
    "data.balanced=true",
    "training.steps=60",
    "training.evaluate_every=20",
    "training.checkpoint_every=60",
    "augmentation.steps=10",
    "sampling.num_steps=8",
    "sampling.training_steps=2",
)


@functools.cache
def _made(kind: str) -> Path:
    """A run of two classes of 120 examples of `kind`, or of the real digits; it must not be written to."""
    source = "digits"
    if kind != "digits":
        source = f"small-{kind}"
        if source not in source_names():
            register_source(source, lambda _: KINDS[kind].dataset())
    whole = Path(os.environ[SESSION]) / kind
    with whole.with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.is_dir():
            _make(source, whole.with_suffix(".partial")).rename(whole)
    return whole


def _make(source: str, out: Path) -> Path:
    torch.set_num_threads(1)
    origin = Origin(source)
    dataset = origin.load()
    settings = settings_for(source, dataset, overrides=SMALL)
    experiment = Experiment(out, origin, settings, (0,), CELLS)
    with pytest.MonkeyPatch.context() as patch:
        work_here(patch)
        experiment.check(dataset)
        run_experiment(experiment, dataset, workers=1)
    keep_model(experiment, CRAIG)
    keep_synthetic(experiment, CRAIG)
    return out


def finished_run(kind: str, folder: Path) -> Path:
    """A copy of the small run of `kind` ("digits" or one of KINDS) in `folder`, to do with as one likes."""
    out = folder / kind
    shutil.copytree(_made(kind), out)
    return out
