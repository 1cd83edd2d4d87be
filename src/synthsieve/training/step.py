"""One training step: Algorithm 1, its steps by name and in order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from synthsieve.evaluation.predict import prediction_noise
from synthsieve.models.classifier import GenerativeClassifier
from synthsieve.models.encoder import GradientScale, Posterior
from synthsieve.models.networks.layers import fixed_statistics, without_dropout
from synthsieve.sampling import langevin
from synthsieve.settings import ChainStart, Classify, DrawFrom, Latents, Objective, Targets
from synthsieve.training import anchored, objectives
from synthsieve.training.drift import MAX_LOGIT
from synthsieve.training.implicit import implicit_cross_entropy
from synthsieve.training.state import TrainState, ramp_at

LABELS_ONLY = GradientScale(label=1.0, style=0.0)


# x (n, *shape), y int64 (n,) or probabilities (n, num_classes), weights (n,) of mean about 1
Examples = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Batch:
    """Step 1, the mini-batch: labelled pairs, unlabelled x, and extra data.

    Attributes:
        labeled_x: (n, *shape).
        labeled_y: int64 (n,).
        labeled_weights: (n,), of mean about 1; None where all weights are equal.
        unlabeled_x: (m, *shape); empty without unlabelled data, and for supervised training.
        class_shares: (num_classes,), how often each class is expected among unlabelled x; None: all equally often.
        graph_labels: (m, num_classes), p(y given x) of the unlabelled x by a graph of neighbours; None without it.
        synthetic: of the coreset that step 7 selected, or drawn around the labelled x; None before it.
        pseudo: unlabelled x with the label predicted; None without them.
    """

    labeled_x: Tensor
    labeled_y: Tensor
    unlabeled_x: Tensor
    labeled_weights: Tensor | None = None
    class_shares: Tensor | None = None
    graph_labels: Tensor | None = None
    synthetic: Examples | None = None
    pseudo: Examples | None = None

    def classified_x(self) -> Tensor:
        """The labelled x, then the synthetic, then the pseudo-labelled. (k, *shape)."""
        return torch.cat([self.labeled_x, *(added[0] for added in (self.synthetic, self.pseudo) if added is not None)])

    def to(self, device: torch.device) -> Batch:
        """The same batch, where the networks are."""

        def moved(part: Any) -> Any:
            return tuple(map(moved, part)) if isinstance(part, tuple) else None if part is None else part.to(device)

        return Batch(**{name: moved(part) for name, part in vars(self).items()})


def take_step(state: TrainState, batch: Batch) -> None:
    """Steps 2 to 6 and 8 of Algorithm 1; supervised training takes step 6 alone. Step 7 comes between some steps."""
    state.model.train()
    state.metrics.clear()
    batch = with_shifts(state, with_synthetic(state, batch))
    seen = None
    if state.settings.training.objective is Objective.JOINT:
        x = _elbo_examples(state, batch)
        with state.autocast():
            seen = label_posteriors(state, batch)
            q, z_posterior = sample_posterior(state, x, _of_elbo_examples(state, batch, seen))  # step 3
        z_prior = sample_prior(state, z_posterior)  # step 2, whose chains start where step 3 ends
        learn_prior(state, z_posterior, z_prior)  # step 4
        learn_inference_and_generator(state, x, q, z_posterior)  # step 5
    learn_labels(state, batch, seen)  # steps 6 and 8, one update: under Adam a second one would cancel its coefficient
    state.step += 1
    state.average()


def with_synthetic(state: TrainState, batch: Batch) -> Batch:
    """The batch with samples around its labelled x, where there is no pool, and with soft targets, by the settings."""
    settings = state.settings.augmentation
    if settings.enabled and settings.draw_from is not DrawFrom.PRIOR and state.step >= state.settings.augment_from_step:
        x, y = anchored.draw(
            state.averaged,
            (batch.labeled_x, batch.labeled_y, batch.unlabeled_x),
            settings.batch_synthetic // state.group.size,
            settings=settings,
            step_size=state.settings.sampling.step_size,
            rng=state.rngs["anchored"],
        )
        batch = replace(batch, synthetic=(x, y, torch.ones(len(y), device=x.device)))
    if settings.targets is Targets.SOFT and batch.synthetic is not None:
        x, _, weights = batch.synthetic
        with torch.no_grad():
            soft = state.averaged.predict_proba(x, noise=prediction_noise(state.averaged))
        batch = replace(batch, synthetic=(x, soft, weights))
    return batch


def with_shifts(state: TrainState, batch: Batch) -> Batch:
    """The batch with each image moved by a few pixels, where the settings say so."""
    if not state.settings.training.shift:
        return batch

    def moved(examples: Examples | None) -> Examples | None:
        return None if examples is None else (_shifted(state, examples[0]), *examples[1:])

    return replace(
        batch,
        labeled_x=_shifted(state, batch.labeled_x),
        unlabeled_x=_shifted(state, batch.unlabeled_x),
        synthetic=moved(batch.synthetic),
        pseudo=moved(batch.pseudo),
    )


def _shifted(state: TrainState, x: Tensor) -> Tensor:
    return shift_images(x, state.settings.training.shift, rng=state.rngs["shift"])


def shift_images(x: Tensor, pixels: int, *, rng: torch.Generator) -> Tensor:
    """Each image of x (n, channels, height, width) moved by up to `pixels` in both directions; edges are repeated."""
    if not pixels or not len(x):
        return x
    images, _, height, width = x.shape
    move = torch.randint(-pixels, pixels + 1, (2, images, 1), generator=rng)
    rows, columns = (
        (move[axis] + torch.arange(side)).clamp_(0, side - 1).to(x.device) for axis, side in enumerate((height, width))
    )
    each = torch.arange(images, device=x.device)[:, None, None]
    # Channels last: one gather moves all channels of a pixel.
    return x.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def sample_prior(state: TrainState, z_posterior: Tensor) -> Tensor:
    """Step 2: chains of short-run Langevin on p(z), started at q(z given x) or at p0. (n, latent_dim)."""
    settings, prior = state.settings.sampling, state.model.prior
    rng = state.rngs["chains"]
    start = z_posterior.detach()
    if settings.training_start is ChainStart.REFERENCE:
        start = prior.reference_sample(len(start), rng=rng)
    chains = langevin.LangevinSettings(
        num_steps=settings.training_steps, step_size=settings.step_size, temperature=settings.temperature
    )
    return langevin.run(prior.unconditional(), start, settings=chains, rng=rng).z


def label_posteriors(state: TrainState, batch: Batch) -> Posterior | None:
    """The label tower's posterior of every x of the batch, for steps 3 and 6; None where step 5 changes it."""
    encoder = state.model.encoder
    if encoder.label_tower is None or state.settings.training.label_tower_elbo_scale:
        return None
    labeled, unlabeled = _two_passes(state, batch, encoder.label_part)
    return Posterior.cat([labeled, unlabeled])


