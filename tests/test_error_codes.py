"""Every error of ours is created with a code: a non-empty, kebab-case `code=`."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import synthsieve
from synthsieve import errors

ROOT = Path(synthsieve.__file__).parent
PACKAGES = sorted(path.name for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
# Packages whose errors get codes later.


def code_is_required(error):
    """Whether the class has no code of its own."""
    parameter = inspect.signature(error).parameters.get("code")
    return parameter is not None and not parameter.default


ERRORS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.SynthsieveError) and code_is_required(value)
}


def without_code(path):
    """Where the module creates one of our errors without a proper code."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        function = node.func if isinstance(node, ast.Call) else node.exc if isinstance(node, ast.Raise) else None
        name = getattr(function, "id", getattr(function, "attr", None))
        if name == "check" and len(node.args) == 3:  # of data.checks: condition, message, code
            given = node.args[2:]
        elif name in ERRORS:
            given = [keyword.value for keyword in getattr(node, "keywords", []) if keyword.arg == "code"]
        else:
            continue
        if not given or (isinstance(given[0], ast.Constant) and not is_kebab_case(given[0].value)):
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


def is_kebab_case(text):
    return isinstance(text, str) and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_errors_have_codes(package):
    place = ROOT / package
    modules = [place] if place.is_file() else sorted(place.rglob("*.py"))
    assert [where for module in modules for where in without_code(module)] == []


def test_the_check_finds_missing_codes(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    lines = [
        'raise ConfigError("no")',
        'raise errors.DataError("no", code="")',
        'error = DataError("no", code="Not Kebab")',
        "raise ConfigError",
        'raise DataError("fine", code="two-words")',
        'raise DivergedChainError(3, "has a default code")',
        'raise ValueError("not ours")',
        'check(x, "no", "Not Kebab")',
        'check(x, "fine", "two-words")',
    ]
    (tmp_path / "module.py").write_text("\n".join(lines), encoding="utf-8")
    assert sorted(without_code(tmp_path / "module.py")) == [f"module.py:{line}" for line in (1, 2, 3, 4, 8)]
