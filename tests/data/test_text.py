"""Sentences: reading, vocabulary, encoding, word vectors, SST-2."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.modalities.registry import fit_encoding, from_json
from synthsieve.data.modalities.text import cooccurrence, encoding
from synthsieve.data.modalities.text.encoding import (
    BOS,
    EOS,
    MAX_BYTES,
    PAD,
    UNK,
    cut_bytes,
    fit_text,
    make_tokenizer,
    read_texts,
    store_texts,
)
from synthsieve.data.registry import load
from synthsieve.errors import DataError
from tests.errors import raises
from tests.modalities import text


def encoding_of(*sentences):
    x = store_texts(sentences).x
    dataset = Dataset("texts", Kind.TEXT, ("a", "b"), Examples(x, np.arange(len(x)) % 2))
    return fit_text(dataset, np.arange(len(x))), x


def test_sentences_and_labels_of_a_table(tmp_path):
    table = pa.table({"review": ["Good day", None, "oh no"], "mood": ["up", "", "down"], "age": [1, 2, 3]})
    pq.write_table(table, tmp_path / "texts.parquet")
    dataset = load(str(tmp_path / "texts.parquet"), label="mood", text="review")
    assert dataset.kind is Kind.TEXT
    assert dataset.classes == ("down", "up")
    assert dataset.train.x.tolist() == [b"Good day", b"", b"oh no"]
    assert dataset.train.y.tolist() == [1, -1, 0]
    assert "1 of 3 texts are empty" in dataset.notes[0]


def test_text_column_of_a_csv(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text('review,mood\n"Well, no",0\nNA,\nyes,1.0\n', encoding="utf-8")
    dataset = load(str(path), label="mood", text="review")
    assert dataset.train.x.tolist() == [b"Well, no", b"NA", b"yes"]
    assert dataset.train.y.tolist() == [0, -1, 1]
    with pytest.raises(DataError, match="'review'"):
        load(str(path), label="mood", text="reveiw")
    with raises(DataError, "same-column"):
        load(str(path), label="mood", text="mood")


def test_store_texts_of_any_container():
    import pandas as pd

    expected = [b"caf\xc3\xa9", b"b", b""]
    for given in (
        ["cafe\u0301", "b", None],
        np.array(["café", "b", ""]),
        pd.Series(["café", "b ", np.nan]),
        [*pd.array(["café", "b", None], "string")],
    ):
        assert store_texts(given).x.tolist() == expected


@pytest.mark.parametrize(
    ("texts", "code"),
    [([], "no-rows"), (["", None], "empty-texts"), (["a", 3], "not-text"), ([b"\xff"], "encoding")],
)
def test_invalid_texts(texts, code):
    with raises(DataError, code):
        store_texts(texts)


def test_unusual_characters():
    stored = store_texts(["a\0b\0", "\ud800", "👍🏽"]).x
    assert stored.tolist() == [b"a b", b"?", "👍🏽".encode()]


def test_long_texts_are_cut_between_characters():
    texts = store_texts(["é" * 1500, "a"])
    assert texts.x[0] == "é".encode() * (MAX_BYTES // 2)
    assert "1 of 2" in texts.notes[0]
    assert cut_bytes("aé".encode(), 2) == b"a"


def test_vocabulary_order():
    encoding, x = encoding_of("b a b", "B, c a!")
    assert encoding.items(encoding.decode(np.array([[4, 5, 6, 7, 8, EOS]]))) == ["b a ! , c"]
    assert encoding.encode(x).tolist() == [[4, 5, 4, EOS, PAD, PAD], [4, 7, 8, 5, 6, EOS]]
    assert encoding.input_spec.shape == (6,)
    assert encoding.input_spec.details[:5] == (9, PAD, BOS, EOS, UNK)


def test_unknown_words():
    encoding, _ = encoding_of("a b c", "c b a")
    numbers = encoding.encode(store_texts(["a zebra", "<pad> <eos>"]).x)
    assert numbers[0].tolist() == [4, UNK, EOS, PAD]
    assert (numbers[1] == UNK).all()  # "<pad>" in a text is not padding
    assert encoding.decode(numbers[:1]).tolist() == [b"a <unk>"]
    np.testing.assert_array_equal(encoding.encode(encoding.decode(numbers[:1])), numbers[:1])


def test_sentence_without_words():
    encoding, _ = encoding_of("a b c", "c b a")
    assert encoding.encode(store_texts(["", "a"]).x)[0].tolist() == [EOS, PAD, PAD, PAD]


def test_round_trip_of_known_sentences():
    dataset = text.dataset()
    encoding = fit_encoding(dataset, np.arange(len(dataset.train)))
    numbers = encoding.encode(dataset.train.x)
    assert numbers.dtype == np.int64
    decoded = encoding.decode(numbers)
    assert encoding.items(decoded) == read_texts(dataset.train.x)
    np.testing.assert_array_equal(encoding.encode(decoded), numbers)
    assert {encoding.decode(numbers[:k]).dtype for k in (1, 7, 120)} == {decoded.dtype}  # blocks fit into one array


def test_only_training_rows_are_used():
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


def test_json_and_determinism():
    dataset = text.dataset()
    rows = np.arange(100)
    encoding = fit_encoding(dataset, rows)
    written = json.dumps(encoding.to_json())
    assert json.dumps(fit_encoding(dataset, rows).to_json()) == written
    again = from_json(json.loads(written))
    assert again.input_spec == encoding.input_spec
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
def test_damaged_encoding(damage):
    encoding, _ = encoding_of("a b c", "c b a")
    with raises(DataError, "damaged-encoding"):
        from_json(encoding.to_json() | damage)


def test_vocabulary_with_gaps():
    encoding, _ = encoding_of("a b c", "c b a")
    value = encoding.to_json()
    tokenizer = json.loads(value["tokenizer"])
    tokenizer["model"]["vocab"]["c"] = 99
    with raises(DataError, "damaged-encoding"):
        from_json(value | {"tokenizer": json.dumps(tokenizer)})


def test_vocabulary_without_words():
    dataset = Dataset("texts", Kind.TEXT, ("a", "b"), Examples(np.array([b"", b""]), np.array([0, 1])))
    with raises(DataError, "empty-texts"):
        fit_text(dataset, np.arange(2))
    with raises(DataError, "no-training-rows"):
        fit_text(dataset, np.arange(0))


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with raises(DataError, "missing-package"):
        encoding.make_tokenizer(())


def test_count_pairs(monkeypatch):
    monkeypatch.setattr(cooccurrence, "WINDOW", 2)
    monkeypatch.setattr(cooccurrence, "BLOCK", 1)
    counts = cooccurrence.count_pairs(np.array([[0, 1, 2, 0], [1, -1, 2, -1]]), 3).toarray()
    # first: 01, 12, 20, 02, 10; second: 12
    np.testing.assert_array_equal(counts, [[0, 2, 2], [2, 0, 2], [2, 2, 0]])


def test_positive_information(monkeypatch):
    monkeypatch.setattr(cooccurrence, "SMOOTHING", 1.0)
    counts = np.array([[0.0, 3, 1], [3, 0, 0], [1, 0, 0]])
    from scipy import sparse

    found = cooccurrence.positive_information(sparse.csr_array(counts)).toarray()
    p, each = counts / 8, counts.sum(axis=1) / 8
    with np.errstate(divide="ignore"):
        wanted = np.maximum(0, np.log(p / np.outer(each, each)))
    np.testing.assert_allclose(found, wanted)


def test_word_vectors_of_similar_words():
    rng = np.random.default_rng(0)
    # 0 and 1 occur with 4 to 6, 2 and 3 with 7 to 9; 10 occurs alone.
    first = np.stack([rng.integers(0, 2, 300), rng.integers(4, 7, 300)], axis=1)
    second = np.stack([rng.integers(2, 4, 300), rng.integers(7, 10, 300)], axis=1)
    sentences = np.concatenate([first, second, [[10, -1]]])
    vectors = cooccurrence.word_vectors(sentences, 11, dimensions=4).astype(np.float64)
    unit = vectors[:4] / np.linalg.norm(vectors[:4], axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.9
    assert unit[2] @ unit[3] > 0.9
    assert unit[0] @ unit[2] < 0.1
    assert (vectors[10] == 0).all()
    share = (sentences == 0).sum() / (sentences >= 0).sum()
    assert np.linalg.norm(vectors[0]) == pytest.approx(cooccurrence.RARE / (cooccurrence.RARE + share), rel=1e-5)


def test_word_vectors_without_pairs():
    assert (cooccurrence.word_vectors(np.array([[0], [1]]), 2) == 0).all()


def write_sst2(folder: Path, train="label\tsentence\n0\tso dull \n1\ta joy\n", dev="label\tcontent\n1\ta great joy\n"):
    folder.mkdir(parents=True)
    (folder / "train.tsv").write_text(train, encoding="utf-8")
    (folder / "dev.tsv").write_text(dev, encoding="utf-8")


@pytest.fixture
def _no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNTHSIEVE_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_no_cache")
def test_sst2(tmp_path):
    write_sst2(tmp_path / "sst2", train="sentence\tlabel\nso dull \t0\na joy\t1\n")
    for folder in (tmp_path, tmp_path / "sst2"):
        dataset = load("sst2", data_dir=folder)
        assert dataset.classes == ("negative", "positive")
        assert dataset.train.x.tolist() == [b"so dull", b"a joy"]
        assert dataset.train.y.tolist() == [0, 1]
        assert dataset.test.x.tolist() == [b"a great joy"]


@pytest.mark.usefixtures("_no_cache")
@pytest.mark.parametrize(
    ("train", "code"),
    [
        ("0\tso dull\n", "missing-column"),
        ("label\tsentence\n0\tso\tdull\n", "damaged-file"),
        ("label\tsentence\n2\tso dull\n", "unknown-class"),
    ],
)
def test_damaged_sst2(train, code, tmp_path):
    write_sst2(tmp_path / "sst2", train=train)
    with raises(DataError, code):
        load("sst2", data_dir=tmp_path)


@pytest.mark.usefixtures("_no_cache")
def test_missing_sst2(tmp_path):
    with pytest.raises(DataError, match="--data-dir"):
        load("sst2", data_dir=tmp_path)
