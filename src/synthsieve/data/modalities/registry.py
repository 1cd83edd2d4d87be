"""The encoding of each modality; `synthsieve.register_modality` adds another one."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from synthsieve.data.checks import check
from synthsieve.data.dataset import Dataset, Kind
from synthsieve.data.modalities.encoding import IMAGE, VECTOR, Codec, Encoding
from synthsieve.errors import DataError

ENTRY_POINTS = "synthsieve.modalities"
_CODECS: dict[str, Codec | str] = {  # a module's name: its `CODEC` is imported at the first use
    Kind.IMAGE: IMAGE,
    Kind.VECTOR: VECTOR,
    Kind.TABLE: "synthsieve.data.modalities.table.encoding",
    Kind.SOUND: "synthsieve.data.modalities.sound.encoding",
    Kind.TEXT: "synthsieve.data.modalities.text.encoding",
}


def register_encoding(kind: str, codec: Codec) -> None:
    """Add the encoding of a modality; its name must not be registered yet."""
    is_new = kind not in _CODECS
    check(is_new, f"a modality named {kind!r} is registered already: choose another name", "name-taken")
    _CODECS[kind] = codec


def fit_encoding(dataset: Dataset, train_indices: np.ndarray) -> Encoding:
    """The encoding of `dataset`, fitted on the rows `train_indices` only (labelled and unlabelled, not held out)."""
    return _codec(dataset.kind).fit(dataset, train_indices)


def from_json(value: dict[str, Any]) -> Encoding:
    """The encoding from `to_json`."""
    try:
        return _codec(value["kind"]).read(value)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        problem = f"a stored encoding is damaged or of a later version ({error!r})"
        raise DataError(problem, code="damaged-encoding") from None


def _codec(kind: str) -> Codec:
    if kind not in _CODECS:
        for point in entry_points(group=ENTRY_POINTS, name=kind):
            point.load()()  # it calls register_modality
    known = f"only {', '.join(sorted(_CODECS))}: call register_modality first"
    check(kind in _CODECS, f"no modality {kind!r} is registered, {known}", "unknown-modality")
    found = _CODECS[kind]
    codec: Codec = import_module(found).CODEC if isinstance(found, str) else found
    return codec
