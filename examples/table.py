"""A table of mixed columns: learn from few labels, draw new labelled rows, and see how near they are to real ones.

python examples/table.py --out shop
"""

import argparse
import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from synthsieve.config import load_settings
from synthsieve.drawing import draw_samples
from synthsieve.evaluation.accuracy import score_part
from synthsieve.evaluation.columns import compare_tables
from synthsieve.learning.loop import fit
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.sampling.langevin import LangevinSettings

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=Path("shop"))
parser.add_argument("--steps", type=int, default=400)
chosen = parser.parse_args()
torch.set_num_threads(1)  # small networks: a second thread costs more than it gives

# Orders of a shop, some returned. Most have no discount; some cells are missing.
generator, n = np.random.default_rng(0), 2000
returned = generator.random(n) < 0.3
orders = pd.DataFrame(
    {
        "order_id": np.arange(n) + 1000,
        "price": np.round(generator.lognormal(3 + returned, 0.5), 2),
        "discount": np.where(generator.random(n) < 0.7, 0, generator.integers(5, 50, n)),
        "size": generator.choice(["S", "M", "L", None], n, p=[0.3, 0.4, 0.2, 0.1]),
        "gift": generator.random(n) < 0.6 - 0.4 * returned,
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in generator.integers(0, 366, n)],
        "outcome": np.where(returned, "returned", "kept"),
    }
)
chosen.out.mkdir(parents=True, exist_ok=True)
orders.to_parquet(chosen.out / "orders.parquet")

# 100 labels; the other rows are seen without theirs.
origin = Origin.of(str(chosen.out / "orders.parquet"), label="outcome")
data = origin.load()
print("\n".join(f"{column.name}: {column.type}" for column in data.about.columns))
settings = load_settings("table-minutes", [f"learning.steps={chosen.steps}", "data.labels=100"]).first_phase()
run = RunFolder.create(chosen.out / "run", origin, settings, data)
fit(run, data)
print(score_part(run.model(), run.encoding, data, run.split, "test").in_words("test"))

# New rows of each class, in the columns and types of the source.
drawn = draw_samples(run.model(), run.encoding, per_class=300, chains=LangevinSettings(60, 0.08, 1.0), seed=0)
print(run.encoding.items(drawn.x[::120]).to_pandas())
real = data.train.x[run.split.unlabeled]
near = compare_tables(real, drawn.x, data.about, held_out=data.train.x[run.split.test])
print(f"marginals {near.marginal_distance:.3f} from real ones, held-out rows {near.floor.marginal_distance:.3f}")
