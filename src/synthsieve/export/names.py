"""Names that do not meet: columns beside those of the data, a folder for each class."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

LONGEST = 60  # characters of a folder's name: 255 bytes at most, whatever the script


def beside(taken: Collection[str], names: Iterable[str]) -> list[str]:
    """What each name is called beside those `taken` and those before it: itself, or synthetic_NAME where they meet."""
    called: list[str] = []
    for name in names:
        while name in taken or name in called:
            name = f"synthetic_{name}"
        called.append(name)
    return called


def folder_names(classes: Sequence[str]) -> list[str]:
    """A folder's name for each class: what is not a letter, a digit, - or _ becomes _; no longer than disks take.

    Two classes never share one, even where capitals do not count; a class that is met again has a number behind.
    Letters that the file system cannot have (in an ASCII locale) become _ too.
    """
    names: list[str] = []
    for label in classes:
        name = "".join(c if c in "-_" or (c.isalnum() and _can_name_files(c)) else "_" for c in label)[:LONGEST] or "_"
        called, number = name, 2
        while called.casefold() in {one.casefold() for one in names}:
            called, number = f"{name}_{number}", number + 1
        names.append(called)
    return names


def _can_name_files(character: str) -> bool:
    try:
        os.fsencode(character)
    except UnicodeEncodeError:
        return False
    return True