def _two_passes(state: TrainState, batch: Batch, encode: Callable[[Tensor], Posterior]) -> tuple[Posterior, Posterior]:
    """q of the examples with a class, with dropout; and q of the unlabelled x, without: targets should not be noisy.

    A batch norm takes its running statistics from the unlabelled x alone, which vary more and are seen as in
    prediction. Only mutual information and graph labels need a gradient in their pass.
    """
    encoder, settings, x = state.model.encoder, state.settings.training, batch.classified_x()
    if not len(batch.unlabeled_x):
        return encode(x), encode(x)[:0]
    with fixed_statistics(encoder):
        labeled = encode(x)
    needs_gradient = max(settings.mutual_information_weight, settings.graph_weight) > 0
    with without_dropout(encoder), torch.set_grad_enabled(needs_gradient):
        return labeled, encode(batch.unlabeled_x)


def sample_posterior(state: TrainState, x: Tensor, label: Posterior | None = None) -> tuple[Posterior, Tensor]:
    """Step 3: q(z given x) and one reparameterised draw of it for each x. (n, latent_dim)."""
    scale_gradient = GradientScale(label=state.settings.training.label_tower_elbo_scale, style=1.0)
    q = state.model.posterior(x, scale_gradient, label)
    return q, q.sample(rng=state.rngs["posterior"])


def learn_prior(state: TrainState, z_posterior: Tensor, z_prior: Tensor) -> None:
    """Step 4: f up where the data are, down where the chains went."""
    with state.autocast():
        contrast = objectives.contrast(state.model.energy, z_posterior.detach(), z_prior)
        loss = -contrast
        penalty = state.settings.training.logit_penalty
        if penalty:
            loss = loss + penalty * objectives.logit_size(state.model.energy.class_logits(z_prior))
    state.update("prior", loss, contrast=contrast)


def learn_inference_and_generator(state: TrainState, x: Tensor, q: Posterior, z_posterior: Tensor) -> None:
    """Step 5: the ELBO up, for the encoder and the generator, with F held fixed.

    Reconstructions may also be compared in the latents that classify, by the averaged weights.
    """
    weight = state.settings.training.feature_weight
    with state.autocast():
        parts = objectives.elbo(state.model, x, q, z_posterior)
        loss, metrics = -parts.total.mean(), parts.means()
        if weight:
            metrics["feature_distance"] = _feature_distance(state, x, z_posterior)
            loss = loss + weight * metrics["feature_distance"]
    state.update("elbo", loss, **metrics)


