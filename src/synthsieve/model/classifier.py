"""The generative classifier: y -> z -> x, with its inference x -> z -> y."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from synthsieve.config import Classify, ModelSettings
from synthsieve.layout import Layout
from synthsieve.model.encoder import WHOLE, Encoder, GradientShare, Posterior
from synthsieve.model.energy import Energy
from synthsieve.model.modalities import networks_of
from synthsieve.model.prior import TiltedPrior


class GenerativeClassifier(nn.Module):
    """Energy, encoder and generator under one roof.

    Args:
        settings: the sizes and kinds of the three.
        layout: one x, as networks see it; a plain shape where it is an image or a vector.
        num_classes: how many y there are.
        generator: draws the first weights.
    """

    def __init__(
        self, settings: ModelSettings, layout: Layout | Sequence[int], num_classes: int, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.settings = settings
        self.layout = Layout.of(layout)
        self.num_classes = num_classes
        self.energy = Energy.mlp(
            settings.latent_dim,
            num_classes,
            hidden=[settings.energy_width] * (settings.energy_layers - 1),
            activation=settings.energy_activation,
            visible=None if settings.style_in_energy else settings.label_latent_dim or None,
            generator=generator,
        )
        self.encoder = Encoder(settings, self.layout, generator=generator)
        self.generator = networks_of(self.layout).make_generator(settings, self.layout, generator=generator)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one x, as networks see it."""
        return self.layout.shape

    @property
    def device(self) -> torch.device:
        """Where the networks are."""
        return next(self.parameters()).device

    def taken(self, array: np.ndarray) -> Tensor:
        """An array as a tensor, where the networks are."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    @property
    def prior(self) -> TiltedPrior:
        """p(z) and p(z given y)."""
        return TiltedPrior(self.energy)

    def posterior(self, x: Tensor, share: GradientShare = WHOLE, label: Posterior | None = None) -> Posterior:
        """q(z given x); `label` is the label tower's part, where it is known already."""
        q: Posterior = self.encoder(x, share, label)
        return q

    def predict_logits(self, x: Tensor) -> Tensor:
        """F at the mean of q(z given x). (n, *shape) -> (n, num_classes)."""
        return self.energy.class_logits(self.posterior(x).mean)

    def predict_proba(self, x: Tensor, *, draws: int = 1, generator: torch.Generator | None = None) -> Tensor:
        """p(y given x) = E_q(z given x) softmax F(z). (n, *shape) -> (n, num_classes).

        The mean of q stands for all of it when the settings say `classify = "mean"`; else the average over `draws`.
        """
        if self.settings.classify is Classify.MEAN:
            return self.predict_logits(x).softmax(dim=1)
        if generator is None:
            raise ValueError("classify = 'draw' needs a generator")
        q = self.posterior(x)
        return torch.stack([self.energy.class_probabilities(q.sample(generator=generator)) for _ in range(draws)]).mean(
            dim=0
        )
