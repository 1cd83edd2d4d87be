"""Learn 50 labelled digits, draw a pool, sieve it, look at what was rejected and why, draw one sample again.

python examples/draw_and_sieve.py --out samples
"""

import argparse
from collections import Counter
from pathlib import Path

import torch

from synthsieve.augmentation import augment, draw_again
from synthsieve.defaults import settings_for
from synthsieve.evaluation.figures import write_samples_figure
from synthsieve.learning.loop import fit
from synthsieve.learning.run_folder import Origin, RunFolder

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=Path("samples"))
parser.add_argument("--steps", type=int, default=1000)
chosen = parser.parse_args()
torch.set_num_threads(1)  # small networks: a second thread costs more than it gives

# The first phase: Algorithm 1, steps 1 to 6.
settings = settings_for("digits", overrides=[f"learning.steps={chosen.steps}"])
origin = Origin("digits")
digits = origin.load()
run = RunFolder.create(chosen.out, origin, settings.first_phase(), digits)
fit(run, digits)
model = run.model()

# Step 7: draw, decode, filter by entropy, select by CRAIG.
done = augment(model, run.encoding, settings=settings.augmentation, sampling=settings.sampling, seed=0)
pool = done.pool
print(f"{len(pool):,} drawn, {len(pool.survivors):,} survive, {len(pool.selected):,} selected")
print(Counter(pool.reason_in_words(row) for row in range(len(pool))))
print(f"gradient error {done.figures['gradient_error']:.3g}, at most {done.figures['gradient_bound']:.3g}")
write_samples_figure(chosen.out / "selected.png", pool.x, pool.y[pool.selected], columns=20)

# Any sample comes again from its seed: the same bytes.
first = int(pool.selected[0])
same = (draw_again(model, run.encoding, pool, first) == pool.x[0]).all()
print(f"row {first}, chain seed {pool.chain_seed[first]}, drawn again: {'the same' if same else 'another'}")
