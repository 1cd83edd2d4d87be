"""How long it takes to open a run whose pool has 200,000 samples: python benchmarks/open_pool.py [--samples 200000]"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from synthsieve import open_run
from synthsieve.data.origin import Origin
from synthsieve.training import extra_data
from synthsieve.training.defaults import settings_for
from synthsieve.training.loop import fit
from synthsieve.training.run_dir import RunDirectory

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--samples", type=int, default=200_000)
parser.add_argument("--latents", type=int, default=64)
given = parser.parse_args()
torch.set_num_threads(1)

options = ["training.steps=10", "augmentation.steps=2", "augmentation.pool_size=1000", "sampling.num_steps=5"]
settings = settings_for("digits", overrides=[*options, f"model.latent_dim={given.latents}"])
with tempfile.TemporaryDirectory() as folder:
    digits = Origin("digits").load()
    run = RunDirectory.create(Path(folder) / "run", Origin("digits"), settings, digits)
    fit(run, digits)
    small = extra_data.latest(run.path)
    rows = np.arange(given.samples) % len(small.pool)
    columns = {name: value[rows] for name, value in vars(small.pool).items() if name not in ("x", "origin")}
    columns["chain_seed"] = np.arange(given.samples)
    x = small.pool.x[np.searchsorted(small.pool.selected, rows[columns["weight"] > 0])]
    large = replace(small.pool, **columns, x=x)
    path = next(run.path.glob(f"pool-{small.step:07d}.npz"))
    large.write(path)
    started = time.perf_counter()
    view = open_run(run.path).pool()
    opened = time.perf_counter()
    view.nearest_real(0)
    nearest = time.perf_counter()
    view.select(view.settings.model_copy(update={"coreset": "random"}))
    selected = time.perf_counter()
print(f"{len(view):,} samples of {given.latents} latents, {path.name} {large.z.nbytes * 2 / 1e6:.0f} MB of latents")
print(
    f"opened in {opened - started:.2f} s; the first nearest examples in {nearest - opened:.2f} s more; "
    f"filtered again with a random selection in {selected - nearest:.2f} s"
)
