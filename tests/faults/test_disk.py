"""A disk that is full, and one that is read-only: one sentence, nothing half written, and with room it goes on."""

import shutil

import pytest

from tests.faults.commands import AUGMENT, EXPORT, FIT, RUN, SELECT
from tests.faults.disks import small_disk, why_not
from tests.faults.forked import ended
from tests.faults.points import largest_file
from tests.faults.whole import all_whole, contents, nothing_unfinished, same

pytestmark = pytest.mark.faults

needs_disks = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
SIZES = {
    FIT: ("4k", "48k", "200k", "260k"),
    AUGMENT: ("12k", "64k", "200k", "300k", "360k", "420k"),
    SELECT: ("4k", "24k", "48k"),
    EXPORT: ("396k", "428k", "444k", "476k"),
    RUN: ("300k", "1500k", "2500k", "3500k"),
}
FULL = [(command, size) for command, sizes in SIZES.items() for size in sizes]


@needs_disks
@pytest.mark.parametrize(("command", "size"), FULL, ids=[f"{command.name} {size}" for command, size in FULL])
def test_a_full_disk_is_told_and_with_room_it_goes_on(command, size, tally):
    fault = f"a full disk under `{command.name}`"
    with small_disk("20m") as disk:
        out = disk.path / "out"
        command.begin(out)
        disk.resize(size)
        tally.tried(fault, lost="what did not fit, done again")
        done = ended(command.words(out))
        assert done.told_in_one_sentence(), done
        assert "No space left on device" in done.said
        assert all_whole(disk.path)
        assert nothing_unfinished(disk.path)
        disk.resize("20m")
        done = ended(command.words(out))
        assert done.code == 0, done.said
        assert same(contents(out), command.undisturbed.contents)
        tally.survived(fault)


LARGEST = [(FIT, 3_000), (FIT, 30_000), (AUGMENT, 8_000), (AUGMENT, 100_000), (SELECT, 20_000), (EXPORT, 5_000)]


@pytest.mark.parametrize(("command", "size"), LARGEST, ids=[f"{command.name} {size}" for command, size in LARGEST])
def test_a_file_that_may_not_grow_is_told_and_with_room_it_goes_on(command, size, place, tally):
    fault, out = "a limit on the size of files", place / "out"
    command.begin(out)
    tally.tried(fault, lost="what did not fit, done again")
    done = ended(command.words(out), largest_file(size))
    assert done.told_in_one_sentence(), done
    assert "File too large" in done.said
    assert all_whole(out)
    assert nothing_unfinished(out)
    assert ended(command.words(out)).code == 0
    assert same(contents(out), command.undisturbed.contents)
    tally.survived(fault)


@needs_disks
@pytest.mark.parametrize("there", ["nothing", "a run"])
@pytest.mark.parametrize("verb", ["fit", "run", "select", "export", "sample", "evaluate", "report"])
def test_a_read_only_folder_is_told_and_stays_as_it_is(verb, there, tally):
    fault = "a read-only folder"
    with small_disk("20m") as disk:
        out = disk.path / "out"
        looks = verb in ("export", "sample", "evaluate", "report")
        if there == "a run" or looks:
            shutil.copytree((RUN if verb == "run" else AUGMENT).undisturbed.folder, out)
        if there == "nothing" and looks:
            pytest.skip("it has nothing to look at")
        words = {
            "fit": AUGMENT.words(out),
            "run": RUN.words(out),
            "select": SELECT.words(out),
            "sample": ["sample", out, "--quiet"],
            "evaluate": ["evaluate", out],
        }.get(verb, [verb, out, "--quiet"])
        before = contents(disk.path)
        disk.make_read_only()
        tally.tried(fault)
        done = ended(words)
        assert done.told_in_one_sentence(), done
        assert "Read-only file system" in done.said
        assert same(contents(disk.path), before)
        tally.survived(fault)
