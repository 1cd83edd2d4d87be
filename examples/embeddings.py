"""Bring your own embeddings: learn from vectors of sentences, and see which real sentences the new ones are nearest to.

python examples/embeddings.py --out nearest
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from synthsieve.config import load_settings
from synthsieve.drawing import draw_samples
from synthsieve.export.samples import write_items
from synthsieve.learning.loop import fit
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.learning.shown import shown_items
from synthsieve.sampling.langevin import LangevinSettings

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--out", type=Path, default=Path("nearest"))
parser.add_argument("--steps", type=int, default=300)
chosen = parser.parse_args()
torch.set_num_threads(1)  # small networks: a second thread costs more than it gives
chosen.out.mkdir(parents=True, exist_ok=True)

# A table of questions, and a matrix with a row for each. Here words are counted; take any model's embeddings instead.
generator = np.random.default_rng(0)
topics = {"travel": ("train", "flight", "hotel", "ticket"), "food": ("soup", "bread", "dinner", "recipe")}
asked = [
    (
        f"{generator.choice(['where', 'when', 'how'])} do I find a {generator.choice(nouns)} {generator.choice(nouns)}",
        topic,
    )
    for _ in range(250)
    for topic, nouns in topics.items()
]
words = sorted({word for question, _ in asked for word in question.split()})
counts = np.array([[question.split().count(word) for word in words] for question, _ in asked], dtype=np.float32)
table, vectors = chosen.out / "questions.csv", chosen.out / "vectors.npy"
table.write_text("question,topic\n" + "\n".join(map(",".join, asked)) + "\n", encoding="utf-8")
np.save(vectors, counts + 0.1 * generator.normal(size=counts.shape).astype(np.float32))

origin = Origin.of(str(table), label="topic", text="question", features=vectors)
questions = origin.load()
settings = load_settings("vector-minutes", ["data.labels=10", f"learning.steps={chosen.steps}"])
run = RunFolder.create(chosen.out / "run", origin, settings.first_phase(), questions)
done = fit(run, questions)
print(f"10 labels: right on {100 * (done.validation_accuracy or 0):.0f} % of the validation rows")

# Nobody can read an embedding: each drawn one is shown by the nearest training row.
chains = LangevinSettings(settings.sampling.num_steps, settings.sampling.step_size, temperature=0.5)
drawn = draw_samples(run.model(), run.encoding, per_class=5, chains=chains, seed=0)
names = [questions.classes[label] for label in drawn.y]
shown = shown_items(run, drawn.x)
path, _ = write_items(chosen.out / "samples", shown, names, label_name="topic")
for name, nearest, distance in zip(names, shown["nearest_question"], shown["distance"], strict=True):
    print(f"{name}: {nearest} (distance {distance.as_py():.2f})")
print(f"in {path}")
