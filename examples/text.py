"""Learn to tell sentences apart from a few labels, then write new sentences of each class.

python examples/text.py --out sentences                      # opinions that this script makes up
python examples/text.py --source reviews.csv --text review --label mood
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from synthsieve.config import load_settings
from synthsieve.drawing import draw_samples
from synthsieve.evaluation.accuracy import score_part
from synthsieve.export.samples import write_items
from synthsieve.learning.loop import fit
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.sampling.langevin import LangevinSettings

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--source", type=Path, help="a CSV, TSV or Parquet file; without it, made-up opinions")
parser.add_argument("--text", default="sentence")
parser.add_argument("--label", default="opinion")
parser.add_argument("--out", type=Path, default=Path("sentences"))
parser.add_argument("--steps", type=int, default=300)
chosen = parser.parse_args()
torch.set_num_threads(1)  # small networks: a second thread costs more than it gives
chosen.out.mkdir(parents=True, exist_ok=True)


def write_opinions(path: Path, *, count: int = 1000) -> Path:
    """Opinions about plays and films, good and bad ones."""
    generator = np.random.default_rng(0)
    words = {"bad": ("dull", "awful", "weak", "a mess"), "good": ("lovely", "moving", "great fun", "a joy")}
    subjects, verbs = ("the film", "this story", "her new play", "the cast"), ("is", "was", "seems", "feels")
    lines = ["sentence,opinion"]
    for number in range(count):
        opinion = ("bad", "good")[number % 2]
        said = " ".join(generator.choice(list(part)) for part in (subjects, verbs, words[opinion]))
        lines.append(f"{said}{generator.choice(['', ' from start to end', ' tonight', ' .'])},{opinion}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


source = chosen.source or write_opinions(chosen.out / "opinions.csv")
origin = Origin.of(str(source), text=chosen.text, label=chosen.label)
sentences = origin.load()
settings = load_settings("text-minutes", ["data.labels=20", f"learning.steps={chosen.steps}"])
run = RunFolder.create(chosen.out / "run", origin, settings.first_phase(), sentences)
fit(run, sentences)
model = run.model()
if scores := score_part(model, run.encoding, sentences, run.split, "test"):
    print(f"20 labels, {len(run.split.unlabeled)} unlabelled sentences: {scores.in_words('test')}")

chains = LangevinSettings(settings.sampling.num_steps, settings.sampling.step_size, temperature=0.5)
drawn = draw_samples(model, run.encoding, per_class=5, chains=chains, seed=0)
written, names = run.encoding.items(drawn.x), [sentences.classes[label] for label in drawn.y]
(path,) = write_items(chosen.out / "samples", written, names)
print(*(f"{name}: {sentence}" for name, sentence in zip(names, written, strict=True)), f"in {path}", sep="\n")
