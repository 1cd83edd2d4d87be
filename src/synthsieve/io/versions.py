"""Versions of this package, of Python and of the libraries that results depend on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from synthsieve import __version__

LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "safetensors")


def versions() -> dict[str, str]:
    """Name -> version; "absent" for a library that is not installed."""
    found = {"synthsieve": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found
