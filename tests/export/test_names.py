"""Names never meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthsieve.export.names import beside, folder_names


@given(st.lists(st.text(max_size=3), unique=True), st.lists(st.text(max_size=3)))
def test_no_two_columns_share_a_name(taken, names):
    called = beside(taken, names)
    assert len({*taken, *called}) == len(taken) + len(names)
    assert all(new.removesuffix(old).replace("synthetic_", "") == "" for old, new in zip(names, called, strict=True))


@given(st.lists(st.text(max_size=4), unique=True))
def test_no_two_classes_share_a_folder_and_none_lies_elsewhere(classes):
    names = folder_names(classes)
    assert len({name.casefold() for name in names}) == len(classes)
    assert not any(set(name) & set("/\\.:\0") or not name for name in names)


def test_plain_labels_are_their_own_folders():
    assert folder_names(["0", "cat", "new-york_2"]) == ["0", "cat", "new-york_2"]
    assert folder_names(["a/b", "a.b", "A_b", ""]) == ["a_b", "a_b_2", "A_b_3", "_"]
    assert len(folder_names(["é" * 300])[0].encode()) < 255


@pytest.mark.parametrize(("encoding", "folders"), [("utf-8", ["naïve", "naive"]), ("ascii", ["na_ve", "naive"])])
def test_letters_that_the_file_system_cannot_have_become_underscores(monkeypatch, encoding, folders):
    monkeypatch.setattr("os.fsencode", lambda name: name.encode(encoding))
    assert folder_names(["naïve", "naive"]) == folders
