"""`synthsieve.doctor`: what this machine has for training, and which data sets need no download."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from synthsieve.data.download import ADULT, MNIST, SVHN, find
from synthsieve.data.sources.spoken_digits import find_recordings
from synthsieve.data.sources.sst2 import find_files
from synthsieve.errors import DataError
from synthsieve.experiments.workers import default_workers
from synthsieve.io.devices import device_of
from synthsieve.io.precision import try_bfloat16
from synthsieve.io.versions import versions
from synthsieve.settings import preset_names

ABSENT = "absent"


@dataclass(frozen=True)
class Machine:
    """What this machine has."""

    versions: dict[str, str]  # of Python and the packages
    cores: int  # that this process may use
    torch_threads: int  # of one operation
    memory_gib: float | None  # None where the system does not report it
    device: str  # that `auto` takes
    mixed_precision: str  # whether bfloat16 can be used there, in words
    gpu: str | None  # its name
    data: dict[str, str]  # the folder of each built-in data set, or "absent"
    presets: list[str]  # their names

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """What the command line prints."""
        return [
            *(f"{name} {number}" for name, number in self.versions.items()),
            f"cores {self.cores}, torch threads {self.torch_threads}, memory {self.memory_gib} GiB",
            f"gpu: {self.gpu or 'none'}; device auto is {self.device}",
            f"mixed precision (training.precision=bfloat16): {self.mixed_precision}",
            *(f"data {name}: {where}" for name, where in self.data.items()),
            f"presets: {', '.join(self.presets)}",
        ]


def doctor(data_dir: str | Path | None = None) -> Machine:
    """Look up versions, cores, memory, GPU, mixed precision and built-in data sets.

    Args:
        data_dir: a folder of built-in data sets, besides the usual places.
    """
    memory = None
    if hasattr(os, "sysconf"):
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    device = str(device_of())
    return Machine(
        versions=versions(),
        cores=default_workers(),
        torch_threads=torch.get_num_threads(),
        memory_gib=memory,
        device=device,
        mixed_precision=str(try_bfloat16(device)),
        gpu=torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        data=_data_sets(None if data_dir is None else Path(data_dir)),
        presets=preset_names(),
    )


def _data_sets(data_dir: Path | None) -> dict[str, str]:
    data = {"digits": "embedded"}
    for publication in (SVHN, MNIST, ADULT):
        paths = [find(publication, file, data_dir) for file in publication.files]
        first = None if None in paths else paths[0]
        data[publication.name] = ABSENT if first is None else str(first.parent)
    for name, find_it in (("sst2", find_files), ("spoken-digits", find_recordings)):
        try:
            data[name] = str(find_it(data_dir))
        except DataError:
            data[name] = ABSENT
    return data
