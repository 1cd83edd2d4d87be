"""The networks of each modality, and `register_modality` for those of the user."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from synthsieve.data.dataset import Dataset, InputSpec
from synthsieve.data.modalities.encoding import Codec, Encoding
from synthsieve.data.modalities.registry import register_encoding
from synthsieve.errors import ConfigError
from synthsieve.models.modalities import ARRAYS, MakeEncoder, MakeGenerator, Networks

_NETWORKS: dict[str, Networks | str] = {  # a module's name: its `NETWORKS` is imported at the first use
    "image": ARRAYS,
    "vector": ARRAYS,
    "sound": ARRAYS,
    "table": "synthsieve.models.columns",
    "text": "synthsieve.models.sentences",
}


def register_modality(
    kind: str,
    *,
    fit_encoding: Callable[[Dataset, np.ndarray], Encoding],
    read_encoding: Callable[[dict[str, Any]], Encoding],
    make_encoder: MakeEncoder,
    make_generator: MakeGenerator,
) -> None:
    """Add a modality: the encoding and the networks for datasets of `kind`.

    Args:
        kind: the name in `Dataset.kind`, `InputSpec.kind` and the encoding's JSON; it must not be registered yet.
        fit_encoding: dataset and training rows -> an `Encoding`, fitted on those rows only.
        read_encoding: the result of its `to_json` -> the same encoding.
        make_encoder: settings, input_spec, tower, rng -> the network of q(z given x).
        make_generator: settings, input_spec, rng -> a `Generator`, p(x given z).

    Call it at the top level of a module: worker processes import that module again. For the command line, declare a
    function that calls it as an entry point named `kind` of the group `synthsieve.modalities`.
    """
    register_encoding(kind, Codec(fit_encoding, read_encoding))
    _NETWORKS[kind] = Networks(make_encoder, make_generator)


def networks_of(input_spec: InputSpec) -> Networks:
    """The networks for examples of this kind."""
    found = _NETWORKS.get(input_spec.kind)
    if found is None:
        raise ConfigError(
            f"no networks are registered for {input_spec.kind!r}, only for {', '.join(sorted(_NETWORKS))}: "
            "call register_modality",
            code="unknown-modality",
        )
    networks: Networks = import_module(found).NETWORKS if isinstance(found, str) else found
    return networks
