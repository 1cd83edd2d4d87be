"""The generative classifier: y -> z -> x, with its inference x -> z -> y."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from synthsieve.data.dataset import InputSpec
from synthsieve.models.calibration import Calibration
from synthsieve.models.encoder import WHOLE, Encoder, GradientScale, Posterior
from synthsieve.models.energy import Energy
from synthsieve.models.prior import TiltedPrior
from synthsieve.models.reference import FittedPrior, FittedReference
from synthsieve.models.registry import networks_of
from synthsieve.settings import Classify, ModelSettings


class GenerativeClassifier(nn.Module):
    """Energy, encoder and generator.

    Args:
        input_spec: of one x, as networks see it; for images and vectors the shape is enough.
        rng: draws the initial weights.
    """

    def __init__(
        self, settings: ModelSettings, input_spec: InputSpec | Sequence[int], num_classes: int, *, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.reference: FittedReference | None = None  # fitted after training; not a module, no weight of training
        self.calibration = Calibration()  # of predictions; fitted after training, too
        self.settings = settings
        self.input_spec = InputSpec.of(input_spec)
        self.num_classes = num_classes
        self.energy = Energy.mlp(
            settings.latent_dim,
            num_classes,
            hidden=[settings.energy_width] * (settings.energy_layers - 1),
            activation=settings.energy_activation,
            visible=None if settings.style_in_energy else settings.label_latent_dim or None,
            rng=rng,
        )
        self.encoder = Encoder(settings, self.input_spec, rng=rng)
        self.generator = networks_of(self.input_spec).make_generator(settings, self.input_spec, rng=rng)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one x, as networks see it."""
        return self.input_spec.shape

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def place(self, device: torch.device) -> GenerativeClassifier:
        """Move the networks and what was fitted to them to a device, in place."""
        self.to(device)
        self.reference = None if self.reference is None else self.reference.to(device)
        return self

    def to_tensor(self, array: np.ndarray) -> Tensor:
        """An array as a tensor on the device of the networks."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    @property
    def prior(self) -> TiltedPrior:
        return TiltedPrior(self.energy)

    @property
    def fitted_prior(self) -> FittedPrior | None:
        """p(z) and p(z given y) with the fitted reference; None where none was fitted."""
        return None if self.reference is None else FittedPrior(self.energy, self.reference)

    def posterior(self, x: Tensor, share: GradientScale = WHOLE, label: Posterior | None = None) -> Posterior:
        """q(z given x); `label` is the label tower's part, if known already."""
        q: Posterior = self.encoder(x, share, label)
        return q

    def predict_logits(self, x: Tensor) -> Tensor:
        """F at the mean of q(z given x). (n, *shape) -> (n, num_classes)."""
        return self.energy.class_logits(self.posterior(x).mean)

    def predict_proba(self, x: Tensor, *, noise: Tensor | None = None) -> Tensor:
        """p(y given x) = E_q(z given x) softmax F(z). (n, *shape) -> (n, num_classes).

        With `classify = "mean"` at the mean of q, else the average over z = mean + scale noise, (draws, latent_dim).
        """
        if self.settings.classify is Classify.MEAN:
            return self.predict_logits(x).softmax(dim=1)
        if noise is None:
            raise ValueError("classify = 'draw' needs noise")
        q = self.posterior(x)
        z = [q.mean + q.log_scale.exp() * each for each in noise]
        return torch.stack([self.energy.class_probabilities(each) for each in z]).mean(dim=0)
