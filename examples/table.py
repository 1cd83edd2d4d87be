"""A table of mixed columns: learn from 100 labels, draw new labelled rows, and see how near they are to real ones.

python examples/table.py --out shop
"""

import argparse
import datetime
from pathlib import Path

import numpy as np
import pandas as pd

from synthsieve import LatentEBMClassifier
from synthsieve.data.rows import rows_from_frame
from synthsieve.evaluation.columns import compare_tables

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=Path("shop"))
parser.add_argument("--steps", type=int, default=300)
chosen = parser.parse_args()

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
    }
)
outcome = np.where(returned, "returned", "kept").astype(object)

# 100 labels; the next 1,400 rows are seen without theirs, the last 500 not at all.
y = np.where(np.arange(1500) < 100, outcome[:1500], None)
model = LatentEBMClassifier(max_iter=chosen.steps, random_state=0).fit(orders[:1500], y)
print("\n".join(f"{column.name}: {column.type}" for column in model.encoding_.schema.columns))
print(f"right on {model.score(orders[1500:], outcome[1500:]):.1%} of 500 rows never seen")

# New rows of each class, in the columns and types of the source.
drawn, labels = model.sample(500)
print(drawn.assign(outcome=labels)[::200])
chosen.out.mkdir(parents=True, exist_ok=True)
drawn.assign(outcome=labels).to_csv(chosen.out / "synthetic.csv", index=False)

(real, schema), (held_out, _) = (rows_from_frame(part, model.held_.about) for part in (orders[:1500], orders[1500:]))
near = compare_tables(real, rows_from_frame(drawn, schema)[0], schema, held_out=held_out)
print(f"marginals {near.marginal_distance:.3f} from real ones, held-out rows {near.floor.marginal_distance:.3f}")
