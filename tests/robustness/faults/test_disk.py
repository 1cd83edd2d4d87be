"""A disk that is full, and one that is read-only: one sentence, nothing half written, and with room it goes on."""

import shutil

import pytest

from tests.robustness.faults.commands import AUGMENT, EXPORT, FIT, LOST, RUN, SELECT
from tests.robustness.faults.disks import small_disk, why_not
from tests.robustness.faults.forked import ended
from tests.robustness.faults.points import largest_file
from tests.robustness.faults.whole import all_whole, contents, nothing_unfinished, same

pytestmark = pytest.mark.faults

needs_disks = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
# Space left when the command begins, in kB: less than it needs.
FREE_KB = {
    FIT: (4, 48, 200, 260),
    AUGMENT: (12, 64, 200, 300, 360, 420),
    SELECT: (4, 24, 48),
    EXPORT: (0, 12, 24, 30, 36),
    RUN: (300, 1500, 2800),
}
FULL = [(command, space) for command, spaces in FREE_KB.items() for space in spaces]


@needs_disks
@pytest.mark.parametrize(("command", "space"), FULL, ids=[f"{command.name} {space} kB" for command, space in FULL])
def test_a_full_disk_is_reported_and_with_space_the_command_resumes(command, space, tally):
    fault = f"a full disk under `{command.name}`"
    with small_disk() as disk:
        out = disk.path / "out"
        command.begin(out)
        disk.leave(space)
        tally.tried(fault, lost=LOST[command])
        done = ended(command.words(out))
        assert done.failed_in_one_sentence(), done
        assert "No space left on device" in done.output
        assert all_whole(disk.path)
        assert nothing_unfinished(disk.path)
        disk.grow()
        done = ended(command.words(out))
        assert done.code == 0, done.output
        assert same(contents(out), command.undisturbed.contents)
        tally.survived(fault)


LARGEST = [(FIT, 3_000), (FIT, 30_000), (AUGMENT, 8_000), (AUGMENT, 100_000), (SELECT, 20_000), (EXPORT, 5_000)]


@pytest.mark.parametrize(("command", "size"), LARGEST, ids=[f"{command.name} {size}" for command, size in LARGEST])
def test_a_file_size_limit_is_reported_and_without_it_the_command_resumes(command, size, place, tally):
    fault, out = "a limit on the size of files", place / "out"
    command.begin(out)
    tally.tried(fault, lost=LOST[command])
    done = ended(command.words(out), largest_file(size))
    assert done.failed_in_one_sentence(), done
    assert "File too large" in done.output
    assert all_whole(out)
    assert nothing_unfinished(out)
    assert ended(command.words(out)).code == 0
    assert same(contents(out), command.undisturbed.contents)
    tally.survived(fault)


READ_ONLY = {
    "fit into nothing": (None, AUGMENT.words),
    "fit": (AUGMENT, AUGMENT.words),
    "run into nothing": (None, RUN.words),
    "run": (RUN, RUN.words),
    "select": (None, SELECT.words),
    "export": (AUGMENT, EXPORT.words),
    "report": (AUGMENT, lambda out: ["report", out, "--quiet"]),
    "sample": (AUGMENT, lambda out: ["sample", out, "--quiet"]),
    "evaluate": (AUGMENT, lambda out: ["evaluate", out]),
}


@needs_disks
@pytest.mark.parametrize("case", READ_ONLY)
def test_a_read_only_folder_is_reported_and_left_unchanged(case, tally):
    fault, (there, words) = "a read-only folder", READ_ONLY[case]
    with small_disk() as disk:
        out = disk.path / "out"
        if there is not None:
            shutil.copytree(there.undisturbed.folder, out)
        before = contents(disk.path)
        disk.make_read_only()
        tally.tried(fault)
        done = ended(words(out))
        assert done.failed_in_one_sentence(), done
        assert "Read-only file system" in done.output
        assert same(contents(disk.path), before)
        tally.survived(fault)
