"""Arrow types by the names Arrow gives them, so that a stored schema can be read without running anything."""

from __future__ import annotations

import re
from typing import Any

ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=([^\]]+)\]")
DECIMAL = re.compile(r"(decimal32|decimal64|decimal128|decimal256)\((\d+), (-?\d+)\)")
DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(u?int(?:8|16|32|64)), ordered=([01])>")


def arrow_type(name: str) -> Any:
    """The Arrow type that Arrow writes as `name`; a ValueError where there is none."""
    import pyarrow as pa

    if zoned := ZONED.fullmatch(name):
        return pa.timestamp(zoned[1], zoned[2])
    if decimal := DECIMAL.fullmatch(name):
        return getattr(pa, decimal[1])(int(decimal[2]), int(decimal[3]))
    if dictionary := DICTIONARY.fullmatch(name):
        return pa.dictionary(pa.type_for_alias(dictionary[2]), arrow_type(dictionary[1]), dictionary[3] == "1")
    return pa.type_for_alias(name)


def type_name(kind: Any) -> str:
    """The name by which `arrow_type` finds this type again; `null` for nested ones, of which no cell is kept."""
    try:
        arrow_type(str(kind))
    except ValueError:
        return "null"
    return str(kind)


def is_text(kind: Any) -> bool:
    """Whether cells of this Arrow type are text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: Any) -> bool:
    """Whether they are whole, floating or decimal numbers."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
