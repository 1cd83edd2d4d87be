"""Images with the estimator: train on 50 labels, measure whether synthetic digits help, and save the model.

python examples/image.py --out digits
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from synthsieve import LatentEBMClassifier
from synthsieve.results.export.samples import write_items

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=Path("digits"))
parser.add_argument("--steps", type=int, default=600)
options = parser.parse_args()

# 1,797 real digits: 50 keep their label, 397 are held out.
images, labels = load_digits(return_X_y=True)
images = (images.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
order = np.random.default_rng(0).permutation(len(images))
train, test = order[:1400], order[1400:]
y = np.where(np.isin(np.arange(len(train)), np.arange(50)), labels[train], -1)

classifier = LatentEBMClassifier(max_iter=options.steps, random_state=0).fit(images[train], y)
print(f"50 labels: accuracy {classifier.score(images[test], labels[test]):.1%} on {len(test)} held-out digits")

# Generate, select, retrain, and compare on labels that were not used for anything else.
done = classifier.augment(X_test=images[test], y_test=labels[test], pool_size=2000, steps=options.steps // 2)
print(done)

# Save the selected samples and the better classifier.
(grid,) = write_items(options.out / "kept", done.X[:, None], [str(label) for label in done.y])
again = LatentEBMClassifier.load(done.classifier.save(options.out / "classifier.safetensors"))
print(f"synthetic digits: {grid}; classifier: {options.out / 'classifier.safetensors'}")
assert (again.predict(images[test]) == done.classifier.predict(images[test])).all()
