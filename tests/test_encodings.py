"""Text is read and written as UTF-8 wherever the program runs, not as the locale would have it."""

import ast
from pathlib import Path

import pytest

import synthsieve

FOLDERS = {"src": Path(synthsieve.__file__).parent, "tests": Path(__file__).parent}


def forgetful(source):
    """Lines that read or write text without naming its encoding."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if _is_text(call) and "encoding" not in _named(call)]


def _is_text(call):
    named, last = _named(call), ast.unparse(call.func).rpartition(".")[2]
    if last == "read_text":
        return isinstance(call.func, ast.Attribute) and not call.args
    if last == "write_text":
        return isinstance(call.func, ast.Attribute) and len(call.args) == 1
    if ast.unparse(call.func) == "open":
        mode = named.get("mode") or (call.args[1] if len(call.args) > 1 else ast.Constant("r"))
        return "b" not in str(ast.literal_eval(mode))
    return "text" in named and last in ("run", "Popen", "check_output")


def _named(call):
    return {keyword.arg: keyword.value for keyword in call.keywords}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("path.read_text()\npath.write_text('a')\nopen(path)\nopen(path, 'w')\nrun(x, text=True)", [1, 2, 3, 4, 5]),
        ("path.read_text(encoding='utf-8')\nopen(path, 'rb')\nopen(path, mode='wb')\nrun(x)\nwrite_text(a, b)", []),
    ],
)
def test_what_is_looked_for_is_found(source, lines):
    assert forgetful(source) == lines


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS)
def test_text_names_its_encoding(folder):
    files = sorted(folder.rglob("*.py"))
    assert files
    found = {str(path.relative_to(folder)): forgetful(path.read_text(encoding="utf-8")) for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}
