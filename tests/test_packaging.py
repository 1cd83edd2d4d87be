"""What is published: metadata, extras for users only, and versions that can be tried."""

import tomllib

from tests import packaging
from tests.matrix import EXTRAS, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_extras_are_for_users_and_all_has_every_one():
    extras = PROJECT["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(everything.removeprefix("synthsieve[").rstrip("]").split(",")) == set(extras) - {"all"}
    assert set(EXTRAS.split(",")) <= set(extras)
    assert not set(extras) & set(PROJECT["dependency-groups"])


def test_lower_bounds_become_versions():
    versions = packaging.lowest_versions()
    assert len(versions) == len(PROJECT["project"]["dependencies"])
    assert "numpy==1.26.*" in versions


def test_what_the_sdist_needs_exists():
    assert [name for name in packaging.IN_SDIST if not (ROOT / name).exists()] == []


def test_every_tool_of_a_group_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    wanted = {tool for tools in PROJECT["dependency-groups"].values() for tool in tools}
    names = {tool.partition(">=")[0].partition("[")[0].lower().replace("_", "-") for tool in wanted}
    assert names - pinned == set()
