"""The reference pages, which are generated from the code, have every setting, command, preset and public name.

The site itself is built by `make docs`; these tests need no mkdocs.
"""

import ast
import importlib.util
import re
from pathlib import Path

import pytest
from typer.main import get_command

import synthsieve
from synthsieve.cli.app import app
from synthsieve.settings import flat_settings, load_settings, preset_names

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def load_hook():
    spec = importlib.util.spec_from_file_location("docs_reference", DOCS / "hooks" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference():
    return load_hook()


def rows(page):
    """The cells of every table row of a page, by the text of the first cell."""
    page = page.replace("<wbr>", "").replace("<code>", "`").replace("</code>", "`")
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    return {cells[0]: cells[1:] for cells in (re.split(r"(?<!\\) \| ", line.strip("| ")) for line in lines)}


def test_every_setting_has_default_values_and_meaning(reference):
    found = rows(reference.settings_page())
    assert set(found) == {f"`{name}`" for name in flat_settings(load_settings().model_dump())}
    assert all(len(cells) == 3 and all(cells) for cells in found.values())
    assert found["`training.steps`"] == ["`3000`", "a whole number, at least 1", "Training steps on real data."]
    assert found["`model.norm`"][1] == "`group`, `batch`"
    assert found["`augmentation.keep_fraction`"][1] == "a number, above 0, at most 1; or none"


def test_every_command_and_option(reference):
    page = reference.commands_page()
    sections = dict(zip(*[iter(re.split(r"^## synthsieve (\S+)$", page, flags=re.MULTILINE)[1:])] * 2, strict=True))
    commands = get_command(app).commands
    assert list(sections) == list(commands)
    for name, command in commands.items():
        for parameter in command.params:
            hidden = getattr(parameter, "hidden", False)
            if parameter.param_type_name == "option":
                shown = [f"`{one}" in sections[name] for one in parameter.opts]
                assert shown == [not hidden] * len(shown), f"{name} {parameter.opts}"
            assert hidden or " ".join((parameter.help or "").split()).replace("|", "\\|") in sections[name]


def test_values_of_options_have_names():
    """`--seeds N`, not a Python type."""
    for command in get_command(app).commands.values():
        for parameter in command.params:
            is_flag = getattr(parameter, "is_flag", False)
            assert is_flag or parameter.metavar or parameter.param_type_name == "argument", parameter.opts
            assert "<" not in (parameter.metavar or "")


def test_every_preset_is_printed(reference):
    page = reference.presets_page()
    for name in preset_names():
        assert f"\n## {name}\n" in page
        assert f"| [{name}](#{name}) |" in page


def test_every_public_name_is_documented(reference):
    shown = re.findall(r"^::: (\S+)$", reference.api_page(), flags=re.MULTILINE)
    assert sorted(one.rpartition(".")[2] for one in shown) == sorted(synthsieve._PUBLIC)
    places = {name: f"{module}.{name}" for name, module in synthsieve._PUBLIC.items()} | reference.DOCUMENTED_AT
    assert set(shown) == set(places.values())


def test_fields_of_results_and_options_have_a_meaning(reference):
    results = {reference.result_of(name) for name in reference.API_SECTIONS[reference.COMMANDS]} - {None}
    for described in (reference.SourceOptions, *results):
        fields = reference.fields_of(described)
        assert fields
        assert [name for name, (kind, meaning) in fields.items() if not (kind and meaning)] == [], described
    assert reference.fields_of(reference.SourceOptions)["label"] == ("str | None", "label column of a table")


def defined_in(path):
    """Names of functions, classes and methods of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in (one for one in tree.body if isinstance(one, kinds)):
        yield node.name
        yield from (f"{node.name}.{one.name}" for one in node.body if isinstance(one, kinds))


def test_functions_and_tests_of_every_equation_exist():
    """Cells are `models/energy.py: Energy.class_logits`, further names of the same file, or tests."""
    page = (DOCS / "explanation" / "method.md").read_text(encoding="utf-8").partition("| quantity | formula |")[2]
    lines = page.partition("\n\n")[0].splitlines()[2:]
    assert len(lines) > 40
    for quantity, _, functions, tests in (line.strip("| ").split(" | ") for line in lines):
        path = None
        for words in re.findall("`([^`]+)`", functions):
            file, _, name = words.partition(": ") if ".py" in words else ("", "", words)
            path = ROOT / "src" / "synthsieve" / file if file else path
            assert path is not None, quantity
            assert path.is_file(), quantity
            assert not name or name in set(defined_in(path)), f"{quantity}: {name}"
        assert path is not None, quantity
        found = re.findall("`([^`]+)`", tests)
        assert found, quantity
        assert [name for name in found if not (ROOT / "tests" / name).is_file()] == [], quantity


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    expected = {page for page in pages if not page.startswith("development/decisions/")}
    assert sorted(page for page in expected if f": {page}\n" not in navigation) == []


def test_links_between_pages_are_valid():
    """Without mkdocs: every relative link of every Markdown file leads to a file."""
    generated = {f"docs/{name}" for name in load_hook().PAGES}
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"]
    dead = []
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path = (page.parent / target.partition("#")[0]).resolve()
            known = path.exists() or (path.is_relative_to(ROOT) and path.relative_to(ROOT).as_posix() in generated)
            if not re.match(r"[a-z]+:|#", target) and not known:
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert dead == []
