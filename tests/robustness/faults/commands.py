"""The commands that faults befall: small, but each writes everything that a large one writes."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.experiments.conftest import SMALL_SETTINGS
from tests.robustness.faults.forked import ended
from tests.robustness.faults.whole import contents
from tests.training.conftest import QUICK

MEMORY = Path("/dev/shm")  # a disk of memory, where there is one: quick, and nobody waits for it
made_places: list[Path] = []  # to be removed at the end
AUGMENTED = [*SMALL_SETTINGS, "augmentation.pool_size=80", "augmentation.steps=12", "augmentation.reselect_every=4"]


def settings(*given: str) -> list[str]:
    return [word for setting in given for word in ("--set", setting)]


def new_place() -> Path:
    """A new folder on a quick disk."""
    made_places.append(Path(tempfile.mkdtemp(prefix="synthsieve-faults-", dir=MEMORY if MEMORY.is_dir() else None)))
    return made_places[-1]


@dataclass(frozen=True)
class Command:
    """Attributes:
    name: what people call it.
    words: the folder it writes to -> what is typed, the first time and to go on.
    begin: fills that folder with what must be there before.
    """

    name: str
    words: Callable[[Path], list[object]]
    begin: Callable[[Path], object] = lambda out: None

    @property
    def undisturbed(self) -> Undisturbed:
        return _undisturbed(self)


@dataclass(frozen=True)
class Undisturbed:
    """What a command comes to that nothing befalls."""

    folder: Path
    contents: dict[str, bytes]
    seconds: float


@functools.cache
def _undisturbed(command: Command) -> Undisturbed:
    folder = new_place() / "whole"
    command.begin(folder)
    done = ended(command.words(folder))
    assert done.code == 0, done.output
    return Undisturbed(folder, contents(folder), done.seconds)


def _fit(out: Path) -> list[object]:
    more = ["training.steps=30", "training.checkpoint_every=5", "training.evaluate_every=7"]
    return ["fit", "digits", "-o", out, "--resume", "--threads", 1, "--quiet", *settings(*QUICK, *more)]


def _augment(out: Path) -> list[object]:
    return ["fit", "digits", "-o", out, "--augment", "--resume", "--threads", 1, "--quiet", *settings(*AUGMENTED)]


def _run(out: Path) -> list[object]:
    more = ["comparison.baselines=false", "comparison.pool_sizes=[40]"]
    return ["run", "digits", "-o", out, "--workers", 0, "--quiet", *settings(*SMALL_SETTINGS, *more)]


@functools.cache
def pool_file() -> Path:
    """A pool for `select`."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(2000, 5))
    path = new_place() / "pool.npz"
    np.savez(path, labels=logits.argmax(axis=1), logits=logits, x=rng.normal(size=(2000, 8)))
    return path


def _select(out: Path) -> list[object]:
    return ["select", pool_file(), "-o", out, "--jobs", 1, "--quiet"]


def augmented_run(out: Path) -> None:
    """A finished `fit --augment`, which nobody has looked at."""
    shutil.copytree(AUGMENT.undisturbed.folder, out)


FIT = Command("fit", _fit)
AUGMENT = Command("fit --augment", _augment)
RUN = Command("run", _run)
SELECT = Command("select", _select)
EXPORT = Command("export", lambda out: ["export", out, "--threads", 1, "--quiet"], augmented_run)
ALL = (FIT, AUGMENT, RUN, SELECT, EXPORT)
LOST = {  # at most, when one of them ends before its end
    FIT: "steps since the last checkpoint, done again",
    AUGMENT: "steps since the last checkpoint, done again",
    RUN: "steps since the last checkpoint of the arm at work, done again",
    SELECT: "the selection at work, done again",
    EXPORT: "the export at work, done again",
}


def warm_up() -> None:
    """Load in this process what every command would load again: modules, kernels, plans."""
    import contextlib
    import io

    from synthsieve.cli.app import main

    out = new_place()
    for words in (_augment(out / "fit"), ["export", out / "fit", "--quiet"], _select(out / "select")):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main([str(word) for word in words])
    import synthsieve.results.outcome
    import synthsieve.results.report.page  # noqa: F401

    shutil.rmtree(out)
