"""A table of mixed columns: train on 100 labels, generate labelled rows, and compare them with real ones.

python examples/table.py --out shop
"""

import argparse
import datetime
from pathlib import Path

import numpy as np
import pandas as pd

from synthsieve import LatentEBMClassifier
from synthsieve.data.modalities.table.rows import rows_from_frame
from synthsieve.evaluation.columns import compare_tables

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=Path("shop"))
parser.add_argument("--steps", type=int, default=300)
options = parser.parse_args()

# Orders of a shop, some returned. Most have no discount; some cells are missing.
rng, n = np.random.default_rng(0), 2000
returned = rng.random(n) < 0.3
orders = pd.DataFrame(
    {
        "order_id": np.arange(n) + 1000,
        "price": np.round(rng.lognormal(3 + returned, 0.5), 2),
        "discount": np.where(rng.random(n) < 0.7, 0, rng.integers(5, 50, n)),
        "size": rng.choice(["S", "M", "L", None], n, p=[0.3, 0.4, 0.2, 0.1]),
        "gift": rng.random(n) < 0.6 - 0.4 * returned,
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 366, n)],
    }
)
outcome = np.where(returned, "returned", "kept").astype(object)

# 100 labels; the next 1,400 rows are unlabelled, and the last 500 are held out.
y = np.where(np.arange(1500) < 100, outcome[:1500], None)
model = LatentEBMClassifier(max_iter=options.steps, random_state=0).fit(orders[:1500], y)
print("\n".join(f"{column.name}: {column.type}" for column in model.encoding_.schema.columns))
print(f"accuracy {model.score(orders[1500:], outcome[1500:]):.1%} on 500 held-out rows")

# New rows of each class, with the columns and types of the source.
drawn, labels = model.sample(500)
print(drawn.assign(outcome=labels)[::200])
options.out.mkdir(parents=True, exist_ok=True)
drawn.assign(outcome=labels).to_csv(options.out / "synthetic.csv", index=False)

(real, schema), (held_out, _) = (rows_from_frame(part, model.held_.metadata) for part in (orders[:1500], orders[1500:]))
near = compare_tables(real, rows_from_frame(drawn, schema)[0], schema, held_out=held_out)
print(f"mean distance of the columns from real ones: {near.marginal_distance:.3f}")
print(f"the same for held-out rows: {near.floor.marginal_distance:.3f}")
