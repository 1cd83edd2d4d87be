"""Where the networks of a run are trained: on the CPU, or on a GPU of this process."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING

from synthsieve.errors import ConfigError

if TYPE_CHECKING:
    import torch


class Device(StrEnum):
    """What a user can ask for."""

    CPU = "cpu"
    CUDA = "cuda"


def device_of(asked: Device) -> torch.device:
    """The device, if this machine has it; of several processes each has a GPU of its own.

    Whatever is random is drawn on the CPU and then moved, so the same numbers meet the networks everywhere.
    """
    import torch

    if asked is Device.CPU:
        return torch.device("cpu")
    place, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if place >= there:
        raise ConfigError(
            f"--device cuda needs {place + 1} GPU{'s' if place else ''} that torch can use, but it finds {there}: "
            "install a build of torch for your GPU, or leave --device out"
        )
    torch.cuda.set_device(place)
    return torch.device("cuda", place)
