"""Learn to tell sounds apart from a few labels, then draw new ones of each class and write them as .wav files.

python examples/sound.py --out sounds                        # tones that this script makes up
python examples/sound.py --source my_recordings --out sounds # a folder of .wav files for each class
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from synthsieve.config import load_settings
from synthsieve.drawing import draw_samples
from synthsieve.evaluation.accuracy import score_part
from synthsieve.export.samples import write_items, write_wav
from synthsieve.learning.loop import fit
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.sampling.langevin import LangevinSettings

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--source", type=Path, help="a folder of .wav files; without it, rising and falling tones")
parser.add_argument("--out", type=Path, default=Path("sounds"))
parser.add_argument("--labels", type=int, default=20)
parser.add_argument("--steps", type=int, default=300)
chosen = parser.parse_args()
torch.set_num_threads(1)  # small networks: a second thread costs more than it gives


def write_tones(folder: Path, *, each: int = 60, rate: int = 8000) -> Path:
    """Tones that rise and tones that fall, of any pitch, length and loudness, with noise."""
    generator = np.random.default_rng(0)
    for number in range(2 * each):
        name, slope = (("rising", 1), ("falling", -1))[number % 2]
        time = np.arange(int(rate * generator.uniform(0.3, 0.5))) / rate
        pitch = generator.uniform(900, 1800) + slope * generator.uniform(700, 1500) * (time - time.mean())
        wave = np.sin(2 * np.pi * np.cumsum(pitch) / rate) + 0.1 * generator.normal(size=len(time))
        write_wav(folder / name / f"{number:03d}.wav", generator.uniform(0.1, 0.8) * wave, rate)
    return folder


source = chosen.source or write_tones(chosen.out / "made_up")
origin = Origin.of(str(source))
sounds = origin.load()
settings = load_settings("sound-minutes", [f"data.labels={chosen.labels}", f"learning.steps={chosen.steps}"])
run = RunFolder.create(chosen.out / "run", origin, settings.first_phase(), sounds)
fit(run, sounds)
model = run.model()
scores = score_part(model, run.encoding, sounds, run.split, "test")
assert scores is not None
print(f"{len(run.split.labeled)} labels, {len(run.split.unlabeled)} unlabelled sounds: {scores.in_words('test')}")

chains = LangevinSettings(settings.sampling.num_steps, settings.sampling.step_size, temperature=0.5)
drawn = draw_samples(model, run.encoding, per_class=3, chains=chains, seed=0)
names = [sounds.classes[label] for label in drawn.y]
folder, table = write_items(chosen.out / "samples", run.encoding.items(drawn.x), names)
print(f"{len(names)} new sounds in {folder}, listed in {table.name}")
