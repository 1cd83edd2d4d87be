"""The YAML at the head of a card, as the Hugging Face Hub reads it; all but the plainest words are quoted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

# What YAML takes for the end of a line, or does not allow at all, though JSON does.
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_/.-]*")
NO_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}  # which YAML reads as something else


def front_matter(values: Mapping[str, Any]) -> str:
    """Between two lines of ---."""
    return "\n".join(["---", *_lines(values, 0), "---", ""])


def _lines(value: Any, depth: int) -> list[str]:
    """Dictionaries and lists of them, text, numbers and truth values, in block form."""
    space = "  " * depth
    if isinstance(value, Mapping):
        return [line for name, inner in value.items() for line in _pair(f"{space}{_scalar(name)}:", inner, depth)]
    lines = []
    for inner in value:
        if isinstance(inner, Mapping):
            first, *rest = _lines(inner, depth + 1)
            lines += [f"{space}- {first.lstrip()}", *rest]
        else:
            lines.append(f"{space}- {_scalar(inner)}")
    return lines


def _pair(head: str, value: Any, depth: int) -> list[str]:
    if isinstance(value, Mapping | list | tuple):
        return (
            [head, *_lines(value, depth + 1)] if value else [f"{head} {'{}' if isinstance(value, Mapping) else '[]'}"]
        )
    return [f"{head} {_scalar(value)}"]


def _scalar(value: Any) -> str:
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in NO_TEXT:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
