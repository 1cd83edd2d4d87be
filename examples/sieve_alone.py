"""The sieve alone: synthetic rows from any generator, probabilities from any classifier; keep the few worth keeping.

python examples/sieve_alone.py
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import synthsieve

# A generator of your own: here, real digits blurred with noise, some of them labelled wrongly.
generator = np.random.default_rng(0)
x, y = load_digits(return_X_y=True)
real, rest = np.arange(300), np.arange(300, len(x))
drawn = generator.choice(rest, 3000)
synthetic = x[drawn] + generator.normal(0, 3, (3000, x.shape[1]))
labels = np.where(generator.random(3000) < 0.15, generator.integers(0, 10, 3000), y[drawn])

# A classifier of your own: here, a logistic regression on the few real rows.
classifier = LogisticRegression(max_iter=2000).fit(x[real], y[real])
logits = classifier.decision_function(synthetic)

chosen = synthsieve.select(labels=labels, logits=logits, keep_fraction=0.5, require_label=True, budget=0.1)
print(chosen.summary())
right = labels == y[drawn]
print(f"labels that are right: {right.mean():.1%} of all rows, {right[chosen.indices].mean():.1%} of the kept")
