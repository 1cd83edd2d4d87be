"""One writer at a time, and what it leaves behind when it is done, refused or killed."""

import os
import signal

import pytest

from synthsieve.errors import ConfigError, SynthsieveError, in_one_sentence
from synthsieve.lock import locked, locked_beside


def test_the_second_is_refused_until_the_first_is_done(tmp_path):
    with locked(tmp_path), pytest.raises(ConfigError, match="is being written by another command"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_made_for_it_goes_again_if_nothing_was_written(tmp_path):
    with locked(tmp_path / "new" / "er"):
        assert (tmp_path / "new" / "er" / ".lock").is_file()
    assert not list(tmp_path.iterdir())
    with locked(tmp_path / "new"):
        (tmp_path / "new" / "a.txt").write_text("kept", encoding="utf-8")
    assert os.listdir(tmp_path / "new") == ["a.txt"]


def test_a_lock_ends_with_its_process_and_what_that_left_is_swept(tmp_path):
    child = os.fork()
    if not child:
        with locked(tmp_path):
            (tmp_path / f".a.json.{os.getpid()}.partial").write_text("half", encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(os.listdir(tmp_path)) == 2
    with locked(tmp_path):
        assert os.listdir(tmp_path) == [".lock"]
    assert not list(tmp_path.iterdir())


def test_a_link_that_leads_nowhere_is_told(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path / "link", tmp_path / "link" / "below"):
        for hold in (locked, locked_beside):
            with pytest.raises(ConfigError, match=r"is a link to .*nowhere, which does not exist"), hold(path):
                pass
    assert os.listdir(tmp_path) == ["link"]


def test_what_is_replaced_as_a_whole_has_its_lock_beside_it(tmp_path):
    with locked_beside(tmp_path / "export"):
        with locked_beside(tmp_path / "other"):
            assert sorted(os.listdir(tmp_path)) == [".export.lock", ".other.lock"]
        with pytest.raises(ConfigError, match="export is being written"), locked_beside(tmp_path / "export"):
            pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SynthsieveError("a sentence"), "a sentence"),
        (OSError(28, "No space left on device", "out/a"), "out/a: No space left on device: check the path"),
        (MemoryError(), "out of memory; what was written is whole"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
            "out of memory;",
        ),
    ],
)
def test_errors_in_one_sentence(error, said):
    assert in_one_sentence(error).startswith(said)


def test_what_nobody_foresaw_keeps_its_trace():
    assert in_one_sentence(RuntimeError("shapes differ")) is None
