"""The metadata of cards: YAML that is read back unchanged, and features as `datasets` writes them."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthsieve.results.export.block import PoolInfo
from synthsieve.results.export.card import TASKS, card_features, front_matter, hub_table, size_of
from synthsieve.results.export.formats import SampleForm
from tests.hub import datasets
from tests.results.export.made_up import CLASSES, rows

yaml = pytest.importorskip("yaml")

INFO = PoolInfo(SampleForm.ROWS, CLASSES, "label", total=3, selected=1)


def as_read(features):
    return datasets.Features._from_yaml_list(features)


def test_type_names():
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
    table = hub_table(table)
    features = as_read(card_features(table.schema, INFO))
    assert features == datasets.Features.from_arrow_schema(table.schema)
    assert features.arrow_schema.equals(table.schema)


def test_features_of_labels_images_and_sounds():
    schema = pa.schema({"label": pa.int64()})
    assert as_read(card_features(schema, INFO, label="label")) == {"label": datasets.ClassLabel(names=list(CLASSES))}
    assert as_read(card_features(schema, INFO)) == {"label": datasets.Value("int64")}
    stored = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    for form, name, feature in (
        (SampleForm.IMAGES, "image", datasets.Image()),
        (SampleForm.SOUNDS, "audio", datasets.Audio()),
    ):
        info = PoolInfo(form, CLASSES, "label", total=3, selected=1)
        assert as_read(card_features(pa.schema({name: stored}), info)) == {name: feature}


@pytest.mark.parametrize(
    ("rows", "category"), [(0, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (200_000, "100K<n<1M")]
)
def test_size_categories(rows, category):
    assert size_of(rows) == category
    assert size_of(3_000_000) == "1M<n<10M"


def test_task_categories():
    assert {TASKS[form] for form in SampleForm} == {
        "image-classification",
        "audio-classification",
        "text-classification",
        "tabular-classification",
    }


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
values = st.recursive(
    text | st.integers() | st.booleans() | st.none(),
    lambda inner: st.dictionaries(text, inner, max_size=2),
    max_leaves=3,
)


def read(written):
    assert written.startswith("---\n")
    assert written.endswith("\n---\n")
    return yaml.safe_load(written.removeprefix("---\n").removesuffix("---\n"))


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        text,
        values
        | st.lists(text, max_size=2)
        | st.lists(st.dictionaries(text, values, min_size=1, max_size=2), max_size=2),
        max_size=3,
    )
)
def test_front_matter_round_trip(value):
    assert (read(front_matter(value)) or {}) == value


@pytest.mark.parametrize(
    "word", ["no", "Yes", "on", "null", "~", "1e3", "0x1F", "1:30", "- a", "a: b", "a #b", "|", "---"]
)
def test_front_matter_keeps_text_that_looks_like_other_yaml(word):
    assert read(front_matter({word: [word], "a": word})) == {word: [word], "a": word}
