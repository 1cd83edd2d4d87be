"""Images through the scikit-learn door: learn from 50 labels, prove that synthetic digits help or not, keep the model.

python examples/image.py --out digits
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from synthsieve import LatentEBMClassifier
from synthsieve.export.samples import write_items

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=Path("digits"))
parser.add_argument("--steps", type=int, default=600)
chosen = parser.parse_args()

# 1,797 real digits: 50 keep their label, 397 are never shown to fit.
images, labels = load_digits(return_X_y=True)
images = (images.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
order = np.random.default_rng(0).permutation(len(images))
train, test = order[:1400], order[1400:]
y = np.where(np.isin(np.arange(len(train)), np.arange(50)), labels[train], -1)

classifier = LatentEBMClassifier(max_iter=chosen.steps, random_state=0).fit(images[train], y)
print(f"50 labels: right on {classifier.score(images[test], labels[test]):.1%} of {len(test)} digits never seen")

# Draw, sieve, learn on, prove: on labels that nothing was chosen by.
done = classifier.augment(X_test=images[test], y_test=labels[test], pool_size=2000, steps=chosen.steps // 2)
print(done)

# What was kept, each with a weight; and the classifier that stands.
(grid,) = write_items(chosen.out / "kept", done.X[:, None], [str(label) for label in done.y])
again = LatentEBMClassifier.load(done.classifier.save(chosen.out / "classifier.safetensors"))
print(f"the synthetic digits: {grid}; the classifier: {chosen.out / 'classifier.safetensors'}")
assert (again.predict(images[test]) == done.classifier.predict(images[test])).all()
