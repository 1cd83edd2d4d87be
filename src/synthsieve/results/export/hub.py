"""What Hugging Face's `datasets` must know about a table: its features, for file metadata and for cards."""

from __future__ import annotations

from typing import Any

from synthsieve.results.export.block import PoolInfo
from synthsieve.results.export.formats import Form

TASKS = {
    Form.IMAGES: "image-classification",
    Form.SOUNDS: "audio-classification",
    Form.SENTENCES: "text-classification",
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


def task_of(form: Form) -> str:
    """The Hub's task category."""
    return TASKS.get(form, "tabular-classification")


def size_of(rows: int) -> str:
    """The Hub's size category."""
    return next((category for limit, category in SIZES if rows < limit), "1M<n<10M")


def hub_features(info: PoolInfo) -> dict[str, Any]:
    """Features that do not follow from the Arrow types, by column: images and sounds."""
    if info.form is Form.IMAGES:
        return {"image": {"_type": "Image"}}
    return {"audio": {"_type": "Audio"}} if info.form is Form.SOUNDS else {}


def class_label(info: PoolInfo) -> dict[str, Any]:
    """The feature of a label that is stored as an index."""
    return {"names": list(info.classes), "_type": "ClassLabel"}


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
    return [{"name": field.name, **_card_feature(field, info, label)} for field in schema]


def _card_feature(field: Any, info: PoolInfo, label: str | None) -> dict[str, Any]:
    import pyarrow as pa

    if field.name in hub_features(info):
        return {"dtype": field.name}
    if field.name == label:
        return {"dtype": {"class_label": {"names": {str(i): name for i, name in enumerate(info.classes)}}}}
    if pa.types.is_fixed_size_list(field.type):
        return {"sequence": _type_name(field.type.value_type), "length": field.type.list_size}
    return {"dtype": _type_name(field.type)}


def _type_name(kind: Any) -> str:
    name = str(_hub_type(kind))
    return TYPE_NAMES.get(name, name)
