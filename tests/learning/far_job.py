"""What test_device.py runs, in a process of its own: a device stays. Both phases, here and far away."""

import sys
from pathlib import Path

import torch

from synthsieve.defaults import settings_for
from synthsieve.learning.loop import fit
from synthsieve.learning.run_folder import Origin, RunFolder
from tests.contracts.test_modalities import CASES, settings
from tests.learning.conftest import QUICK
from tests.learning.far_device import FAR
from tests.learning.together_job import EVERYTHING


def main(folder, *kinds):
    torch.set_num_threads(1)
    for kind in kinds:
        if kind == "digits":
            dataset = Origin("digits").load()
            asked = settings_for("digits", overrides=[*QUICK, *EVERYTHING, "augmentation.reselect_every=2"])
        else:
            dataset = CASES[kind].dataset()
            asked = settings(dataset)
        for place, device in (("here", torch.device("cpu")), ("far", FAR)):
            run = RunFolder.create(Path(folder) / kind / place, Origin(dataset.name), asked, dataset)
            fit(run, dataset, device=device)


if __name__ == "__main__":
    main(*sys.argv[1:])
