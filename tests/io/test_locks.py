"""Locks: one writer at a time."""

import os
import signal

import pytest

from synthsieve.errors import ConfigError, SynthsieveError, in_one_sentence
from synthsieve.io.locks import locked, locked_beside
from tests.errors import raises


def test_second_writer_is_refused(tmp_path):
    with locked(tmp_path), raises(ConfigError, "locked"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_empty_folder_is_removed(tmp_path):
    with locked(tmp_path / "new" / "er"):
        assert (tmp_path / "new" / "er" / ".lock").is_file()
    assert not list(tmp_path.iterdir())
    with locked(tmp_path / "new"):
        (tmp_path / "new" / "a.txt").write_text("kept", encoding="utf-8")
    assert os.listdir(tmp_path / "new") == ["a.txt"]


def test_killed_process_releases_its_lock(tmp_path):
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


def test_path_below_a_file(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with raises(ConfigError, "not-a-folder"), locked(tmp_path / "file" / "below"):
        pass


def test_broken_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path / "link", tmp_path / "link" / "below"):
        for hold in (locked, locked_beside):
            with raises(ConfigError, "broken-link"), hold(path):
                pass
    assert os.listdir(tmp_path) == ["link"]


def test_lock_beside(tmp_path):
    with locked_beside(tmp_path / "export"):
        with locked_beside(tmp_path / "other"):
            assert sorted(os.listdir(tmp_path)) == [".export.lock", ".other.lock"]
        with raises(ConfigError, "locked"), locked_beside(tmp_path / "export"):
            pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "start"),
    [
        (SynthsieveError("a sentence"), "a sentence"),
        (OSError(28, "No space left on device", "out/a"), "out/a: No space left on device: check the path"),
        (MemoryError(), "out of memory"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
            "out of memory",
        ),
    ],
)
def test_errors_in_one_sentence(error, start):
    assert in_one_sentence(error).startswith(start)


def test_unexpected_errors_keep_their_traceback():
    assert in_one_sentence(RuntimeError("shapes differ")) is None
