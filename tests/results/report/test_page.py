"""The page: self-contained, small, safe and deterministic; and runs that have less to show."""

import json
import re
import shlex
import shutil
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from synthsieve import open_run
from synthsieve.data.origin import Origin
from synthsieve.errors import ConfigError, NothingToDraw
from synthsieve.results.report import page as pages
from synthsieve.results.report.figures import OF_POOL
from synthsieve.results.report.page import LIMIT, write_report
from synthsieve.results.report.sections import command_to_repeat, facts_of, filter_heading
from synthsieve.selection.entropy import Reason
from synthsieve.settings import AugmentationSettings, load_settings
from synthsieve.training.defaults import default_preset
from synthsieve.training.pool import Outcomes
from tests.errors import raises
from tests.finished import CRAIG
from tests.results.report.conftest import EVIL

SECTIONS = ["minute", "variants", "samples", "filter", "coreset", "fidelity", "training", "run"]


class Seen(HTMLParser):
    """Tags with their attributes, headings in order, and the text that can be read."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.headings, self.text, self._within = [], [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._within.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append([int(tag[1]), dict(attrs).get("id"), ""])

    def handle_endtag(self, tag):
        if tag in self._within:
            while self._within.pop() != tag:
                pass

    def handle_data(self, data):
        if {"script", "style"} & set(self._within):
            return
        self.text += data
        if self._within and re.fullmatch("h[1-6]|span|bdi", self._within[-1]) and self.headings:
            self.headings[-1][2] += data


@pytest.fixture
def quick_figures(monkeypatch):
    """Without the map of the latents, which takes seconds."""

    def nothing(view, outcome):
        raise NothingToDraw("not in this test")

    monkeypatch.setitem(OF_POOL, "latent_map", nothing)


def read(written):
    return written.path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written(out, tmp_path_factory):
    return write_report(open_run(out), tmp_path_factory.mktemp("page") / "report.html", variant=CRAIG.name)


@pytest.fixture(scope="module")
def seen(written):
    return Seen(read(written))


def test_order_of_sections_and_headings(seen):
    assert [name for level, name, _ in seen.headings if level == 2] == SECTIONS
    levels = [level for level, _, _ in seen.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_answer_comes_first(seen, written):
    text = " ".join(seen.text.split())
    assert written.answer.replace("\xa0", " ") in text.replace("\xa0", " ")
    assert text.index(written.answer[:20]) < text.index("In one minute") < text.index("Did it help?")


def test_loads_nothing(seen, written):
    text = read(written)
    for tag, attributes in seen.tags:
        for name in ("src", "href", "srcset", "poster", "data", "action"):
            if (value := attributes.get(name)) is not None:
                assert value.startswith(("data:", "#")), (tag, value)
        assert not [name for name in attributes if name.startswith("on")]
    assert sum(tag == "script" for tag, _ in seen.tags) == 1
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "url(http" not in text
    policy = next(a["content"] for _, a in seen.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[^']+'", policy)
    assert "/tmp/" not in text  # no directories of this machine


def test_size(written):
    assert written.path.stat().st_size == written.size < 1_000_000 < LIMIT


def test_every_picture_has_a_text(seen):
    pictures = [attributes for tag, attributes in seen.tags if tag == "img"]
    assert len(pictures) >= 2 * 10
    assert all(re.match(r"synthetic \d, entropy \S+, |nearest real example, of class \d", a["alt"]) for a in pictures)
    assert all(a.get("aria-labelledby") or a.get("aria-label") for t, a in seen.tags if t == "svg" and a.get("role"))


def test_deterministic(out, written, tmp_path):
    again = write_report(open_run(out), tmp_path / "again.html", variant=CRAIG.name)
    assert again.path.read_bytes() == written.path.read_bytes()


def test_command_repeats_the_settings(out, seen):
    run = open_run(out)
    command = facts_of(run, run.dataset)["command"]
    assert command in seen.text
    words = shlex.split(command)
    assert words[:3] == ["synthsieve", "run", "digits"]
    given = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    settings = load_settings(default_preset("digits", run.dataset), given)
    assert settings.model_dump(mode="json", exclude={"seed"}) == run.table.settings
    single = open_run(out / "seed-0" / "pretrained")
    words = shlex.split(facts_of(single, run.dataset)["command"])
    assert words[:3] == ["synthsieve", "fit", "digits"]
    given = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    assert load_settings(default_preset("digits", run.dataset), given).pretrained() == single.pretrained.settings


def test_command_has_no_directories(out):
    run = open_run(out)
    origin = Origin("/home/anna/people.csv", label="kind", schema="/home/anna/types.toml", data_dir="/home/anna/data")
    words = shlex.split(command_to_repeat(origin, run.pretrained.settings, verb="fit", seeds=1, dataset=run.dataset))
    assert words[2:9] == ["people.csv", "--label", "kind", "--schema", "types.toml", "--data-dir", "data"]


def test_target_is_a_directory(out, tmp_path):
    for folder in (tmp_path, Path(".")):
        with raises(ConfigError, "is-a-directory"):
            write_report(open_run(out), folder)


def test_without_validation_rows(out, tmp_path, quick_figures):
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    table = {**open_run(copy).table.as_dict(), "choice": None, "validation_examples": 0}
    (copy / "table.json").write_text(json.dumps(table), encoding="utf-8")
    text = read(write_report(open_run(copy)))
    assert "There are no validation examples to choose a variant on" in text
    assert "chosen on 0" not in text


@pytest.mark.parametrize(
    ("settings", "ceiling", "kept", "line"),
    [
        ({"keep_fraction": 0.3}, 0.2, 3, "3 of 10 samples are below the ceiling of their class"),
        ({"entropy_ceiling": 0.2, "keep_fraction": None}, 0.2, 10, "below the entropy ceiling, 0.2 nats"),
        ({"entropy_ceiling": None, "keep_fraction": None}, np.inf, 10, "No ceiling: 10 of 10 samples are kept"),
        ({"entropy_ceiling": None, "keep_fraction": None}, np.inf, 9, "9 of 10 samples are kept"),
    ],
)
def test_ceiling_heading(settings, ceiling, kept, line):
    reason = np.where(np.arange(10) < kept, Reason.KEPT, Reason.OTHER_LABEL)
    outcome = Outcomes(reason, np.ones(10), np.zeros(10), ceiling, AugmentationSettings(**settings), {})
    assert line in filter_heading(outcome, kept, 10)


def test_single_fit(out, tmp_path, quick_figures):
    written = write_report(open_run(out / "seed-0" / CRAIG.slug), tmp_path / "single.html")
    text = Seen(read(written)).text
    assert written.answer.startswith("Not compared")
    assert "Test accuracy" in text
    assert "worst kept and rejected samples of each class" in text
    assert "Prior match:" in text
    assert "a single fit has no such figures" in text


def test_run_without_a_pool(out, tmp_path):
    written = write_report(open_run(out / "seed-0" / "real-only"), tmp_path / "bare.html")
    assert written.variant is None
    assert written.notes == ("This run has no synthetic pool, so there are no samples to show.",)
    seen = Seen(read(written))
    assert seen.text.count(written.notes[0]) == 3
    assert [name for level, name, _ in seen.headings if level == 2] == SECTIONS


def test_pool_without_its_weights(out, tmp_path, quick_figures):
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    for path in copy.rglob("drawn-by-*"):
        path.unlink()
    written = write_report(open_run(copy))
    assert written.path == copy / "report.html"
    assert "The samples cannot be shown" in written.notes[0]
    assert str(tmp_path) in written.notes[0]
    assert str(tmp_path) not in written.path.read_text(encoding="utf-8")  # reports are shared
    assert "All variants on held-out labels" in read(written)


def test_variant_option(out, tmp_path, quick_figures):
    written = write_report(open_run(out), tmp_path / "other.html", variant="entropy, L=60")
    assert written.variant == "entropy, L=60"
    assert "No coreset: all" in read(written)
    with raises(ConfigError, "unknown-variant"):
        write_report(open_run(out), tmp_path / "none.html", variant="craig")
    assert not (tmp_path / "none.html").exists()


def test_hostile_names_are_escaped(hostile, tmp_path):
    written = write_report(open_run(hostile), tmp_path / "hostile.html")
    text = read(written)
    seen = Seen(text)
    assert sum(tag == "script" for tag, _ in seen.tags) == 1
    assert not [tag for tag, _ in seen.tags if tag == "img"]
    assert "<b>bold" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert EVIL in seen.text
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert [name for level, name, _ in seen.headings if level == 2] == SECTIONS


def test_what_does_not_fit_is_left_out(out, tmp_path, monkeypatch, quick_figures):
    base = write_report(open_run(out), tmp_path / "whole.html", variant=CRAIG.name).size
    monkeypatch.setattr(pages, "LIMIT", base - 5_000)
    monkeypatch.setattr(pages, "FOR_SAMPLES", 1_000)
    written = write_report(open_run(out), tmp_path / "cut.html", variant=CRAIG.name)
    assert written.size < base
    assert any("of 10 classes" in note for note in written.notes)
    assert all(note in Seen(read(written)).text for note in written.notes)
    assert written.size <= base - 5_000
    monkeypatch.setattr(pages, "LIMIT", 20_000)
    written = write_report(open_run(out), tmp_path / "cut.html", variant=CRAIG.name)
    assert any("is left out" in note for note in written.notes)
    assert all(note in Seen(read(written)).text for note in written.notes)
