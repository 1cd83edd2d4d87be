"""The order of the layers: a module imports only from its own layer or from those below it, lazily or not."""

import ast
from pathlib import Path

import pytest

import synthsieve

ROOT = Path(synthsieve.__file__).parent
LAYERS = (
    ("errors", "settings"),
    ("io",),
    ("sampling", "selection"),
    ("data",),
    ("models",),
    ("evaluation",),
    ("training",),
    ("experiments",),
    ("estimators",),
    ("results",),
    ("distributed",),
    ("api",),
    ("cli", "__init__", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
APART = ({"sampling", "selection"},)  # neighbours in one layer that know nothing of each other


def modules():
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.rglob("*.py")}


MODULES = modules()


def imported(path):
    """The modules of this package that a module imports: at the top, inside a function, or by name from a registry."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "synthsieve":
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("synthsieve.")}
        elif isinstance(node, ast.Constant) and str(node.value).startswith("synthsieve."):  # "module" or "module:name"
            names.add(node.value.split(":")[0])
    dotted = {name.removeprefix("synthsieve").lstrip(".") for name in names}
    return {name if name in MODULES else f"{name}.__init__" for name in dotted} & set(MODULES)


def test_every_module_has_a_layer():
    assert {name.split(".")[0] for name in MODULES} == set(LEVEL)


@pytest.mark.parametrize("layer", [name for name in LEVEL if not name.startswith("__")])
def test_a_layer_imports_only_from_below(layer):
    above = []
    for name, path in MODULES.items():
        if name.split(".")[0] != layer:
            continue
        for other in imported(path):
            package = other.split(".")[0]
            strangers = any({layer, package} <= pair and layer != package for pair in APART)
            if package != "__init__" and (LEVEL[package] > LEVEL[layer] or strangers):
                above.append(f"{name} -> {other}")
    assert not above


def test_no_import_cycle():
    """Lazy imports count, too, and modules that a registry imports by name."""
    graph = {name: imported(path) - {name, "__init__"} for name, path in MODULES.items()}
    order, state = [], {}

    def visit(name, path):
        if state.get(name) == "open":
            pytest.fail(" -> ".join([*path[path.index(name) :], name]))
        if name in state:
            return
        state[name] = "open"
        for other in sorted(graph[name]):
            visit(other, [*path, name])
        state[name] = "done"
        order.append(name)

    for name in sorted(graph):
        visit(name, [])
    assert len(order) == len(MODULES)


def test_few_modules_at_the_root():
    assert sum("." not in name and not name.startswith("__") for name in MODULES) <= 4
