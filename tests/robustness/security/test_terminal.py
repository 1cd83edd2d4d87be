"""What a terminal would obey is printed as text, wherever it came from: labels, columns, names of files."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve.cli import app
from synthsieve.io.printable import one_line, visible

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


def output(capsys, *words):
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
    code, printed = output(capsys, "select", data, "-o", str(tmp_path / "out"), "--quiet")
    assert code == 0
    assert "\\x1b[31mb" in printed.out
    assert not OBEYED.search(printed.out)
    assert "\nnote: all is well" not in printed.out


@pytest.mark.parametrize("name", [f"{TITLE}.parquet", "a\nsynthsieve: all is well.parquet", "\udcff.parquet"])
def test_names_in_an_error_are_printed_as_text_on_one_line(tmp_path, capsys, name):
    (tmp_path / name).write_bytes(b"PAR1")
    code, printed = output(capsys, "select", str(tmp_path / name), "-o", str(tmp_path / "out"))
    assert code == 2
    assert not OBEYED.search(printed.err)
    assert printed.err.startswith("synthsieve: ")
    assert printed.err.count("\n") == 1


def test_a_folder_whose_name_is_no_text_can_be_written_to(tmp_path, capsys):
    data = shards(tmp_path / "a.parquet", "abc", ["a", "b", "c"])
    code, printed = output(capsys, "select", data, "-o", str(tmp_path / "\udcff"), "--quiet")
    assert code == 0
    assert "\\udcff" in printed.out


FORGED = "ham\nspam: 99.9 %\x1b[2J"


def test_a_label_within_a_line_cannot_begin_another():
    assert one_line(FORGED) == "ham\\nspam: 99.9 %\\x1b[2J"
    assert one_line("a\tb") == "a\\tb"
    assert one_line("Zürich 東京") == "Zürich 東京"


def test_evaluate_prints_a_label_on_one_line(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    table = pa.table({"label": np.array([FORGED, "eggs"])[y], "a": rng.normal(y), "b": rng.normal(-y)})
    pq.write_table(table, tmp_path / "a.parquet")
    small = ["training.steps=2", "data.labels=none", "data.test_fraction=0.2"]
    words = [word for one in small for word in ("--set", one)]
    data = str(tmp_path / "a.parquet")
    assert output(capsys, "fit", data, "--label", "label", "-o", str(tmp_path / "out"), "--quiet", *words)[0] == 0
    code, printed = output(capsys, "evaluate", str(tmp_path / "out"))
    assert code == 0
    assert "  ham\\nspam: 99.9 %\\x1b[2J: " in printed.out
    assert "\nspam" not in printed.out
    assert not OBEYED.search(printed.out)


@pytest.mark.parametrize(
    "words", [["run", "digits", "-o", ""], ["fit", "digits", "--out", " "], ["select", "a.npz", "-o", ""],
              ["export", "out", "--to", ""], ["sample", "out", "--to", ""], ["report", "out", "--to", ""]]
)  # fmt: skip
def test_an_empty_path_is_not_the_current_folder(tmp_path, capsys, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    code, printed = output(capsys, *words)
    assert code == 2
    assert "expected a path to write to, got an empty one" in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_dangling_link_as_the_folder_is_refused(tmp_path, capsys):
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    code, printed = output(capsys, "fit", "digits", "-o", str(tmp_path / "out"))
    assert code == 2
    assert "is a link to" in printed.err
    assert not (tmp_path / "nowhere").exists()
