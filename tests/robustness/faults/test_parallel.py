"""Two commands into one folder at once: the second is refused at once, and the first comes to its end."""

import signal

import pytest

from tests.robustness.faults.commands import AUGMENT, EXPORT, FIT, RUN, SELECT
from tests.robustness.faults.forked import Forked, ended
from tests.robustness.faults.points import stop_at
from tests.robustness.faults.whole import contents, nothing_unfinished, same

pytestmark = pytest.mark.faults

PAIRS = [
    (FIT, FIT, "split.json"),
    (FIT, FIT, "last.safetensors"),
    (AUGMENT, AUGMENT, "pool-*"),
    (FIT, RUN, "last.safetensors"),
    (RUN, RUN, "answers.npz"),
    (RUN, FIT, "table.json"),
    (SELECT, SELECT, "selection.parquet"),
    (EXPORT, EXPORT, "manifest.json"),
    (EXPORT, EXPORT, "export"),
]


@pytest.mark.parametrize(("first", "second", "at"), PAIRS, ids=[f"{a.name}, {b.name}, {at}" for a, b, at in PAIRS])
def test_the_second_is_refused_at_once_and_the_first_ends_as_ever(first, second, at, place, tally):
    fault, out = "two commands into one folder at once", place / "out"
    first.begin(out)
    tally.tried(fault)
    begun = Forked(first.words(out), stop_at(at))
    try:
        begun.wait_until_stopped()
        refused = ended(second.words(out))
    finally:
        begun.signal(signal.SIGCONT)
    done = begun.wait()
    assert refused.failed_in_one_sentence(), refused
    assert "is being written by another command" in refused.output
    assert done.code == 0, done.output
    assert nothing_unfinished(out)
    assert same(contents(out), first.undisturbed.contents)
    tally.survived(fault)
