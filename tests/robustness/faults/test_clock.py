"""No wall clock decides anything."""

import re
from pathlib import Path

import pytest

import synthsieve
from tests.robustness.faults.commands import AUGMENT, EXPORT, SELECT
from tests.robustness.faults.forked import ended
from tests.robustness.faults.points import jumping_clock
from tests.robustness.faults.whole import contents, same

pytestmark = pytest.mark.faults

WALL_CLOCK = re.compile(
    r"\btime\.(time|time_ns|localtime|gmtime|ctime|strftime)\b|from time import|datetime\.(now|utcnow|today)|"
    r"date\.today|st_mtime|st_ctime|getmtime|getctime"
)


def test_no_code_reads_the_time_of_day():
    asking = {
        path.name: WALL_CLOCK.findall(text)
        for path in Path(synthsieve.__file__).parent.rglob("*.py")
        if WALL_CLOCK.search(text := path.read_text(encoding="utf-8"))
    }
    assert not asking


@pytest.mark.parametrize("command", [AUGMENT, SELECT, EXPORT], ids=lambda command: command.name)
def test_a_clock_that_jumps_back_and_forth_changes_nothing(command, place, tally):
    fault, out = "a wall clock that jumps back and forth", place / "out"
    command.begin(out)
    tally.tried(fault)
    done = ended(command.words(out), jumping_clock(seed=0))
    assert done.code == 0, done.output
    assert same(contents(out), command.undisturbed.contents)
    tally.survived(fault)
