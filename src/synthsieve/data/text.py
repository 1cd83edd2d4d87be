"""Sentences: one column of a table, or a list of texts, stored as UTF-8 bytes in an array without objects."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.sources import Request
from synthsieve.data.table import labels_of, python_values
from synthsieve.errors import DataError

MOST_BYTES = 2000  # of one text: an array's rows are as long as the longest of them


@dataclass(frozen=True)
class Texts:
    """Texts as they are stored.

    Attributes:
        x: UTF-8 bytes (n,), of dtype S; a missing text is an empty one.
        notes: sentences worth telling the user: how many were cut, how many are empty.
    """

    x: np.ndarray
    notes: tuple[str, ...]


def load_text(table: Any, request: Request) -> Dataset:
    """The sentences of the column `request.text` of a pyarrow table, with the labels of `request.label`.

    An empty label means unlabelled. A missing sentence is an empty one.
    """
    path, text, label = request.path, str(request.text), str(request.label)
    if text == label:
        raise DataError(f"{path}: text and label must be two columns, but both are {text!r}: name another one")
    origin = f"{path.name}, column {text!r}"
    texts = store_texts(python_values(table.column(text), origin=origin), origin=origin)
    labels = labels_of(table, label, origin=path.name)
    notes = labels.notes + texts.notes
    return Dataset(path.stem, Kind.TEXT, labels.classes, Examples(texts.x, labels.y), notes=notes)


def store_texts(texts: Iterable[Any], *, origin: str = "texts", some_words: bool = True) -> Texts:
    """Texts of any iterable (a list, an array, a pandas Series) of str, as they are stored.

    None, NaN and pandas' NA are empty texts. One of more than 2,000 bytes is cut after its last whole character.
    With `some_words` they may not all be empty.
    """
    stored, cut, empty = [], 0, 0
    for row, text in enumerate(texts):
        if is_missing(text):
            text = ""
        if isinstance(text, bytes):
            text = _decoded(text, row, origin)
        if not isinstance(text, str):
            raise DataError(
                f"{origin}: every text must be a str, but row {row} holds {type(text).__name__}: convert it"
            )
        whole = _plain(text).encode("utf-8", errors="replace")  # half a surrogate pair has no bytes
        stored.append(cut_bytes(whole, MOST_BYTES))
        cut += len(whole) > MOST_BYTES
        empty += not stored[-1]
    if not stored:
        raise DataError(f"{origin}: at least one row is needed, but none came")
    if some_words and empty == len(stored):
        raise DataError(f"{origin}: some texts must hold words, but all {empty} are empty: name another column")
    notes = []
    if cut:
        notes.append(f"{origin}: {cut:,} of {len(stored):,} texts were cut to their first {MOST_BYTES:,} bytes")
    if empty:
        notes.append(f"{origin}: {empty:,} of {len(stored):,} texts are empty; they are kept as sentences of no words")
    return Texts(np.array(stored, dtype=np.bytes_), tuple(notes))


def read_texts(x: np.ndarray) -> list[str]:
    """Stored texts, UTF-8 bytes (n,), as str."""
    return [text.decode("utf-8", errors="replace") for text in x.tolist()]


def cut_bytes(text: bytes, most: int) -> bytes:
    """The first `most` bytes of UTF-8, less a character that they would break."""
    return text if len(text) <= most else text[:most].decode("utf-8", errors="ignore").encode("utf-8")


def _plain(text: str) -> str:
    """One way to write each accent; no zero bytes, which an array of bytes would lose at the end of a text."""
    return unicodedata.normalize("NFC", text).replace("\0", " ").strip()


def is_missing(text: Any) -> bool:
    """Whether nothing is there: None, NaN, or NA of pandas, which answers no comparison."""
    return text is None or type(text).__name__ == "NAType" or (isinstance(text, float) and text != text)


def _decoded(text: bytes, row: int, origin: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{origin}: every text must be UTF-8, but row {row} is not: convert it") from None
