"""Killed with SIGKILL, at random moments and at chosen ones: what has its name is whole, and going on ends the same."""

import random
import signal

import pytest

from tests.robustness.faults.commands import ALL, AUGMENT, EXPORT, FIT, LOST, RUN, SELECT
from tests.robustness.faults.forked import ended, ended_by
from tests.robustness.faults.points import When, kill_at
from tests.robustness.faults.whole import all_whole, contents, nothing_unfinished, same, step_of

pytestmark = pytest.mark.faults

KILLS = {FIT: 20, AUGMENT: 20, RUN: 10, SELECT: 12, EXPORT: 12}
KILLS_OF_ONE = 4  # at most, before a command is left to come to its end


def goes_on(command, out):
    """The same command again comes to the end of an undisturbed one, byte for byte, and leaves nothing else."""
    words = command.words(out)
    if (out / "summary.json").exists():  # a selection that is whole is replaced only if one says so
        words.append("--force")
    done = ended(words)
    assert done.code == 0, done.output
    return nothing_unfinished(out) and same(contents(out), command.undisturbed.contents)


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.name)
def test_at_random_moments(command, place, tally):
    chance, seconds = random.Random(f"kill {command.name}"), command.undisturbed.seconds
    fault, kills, number = f"SIGKILL of `{command.name}` at a random moment", 0, 0
    while kills < KILLS[command]:
        out, here, step = place / str(number), 0, 0
        number += 1
        assert number < 5 * KILLS[command], "it comes to its end before it is killed"
        command.begin(out)
        while here < KILLS_OF_ONE and kills + here < KILLS[command]:
            done = ended_by(command.words(out), signal.SIGKILL, after=chance.uniform(0, seconds))
            if done.code == 0:
                if not here:  # else it had less to do
                    seconds = min(seconds, done.seconds)  # the machine was busier when the undisturbed one was timed
                break
            assert done.code == -signal.SIGKILL, done.output
            tally.tried(fault, lost=LOST[command])
            here += 1
            assert all_whole(out)
            assert step_of(out) >= step
            step = step_of(out)
            if (out / "summary.json").exists():  # killed when the selection was whole already
                break
        assert goes_on(command, out)
        tally.survived(fault, here)
        kills += here


WRITTEN = {
    AUGMENT: ("split.json", "run.json", "history.csv", "history.jsonl", "best.safetensors", "last.safetensors",
              "previous.safetensors", "drawn-by-*", "pool-*", "extra-data-*", "selections.jsonl"),
    SELECT: ("selection.parquet", "selected.npz", "summary.json"),
    EXPORT: ("README.md", "manifest.json", "export"),
}  # fmt: skip
POINTS = [(command, name, when) for command, names in WRITTEN.items() for name in names for when in When]


@pytest.mark.parametrize(
    ("command", "name", "when"), POINTS, ids=[f"{c.name} {when.value} {name}" for c, name, when in POINTS]
)
def test_around_a_rename(command, name, when, place, tally):
    fault, out = f"SIGKILL of `{command.name}` just before or after a file gets its name", place / "out"
    command.begin(out)
    tally.tried(fault, lost=LOST[command])
    assert ended(command.words(out), kill_at(name, when)).code == -signal.SIGKILL
    assert all_whole(out)
    assert goes_on(command, out)
    tally.survived(fault)


@pytest.mark.parametrize("nth", [2, 3])
@pytest.mark.parametrize("name", ["pool-*.npz", "selections.jsonl", "last.safetensors", "history.jsonl"])
def test_between_a_later_choice_and_its_checkpoint(name, nth, place, tally):
    fault, out = "SIGKILL of `fit --augment` just before or after a file gets its name", place / "out"
    tally.tried(fault)
    assert ended(AUGMENT.words(out), kill_at(name, When.AFTER, nth=nth)).code == -signal.SIGKILL
    assert all_whole(out)
    assert goes_on(AUGMENT, out)
    tally.survived(fault)


def test_a_run_at_every_kind_of_file_one_after_another(place, tally):
    fault, out = "SIGKILL of `run` just before or after a file gets its name", place / "out"
    names = ["split.json", "run.json", "last.safetensors", "answers.npz", "pool-*.npz", "selections.jsonl", "*.png",
             "*.svg", "table.json", "table.md", "best.safetensors", "report.html"]  # fmt: skip
    for index, name in enumerate(names):
        tally.tried(fault, lost=LOST[RUN])
        when = list(When)[index % 2]
        assert ended(RUN.words(out), kill_at(name, when)).code == -signal.SIGKILL, name
        assert all_whole(out)
    assert goes_on(RUN, out)
    tally.survived(fault, len(names))


@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("name", ["*.replaced", "export"])
def test_while_an_export_takes_the_place_of_an_older_one(name, when, place, tally):
    fault, out = "SIGKILL of `export` while it replaces an older one", place / "out"
    EXPORT.begin(out)
    assert ended(EXPORT.words(out)).code == 0
    tally.tried(fault)
    assert ended(EXPORT.words(out), kill_at(name, when)).code == -signal.SIGKILL
    assert all_whole(out)
    assert goes_on(EXPORT, out)
    tally.survived(fault)


def test_select_killed_again_and_again_between_its_files(place, tally):
    fault, out = "SIGKILL of `select` just before or after a file gets its name", place / "out"
    for name in ("selection.parquet", "selected.npz", "selection.parquet", "selected.npz"):
        tally.tried(fault)
        assert ended(SELECT.words(out), kill_at(name, When.AFTER)).code == -signal.SIGKILL
        assert all_whole(out)
        assert not (out / "summary.json").exists()
    assert goes_on(SELECT, out)
    tally.survived(fault, 4)
