"""Networks trained on labels only: the supervised baseline, and the oracle with all labels."""

from synthsieve.experiments.baselines.supervised import (
    ORACLE_STEPS,
    label_tower_only,
    oracle_settings,
    supervised_settings,
)
from synthsieve.settings import NetworkKind, Objective
from synthsieve.training.defaults import settings_for
from tests.experiments.conftest import TINY


def test_supervised_baseline_differs_only_in_objective_and_towers():
    settings = settings_for("digits", overrides=TINY)
    supervised_baseline = supervised_settings(settings)
    assert supervised_baseline.training.objective is Objective.SUPERVISED
    assert supervised_baseline.training.evaluate_every == settings.training.evaluate_every // 5
    differing = {"objective", "evaluate_every"}
    assert supervised_baseline.training.model_dump(exclude=differing) == settings.training.model_dump(exclude=differing)
    assert (supervised_baseline.seed, supervised_baseline.data) == (settings.seed, settings.data)
    assert supervised_baseline.model == label_tower_only(settings.model) != settings.model
    assert supervised_baseline == supervised_baseline.pretrained()
    often = settings_for("digits", overrides=[*TINY, "training.evaluate_every=2"])
    assert supervised_settings(often).training.evaluate_every == 1


def test_oracle_is_the_label_tower_with_all_labels():
    settings = settings_for("digits", overrides=TINY)
    oracle = oracle_settings(settings)
    assert oracle.data.labels is None
    assert oracle.data.validation_fraction == settings.data.validation_fraction
    assert oracle.training.objective is Objective.SUPERVISED
    assert (oracle.model.latent_dim, oracle.model.label_latent_dim) == (3, 0)
    assert oracle.model.encoder is NetworkKind.MLP  # label_encoder = auto is "as encoder"
    assert oracle.total_steps == settings.training.steps
    assert oracle == oracle.pretrained()
    other = oracle_settings(settings_for("digits", overrides=[*TINY, "model.label_encoder=strided"]))
    assert other.model.encoder is NetworkKind.STRIDED
    one_tower = oracle_settings(settings_for("digits", overrides=["training.steps=9000"]))
    assert one_tower.model == settings_for("digits").model
    assert one_tower.total_steps == ORACLE_STEPS
