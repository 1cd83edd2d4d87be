"""Selections under other options or after rejections: exact ones in the background, a preview until they are ready.

An exact selection may take seconds, so one thread computes it for all browser tabs. Each tab has one request at a time:
a newer one replaces it, and work on a request that no tab has any more is cancelled.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

import numpy as np

from synthsieve.errors import SelectionError
from synthsieve.io.progress import NOTHING, NullProgress, Progress
from synthsieve.results.pool_view import PoolView, changed_settings
from synthsieve.selection.coreset import compile_kernels
from synthsieve.selection.entropy import Reason
from synthsieve.selection.gradients import residuals_of_logits
from synthsieve.settings import AugmentationSettings, Coreset, GradientSource
from synthsieve.training.pool import Outcomes

SMALL_POOL = 20_000  # samples; an exact selection from so few takes a moment
SMALL_POOL_TIMEOUT = 0.25  # seconds to wait for it before a preview is shown
DEBOUNCE = 0.4  # seconds that a request on a larger pool must stay unchanged: a dragged slider changes it often
MAX_CACHED = 8
MAX_TABS = 16

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True)
class SelectionRequest:
    """Options of a selection, named and meant as in `synthsieve.export`; None is what training used."""

    entropy_ceiling: float | None = None
    keep_fraction: float | None = None
    budget: float | None = None
    require_label: bool | None = None

    def settings(self, view: PoolView) -> AugmentationSettings:
        return changed_settings(view.settings, **asdict(self))


@dataclass(frozen=True)
class GallerySelection:
    outcomes: Outcomes
    preview: bool = False  # the exact selection is still being computed
    done: float = 1.0  # its progress, in [0, 1]
    note: str = ""  # why no sample is kept, if none is


_Key = tuple[SelectionRequest, int]  # the request, and a number that changes with every rejection


class _CancelledError(Exception):
    """No tab waits for this selection any more."""


class SelectionCache:
    """Selections from one pool, by request; the most recent ones are cached. Safe from several threads."""

    def __init__(self, view: PoolView) -> None:
        self._view, self._version = view, 0
        self._exact: OrderedDict[_Key, GallerySelection | str] = OrderedDict()  # or an error message
        self._previews: OrderedDict[_Key, Outcomes] = OrderedDict()
        self._wanted: OrderedDict[str, _Key] = OrderedDict()  # by tab
        self._done: dict[_Key, float] = {}
        self._requested_at = 0.0
        self._changed = threading.Condition()
        threading.Thread(target=self._work, name="selection", daemon=True).start()

    @property
    def view(self) -> PoolView:
        """The pool with the current rejections."""
        return self._view

    def use_view(self, view: PoolView) -> None:
        """Replace the view by one with other rejections; pending work is cancelled."""
        with self._changed:
            self._view, self._version = view, self._version + 1
            self._wanted.clear()

    @property
    def timeout(self) -> float:
        """Seconds that a page should wait for the exact selection before it shows a preview."""
        return SMALL_POOL_TIMEOUT if len(self._view) <= SMALL_POOL else 0.0

    def get(self, request: SelectionRequest, tab: str, *, timeout: float = 0.0) -> GallerySelection:
        """The exact selection if it is ready within `timeout` seconds, else a preview."""
        with self._changed:
            view, key = self._view, (request, self._version)
            settings = request.settings(view)
            if settings == view.settings and not len(view.rejected):
                return GallerySelection(view.as_trained())
            if key not in self._exact and settings.coreset in (Coreset.EVERYTHING, Coreset.RANDOM):
                _store(self._exact, key, _select(view, settings))  # takes no time
            if key not in self._exact:
                self._want(tab, key)
                self._changed.wait_for(lambda: key in self._exact, timeout)
            if key in self._exact:
                self._exact.move_to_end(key)
                found = self._exact[key]
                if isinstance(found, str):
                    raise SelectionError(found, code="selection-failed")
                return found
            done, outcomes = self._done.get(key, 0.0), self._previews.get(key)
        if outcomes is None:
            try:
                outcomes = preview(view, view.filter(settings))
            except SelectionError as error:
                return _empty(view, settings, str(error))
            with self._changed:
                _store(self._previews, key, outcomes)
        return GallerySelection(outcomes, preview=True, done=done)

    def wait_exact(self, request: SelectionRequest, tab: str) -> tuple[PoolView, Outcomes]:
        """The exact selection, and the pool with the rejections that it respects."""
        while True:
            with self._changed:
                view, version = self._view, self._version
            selection = self.get(request, tab, timeout=1.0)
            if not selection.preview and version == self._version:
                return view, selection.outcomes

    def report(self, key: _Key, done: float) -> None:
        """Record the progress of a selection; raises where no tab waits for it any more."""
        with self._changed:
            if key not in self._wanted.values():
                self._done.pop(key, None)
                raise _CancelledError
            self._done[key] = done

    def _want(self, tab: str, key: _Key) -> None:
        if self._wanted.get(tab) != key:
            self._wanted.pop(tab, None)
            _store(self._wanted, tab, key, MAX_TABS)
            self._requested_at = time.monotonic()
            self._changed.notify_all()

    def _next(self) -> _Key | None:
        return next((key for key in self._wanted.values() if key not in self._exact), None)

    def _work(self) -> None:
        compile_kernels("float64")
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next() is not None)
                while len(self._view) > SMALL_POOL and (left := self._requested_at + DEBOUNCE - time.monotonic()) > 0:
                    self._changed.wait(left)
                key, view = self._next(), self._view
            if key is None:
                continue
            try:
                result: GallerySelection | str = _select(view, key[0].settings(view), _Monitor(self, key))
            except _CancelledError:
                continue
            except Exception as error:  # the thread must survive; the page shows the message
                result = str(error) or repr(error)
            with self._changed:
                _store(self._exact, key, result)
                self._previews.pop(key, None)
                self._done.pop(key, None)
                for tab in [tab for tab, wanted in self._wanted.items() if wanted == key]:
                    del self._wanted[tab]
                self._changed.notify_all()


@dataclass(frozen=True)
class _Monitor(NullProgress):
    """Cancels work that no tab waits for."""

    cache: SelectionCache
    key: _Key

    def update(self, done: int, total: int, message: str = "", beside: tuple[int, int] = NOTHING) -> None:
        self.cache.report(self.key, done / max(1, total))


def _store(cache: OrderedDict[Key, Value], key: Key, value: Value, max_size: int = MAX_CACHED) -> None:
    cache[key] = value
    while len(cache) > max_size:
        cache.popitem(last=False)


def _select(view: PoolView, settings: AugmentationSettings, progress: Progress | None = None) -> GallerySelection:
    """The exact selection; one without samples, and a note, where the filter keeps none."""
    try:
        view.filter(settings)
    except SelectionError as error:
        return _empty(view, settings, str(error))
    return GallerySelection(view.select(settings, progress=progress))


def _empty(view: PoolView, settings: AugmentationSettings, note: str) -> GallerySelection:
    other_label = settings.require_label & (view.pool.predicted_at(settings.entropy_at) != view.pool.y)
    reason = np.where(other_label, Reason.OTHER_LABEL, Reason.HIGH_ENTROPY).astype(np.int8)
    reason[view.rejected] = Reason.BY_HAND
    ceiling = settings.entropy_ceiling if isinstance(settings.entropy_ceiling, float) else np.inf
    rank = np.full(len(view), -1, dtype=np.int64)
    return GallerySelection(Outcomes(reason, np.zeros(len(view)), rank, ceiling, settings, {}), note=note)


def preview(view: PoolView, filtered: Outcomes) -> Outcomes:
    """Outcomes with as many selected samples as the exact ones, in milliseconds; without a gradient bound."""
    settings, kept = filtered.settings, np.flatnonzero(filtered.kept)
    y = view.pool.y[kept]
    logits = view.pool.logits_z if settings.gradients is GradientSource.DRAWN else view.pool.logits_x
    residuals = residuals_of_logits(logits[kept], y)
    weight, rank = np.zeros(len(view)), np.full(len(view), -1, dtype=np.int64)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        count = max(1, int(np.floor(settings.coreset_fraction * len(rows) + 0.5)))
        medoids, weights = medoids_on_line(residuals[rows], int(label), count)
        heaviest_first = np.argsort(-weights, kind="stable")
        selected = kept[rows[medoids[heaviest_first]]]
        weight[selected], rank[selected] = weights[heaviest_first], np.arange(len(selected))
    return replace(filtered, weight=weight, rank=rank)


def medoids_on_line(residuals: np.ndarray, label: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """About `count` medoids of `residuals` (n, num_classes), all of class `label`, and the size of each cluster.

    Where the classifier is nearly certain, p - y points towards the runner-up class and only its length varies. So the
    samples are put on a line, by runner-up and then by length. The total distance to k points on a line is least where
    their density is proportional to the square root of that of the samples: cells with equal sums of the square roots
    of the gaps have that density.
    """
    others = residuals.copy()
    others[:, label] = -np.inf
    runner_up, length = others.argmax(axis=1), np.linalg.norm(residuals, axis=1)
    line = np.lexsort((length, runner_up))
    gaps = np.abs(np.diff(length[line]))
    gaps[np.diff(runner_up[line]) != 0] = np.median(length)
    positions = np.concatenate([[0.0], np.cumsum(np.sqrt(gaps))])
    positions = positions if positions[-1] > 0 else np.arange(len(line), dtype=np.float64)
    medoids = _one_per_cell(positions, min(count, len(line)))
    middles = np.searchsorted(positions, (positions[medoids][1:] + positions[medoids][:-1]) / 2)
    borders = np.concatenate([[0], np.clip(middles, medoids[:-1] + 1, medoids[1:]), [len(line)]])
    return line[medoids], np.diff(borders).astype(np.float64)


def _one_per_cell(positions: np.ndarray, count: int) -> np.ndarray:
    """The middle of each of `count` equal cells of `positions` (n,), ascending; those of empty cells spread evenly."""
    end = positions[-1]
    cells = np.minimum((positions * (count / end)).astype(np.int64), count - 1) if end > 0 else np.zeros(1, np.int64)
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    medoids = (starts + np.append(starts[1:], len(positions)) - 1) // 2
    free = np.setdiff1d(np.arange(len(positions)), medoids)
    spread = np.linspace(0, len(free) - 1, count - len(medoids)).astype(np.int64) if len(free) else free
    return np.sort(np.concatenate([medoids, free[spread]]))
