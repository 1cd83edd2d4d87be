"""What test_device.py runs, in a process of its own: a device stays. Both phases, here and far away."""

import sys
from pathlib import Path

import torch

from synthsieve.data.origin import Origin
from synthsieve.settings import Coreset
from synthsieve.training.defaults import settings_for
from synthsieve.training.loop import fit
from synthsieve.training.run_dir import RunDirectory
from tests.contracts.test_modalities import CASES, settings
from tests.training.conftest import QUICK
from tests.training.far_device import FAR
from tests.training.parallel_job import EVERYTHING


def main(folder, *kinds):
    torch.set_num_threads(1)
    for kind in kinds:
        if kind == "digits":
            dataset = Origin("digits").load()
            requested = settings_for("digits", overrides=[*QUICK, *EVERYTHING, "augmentation.reselect_every=2"])
        else:
            # Gradients of two classes lie on a line. There the best centre of an even number of samples is not unique:
            # both middle ones are equally good, and the last bit decides. So these train on all that pass the filter;
            # the digits, of ten classes, train on a coreset.
            dataset = CASES[kind].dataset()
            requested = settings(dataset).changed("augmentation", coreset=Coreset.EVERYTHING)
        for place, device in (("here", torch.device("cpu")), ("far", FAR)):
            run = RunDirectory.create(Path(folder) / kind / place, Origin(dataset.name), requested, dataset)
            fit(run, dataset, device=device)


if __name__ == "__main__":
    main(*sys.argv[1:])
