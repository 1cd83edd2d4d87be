"""Which column belongs to which label: by name, by position, or by an order that a note states."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import synthsieve
from synthsieve.data.labels import read_labels
from synthsieve.errors import SelectionError
from synthsieve.selection import validation
from tests.errors import raises

GENERATOR = np.random.default_rng(0)
NAMES = ("dog", "cat", "ape")
CODES = GENERATOR.integers(0, 3, 120)
LOGITS = GENERATOR.normal(size=(120, 3)) + 20.0 * np.eye(3)[CODES]  # the classifier is right about every row
TEXT = np.array(NAMES)[CODES]


def survivors(labels, logits, **options):
    """How many rows the classifier is found to agree with, and the notes on columns."""
    chosen = synthsieve.select(labels=labels, logits=logits, require_label=True, **options)
    notes = tuple(note for note in chosen.notes if "one pick stands for" not in note)
    return chosen.num_rows - len(chosen.rejected), notes


class LikePolars:
    """What the selection uses of a polars frame: text as names of columns, and `to_numpy`."""

    def __init__(self, frame):
        self.columns, self._values = [str(name) for name in frame.columns], frame.to_numpy()

    def to_numpy(self):
        return self._values


FRAME = pd.DataFrame(LOGITS, columns=NAMES)
NAMED = {
    "pandas": (TEXT, FRAME),
    "another order": (TEXT, FRAME[["cat", "ape", "dog"]]),
    "Arrow": (TEXT, pa.table(FRAME)),
    "polars": (TEXT, LikePolars(FRAME)),
    "nullable": (TEXT, FRAME.astype("Float64")),
    "a prefix": (TEXT, FRAME.add_prefix("logit_")),
    "a class without rows": (TEXT, FRAME.assign(bee=-50.0)[["bee", *NAMES]]),
    "numbers": (CODES, pd.DataFrame(LOGITS, columns=[0, 1, 2])[[2, 0, 1]]),
    "numbers as text": (CODES, pd.DataFrame(LOGITS, columns=["p0", "p1", "p2"])[["p2", "p0", "p1"]]),
    "numbered text": (CODES.astype(str), pd.DataFrame(LOGITS, columns=[0, 1, 2])[[2, 0, 1]]),
    "truth": (CODES == 1, pd.DataFrame({True: LOGITS[:, 1], False: LOGITS[:, [0, 2]].max(axis=1)})),
}


@pytest.mark.parametrize("name", NAMED)
def test_columns_are_matched_to_labels_by_name(name):
    labels, logits = NAMED[name]
    count, notes = survivors(labels, logits)
    assert count == 120
    assert any("by name" in note for note in notes)


POSITIONAL = {
    "default names": (CODES, pd.DataFrame(LOGITS)),
    "numbered": (CODES, pd.DataFrame(LOGITS, columns=["logit_0", "logit_1", "logit_2"])),
    "numbered from one": (CODES, pd.DataFrame(LOGITS, columns=["p1", "p2", "p3"])),
    "an array": (CODES, LOGITS),
    "categories that are positions": (pd.Categorical(CODES), LOGITS),
}


@pytest.mark.parametrize("name", POSITIONAL)
def test_numbered_columns_are_used_by_position(name):
    count, notes = survivors(*POSITIONAL[name])
    assert count == 120
    assert notes == ()


ASSUMED = {
    "sorted text": (TEXT, LOGITS[:, [2, 1, 0]], "'ape', 'cat', 'dog'"),
    "text that numbers the columns": (TEXT, pd.DataFrame(LOGITS[:, [2, 1, 0]]), "'ape', 'cat', 'dog'"),
    "categories": (pd.Categorical(TEXT, categories=NAMES), LOGITS, "'dog', 'cat', 'ape'"),
    "a series of categories": (pd.Series(TEXT).astype(pd.CategoricalDtype(NAMES)), LOGITS, "'dog', 'cat', 'ape'"),
    "categories without rows": (
        pd.Categorical(TEXT, categories=["bee", *NAMES]),
        np.insert(LOGITS, 0, -50.0, axis=1),
        "'bee', 'dog', 'cat', 'ape'",
    ),
    "more categories than columns": (
        pd.Categorical(TEXT, categories=["bee", *NAMES]),
        LOGITS,
        "'dog', 'cat', 'ape'",
    ),
    "numbers in an order of their own": (
        pd.Categorical(CODES * 10, categories=[0, 10, 20]),
        LOGITS,
        "'0', '10', '20'",
    ),
    "an ordered Arrow dictionary": (
        pa.DictionaryArray.from_arrays(pa.array(CODES), pa.array(NAMES), ordered=True),
        LOGITS,
        "'dog', 'cat', 'ape'",
    ),
    "numbers beside named columns": (CODES, FRAME, "0 is 'dog', 1 is 'cat', 2 is 'ape'"),
}


@pytest.mark.parametrize("name", ASSUMED)
def test_assumed_order_is_noted(name):
    labels, logits, order = ASSUMED[name]
    count, notes = survivors(labels, logits)
    assert count == 120
    assert sum(order in note for note in notes) == 1


def test_numbers_as_text_are_in_numerical_order():
    codes = np.arange(110) % 11
    count, notes = survivors(codes.astype(str), np.eye(11)[codes] * 9)
    assert count == 110
    assert any("'0', '1', '2', '3'" in note for note in notes)
    texts = [str(code) for code in codes]
    assert validation.any_labels(texts).names == read_labels(np.array(texts), origin="here").classes
    assert validation.any_labels(texts).indices.tolist() == codes.tolist()


def test_categories_give_the_class_order():
    labels = pd.Categorical(TEXT, categories=["bee", *NAMES])
    chosen = synthsieve.select(labels=labels, gradients=LOGITS)
    assert chosen.classes == NAMES
    assert [figures.size for figures in chosen.figures] == np.bincount(CODES).tolist()


REFUSED = {
    "strangers": ({"labels": TEXT, "logits": FRAME.rename(columns={"dog": "fox"})}, "column-names"),
    "numbers that do not count up": ({"labels": TEXT, "logits": FRAME.set_axis([5, 3, 4], axis=1)}, "column-names"),
    "classes in another order": (
        {"labels": TEXT, "logits": FRAME, "classes": ["ape", "cat", "dog"]},
        "classes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_column_names_that_do_not_match(name):
    given, code = REFUSED[name]
    with raises(SelectionError, code):
        synthsieve.select(**given)


def test_classes_that_agree_with_the_names():
    assert survivors(TEXT, FRAME, classes=NAMES) == (120, ())
    assert survivors(TEXT, LOGITS, classes=NAMES) == (120, ())
