"""Processes that train one model together: `torchrun --nproc-per-node 2 -m synthsieve fit ...`.

Each has its share of every batch; gradients are averaged by DistributedDataParallel. Its reducer wants one forward for
each backward, and our losses pass through the networks several times. So what is wrapped is not a network but the door
that every loss leaves by: the graph behind the loss is built on the plain modules, and so are the Langevin chains.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from synthsieve.errors import CheckpointError, ConfigError, LostProcessError
from synthsieve.sharing import Share


@dataclass(frozen=True)
class Together:
    """This process among those that train together; alone unless told otherwise.

    Attributes:
        share: its rank and how many there are.
    """

    share: Share = field(default_factory=Share)

    @property
    def alone(self) -> bool:
        return self.share.size == 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.share.rank == 0

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all processes, without a gradient; `values` itself is left as it was."""
        if self.alone:
            return values
        total = values.detach().clone()
        distributed.all_reduce(total)
        return total / self.share.size

    def largest(self, value: Tensor) -> Tensor:
        """The largest over all processes, of each number, without a gradient."""
        if self.alone:
            return value
        found = value.detach().clone()
        distributed.all_reduce(found, distributed.ReduceOp.MAX)
        return found

    def sum_(self, arrays: Sequence[np.ndarray]) -> None:
        """Let every process have the sum of each array, in place: where others have zeros, what one of them has."""
        if not self.alone:
            for array in arrays:
                distributed.all_reduce(torch.from_numpy(array))

    def door(self, model: nn.Module) -> Callable[[Tensor], Tensor]:
        """What a loss passes through before `backward`, so that the gradients it leaves are those of all processes."""
        if self.alone:
            return _as_it_is
        if any(isinstance(part, nn.BatchNorm2d) for part in model.modules()):
            raise ConfigError(
                "model.norm=batch needs the whole of a batch, of which each process has a part: "
                "set model.norm=group, or train in one process"
            )
        return nn.parallel.DistributedDataParallel(_Door(model), find_unused_parameters=True)

    def wait(self) -> None:
        """Until all are here."""
        if not self.alone:
            distributed.all_reduce(torch.zeros(1))  # not barrier(), which would take a GPU for each process

    def check_step(self, step: int) -> None:
        """Refuse to go on from different checkpoints: a process on another machine may see another disk."""
        last, first = self.largest(torch.tensor([step, -step])).tolist()
        if last != -first:
            raise CheckpointError(
                f"the processes of this training stand at different steps ({-first} and {last}): "
                "give a folder that all of them see"
            )

    def check_sizes(self, sizes: dict[str, int]) -> None:
        """Refuse batches that cannot be divided among the processes."""
        for name, size in sizes.items():
            if size % self.share.size:
                raise ConfigError(
                    f"{name}={size} cannot be shared out evenly among {self.share.size} processes: "
                    f"set it to a multiple of {self.share.size}"
                )


ALONE = Together()


class _Door(nn.Module):
    """Holds the networks, so that their gradients are averaged, and lets the loss through."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, loss: Tensor) -> Tensor:
        return loss.clone()


def _as_it_is(loss: Tensor) -> Tensor:
    return loss


def begun_by_torchrun() -> bool:
    """Whether this process is one of several that torchrun, or Ray, started."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_restart() -> bool:
    """Whether torchrun started it anew after another process failed (`--max-restarts`)."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def backend(*, gpu: bool) -> str:
    """What carries numbers between processes: gloo those in main memory, nccl those on a GPU."""
    return "cpu:gloo,cuda:nccl" if gpu else "gloo"


@contextmanager
def joined() -> Iterator[Together]:
    """Meet the other processes for as long as the block lasts; alone where there are none.

    Raises:
        LostProcessError: another process ended before the work was done.
    """
    if not begun_by_torchrun():
        yield ALONE
        return
    met_already = distributed.is_initialized()
    try:
        if not met_already:
            gpu = torch.cuda.is_available() and distributed.is_nccl_available()
            _meet(backend(gpu=gpu))
        together = Together(Share(distributed.get_rank(), distributed.get_world_size()))
        with _told_to_stop(together):
            yield together
    except RuntimeError as error:
        if isinstance(error, distributed.DistError) or "gloo" in str(error).lower() or "Connection" in str(error):
            raise LostProcessError(_lost(os.environ.get("RANK", "?"))) from None
        raise
    finally:
        if not met_already and distributed.is_initialized():
            distributed.destroy_process_group()


def _meet(backend: str) -> None:
    """Meet the others by the store that torchrun keeps.

    After a restart it still has the addresses of processes that are gone, and whoever comes first would call there: on
    one machine, where all count the same restarts, each attempt has names of its own.
    """
    if os.environ.get("GROUP_WORLD_SIZE") != "1" or not is_restart():
        distributed.init_process_group(backend)
        return
    store, rank, size = next(distributed.rendezvous("env://"))
    own = distributed.PrefixStore(f"attempt {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
    distributed.init_process_group(backend, store=own, rank=rank, world_size=size)


@contextmanager
def _told_to_stop(together: Together) -> Iterator[None]:
    """torchrun ends the others with SIGTERM when one process failed: leave by an error, with a sentence.

    Ray Train runs us in a thread, where no signal can be caught, and ends the others by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: Any) -> None:
        raise LostProcessError(_lost(str(together.share.rank)))

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _lost(rank: str) -> str:
    return (
        f"process {rank} stopped because another process of this training ended: the last checkpoint is whole; "
        "find out why the other ended, then give the same command with --resume"
    )
