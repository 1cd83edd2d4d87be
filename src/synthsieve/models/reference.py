"""A reference that is near the data, tilted by the energy: log p(z given y) = log p(y given z) + f(z) + log p_ref(z).

The paper's reference is N(0, I). Here it is a Gaussian mixture fitted to the aggregate posterior, the average of
q(z given x) over examples. The class enters once, through p(y given z) = softmax F(z): with a reference of the class y
alone its evidence would count twice. See decision 0304.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from synthsieve.models.energy import Energy
from synthsieve.models.networks.mlp import MLP
from synthsieve.sampling.log_density import AutogradLogDensity
from synthsieve.sampling.mixture import ClassMixture
from synthsieve.settings import Activation

PROPOSALS = 16  # draws of the mixture that one sample is chosen from
WIDTH = 128
MIN_TEMPERATURE = 1e-4  # of the mixture's draws: at 0 a Gaussian has no density


@dataclass(frozen=True)
class FittedReference:
    """What is fitted to the encoded examples, and stored with a model's weights.

    Attributes:
        mixture: the Gaussian mixtures of all classes; p_ref(z) is their sum.
        correction: f(z), the log of what the mixture must be multiplied with, (n, d) -> (n, 1); None is 0.
        class_temperature: p(y given z) = softmax((F(z) + class_offsets) / class_temperature) in draws; below 1 there
            are fewer samples that the classifier doubts.
        class_offsets: (num_classes,), to equally frequent classes; None is 0.
    """

    mixture: ClassMixture
    correction: MLP | None = None
    class_temperature: float = 1.0
    class_offsets: Tensor | None = None

    def f(self, z: Tensor) -> Tensor:
        """The correction f(z). (n, d) -> (n,)."""
        if self.correction is None:
            return torch.zeros(len(z), dtype=z.dtype, device=z.device)
        value: Tensor = self.correction(z).squeeze(1)
        return value

    def to(self, device: torch.device) -> FittedReference:
        """The same on another device."""
        mixture = ClassMixture(**{name: tensor.to(device) for name, tensor in self.mixture.tensors().items()})
        correction = None if self.correction is None else self.correction.to(device)
        offsets = None if self.class_offsets is None else self.class_offsets.to(device)
        return FittedReference(mixture, correction, self.class_temperature, offsets)

    def tensors(self) -> dict[str, Tensor]:
        """All of it by name, to store."""
        stored = {f"mixture/{name}": tensor for name, tensor in self.mixture.tensors().items()}
        stored["class_temperature"] = torch.tensor(self.class_temperature, dtype=torch.float64)
        if self.class_offsets is not None:
            stored["class_offsets"] = self.class_offsets
        if self.correction is not None:
            stored |= {f"correction/{name}": tensor for name, tensor in self.correction.state_dict().items()}
        return stored

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], *, latent_dim: int, num_classes: int) -> FittedReference:
        """What `tensors` gave; ValueError where it does not fit the model or is not finite."""
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("its reference has values that are not finite")
        tensors = dict(tensors)
        class_temperature = float(tensors.pop("class_temperature", torch.ones(())))
        class_offsets = tensors.pop("class_offsets", None)
        if not class_temperature > 0 or (class_offsets is not None and class_offsets.shape != (num_classes,)):
            raise ValueError("its reference has a class temperature or class offsets that do not fit")
        parts: dict[str, dict[str, Tensor]] = {"mixture": {}, "correction": {}}
        for name, tensor in tensors.items():
            part, _, field = name.partition("/")
            parts[part][field] = tensor
        mixture = ClassMixture(**parts["mixture"])
        if (mixture.latent_dim, mixture.num_classes) != (latent_dim, num_classes):
            raise ValueError("its reference is of other sizes than its settings name")
        correction = None
        if parts["correction"]:
            correction = new_correction(latent_dim, rng=torch.Generator())
            correction.load_state_dict(parts["correction"])
            correction.requires_grad_(False)
        return cls(mixture, correction, class_temperature, class_offsets)


def new_correction(latent_dim: int, *, rng: torch.Generator) -> MLP:
    """A network for f whose output is 0 everywhere."""
    network = MLP((latent_dim, WIDTH, WIDTH, 1), activation=Activation.SILU, rng=rng)
    nn.init.zeros_(network.linears()[-1].weight)
    return network


@dataclass(frozen=True)
class FittedPrior:
    """p(z) and p(z given y) with a fitted reference, each known up to a constant.

    Attributes:
        energy: gives p(y given z) = softmax F(z).
        reference: gives f(z) and p_ref(z).
    """

    energy: Energy
    reference: FittedReference

    def log_density(self, z: Tensor) -> Tensor:
        """log p(z), up to a constant. f(z) + log p_ref(z). (n, d) -> (n,)."""
        return self.reference.f(z) + self.reference.mixture.log_prob(z)

    def conditional_log_density(self, z: Tensor, y: Tensor) -> Tensor:
        """log p(z given y), up to a constant of each y. log p(y given z) + log p(z). (n, d), (n,) -> (n,)."""
        return self._log_class(z, y) + self.log_density(z)

    def propose(self, y: Tensor, uniform: Tensor, noise: Tensor, *, temperature: float = 1.0) -> Start:
        """z ~ p(z given y), each chosen among PROPOSALS draws with weights p(z given y) / proposal (Rubin 1987).

        Half of the proposals come from the components of class y, half from the whole mixture: so no weight exceeds
        2 p(y given z) exp(f(z)) / p(y), up to the constant. At temperature T components have T times their covariance,
        and p(y given z) exp(f(z)) the power 1 / T.

        Args:
            y: int64 (n,).
            uniform: numbers in (0, 1) that choose class, component and proposal, (n, PROPOSALS, 3).
            noise: standard normal, (n, PROPOSALS, d).
            temperature: T.
        """
        mixture, heat = self.reference.mixture, max(temperature, MIN_TEMPERATURE)
        if heat != 1:
            mixture = ClassMixture(**{**mixture.tensors(), "scales": mixture.scales * math.sqrt(heat)})
        shares = mixture.log_shares.exp().cumsum(dim=0)
        best = torch.full((len(y),), -math.inf, device=y.device)
        z, component = noise[:, 0].clone(), torch.zeros_like(y)
        for i in range(noise.shape[1]):
            which, where, luck = uniform[:, i].unbind(dim=1)
            # The lower half of `which` keeps class y; the upper half, spread over (0, 1), takes any class by its share.
            other = torch.searchsorted(shares, (2 * which - 1).clamp(0, 1)).clamp(max=mixture.num_classes - 1)
            proposed = mixture.choose_components(torch.where(which < 0.5, y, other), where)
            at = mixture.place(proposed, noise[:, i])
            joint = mixture.joint_log_prob(at)
            whole = joint.logsumexp(dim=1)
            of_class = joint.gather(1, y[:, None]).squeeze(1) - mixture.log_shares[y]
            target = (self._log_class(at, y) + self.reference.f(at)) / heat + whole
            gumbel = -torch.log(-torch.log(luck.clamp(1e-7, 1 - 1e-7)))
            key = target - torch.logaddexp(of_class, whole) + gumbel  # the largest is a draw by weight
            better = key > best
            best = torch.where(better, key, best)
            z = torch.where(better[:, None], at, z)
            component = torch.where(better, proposed, component)
        return Start(self, y, z, self.reference.mixture.scales[component])

    def _log_class(self, z: Tensor, y: Tensor) -> Tensor:
        """log p(y given z), at the class temperature and for equally frequent classes. (n, d), (n,) -> (n,)."""
        logits = self.energy.class_logits(z)
        if self.reference.class_offsets is not None:
            logits = logits + self.reference.class_offsets
        logits = logits / self.reference.class_temperature
        return logits.log_softmax(dim=1).gather(1, y[:, None]).squeeze(1)


@dataclass(frozen=True)
class Start:
    """Where chains start, and the coordinates they run in: z = origin + scale u, u = 0 at the start.

    A step of one size fits components of any width in these coordinates.

    Attributes:
        prior: the target.
        y: the class of each chain, int64 (n,).
        origin: (n, d).
        scale: the lower triangular scale of the component that each origin was drawn from, (n, d, d).
    """

    prior: FittedPrior
    y: Tensor
    origin: Tensor
    scale: Tensor

    def z(self, u: Tensor) -> Tensor:
        """(n, d) -> (n, d)."""
        return self.origin + (self.scale @ u[:, :, None]).squeeze(2)

    def density(self) -> AutogradLogDensity:
        """log p(z given y) as a function of u, up to a constant of each chain."""
        return AutogradLogDensity(lambda u: self.prior.conditional_log_density(self.z(u), self.y))
