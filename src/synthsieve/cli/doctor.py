"""`synthsieve doctor`: versions, cores, threads, and which data can be found."""

from __future__ import annotations

from typing import Any

from synthsieve.cli import options
from synthsieve.cli.options import finish


def _memory() -> float | None:
    """Gibibytes of memory, where the system tells."""
    import os

    if not hasattr(os, "sysconf"):
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def doctor(data_dir: options.DataDir = None, as_json: options.Json = False, debug: options.Debug = False) -> None:
    """Say what this machine has: versions, cores, threads, memory, and the data that need no download."""
    import os

    import torch

    from synthsieve.config import preset_names
    from synthsieve.data.download import ADULT, MNIST, SVHN, find
    from synthsieve.data.spoken_digits import find_recordings
    from synthsieve.data.sst2 import find_files
    from synthsieve.errors import DataError
    from synthsieve.learning.run_folder import versions

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    data = {"digits": "embedded"}
    for publication in (SVHN, MNIST, ADULT):
        found = [find(publication, file, data_dir) for file in publication.files]
        data[publication.name] = "absent" if None in found else str(found[0].parent)  # type: ignore[union-attr]
    for name, find_it in (("sst2", find_files), ("spoken-digits", find_recordings)):
        try:
            data[name] = str(find_it(data_dir))
        except DataError:
            data[name] = "absent"
    found_versions = versions()
    report: dict[str, Any] = {
        "versions": found_versions,
        "cores": cores,
        "torch_threads": torch.get_num_threads(),
        "memory_gib": _memory(),
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        "data": data,
        "presets": preset_names(),
    }
    lines = [f"{name} {number}" for name, number in found_versions.items()]
    lines += [f"cores {cores}, torch threads {report['torch_threads']}, memory {report['memory_gib']} GiB"]
    lines += [f"gpu: {report['gpu'] or 'none'}", *(f"data {name}: {where}" for name, where in data.items())]
    lines += [f"presets: {', '.join(preset_names())}"]
    finish(report, lines, as_json=as_json)
