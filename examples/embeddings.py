"""Bring your own embeddings: learn from vectors of questions, and see which real questions the new ones are nearest to.

python examples/embeddings.py
"""

import argparse

import numpy as np

from synthsieve import LatentEBMClassifier

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=300)
chosen = parser.parse_args()

# Questions, and a matrix with a row for each. Here words are counted; take any model's embeddings instead.
generator = np.random.default_rng(0)
topics = {"travel": ("train", "flight", "hotel", "ticket"), "food": ("soup", "bread", "dinner", "recipe")}
openings = ("where do I find a", "when do I get a", "how do I choose a")
labels = np.array(["travel", "food"] * 250)
nouns = [generator.choice(topics[topic], 2) for topic in labels]
questions = [f"{generator.choice(openings)} {first} {second}" for first, second in nouns]
words = sorted({word for question in questions for word in question.split()})
vectors = np.array([[question.split().count(word) for word in words] for question in questions], dtype=np.float32)
vectors += 0.1 * generator.normal(size=vectors.shape).astype(np.float32)

# Ten labels; a hundred questions are never seen.
y = np.where(np.arange(400) < 10, labels[:400], "")
model = LatentEBMClassifier(max_iter=chosen.steps, random_state=0)
model.fit(questions[:400], y, features=vectors[:400])
print(f"10 labels: right on {model.score(vectors[400:], labels[400:]):.1%} of 100 questions never seen")

# Nobody can read an embedding: each drawn one is shown by the nearest question.
nearest, names = model.sample(5, temperature=0.5)
for name, question in zip(names, nearest, strict=True):
    print(f"{name}: {question}")
