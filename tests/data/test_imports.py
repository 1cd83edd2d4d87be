"""`synthsieve.data` works without torch, and the registry imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys


def _modules_after(code: str) -> set[str]:
    program = f"{code}\nimport sys; print(' '.join(sys.modules))"
    return set(
        subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True, encoding="utf-8"
        ).stdout.split()
    )


def test_no_torch() -> None:
    code = """
import importlib, pkgutil, synthsieve.data
for module in pkgutil.walk_packages(synthsieve.data.__path__, "synthsieve.data."):
    importlib.import_module(module.name)
from synthsieve.data.registry import load
load("digits")
"""
    assert "torch" not in _modules_after(code)


def test_registry_is_light() -> None:
    modules = _modules_after("from synthsieve.data.registry import load, source_names; source_names()")
    assert not modules & {"torch", "scipy", "sklearn", "pyarrow", "PIL"}
