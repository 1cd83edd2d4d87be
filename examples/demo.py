"""The demo: 1,797 real digits, 50 of them labelled. Learn with and without the unlabelled ones, compare, draw new ones.

python examples/demo.py --out demo
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch

from synthsieve.config import load_settings
from synthsieve.drawing import draw_samples
from synthsieve.evaluation.accuracy import score_part
from synthsieve.learning.loop import fit
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.progress import for_stream
from synthsieve.sampling.langevin import LangevinSettings

ARMS = {"supervised only": "supervised", "joint model": "joint"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"))
    parser.add_argument("--set", action="append", default=[], help="one setting, such as learning.steps=200")
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # small networks: a second thread costs more than it gives

    origin = Origin("digits")
    digits = origin.load()
    scores, runs = {}, {}
    for arm, objective in ARMS.items():
        folder = chosen.out / arm.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        settings = load_settings("digits-minutes", [f"learning.objective={objective}", *chosen.set])
        run = RunFolder.create(folder, origin, settings, digits)
        if not runs:
            split = run.split
            print(
                f"digits: {len(split.labeled)} labelled, {len(split.unlabeled)} unlabelled, "
                f"{len(split.validation)} validation, {len(split.test)} test",
                flush=True,
            )
        fit(run, digits, progress=for_stream(arm))
        runs[arm], scores[arm] = run, score_part(run.model(), run.encoding, digits, run.split, "test")

    print(f"\nafter {settings.learning.steps} steps on the same {len(split.labeled)} labels:")
    for arm, figures in scores.items():
        if figures is not None:
            print(f"  {arm:16} {figures.in_words('test')}")

    joint = runs["joint model"]
    sampling = joint.settings.sampling
    chains = LangevinSettings(sampling.num_steps, sampling.step_size, sampling.temperature)
    drawn = draw_samples(joint.model(), joint.encoding, per_class=20, chains=chains, seed=0)
    drawn.write(chosen.out / "samples.npz", joint.split.classes)
    drawn.write_grid(chosen.out / "samples.png")
    print(f"\n{len(drawn.y)} new digits, a row a class: {chosen.out / 'samples.png'}")
    print(f"their pixels and labels: {chosen.out / 'samples.npz'}")


if __name__ == "__main__":
    main()
