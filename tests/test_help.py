"""What people meet on the command line and in Python before the first result: help, presets, logging, warnings."""

import logging
import os
import re
import sys
import tomllib
import types
import warnings

import pytest

import synthsieve as package
from synthsieve.cli.options import folded
from synthsieve.errors import ConfigError, SynthsieveWarning
from synthsieve.io.progress import LOGGER, info
from synthsieve.settings import preset_names, preset_text
from synthsieve.training.history import tensorboard_writer
from tests.errors import raises
from tests.stories.test_command_line import synthsieve
from tests.test_snapshots import VERBS


@pytest.mark.parametrize("words", [["-h"], *([verb, "-h"] for verb in VERBS)])
def test_help_fits_a_terminal_and_shows_no_python_types(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    shown = synthsieve(*words).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "..." not in shown.replace("[ARGS]...", "")
    assert not re.search("<[a-z]", shown)
    assert "{" not in shown


def test_long_sentences_are_broken_between_words_on_a_terminal():
    sentence, table, path = "one two three four", "a   b   c   d   e", "/a/path/without/blanks"
    text = "\n".join((sentence, "", table, path))
    assert folded(text, 10) == "\n".join(("one two", "three four", "", table, path))
    assert folded(text, 80) == text


def test_presets_are_listed_and_printed():
    listed = synthsieve("presets").stdout
    assert [line for line in listed.splitlines() if not line.startswith(" ")] == preset_names()
    assert "Default for: table." in " ".join(listed.split())
    printed = synthsieve("presets", "table-minutes").stdout
    assert tomllib.loads(printed) == tomllib.loads(preset_text("table-minutes"))
    assert "'tables-minutes'" in synthsieve("presets", "tables-minutes", code=2).stderr


def test_a_printed_preset_is_a_settings_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(synthsieve("presets", "digits-minutes").stdout, encoding="utf-8")
    from synthsieve.settings import load_settings

    assert load_settings(path) == load_settings("digits-minutes")
    with raises(ConfigError, "unknown-preset"):
        load_settings("mine")


def test_shell_completion_knows_commands_and_presets(monkeypatch):
    for line, expected in (("synthsieve pre", {"predict", "presets"}), ("synthsieve run x -c ta", {"table-minutes"})):
        words = line.split()
        for name, value in {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}.items():
            monkeypatch.setitem(os.environ, name, value)
        monkeypatch.setitem(os.environ, "_SYNTHSIEVE_COMPLETE", "complete_bash")
        assert set(synthsieve().stdout.split()) == expected


@pytest.mark.parametrize("verb", ["run", "reproduce", "fit", "sample", "select", "predict", "evaluate", "export"])
def test_threads_has_one_name(verb):
    assert "--threads" in synthsieve(verb, "-h").stdout


def test_logging_is_quiet_unless_configured(caplog, capsys):
    assert any(isinstance(handler, logging.NullHandler) for handler in LOGGER.handlers)
    with caplog.at_level(logging.WARNING, logger="synthsieve"):
        info("50 labelled")
    assert caplog.records == []
    with caplog.at_level(logging.INFO, logger="synthsieve"):
        info("50 labelled, 100 %")
    assert [(one.name, one.getMessage()) for one in caplog.records] == [("synthsieve", "50 labelled, 100 %")]
    assert capsys.readouterr() == ("", "")


def test_warnings_have_one_base():
    from sklearn.exceptions import ConvergenceWarning

    from synthsieve.estimators.classifier import UntrainedWarning
    from synthsieve.selection.entropy import PrecisionWarning
    from synthsieve.training.drift import TrainingWarning

    assert package.SynthsieveWarning is SynthsieveWarning
    assert issubclass(SynthsieveWarning, UserWarning)
    for kind in (UntrainedWarning, PrecisionWarning, TrainingWarning):
        assert issubclass(kind, SynthsieveWarning)
    assert issubclass(UntrainedWarning, ConvergenceWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SynthsieveWarning)
        warnings.warn("quiet", UntrainedWarning, stacklevel=1)


def test_tensorboard_leaves_out_what_a_resumed_run_repeats(tmp_path, monkeypatch):
    made = []

    class Writer:
        def __init__(self, folder, purge_step):
            made.append((folder, purge_step))

        def add_scalar(self, name, value, step):
            made.append((name, value, step))

        def flush(self): ...

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=Writer))
    for steps in ((10, 20), (20, 30)):  # killed after 20, resumed from a checkpoint at 10
        add = tensorboard_writer(tmp_path)
        for step in steps:
            add({"step": step, "loss": 1.0})
    folder = tmp_path / "tensorboard"
    assert made == [
        (folder, 10),
        ("loss", 1.0, 10),
        ("loss", 1.0, 20),
        (folder, 20),
        ("loss", 1.0, 20),
        ("loss", 1.0, 30),
    ]


def test_tensorboard_shows_each_step_once(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for steps in ((10, 20, 30), (20, 30, 40)):
        add = tensorboard_writer(tmp_path)
        for step in steps:
            add({"step": step, "loss": float(step)})
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == [10, 20, 30, 40]
