"""Markdown of the reference pages, generated from the code: settings, commands, presets, the Python interface.

Needs nothing but the package itself, so that `tests/test_reference.py` can check that nothing is missing.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.main import get_command

import synthsieve
from synthsieve.api.source import SourceOptions
from synthsieve.cli.app import app
from synthsieve.settings import Settings
from synthsieve.training.defaults import BENCHMARKS, SMALL_SIDE, presets

NUMBERS = {int: "a whole number", float: "a number"}
BOUNDS = {
    annotated_types.Ge: ("ge", "at least"),
    annotated_types.Gt: ("gt", "above"),
    annotated_types.Le: ("le", "at most"),
    annotated_types.Lt: ("lt", "below"),
}
DOCUMENTED_AT = {"utility": "synthsieve.evaluation.utility.utility"}  # what a wrapper passes its arguments on to
# Names of `synthsieve` by page section, in the order in which they are shown.
COMMANDS = "Commands as functions"
API_SECTIONS = {
    COMMANDS: (
        "run",
        "fit",
        "predict",
        "label",
        "sample",
        "export",
        "report",
        "evaluate",
        "utility",
        "benchmark",
        "serve",
        "select_file",
        "reproduce",
        "doctor",
    ),
    "Estimators": ("LatentEBMClassifier", "CoresetSelector"),
    "Selection": ("select", "SelectionOptions", "Selection", "estimate_memory"),
    "Open what a run wrote": ("load", "open_run"),
    "Extensions": ("register_source", "register_modality"),
    "Errors and warnings": ("SynthsieveError", "SynthsieveWarning"),
}


def sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """The name and the class of every section of the settings."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield name, field.annotation


def setting_names() -> list[str]:
    """Every setting as `--set` takes it: `training.steps`."""
    inside = dict(sections())
    alone = [name for name in Settings.model_fields if name not in inside]
    return alone + [f"{name}.{field}" for name, section in inside.items() for field in section.model_fields]


def settings_page() -> str:
    """All settings with default, values and meaning."""
    lines = [
        "# Settings",
        "",
        "Everything that determines a run, except its data. Change a setting with `--set training.steps=2000`,",
        "several in a TOML file with `--config FILE.toml`, and those of an estimator with `settings={...}`. `none` in",
        "`--set` and `None` in Python mean no value; in a TOML file the line is left out. The defaults below are those",
        "without a [preset](presets.md); the preset for your kind of data changes many of them.",
    ]
    lines += _settings_table("", Settings, ("seed",))
    for name, section in sections():
        lines += ["", f"## {name}", "", _sentence(section), *_settings_table(f"{name}.", section, section.model_fields)]
    return "\n".join(lines) + "\n"


def _settings_table(prefix: str, section: type[BaseModel], names: Any) -> list[str]:
    lines = ["", "| setting | default | values | meaning |", "|---|---|---|---|"]
    explained: dict[str, list[str]] = {}
    for name in names:
        field = section.model_fields[name]
        for one in _members(field.annotation):
            if isinstance(one, type) and issubclass(one, StrEnum) and _explains(one):
                explained.setdefault(_sentence(one), []).append(f"`{prefix}{name}`")
        shown = re.sub(r"([._])", r"\1<wbr>", f"{prefix}{name}")  # where a long name may be broken on a phone
        cells = (f"<code>{shown}</code>", f"`{_default(field)}`", _values(field), field.description or "")
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    notes = [f"- {', '.join(settings)}: {text}" for text, settings in explained.items()]
    return [*lines, *(["", *notes] if notes else [])]


def _explains(choice: type[StrEnum]) -> bool:
    """Whether the documentation of an enum says more than what the choice is about."""
    return any(mark in _sentence(choice) for mark in (":", "`", ","))


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _values(field: FieldInfo) -> str:
    """`a whole number, at least 1`, or the choices."""
    words = []
    for one in _members(field.annotation):
        if one is NoneType:
            words.append("or none")
        elif one is bool:
            words.append("`true`, `false`")
        elif isinstance(one, type) and issubclass(one, StrEnum):
            words.append(", ".join(f"`{choice}`" for choice in one))
        elif get_origin(one) is tuple:
            words.append("a list of whole numbers")
        else:
            limits = [
                f"{word} {getattr(bound, attribute):,}"
                for bound in field.metadata
                for kind, (attribute, word) in BOUNDS.items()
                if type(bound) is kind
            ]
            words.append(", ".join([NUMBERS[one], *limits]))
    return "; ".join(words)


def commands_page() -> str:
    """Every command with its arguments and options."""
    lines = [
        "# Commands",
        "",
        "`synthsieve COMMAND -h` prints the same. Every command exits with 0, with 2 after an error that you can fix",
        "(one sentence on standard error), and with 130 after Ctrl-C. `synthsieve --install-completion` installs",
        "completion for your shell.",
    ]
    for name, command in get_command(app).commands.items():
        required = [one for one in command.params if one.required]
        words = [f"{'' if _is_argument(one) else one.opts[0] + ' '}{_metavar(one)}" for one in required]
        lines += ["", f"## synthsieve {name}", "", "```", " ".join(["synthsieve", name, *words, "[OPTIONS]"]), "```"]
        lines += ["", " ".join((command.help or "").split()), ""]
        lines += ["| argument or option | default | meaning |", "|---|---|---|"]
        for one in command.params:
            if not getattr(one, "hidden", False):
                lines.append("| " + " | ".join(_cell(cell) for cell in _option_cells(one)) + " |")
    return "\n".join(lines) + "\n"


def _is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


def _metavar(parameter: Any) -> str:
    return parameter.metavar or (parameter.name.upper() if _is_argument(parameter) else "")


