"""`synthsieve doctor`: versions, cores, memory, GPU, mixed precision, and which data sets are on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from synthsieve.cli import options


@options.verb
def doctor(console: options.Console, data_dir: options.DataDir = None) -> None:
    """Show what this machine has: versions, cores, memory, GPU, mixed precision, and data sets without a download."""
    import torch

    from synthsieve.experiments.workers import default_workers
    from synthsieve.io.devices import device_of
    from synthsieve.io.precision import try_bfloat16
    from synthsieve.io.versions import versions
    from synthsieve.settings import preset_names

    memory = None  # gibibytes, where the system reports it
    if hasattr(os, "sysconf"):
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    report: dict[str, Any] = {
        "versions": versions(),
        "cores": default_workers(),
        "torch_threads": torch.get_num_threads(),
        "memory_gib": memory,
        "device": str(device_of()),
        "mixed_precision": str(try_bfloat16(str(device_of()))),
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        "data": _data_sets(data_dir),
        "presets": preset_names(),
    }
    lines = [
        *(f"{name} {number}" for name, number in report["versions"].items()),
        f"cores {report['cores']}, torch threads {report['torch_threads']}, memory {report['memory_gib']} GiB",
        f"gpu: {report['gpu'] or 'none'}; device auto is {report['device']}",
        f"mixed precision (training.precision=bfloat16): {report['mixed_precision']}",
        *(f"data {name}: {where}" for name, where in report["data"].items()),
        f"presets: {', '.join(report['presets'])}",
    ]
    console.finish(report, lines)


def _data_sets(data_dir: Path | None) -> dict[str, str]:
    """The folder of each built-in data set, or "absent"."""
    from synthsieve.data.download import ADULT, MNIST, SVHN, find
    from synthsieve.data.sources.spoken_digits import find_recordings
    from synthsieve.data.sources.sst2 import find_files
    from synthsieve.errors import DataError

    data = {"digits": "embedded"}
    for publication in (SVHN, MNIST, ADULT):
        paths = [find(publication, file, data_dir) for file in publication.files]
        first = None if None in paths else paths[0]
        data[publication.name] = "absent" if first is None else str(first.parent)
    for name, find_it in (("sst2", find_files), ("spoken-digits", find_recordings)):
        try:
            data[name] = str(find_it(data_dir))
        except DataError:
            data[name] = "absent"
    return data
