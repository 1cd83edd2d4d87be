"""Arrays on disk between the stages of a selection: one .npy file each, mapped when read, never unpickled."""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HIDDEN = ".synthsieve-work"


@dataclass(frozen=True)
class WorkFolder:
    """A hidden folder inside the one that results go to, so that finished files move into place by a rename."""

    path: Path

    @classmethod
    def within(cls, out: Path) -> WorkFolder:
        """The empty work folder of `out`; what an earlier, interrupted job left is removed."""
        work = cls(out / HIDDEN)
        work.remove()
        work.path.mkdir(parents=True)
        return work

    def save(self, name: str, **arrays: np.ndarray) -> None:
        """Each array as NAME/KEY.npy, whole or not at all; a power cut may lose it, and the whole job with it."""
        folder = self.path / name
        folder.mkdir(parents=True, exist_ok=True)
        for key, array in arrays.items():
            partial = folder / f".{key}.{uuid.uuid4().hex}.partial"  # two workers may both believe a piece to be theirs
            with partial.open("wb") as file:
                np.save(file, array, allow_pickle=False)
            os.replace(partial, folder / f"{key}.npy")

    def load(self, name: str, key: str) -> np.ndarray:
        """NAME/KEY.npy, mapped: only what is looked at is read."""
        path = self.path / name / f"{key}.npy"
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        return array

    def drop(self, name: str) -> None:
        """Make room: nobody needs NAME any more."""
        shutil.rmtree(self.path / name, ignore_errors=True)

    def publish(self, name: str, target: Path) -> None:
        """Give a finished file or folder its final name, in place of an earlier one."""
        if target.is_dir():
            shutil.rmtree(target)
        os.replace(self.path / name, target)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
