"""Sentences, stored as UTF-8 bytes, and their encoding as word indices of a vocabulary, in a fixed length.

Words are lower case; a run of punctuation is a word too. Words outside the vocabulary are `<unk>`.
"""

from __future__ import annotations

import base64
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synthsieve.data.checks import check
from synthsieve.data.dataset import Dataset, InputSpec, Kind
from synthsieve.data.modalities.encoding import Codec, check_rows, check_shape
from synthsieve.data.modalities.text.cooccurrence import word_vectors
from synthsieve.errors import DataError

MAX_BYTES = 2000  # of one text: all items of the array are as long as the longest
PAD, BOS, UNK, EOS = range(4)  # the first indices of every vocabulary
SPECIAL = ("<pad>", "<bos>", "<unk>", "<eos>")
MAX_WORDS = 8000  # of the vocabulary
MAX_LENGTH = 32  # words of one sentence
QUANTILE = 0.99  # of the sentence lengths: the encoded length, up to MAX_LENGTH
WORD = r"\w+(?:['’-]\w+)*|[^\w\s]+"


@dataclass(frozen=True)
class Texts:
    """Stored texts."""

    x: np.ndarray  # UTF-8 bytes (n,), of dtype S; a missing text is empty
    notes: tuple[str, ...]  # messages for the user: how many were truncated, how many are empty


def store_texts(texts: Iterable[Any], *, origin: str = "texts", some_words: bool = True) -> Texts:
    """Store the texts of any iterable of str (a list, an array, a pandas Series).

    None, NaN and pandas' NA are empty texts. Texts of more than 2,000 bytes are truncated. With `some_words` not all of
    them may be empty.
    """
    stored, cut, empty = [], 0, 0
    for row, text in enumerate(texts):
        if is_missing(text):
            text = ""
        if isinstance(text, bytes):
            try:
                text = text.decode("utf-8")
            except UnicodeDecodeError:
                problem = f"every text must be UTF-8, but row {row} is not: convert it"
                raise DataError(f"{origin}: {problem}", code="encoding") from None
        if not isinstance(text, str):
            problem = f"every text must be a str, but row {row} is {type(text).__name__}: convert it"
            raise DataError(f"{origin}: {problem}", code="not-text")
        # NFC, without null bytes, which numpy strips at the end; lone surrogates cannot be encoded.
        full = unicodedata.normalize("NFC", text).replace("\0", " ").strip().encode("utf-8", errors="replace")
        stored.append(cut_bytes(full, MAX_BYTES))
        cut += len(full) > MAX_BYTES
        empty += not stored[-1]
    check(stored, f"{origin}: at least one row is needed", "no-rows")
    all_empty = some_words and empty == len(stored)
    check(not all_empty, f"{origin}: all {empty} texts are empty: use another column", "empty-texts")
    counts = {f"were truncated to {MAX_BYTES:,} bytes": cut, "are empty": empty}
    notes = [f"{origin}: {count:,} of {len(stored):,} texts {what}" for what, count in counts.items() if count]
    return Texts(np.array(stored, dtype=np.bytes_), tuple(notes))


def read_texts(x: np.ndarray) -> list[str]:
    """Stored texts, UTF-8 bytes (n,), as str."""
    return [text.decode("utf-8", errors="replace") for text in x.tolist()]


def cut_bytes(text: bytes, most: int) -> bytes:
    """At most `most` bytes of UTF-8, cut between two characters."""
    return text if len(text) <= most else text[:most].decode("utf-8", errors="ignore").encode("utf-8")


def is_missing(text: Any) -> bool:
    """Whether a text is None, NaN, or pandas' NA."""
    return text is None or type(text).__name__ == "NAType" or (isinstance(text, float) and text != text)


