"""Data-parallel training: `torchrun --nproc-per-node 2 -m synthsieve fit ...`.

Every process has every size-th row of each batch, and gradients are averaged after `backward`. All processes hold the
same random generators in the same state, draw for the whole batch and keep their own rows. So the number of processes
changes nothing but the last bits of sums: not the noise, not the checkpoint, not the result.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed, nn

from synthsieve.errors import CheckpointError, ConfigError, LostProcessError

Rows = TypeVar("Rows")


@dataclass(frozen=True)
class ProcessGroup:
    """This process among those that train one model; a single process by default.

    Its rows of a batch are `rank`, `rank + size`, `rank + 2 size`, ... Batches laid end to end stay aligned that way
    where each can be divided by `size`.
    """

    rank: int = 0
    size: int = 1

    @property
    def single(self) -> bool:
        return self.size == 1

    @property
    def first(self) -> bool:
        """Whether this is rank 0, the process that writes files and reports."""
        return self.rank == 0

    def take(self, rows: Rows) -> Rows:
        """This process's part of a batch: an array, a tensor or a list, along its first axis."""
        return rows[self.rank :: self.size]  # type: ignore[index]

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all processes, without a gradient."""
        if self.single:
            return values
        total = values.detach().clone()
        distributed.all_reduce(total)
        return total / self.size

    def max(self, values: Tensor) -> Tensor:
        """The elementwise maximum over all processes, without a gradient."""
        if self.single:
            return values
        largest = values.detach().clone()
        distributed.all_reduce(largest, distributed.ReduceOp.MAX)
        return largest

    def sum_(self, arrays: Sequence[np.ndarray]) -> None:
        """Replace each array, in place, by its sum over all processes."""
        if not self.single:
            for array in arrays:
                distributed.all_reduce(torch.from_numpy(array))

    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace the gradients by their means over all processes, whose losses have the same graph."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if self.single or not gradients:
            return
        mean = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(mean)
        mean /= self.size
        for gradient, part in zip(gradients, mean.split([gradient.numel() for gradient in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def check_model(self, model: nn.Module) -> None:
        """Refuse networks that need the whole batch where each process has a part of it."""
        if not self.single and any(isinstance(part, nn.BatchNorm2d) for part in model.modules()):
            raise ConfigError(
                "model.norm=batch needs the whole batch, but each process has a part of it: set model.norm=group, or"
                " train in one process",
                code="batch-norm-in-parallel",
            )

    def wait(self) -> None:
        """Wait until all processes are here."""
        if not self.single:
            distributed.all_reduce(torch.zeros(1))  # not barrier(), which would take a GPU for each process

    def check_step(self, step: int) -> None:
        """Refuse to resume from different checkpoints: a process on another machine may see another disk."""
        last, first = self.max(torch.tensor([step, -step])).tolist()
        if last != -first:
            raise CheckpointError(
                f"the processes of this training are at different steps ({-first} and {last}): give a folder that all"
                " of them see",
                code="different-steps",
            )

    def check_sizes(self, sizes: dict[str, int]) -> None:
        """Refuse batches that cannot be divided among the processes."""
        for name, size in sizes.items():
            if size % self.size:
                raise ConfigError(
                    f"{name}={size} cannot be divided evenly among {self.size} processes: "
                    f"set it to a multiple of {self.size}",
                    code="indivisible-batch",
                )


SINGLE_PROCESS = ProcessGroup()


class ShardedGenerator(torch.Generator):
    """A generator that all processes hold in the same state; each keeps its own rows of every draw."""

    group: ProcessGroup

    def draw_rows(self, draw: Callable[[Sequence[int]], Tensor], shape: Sequence[int]) -> Tensor:
        """This process's rows of the whole batch: `synthsieve.io.random_streams.draw_rows` calls it."""
        count, *rest = shape
        return self.group.take(draw((count * self.group.size, *rest)))


def shard_rng(rng: torch.Generator, group: ProcessGroup) -> torch.Generator:
    """The same generator in the same state, of which this process keeps its rows; `rng` itself in a single process."""
    if group.single:
        return rng
    sharded = ShardedGenerator(device=rng.device)
    sharded.set_state(rng.get_state())
    sharded.group = group
    return sharded


def is_restart() -> bool:
    """Whether torchrun started this process again after another one failed (`--max-restarts`)."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def backend(*, gpu: bool) -> str:
    """Gloo for tensors in main memory, NCCL for those on a GPU."""
    return "cpu:gloo,cuda:nccl" if gpu else "gloo"


@contextmanager
def init_process_group() -> Iterator[ProcessGroup]:
    """Join the other processes that torchrun or Ray started; a single process where there are none.

    Raises:
        LostProcessError: another process ended before the work was done.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield SINGLE_PROCESS
        return
    joined_before = distributed.is_initialized()
    try:
        if not joined_before:
            _join(backend(gpu=torch.cuda.is_available() and distributed.is_nccl_available()))
        group = ProcessGroup(distributed.get_rank(), distributed.get_world_size())
        with _sigterm_as_error(group.rank):
            yield group
    except RuntimeError as error:
        if isinstance(error, distributed.DistError) or "gloo" in str(error).lower() or "Connection" in str(error):
            raise _lost_process(os.environ.get("RANK", "?")) from None
        raise
    finally:
        if not joined_before and distributed.is_initialized():
            distributed.destroy_process_group()


def _join(backend: str) -> None:
    """Join by torchrun's store.

    Modules of torch that are imported later, by the first step of an optimiser say, would hold the group as the default
    of an argument: its threads would then outlive it, and may abort the process at its exit. So import them first.

    After a restart it still has the addresses of processes that are gone. On one machine, where all count the same
    restarts, each attempt therefore uses its own prefix.
    """
    importlib.import_module("torch._dynamo")
    if os.environ.get("GROUP_WORLD_SIZE") != "1" or not is_restart():
        distributed.init_process_group(backend)
        return
    store, rank, size = next(distributed.rendezvous("env://"))
    prefixed = distributed.PrefixStore(f"attempt {os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
    distributed.init_process_group(backend, store=prefixed, rank=rank, world_size=size)


@contextmanager
def _sigterm_as_error(rank: int) -> Iterator[None]:
    """When one process fails, torchrun ends the others with SIGTERM: turn it into an error with a message.

    Ray Train runs us in a thread, where no signal can be caught, and ends the others itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise _lost_process(str(rank))

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _lost_process(rank: str) -> LostProcessError:
    return LostProcessError(
        f"process {rank} stopped because another process of this training ended; the last checkpoint is complete: find"
        " out why the other process ended, then run the same command with --resume",
        code="lost-process",
    )
