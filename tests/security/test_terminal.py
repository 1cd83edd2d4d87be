"""What a terminal would obey is printed as text, wherever it came from: labels, columns, names of files."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve.cli import app
from synthsieve.cli.printing import visible

TITLE = "\x1b]0;owned\x07"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("odd", [TITLE, "\x1b[2J", "\x9b31m", "a\rb", "\u202egpj", "\u2066", "\udcff", "\x7f\x00"])
def test_nothing_that_a_terminal_obeys_is_left(odd):
    assert not OBEYED.search(visible(f"a{odd}b"))
    assert visible(f"a{odd}b").startswith("a")
    visible(odd).encode("utf-8")


def test_plain_text_of_any_script_is_printed_as_it_is():
    text = "Zürich 東京 عربى 👩‍🔬\n\tnext | line"
    assert visible(text) == text


def said(capsys, *words):
    try:
        app.main(list(words))
    except SystemExit as end:
        return end.code, capsys.readouterr()
    raise AssertionError


def shards(path, names, labels):
    logits = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    columns = {f"logit_{name}": logits[:, column] for column, name in enumerate(names)}
    pq.write_table(pa.table({"label": np.array(labels)[np.arange(60) % 3], **columns}), path)
    return str(path)


def test_labels_are_printed_as_text(tmp_path, capsys):
    names = [f"{TITLE}a", "\x1b[31mb", "c\nnote: all is well"]
    data = shards(tmp_path / "a.parquet", names, names)
    code, printed = said(capsys, "select", data, "-o", str(tmp_path / "out"), "--quiet")
    assert code == 0
    assert "\\x1b[31mb" in printed.out
    assert not OBEYED.search(printed.out)
    assert "\nnote: all is well" not in printed.out


@pytest.mark.parametrize("name", [f"{TITLE}.parquet", "a\nsynthsieve: all is well.parquet", "\udcff.parquet"])
def test_names_in_an_error_are_printed_as_text_on_one_line(tmp_path, capsys, name):
    (tmp_path / name).write_bytes(b"PAR1")
    code, printed = said(capsys, "select", str(tmp_path / name), "-o", str(tmp_path / "out"))
    assert code == 2
    assert not OBEYED.search(printed.err)
    assert printed.err.startswith("synthsieve: ")
    assert printed.err.count("\n") == 1


def test_a_folder_whose_name_is_no_text_can_be_written_to(tmp_path, capsys):
    data = shards(tmp_path / "a.parquet", "abc", ["a", "b", "c"])
    code, printed = said(capsys, "select", data, "-o", str(tmp_path / "\udcff"), "--quiet")
    assert code == 0
    assert "\\udcff" in printed.out
