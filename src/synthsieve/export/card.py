"""The data card: README.md with a head that the Hugging Face Hub and `datasets` read, and plain sections for people."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from synthsieve.export.block import About
from synthsieve.export.formats import Form, Format
from synthsieve.export.front_matter import front_matter
from synthsieve.export.hub import card_features, for_hub, size_of, task_of
from synthsieve.files import write_text
from synthsieve.printable import visible

ONE = {Form.IMAGES: "image", Form.SOUNDS: "sound", Form.SENTENCES: "sentence", Form.ROWS: "row", Form.ARRAYS: "array"}
LINKS, MARKS = re.compile(r"[\\*\[\]]"), re.compile(r"[\\|`*\[\]]")
FIRST = re.compile(r"(?:[#+=~`-]|\d+(?=[.)]))")  # what makes a heading, a list, a line or code of a paragraph it begins
MOST_CLASSES = 40  # told one by one in the card; the manifest has them all


@dataclass(frozen=True)
class Described:
    """What the columns are.

    Attributes:
        about: what the samples are.
        schema: the Arrow schema of data.parquet.
        called: `label`, `id` and the other columns of ours -> what they are called there.
        meanings: the same names -> what they mean.
    """

    about: About
    schema: Any
    called: Mapping[str, str]
    meanings: Mapping[str, str]

    @cached_property
    def columns(self) -> list[dict[str, str]]:
        """Name, type and meaning of each, in order."""
        ours = {called: self.meanings[name] for name, called in self.called.items()}
        sample = f"the {ONE[self.about.form]} itself"
        if self.about.form in (Form.ROWS, Form.ARRAYS):
            sample = "a column of the sample"
        return [
            {"name": field.name, "type": str(field.type), "meaning": ours.get(field.name, sample)}
            for field in self.schema
        ]


def write_card(path: Path, manifest: Mapping[str, Any], words: Mapping[str, Any], described: Described) -> None:
    """Write the card of an export whose data lie beside it."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters |= {"cell": _cell, "plain": _plain, "code": _code, "count": lambda number: f"{number:,}"}
    template = environment.from_string(Path(__file__).with_name("card.md").read_text(encoding="utf-8"))
    body = template.render(
        **manifest,
        words=words,
        one=ONE[described.about.form],
        called=described.called,
        shown_classes=dict(list(manifest["counts"]["classes"].items())[:MOST_CLASSES]),
    )
    write_text(path, front_matter(_head(path.parent, manifest, described)) + "\n" + body.strip() + "\n")


def _head(folder: Path, manifest: Mapping[str, Any], described: Described) -> dict[str, Any]:
    configs, infos = [], []
    for format, name, path in (
        (Format.HF, "default", "data/train-*.parquet"),
        (Format.PARQUET, "pool", "data.parquet"),
    ):
        if format in manifest["formats"]:
            configs.append({"config_name": name, "data_files": [{"split": "train", "path": path}]})
            infos.append({"config_name": name, **_info(folder, path, described, as_index=format is Format.HF)})
    told = {"configs": configs, "dataset_info": infos} if configs else {}
    return {
        "license": "unknown",
        "pretty_name": f"Synthetic {manifest['name']}",
        "tags": ["synthetic", "synthsieve"],
        "task_categories": [task_of(described.about.form)],
        "size_categories": [size_of(max(manifest["rows"].values()))],
        **told,
    }


def _info(folder: Path, pattern: str, described: Described, *, as_index: bool) -> dict[str, Any]:
    """What `datasets` wants to know of a configuration before it reads it."""
    from pyarrow import parquet

    paths = sorted(folder.glob(pattern))
    stored = [parquet.read_metadata(path) for path in paths]
    schema = for_hub(described.schema.empty_table()).schema
    label = described.called["label"] if as_index else None
    unpacked = sum(one.row_group(i).total_byte_size for one in stored for i in range(one.num_row_groups))
    return {
        "features": card_features(schema, described.about, label=label),
        "splits": [{"name": "train", "num_bytes": unpacked, "num_examples": sum(one.num_rows for one in stored)}],
        "download_size": sum(path.stat().st_size for path in paths),
        "dataset_size": unpacked,
    }


def _plain(text: Any) -> str:
    """A paragraph, or a row of a table, in which nothing is read as HTML, a link, a heading, a list or code."""
    escaped = LINKS.sub(r"\\\g<0>", html.escape(_one_line(text), quote=False))
    found = FIRST.match(escaped)
    return escaped if found is None else f"{found[0][:-1]}&#{ord(found[0][-1])};{escaped[found.end() :]}"


def _cell(text: Any) -> str:
    """Text for a cell of a Markdown table, whatever it holds: no link, no code, no other cell."""
    return MARKS.sub(r"\\\g<0>", html.escape(_one_line(text), quote=False))


def _code(text: Any) -> str:
    """Text of one line within backticks or a block of code, which it cannot leave."""
    return _one_line(text).replace("`", "'")


def _one_line(text: Any) -> str:
    """Text on one line, with nothing in it that a terminal would obey."""
    return visible(" ".join(str(text).split()))
