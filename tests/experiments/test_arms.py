"""Every arm switches on its own additions and nothing else; all arms share their pretraining."""

import pytest

from synthsieve.experiments.arms import (
    BASELINE,
    DRAWN,
    FRESH_STEPS,
    ORACLE_STEPS,
    PAPER_SVHN,
    POOLED,
    PRETRAINED,
    Arm,
    Group,
    TableEntry,
    entries_for,
    label_tower_only,
    oracle_settings,
    settings_of,
    supervised_settings,
    table_entries,
)
from synthsieve.settings import Coreset, NetworkKind, Objective, VariantSet
from synthsieve.training.defaults import settings_for
from tests.experiments.conftest import SMALL_SETTINGS

SETTINGS = settings_for("digits", overrides=[*SMALL_SETTINGS, "augmentation.entropy_ceiling=0.01"])
PAPERS = (10_000, 40_000, 100_000, 200_000)
FURTHER = [TableEntry(Arm.BORN_AGAIN_ALL, 40), *(TableEntry(arm, 0) for arm in DRAWN)]

# arm that branches off -> a pool, its coreset, its entropy filter, pseudo-labels, the implicit form
EXPECTED = {
    Arm.REAL_ONLY: (False, None, None, False, False),
    Arm.ALL: (True, Coreset.EVERYTHING, False, False, False),
    Arm.RANDOM: (True, Coreset.RANDOM, False, False, False),
    Arm.ENTROPY: (True, Coreset.EVERYTHING, True, False, False),
    Arm.ENTROPY_RANDOM: (True, Coreset.RANDOM, True, False, False),
    Arm.CRAIG: (True, Coreset.CRAIG, True, False, False),
    Arm.ADACORE: (True, Coreset.ADACORE, True, False, False),
    Arm.PSEUDO: (False, None, None, True, False),
    Arm.CRAIG_PSEUDO: (True, Coreset.CRAIG, True, True, False),
    Arm.IMPLICIT: (False, None, None, False, True),
    Arm.BORN_AGAIN: (False, None, None, True, False),
    Arm.BORN_AGAIN_ALL: (True, Coreset.EVERYTHING, False, True, False),
}


@pytest.mark.parametrize("arm", EXPECTED)
def test_an_arm_switches_on_its_own_additions_alone(arm):
    pooled, coreset, filtered, pseudo, implicit = EXPECTED[arm]
    settings = settings_of(TableEntry(arm, 80 if pooled else 0), SETTINGS)
    augmentation = settings.augmentation
    assert (augmentation.enabled, settings.pseudo_labels.enabled, settings.implicit.enabled) == (
        pooled,
        pseudo,
        implicit,
    )
    if pooled:
        assert augmentation.coreset is coreset
        assert augmentation.pool_size == 80
        assert augmentation.require_label is filtered
        assert augmentation.entropy_ceiling == (0.01 if filtered else None)
        assert augmentation.keep_fraction == (SETTINGS.augmentation.keep_fraction if filtered else None)
    assert (arm in POOLED) is pooled


def test_every_arm_is_a_baseline_or_real_or_has_additions():
    assert {arm for arm in Arm if arm.branches_off} == {*EXPECTED, *DRAWN}
    groups = {group: {arm for arm in Arm if arm.group is group} for group in Group}
    assert groups[Group.BASELINE] == {Arm.SUPERVISED}
    assert groups[Group.REAL] == {Arm.PRETRAINED, Arm.REAL_ONLY}
    assert set(POOLED) < groups[Group.SYNTHETIC]
    assert settings_of(TableEntry(Arm.SUPERVISED, 0), SETTINGS) == supervised_settings(SETTINGS)
    assert settings_of(PRETRAINED, SETTINGS) == SETTINGS.pretrained()


@pytest.mark.parametrize(
    "entry", [*table_entries((40, 80), baselines=False)[1:], *FURTHER], ids=lambda entry: entry.slug
)
def test_all_else_is_the_same_for_all_arms(entry):
    settings = settings_of(entry, SETTINGS)
    assert settings.pretrained() == SETTINGS.pretrained()
    assert settings.total_steps == SETTINGS.total_steps
    own = {"enabled", "coreset", "pool_size", "entropy_ceiling", "keep_fraction", "require_label"}
    if entry.arm in (Arm.BORN_AGAIN, Arm.BORN_AGAIN_ALL):
        assert settings.augmentation.reinitialise
        own |= {"reinitialise", "learning_rate", "reselect_every"}
    own |= {name for name in DRAWN.get(entry.arm, {}) if name in ("draw_from", "residual", "targets")}
    if entry.arm in (Arm.FRESH, Arm.FRESH_SOFT):
        assert settings.augmentation.pool_size == FRESH_STEPS * settings.augmentation.batch_synthetic
        own |= {"temperature", "reselect_every"}
    for section in ("augmentation", "pseudo_labels", "implicit"):
        assert getattr(settings, section).model_dump(exclude=own) == getattr(SETTINGS, section).model_dump(exclude=own)
    assert type(settings).model_validate(settings.model_dump()) == settings


