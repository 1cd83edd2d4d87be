"""Counts of what was tried and survived, and a process in which everything is loaded."""

import json
import os
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
import torch

from tests.faults import commands

COUNTS = "SYNTHSIEVE_FAULTS_JSON"  # where to write them


class Tally:
    """`tried(fault)` before, `survived(fault)` after: kept with the test's report, from whichever process."""

    def __init__(self, record_property):
        self._record = record_property

    def tried(self, fault, lost="nothing"):
        self._record("fault", [fault, 1, 0, lost])

    def survived(self, fault, times=1):
        self._record("fault", [fault, 0, times, ""])


@pytest.fixture
def tally(record_property):
    return Tally(record_property)


@pytest.fixture(scope="session", autouse=True)
def loaded():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    commands.warm_up()
    yield
    torch.set_num_threads(before)
    for folder in commands.made_places:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def place():
    folder = commands.new_place()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def pytest_terminal_summary(terminalreporter):
    counts = defaultdict(lambda: {"tried": 0, "survived": 0, "lost": []})
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for name, value in getattr(report, "user_properties", ()):
                if name == "fault":
                    fault, tried, survived, lost = value
                    counts[fault]["tried"] += tried
                    counts[fault]["survived"] += survived
                    if lost and lost not in counts[fault]["lost"]:
                        counts[fault]["lost"].append(lost)
    if not counts:
        return
    terminalreporter.section("faults")
    for fault, count in counts.items():
        terminalreporter.write_line(f"{fault}: {count['survived']} of {count['tried']} survived")
    if os.environ.get(COUNTS):
        Path(os.environ[COUNTS]).write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
