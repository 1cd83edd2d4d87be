"""Whether mixed precision (bfloat16) is right and faster on this machine.

The test runs in a process of its own: some virtual machines list instructions that they forbid, and a product in
bfloat16 then ends the process.
"""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from synthsieve.errors import ConfigError

MAX_ERROR = 0.02  # relative; bfloat16 has 8 bits, an error of 0.004 a number
TIMEOUT = 300.0  # seconds, against a hang
REPEATS = 5


@dataclass(frozen=True)
class PrecisionTest:
    """What a convolution and a matrix product in bfloat16 gave, compared with float32."""

    error: float | None = None  # relative; None where the test did not finish
    speedup: float | None = None  # time in float32 over time in bfloat16
    failure: str = ""  # why it did not finish

    @property
    def is_right(self) -> bool:
        return self.error is not None and self.error <= MAX_ERROR

    @property
    def usable(self) -> bool:
        """Right and faster."""
        return self.is_right and self.speedup is not None and self.speedup > 1

    def __str__(self) -> str:
        if self.error is None or self.speedup is None:
            return f"not usable here: {self.failure}"
        found = f"{self.speedup:.1f} times the speed of float32, relative error {self.error:.4f}"
        return f"usable: {found}" if self.usable else f"not usable here: {found}"


@functools.cache
def try_bfloat16(device: str) -> PrecisionTest:
    """The result of the test on a torch device, by a process of its own; once per process."""
    command = [sys.executable, "-m", "synthsieve.io.precision", device]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT)
        if done.returncode < 0:
            return PrecisionTest(failure=f"its test ended with {signal.Signals(-done.returncode).name}")
        if done.returncode:
            return PrecisionTest(failure=f"its test failed ({done.stderr.strip().rpartition(chr(10))[2]})")
        return PrecisionTest(**json.loads(done.stdout))
    except (OSError, ValueError, TypeError, subprocess.TimeoutExpired) as error:
        return PrecisionTest(failure=f"its test could not be run ({error})")


def require_bfloat16(device: Any, *, faster: bool) -> None:
    """A ConfigError where mixed precision is wrong, or not `faster`, on this machine."""
    found = try_bfloat16(str(device))
    if not (found.usable if faster else found.is_right):
        message = f"training.precision=bfloat16 is {found}; set it to float32, or use another device"
        raise ConfigError(message, code="no-bfloat16")


def measure(device: str) -> PrecisionTest:
    """The test itself, which may end the process."""
    import torch
    from torch import nn

    rng = torch.Generator().manual_seed(0)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=rng).to(device)

    image, kernel, matrix, weight = numbers(32, 32, 16, 16), numbers(64, 32, 3, 3), numbers(256, 512), numbers(512, 512)

    def compute() -> list[torch.Tensor]:
        return [nn.functional.conv2d(image, kernel, padding=1).float().cpu(), (matrix @ weight).float().cpu()]

    def timed(call: Callable[[], Any]) -> float:
        call()
        times = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            call()
            times.append(time.perf_counter() - started)
        return min(times)

    expected, slow = compute(), timed(compute)
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
        found, fast = compute(), timed(compute)
    errors = [float((a - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True)]
    return PrecisionTest(max(errors), slow / fast)


if __name__ == "__main__":
    print(json.dumps(vars(measure(sys.argv[1]))))
