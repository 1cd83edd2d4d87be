"""History rows as TensorBoard event files, for those who have TensorBoard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from synthsieve.errors import ConfigError
from synthsieve.learning.history import Row


def event_writer(folder: Path) -> Callable[[Row], None]:
    """A function that adds a history row's figures to event files in `folder`/tensorboard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError(
            "--tensorboard needs the tensorboard package: pip install 'synthsieve[tensorboard]'"
        ) from None
    writer = SummaryWriter(folder / "tensorboard")

    def add(row: Row) -> None:
        for name, value in row.items():
            if name != "step":
                writer.add_scalar(name, value, int(row["step"]))
        writer.flush()

    return add
