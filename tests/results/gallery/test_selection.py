"""Selections of the gallery: previews, exact ones in the background, cancellation, caching."""

import threading
import time

import numpy as np
import pytest

from synthsieve.errors import SelectionError
from synthsieve.results.gallery import selection
from synthsieve.results.gallery.renderer import ByteCache
from synthsieve.results.gallery.selection import SelectionCache, SelectionRequest, medoids_on_line
from synthsieve.results.pool_view import PoolView
from synthsieve.selection.gradients import residuals_of_logits
from tests.errors import raises

HANGS = 300  # seconds; far longer than any machine needs


def wait_until_half_done(cache, request):
    while cache.get(request, "a", timeout=0.05).done != 0.5:
        pass


def test_a_preview_comes_before_the_exact_selection(session, monkeypatch):
    go, select = threading.Event(), PoolView.select

    def select_slowly(view, settings, **options):
        assert go.wait(HANGS)
        return select(view, settings, **options)

    monkeypatch.setattr(PoolView, "select", select_slowly)
    cache, request = SelectionCache(session.view), SelectionRequest(budget=0.3)
    preview = cache.get(request, "a")
    assert preview.preview
    go.set()
    view, outcomes = cache.wait_exact(request, "a")
    assert view is session.view
    assert np.array_equal(outcomes.kept, preview.outcomes.kept)
    assert len(outcomes.selected) == len(preview.outcomes.selected)
    assert preview.outcomes.weight.sum() == outcomes.weight.sum()
    assert cache.get(request, "b").outcomes is outcomes


def test_work_on_replaced_requests_is_cancelled(session, monkeypatch):
    begun, stopped = [], []

    def select_forever(view, settings, *, progress):
        begun.append(settings.coreset_fraction)
        if settings.coreset_fraction == 0.5:
            return view.as_trained()
        try:
            while True:
                progress.update(1, 2)
                time.sleep(0.01)
        except Exception:
            stopped.append(settings.coreset_fraction)
            raise

    monkeypatch.setattr(PoolView, "select", select_forever)
    cache = SelectionCache(session.view)
    wait_until_half_done(cache, SelectionRequest(budget=0.2))
    assert cache.get(SelectionRequest(budget=0.3), "a").preview
    assert cache.get(SelectionRequest(budget=0.5), "a", timeout=HANGS).preview is False
    assert 0.2 in stopped
    assert begun[-1] == 0.5
    wait_until_half_done(cache, SelectionRequest(budget=0.25))
    cache.use_view(session.view)  # other rejections: everything is selected again
    assert cache.get(SelectionRequest(budget=0.5), "b", timeout=HANGS).preview is False
    assert 0.25 in stopped


def test_each_tab_has_its_own_request(session):
    cache = SelectionCache(session.view)
    requests = {tab: SelectionRequest(budget=0.1 + 0.1 * tab) for tab in range(5)}
    for tab, request in requests.items():
        cache.get(request, str(tab))
    for tab, request in requests.items():
        assert cache.wait_exact(request, str(tab))[1].settings.coreset_fraction == request.budget


def test_errors_are_reported_and_the_next_request_works(session, monkeypatch):
    cache = SelectionCache(session.view)
    assert not cache.wait_exact(SelectionRequest(entropy_ceiling=1e-290), "a")[1].kept.any()
    assert "entropy_ceiling=1e-290" in cache.get(SelectionRequest(entropy_ceiling=1e-290), "a").note
    monkeypatch.setattr(PoolView, "select", lambda *_, **__: 1 / 0)
    with raises(SelectionError, "selection-failed"):
        cache.wait_exact(SelectionRequest(budget=0.7), "a")
    monkeypatch.undo()
    assert cache.wait_exact(SelectionRequest(budget=0.8), "a")[1].settings.coreset_fraction == 0.8


def test_only_recent_selections_are_cached(session):
    cache = SelectionCache(session.view)
    for number in range(3 * selection.MAX_CACHED):
        cache.wait_exact(SelectionRequest(budget=0.1 + number / 100), "a")
    assert len(cache._exact) == selection.MAX_CACHED
    assert not cache._wanted
    assert not cache._done


def test_byte_cache_drops_the_least_recently_used():
    cache = ByteCache(100)
    for name in "abcd":
        cache.put(name, name, 30)
    assert cache.get("a") is None
    assert cache.get("b") == "b"
    cache.put("e", "e", 30)
    assert cache.get("c") is None
    assert cache.get("b") == "b"
    cache.put("huge", "huge", 1000)
    assert cache.get("huge") is None


def residuals(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 4)) * 2
    logits[:, 1] += 6
    return residuals_of_logits(logits, np.full(n, 1))


def total_distance(points, medoids):
    return np.linalg.norm(points[:, None] - points[medoids][None], axis=2).min(axis=1).sum()


@pytest.mark.parametrize("count", [1, 2, 7, 200, 1999, 2000, 5000])
def test_preview_medoids_are_distinct_and_weights_sum_to_the_class(count):
    medoids, weights = medoids_on_line(residuals(), 1, count)
    assert len(set(medoids.tolist())) == len(medoids) == min(count, 2000)
    assert weights.sum() == 2000
    assert (weights >= 1).all()


def test_preview_medoids_are_closer_than_random_ones():
    points, rng = residuals(), np.random.default_rng(1)
    medoids, _ = medoids_on_line(points, 1, 100)
    assert total_distance(points, medoids) < 0.9 * total_distance(points, rng.choice(2000, 100, replace=False))


def test_preview_of_equal_samples():
    medoids, weights = medoids_on_line(np.zeros((10, 3)), 0, 3)
    assert len(set(medoids.tolist())) == 3
    assert weights.sum() == 10
    assert medoids_on_line(np.zeros((1, 3)), 0, 1)[1].tolist() == [1.0]
