"""Ctrl-C: exit code 130, one sentence, nothing unfinished, and going on ends the same."""

import random
import signal

import pytest

from tests.robustness.faults.commands import ALL, AUGMENT, EXPORT, FIT, LOST, RUN, SELECT
from tests.robustness.faults.forked import ended, ended_by
from tests.robustness.faults.whole import all_whole, contents, nothing_unfinished, same

pytestmark = pytest.mark.faults

TIMES = {FIT: 6, AUGMENT: 6, RUN: 4, SELECT: 4, EXPORT: 4}


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.name)
def test_ctrl_c_says_how_to_go_on(command, place, tally):
    chance, seconds = random.Random(f"interrupt {command.name}"), command.undisturbed.seconds
    fault, times, tries = f"Ctrl-C in `{command.name}`", 0, 0
    while times < TIMES[command]:
        tries += 1
        assert tries < 10 * TIMES[command], "it comes to its end before it is interrupted"
        out = place / str(tries)
        command.begin(out)
        done = ended_by(command.words(out), signal.SIGINT, after=chance.uniform(0.05, seconds))
        if done.code == 0:
            seconds = min(seconds, done.seconds)  # the machine was busier when the undisturbed one was timed
            continue
        tally.tried(fault, lost=LOST[command])
        assert done.code == 130, done
        assert done.output.startswith("synthsieve: interrupted")
        assert done.output.count("\n") == 1
        assert not out.exists() or (all_whole(out) and nothing_unfinished(out))
        whole = ["--force"] if (out / "summary.json").exists() else []  # interrupted after the last file
        done = ended([*command.words(out), *whole])
        assert done.code == 0, done.output
        assert same(contents(out), command.undisturbed.contents)
        tally.survived(fault)
        times += 1
