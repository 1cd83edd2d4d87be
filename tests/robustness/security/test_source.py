"""What the source may not do: load pickles, run text as code, unpack archives, start shells, trust pages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import synthsieve

ROOT = Path(synthsieve.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
# Modules that run code from data, or unpack paths from archives.
MODULES = {
    "pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "dbm", "yaml", "tarfile", "imp",
    "telnetlib", "ftplib", "pty", "code", "codeop",
}  # fmt: skip
CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "torch.jit.load", "torch.hub.load",
    "pd.read_pickle", "pandas.read_pickle", "shutil.unpack_archive", "tempfile.mktemp", "np.fromfile", "loadmat",
    "numpy.load",
}  # fmt: skip
METHODS = {"extractall", "extract", "read_pickle", "unpack_archive"}


def calls(path: Path) -> list[tuple[str, ast.Call]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}


def keyword(call: ast.Call, name: str) -> str | None:
    return next((ast.unparse(given.value) for given in call.keywords if given.arg == name), None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_can_run_code(path: Path) -> None:
    found = imported(path)
    assert not {name.partition(".")[0] for name in found} & MODULES
    assert {name for name in found if name.startswith("xml.")} <= {"xml.sax.saxutils"}  # which only escapes
    for name, call in calls(path):
        assert name not in CALLS, f"{name} at line {call.lineno}"
        assert name.rpartition(".")[2] not in METHODS, f"{name} at line {call.lineno}"
        assert keyword(call, "shell") in (None, "False")
        if name.endswith(("np.load", "format.read_array")):
            assert keyword(call, "allow_pickle") == "False", f"{name} at line {call.lineno}"
        if name == "Image.open":  # Pillow knows formats that it hands to other programs
            assert keyword(call, "formats") == "FORMATS"


def test_processes_and_network_only_in_known_places() -> None:
    using: dict[str, set[str]] = {}
    for path in FILES:
        for name in imported(path):
            using.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert using["subprocess"] == {"distributed/ray_engine.py", "io/precision.py"}
    assert using["pooch"] == using["requests"] == {"data/download.py"}
    assert using["socket"] == {"results/gallery/server.py", "distributed/ray_engine.py"}
    assert not {"urllib.request", "httpx", "aiohttp", "ftplib", "smtplib"} & using.keys()
    unescaped = {path.name for path in FILES if "autoescape=False" in path.read_text(encoding="utf-8")}
    assert unescaped == {"card.py"}  # Markdown, which has filters of its own
    assert {path.name for path in FILES if "Markup(" in path.read_text(encoding="utf-8")} == {"page.py"}


def test_templates_and_scripts_write_no_text_as_html() -> None:
    for path in (*ROOT.rglob("*.js"), *ROOT.rglob("*.html"), *ROOT.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
        ):
            assert word not in text, f"{word} in {path.name}"
        assert set(re.findall(r"\{\{ *([^}]*?) *\| *safe *\}\}", text)) <= {"block"}  # made by another template of ours
