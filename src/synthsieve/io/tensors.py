"""Tensors with a JSON header in one safetensors file, with a checksum of both. Reading one runs no code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from synthsieve.errors import CheckpointError, SynthsieveError
from synthsieve.io.files import atomic_write, link_or_copy, parse_json

MAX_REASON = 300  # characters: a reason may quote what the file holds
SIGNATURE = ', "header_sha256": "'
INVALID = (LookupError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError)


def write_tensors(
    path: Path, header: Mapping[str, Any], tensors: dict[str, Tensor], *, previous: Path | None = None
) -> None:
    """Write tensors and `header`, atomically; what `path` held before stays at `previous`, where that is given."""
    text = signed(json.dumps({**header, "sha256": tensors_digest(tensors)}, allow_nan=False))
    with atomic_write(path) as partial:
        try:
            save_file(tensors, partial, metadata={"synthsieve": text})
        except SafetensorError as error:  # its error for a full disk
            advice = "free some disk space, check permissions, and resume from the last checkpoint"
            raise CheckpointError(f"{path} cannot be written ({error}): {advice}", code="cannot-write") from None
        if previous is not None and path.is_file():
            link_or_copy(path, previous)


def read_tensors(path: Path, expected_format: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors that `write_tensors` wrote; `expected_format` is the header's `format`."""
    if not path.is_file():
        raise CheckpointError(f"there is no file {path}", code="missing-file")
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("synthsieve", "null")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        header, digest = parse_json(text), tensors_digest(tensors)
    except (SafetensorError, OSError, *INVALID) as error:
        raise _damaged(path, f"it cannot be read: {error}") from None
    if not isinstance(header, dict) or header.get("format") != expected_format:
        raise CheckpointError(f"{path} is not a file of format {expected_format!r}", code="foreign-file")
    if header.get("sha256") != digest or not _is_signed(text):
        raise _damaged(path, "its checksum does not match")
    return header, tensors


@contextmanager
def invalid_as_damaged(path: Path) -> Iterator[None]:
    """Turn the errors that unfitting contents cause into one CheckpointError."""
    try:
        yield
    except CheckpointError:
        raise
    except (*INVALID, SynthsieveError) as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, reason: str) -> CheckpointError:
    short, advice = " ".join(reason.split())[:MAX_REASON], "use another checkpoint or file, or fit again"
    return CheckpointError(f"{path} is damaged or of another version ({short}): {advice}", code="damaged-file")


def named_tensors(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous copies on the CPU, named prefix/name: safetensors refuses tensors that share memory."""
    return {
        f"{prefix}/{name}": value.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, value in tensors.items()
    }


def tensors_under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those named prefix/name, by name."""
    start = f"{prefix}/"
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of names and numbers."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


def signed(text: str) -> str:
    """A JSON object with one more entry at its end: the SHA-256 of the text before it."""
    start = text[:-1]
    return f'{start}{SIGNATURE}{_sha256(start)}"}}'


def _is_signed(text: str) -> bool:
    start, _, end = text.rpartition(SIGNATURE)
    return end == f'{_sha256(start)}"}}'


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
