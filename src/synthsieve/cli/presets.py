"""`synthsieve presets [NAME]`: the presets of the package, or the settings of one."""

from __future__ import annotations

import textwrap
import tomllib

from typer import Argument

from synthsieve.cli import options
from synthsieve.errors import ConfigError

NAME = "Print the settings of this preset, as a TOML file to start from (default: list all)."


@options.verb
def presets(console: options.Console, name: str | None = Argument(None, help=NAME, metavar="NAME")) -> None:
    """List the presets, or print one: synthsieve presets table-minutes > mine.toml"""
    from synthsieve.training.defaults import presets as all_presets

    known = {preset.name: preset for preset in all_presets()}
    if name is not None:
        if name not in known:
            message = f"no preset is named {name!r}; the presets are: {', '.join(known)}"
            raise ConfigError(message, code="unknown-preset")
        return console.finish(tomllib.loads(known[name].text), [known[name].text.rstrip("\n")])
    lines = []
    for preset in known.values():
        users = f" Default for: {', '.join(preset.default_for)}." if preset.default_for else ""
        text = f"{preset.description}{users}"
        lines += [preset.name, *textwrap.wrap(text, 80, initial_indent="  ", subsequent_indent="  ")]
    console.finish(
        {one.name: {"description": one.description, "default_for": one.default_for} for one in known.values()}, lines
    )
