"""Progress: plain lines, at most one in ten seconds, or a bar."""

import io

from synthsieve.io.progress import Bar, NullProgress, PlainLines, describe, for_stream


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_time_left_counts_from_the_first_update():
    clock, stream = Clock(), io.StringIO()
    lines = PlainLines("fit", stream, clock=clock)
    lines.update(500, 1000)
    clock.now += 10
    lines.update(600, 1000)
    assert stream.getvalue() == "fit: 600/1000, 40 s left\n"


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
    assert printed[0] == "fit: 17/300, 35 s left, loss 1"
    assert len(printed) == 4


def test_describe():
    assert [describe(s) for s in (0.4, 59, 75.2, 3700)] == ["0 s", "59 s", "1 min 15 s", "1 h 01 min"]


def test_for_stream():
    assert isinstance(for_stream("x", stream=io.StringIO()), PlainLines)
    assert isinstance(for_stream("x", quiet=True), NullProgress)
