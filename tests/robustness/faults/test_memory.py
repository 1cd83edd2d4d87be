"""Memory that ends: one sentence that says what to lower, the last checkpoint whole, and with memory it goes on."""

import pytest

from tests.robustness.faults.commands import AUGMENT, EXPORT, LOST, SELECT, Command, settings
from tests.robustness.faults.forked import ended
from tests.robustness.faults.points import more_memory
from tests.robustness.faults.whole import all_whole, contents, nothing_unfinished, same, step_of

pytestmark = pytest.mark.faults

# What it asks for beyond the limit: batches, or a pool, of a size that nobody has memory for.
GREEDY_BATCH = Command("fit", lambda out: [*AUGMENT.words(out), *settings("training.batch_unlabeled=100000")])
GREEDY_POOL = Command("fit --augment", lambda out: [*AUGMENT.words(out), *settings("augmentation.pool_size=3000000")])


@pytest.mark.parametrize("command", [GREEDY_BATCH, GREEDY_POOL], ids=["a batch", "a pool"])
def test_too_large_a_setting_is_reported_and_the_last_checkpoint_is_valid(command, place, tally):
    fault, out = "settings that ask for more memory than there is", place / "out"
    tally.tried(fault)
    done = ended(command.words(out), more_memory(300_000_000))
    assert done.failed_in_one_sentence(), done
    assert "out of memory" in done.output
    assert "training.batch_unlabeled" in done.output
    assert all_whole(out)
    assert nothing_unfinished(out)
    assert (step_of(out) > 0) is (command is GREEDY_POOL)
    tally.survived(fault)


LIMITS = [(command, size) for command in (AUGMENT, SELECT, EXPORT) for size in (100, 300, 600, 1000, 2000, 4000)]


@pytest.mark.parametrize(("command", "size"), LIMITS, ids=[f"{command.name} {size} kB" for command, size in LIMITS])
def test_little_memory_is_enough_or_is_reported_and_with_more_the_command_resumes(command, size, place, tally):
    fault, out = f"a limit on memory under `{command.name}`", place / "out"
    command.begin(out)
    done = ended(command.words(out), more_memory(1000 * size))
    if done.code == 0:
        assert same(contents(out), command.undisturbed.contents)
        return
    tally.tried(fault, lost=LOST[command])
    assert done.failed_in_one_sentence(), done
    assert "out of memory" in done.output or "Cannot allocate memory" in done.output, done.output
    assert not out.exists() or (all_whole(out) and nothing_unfinished(out))
    done = ended(command.words(out))
    assert done.code == 0, done.output
    assert same(contents(out), command.undisturbed.contents)
    tally.survived(fault)
