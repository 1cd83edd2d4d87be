"""Sentences from a table column or a list of texts, stored as an array of UTF-8 bytes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.formats.table import labels_of, python_values
from synthsieve.data.registry import Request
from synthsieve.errors import DataError

MAX_BYTES = 2000  # of one text: all items of the array are as long as the longest


@dataclass(frozen=True)
class Texts:
    """Stored texts.

    Attributes:
        x: UTF-8 bytes (n,), of dtype S; a missing text is empty.
        notes: messages for the user: how many were truncated, how many are empty.
    """

    x: np.ndarray
    notes: tuple[str, ...]


def load_text(table: Any, request: Request) -> Dataset:
    """The sentences of the column `request.text` of a pyarrow table, with the labels of `request.label`.

    An empty label means unlabelled, a missing sentence is empty.
    """
    path, text, label = request.path, str(request.text), str(request.label)
    if text == label:
        raise DataError(f"{path}: text and label must be two columns, but both are {text!r}", code="same-column")
    origin = f"{path.name}, column {text!r}"
    texts = store_texts(python_values(table.column(text), origin=origin), origin=origin)
    labels = labels_of(table, label, origin=path.name)
    notes = labels.notes + texts.notes
    return Dataset(path.stem, Kind.TEXT, labels.classes, Examples(texts.x, labels.y), notes=notes)


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
                message = f"{origin}: every text must be UTF-8, but row {row} is not: convert it"
                raise DataError(message, code="encoding") from None
        if not isinstance(text, str):
            raise DataError(
                f"{origin}: every text must be a str, but row {row} is {type(text).__name__}: convert it",
                code="not-text",
            )
        full = _normalize(text).encode("utf-8", errors="replace")  # lone surrogates cannot be encoded
        stored.append(cut_bytes(full, MAX_BYTES))
        cut += len(full) > MAX_BYTES
        empty += not stored[-1]
    if not stored:
        raise DataError(f"{origin}: at least one row is needed", code="no-rows")
    if some_words and empty == len(stored):
        raise DataError(f"{origin}: all {empty} texts are empty: use another column", code="empty-texts")
    notes = []
    if cut:
        notes.append(f"{origin}: {cut:,} of {len(stored):,} texts were truncated to {MAX_BYTES:,} bytes")
    if empty:
        notes.append(f"{origin}: {empty:,} of {len(stored):,} texts are empty")
    return Texts(np.array(stored, dtype=np.bytes_), tuple(notes))


def read_texts(x: np.ndarray) -> list[str]:
    """Stored texts, UTF-8 bytes (n,), as str."""
    return [text.decode("utf-8", errors="replace") for text in x.tolist()]


def cut_bytes(text: bytes, most: int) -> bytes:
    """At most `most` bytes of UTF-8, cut between two characters."""
    return text if len(text) <= most else text[:most].decode("utf-8", errors="ignore").encode("utf-8")


def _normalize(text: str) -> str:
    """Unicode NFC, without null bytes, which numpy strips at the end of a text."""
    return unicodedata.normalize("NFC", text).replace("\0", " ").strip()


def is_missing(text: Any) -> bool:
    """Whether a text is None, NaN, or pandas' NA."""
    return text is None or type(text).__name__ == "NAType" or (isinstance(text, float) and text != text)
