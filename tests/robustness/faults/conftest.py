"""Counts of what was tried and survived, and a process in which everything is loaded."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from tests.robustness.faults import commands

COUNTED = ("tried", "survived", "mended", "unnoticed")
COUNTS = "SYNTHSIEVE_FAULTS_JSON"  # where to write them


class Tally:
    """`tried(fault)` before, `survived(fault)` after: kept with the test's report, from whichever process."""

    def __init__(self, record_property):
        self._record = record_property

    def tried(self, fault, lost="nothing"):
        self._record("fault", {"fault": fault, "tried": 1, "lost": lost})

    def survived(self, fault, times=1):
        self._record("fault", {"fault": fault, "survived": times})

    def mended(self, fault):
        """It was noticed, and what was damaged came again."""
        self._record("fault", {"fault": fault, "mended": 1})

    def unnoticed(self, fault):
        """It did no harm that anybody could see: the format has no checksum there."""
        self._record("fault", {"fault": fault, "unnoticed": 1})


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
    counts = counted(report for reports in terminalreporter.stats.values() for report in reports)
    if not counts:
        return
    terminalreporter.section("faults")
    for fault, count in counts.items():
        terminalreporter.write_line(f"{fault}: {count['survived']} of {count['tried']} survived")
    if os.environ.get(COUNTS):
        Path(os.environ[COUNTS]).write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")


def counted(reports):
    """Of each fault: how often it was tried, survived, mended and went unnoticed, and what was lost at most."""
    counts = {}
    for report in reports:
        if getattr(report, "when", None) != "call":
            continue
        for name, value in report.user_properties:
            if name != "fault":
                continue
            count = counts.setdefault(value["fault"], {**dict.fromkeys(COUNTED, 0), "lost": []})
            for what in COUNTED:
                count[what] += value.get(what, 0)
            if value.get("lost", "") not in ("", *count["lost"]):
                count["lost"].append(value["lost"])
    return counts
