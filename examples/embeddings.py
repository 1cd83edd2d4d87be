"""Use your own embeddings: train on vectors of questions, and show new vectors by the nearest real question.

python examples/embeddings.py
"""

import argparse

import numpy as np

from synthsieve import LatentEBMClassifier

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=300)
options = parser.parse_args()

# Questions, and a matrix with one row for each. Here the rows are word counts; use the embeddings of any model.
rng = np.random.default_rng(0)
topics = {"travel": ("train", "flight", "hotel", "ticket"), "food": ("soup", "bread", "dinner", "recipe")}
openings = ("where do I find a", "when do I get a", "how do I choose a")
labels = np.array(["travel", "food"] * 250)
nouns = [rng.choice(topics[topic], 2) for topic in labels]
questions = [f"{rng.choice(openings)} {first} {second}" for first, second in nouns]
words = sorted({word for question in questions for word in question.split()})
vectors = np.array([[question.split().count(word) for word in words] for question in questions], dtype=np.float32)
vectors += 0.1 * rng.normal(size=vectors.shape).astype(np.float32)

# Ten labels; 100 questions are held out.
y = np.where(np.arange(400) < 10, labels[:400], "")
model = LatentEBMClassifier(max_iter=options.steps, random_state=0)
model.fit(questions[:400], y, features=vectors[:400])
print(f"10 labels: accuracy {model.score(vectors[400:], labels[400:]):.1%} on 100 held-out questions")

# Embeddings are not readable: the nearest question represents each new one.
nearest, names = model.sample(5, temperature=0.5)
for name, question in zip(names, nearest, strict=True):
    print(f"{name}: {question}")
