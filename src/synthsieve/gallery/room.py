"""What one gallery holds: a pool, its choices, its looks, its marks and their undoing, its exports."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np

from synthsieve.errors import InputError
from synthsieve.export.formats import Format
from synthsieve.gallery.choice import Choices, Wish
from synthsieve.gallery.exporting import Exports, Told
from synthsieve.gallery.looks import Looks
from synthsieve.gallery.sample import near
from synthsieve.review.marks import Marks
from synthsieve.review.pool_view import PoolView
from synthsieve.review.taken_home import export_view, possible_formats

MOST_UNDONE = 100  # changes that can be taken back


class Room:
    """Everything that requests share; each part is safe from several threads.

    Attributes:
        out: the run's folder: all that is written is written there.
        title: what the page calls the run.
        drawn: the pool as it was opened; what is worked out of it once stays there, whatever is marked.
        choices, looks, exports: see there.
        formats: what an export can be written in.

    `table` is what the run's table.json says, for the card of an export.
    """

    def __init__(self, view: PoolView, out: Path, table: dict[str, Any] | None = None) -> None:
        self.out, self.title, self.drawn = out, out.resolve().name, view
        self.choices, self.looks, self.exports = Choices(view), Looks(view), Exports(out)
        self.formats, self._table = possible_formats(view), table
        self._changes: deque[tuple[np.ndarray, bool]] = deque(maxlen=MOST_UNDONE)
        self._marking = Lock()

    @property
    def view(self) -> PoolView:
        """The pool with the marks of now."""
        return self.choices.view

    def warm_up(self) -> None:
        """Work out in the background what the first look at a sample needs."""
        Thread(target=near, args=(self.drawn, 0), name="warming up", daemon=True).start()

    @property
    def can_undo(self) -> int:
        return len(self._changes)

    def mark(self, rows: np.ndarray, *, bad: bool) -> int:
        """Mark rows as bad, or no longer; written at once. How many changed."""
        with self._marking:
            changed = self._change(rows, bad=bad)
            if len(changed):
                self._changes.append((changed, bad))
            return len(changed)

    def undo(self) -> int:
        """Take the last change of marks back. How many rows it had changed."""
        with self._marking:
            if not self._changes:
                raise InputError("expected a change of marks to take back, but there is none left")
            rows, bad = self._changes.pop()
            self._change(rows, bad=not bad)
            return len(rows)

    def export(self, wish: Wish, formats: Sequence[Format], *, allow_empty_classes: bool = False) -> Told:
        """Write the choice of now into a new folder of OUT, in the background."""

        def write(to: Path, progress: Exports) -> None:
            view, fate = self.choices.true_one(wish, "export")
            export_view(
                view,
                fate,
                to=to,
                formats=formats,
                table=self._table,
                allow_empty_classes=allow_empty_classes,
                progress=progress,
            )

        return self.exports.begin(write)

    def _change(self, rows: np.ndarray, *, bad: bool) -> np.ndarray:
        """Those of `rows` that were not yet so, changed. The file is read anew: another gallery may have written it."""
        view = self.view
        marks = Marks.of(view.marks.path.parent)
        marked = np.isin(rows, marks.rows(view.pool))
        changed = rows[~marked] if bad else rows[marked]
        if len(changed):
            marks = marks.changed(view.pool, changed.tolist(), bad=bad)
            self.choices.use_marks(view.with_marks(marks))
        return changed
