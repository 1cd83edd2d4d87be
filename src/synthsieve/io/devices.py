"""Where networks are computed: on the CPU, on a CUDA GPU, or on the GPU of a Mac."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from synthsieve.errors import ConfigError

if TYPE_CHECKING:
    import torch

AUTO = "auto"
NAMES = "auto|cpu|cuda|cuda:N|mps"


def device_of(device: str | torch.device = AUTO) -> torch.device:
    """The torch device of a name in `NAMES`; `auto` is a CUDA GPU, else `mps`, else the CPU.

    Of several processes (torchrun) each has its own GPU. A torch.device of another kind is returned as it is. Random
    numbers are drawn on the CPU and then moved, so that they are the same on every device.
    """
    import torch

    name = str(device)
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps(:0)?", name):
        if isinstance(device, torch.device):
            return device
        raise ConfigError(f"device must be auto, cpu, cuda, cuda:N or mps, got {name!r}", code="unknown-device")
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    processes = max(rank + 1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    has_mps = torch.backends.mps.is_available()
    if name == AUTO:
        name = "cuda" if count >= processes else "mps" if has_mps and processes == 1 else "cpu"
    kind, _, number = name.partition(":")
    if kind == "cpu":
        return torch.device("cpu")
    if processes > 1 and name != "cuda":
        message = f"device {name} is one GPU, but {processes} processes train together: give cuda, or cpu"
        raise ConfigError(message, code="device-in-parallel")
    if kind == "mps":
        if not has_mps:
            raise ConfigError("device mps needs a Mac with a GPU that torch finds: use cpu", code="no-gpu")
        return torch.device("mps")
    index, needed = (int(number), int(number) + 1) if number else (rank, processes)
    if needed > count:
        gpus = f"{needed} GPU{'' if needed == 1 else 's'}"
        message = f"device {name} needs {gpus}, but torch finds {count}: install torch for CUDA, or use cpu"
        raise ConfigError(message, code="no-gpu")
    torch.cuda.set_device(index)
    return torch.device("cuda", index)
