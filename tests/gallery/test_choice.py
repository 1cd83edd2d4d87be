"""The true picks come when they are ready; wishes that nobody has any more are given up."""

import threading
import time

import numpy as np
import pytest

from synthsieve.errors import SelectionError
from synthsieve.gallery import choice as choosing
from synthsieve.gallery.cache import Recent
from synthsieve.gallery.choice import Choices, Wish
from synthsieve.review.pool_view import PoolView

HANGS = 300  # seconds; a working program answers long before, on any machine


def half_done(choices, wish):
    """Wish for it until the work has begun and told how far it has come."""
    while choices.of(wish, "a", patience=0.05).done != 0.5:
        pass


def test_a_preview_is_shown_first_and_then_the_true_choice(room, monkeypatch):
    go, truly = threading.Event(), PoolView.sieved

    def slowly(view, settings, **given):
        assert go.wait(HANGS)
        return truly(view, settings, **given)

    monkeypatch.setattr(PoolView, "sieved", slowly)
    choices, wish = Choices(room.view), Wish(budget=0.3)
    quick = choices.of(wish, "a")
    assert quick.preview
    go.set()
    view, fate = choices.true_one(wish, "a")
    assert view is room.view
    assert np.array_equal(fate.kept, quick.fate.kept)
    assert len(fate.selected) == len(quick.fate.selected)
    assert quick.fate.weight.sum() == fate.weight.sum()
    assert choices.of(wish, "b").fate is fate


def test_work_on_a_wish_that_no_page_has_is_stopped(room, monkeypatch):
    begun, stopped = [], []

    def endless(view, settings, *, progress):
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

    monkeypatch.setattr(PoolView, "sieved", endless)
    choices = Choices(room.view)
    half_done(choices, Wish(budget=0.2))
    assert choices.of(Wish(budget=0.3), "a").preview
    assert choices.of(Wish(budget=0.5), "a", patience=HANGS).preview is False
    assert 0.2 in stopped
    assert begun[-1] == 0.5
    half_done(choices, Wish(budget=0.25))
    choices.use_marks(room.view)  # marks change: all that was wished is chosen anew
    assert choices.of(Wish(budget=0.5), "b", patience=HANGS).preview is False
    assert 0.25 in stopped


def test_each_page_has_a_wish_of_its_own(room):
    choices = Choices(room.view)
    wishes = {tab: Wish(budget=0.1 + 0.1 * tab) for tab in range(5)}
    for tab, wish in wishes.items():
        choices.of(wish, str(tab))
    for tab, wish in wishes.items():
        fate = choices.true_one(wish, str(tab))[1]
        assert fate.settings.coreset_fraction == wish.budget


def test_what_goes_wrong_is_told_and_the_next_wish_is_answered(room, monkeypatch):
    choices = Choices(room.view)
    assert not choices.true_one(Wish(ceiling=1e-290), "a")[1].kept.any()
    assert choices.of(Wish(ceiling=1e-290), "a").note.startswith("no sample under")
    monkeypatch.setattr(PoolView, "sieved", lambda *_, **__: 1 / 0)
    with pytest.raises(SelectionError, match="division by zero"):
        choices.true_one(Wish(budget=0.7), "a")
    monkeypatch.undo()
    assert choices.true_one(Wish(budget=0.8), "a")[1].settings.coreset_fraction == 0.8


def test_only_the_last_choices_are_kept(room):
    choices = Choices(room.view)
    for number in range(3 * choosing.KEPT_CHOICES):
        choices.true_one(Wish(budget=0.1 + number / 100), "a")
    assert len(choices._settled) == choosing.KEPT_CHOICES
    assert not choices._wanted
    assert not choices._done


def test_a_cache_forgets_what_was_used_longest_ago():
    cache = Recent(100)
    for name in "abcd":
        cache.put(name, name, 30)
    assert cache.get("a") is None
    assert cache.get("b") == "b"
    cache.put("e", "e", 30)
    assert cache.get("c") is None
    assert cache.get("b") == "b"
    cache.put("huge", "huge", 1000)
    assert cache.get("huge") is None
