"""The command: it says where it is, ends at Ctrl-C, and says in one sentence why it cannot begin."""

import builtins
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from tests.finished import CRAIG

from synthsieve.cli.app import main
from synthsieve.gallery import screen
from synthsieve.gallery.screen import has_screen
from synthsieve.gallery.security import Access


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
            assert "enter.js" in answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(told["url"])
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
    said = told_by(["serve", str(out), "--quiet"], capsys)
    assert "pip install 'synthsieve[gallery]'" in said
    assert len(said.strip().splitlines()) == 1


def test_a_browser_is_opened_only_where_there_is_a_screen():
    assert has_screen({}, "darwin")
    assert has_screen({"DISPLAY": ":0"}, "linux")
    assert has_screen({"WAYLAND_DISPLAY": "wayland-0"}, "linux")
    assert not has_screen({"DISPLAY": ""}, "linux")


def test_the_browser_is_given_a_private_file_and_never_the_token(monkeypatch):
    opened, shown = [], threading.Event()
    monkeypatch.setattr(screen, "has_screen", lambda: True)
    monkeypatch.setattr(webbrowser, "open", lambda url: (opened.append(url), shown.set()))
    access = Access(8765)
    address = access.new_address()
    with screen.private_folder() as folder:
        screen.show(address, folder)
        assert shown.wait(10)
        file = Path(unquote(urlsplit(opened[0]).path))
        assert opened[0].startswith("file://")
        assert file.parent == Path(folder)
        assert address in file.read_text(encoding="utf-8")
        if os.name == "posix":
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        (token,) = parse_qs(urlsplit(address).query)["token"]
        assert token not in opened[0]
    assert not file.exists()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads command lines from /proc")
def test_no_command_line_holds_a_token(out, room, tmp_path):
    """A browser that notes what it was given; what it was given leads to the gallery."""
    browser, noted = tmp_path / "browser", tmp_path / "noted"
    browser.write_text(
        f'#!/bin/sh\nprintf "%s" "$*" > {noted}.part\ncp "${{1#file://}}" {noted}.html\nmv {noted}.part {noted}\n',
        encoding="utf-8",
    )
    browser.chmod(0o755)
    command = [sys.executable, "-m", "synthsieve", "serve", str(out), "--arm", CRAIG.name, "--json"]
    environment = {**os.environ, "DISPLAY": ":9", "BROWSER": f"{browser} %s"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
    )
    try:
        assert process.stderr.readline().startswith("loading ")
        told = json.loads(process.stdout.readline())
        end = time.monotonic() + 60
        while not noted.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert "token" not in noted.read_text(encoding="utf-8")
        assert b"token=" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        (address,) = set(re.findall(r"http://127[^\"]*", Path(f"{noted}.html").read_text(encoding="utf-8")))
        assert address != told["url"]
        for url in (address, told["url"]):
            with urllib.request.urlopen(url) as answer:
                assert answer.status == 200
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(url)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert not Path(noted.read_text(encoding="utf-8").removeprefix("file://")).parent.exists()
