"""Settings: typed, merged in order; unknown and renamed names are refused with a hint."""

import pytest
from pydantic import BaseModel

from synthsieve.errors import ConfigError
from synthsieve.settings import RENAMED, Settings, load_settings, preset_names, settings_from
from tests.errors import raises


def test_later_sources_override_earlier_ones(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("seed = 3\n[training]\nsteps = 7\nwarmup = 5\n", encoding="utf-8")
    settings = load_settings(file, ["training.steps=9"], {"seed": 4, "training": {"steps": 8}})
    assert (settings.seed, settings.training.steps, settings.training.warmup) == (4, 9, 5)


@pytest.mark.parametrize(
    ("override", "code", "named"),
    [
        ("training.step=3", "unknown-setting", "training.steps?"),
        ("step_size=3", "unknown-setting", "sampling.step_size?"),
        ("training.zzz=1", "unknown-setting", "objective"),
        ("training.steps", "bad-override", "training.steps"),
        ("training.steps=many", "bad-setting", "training.steps"),
        ("training.steps=0", "bad-setting", "training.steps"),
        ("training.objective=join", "bad-setting", "training.objective"),
        ("model.label_latent_dim=32", "bad-setting", "label_latent_dim=32"),
        ("sampling.step_size=2.5", "bad-setting", "sampling.step_size"),
        ("augmentation.entropy_ceiling=foo", "bad-setting", "augmentation.entropy_ceiling"),
        ("augmentation.entropy_ceiling=0", "bad-setting", "entropy_ceiling=0.0"),
        ("comparison.pool_sizes=[5,3]", "bad-setting", "pool_sizes=[5, 3]"),
    ],
)
def test_wrong_settings_are_refused(override, code, named):
    with raises(ConfigError, code) as caught:
        load_settings(None, [override])
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "new"),
    [
        ("learning.steps=3", "training"),
        ("proof.metric=f1", "comparison"),
        ("augmentation.require_asked_class=false", "augmentation.require_label"),
    ],
)
def test_old_names_are_refused_with_the_new_name(override, new):
    with raises(ConfigError, "renamed-setting") as caught:
        load_settings(None, [override])
    assert f"now called {new}" in str(caught.value)


def test_new_names_of_old_settings_exist():
    values = Settings().model_dump()
    for old, new in RENAMED.items():
        for name, exists in ((old, False), (new, True)):
            section, _, field = name.partition(".")
            assert (section in values and (not field or field in values[section])) is exists


def test_every_setting_has_a_description():
    def fields(model, prefix=""):
        for name, info in model.model_fields.items():
            yield prefix + name, info.description
            if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
                yield from fields(info.annotation, f"{prefix}{name}.")

    described = dict(fields(Settings))
    assert len(described) > 90
    assert [name for name, text in described.items() if not (text or "").endswith(".")] == []


def test_false_and_none_are_read_as_values():
    assert load_settings(None, ["training.labeled_in_elbo=false"]).training.labeled_in_elbo is False
    assert load_settings(None, ["data.labels=none"]).data.labels is None


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_valid_and_survive_json(name):
    settings = load_settings(name)
    assert settings_from(settings.model_dump(mode="json")) == settings


def test_missing_and_broken_files_are_refused(tmp_path):
    with raises(ConfigError, "unknown-preset"):
        load_settings("digit-minutes")
    with raises(ConfigError, "unreadable-settings"):
        load_settings(tmp_path / "absent.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("seed = = 3", encoding="utf-8")
    with raises(ConfigError, "bad-toml"):
        load_settings(broken)
