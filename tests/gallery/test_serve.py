"""The command: it says where it is, ends at Ctrl-C, and says in one sentence why it cannot begin."""

import builtins
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from tests.finished import CRAIG

from synthsieve.cli.app import main
from synthsieve.gallery.screen import has_screen


def test_it_serves_until_ctrl_c(out, room):
    command = [
        sys.executable,
        "-m",
        "synthsieve",
        "serve",
        str(out),
        "--arm",
        CRAIG.name,
        "--no-open",
        "--json",
        "--quiet",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        line = process.stdout.readline()
        assert line, f"it ended before it served: {process.communicate(timeout=600)[1]}"
        told = json.loads(line)
        assert told["samples"] == 60
        assert told["arm"] == CRAIG.name
        assert told["url"].startswith("http://127.0.0.1:")
        with urllib.request.urlopen(told["url"]) as answer:
            assert "url=/" in answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(told["url"].partition("?")[0])
    finally:
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=600)
    assert process.returncode == 0
    assert rest == ""
    assert "the gallery has ended" in errors
    assert "Traceback" not in errors


def told_by(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    return capsys.readouterr().err


def test_why_it_cannot_begin_is_one_sentence(out, tmp_path, capsys, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port} is taken" in told_by(["serve", str(out), "--port", port], capsys)
    assert "holds no run" in told_by(["serve", str(tmp_path)], capsys)
    assert "expected an arm with a pool" in told_by(["serve", str(out), "--arm", "x"], capsys)
    assert "expected a seed of the run" in told_by(["serve", str(out), "--seed", "9"], capsys)
    usual = builtins.__import__

    def without(name, *rest):
        if name.startswith("uvicorn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for module in [name for name in sys.modules if name.startswith("synthsieve.gallery")]:
        monkeypatch.delitem(sys.modules, module)
    said = told_by(["serve", str(out)], capsys)
    assert "pip install 'synthsieve[gallery]'" in said
    assert len(said.strip().splitlines()) == 1


def test_a_browser_is_opened_only_where_there_is_a_screen():
    assert has_screen({}, "darwin")
    assert has_screen({"DISPLAY": ":0"}, "linux")
    assert has_screen({"WAYLAND_DISPLAY": "wayland-0"}, "linux")
    assert not has_screen({"DISPLAY": ""}, "linux")
