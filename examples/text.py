"""Sentences: learn to tell them apart from 20 labels, then write new ones of each class.

python examples/text.py                                       # opinions that this script makes up
python examples/text.py --source reviews.csv --text review --label mood
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from synthsieve import LatentEBMClassifier
from synthsieve.export.samples import write_items

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--source", type=Path, help="a CSV file; without it, made-up opinions")
parser.add_argument("--text", default="sentence")
parser.add_argument("--label", default="opinion")
parser.add_argument("--out", type=Path, default=Path("sentences"))
parser.add_argument("--steps", type=int, default=300)
chosen = parser.parse_args()


def opinions(count: int = 1000) -> pd.DataFrame:
    """Opinions about plays and films, good and bad ones."""
    generator = np.random.default_rng(0)
    words = {"bad": ("dull", "awful", "weak", "a mess"), "good": ("lovely", "moving", "great fun", "a joy")}
    subjects, verbs = ("the film", "this story", "her new play", "the cast"), ("is", "was", "seems", "feels")
    moods = [("bad", "good")[number % 2] for number in range(count)]
    said = [" ".join(generator.choice(list(part)) for part in (subjects, verbs, words[mood])) for mood in moods]
    ends = generator.choice(["", " from start to end", " tonight", " ."], count)
    return pd.DataFrame({"sentence": [one + end for one, end in zip(said, ends, strict=True)], "opinion": moods})


table = opinions() if chosen.source is None else pd.read_csv(chosen.source)
sentences, labels = table[chosen.text], table[chosen.label]
held_out = len(table) // 5

# 20 labels; the other sentences are seen without theirs, a fifth not at all.
y = labels[:-held_out].where(np.arange(len(table) - held_out) < 20, None)
model = LatentEBMClassifier(max_iter=chosen.steps, random_state=0).fit(sentences[:-held_out], y)
right = model.score(sentences[-held_out:], labels[-held_out:])
print(f"20 labels: right on {right:.1%} of {held_out} sentences never seen")

written, names = model.sample(5, temperature=0.5)
for name, sentence in zip(names, written, strict=True):
    print(f"{name}: {sentence}")
(path,) = write_items(chosen.out / "samples", written, [str(name) for name in names])
print(f"in {path}")
