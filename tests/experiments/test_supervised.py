"""Runs on labels alone: the judge has all labels, the twin those of the run it stands beside."""

from synthsieve.config import NetworkKind, Objective
from synthsieve.defaults import settings_for
from synthsieve.experiments.supervised import JUDGE_STEPS, judge_settings, label_tower_alone, twin_settings
from tests.experiments.conftest import TINY


def test_the_twin_differs_in_what_it_learns_from_and_has_the_label_tower_alone():
    settings = settings_for("digits", overrides=TINY)
    twin = twin_settings(settings)
    assert twin.learning.objective is Objective.SUPERVISED
    assert twin.learning.evaluate_every == settings.learning.evaluate_every // 5
    own = {"objective", "evaluate_every"}
    assert twin.learning.model_dump(exclude=own) == settings.learning.model_dump(exclude=own)
    assert (twin.seed, twin.data) == (settings.seed, settings.data)
    assert twin.model == label_tower_alone(settings.model) != settings.model
    assert twin == twin.first_phase()
    often = settings_for("digits", overrides=[*TINY, "learning.evaluate_every=2"])
    assert twin_settings(often).learning.evaluate_every == 1


def test_the_judge_is_the_label_tower_alone_with_all_labels():
    settings = settings_for("digits", overrides=TINY)
    judge = judge_settings(settings)
    assert judge.data.labels is None
    assert judge.data.validation_fraction == settings.data.validation_fraction
    assert judge.learning.objective is Objective.SUPERVISED
    assert (judge.model.latent_dim, judge.model.label_latent_dim) == (3, 0)
    assert judge.model.encoder is NetworkKind.MLP  # label_encoder = auto is "as encoder"
    assert judge.total_steps == settings.learning.steps
    assert judge == judge.first_phase()
    other = judge_settings(settings_for("digits", overrides=[*TINY, "model.label_encoder=strided"]))
    assert other.model.encoder is NetworkKind.STRIDED
    one_tower = judge_settings(settings_for("digits", overrides=["learning.steps=9000"]))
    assert one_tower.model == settings_for("digits").model
    assert one_tower.total_steps == JUDGE_STEPS
