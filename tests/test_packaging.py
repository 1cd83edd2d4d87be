"""What is published: metadata, extras for users only, and versions that can be tried."""

import importlib.util
import re
import tomllib

import pytest

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


@pytest.fixture
def setup():
    spec = importlib.util.spec_from_file_location("setup_of_the_package", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_of_the_readme_work_on_a_package_index(setup):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", setup.readme_for_index(readme, "https://example.org/me/it"))
    assert len(targets) > 10
    for target in targets:
        path = re.fullmatch(r"https://example\.org/me/it/(?:blob|raw)/HEAD/(\S+)", target)
        assert path is not None, target
        assert (ROOT / path[1]).exists(), target
    assert "](https://example.org/me/it/raw/HEAD/docs/pictures/report.png)" in setup.readme_for_index(
        readme, "https://example.org/me/it"
    )
    assert "](" not in setup.readme_for_index(readme, "")
    assert "The tutorial takes ten minutes." in setup.readme_for_index(readme, "")
    assert setup.urls("") == {}
    assert set(setup.urls("https://example.org")) >= {"Repository", "Documentation", "Changelog"}


def test_every_tool_of_a_group_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    wanted = {tool for tools in PROJECT["dependency-groups"].values() for tool in tools}
    names = {tool.partition(">=")[0].partition("[")[0].lower().replace("_", "-") for tool in wanted}
    assert names - pinned == set()
