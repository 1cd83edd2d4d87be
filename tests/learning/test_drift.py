"""Figures that run away are told once, in words, with what helps; healthy ones are not."""

import warnings

import pytest

from synthsieve.learning import history
from synthsieve.learning.drift import LIMITS, Figure, LearningWarning, Watch, drifts
from synthsieve.learning.loop import fit

PUSHED = (
    "learning.prior_learning_rate=1.0",
    "learning.logit_penalty=0",
    "learning.warmup=0",
    "learning.steps=40",
    "learning.evaluate_every=10",
    "learning.checkpoint_every=20",
)


def test_a_learner_that_is_pushed_runs_away_and_says_so_once(quick_run, digits):
    run = quick_run("pushed", *PUSHED)
    with pytest.warns(LearningWarning) as caught:
        done = fit(run, digits)
    told = [str(one.message) for one in caught if one.category is LearningWarning]
    assert len(told) == len(set(told)) == len(done.drifts) >= 1
    assert list(done.drifts) == told
    assert any("negative_free_energy" in line or "contrast" in line for line in told)
    assert all("learning." in line and "at step" in line for line in told)
    rows = history.read(run.path / "history.jsonl")
    assert max(row["largest_logit"] for row in rows) > rows[0]["largest_logit"] > 0


@pytest.mark.parametrize("remedy", ["learning.prior_learning_rate=0.0001", "learning.logit_penalty=1"])
def test_what_is_advised_helps(quick_run, digits, remedy):
    pushed = [drift.value for drift in drifts(_rows(quick_run("pushed", *PUSHED), digits))]
    helped = _rows(quick_run("helped", *PUSHED, remedy), digits)
    worst = max(abs(row[figure]) / LIMITS[figure] for row in helped for figure in Figure)
    assert worst < max(abs(value) for value in pushed) / 100


def test_a_healthy_run_says_nothing(quick_run, digits):
    with warnings.catch_warnings():
        warnings.simplefilter("error", LearningWarning)
        assert fit(quick_run(), digits).drifts == ()


def test_a_resumed_run_does_not_say_it_again(quick_run, digits):
    run = quick_run("pushed", *PUSHED)
    told = []
    fit(run, digits, tell=told.append, stop=lambda: "enough" if run.last.is_file() else None)
    assert told
    again = []
    done = fit(run, digits, tell=again.append)
    assert not set(told) & set(again)
    assert set(told) <= set(done.drifts)


def test_each_figure_is_told_at_its_first_row_beyond_the_limit():
    rows = [{"step": 5, "contrast": 1.0}, {"step": 10, "contrast": -60.0}, {"step": 15, "largest_logit": 1e9}]
    assert [(drift.figure, drift.step) for drift in drifts(rows)] == [("contrast", 10), ("largest_logit", 15)]
    told = []
    watch = Watch(told.append, rows[:2])
    for row in (*rows, *rows):
        watch.look(row)
    assert len(told) == 1
    assert "logit_penalty" in told[0]


def _rows(run, digits):
    fit(run, digits, tell=lambda _: None)
    return history.read(run.path / "history.jsonl")
