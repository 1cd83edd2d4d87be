"""Runs that learn from labels alone: the twin that results stand beside, and the judge of how pure pools are."""

from __future__ import annotations

from synthsieve.config import ModelSettings, NetworkKind, Objective, Settings, Validation

TWIN_LOOKS = 5  # the twin is at its best early: it is looked at so many times as often, lest we pass that by
JUDGE_STEPS = 2500


def twin_settings(settings: Settings) -> Settings:
    """The same labels, network and steps, and nothing else: no unlabelled rows, no generator, no second phase.

    Of two towers it has the one that labels train: the other learns the labelled rows by heart (docs/decisions/0802).
    """
    often = max(1, settings.learning.evaluate_every // TWIN_LOOKS)
    learning = settings.learning.model_copy(update={"objective": Objective.SUPERVISED, "evaluate_every": often})
    model = label_tower_alone(settings.model)
    return settings.first_phase().model_copy(update={"model": model, "learning": learning})


def judge_settings(settings: Settings) -> Settings:
    """The independent classifier: all labels, nothing else, the label tower's network alone."""
    learning = settings.learning.model_copy(
        update={"objective": Objective.SUPERVISED, "steps": min(JUDGE_STEPS, settings.learning.steps)}
    )
    # Beside the labels, so that the same test rows are held out whatever the number of labels.
    data = settings.data.model_copy(update={"labels": None, "validation": Validation.EXTRA, "fold": None})
    model = label_tower_alone(settings.model)
    return settings.first_phase().model_copy(update={"data": data, "model": model, "learning": learning})


def label_tower_alone(model: ModelSettings) -> ModelSettings:
    """The network that labels train, without the one that the ELBO trains; the same where one tower does both."""
    if not model.label_latent_dim:
        return model
    return model.model_copy(
        update={
            "encoder": model.encoder if model.label_encoder is NetworkKind.AUTO else model.label_encoder,
            "encoder_width": model.label_width,
            "latent_dim": model.label_latent_dim,
            "label_latent_dim": 0,
        }
    )
