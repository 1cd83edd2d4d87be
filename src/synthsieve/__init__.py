"""Train from few labels and many unlabelled examples, generate labelled data, and measure whether it helps.

The public names are imported on first use, so that `import synthsieve` stays quick and needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "run": "synthsieve.api.run",
    "evaluate": "synthsieve.api.evaluate",
    "select": "synthsieve.sieve",
    "Selection": "synthsieve.sieve",
    "CoresetSelector": "synthsieve.selector",
    "estimate_memory": "synthsieve.selection.memory",
    "LatentEBMClassifier": "synthsieve.estimator",
    "load": "synthsieve.loading",
    "predict_file": "synthsieve.prediction",
    "open_run": "synthsieve.review.run",
    "register_modality": "synthsieve.modality",
    "register_source": "synthsieve.data.sources",
    "SynthsieveError": "synthsieve.errors",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'synthsieve' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