def _feature_distance(state: TrainState, x: Tensor, z_posterior: Tensor) -> Tensor:
    """Between x and its reconstruction, in the latents that classify."""
    encoder, label_latents = state.averaged.encoder, state.settings.model.label_latent_dim or None

    def features(embedded: Tensor) -> Tensor:
        return encoder.with_style_of(embedded, z_posterior)[:, :label_latents]

    reconstruction = state.model.generator.mean_near(x, z_posterior, encoder.embed)
    return objectives.feature_distance(features, encoder.embed(x), reconstruction)


def learn_labels(state: TrainState, batch: Batch, seen: Posterior | None = None) -> None:
    """Step 6: the labelled pairs' cross-entropy down, for F and the encoder, with the losses on unlabelled x.

    Step 8: the weighted cross-entropy of the coreset, and of pseudo-labels, times their coefficients, in the same loss.
    `seen` is what `label_posteriors` returned, with the weights of this step.
    """
    with state.autocast():
        loss, metrics = _label_loss(state, batch, seen)
    state.update("labels", loss, **metrics)


def _label_loss(state: TrainState, batch: Batch, seen: Posterior | None) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of `learn_labels`, and its parts."""
    settings = state.settings.training
    labeled = len(batch.labeled_x)
    q, logits, q_unlabeled = _classify(state, batch, seen)
    cross_entropy = objectives.cross_entropy(logits[:labeled], batch.labeled_y, batch.labeled_weights)
    metrics = {"cross_entropy": cross_entropy}
    loss = settings.cross_entropy_weight * cross_entropy
    if settings.label_kl_weight:
        label_latents = state.settings.model.label_latent_dim or state.settings.model.latent_dim
        kl = q.kl_to_reference()[:labeled, :label_latents].sum(dim=1).mean()
        metrics["label_kl"] = kl
        loss = loss + settings.label_kl_weight * kl
    if settings.logit_penalty:
        loss = loss + settings.logit_penalty * objectives.logit_size(logits[:labeled])
    if q_unlabeled is not None:
        loss = loss + _unlabeled_loss(state, batch, q_unlabeled, metrics)
    loss = loss + _extra_data_loss(state, batch, logits[labeled:], metrics)
    implicit = state.settings.implicit
    if implicit.enabled and state.step >= state.settings.augment_from_step:
        metrics["implicit_cross_entropy"] = implicit_cross_entropy(
            state.model,
            implicit.batch // state.group.size,
            settings=implicit,
            step_size=state.settings.sampling.step_size,
            train_on=settings.train_on,
            share=LABELS_ONLY,
            rng=state.rngs["implicit"],
        )
        share = (1 - implicit.real_fraction) * settings.cross_entropy_weight
        loss = loss - share * cross_entropy + share * metrics["implicit_cross_entropy"]
    metrics[MAX_LOGIT] = state.group.max(logits[:labeled].detach().abs().max())
    return loss, metrics


def _classify(state: TrainState, batch: Batch, seen: Posterior | None) -> tuple[Posterior, Tensor, Posterior | None]:
    """q and F(z) of the labelled x, then of the synthetic, then of the pseudo-labelled; and q of the unlabelled."""
    settings, model = state.settings.training, state.model
    scale_gradient = LABELS_ONLY if settings.objective is Objective.JOINT else GradientScale()
    x, unlabeled = batch.classified_x(), None
    if not len(batch.unlabeled_x) or not _uses_unlabeled(state):
        q = model.posterior(x, scale_gradient, None if seen is None else seen[: len(x)])
    elif seen is not None:
        both = model.posterior(torch.cat([x, batch.unlabeled_x]), scale_gradient, seen)
        q, unlabeled = both[: len(x)], both[len(x) :]
    else:
        q, unlabeled = _two_passes(state, batch, lambda x: model.posterior(x, scale_gradient))
    z = q.mean if settings.train_on is Classify.MEAN else q.sample(rng=state.rngs["posterior"])
    return q, model.energy.class_logits(z), unlabeled


def _uses_unlabeled(state: TrainState) -> bool:
    """Whether step 6 has a term on unlabelled x."""
    settings = state.settings.training
    names = ("mutual_information", "smoothness", "latent_smoothness", "graph")
    return settings.objective is Objective.JOINT and any(getattr(settings, f"{name}_weight") for name in names)


def _extra_data_loss(state: TrainState, batch: Batch, logits: Tensor, metrics: dict[str, Tensor]) -> Tensor:
    """Step 8: coefficient times weighted cross-entropy, over each kind of extra data; `logits` in that order."""
    loss = torch.zeros(())
    coefficients = {
        "synthetic": state.settings.augmentation.synthetic_loss_weight,
        "pseudo": state.settings.pseudo_labels.loss_weight,
    }
    for name, coefficient in coefficients.items():
        added: Examples | None = getattr(batch, name)
        if added is not None:
            _, y, weights = added
            added_logits, logits = logits[: len(y)], logits[len(y) :]
            metrics[f"{name}_cross_entropy"] = objectives.cross_entropy(added_logits, y, weights)
            loss = loss + coefficient * metrics[f"{name}_cross_entropy"]
    return loss


def _unlabeled_loss(state: TrainState, batch: Batch, q: Posterior, metrics: dict[str, Tensor]) -> Tensor:
    """Losses on unlabelled x: predictions should differ between examples, be confident, and not change close by."""
    settings, model, x = state.settings.training, state.model, batch.unlabeled_x
    loss = torch.zeros(())
    logits, mean = model.energy.class_logits(q.mean), q.mean.detach()
    if settings.mutual_information_weight:
        metrics["mutual_information"] = objectives.mutual_information(
            logits, None if state.group.single else state.group.mean, class_shares=batch.class_shares
        )
        weight = settings.mutual_information_weight * ramp_at(state.label_steps, settings.mutual_information_ramp)
        loss = loss - weight * metrics["mutual_information"]
    if batch.graph_labels is not None:
        metrics["graph_cross_entropy"] = objectives.cross_entropy(logits, batch.graph_labels)
        weight = settings.graph_weight * (1 - ramp_at(state.label_steps, round(settings.graph_until * settings.steps)))
        loss = loss + weight * metrics["graph_cross_entropy"]
    log_p, embedded = logits.detach().log_softmax(dim=1), model.encoder.embed(x)

    def probing() -> AbstractContextManager[None]:
        return without_dropout(model.encoder)

    def classify(embedded: Tensor, model: GenerativeClassifier = model) -> Tensor:
        return model.energy.class_logits(model.encoder.with_style_of(embedded, mean))

    target = log_p
    if settings.average_targets:
        with torch.no_grad():
            target = classify(embedded, state.averaged).log_softmax(dim=1)
    target = objectives.confident_target(target, settings.confident_above)
    roughness = partial(
        objectives.roughness,
        classify,
        log_p=log_p,
        rng=state.rngs["smoothness"],
        target=target,
        probing=probing,
        transform=partial(_shifted, state),
    )
    with fixed_statistics(model.encoder):
        if settings.smoothness_weight:
            metrics["roughness"] = roughness(embedded, radius=settings.smoothness_radius)
            weight = settings.smoothness_weight * ramp_at(state.label_steps, settings.smoothness_ramp)
            loss = loss + weight * metrics["roughness"]
        if settings.latent_smoothness_weight:
            moving, move = mean[:, _first_moved(state) :], _along_generator(state, x, mean)
            metrics["latent_roughness"] = roughness(moving, radius=settings.latent_smoothness_radius, move=move)
            weight = settings.latent_smoothness_weight * ramp_at(state.label_steps, settings.latent_smoothness_ramp)
            loss = loss + weight * metrics["latent_roughness"]
    return loss


def _first_moved(state: TrainState) -> int:
    """The first latent that moves along the generator may change; later ones may change too."""
    all_of_them = state.settings.training.latent_smoothness_latents is Latents.ALL
    return 0 if all_of_them else state.settings.model.label_latent_dim


def _along_generator(state: TrainState, x: Tensor, z: Tensor) -> Callable[[Tensor], Tensor]:
    """r (n, latents that move) -> x' = x + g(z + r) - g(z), in the numbers that the encoder embeds x in.

    What the generator cannot draw of x stays as it is. g is in evaluation mode: no dropout.
    """
    generator, embed, first = state.model.generator, state.model.encoder.embed, _first_moved(state)

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


def _elbo_examples(state: TrainState, batch: Batch) -> Tensor:
    """The unlabelled x, with the labelled ones if the settings say so."""
    if state.settings.training.labeled_in_elbo or not len(batch.unlabeled_x):
        return torch.cat([batch.labeled_x, batch.unlabeled_x])
    return batch.unlabeled_x


def _of_elbo_examples(state: TrainState, batch: Batch, seen: Posterior | None) -> Posterior | None:
    """Their part of `seen`, in the same order, without a gradient: the ELBO does not train the label tower."""
    if seen is None:
        return None
    unlabeled = seen[len(seen.mean) - len(batch.unlabeled_x) :].detach()
    if state.settings.training.labeled_in_elbo or not len(batch.unlabeled_x):
        return Posterior.cat([seen[: len(batch.labeled_x)].detach(), unlabeled])
    return unlabeled
