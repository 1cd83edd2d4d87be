"""What our cards say of columns is what `datasets` would say itself."""

import pyarrow as pa
import pytest

from synthsieve.export.block import About
from synthsieve.export.formats import Form
from synthsieve.export.hub import card_features, for_hub, size_of, task_of
from tests.export.made_up import CLASSES, rows
from tests.hub import datasets

ABOUT = About(Form.ROWS, CLASSES, "label", total=3, selected=1)


def as_read(features):
    return datasets.Features._from_yaml_list(features)


def test_every_type_of_a_table_is_named_as_datasets_names_it():
    table = rows(3).append_column("list", pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)))
    for kind in (
        pa.int8(),
        pa.float16(),
        pa.time64("us"),
        pa.date64(),
        pa.large_string(),
        pa.decimal32(4, 1),
        pa.null(),
    ):
        table = table.append_column(str(kind), pa.nulls(3, kind))
    table = for_hub(table)
    told = as_read(card_features(table.schema, ABOUT))
    assert told == datasets.Features.from_arrow_schema(table.schema)
    assert told.arrow_schema.equals(table.schema)


def test_labels_images_and_sounds_are_features_of_their_own():
    schema = pa.schema({"label": pa.int64()})
    assert as_read(card_features(schema, ABOUT, label="label")) == {"label": datasets.ClassLabel(names=list(CLASSES))}
    assert as_read(card_features(schema, ABOUT)) == {"label": datasets.Value("int64")}
    stored = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    for form, name, feature in ((Form.IMAGES, "image", datasets.Image()), (Form.SOUNDS, "audio", datasets.Audio())):
        about = About(form, CLASSES, "label", total=3, selected=1)
        assert as_read(card_features(pa.schema({name: stored}), about)) == {name: feature}


@pytest.mark.parametrize(
    ("rows", "word"), [(0, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (200_000, "100K<n<1M")]
)
def test_sizes_are_the_hubs_words(rows, word):
    assert size_of(rows) == word
    assert size_of(3_000_000) == "1M<n<10M"


def test_tasks_follow_the_form():
    assert {task_of(form) for form in Form} == {
        "image-classification",
        "audio-classification",
        "text-classification",
        "tabular-classification",
    }
