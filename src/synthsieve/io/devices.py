"""Where the networks of a run are trained: on the CPU, or on a GPU of this process."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING

from synthsieve.errors import ConfigError

if TYPE_CHECKING:
    import torch


class Device(StrEnum):
    """The values of `--device`."""

    CPU = "cpu"
    CUDA = "cuda"


def device_of(device: Device) -> torch.device:
    """The torch device; of several processes each has its own GPU.

    Random numbers are drawn on the CPU and then moved, so that they are the same on every device.
    """
    import torch

    if device is Device.CPU:
        return torch.device("cpu")
    rank, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if rank >= count:
        advice = "install torch for CUDA, or omit it"
        raise ConfigError(f"--device cuda needs {rank + 1} GPUs, but torch finds {count}: {advice}", code="no-gpu")
    torch.cuda.set_device(rank)
    return torch.device("cuda", rank)
