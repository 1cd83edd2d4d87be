"""A file is whole or absent, whatever happens while it is written."""

import json

import pytest

from synthsieve.files import write_json, written_atomically


def test_a_failure_keeps_the_old_file_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"one": 1})

    def fail_half_way():
        with written_atomically(path) as partial:
            partial.write_text("half of")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert json.loads(path.read_text()) == {"one": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_success_replaces_and_makes_folders(tmp_path):
    path = tmp_path / "deep" / "er" / "a.json"
    write_json(path, [1])
    write_json(path, [2])
    assert json.loads(path.read_text()) == [2]
    assert list(path.parent.iterdir()) == [path]


def test_json_has_no_word_for_nan(tmp_path):
    with pytest.raises(ValueError):
        write_json(tmp_path / "a.json", float("nan"))
    assert not list(tmp_path.iterdir())
