"""Arrays on disk between the stages of a selection: one .npy file each, memory-mapped when read, without pickle."""

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
    """A hidden folder inside the output folder, so that finished files are moved into place by a rename."""

    path: Path

    @classmethod
    def within(cls, out: Path) -> WorkFolder:
        """The empty work folder of `out`; files of an earlier, interrupted job are removed."""
        work = cls(out / HIDDEN)
        work.remove()
        work.path.mkdir(parents=True)
        return work

    def save(self, name: str, **arrays: np.ndarray) -> None:
        """Each array as NAME/KEY.npy, atomically, but not synced to disk."""
        folder = self.path / name
        folder.mkdir(parents=True, exist_ok=True)
        for key, array in arrays.items():
            partial = folder / f".{key}.{uuid.uuid4().hex}.partial"  # two workers may both run a task
            with partial.open("wb") as file:
                np.save(file, array, allow_pickle=False)
            os.replace(partial, folder / f"{key}.npy")

    def load(self, name: str, key: str) -> np.ndarray:
        """NAME/KEY.npy, memory-mapped."""
        path = self.path / name / f"{key}.npy"
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        return array

    def drop(self, name: str) -> None:
        """Remove NAME, which is no longer needed."""
        shutil.rmtree(self.path / name, ignore_errors=True)

    def publish(self, name: str, target: Path) -> None:
        """Give a finished file or folder its final name, replacing an earlier one."""
        if target.is_dir():
            shutil.rmtree(target)
        os.replace(self.path / name, target)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
