"""Selection only: select the most useful synthetic rows, with your own generator and classifier.

python examples/select_only.py
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import synthsieve

# Your own generator: here, real digits with added noise, some of them with a wrong label.
rng = np.random.default_rng(0)
x, y = load_digits(return_X_y=True)
real, rest = np.arange(300), np.arange(300, len(x))
drawn = rng.choice(rest, 3000)
synthetic = x[drawn] + rng.normal(0, 3, (3000, x.shape[1]))
labels = np.where(rng.random(3000) < 0.15, rng.integers(0, 10, 3000), y[drawn])

# Your own classifier: here, a logistic regression on the few real rows.
classifier = LogisticRegression(max_iter=2000).fit(x[real], y[real])
logits = classifier.decision_function(synthetic)

chosen = synthsieve.select(labels=labels, logits=logits, keep_fraction=0.5, require_label=True, budget=0.1)
print(chosen.summary())
correct = labels == y[drawn]
print(f"correct labels: {correct.mean():.1%} of all rows, {correct[chosen.indices].mean():.1%} of the selected rows")