@pytest.mark.parametrize("sizes", [(40,), (40, 80), PAPERS])
def test_cells_have_names_and_folders_of_their_own(sizes):
    table = table_entries(sizes)
    assert table[:3] == [TableEntry(Arm.SUPERVISED, 0), PRETRAINED, BASELINE]
    assert table_entries(sizes, baselines=False) == table[1:]
    assert {entry.arm for entry in table} == set(Arm) - {Arm.BORN_AGAIN_ALL, *DRAWN}
    assert len({entry.slug for entry in table}) == len({entry.name for entry in table}) == len(table)
    assert all(entry.slug == entry.slug.lower() and " " not in entry.slug and "+" not in entry.slug for entry in table)
    assert {entry.arm for entry in table if entry.pool_size} == set(POOLED) - {Arm.BORN_AGAIN_ALL}


@pytest.mark.parametrize(("towers", "left_out"), [(1, Arm.STYLE_SWAP), (2, Arm.WITHIN_CLASS)])
def test_extended_variants_are_all_that_the_towers_allow(towers, left_out):
    settings = SETTINGS.changed("model", label_latent_dim=0 if towers == 1 else 2)
    table, extended = (
        entries_for(settings.changed("comparison", variants=variants, pool_sizes=(40, 80)))
        for variants in (VariantSet.ALL, VariantSet.EXTENDED)
    )
    assert table == tuple(table_entries((40, 80)))
    assert extended[: len(table)] == table
    assert {entry.arm for entry in extended} == set(Arm) - {left_out}
    assert len({entry.slug for entry in extended}) == len(extended)


def test_the_papers_cells_are_all_there():
    table = set(table_entries(PAPERS))
    other_values = {TableEntry(arm, size) for arm, row in PAPER_SVHN.items() for size in row}
    assert other_values <= table
    beyond = {entry.arm for entry in table - other_values}
    ours = {Arm.SUPERVISED, Arm.PRETRAINED, Arm.RANDOM, Arm.ENTROPY_RANDOM, Arm.ADACORE, Arm.PSEUDO, Arm.IMPLICIT}
    assert beyond == ours | {Arm.BORN_AGAIN}
    assert TableEntry(Arm.CRAIG, 40_000).name == "entropy + CRAIG, L=40,000"
    assert TableEntry(Arm.CRAIG_PSEUDO, 40_000).slug == "entropy-craig-pl-40000"


def test_supervised_baseline_differs_only_in_objective_and_towers():
    settings = settings_for("digits", overrides=SMALL_SETTINGS)
    supervised_baseline = supervised_settings(settings)
    assert supervised_baseline.training.objective is Objective.SUPERVISED
    assert supervised_baseline.training.evaluate_every == settings.training.evaluate_every // 5
    differing = {"objective", "evaluate_every"}
    assert supervised_baseline.training.model_dump(exclude=differing) == settings.training.model_dump(exclude=differing)
    assert (supervised_baseline.seed, supervised_baseline.data) == (settings.seed, settings.data)
    assert supervised_baseline.model == label_tower_only(settings.model) != settings.model
    assert supervised_baseline == supervised_baseline.pretrained()
    often = settings_for("digits", overrides=[*SMALL_SETTINGS, "training.evaluate_every=2"])
    assert supervised_settings(often).training.evaluate_every == 1


def test_oracle_is_the_label_tower_with_all_labels():
    settings = settings_for("digits", overrides=SMALL_SETTINGS)
    oracle = oracle_settings(settings)
    assert oracle.data.labels is None
    assert oracle.data.validation_fraction == settings.data.validation_fraction
    assert oracle.training.objective is Objective.SUPERVISED
    assert (oracle.model.latent_dim, oracle.model.label_latent_dim) == (3, 0)
    assert oracle.model.encoder is NetworkKind.MLP  # label_encoder = auto is "as encoder"
    assert oracle.total_steps == settings.training.steps
    assert oracle == oracle.pretrained()
    other = oracle_settings(settings_for("digits", overrides=[*SMALL_SETTINGS, "model.label_encoder=strided"]))
    assert other.model.encoder is NetworkKind.STRIDED
    one_tower = oracle_settings(settings_for("digits", overrides=["training.steps=9000"]))
    assert one_tower.model == settings_for("digits").model
    assert one_tower.total_steps == ORACLE_STEPS
