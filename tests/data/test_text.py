"""Sentences: reading them, the vocabulary, and the way to numbers and back."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.modalities import text

from synthsieve.data import cooccurrence, text_encoding
from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.encoding import fit_encoding, from_json
from synthsieve.data.sources import Request, load
from synthsieve.data.text import MOST_BYTES, cut_bytes, load_text, read_texts, store_texts
from synthsieve.data.text_encoding import BOS, EOS, PAD, UNK, fit_text, make_tokenizer
from synthsieve.errors import DataError


def encoding_of(*sentences):
    x = store_texts(sentences).x
    dataset = Dataset("mine", Kind.TEXT, ("a", "b"), Examples(x, np.arange(len(x)) % 2))
    return fit_text(dataset, np.arange(len(x))), x


def test_a_table_gives_sentences_and_labels():
    table = pa.table({"said": ["Good day", None, "oh no"], "mood": ["up", "", "down"], "age": [1, 2, 3]})
    dataset = load_text(table, Request("mine.csv", text="said", label="mood"))
    assert dataset.kind is Kind.TEXT
    assert dataset.classes == ("down", "up")
    assert dataset.train.x.tolist() == [b"Good day", b"", b"oh no"]
    assert dataset.train.y.tolist() == [1, -1, 0]
    assert "1 of 3 texts are empty" in dataset.notes[0]


def test_a_csv_is_read_with_its_text_column(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text('said,mood\n"Well, no",0\nNA,\nyes,1.0\n', encoding="utf-8")
    dataset = load(str(path), label="mood", text="said")
    assert dataset.train.x.tolist() == [b"Well, no", b"NA", b"yes"]
    assert dataset.train.y.tolist() == [0, -1, 1]
    with pytest.raises(DataError, match="no text column 'sayd': did you mean 'said'"):
        load(str(path), label="mood", text="sayd")
    with pytest.raises(DataError, match="two columns, but both are 'mood'"):
        load(str(path), label="mood", text="mood")


def test_any_series_of_text_is_stored():
    import pandas as pd

    wanted = [b"caf\xc3\xa9", b"b", b""]
    for given in (
        ["cafe\u0301", "b", None],
        np.array(["café", "b", ""]),
        pd.Series(["café", "b ", np.nan]),
        [*pd.array(["café", "b", None], "string")],
    ):
        assert store_texts(given).x.tolist() == wanted


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        ([], "at least one row"),
        (["", None], "all 2 are empty"),
        (["a", 3], "row 1 holds int"),
        ([b"\xff"], "row 0 is not"),
    ],
)
def test_what_is_no_text_is_refused(texts, complaint):
    with pytest.raises(DataError, match=complaint):
        store_texts(texts)


def test_odd_characters_survive_or_are_replaced():
    stored = store_texts(["a\0b\0", "\ud800", "👍🏽"]).x
    assert stored.tolist() == [b"a b", b"?", "👍🏽".encode()]


def test_a_long_text_is_cut_between_characters():
    texts = store_texts(["é" * 1500, "a"])
    assert texts.x[0] == "é".encode() * (MOST_BYTES // 2)
    assert "1 of 2 texts were cut to their first 2,000 bytes" in texts.notes[0]
    assert cut_bytes("aé".encode(), 2) == b"a"


def test_words_are_numbered_by_frequency_then_by_name():
    encoding, x = encoding_of("b a b", "B, c a!")
    assert encoding.items(encoding.decode(np.array([[4, 5, 6, 7, 8, EOS]]))) == ["b a ! , c"]
    assert encoding.encode(x).tolist() == [[4, 5, 4, EOS, PAD, PAD], [4, 7, 8, 5, 6, EOS]]
    assert encoding.layout.shape == (6,)
    assert encoding.layout.details[:5] == (9, PAD, BOS, EOS, UNK)


def test_unknown_words_are_one_word_and_come_back_as_it():
    encoding, _ = encoding_of("a b c", "c b a")
    numbers = encoding.encode(store_texts(["a zebra", "<pad> <eos>"]).x)
    assert numbers[0].tolist() == [4, UNK, EOS, PAD]
    assert (numbers[1] == UNK).all()  # a reader's "<pad>" is no padding
    assert encoding.decode(numbers[:1]).tolist() == [b"a <unk>"]
    np.testing.assert_array_equal(encoding.encode(encoding.decode(numbers[:1])), numbers[:1])


def test_a_sentence_without_words_ends_at_once():
    encoding, _ = encoding_of("a b c", "c b a")
    assert encoding.encode(store_texts(["", "a"]).x)[0].tolist() == [EOS, PAD, PAD, PAD]


def test_known_sentences_make_the_round_trip():
    dataset = text.dataset()
    encoding = fit_encoding(dataset, np.arange(len(dataset.train)))
    numbers = encoding.encode(dataset.train.x)
    assert numbers.dtype == np.int64
    decoded = encoding.decode(numbers)
    assert encoding.items(decoded) == read_texts(dataset.train.x)
    np.testing.assert_array_equal(encoding.encode(decoded), numbers)
    assert {encoding.decode(numbers[:k]).dtype for k in (1, 7, 120)} == {decoded.dtype}  # blocks fit into one array


def test_only_training_rows_count():
    dataset = text.dataset()
    rows = np.arange(40)
    changed = Dataset(
        dataset.name,
        dataset.kind,
        dataset.classes,
        Examples(np.concatenate([dataset.train.x[:40], store_texts(["zebra crossing"] * 80).x]), dataset.train.y),
    )
    first, second = fit_encoding(dataset, rows).to_json(), fit_encoding(changed, rows).to_json()
    assert first == second


def test_the_same_rows_give_the_same_bytes_and_json_gives_the_same_encoding():
    dataset = text.dataset()
    rows = np.arange(100)
    encoding = fit_encoding(dataset, rows)
    written = json.dumps(encoding.to_json())
    assert json.dumps(fit_encoding(dataset, rows).to_json()) == written
    again = from_json(json.loads(written))
    assert again.layout == encoding.layout
    assert json.dumps(again.to_json()) == written
    np.testing.assert_array_equal(again.encode(dataset.train.x), encoding.encode(dataset.train.x))


@pytest.mark.parametrize(
    "damage",
    [
        {"tokenizer": "{"},
        {"tokenizer": 3},
        {"tokenizer": make_tokenizer(["a"]).to_str()},  # fewer words than vectors
        {"length": 0},
        {"length": "x"},
        {"vectors": "%%"},
        {"vectors": ""},
        {"vectors": "AHw="},
    ],
)
def test_a_damaged_encoding_is_refused(damage):
    encoding, _ = encoding_of("a b c", "c b a")
    with pytest.raises(DataError, match="damaged"):
        from_json(encoding.to_json() | damage)


def test_a_vocabulary_with_gaps_is_refused():
    encoding, _ = encoding_of("a b c", "c b a")
    value = encoding.to_json()
    tokenizer = json.loads(value["tokenizer"])
    tokenizer["model"]["vocab"]["c"] = 99
    with pytest.raises(DataError, match="without gaps"):
        from_json(value | {"tokenizer": json.dumps(tokenizer)})


def test_without_words_there_is_no_vocabulary():
    dataset = Dataset("mine", Kind.TEXT, ("a", "b"), Examples(np.array([b"", b""]), np.array([0, 1])))
    with pytest.raises(DataError, match="all of them are empty"):
        fit_text(dataset, np.arange(2))
    with pytest.raises(DataError, match="at least one training sentence"):
        fit_text(dataset, np.arange(0))


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(DataError, match=r"pip install 'synthsieve\[text\]'"):
        text_encoding.make_tokenizer(())


def test_pairs_are_counted_on_both_sides_within_the_window(monkeypatch):
    monkeypatch.setattr(cooccurrence, "WINDOW", 2)
    monkeypatch.setattr(cooccurrence, "BLOCK", 1)
    counts = cooccurrence.count_pairs(np.array([[0, 1, 2, 0], [1, -1, 2, -1]]), 3).toarray()
    # first: 01, 12, 20, 02, 10; second: 12
    np.testing.assert_array_equal(counts, [[0, 2, 2], [2, 0, 2], [2, 2, 0]])


def test_information_is_that_of_the_formula(monkeypatch):
    monkeypatch.setattr(cooccurrence, "SMOOTHING", 1.0)
    counts = np.array([[0.0, 3, 1], [3, 0, 0], [1, 0, 0]])
    from scipy import sparse

    found = cooccurrence.positive_information(sparse.csr_array(counts)).toarray()
    p, each = counts / 8, counts.sum(axis=1) / 8
    with np.errstate(divide="ignore"):
        wanted = np.maximum(0, np.log(p / np.outer(each, each)))
    np.testing.assert_allclose(found, wanted)


def test_words_in_the_same_company_point_the_same_way():
    generator = np.random.default_rng(0)
    # 0 and 1 stand beside 4 to 6, 2 and 3 beside 7 to 9; 10 stands alone.
    first = np.stack([generator.integers(0, 2, 300), generator.integers(4, 7, 300)], axis=1)
    second = np.stack([generator.integers(2, 4, 300), generator.integers(7, 10, 300)], axis=1)
    sentences = np.concatenate([first, second, [[10, -1]]])
    vectors = cooccurrence.word_vectors(sentences, 11, dimensions=4).astype(np.float64)
    unit = vectors[:4] / np.linalg.norm(vectors[:4], axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.9
    assert unit[2] @ unit[3] > 0.9
    assert unit[0] @ unit[2] < 0.1
    assert (vectors[10] == 0).all()
    share = (sentences == 0).sum() / (sentences >= 0).sum()
    assert np.linalg.norm(vectors[0]) == pytest.approx(cooccurrence.RARE / (cooccurrence.RARE + share), rel=1e-5)


def test_words_that_never_meet_have_no_vectors():
    assert (cooccurrence.word_vectors(np.array([[0], [1]]), 2) == 0).all()


def write_sst2(folder: Path, train="label\tsentence\n0\tso dull \n1\ta joy\n", dev="label\tcontent\n1\ta great joy\n"):
    folder.mkdir(parents=True)
    (folder / "train.tsv").write_text(train, encoding="utf-8")
    (folder / "dev.tsv").write_text(dev, encoding="utf-8")


@pytest.fixture
def _no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_no_cache")
def test_sst2_is_found_and_read(tmp_path):
    write_sst2(tmp_path / "sst2", train="sentence\tlabel\nso dull \t0\na joy\t1\n")
    for folder in (tmp_path, tmp_path / "sst2"):
        dataset = load("sst2", data_dir=folder)
        assert dataset.classes == ("negative", "positive")
        assert dataset.train.x.tolist() == [b"so dull", b"a joy"]
        assert dataset.train.y.tolist() == [0, 1]
        assert dataset.test.x.tolist() == [b"a great joy"]


@pytest.mark.usefixtures("_no_cache")
@pytest.mark.parametrize(
    ("train", "complaint"),
    [
        ("0\tso dull\n", "header of two columns"),
        ("label\tsentence\n0\tso\tdull\n", "row 2 does not"),
        ("label\tsentence\n2\tso dull\n", "'2' came"),
    ],
)
def test_a_damaged_sst2_is_told_in_a_sentence(train, complaint, tmp_path):
    write_sst2(tmp_path / "sst2", train=train)
    with pytest.raises(DataError, match=complaint):
        load("sst2", data_dir=tmp_path)


@pytest.mark.usefixtures("_no_cache")
def test_sst2_that_is_not_there_says_where_to_get_it(tmp_path):
    with pytest.raises(DataError, match="--data-dir"):
        load("sst2", data_dir=tmp_path)
