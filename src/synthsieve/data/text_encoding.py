"""Sentences to numbers of words and back: a vocabulary learned on the training rows, and a fixed length.

Words are lower case; a run of punctuation is a word too. What the vocabulary lacks is one word, `<unk>`.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synthsieve.data.cooccurrence import word_vectors
from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.encoding import Codec
from synthsieve.data.text import MOST_BYTES, cut_bytes, read_texts
from synthsieve.errors import DataError
from synthsieve.layout import Layout

PAD, BOS, UNK, EOS = range(4)  # the first numbers of every vocabulary
SPECIAL = ("<pad>", "<bos>", "<unk>", "<eos>")
MOST_WORDS = 8000  # of the vocabulary: the generator chooses among all of them for each word it writes
LONGEST = 32  # words of one sentence
QUANTILE = 0.99  # of the sentences' lengths, which decides the length up to that
WORD = r"\w+(?:['’-]\w+)*|[^\w\s]+"


@dataclass(frozen=True, eq=False)
class TextEncoding:
    """Words as their numbers in a vocabulary, then `<eos>`, then `<pad>` up to `length`; longer sentences are cut.

    Attributes:
        tokenizer: of the package `tokenizers`; its first four words are pad, bos, unk, eos.
        length: numbers of one encoded sentence.
        vectors: float16 (vocabulary, dimensions), where each word's embedding may begin; zeros where nothing is known.
    """

    tokenizer: Any
    length: int
    vectors: np.ndarray

    @property
    def layout(self) -> Layout:
        """With the size of the vocabulary, pad, bos, eos, unk, and the vectors as base64 of float16."""
        details = (self.tokenizer.get_vocab_size(), PAD, BOS, EOS, UNK, _as_text(self.vectors))
        return Layout(Kind.TEXT, (self.length,), details)

    @property
    def longest_text(self) -> int:
        """Bytes of the longest sentence that `decode` can give; every decoded array has that width."""
        longest = max(len(word.encode()) for word in self.tokenizer.get_vocab())
        return min(MOST_BYTES, self.length * (longest + 1))

    def encode(self, x: np.ndarray) -> np.ndarray:
        """UTF-8 bytes (n,) -> int64 (n, length)."""
        if x.ndim != 1 or x.dtype.kind != "S":
            raise DataError(f"texts to encode must be UTF-8 bytes (n,), but came as {x.dtype} {x.shape}")
        encoded = np.full((len(x), self.length), PAD, dtype=np.int64)
        for row, text in enumerate(read_texts(x)):
            # One by one: a batch would wake the tokenizer's own threads, beside those the user allowed.
            words = [*self.tokenizer.encode(text).ids, EOS][: self.length]
            encoded[row, : len(words)] = words
        return encoded

    def decode(self, x: np.ndarray) -> np.ndarray:
        """int64 (n, length) -> UTF-8 bytes (n,): the words before `<eos>`, with a space between each two."""
        if x.shape[1:] != (self.length,):
            raise DataError(f"encoded texts must have shape (n, {self.length}), but came with {x.shape}")
        words = {number: word for word, number in self.tokenizer.get_vocab().items()}
        texts = []
        for row in x.tolist():
            end = next((place for place, number in enumerate(row) if number in (EOS, PAD)), len(row))
            text = " ".join(words[number] for number in row[:end] if number != BOS)
            texts.append(cut_bytes(text.encode(), self.longest_text))
        return np.array(texts, dtype=f"S{self.longest_text}")

    def items(self, x: np.ndarray) -> list[str]:
        """The texts as str."""
        return read_texts(x)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": Kind.TEXT.value,
            "length": self.length,
            "tokenizer": self.tokenizer.to_str(),
            "vectors": _as_text(self.vectors),
        }


def fit_text(dataset: Dataset, rows: np.ndarray) -> TextEncoding:
    """Vocabulary and length of the sentences `rows` alone; the same rows give the same vocabulary."""
    if len(rows) == 0:
        raise DataError("a vocabulary needs at least one training sentence, but there is none")
    tokenizer = make_tokenizer(())
    counts: Counter[str] = Counter()
    lengths = []
    for text in read_texts(dataset.train.x[rows]):
        words = split_words(tokenizer, text)
        counts.update(words)
        lengths.append(len(words))
    if not counts:
        raise DataError("a vocabulary needs training sentences with words, but all of them are empty")
    ranked = sorted(counts, key=lambda word: (-counts[word], word))  # by name at a tie: no order of a hash
    length = int(np.clip(np.ceil(np.quantile(lengths, QUANTILE)) + 1, 2, LONGEST))
    tokenizer = make_tokenizer(ranked[: MOST_WORDS - len(SPECIAL)])
    num_words = tokenizer.get_vocab_size()
    encoding = TextEncoding(tokenizer, length, np.zeros((num_words, 1), dtype="<f2"))
    sentences = encoding.encode(dataset.train.x[rows])
    sentences[sentences < len(SPECIAL)] = -1
    return replace(encoding, vectors=word_vectors(sentences, num_words).astype("<f2"))


def make_tokenizer(words: Iterable[str]) -> Any:
    """A word-level tokenizer of these words, in order, after pad, bos, unk and eos."""
    tokenizers = _package()
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=SPECIAL[UNK]))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    pattern = tokenizers.Regex(WORD)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(pattern, behavior="removed", invert=True)
    # A drawn sentence may hold <unk>, which must be read back whole. The others stay apart as "<", "pad", ">".
    tokenizer.add_special_tokens([SPECIAL[UNK]])
    return tokenizer


def split_words(tokenizer: Any, text: str) -> list[str]:
    """The words of a text, known to the vocabulary or not."""
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))]


def _read_text(value: dict[str, Any]) -> TextEncoding:
    text, length = value["tokenizer"], int(value["length"])
    if not isinstance(text, str) or not 1 <= length <= MOST_BYTES:
        raise ValueError("a tokenizer's JSON and a length are needed")
    try:
        tokenizer = _package().Tokenizer.from_str(text)
    except DataError:
        raise
    except Exception as error:  # tokenizers raises nothing narrower
        raise ValueError(f"its tokenizer cannot be read ({error})") from None
    found = tuple(tokenizer.id_to_token(number) for number in range(len(SPECIAL)))
    numbers = sorted(tokenizer.get_vocab().values())
    if found != SPECIAL or numbers != list(range(len(numbers))):
        raise ValueError(f"its vocabulary must be numbered without gaps and begin with {', '.join(SPECIAL)}")
    vectors = np.frombuffer(base64.b64decode(value["vectors"], validate=True), dtype="<f2").reshape(len(numbers), -1)
    if not vectors.shape[1] or not np.isfinite(vectors).all():
        raise ValueError("its vectors of words must be finite numbers, at least one for each word")
    return TextEncoding(tokenizer, length, vectors)


def _as_text(vectors: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(vectors).tobytes()).decode("ascii")


def _package() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise DataError("text needs the package tokenizers: pip install 'synthsieve[text]'") from None
    return tokenizers


CODEC = Codec(fit_text, _read_text)
