"""A mixture of Gaussians for each class: its density, its draws, and its fit to weighted points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

COMPONENTS = (1, 2, 3, 5, 8, 12, 20)  # numbers that the held-out likelihood chooses from
FOLDS = 4
MAX_ROWS = 6000  # of a class, to keep the fit quick; a full covariance of a hundred latents needs thousands
EM_STEPS = 40
TOLERANCE = 1e-3 / 16  # nats per row and latent: EM stops when the mean log-likelihood rises by less
MIN_WEIGHT = 1e-3  # rows that belong to a class with less are left out
NEGLIGIBLE = 1e-16  # weight of a row in a component that float64 would not notice
MIN_ROWS = 10  # of a component, on average: with fewer its mean is a row that could be copied
MIN_GAIN = 0.01  # nats per row that more components must gain on held-out rows


@dataclass(frozen=True)
class ClassMixture:
    """p(z, y) = share_y sum over the components k of class y of weight_k N(z; mean_k, scale_k scale_k^T), normalized.

    Attributes:
        log_shares: the log of each class's share, (num_classes,); shares sum to 1.
        labels: the class of each component, int64 (k,).
        log_weights: of each component within its class, (k,).
        means: (k, d).
        scales: lower triangular, (k, d, d).
    """

    log_shares: Tensor
    labels: Tensor
    log_weights: Tensor
    means: Tensor
    scales: Tensor

    def __post_init__(self) -> None:
        k, d = self.means.shape
        shapes = tuple(self.labels.shape), tuple(self.log_weights.shape), tuple(self.scales.shape)
        if shapes != ((k,), (k,), (k, d, d)):
            raise ValueError(f"expected labels and log_weights (k,), means (k, d), scales (k, d, d); got {shapes}")
        if set(self.labels.cpu().tolist()) != set(range(self.num_classes)):
            raise ValueError(f"each of the {self.num_classes} classes needs a component; got {self.labels.tolist()}")
        inverse = torch.linalg.solve_triangular(self.scales, torch.eye(d).to(self.scales), upper=False)
        # (z - mean_k) in the coordinates of component k is one product for all components: z @ _whiten - _offset.
        object.__setattr__(self, "_whiten", inverse.reshape(k * d, d).T.contiguous())
        object.__setattr__(self, "_offset", (inverse @ self.means[:, :, None]).reshape(k * d))
        log_scale = self.scales.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        constant = self.log_weights + self.log_shares[self.labels] - log_scale - 0.5 * d * math.log(2 * math.pi)
        object.__setattr__(self, "_constant", constant)
        members = self.labels[:, None] == torch.arange(self.num_classes, device=self.labels.device)
        object.__setattr__(self, "_outside", torch.where(members, 0.0, -math.inf).to(self.means))  # (k, num_classes)

    @property
    def num_classes(self) -> int:
        return len(self.log_shares)

    @property
    def latent_dim(self) -> int:
        return self.means.shape[1]

    def component_log_prob(self, z: Tensor) -> Tensor:
        """log p(z, y_k, k) of each component, y_k its class. (n, d) -> (n, k)."""
        whitened = (z @ self._whiten - self._offset).reshape(len(z), *self.means.shape)  # type: ignore[attr-defined]
        constant: Tensor = self._constant  # type: ignore[attr-defined]
        return constant - 0.5 * whitened.square().sum(dim=2)

    def joint_log_prob(self, z: Tensor) -> Tensor:
        """log p(z, y) of each class. (n, d) -> (n, num_classes)."""
        outside: Tensor = self._outside  # type: ignore[attr-defined]
        return (self.component_log_prob(z)[:, :, None] + outside).logsumexp(dim=1)

    def log_prob(self, z: Tensor) -> Tensor:
        """log p(z) = log sum_y p(z, y). (n, d) -> (n,)."""
        return self.component_log_prob(z).logsumexp(dim=1)

    def choose_components(self, y: Tensor, uniform: Tensor) -> Tensor:
        """A component of class y for each uniform number in [0, 1), by the weights. (n,), (n,) -> int64 (n,)."""
        outside: Tensor = self._outside.cpu()  # type: ignore[attr-defined]  # float64, which not every device has
        device, y = y.device, y.cpu()
        ends = (self.log_weights.cpu()[:, None] + outside).T.exp().double().cumsum(dim=1)  # (num_classes, k)
        reached = (uniform.cpu().double()[:, None] * ends[y, -1:] >= ends[y]).sum(dim=1)
        # Rounding may lead past the end: the last component of the class stays the last.
        last = (outside.T == 0).double().cumsum(dim=1).argmax(dim=1)
        return torch.minimum(reached, last[y]).to(device)

    def place(self, components: Tensor, noise: Tensor) -> Tensor:
        """z = mean_k + scale_k noise. int64 (n,), (n, d) -> (n, d)."""
        return self.means[components] + (self.scales[components] @ noise[:, :, None]).squeeze(2)

    def tensors(self) -> dict[str, Tensor]:
        """The fields by name, to store."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def fit_class_mixture(
    z: np.ndarray,
    weights: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    rng: np.random.Generator,
) -> ClassMixture:
    """A mixture for each class, fitted to points z (n, d) that belong to the classes with `weights` (n, num_classes).

    The number of components of a class is the smallest of `COMPONENTS` after which the held-out likelihood does not
    rise. Points of one of the `groups`, int (n,), are held out together: several draws of one example. A group counts
    as one observation.
    """
    groups = np.arange(len(z)) if groups is None else groups
    per_group = np.bincount(groups)[groups]
    fields: dict[str, list[np.ndarray]] = {"labels": [], "log_weights": [], "means": [], "scales": []}
    everything = weights.sum(axis=1) / per_group
    for label, of_class in enumerate(weights.T):
        own = of_class / per_group
        if (of_class > MIN_WEIGHT).sum() < 2:  # a class that no row belongs to looks like all rows together
            own = everything
        rows = np.flatnonzero(own * per_group > MIN_WEIGHT)
        if len(rows) > MAX_ROWS:
            chosen = rng.choice(np.unique(groups[rows]), MAX_ROWS * len(np.unique(groups[rows])) // len(rows), False)
            rows = rows[np.isin(groups[rows], chosen)]
        log_weights, means, covariances = _fit_best(z[rows], own[rows], groups[rows], rng)
        fields["labels"].append(np.full(len(means), label))
        fields["log_weights"].append(log_weights)
        fields["means"].append(means)
        fields["scales"].append(np.linalg.cholesky(covariances))
    shares = np.maximum(weights.sum(axis=0), MIN_WEIGHT)
    arrays = {name: np.concatenate(parts).astype(np.float32) for name, parts in fields.items()}
    return ClassMixture(
        log_shares=torch.from_numpy(np.log(shares / shares.sum()).astype(np.float32)),
        labels=torch.from_numpy(arrays.pop("labels").astype(np.int64)),
        **{name: torch.from_numpy(each) for name, each in arrays.items()},
    )


Gaussians = tuple[np.ndarray, np.ndarray, np.ndarray]  # log-weights (k,), means (k, d), covariances (k, d, d)


def _fit_best(z: np.ndarray, weights: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> Gaussians:
    """The fit with the number of components that held-out points choose."""
    names, index = np.unique(groups, return_inverse=True)
    held_out = rng.permutation(np.arange(len(names)) % FOLDS)[index] == 0
    enough = [count for count in COMPONENTS if weights[~held_out].sum() >= MIN_ROWS * count]
    best, best_score = 1, -math.inf
    for count in enough if len(enough) > 1 else ():
        fitted = _em(z[~held_out], weights[~held_out], count, rng)
        score = float(np.average(_log_likelihood(z[held_out], fitted), weights=weights[held_out]))
        if score < best_score + MIN_GAIN:
            break
        best, best_score = count, score
    return _em(z, weights, best, rng)


def _em(z: np.ndarray, weights: np.ndarray, count: int, rng: np.random.Generator) -> Gaussians:
    """Weighted EM from k-means, each covariance shrunk to a common one, that one to its diagonal."""
    z, d = z.astype(np.float64), z.shape[1]
    means = np.average(z, axis=0, weights=weights)[None]
    nearest = np.zeros(len(z), dtype=np.int64)
    if count > 1:
        kmeans = KMeans(count, n_init=1, random_state=int(rng.integers(2**31))).fit(z, sample_weight=weights)
        means, nearest = kmeans.cluster_centers_, kmeans.labels_
    common = _shrunk(z - means[nearest], weights)
    responsibilities = np.eye(count)[nearest]
    fitted, before = None, -math.inf
    for _ in range(EM_STEPS):
        counts = weights @ responsibilities + 1e-9  # (k,)
        owned = weights[:, None] * responsibilities
        means = (owned.T @ z) / counts[:, None]
        covariances = np.empty((count, d, d))
        for k in range(count):
            own = owned[:, k] > NEGLIGIBLE  # with many latents hardly any row is shared by components
            centred = z[own] - means[k]
            # d pseudo-observations of the common covariance: a component of few rows keeps the common shape.
            covariances[k] = ((centred * owned[own, k, None]).T @ centred + d * common) / (counts[k] + d)
        fitted = (np.log(counts / counts.sum()), means, covariances)
        if count == 1:
            break
        joint = _joint(z, fitted)
        total = np.logaddexp.reduce(joint, axis=1)
        responsibilities = np.exp(joint - total[:, None])
        now = float(np.average(total, weights=weights))
        if now < before + TOLERANCE * d:
            break
        before = now
    assert fitted is not None
    return fitted


def _shrunk(centred: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The covariance of centred rows, with d pseudo-observations of its diagonal."""
    d, total = centred.shape[1], weights.sum()
    covariance = (centred * weights[:, None]).T @ centred / total
    diagonal = np.diag(np.maximum(np.diag(covariance), 1e-6 * max(1e-6, float(np.diag(covariance).max()))))
    shrunk: np.ndarray = (total * covariance + d * diagonal) / (total + d)
    return shrunk


def _joint(z: np.ndarray, fitted: Gaussians) -> np.ndarray:
    """log (weight_k N(z; mean_k, covariance_k)): (n, k)."""
    log_weights, means, covariances = fitted
    joint = np.empty((len(z), len(means)))
    whiteners = np.linalg.inv(np.linalg.cholesky(covariances))  # one product for all z is far quicker than a solve
    for k, (mean, whitener) in enumerate(zip(means, whiteners, strict=True)):
        whitened = (z - mean) @ whitener.T
        squares = np.einsum("nd,nd->n", whitened, whitened)
        joint[:, k] = log_weights[k] - 0.5 * squares + np.log(np.diag(whitener)).sum()
    return joint - 0.5 * z.shape[1] * math.log(2 * math.pi)


def _log_likelihood(z: np.ndarray, fitted: Gaussians) -> np.ndarray:
    """log p(z) of each point: (n,)."""
    total: np.ndarray = np.logaddexp.reduce(_joint(z.astype(np.float64), fitted), axis=1)
    return total
