"""Settings are names and values: no key reaches anything else."""

from __future__ import annotations

import pytest

from synthsieve.errors import ConfigError
from synthsieve.settings import Settings, load_settings, settings_from

ODD = [
    "__class__", "__init__", "__dict__", "model_config", "model_fields", "training.__class__", "training.model_config",
    "training.steps.__class__", "", "learning.", ".steps", "learning..steps", "training.steps\n[model]", "a" * 10_000,
    ".".join(["learning"] * 2000), "\0", "\ud800", "training.steps ", "LEARNING.STEPS",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_an_odd_key_is_refused_or_is_the_setting_it_names(name: str) -> None:
    try:
        found = load_settings(None, [f"{name}=7"])
    except ConfigError:
        return
    assert name.strip() == "training.steps"
    assert found.training.steps == 7


@pytest.mark.parametrize(
    "value", ["[[[" * 2000, "{" * 3000, "9" * 5000, "1e999", "nan", "'" * 1000, "\0", "@import os"]
)
def test_an_odd_value_is_refused_in_a_short_sentence(value: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_settings(None, [f"training.steps={value}"])
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    "values", [[], None, 3, "learning", {"learning": []}, {"training": {"steps": {}}}, {"seed": "x"}]
)
def test_settings_of_another_form_are_refused(values: object) -> None:
    with pytest.raises(ConfigError):
        settings_from(values)  # type: ignore[arg-type]


def test_settings_cannot_be_changed_once_they_are_made() -> None:
    with pytest.raises(Exception, match="frozen"):
        Settings().seed = 3  # type: ignore[misc]
