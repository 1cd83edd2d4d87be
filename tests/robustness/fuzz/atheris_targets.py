"""Coverage-guided fuzzing of every reader, and of `select`: what `make fuzz` runs.

    python -m tests.robustness.fuzz.atheris_targets 20              all targets, 20 seconds each
    python -m tests.robustness.fuzz.atheris_targets 60 mat csv      some of them
    SYNTHSIEVE_TEST_RUNS=build python -m tests.robustness.fuzz.atheris_targets --one mat ...   with libFuzzer options

An input that makes a reader fail is kept as FAILED/TARGET-...; the target is then over. The seeds are the good files of
`targets`, spoiled by `mutations` as much as by libFuzzer itself.
"""

from __future__ import annotations

import functools
import os
import re
import resource
import subprocess
import sys
import tempfile
import warnings
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from tests.scratch import SESSION, new_folder

FAILED = Path("build") / "fuzz"
MAX_DECODED_BYTES = (
    4 << 30
)  # bytes of address space beyond what is loaded, so that a claim that is believed ends in an error
SECONDS_EACH = 20  # of one input: beyond it a reader hangs
LARGEST = 1 << 20
SELECT = "select"


def run_all(seconds: int, names: list[str]) -> int:
    """Run each target in a process of its own; the number of those that failed."""
    from tests.robustness.fuzz.targets import TARGETS

    failed, tried = [], 0
    for name in names or [*TARGETS, SELECT]:
        FAILED.mkdir(parents=True, exist_ok=True)
        options = [
            f"-max_total_time={seconds}",
            f"-timeout={SECONDS_EACH}",
            f"-max_len={LARGEST}",
            f"-artifact_prefix={FAILED}/{name}-",
            "-rss_limit_mb=0",  # the address space is bounded already
            "-print_final_stats=1",
        ]
        command = [sys.executable, "-m", "tests.robustness.fuzz.atheris_targets", "--one", name, *options]
        with tempfile.TemporaryDirectory(prefix="synthsieve-fuzz-") as scratch:  # libFuzzer ends without cleaning up
            done = subprocess.run(
                command,
                env={**os.environ, SESSION: scratch},
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
        covered = re.findall(r"cov: (\d+)", done.stderr)
        inputs = int(counts[-1]) if counts else 0
        tried += inputs
        print(f"{name}: {inputs:,} inputs, {covered[-1] if covered else '?'} edges", flush=True)
        if done.returncode:
            failed.append(name)
            print(
                f"  FAILED ({done.returncode}); the input is in {FAILED}\n{_last(done.stdout + done.stderr)}",
                flush=True,
            )
    print(f"{tried:,} inputs, {len(failed)} targets failed{': ' if failed else ''}{', '.join(failed)}")
    return len(failed)


def _last(text: str) -> str:
    """The trace of a failure, without libFuzzer's own words."""
    start = text.find("=== Uncaught Python exception")
    lines = [line for line in text[max(0, start) :].splitlines() if not line.startswith("INFO: ")]
    return "\n".join(f"  {line}" for line in (lines[:40] if start >= 0 else lines[-25:]))


def run_one(name: str, arguments: list[str]) -> None:
    """Fuzz one target in this process; it ends with the process."""
    import atheris

    import_module("synthsieve.selection.coreset")  # first: instrumented kernels cannot be compiled

    warnings.simplefilter("ignore")
    with atheris.instrument_imports(include=["synthsieve", "zipfile", "tomllib", "json", "csv"]):
        from synthsieve.data import registry
        from synthsieve.errors import SynthsieveError
        from tests.robustness.fuzz.guard import check_cause, status
        from tests.robustness.fuzz.mutations import spoiled
        from tests.robustness.fuzz.targets import TARGETS

        # The program asks for plug-ins with each reading, which takes longer than most of the readings here.
        registry.entry_points = functools.cache(registry.entry_points)  # type: ignore[attr-defined]

        def one_input(data: bytes) -> None:
            try:
                feed(data)
            except (SynthsieveError, OSError) as error:
                check_cause(error)

        feed, seeds = _select, (bytes(64), bytes(range(256)))
        if name != SELECT:
            ready = TARGETS[name](new_folder())
            feed, seeds = ready.feed, ready.seeds
        for seed in seeds:  # compiles, and imports what is imported late
            one_input(seed)
    corpus = new_folder()
    for place, seed in enumerate(seeds):
        (corpus / str(place)).write_bytes(seed)
    most = status("VmSize") + MAX_DECODED_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        own = bytes(data)
        return atheris.Mutate(data, most) if name == SELECT or random.random() < 0.3 else spoiled(own, random)[:most]

    atheris.Setup([sys.argv[0], *arguments, str(corpus)], one_input, custom_mutator=mutate)
    atheris.Fuzz()


def _select(data: bytes) -> None:
    """Bytes read as the arguments of `select`."""
    import atheris
    import numpy as np

    import synthsieve

    given = atheris.FuzzedDataProvider(data)
    rows, columns = given.ConsumeIntInRange(0, 12), given.ConsumeIntInRange(0, 4)

    def matrix() -> Any:
        values = given.ConsumeFloatList(rows * columns)
        array = np.array(values + [0.0] * (rows * columns - len(values))).reshape(rows, columns)
        kinds = ["f8", "f4", "f2", "i8", "u1", "?", "c16", "U5", "O", "M8[s]"]
        with np.errstate(all="ignore"):
            return array.astype(kinds[given.ConsumeIntInRange(0, len(kinds) - 1)])

    requested: dict[str, Any] = {"labels": given.ConsumeIntListInRange(rows, -1, 4), "n_jobs": 1}
    for name in ("logits", "probabilities", "gradients", "features", "sample_weight"):
        if given.ConsumeBool():
            requested[name] = matrix()
    for name in ("budget", "epsilon", "entropy_ceiling", "keep_fraction", "memory_limit"):
        if given.ConsumeIntInRange(0, 3) == 0:
            requested[name] = given.ConsumeFloat() if given.ConsumeBool() else given.ConsumeInt(9)
    for name in ("method", "curvature"):
        if given.ConsumeBool():
            requested[name] = given.PickValueInList(
                ["exact", "fast", "stochastic", "random", "none", "softmax", "unit"]
            )
    for name in ("refine", "require_label", "keep_per_class"):
        requested[name] = given.ConsumeBool()
    synthsieve.select(**requested)


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        run_one(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(min(run_all(int(sys.argv[1]), sys.argv[2:]), 1))
