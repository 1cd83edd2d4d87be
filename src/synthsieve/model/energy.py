"""F(z): one number a class, the negative energy of (class, latent)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from synthsieve.config import Activation
from synthsieve.networks.mlp import MLP


class Energy(nn.Module):
    """The class logits F(z) and what follows from them.

    Args:
        network: maps (n, visible) to (n, num_classes). An `MLP` has a gradient written by hand, which the chains use;
            any other module goes through autograd.
        latent_dim: numbers in a latent.
        num_classes: numbers F gives back.
        visible: how many of them, the first ones, F looks at; the others keep the reference as their prior. None: all.
    """

    def __init__(self, network: nn.Module, *, latent_dim: int, num_classes: int, visible: int | None = None) -> None:
        super().__init__()
        self.visible = latent_dim if visible is None else visible
        if not 1 <= self.visible <= latent_dim:
            raise ValueError(f"visible must lie in 1 to latent_dim={latent_dim}; got {visible}")
        if isinstance(network, MLP) and (network.sizes[0], network.sizes[-1]) != (self.visible, num_classes):
            raise ValueError(
                f"network must map {self.visible} latents to num_classes={num_classes}; "
                f"got an MLP of sizes {network.sizes}"
            )
        self.network = network
        self.latent_dim = latent_dim
        self.num_classes = num_classes

    @classmethod
    def mlp(
        cls,
        latent_dim: int,
        num_classes: int,
        *,
        hidden: Sequence[int] = (200, 200),
        activation: Activation = Activation.GELU,
        visible: int | None = None,
        generator: torch.Generator,
    ) -> Energy:
        """An energy of fully connected layers; the default is the paper's: three of them, width 200."""
        sizes = (latent_dim if visible is None else visible, *hidden, num_classes)
        network = MLP(sizes, activation=activation, generator=generator)
        return cls(network, latent_dim=latent_dim, num_classes=num_classes, visible=visible)

    def class_logits(self, z: Tensor) -> Tensor:
        """One number a class: the negative energy of each class at z. F(z). (n, latent_dim) -> (n, num_classes)."""
        logits: Tensor = self.network(z[:, : self.visible])
        return logits

    def negative_free_energy(self, z: Tensor) -> Tensor:
        """How much the prior favours z, whatever its class. f(z) = logsumexp_y F(z)[y]. (n, latent_dim) -> (n,)."""
        return self.class_logits(z).logsumexp(dim=1)

    def class_probabilities(self, z: Tensor) -> Tensor:
        """The latent classifier. p(y given z) = softmax F(z). (n, latent_dim) -> (n, num_classes), rows sum to 1."""
        return self.class_logits(z).softmax(dim=1)

    def forward(self, z: Tensor) -> Tensor:
        """`class_logits(z)`."""
        return self.class_logits(z)
