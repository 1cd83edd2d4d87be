"""What Hugging Face's `datasets` must know of a table: its features, in the form of its files and of its cards."""

from __future__ import annotations

from typing import Any

from synthsieve.export.block import About
from synthsieve.export.formats import Form

TASKS = {
    Form.IMAGES: "image-classification",
    Form.SOUNDS: "audio-classification",
    Form.SENTENCES: "text-classification",
}
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def task_of(form: Form) -> str:
    """The Hub's word for what such data are for."""
    return TASKS.get(form, "tabular-classification")


def size_of(rows: int) -> str:
    """The Hub's word for how many rows there are."""
    return next((word for limit, word in SIZES if rows < limit), "1M<n<10M")


def special_features(about: About) -> dict[str, Any]:
    """Features that the Arrow types alone do not tell, by column: the image or the sound."""
    if about.form is Form.IMAGES:
        return {"image": {"_type": "Image"}}
    return {"audio": {"_type": "Audio"}} if about.form is Form.SOUNDS else {}


def class_label(about: About) -> dict[str, Any]:
    """The feature of a label that is stored as an index."""
    return {"names": list(about.classes), "_type": "ClassLabel"}


def for_hub(table: Any) -> Any:
    """The table in types that `datasets` knows: categories as their values, narrow decimals wider, text as text."""
    import pyarrow as pa

    return table.cast(pa.schema([field.with_type(_known(field.type)) for field in table.schema]))


def _known(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _known(kind.value_type)
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return pa.string() if pa.types.is_string_view(kind) else kind


def card_features(schema: Any, about: About, *, label: str | None = None) -> list[dict[str, Any]]:
    """The features as `dataset_info` of a card lists them; `label` is the column that stores the label's index."""
    return [{"name": field.name, **_card_feature(field, about, label)} for field in schema]


def _card_feature(field: Any, about: About, label: str | None) -> dict[str, Any]:
    import pyarrow as pa

    if field.name in special_features(about):
        return {"dtype": field.name}
    if field.name == label:
        return {"dtype": {"class_label": {"names": {str(i): name for i, name in enumerate(about.classes)}}}}
    if pa.types.is_fixed_size_list(field.type):
        return {"sequence": _word(field.type.value_type), "length": field.type.list_size}
    return {"dtype": _word(field.type)}


def _word(kind: Any) -> str:
    """The word of `datasets` for an Arrow type: Arrow's own, but for a few."""
    kind = _known(kind)
    arrow = str(kind)
    return {
        "float": "float32",
        "double": "float64",
        "halffloat": "float16",
        "date32[day]": "date32",
        "date64[ms]": "date64",
    }.get(arrow, arrow)
