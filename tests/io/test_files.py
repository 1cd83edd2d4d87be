"""Atomic writes of files and folders."""

import json
import os
import re
import subprocess
import sys

import pytest

from synthsieve.io.files import (
    atomic_folder,
    atomic_write,
    atomic_write_all,
    has_partial,
    remove_stale_partials,
    write_json,
    write_text,
)


def test_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"one": 1})

    def fail_half_way():
        with atomic_write(path) as partial:
            partial.write_text("half of", encoding="utf-8")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert json.loads(path.read_text(encoding="utf-8")) == {"one": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_write_creates_folders(tmp_path):
    path = tmp_path / "deep" / "er" / "a.json"
    write_json(path, [1])
    write_json(path, [2])
    assert json.loads(path.read_text(encoding="utf-8")) == [2]
    assert list(path.parent.iterdir()) == [path]


def test_json_refuses_nan(tmp_path):
    with pytest.raises(ValueError):
        write_json(tmp_path / "a.json", float("nan"))
    assert not list(tmp_path.iterdir())


def fill(folder, text, *, fail=False):
    with atomic_folder(folder) as partial:
        (partial / "deep").mkdir()
        (partial / "deep" / "a.txt").write_text(text, encoding="utf-8")
        if fail:
            raise RuntimeError


def test_folder_is_replaced_or_kept(tmp_path):
    folder = tmp_path / "new" / "out"
    fill(folder, "one")
    (folder / "old.txt").write_text("of the first", encoding="utf-8")
    with pytest.raises(RuntimeError):
        fill(folder, "two", fail=True)
    assert (folder / "deep" / "a.txt").read_text(encoding="utf-8") == "one"
    fill(folder, "three")
    assert (folder / "deep" / "a.txt").read_text(encoding="utf-8") == "three"
    assert not (folder / "old.txt").exists()
    assert os.listdir(folder.parent) == ["out"]


def test_failed_rename_restores_the_old_folder(tmp_path, monkeypatch):
    fill(tmp_path / "out", "one")
    rename = type(tmp_path).rename

    def refused(path, target):
        if path.name.endswith(".partial"):
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(type(tmp_path), "rename", refused)
    with pytest.raises(OSError, match="No space"):
        fill(tmp_path / "out", "two")
    assert (tmp_path / "out" / "deep" / "a.txt").read_text(encoding="utf-8") == "one"
    assert os.listdir(tmp_path) == ["out"]


def test_leftovers_of_killed_writers(tmp_path):
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, encoding="utf-8"
    )
    gone, current = dead.stdout.strip(), os.getpid()
    for name in (
        f".out.1.{gone}.partial",
        f".out.1.{gone}.replaced",
        f".out.1.{current}.partial",
        f".other.1.{gone}.partial",
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("left", encoding="utf-8")
    (tmp_path / f".table.json.{gone}.partial").write_text("half", encoding="utf-8")
    with pytest.raises(RuntimeError):
        fill(tmp_path / "out", "two", fail=True)
    assert (tmp_path / "out" / "a.txt").read_text(
        encoding="utf-8"
    ) == "left"  # the old folder, which a kill between two renames hid
    left = {f".out.1.{current}.partial", f".other.1.{gone}.partial", f".table.json.{gone}.partial", "out"}
    assert set(os.listdir(tmp_path)) == left
    remove_stale_partials(tmp_path)
    assert set(os.listdir(tmp_path)) == {f".out.1.{current}.partial", "out"}


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the system does not tell when a process started")
def test_reused_process_number(tmp_path):
    """In a container every command is process 1: what an earlier one left is not taken for its own."""
    with atomic_write(tmp_path / "a.json") as partial:
        partial.write_text("half", encoding="utf-8")
        number, started = re.fullmatch(r"\.a\.json\.(\d+)-(\d+)\.partial", partial.name).groups()
        assert int(number) == os.getpid()
        for name in (f".b.json.{number}-{int(started) - 1}.partial", ".c.json.1-0000.partial"):
            (tmp_path / name).write_text("half", encoding="utf-8")
        (tmp_path / f".export.140123.{number}-1.partial").mkdir()
        assert has_partial(tmp_path / "b.json")
        assert not has_partial(tmp_path / "a.json")
        remove_stale_partials(tmp_path)
        assert os.listdir(tmp_path) == [partial.name]


def test_write_all(tmp_path):
    paths = [tmp_path / name for name in ("a", "b", "c")]

    def fail_at_the_last():
        with atomic_write_all(*paths) as partials:
            for partial in partials[:2]:
                partial.write_text("whole", encoding="utf-8")

    with pytest.raises(FileNotFoundError):
        fail_at_the_last()
    assert not list(tmp_path.iterdir())
    with atomic_write_all(*paths) as partials:
        for partial in partials:
            partial.write_text("whole", encoding="utf-8")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


def test_lone_surrogates(tmp_path):
    write_text(tmp_path / "a.html", "a \udcff \ud800 ä")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == "a \\udcff \\ud800 ä"
