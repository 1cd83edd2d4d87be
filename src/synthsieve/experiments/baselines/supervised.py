"""Settings of networks trained on labels only: the supervised baseline, and the oracle that measures label purity."""

from __future__ import annotations

from synthsieve.settings import ModelSettings, NetworkKind, Objective, Settings, Validation

EVALUATIONS = 5  # the supervised baseline is best early in training, so it is evaluated this many times as often
ORACLE_STEPS = 2500


def supervised_settings(settings: Settings) -> Settings:
    """The same labels, network and steps without unlabelled rows, generator and augmented training.

    Of two towers it has only the label tower: the other one would overfit the labelled rows (decision 0802).
    """
    every = max(1, settings.training.evaluate_every // EVALUATIONS)
    supervised = settings.pretrained().changed("training", objective=Objective.SUPERVISED, evaluate_every=every)
    return supervised.model_copy(update={"model": label_tower_only(settings.model)})


def oracle_settings(settings: Settings) -> Settings:
    """An independent classifier: the label tower's network, trained on all labels."""
    steps = min(ORACLE_STEPS, settings.training.steps)
    oracle = settings.pretrained().changed("training", objective=Objective.SUPERVISED, steps=steps)
    # `extra` holds out the same test rows whatever the number of labels.
    oracle = oracle.changed("data", labels=None, validation=Validation.EXTRA, fold=None)
    return oracle.model_copy(update={"model": label_tower_only(settings.model)})


def label_tower_only(model: ModelSettings) -> ModelSettings:
    """The label tower as the only tower; unchanged where there is only one."""
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
