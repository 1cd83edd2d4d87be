"""The state of one gallery: a pool, its selections, rejections with undo, and exports in the background."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from synthsieve.errors import InputError
from synthsieve.io.progress import NOTHING, NullProgress
from synthsieve.results.export.formats import Format
from synthsieve.results.export.from_pool import available_formats, export_pool
from synthsieve.results.gallery.renderer import SampleRenderer
from synthsieve.results.gallery.selection import SelectionCache, SelectionRequest
from synthsieve.results.pool_view import PoolView, Rejections

MAX_UNDO = 100  # changes
MAX_FILES = 40  # listed by name


class GallerySession:
    """Everything that requests share; safe from several threads. Nothing is written outside of `out`, the run."""

    def __init__(self, view: PoolView, out: Path, table: Any = None) -> None:
        self.out, self.title, self.initial_view = out, out.resolve().name, view
        self.selections, self.renderer, self.exports = SelectionCache(view), SampleRenderer(view), BackgroundExport(out)
        self.formats, self._table = available_formats(view), table
        self._changes: deque[tuple[np.ndarray, bool]] = deque(maxlen=MAX_UNDO)
        self._lock = threading.Lock()

    @property
    def view(self) -> PoolView:
        """The pool with the current rejections."""
        return self.selections.view

    def warm_up(self) -> None:
        """Compute in the background what the first look at a sample needs."""
        threading.Thread(target=self.initial_view.nearest_real, args=(0,), name="warm-up", daemon=True).start()

    @property
    def undo_count(self) -> int:
        """How many changes can be undone."""
        return len(self._changes)

    def reject(self, rows: np.ndarray, *, rejected: bool) -> int:
        """Reject rows by hand, or restore them, on disk too; returns how many changed."""
        with self._lock:
            changed = self._change(rows, rejected=rejected)
            if len(changed):
                self._changes.append((changed, rejected))
            return len(changed)

    def undo(self) -> int:
        """Undo the last change; returns how many rows it had changed."""
        with self._lock:
            if not self._changes:
                raise InputError("there is no change left to undo", code="nothing-to-undo")
            rows, rejected = self._changes.pop()
            self._change(rows, rejected=not rejected)
            return len(rows)

    def export(self, request: SelectionRequest, formats: Sequence[Format], *, allow_empty_classes: bool) -> None:
        """Write a selection to a new directory in `out`, in the background."""

        def write(to: Path, progress: BackgroundExport) -> None:
            view, outcomes = self.selections.wait_exact(request, "export")
            options = {"table": self._table, "allow_empty_classes": allow_empty_classes, "progress": progress}
            export_pool(view, outcomes, to=to, formats=formats, **options)

        self.exports.start(write)

    def _change(self, rows: np.ndarray, *, rejected: bool) -> np.ndarray:
        """Change those of `rows` that need it. The file is read first: another gallery may have written it."""
        view = self.view
        rejections = Rejections.read(view.rejections.path.parent)
        changed = rows[np.isin(rows, rejections.rows(view.pool)) != rejected]
        if len(changed):
            rejections = rejections.update(view.pool, changed.tolist(), reject=rejected)
            self.selections.use_view(view.with_rejections(rejections))
        return changed


@dataclass(frozen=True)
class ExportStatus:
    """`state` is idle, running, done or failed; `path` and `files` are known when it is done."""

    state: str = "idle"
    done: int = 0
    total: int = 0
    message: str = ""
    path: str = ""
    files: tuple[str, ...] = ()
    more_files: int = 0


class BackgroundExport(NullProgress):
    """One export at a time, in a thread, each to a new directory in `out`. It is a `Progress` for the writer."""

    def __init__(self, out: Path) -> None:
        self._out, self.status, self._lock = out, ExportStatus(), threading.Lock()

    def start(self, write: Callable[[Path, BackgroundExport], None]) -> None:
        """Let `write` fill a new directory; refused while another export runs."""
        with self._lock:
            if self.status.state == "running":
                raise InputError("another export is still running: wait until it is done", code="export-running")
            self.status = ExportStatus("running", message="selecting")
        number = 1
        while (to := self._out / f"export-{number}").exists():
            number += 1
        threading.Thread(target=self._run, args=(write, to), name="export", daemon=True).start()

    def update(self, done: int, total: int, message: str = "", beside: tuple[int, int] = NOTHING) -> None:
        self.status = replace(self.status, done=done, total=total, message=message)

    def _run(self, write: Callable[[Path, BackgroundExport], None], to: Path) -> None:
        try:
            write(to, self)
            files = sorted(path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file())
        except Exception as error:  # the page shows it
            self.status = ExportStatus("failed", message=str(error) or repr(error))
            return
        more = max(0, len(files) - MAX_FILES)
        self.status = ExportStatus("done", path=str(to), files=tuple(files[:MAX_FILES]), more_files=more)
