"""Settings: typed, merged in order, and unknown names refused with the nearest one."""

import pytest

from synthsieve.config import load_settings, preset_names, settings_from
from synthsieve.errors import ConfigError


def test_later_words_win(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("seed = 3\n[learning]\nsteps = 7\nwarmup = 5\n", encoding="utf-8")
    settings = load_settings(file, ["learning.steps=9"], {"seed": 4, "learning": {"steps": 8}})
    assert (settings.seed, settings.learning.steps, settings.learning.warmup) == (4, 9, 5)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("learning.step=3", "did you mean learning.steps?"),
        ("step_size=3", "did you mean sampling.step_size?"),
        ("learning.zzz=1", "known here: learning.objective"),
        ("learning.steps", "expects name=value"),
        ("learning.steps=many", "learning.steps"),
        ("learning.steps=0", "learning.steps"),
        ("learning.objective=join", "learning.objective"),
        ("model.label_latent_dim=32", "label_latent_dim=32 must be below latent_dim=32"),
        ("sampling.step_size=2.5", "sampling.step_size"),
        ("augmentation.entropy_ceiling=foo", "setting augmentation.entropy_ceiling: input"),
        ("augmentation.entropy_ceiling=0", "setting augmentation: entropy_ceiling=0.0 must be above 0 nats"),
        ("proof.pool_sizes=[5,3]", "setting proof: pool_sizes=[5, 3] must be positive and ascending"),
    ],
)
def test_a_wrong_setting_gets_one_sentence(override, sentence):
    with pytest.raises(ConfigError, match=r".") as caught:
        load_settings(None, [override])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_false_means_false():
    assert load_settings(None, ["learning.labeled_in_elbo=false"]).learning.labeled_in_elbo is False


def test_none_means_none():
    assert load_settings(None, ["data.labels=none"]).data.labels is None


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid_and_survives_json(name):
    settings = load_settings(name)
    assert settings_from(settings.model_dump(mode="json")) == settings


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no preset or TOML file named 'digit-minutes'"):
        load_settings("digit-minutes")
    broken = tmp_path / "broken.toml"
    broken.write_text("seed = = 3", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        load_settings(broken)
