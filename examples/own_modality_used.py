"""The modality of own_modality.py, used like any other: train on 100 labels, sample a three."""

import argparse

import numpy as np
from own_modality import load_counts

import synthsieve

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=600)
counts = load_counts().train
y = np.where(np.arange(len(counts)) < 100, counts.y, -1)
model = synthsieve.LatentEBMClassifier(
    modality="counts", preset="vector-minutes", max_iter=parser.parse_args().steps, random_state=0
)
model.fit(counts.x[:1400], y[:1400])
print(f"accuracy {model.score(counts.x[1400:], counts.y[1400:]):.1%} on 397 held-out digits")
print(model.sample(1, temperature=0.5)[0][3].reshape(8, 8))
