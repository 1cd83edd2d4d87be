"""One training step: Algorithm 1, its steps by name and in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from synthsieve.config import ChainStart, Classify, Latents, Norm, Objective
from synthsieve.learning import objectives
from synthsieve.learning.drift import LARGEST_LOGIT
from synthsieve.learning.implicit import implicit_cross_entropy
from synthsieve.learning.learner import Learner, ramp_at
from synthsieve.model.encoder import GradientShare, Posterior
from synthsieve.networks.layers import fixed_statistics
from synthsieve.sampling import langevin

LABELS_ONLY = GradientShare(label=1.0, style=0.0)


@dataclass(frozen=True)
class Weighted:
    """Labelled examples that are not quite labelled ones: x (n, *shape), y int64 (n,), weights (n,) of mean about 1."""

    x: Tensor
    y: Tensor
    weights: Tensor

    def to(self, device: torch.device) -> Weighted:
        return Weighted(self.x.to(device), self.y.to(device), self.weights.to(device))


@dataclass(frozen=True)
class Batch:
    """Step 1, the mini-batch: labelled pairs, unlabelled x, and what augmentation added.

    Attributes:
        labeled_x: (n, *shape).
        labeled_y: int64 (n,).
        labeled_weights: (n,), of mean about 1; None where all count alike.
        unlabeled_x: (m, *shape); empty where there is no unlabelled data, or where only labels are learned.
        class_shares: (num_classes,), how often each class is expected among unlabelled x; None: all equally often.
        synthetic: of the coreset that step 7 chose; None before it.
        pseudo: unlabelled x with the label predicted; None without them.
    """

    labeled_x: Tensor
    labeled_y: Tensor
    unlabeled_x: Tensor
    labeled_weights: Tensor | None = None
    class_shares: Tensor | None = None
    synthetic: Weighted | None = None
    pseudo: Weighted | None = None

    def classified_x(self) -> Tensor:
        """The labelled x, then the synthetic, then the pseudo-labelled. (k, *shape)."""
        return torch.cat([self.labeled_x, *(added.x for added in (self.synthetic, self.pseudo) if added is not None)])

    def to(self, device: torch.device) -> Batch:
        """The same batch, where the networks are."""
        moved = {name: part.to(device) for name, part in vars(self).items() if part is not None}
        return replace(self, **moved)


def take_step(learner: Learner, batch: Batch) -> None:
    """Steps 2 to 6 and 8 of Algorithm 1; the supervised twin takes step 6 alone. Step 7 comes between some steps."""
    learner.model.train()
    learner.terms.clear()
    seen = None
    if learner.settings.learning.objective is Objective.JOINT:
        x = _elbo_examples(learner, batch)
        seen = see_labels(learner, batch)
        q, z_posterior = sample_posterior(learner, x, _of_elbo_examples(learner, batch, seen))  # step 3
        z_prior = sample_prior(learner, z_posterior)  # step 2, whose chains start where step 3 ends
        learn_prior(learner, z_posterior, z_prior)  # step 4
        learn_inference_and_generator(learner, x, q, z_posterior)  # step 5
    learn_labels(
        learner, batch, seen
    )  # steps 6 and 8, one update: under Adam a second one would cancel its coefficient
    learner.step += 1
    learner.average()


def sample_prior(learner: Learner, z_posterior: Tensor) -> Tensor:
    """Step 2: chains of short-run Langevin on p(z), started at q(z given x) or at p0. (n, latent_dim)."""
    settings, prior = learner.settings.sampling, learner.model.prior
    generator = learner.generators["chains"]
    start = z_posterior.detach()
    if settings.training_start is ChainStart.REFERENCE:
        start = prior.reference_sample(len(start), generator=generator)
    chains = langevin.LangevinSettings(
        num_steps=settings.training_steps, step_size=settings.step_size, temperature=settings.temperature
    )
    return langevin.run(prior.unconditional(), start, settings=chains, generator=generator).z


def see_labels(learner: Learner, batch: Batch) -> Posterior | None:
    """What the label tower says of every x of the batch, one pass for steps 3 and 6; None where step 5 changes it."""
    model, unlabeled = learner.model, batch.unlabeled_x
    if model.encoder.label_tower is None or learner.settings.learning.label_tower_elbo_scale:
        return None
    if _in_one_pass(learner):
        return model.encoder.label_part(torch.cat([batch.classified_x(), unlabeled]))
    with torch.no_grad():
        without = model.encoder.label_part(unlabeled)
    return Posterior.cat([model.encoder.label_part(batch.classified_x()), without])


def sample_posterior(learner: Learner, x: Tensor, label: Posterior | None = None) -> tuple[Posterior, Tensor]:
    """Step 3: q(z given x) and one reparameterised draw of it for each x. (n, latent_dim)."""
    felt = GradientShare(label=learner.settings.learning.label_tower_elbo_scale, style=1.0)
    q = learner.model.posterior(x, felt, label)
    return q, q.sample(generator=learner.generators["posterior"])


def learn_prior(learner: Learner, z_posterior: Tensor, z_prior: Tensor) -> None:
    """Step 4: f up where the data are, down where the chains went."""
    contrast = objectives.contrast(learner.model.energy, z_posterior.detach(), z_prior)
    loss = -contrast
    penalty = learner.settings.learning.logit_penalty
    if penalty:
        loss = loss + penalty * objectives.logit_size(learner.model.energy.class_logits(z_prior))
    learner.update("prior", loss, contrast=contrast)


def learn_inference_and_generator(learner: Learner, x: Tensor, q: Posterior, z_posterior: Tensor) -> None:
    """Step 5: the ELBO up, for the encoder and the generator, with F held fixed."""
    parts = objectives.elbo(learner.model, x, q, z_posterior)
    learner.update("elbo", -parts.total.mean(), **parts.means())


def learn_labels(learner: Learner, batch: Batch, seen: Posterior | None = None) -> None:
    """Step 6: the labelled pairs' cross-entropy down, for F and the encoder; beside it what unlabelled x can teach.

    Step 8: the weighted cross-entropy of the coreset, and of pseudo-labels, times their coefficients, in the same loss.
    `seen` is what `see_labels` returned, with the weights of this step.
    """
    settings = learner.settings.learning
    labeled = len(batch.labeled_x)
    q, logits, q_unlabeled = _classify(learner, batch, seen)
    cross_entropy = objectives.cross_entropy(logits[:labeled], batch.labeled_y, batch.labeled_weights)
    terms = {"cross_entropy": cross_entropy}
    loss = settings.cross_entropy_weight * cross_entropy
    if settings.label_kl_weight:
        label_latents = learner.settings.model.label_latent_dim or learner.settings.model.latent_dim
        kl = q.kl_to_reference()[:labeled, :label_latents].sum(dim=1).mean()
        terms["label_kl"] = kl
        loss = loss + settings.label_kl_weight * kl
    if settings.logit_penalty:
        loss = loss + settings.logit_penalty * objectives.logit_size(logits[:labeled])
    if q_unlabeled is not None:
        loss = loss + _unlabeled_terms(learner, batch.unlabeled_x, q_unlabeled, terms, batch.class_shares)
    loss = loss + _added_terms(learner, batch, logits[labeled:], terms)
    implicit = learner.settings.implicit
    if implicit.enabled and learner.step >= learner.settings.augment_from_step:
        terms["implicit_cross_entropy"] = implicit_cross_entropy(
            learner.model,
            implicit.batch // learner.together.share.size,
            settings=implicit,
            step_size=learner.settings.sampling.step_size,
            train_on=settings.train_on,
            share=LABELS_ONLY,
            generator=learner.generators["implicit"],
        )
        share = (1 - implicit.real_fraction) * settings.cross_entropy_weight
        loss = loss - share * cross_entropy + share * terms["implicit_cross_entropy"]
    terms[LARGEST_LOGIT] = learner.together.largest(logits[:labeled].detach().abs().max())
    learner.update("labels", loss, **terms)


def _classify(learner: Learner, batch: Batch, seen: Posterior | None) -> tuple[Posterior, Tensor, Posterior | None]:
    """q and F(z) of the labelled x, then of the synthetic, then of the pseudo-labelled; and q of the unlabelled."""
    settings, model = learner.settings.learning, learner.model
    felt = LABELS_ONLY if settings.objective is Objective.JOINT else GradientShare()
    x, unlabeled = batch.classified_x(), None
    if not len(batch.unlabeled_x) or not _learns_from_unlabeled(learner):
        q = model.posterior(x, felt, None if seen is None else seen[: len(x)])
    elif seen is not None or _in_one_pass(learner):
        both = model.posterior(torch.cat([x, batch.unlabeled_x]), felt, seen)
        q, unlabeled = both[: len(x)], both[len(x) :]
    else:
        q = model.posterior(x, felt)
        with torch.no_grad():
            unlabeled = model.posterior(batch.unlabeled_x)
    z = q.mean if settings.train_on is Classify.MEAN else q.sample(generator=learner.generators["posterior"])
    return q, model.energy.class_logits(z), unlabeled


def _in_one_pass(learner: Learner) -> bool:
    """Whether labelled and unlabelled x go through the label tower together, with a gradient for both.

    Only mutual information has a use for that of the unlabelled. A batch norm wants one pass all the same: what is
    labelled is repeated often and varies less.
    """
    settings = learner.settings
    return settings.learning.mutual_information_weight > 0 or settings.model.norm is Norm.BATCH


def _learns_from_unlabeled(learner: Learner) -> bool:
    """Whether step 6 has a term on unlabelled x."""
    settings = learner.settings.learning
    weights = (settings.mutual_information_weight, settings.smoothness_weight, settings.latent_smoothness_weight)
    return settings.objective is Objective.JOINT and any(weights)


def _added_terms(learner: Learner, batch: Batch, logits: Tensor, terms: dict[str, Tensor]) -> Tensor:
    """Step 8: coefficient times weighted cross-entropy, summed over the kinds of additions; their logits in order."""
    loss = torch.zeros(())
    coefficients = {
        "synthetic": learner.settings.augmentation.synthetic_loss_weight,
        "pseudo": learner.settings.pseudo_labels.loss_weight,
    }
    for name, coefficient in coefficients.items():
        added: Weighted | None = getattr(batch, name)
        if added is not None:
            mine, logits = logits[: len(added.y)], logits[len(added.y) :]
            terms[f"{name}_cross_entropy"] = objectives.cross_entropy(mine, added.y, added.weights)
            loss = loss + coefficient * terms[f"{name}_cross_entropy"]
    return loss


def _unlabeled_terms(
    learner: Learner, x: Tensor, q: Posterior, terms: dict[str, Tensor], class_shares: Tensor | None = None
) -> Tensor:
    """Predictions on unlabelled x that differ between examples, are sure of each, and do not turn close by."""
    settings, model = learner.settings.learning, learner.model
    loss = torch.zeros(())
    logits, mean = model.energy.class_logits(q.mean), q.mean.detach()
    if settings.mutual_information_weight:
        terms["mutual_information"] = objectives.mutual_information(
            logits, None if learner.together.alone else learner.together.mean, class_shares=class_shares
        )
        weight = settings.mutual_information_weight * ramp_at(learner.step, settings.mutual_information_ramp)
        loss = loss - weight * terms["mutual_information"]
    log_p = logits.detach().log_softmax(dim=1)

    def classify(x: Tensor) -> Tensor:
        return model.energy.class_logits(model.encoder.with_style_of(x, mean))

    with fixed_statistics(model.encoder):
        if settings.smoothness_weight:
            terms["roughness"] = objectives.roughness(
                classify,
                model.encoder.embed(x),
                log_p,
                radius=settings.smoothness_radius,
                generator=learner.generators["smoothness"],
            )
            weight = settings.smoothness_weight * ramp_at(learner.step, settings.smoothness_ramp)
            loss = loss + weight * terms["roughness"]
        if settings.latent_smoothness_weight:
            terms["latent_roughness"] = objectives.latent_roughness(
                classify,
                _along_generator(learner, x, mean),
                mean[:, _first_moved(learner) :],
                log_p,
                radius=settings.latent_smoothness_radius,
                generator=learner.generators["smoothness"],
            )
            weight = settings.latent_smoothness_weight * ramp_at(learner.step, settings.latent_smoothness_ramp)
            loss = loss + weight * terms["latent_roughness"]
    return loss


def _first_moved(learner: Learner) -> int:
    """The first latent that moves along the generator may change; all after it may be changed too."""
    all_of_them = learner.settings.learning.latent_smoothness_latents is Latents.ALL
    return 0 if all_of_them else learner.settings.model.label_latent_dim


def _along_generator(learner: Learner, x: Tensor, z: Tensor) -> Callable[[Tensor], Tensor]:
    """r (n, latents that move) -> x' = x + g(z + r) - g(z), in the numbers that the encoder embeds x in.

    What the generator cannot draw of x stays as it is. g is used as for prediction: nothing is dropped.
    """
    generator, embed, first = learner.model.generator, learner.model.encoder.embed, _first_moved(learner)

    def mean_near(z: Tensor) -> Tensor:
        generator.eval()
        try:
            return generator.mean_near(x, z, embed)
        finally:
            generator.train()

    with torch.no_grad():
        rest = embed(x) - mean_near(z)

    def move(r: Tensor) -> Tensor:
        return rest + mean_near(torch.cat([z[:, :first], z[:, first:] + r], dim=1))

    return move


def _elbo_examples(learner: Learner, batch: Batch) -> Tensor:
    """The unlabelled x, and the labelled ones with them where the settings say so."""
    if learner.settings.learning.labeled_in_elbo or not len(batch.unlabeled_x):
        return torch.cat([batch.labeled_x, batch.unlabeled_x])
    return batch.unlabeled_x


def _of_elbo_examples(learner: Learner, batch: Batch, seen: Posterior | None) -> Posterior | None:
    """What was seen of them, in the same order; without a gradient, for the ELBO's is not for the label tower."""
    if seen is None:
        return None
    unlabeled = seen[len(seen.mean) - len(batch.unlabeled_x) :].detach()
    if learner.settings.learning.labeled_in_elbo or not len(batch.unlabeled_x):
        return Posterior.cat([seen[: len(batch.labeled_x)].detach(), unlabeled])
    return unlabeled
