"""The methods of the benchmark by name, in the order of its tables."""

from __future__ import annotations

from collections.abc import Sequence

from synthsieve.errors import ConfigError
from synthsieve.experiments.baselines.methods.aae import AAE
from synthsieve.experiments.baselines.methods.bad_gan import BadGAN
from synthsieve.experiments.baselines.methods.fixmatch import FixMatch
from synthsieve.experiments.baselines.methods.flow_gmm import FlowGMM
from synthsieve.experiments.baselines.methods.jem import JEM
from synthsieve.experiments.baselines.methods.mean_teacher import MeanTeacher
from synthsieve.experiments.baselines.methods.mixmatch import MixMatch
from synthsieve.experiments.baselines.methods.ours import (
    Dapper,
    Ours,
    OursAll,
    OursCraig,
    OursEntropy,
    OursPseudoLabels,
)
from synthsieve.experiments.baselines.methods.pi_model import PiModel
from synthsieve.experiments.baselines.methods.pseudo_labels import PseudoLabeling
from synthsieve.experiments.baselines.methods.supervised import Supervised
from synthsieve.experiments.baselines.methods.triple_gan import TripleGAN
from synthsieve.experiments.baselines.methods.vae import M1M2
from synthsieve.experiments.baselines.methods.vat import VAT
from synthsieve.experiments.baselines.protocol import BenchmarkMethod
from synthsieve.experiments.baselines.search import GridMethod
from synthsieve.experiments.baselines.sklearn_models import CLASSICAL

OURS = Ours.name
METHODS: dict[str, type[BenchmarkMethod]] = {
    method.name: method
    for method in (
        *(Supervised, PseudoLabeling, PiModel, MeanTeacher, VAT, MixMatch, FixMatch),
        *(M1M2, AAE, JEM, FlowGMM, TripleGAN, BadGAN),
        *(Dapper, Ours, OursEntropy, OursCraig, OursPseudoLabels, OursAll),
    )
}
SKLEARN: dict[str, GridMethod] = {method.slug: method for method in CLASSICAL}


def method_names() -> list[str]:
    """All names that the benchmark takes."""
    return [*METHODS, *SKLEARN]


def chosen_methods(names: Sequence[str] | None) -> list[str]:
    """The methods of these names, in the order of the table, with our own among them; None takes all."""
    known = method_names()
    if names is None:
        return known
    requested = [name.strip().lower() for name in names if name.strip()]
    unknown = next((name for name in requested if name not in known), None)
    if unknown is not None or not requested:
        problem = "no method is given" if unknown is None else f"no method is named {unknown[:80]!r}"
        raise ConfigError(f"{problem}; the methods are: {', '.join(known)}", code="unknown-method")
    return [name for name in known if name in {*requested, OURS}]
