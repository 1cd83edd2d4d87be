"""History rows as TensorBoard event files, for those who have TensorBoard."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from synthsieve.errors import ConfigError
from synthsieve.learning.history import Row


def require_tensorboard() -> None:
    """Say so, before any work, when the package is not there."""
    if find_spec("tensorboard") is None:
        raise ConfigError("--tensorboard needs the tensorboard package: pip install 'synthsieve[tensorboard]'")


def event_writer(folder: Path) -> Callable[[Row], None]:
    """A function that adds a history row's figures to event files in `folder`/tensorboard."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder / "tensorboard")

    def add(row: Row) -> None:
        for name, value in row.items():
            if name != "step":
                writer.add_scalar(name, value, int(row["step"]))
        writer.flush()

    return add
