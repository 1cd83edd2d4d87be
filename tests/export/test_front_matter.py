"""The head of a card is YAML that says what it was given, whatever that is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthsieve.export.front_matter import front_matter

yaml = pytest.importorskip("yaml")

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
def test_any_text_comes_back(value):
    assert (read(front_matter(value)) or {}) == value


@pytest.mark.parametrize(
    "word", ["no", "Yes", "on", "null", "~", "1e3", "0x1F", "1:30", "- a", "a: b", "a #b", "|", "---"]
)
def test_words_that_yaml_reads_otherwise_stay_text(word):
    assert read(front_matter({word: [word], "a": word})) == {word: [word], "a": word}
