"""F(z): the class logits, the negative energy of (class, latent)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from synthsieve.models.networks.layers import in_float32
from synthsieve.models.networks.mlp import MLP
from synthsieve.settings import Activation


class Energy(nn.Module):
    """The class logits F(z) and what follows from them.

    Args:
        network: maps (n, visible) to (n, num_classes). Chains use `InputGradient` for an `MLP`, else autograd.
        visible: how many latents, from the first, F depends on (None: all); the prior of the others is the reference.
    """

    def __init__(self, network: nn.Module, *, latent_dim: int, num_classes: int, visible: int | None = None) -> None:
        super().__init__()
        self.visible = latent_dim if visible is None else visible
        if not 1 <= self.visible <= latent_dim:
            raise ValueError(f"visible must be in 1 to latent_dim={latent_dim}; got {visible}")
        if isinstance(network, MLP) and (network.sizes[0], network.sizes[-1]) != (self.visible, num_classes):
            raise ValueError(
                f"network must map {self.visible} latents to num_classes={num_classes}; "
                f"got an MLP of sizes {network.sizes}"
            )
        self.network, self.latent_dim, self.num_classes = network, latent_dim, num_classes

    @classmethod
    def mlp(
        cls,
        latent_dim: int,
        num_classes: int,
        *,
        hidden: Sequence[int] = (200, 200),
        activation: Activation = Activation.GELU,
        visible: int | None = None,
        rng: torch.Generator,
    ) -> Energy:
        """An MLP energy; the default is the paper's three layers of width 200."""
        sizes = (latent_dim if visible is None else visible, *hidden, num_classes)
        network = MLP(sizes, activation=activation, rng=rng)
        return cls(network, latent_dim=latent_dim, num_classes=num_classes, visible=visible)

    def class_logits(self, z: Tensor) -> Tensor:
        """The negative energy of each class at z. F(z). (n, latent_dim) -> (n, num_classes)."""
        return in_float32(self.network(z[:, : self.visible]))

    def negative_free_energy(self, z: Tensor) -> Tensor:
        """f(z) = logsumexp_y F(z)[y]. (n, latent_dim) -> (n,)."""
        return self.class_logits(z).logsumexp(dim=1)

    def class_probabilities(self, z: Tensor) -> Tensor:
        """The latent classifier. p(y given z) = softmax F(z). (n, latent_dim) -> (n, num_classes), rows sum to 1."""
        return self.class_logits(z).softmax(dim=1)

    forward = class_logits
