"""Time left from the pace of this process; plain lines, no more than one each ten seconds."""

import io

from synthsieve.progress import Estimate, PlainLines, Silent, for_stream, in_words


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_time_left_counts_from_where_this_process_began():
    clock = Clock()
    estimate = Estimate(clock)
    assert estimate.seconds_left(500, 1000) is None
    clock.now += 10
    assert estimate.seconds_left(600, 1000) == 40


def test_plain_lines_are_few_and_the_first_waits_two_seconds():
    clock, stream = Clock(), io.StringIO()
    lines = PlainLines("fit", stream, clock=clock)
    for done in range(1, 301):
        lines.update(done, 300, "loss 1")
        clock.now += 0.125
    said = stream.getvalue().splitlines()
    assert said[0] == "fit: 17/300, 35 s left, loss 1"
    assert len(said) == 4


def test_in_words():
    assert [in_words(s) for s in (0.4, 59, 75.2, 3700)] == ["0 s", "59 s", "1 min 15 s", "1 h 01 min"]


def test_what_is_not_a_terminal_gets_plain_lines_and_quiet_gets_nothing():
    assert isinstance(for_stream("x", stream=io.StringIO()), PlainLines)
    assert isinstance(for_stream("x", quiet=True), Silent)
