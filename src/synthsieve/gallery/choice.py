"""The choice that a page looks at: another ceiling, another budget, marks; its numbers at once, its picks when ready.

Choosing truly may take seconds, so that it is done in the background, by one thread for all pages. Each page has one
wish at a time: a newer one takes its place, and work on a wish that no page has any more is stopped.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from synthsieve.config import AugmentationSettings, Coreset, EntropyAt
from synthsieve.entropy import Reason, Survivors
from synthsieve.errors import SelectionError
from synthsieve.gallery.preview import quick_fate
from synthsieve.progress import Progress
from synthsieve.review.fate import Fate, changed_settings, filtered
from synthsieve.review.pool_view import PoolView
from synthsieve.selection.coreset import compile_kernels

SMALL = 20_000  # samples; of such a pool the true picks are there in a moment
PATIENCE = 0.25  # seconds that a small pool's are waited for before a preview is shown
REST = 0.4  # seconds that a large pool's wish must stand before work on it begins: a slider on its way changes it often
KEPT_CHOICES = 8
MOST_TABS = 16

Value = TypeVar("Value")


@dataclass(frozen=True)
class Wish:
    """What a page asks for; None is what training had.

    Attributes:
        ceiling: one entropy ceiling for all classes, in nats.
        keep: instead of it, the share of each class that is kept, by lowest entropy.
        budget: the share of those kept that is selected, of each class.
    """

    ceiling: float | None = None
    keep: float | None = None
    budget: float | None = None

    def settings(self, view: PoolView) -> AugmentationSettings:
        return changed_settings(
            view.settings, entropy_ceiling=self.ceiling, keep_fraction=self.keep, budget=self.budget
        )


@dataclass(frozen=True)
class Chosen:
    """The fate of every sample under a wish.

    Attributes:
        fate: theirs.
        preview: other picks will come; `done` in [0, 1] says how soon.
        note: why nobody is kept, where nobody is.
    """

    fate: Fate
    preview: bool = False
    done: float = 1.0
    note: str = ""


@dataclass(frozen=True)
class _Key:
    """A wish under the marks of that moment."""

    wish: Wish
    marks: int


class _SupersededError(Exception):
    """Nobody waits for this choice any more."""


class Choices:
    """Fates of a pool under the wishes of its pages; the last few are kept."""

    def __init__(self, view: PoolView) -> None:
        self._view, self._marks = view, 0
        self._settled: OrderedDict[_Key, Chosen | str] = OrderedDict()  # or the sentence that says what went wrong
        self._previews: OrderedDict[_Key, Fate] = OrderedDict()
        self._wanted: OrderedDict[str, _Key] = OrderedDict()
        self._done: dict[_Key, float] = {}
        self._wished_at = 0.0
        self._changed = threading.Condition()
        threading.Thread(target=self._work, name="choosing", daemon=True).start()

    @property
    def view(self) -> PoolView:
        """The pool with the marks of now."""
        return self._view

    def use_marks(self, view: PoolView) -> None:
        """From now on choices are made under the marks of `view`."""
        with self._changed:
            self._view, self._marks = view, self._marks + 1
            self._wanted.clear()

    @property
    def patience(self) -> float:
        """How long a page should wait for the true picks before it looks at a preview, seconds."""
        return PATIENCE if len(self._view) <= SMALL else 0.0

    def of(self, wish: Wish, tab: str, *, patience: float = 0.0) -> Chosen:
        """The choice that the page `tab` now wishes: the true one where it is known in time, else a preview."""
        with self._changed:
            view, key = self._view, _Key(wish, self._marks)
            settings = wish.settings(view)
            if settings == view.settings and not len(view.marked):
                return Chosen(view.as_trained())
            if key not in self._settled and settings.coreset in (Coreset.EVERYTHING, Coreset.RANDOM):
                _keep(self._settled, key, _truly(view, settings))  # quick
            if key not in self._settled:
                self._want(tab, key)
                self._changed.wait_for(lambda: key in self._settled, patience)
            if key in self._settled:
                return self._take(key)
            done, fate = self._done.get(key, 0.0), self._previews.get(key)
        if fate is None:
            try:
                fate = quick_fate(view, _survivors(view, settings), settings)
            except SelectionError as error:
                return nobody(view, settings, str(error))
            with self._changed:
                _keep(self._previews, key, fate)
        return Chosen(fate, preview=True, done=done)

    def true_one(self, wish: Wish, tab: str) -> tuple[PoolView, Fate]:
        """The choice itself, however long it takes, and the pool with the marks that it was made under."""
        while True:
            with self._changed:
                view, marks = self._view, self._marks
            chosen = self.of(wish, tab, patience=1.0)
            if not chosen.preview and marks == self._marks:
                return view, chosen.fate

    def tell(self, key: _Key, done: float) -> None:
        """How far a choice has come; stops it where nobody waits for it any more."""
        with self._changed:
            if key not in self._wanted.values():
                self._done.pop(key, None)
                raise _SupersededError
            self._done[key] = done

    def _take(self, key: _Key) -> Chosen:
        self._settled.move_to_end(key)
        found = self._settled[key]
        if isinstance(found, str):
            raise SelectionError(found)
        return found

    def _want(self, tab: str, key: _Key) -> None:
        if self._wanted.get(tab) != key:
            self._wanted.pop(tab, None)
            self._wanted[tab] = key
            while len(self._wanted) > MOST_TABS:
                self._wanted.popitem(last=False)
            self._wished_at = time.monotonic()
            self._changed.notify_all()

    def _work(self) -> None:
        compile_kernels("float64")
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next() is not None)
                while len(self._view) > SMALL and (left := self._wished_at + REST - time.monotonic()) > 0:
                    self._changed.wait(left)
                key, view = self._next(), self._view
            if key is None:
                continue
            try:
                outcome: Chosen | str = _truly(view, key.wish.settings(view), _Watch(self, key))
            except _SupersededError:
                continue
            except Exception as error:  # this thread must outlive whatever goes wrong; the page tells it
                outcome = str(error) or repr(error)
            self._settle(key, outcome)

    def _next(self) -> _Key | None:
        return next((key for key in self._wanted.values() if key not in self._settled), None)

    def _settle(self, key: _Key, outcome: Chosen | str) -> None:
        with self._changed:
            _keep(self._settled, key, outcome)
            self._previews.pop(key, None)
            self._done.pop(key, None)
            for tab in [tab for tab, wanted in self._wanted.items() if wanted == key]:
                del self._wanted[tab]
            self._changed.notify_all()


@dataclass(frozen=True)
class _Watch:
    """A `Progress` that stops work nobody waits for."""

    choices: Choices
    key: _Key

    def update(self, done: int, total: int, message: str = "") -> None:
        self.choices.tell(self.key, done / max(1, total))

    def close(self) -> None:
        pass


def nobody(view: PoolView, settings: AugmentationSettings, note: str) -> Chosen:
    """A choice in which no sample is kept."""
    answers = view.scores.logits_x if settings.entropy_at is EntropyAt.X else view.scores.logits_z
    other = settings.require_asked_class & (answers.argmax(axis=1) != view.pool.y)
    reason = np.where(other, Reason.OTHER_LABEL, Reason.HIGH_ENTROPY).astype(np.int8)
    reason[view.marked] = Reason.BY_HAND
    ceiling = settings.entropy_ceiling if isinstance(settings.entropy_ceiling, float) else np.inf
    fate = Fate(reason, np.zeros(len(view)), np.full(len(view), -1, dtype=np.int64), ceiling, settings, {})
    return Chosen(fate, note=note)


def _truly(view: PoolView, settings: AugmentationSettings, progress: Progress | None = None) -> Chosen:
    try:
        return Chosen(view.sieved(settings, progress=progress))
    except SelectionError as error:
        try:
            _survivors(view, settings)
        except SelectionError:
            return nobody(view, settings, str(error))
        raise


def _survivors(view: PoolView, settings: AugmentationSettings) -> Survivors:
    return filtered(view.pool, view.scores, settings, view.marked, view.figures.get("entropy_ceiling"))


def _keep(kept: OrderedDict[_Key, Value], key: _Key, value: Value) -> None:
    kept[key] = value
    while len(kept) > KEPT_CHOICES:
        kept.popitem(last=False)
