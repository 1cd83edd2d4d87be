"""The data card: README.md with metadata for the Hugging Face Hub and `datasets`, and sections for people.

Also the features of a table that `datasets` must know, for cards and for the metadata of Parquet files.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthsieve.io.files import write_text
from synthsieve.io.printable import visible
from synthsieve.results.export.block import PoolInfo
from synthsieve.results.export.formats import Format, SampleForm

SINGULAR = {
    SampleForm.IMAGES: "image",
    SampleForm.SOUNDS: "sound",
    SampleForm.SENTENCES: "sentence",
    SampleForm.ROWS: "row",
    SampleForm.ARRAYS: "array",
}
# Characters with a meaning in Markdown: within a line, within a cell of a table, at the start of a paragraph.
IN_LINE, IN_CELL = re.compile(r"[\\*\[\]]"), re.compile(r"[\\|`*\[\]]")
AT_START = re.compile(r"(?:[#+=~`-]|\d+(?=[.)]))")
NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")  # allowed in JSON only
MAX_CLASSES = 40  # listed in the card; the manifest has all
# Categories of the Hub: of the task, and of the number of rows.
TASKS = {
    SampleForm.IMAGES: "image-classification",
    SampleForm.SOUNDS: "audio-classification",
    SampleForm.SENTENCES: "text-classification",
    SampleForm.ROWS: "tabular-classification",
    SampleForm.ARRAYS: "tabular-classification",
}
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
# Names of Arrow types in `datasets`, where they differ.
TYPE_NAMES = {
    "float": "float32",
    "double": "float64",
    "halffloat": "float16",
    "date32[day]": "date32",
    "date64[ms]": "date64",
}


@dataclass(frozen=True)
class Schema:
    """The columns of data.parquet."""

    info: PoolInfo
    arrow: Any  # the Arrow schema
    names: Mapping[str, str]  # `label`, `id` and the other properties -> their column names
    meanings: Mapping[str, str]  # the same keys -> descriptions

    def columns(self) -> list[dict[str, str]]:
        """Name, type and meaning of each column, in order."""
        meanings = {name: self.meanings[key] for key, name in self.names.items()}
        several = self.info.form in (SampleForm.ROWS, SampleForm.ARRAYS)
        sample = "a column of the sample" if several else f"the {SINGULAR[self.info.form]} itself"
        return [
            {"name": field.name, "type": str(field.type), "meaning": meanings.get(field.name, sample)}
            for field in self.arrow
        ]


def write_card(path: Path, manifest: Mapping[str, Any], words: Mapping[str, Any], schema: Schema) -> None:
    """Write the card of an export whose data files are in the same directory."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters |= {"cell": _cell, "plain": _plain, "code": _code, "count": lambda number: f"{number:,}"}
    template = environment.from_string(Path(__file__).with_name("card.md").read_text(encoding="utf-8"))
    body = template.render(
        **manifest,
        words=words,
        singular=SINGULAR[schema.info.form],
        names=schema.names,
        shown_classes=dict(list(manifest["counts"]["classes"].items())[:MAX_CLASSES]),
    )
    write_text(path, f"{front_matter(_hub_metadata(path.parent, manifest, schema))}\n{body.strip()}\n")


def front_matter(values: Mapping[str, Any]) -> str:
    """Values between two lines of ---, as JSON, which is YAML too."""
    text = json.dumps(values, ensure_ascii=False, indent=2)
    return "\n".join(["---", NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text), "---", ""])


def _hub_metadata(folder: Path, manifest: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    configs, infos = [], []
    for format, name, path in (
        (Format.HF, "default", "data/train-*.parquet"),
        (Format.PARQUET, "pool", "data.parquet"),
    ):
        if format in manifest["formats"]:
            configs.append({"config_name": name, "data_files": [{"split": "train", "path": path}]})
            infos.append({"config_name": name, **_dataset_info(folder, path, schema, as_index=format is Format.HF)})
    return {
        "license": "unknown",
        "pretty_name": f"Synthetic {manifest['name']}",
        "tags": ["synthetic", "synthsieve"],
        "task_categories": [TASKS[schema.info.form]],
        "size_categories": [size_of(max(manifest["rows"].values()))],
        **({"configs": configs, "dataset_info": infos} if configs else {}),
    }


def _dataset_info(folder: Path, pattern: str, schema: Schema, *, as_index: bool) -> dict[str, Any]:
    from pyarrow import parquet

    paths = sorted(folder.glob(pattern))
    stored = [parquet.read_metadata(path) for path in paths]
    label = schema.names["label"] if as_index else None
    num_bytes = sum(one.row_group(i).total_byte_size for one in stored for i in range(one.num_row_groups))
    return {
        "features": card_features(hub_table(schema.arrow.empty_table()).schema, schema.info, label=label),
        "splits": [{"name": "train", "num_bytes": num_bytes, "num_examples": sum(one.num_rows for one in stored)}],
        "download_size": sum(path.stat().st_size for path in paths),
        "dataset_size": num_bytes,
    }


def _plain(text: Any) -> str:
    """A paragraph, or a row of a table, without HTML, links, headings, lists or code."""
    escaped = IN_LINE.sub(r"\\\g<0>", html.escape(_one_line(text), quote=False))
    found = AT_START.match(escaped)
    return escaped if found is None else f"{found[0][:-1]}&#{ord(found[0][-1])};{escaped[found.end() :]}"


def _cell(text: Any) -> str:
    """A cell of a Markdown table, without links, code or cell borders."""
    return IN_CELL.sub(r"\\\g<0>", html.escape(_one_line(text), quote=False))


def _code(text: Any) -> str:
    """Text of one line that cannot end the backticks or the code block around it."""
    return _one_line(text).replace("`", "'")


def _one_line(text: Any) -> str:
    """Text on one line, without control characters."""
    return visible(" ".join(str(text).split()))


def size_of(rows: int) -> str:
    """The Hub's size category."""
    return next((category for limit, category in SIZES if rows < limit), "1M<n<10M")


def hub_features(info: PoolInfo) -> dict[str, Any]:
    """Features that do not follow from the Arrow types, by column: images and sounds."""
    if info.form is SampleForm.IMAGES:
        return {"image": {"_type": "Image"}}
    return {"audio": {"_type": "Audio"}} if info.form is SampleForm.SOUNDS else {}


def hub_table(table: Any) -> Any:
    """The table in types that `datasets` supports."""
    import pyarrow as pa

    return table.cast(pa.schema([field.with_type(_hub_type(field.type)) for field in table.schema]))


def _hub_type(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _hub_type(kind.value_type)
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return pa.string() if pa.types.is_string_view(kind) else kind


def card_features(schema: Any, info: PoolInfo, *, label: str | None = None) -> list[dict[str, Any]]:
    """The features as `dataset_info` of a card lists them; `label` is the column with the label's index."""
    import pyarrow as pa

    def type_name(kind: Any) -> str:
        name = str(_hub_type(kind))
        return TYPE_NAMES.get(name, name)

    features: list[dict[str, Any]] = []
    for field in schema:
        feature: dict[str, Any] = {"dtype": type_name(field.type)}
        if field.name in hub_features(info):
            feature = {"dtype": field.name}
        elif field.name == label:
            feature = {"dtype": {"class_label": {"names": {str(i): name for i, name in enumerate(info.classes)}}}}
        elif pa.types.is_fixed_size_list(field.type):
            feature = {"sequence": type_name(field.type.value_type), "length": field.type.list_size}
        features.append({"name": field.name, **feature})
    return features
