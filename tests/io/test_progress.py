"""Progress: plain lines, at most one in ten seconds, or a bar."""

import io

from synthsieve.io.progress import Bar, NullProgress, Pace, PlainLines, describe, for_stream


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_time_left_does_not_count_the_start_or_steps_of_an_earlier_process():
    clock, stream = Clock(), io.StringIO()
    lines = PlainLines("fit", stream, clock=clock)
    lines.update(500, 1000)
    clock.now += 9  # workers start
    lines.update(501, 1000)
    clock.now += 10
    lines.update(601, 1000)
    assert stream.getvalue() == "fit: 601/1000, 40 s left\n"


def test_work_beside_the_count_takes_its_time():
    clock, stream = Clock(), io.StringIO()
    lines = PlainLines("fit", stream, ends=True, clock=clock)
    for done, beside in ((1, 0), (100, 0), (200, 0), (200, 50), (200, 100)):
        clock.now += 20
        lines.update(done, 200, beside=(beside, 100))
    printed = stream.getvalue().splitlines()
    assert printed == ["fit: 100/200", "fit: 200/200, 20 s left", "fit: 200/200, 13 s left", "fit: 200/200, 0 s left"]


def test_nothing_is_predicted_from_a_few_steps():
    clock, stream = Clock(), io.StringIO()
    lines = PlainLines("run", stream, clock=clock)
    for done in range(12):  # the first ten of two thousand steps take a minute
        lines.update(done, 2000, "now real only")
        clock.now += 6
    printed = stream.getvalue().splitlines()
    assert printed[0] == "run: 2/2000, now real only"
    assert not any("left" in line for line in printed)


def test_a_slow_start_is_forgotten():
    pace, now = Pace(), 0.0
    for done in range(1, 101):  # 4 s for each of the first 20 steps, then 0.5 s
        now += 4.0 if done <= 20 else 0.5
        pace.update(now, done)
    left = pace.seconds_left(now, 100, 1000)
    assert left is not None
    assert 450 <= left < 700  # 1080 by the mean of all steps


def test_quick_work_prints_its_end_if_required():
    clock, stream = Clock(), io.StringIO()
    lines = PlainLines("fit", stream, ends=True, clock=clock)
    lines.update(1, 10)
    clock.now += 1
    lines.update(10, 10)
    assert stream.getvalue() == "fit: 10/10, 0 s left\n"


def test_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    bar = for_stream("fit")
    assert isinstance(bar, Bar)
    bar.update(1, 4, "loss 1")
    bar.update(4, 4, "loss 0")
    bar.close()
    assert all(text in terminal.getvalue() for text in ("fit", "4/4", "loss 0"))


def test_plain_lines():
    clock, stream = Clock(), io.StringIO()
    lines = PlainLines("fit", stream, clock=clock)
    for done in range(1, 301):
        lines.update(done, 300, "loss 1")
        clock.now += 0.125
    printed = stream.getvalue().splitlines()
    assert printed[0] == "fit: 26/300, 34 s left, loss 1"
    assert len(printed) == 4


def test_describe():
    assert [describe(s) for s in (0.4, 59, 75.2, 3700)] == ["0 s", "59 s", "1 min 15 s", "1 h 01 min"]


def test_for_stream():
    assert isinstance(for_stream("x", stream=io.StringIO()), PlainLines)
    assert isinstance(for_stream("x", quiet=True), NullProgress)