@dataclass(frozen=True, eq=False)
class TextEncoding:
    """Word indices, then `<eos>`, then `<pad>` up to `length`; longer sentences are truncated."""

    tokenizer: Any  # of the package `tokenizers`; its first four words are pad, bos, unk, eos
    length: int  # of one encoded sentence
    vectors: np.ndarray  # float16 (vocabulary, dimensions), initial word embeddings; zeros for unknown ones

    @property
    def input_spec(self) -> InputSpec:
        """Details: the size of the vocabulary, pad, bos, eos, unk, and the vectors as base64 of float16."""
        details = (self.tokenizer.get_vocab_size(), PAD, BOS, EOS, UNK, _base64(self.vectors))
        return InputSpec(Kind.TEXT, (self.length,), details)

    @property
    def max_bytes(self) -> int:
        """Bytes of the longest sentence that `decode` can return: the item size of decoded arrays."""
        longest = max(len(word.encode()) for word in self.tokenizer.get_vocab())
        return min(MAX_BYTES, self.length * (longest + 1))

    def encode(self, x: np.ndarray) -> np.ndarray:
        """UTF-8 bytes (n,) -> int64 (n, length)."""
        valid = x.ndim == 1 and x.dtype.kind == "S"
        check(valid, f"texts must be UTF-8 bytes (n,), got {x.dtype} {x.shape}", "dtype")
        encoded = np.full((len(x), self.length), PAD, dtype=np.int64)
        for row, text in enumerate(read_texts(x)):
            # One by one: encode_batch would start threads of its own.
            words = [*self.tokenizer.encode(text).ids, EOS][: self.length]
            encoded[row, : len(words)] = words
        return encoded

    def decode(self, x: np.ndarray) -> np.ndarray:
        """int64 (n, length) -> UTF-8 bytes (n,): the words before `<eos>`, joined by spaces."""
        check_shape(x, (self.length,))
        words = {index: word for word, index in self.tokenizer.get_vocab().items()}
        texts = []
        for row in x.tolist():
            end = next((i for i, index in enumerate(row) if index in (EOS, PAD)), len(row))
            text = " ".join(words[index] for index in row[:end] if index != BOS)
            texts.append(cut_bytes(text.encode(), self.max_bytes))
        return np.array(texts, dtype=f"S{self.max_bytes}")

    def items(self, x: np.ndarray) -> list[str]:
        """The texts as str."""
        return read_texts(x)

    def to_json(self) -> dict[str, Any]:
        stored = {"tokenizer": self.tokenizer.to_str(), "vectors": _base64(self.vectors)}
        return {"kind": Kind.TEXT.value, "length": self.length, **stored}


def fit_text(dataset: Dataset, rows: np.ndarray) -> TextEncoding:
    """The encoding fitted on the sentences `rows`: deterministic."""
    check_rows(rows)
    tokenizer = make_tokenizer(())
    counts: Counter[str] = Counter()
    lengths = []
    for text in read_texts(dataset.train.x[rows]):
        words = split_words(tokenizer, text)
        counts.update(words)
        lengths.append(len(words))
    check(counts, "all training sentences are empty: a vocabulary needs words", "empty-texts")
    ranked = sorted(counts, key=lambda word: (-counts[word], word))  # ties by name: deterministic
    length = int(np.clip(np.ceil(np.quantile(lengths, QUANTILE)) + 1, 2, MAX_LENGTH))
    tokenizer = make_tokenizer(ranked[: MAX_WORDS - len(SPECIAL)])
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
    # Sampled sentences may contain <unk>, which is one token. The others are read as "<", "pad", ">".
    tokenizer.add_special_tokens([SPECIAL[UNK]])
    return tokenizer


def split_words(tokenizer: Any, text: str) -> list[str]:
    """The words of a text, in the vocabulary or not."""
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))]


def _read_text(value: dict[str, Any]) -> TextEncoding:
    text, length = value["tokenizer"], int(value["length"])
    if not isinstance(text, str) or not 1 <= length <= MAX_BYTES:
        raise ValueError("invalid tokenizer or length")
    try:
        tokenizer = _package().Tokenizer.from_str(text)
    except DataError:
        raise
    except Exception as error:  # tokenizers raises nothing narrower
        raise ValueError(f"invalid tokenizer ({error})") from None
    found = tuple(tokenizer.id_to_token(number) for number in range(len(SPECIAL)))
    numbers = sorted(tokenizer.get_vocab().values())
    if found != SPECIAL or numbers != list(range(len(numbers))):
        raise ValueError(f"the vocabulary must start with {', '.join(SPECIAL)} and have no gaps")
    vectors = np.frombuffer(base64.b64decode(value["vectors"], validate=True), dtype="<f2").reshape(len(numbers), -1)
    if not vectors.shape[1] or not np.isfinite(vectors).all():
        raise ValueError("word vectors must be finite, with at least one number each")
    return TextEncoding(tokenizer, length, vectors)


def _base64(vectors: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(vectors).tobytes()).decode("ascii")


def _package() -> Any:
    try:
        import tokenizers
    except ImportError:
        problem = "text needs the package tokenizers: pip install 'synthsieve[text]'"
        raise DataError(problem, code="missing-package") from None
    return tokenizers


CODEC = Codec(fit_text, _read_text)
