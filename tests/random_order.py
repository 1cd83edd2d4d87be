"""A pytest plugin: modules in random order, and the tests of each; `pytest -p tests.random_order`.

The tests of a module stay together, for they share what took long to make. SYNTHSIEVE_TEST_ORDER is the seed.
"""

from __future__ import annotations

import hashlib
import os

import pytest


def pytest_report_header() -> str:
    return f"random order: SYNTHSIEVE_TEST_ORDER={_seed()}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (_key(item.location[0]), _key(item.nodeid)))


def _key(name: str) -> bytes:
    """The same in every worker, whatever the others run."""
    return hashlib.sha256(f"{_seed()} {name}".encode("utf-8", "surrogatepass")).digest()


def _seed() -> str:
    return os.environ.get("SYNTHSIEVE_TEST_ORDER", "0")
