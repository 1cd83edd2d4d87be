"""Train on 50 labelled digits, generate a pool, filter and select it, and reproduce one sample from its seed.

python examples/generate_and_select.py --out samples
"""

import argparse
from pathlib import Path

import torch

from synthsieve.data.origin import Origin
from synthsieve.results.export.media import write_samples_figure
from synthsieve.training.augment import augment, draw_again
from synthsieve.training.defaults import settings_for
from synthsieve.training.loop import fit
from synthsieve.training.run_dir import RunDirectory

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=Path("samples"))
parser.add_argument("--steps", type=int, default=1000)
options = parser.parse_args()
torch.set_num_threads(1)  # small networks: a second thread makes them slower

# Pretraining: Algorithm 1, steps 1 to 6.
settings = settings_for("digits", overrides=[f"training.steps={options.steps}"])
origin = Origin("digits")
digits = origin.load()
run = RunDirectory.create(options.out, origin, settings.pretrained(), digits)
fit(run, digits)
model = run.load_model()

# Step 7: sample latents, decode them, filter by entropy, select with CRAIG.
pool, outcomes = augment(model, run.encoding, settings=settings.augmentation, sampling=settings.sampling, seed=0)
print(f"{len(pool):,} generated, {len(pool.survivors):,} pass the filter, {len(pool.selected):,} selected")
print(pool.counts())
print(f"gradient error {outcomes.figures['gradient_error']:.3g}, at most {outcomes.figures['gradient_bound']:.3g}")
write_samples_figure(options.out / "selected.png", pool.x, pool.y[pool.selected], columns=20)

# Every sample can be reproduced from its seed, byte for byte.
first = int(pool.selected[0])
same = (draw_again(model, run.encoding, pool, first) == pool.x[0]).all()
print(f"row {first}, chain seed {pool.chain_seed[first]}, reproduced: {'identical' if same else 'different'}")
