"""Train from few labels and many unlabelled examples, generate labelled data, and measure whether it helps.

The verbs of the command line are functions: `run`, `fit`, `sample`, `predict`, `label`, `evaluate`, `export`,
`report`, `serve`, `utility`, `benchmark`, `reproduce`, `doctor`, `select` and `select_file`. `load` and `open_run` open
what they wrote. `LatentEBMClassifier` and `CoresetSelector` are scikit-learn estimators.

Public names are imported on first use, so `import synthsieve` is fast and does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

_PUBLIC = {
    "run": "synthsieve.api.run",
    "fit": "synthsieve.api.fit",
    "sample": "synthsieve.api.sample",
    "predict": "synthsieve.api.predict",
    "label": "synthsieve.api.label",
    "evaluate": "synthsieve.api.evaluate",
    "export": "synthsieve.api.export",
    "report": "synthsieve.api.report",
    "serve": "synthsieve.api.serve",
    "utility": "synthsieve.api.utility",
    "benchmark": "synthsieve.api.benchmark",
    "reproduce": "synthsieve.api.run",
    "doctor": "synthsieve.api.doctor",
    "select": "synthsieve.selection.select",
    "select_file": "synthsieve.api.select",
    "Selection": "synthsieve.selection.result",
    "SelectionOptions": "synthsieve.selection.options",
    "estimate_memory": "synthsieve.selection.kernels.memory",
    "LatentEBMClassifier": "synthsieve.estimators.classifier",
    "CoresetSelector": "synthsieve.estimators.coreset_selector",
    "load": "synthsieve.estimators.loading",
    "open_run": "synthsieve.results.run",
    "register_modality": "synthsieve.models.registry",
    "register_source": "synthsieve.data.registry",
    "SynthsieveError": "synthsieve.errors",
    "SynthsieveWarning": "synthsieve.errors",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'synthsieve' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