def _option_cells(parameter: Any) -> tuple[str, str, str]:
    names = [_metavar(parameter)] if _is_argument(parameter) else [*parameter.opts, *parameter.secondary_opts]
    metavar, help_ = _metavar(parameter), " ".join((parameter.help or "").split())
    if "|" in metavar:
        help_ += " One of " + ", ".join(f"`{choice}`" for choice in metavar.split("|")) + "."
        metavar = "CHOICE"
    value = "" if _is_argument(parameter) or not metavar else f" {metavar}"
    shown = ", ".join(f"`{name}{value if name == names[-1] else ''}`" for name in names)
    default = parameter.default
    if parameter.required:
        default_text = "required"
    elif default is None or isinstance(default, bool):
        default_text = ""
    else:
        default_text = f"`{default}`"
    return shown, default_text, help_


def presets_page() -> str:
    """Every preset: what it is for, and its settings."""
    lines = [
        "# Presets",
        "",
        "A preset is a set of [settings](settings.md) for one kind of data. `run`, `fit` and the estimator choose one",
        "by the data; `--config NAME` (in Python `config=` or `preset=`) chooses another. `synthsieve presets` lists",
        "them, and `synthsieve presets NAME` prints one, to start a TOML file of your own from it.",
        "",
        "| preset | default for | description |",
        "|---|---|---|",
    ]
    for preset in presets():
        users = ", ".join(preset.default_for)
        lines.append(f"| [{preset.name}](#{preset.name}) | {users} | {preset.description} |")
    lines += [
        "",
        f"A small image has at most {SMALL_SIDE} x {SMALL_SIDE} pixels. The built-in data sets know all their labels",
        "and use only some of them:",
        "",
        "| data set | settings |",
        "|---|---|",
    ]
    for name, values in BENCHMARKS.items():
        shown = ", ".join(f"`data.{key}={_toml(value)}`" for key, value in values.items())
        lines.append(f"| `{name}` | {shown} |")
    for preset in presets():
        lines += ["", f"## {preset.name}", "", "```toml", preset.text.strip(), "```"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def api_page() -> str:
    """The public names, each with a mkdocstrings directive; what functions return, and the options of `run`."""
    lines = [
        "# Python interface",
        "",
        "Everything here is imported from `synthsieve`, on first use: `import synthsieve` itself is fast.",
    ]
    returned = {}
    for title, names in API_SECTIONS.items():
        lines += ["", f"## {title}"]
        for name in names:
            where = DOCUMENTED_AT.get(name, f"{synthsieve._PUBLIC[name]}.{name}")
            lines += ["", f"### synthsieve.{name} {{ #{name} }}", "", f"::: {where}", "    options:"]
            lines += ["      show_root_heading: false", "      show_root_toc_entry: false", "      heading_level: 4"]
            if title == COMMANDS and (result := result_of(name)) is not None:
                returned[result.__name__] = result
                lines += ["", f"**Returns:** [`{result.__name__}`](#{result.__name__})."]
        if title == COMMANDS:
            lines += [
                "",
                "### SourceOptions: options of run, fit and benchmark { #SourceOptions }",
                "",
                _sentence(SourceOptions),
            ]
            lines += _fields_table(SourceOptions)
            for name, result in sorted(returned.items()):
                if name not in synthsieve._PUBLIC:
                    lines += ["", f"### {name} {{ #{name} }}", "", _sentence(result), *_fields_table(result)]
    return "\n".join(lines) + "\n"


def result_of(name: str) -> type | None:
    """The class that a public function returns; None if it returns nothing."""
    returned = get_type_hints(getattr(synthsieve, name))["return"]
    return None if returned is NoneType else returned


def fields_of(described: type) -> dict[str, tuple[str, str]]:
    """Type and meaning of each field, by its name; meanings are in the docstring or in a comment after the field."""
    text = inspect.getsource(described)
    meanings = dict(re.findall(r"^    (\w+): [^#\n]+?  # (.+)$", text, flags=re.MULTILINE))
    listed = inspect.cleandoc(described.__doc__ or "").partition("Attributes:\n")[2].split("\n\n")[0]
    for name, meaning in re.findall(r"^    (\w+): ((?:.+(?:\n     .+)*))", listed, flags=re.MULTILINE):
        meanings[name] = " ".join(meaning.split())
    if dataclasses.is_dataclass(described):
        types = {one.name: str(one.type) for one in dataclasses.fields(described)}
    else:
        types = dict(re.findall(r"^    (\w+): ([^#\n]+?)(?:  #.*)?$", text, flags=re.MULTILINE))
    return {name: (types[name], meanings.get(name, "")) for name in types if not name.startswith("_")}


def _fields_table(described: type) -> list[str]:
    lines = ["", "| name | type | meaning |", "|---|---|---|"]
    for name, (kind, meaning) in fields_of(described).items():
        kind = kind.replace("|", "&#124;")  # in code, a backslash before it would be shown
        lines.append(f"| `{name}` | <code>{kind}</code> | {_cell(meaning)} |")
    methods = [name for name in vars(described) if not name.startswith("_") and name not in fields_of(described)]
    if methods:
        lines += ["", "It also has " + ", ".join(f"`{name}`" for name in methods) + "."]
    return lines


def _sentence(documented: type) -> str:
    return " ".join((documented.__doc__ or "").partition("Attributes:\n")[0].split())


def _cell(text: str) -> str:
    """Text inside a table: `|` would end the cell."""
    return text.replace("|", "\\|")


PAGES = {
    "reference/api.md": api_page,
    "reference/commands.md": commands_page,
    "reference/settings.md": settings_page,
    "reference/presets.md": presets_page,
}
