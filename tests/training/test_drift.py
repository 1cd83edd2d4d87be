"""Diverging figures give one warning each, with what to try; healthy ones give none."""

import warnings

import pytest

from synthsieve.training import history
from synthsieve.training.drift import LIMITS, DriftMonitor, TrainingWarning, drifts
from synthsieve.training.loop import fit

PUSHED = (
    "training.prior_learning_rate=1.0",
    "training.logit_penalty=0",
    "training.warmup=0",
    "training.steps=40",
    "training.evaluate_every=10",
    "training.checkpoint_every=20",
)


def test_a_diverging_run_warns_once(quick_run, digits):
    run = quick_run("pushed", *PUSHED)
    with pytest.warns(TrainingWarning) as caught:
        done = fit(run, digits)
    messages = [str(one.message) for one in caught if one.category is TrainingWarning]
    assert len(messages) == len(set(messages)) == len(done.drifts) >= 1
    assert list(done.drifts) == messages
    assert any("negative_free_energy" in line or "contrast" in line for line in messages)
    assert all("learning_rate" in line and "at step" in line for line in messages)
    rows = history.read(run.path / "history.jsonl")
    assert max(row["largest_logit"] for row in rows) > rows[0]["largest_logit"] > 0


@pytest.mark.parametrize("remedy", ["training.prior_learning_rate=0.0001", "training.logit_penalty=1"])
def test_what_is_advised_helps(quick_run, digits, remedy):
    pushed = [drift.value for drift in drifts(_rows(quick_run("pushed", *PUSHED), digits))]
    helped = _rows(quick_run("helped", *PUSHED, remedy), digits)
    worst = max(abs(row[figure]) / LIMITS[figure] for row in helped for figure in LIMITS)
    assert worst < max(abs(value) for value in pushed) / 100


def test_a_healthy_run_says_nothing(quick_run, digits):
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingWarning)
        assert fit(quick_run(), digits).drifts == ()


def test_a_resumed_run_does_not_say_it_again(quick_run, digits):
    run = quick_run("pushed", *PUSHED)
    messages = []
    fit(run, digits, log=messages.append, stop=lambda: "enough" if run.last.is_file() else None)
    assert messages
    again = []
    done = fit(run, digits, log=again.append)
    assert not set(messages) & set(again)
    assert set(messages) <= set(done.drifts)


def test_each_figure_warns_at_its_first_row_beyond_the_limit():
    rows = [{"step": 5, "contrast": 1.0}, {"step": 10, "contrast": -60.0}, {"step": 15, "largest_logit": 1e9}]
    assert [(drift.figure, drift.step) for drift in drifts(rows)] == [("contrast", 10), ("largest_logit", 15)]
    messages = []
    monitor = DriftMonitor(messages.append, rows[:2])
    for row in (*rows, *rows):
        monitor.check(row)
    assert len(messages) == 1
    assert "logit_penalty" in messages[0]


def _rows(run, digits):
    fit(run, digits, log=lambda _: None)
    return history.read(run.path / "history.jsonl")
