"""`synthsieve serve`: address, Ctrl-C, errors, and opening the browser without revealing the token."""

import builtins
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from synthsieve.cli.app import main
from synthsieve.results.gallery import server
from synthsieve.results.gallery.security import Access
from tests.finished import CRAIG


def test_serves_until_ctrl_c(out, session):
    command = [
        sys.executable,
        "-m",
        "synthsieve",
        "serve",
        str(out),
        "--variant",
        CRAIG.name,
        "--no-open",
        "--json",
        "--quiet",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        line = process.stdout.readline()
        assert line, f"it ended before it served: {process.communicate(timeout=600)[1]}"
        result = json.loads(line)
        assert result["samples"] == 60
        assert result["variant"] == CRAIG.name
        assert result["url"].startswith("http://127.0.0.1:")
        with urllib.request.urlopen(result["url"]) as answer:
            assert "enter.js" in answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(result["url"])
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(result["url"].partition("?")[0])
    finally:
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=600)
    assert process.returncode == 0
    assert rest == ""
    assert "the gallery has stopped" in errors
    assert "Traceback" not in errors


def error_of(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    return capsys.readouterr().err


def test_startup_errors_are_one_line(out, tmp_path, capsys, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert port in error_of(["serve", str(out), "--port", port], capsys)
    assert str(tmp_path) in error_of(["serve", str(tmp_path)], capsys)
    assert "'x'" in error_of(["serve", str(out), "--variant", "x"], capsys)
    assert "seed" in error_of(["serve", str(out), "--seed", "9"], capsys)
    real_import = builtins.__import__

    def without(name, *rest):
        if name.startswith("uvicorn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for module in [name for name in sys.modules if name.startswith("synthsieve.results.gallery")]:
        monkeypatch.delitem(sys.modules, module)
    message = error_of(["serve", str(out), "--quiet"], capsys)
    assert "pip install 'synthsieve[gallery]'" in message
    assert len(message.strip().splitlines()) == 1


def test_display_detection():
    assert server.has_display({}, "darwin")
    assert server.has_display({"DISPLAY": ":0"}, "linux")
    assert server.has_display({"WAYLAND_DISPLAY": "wayland-0"}, "linux")
    assert not server.has_display({"DISPLAY": ""}, "linux")


def test_the_browser_gets_a_private_file_without_the_token_in_its_name(monkeypatch):
    opened, shown = [], threading.Event()
    monkeypatch.setattr(server, "has_display", lambda: True)
    monkeypatch.setattr(webbrowser, "open", lambda url: (opened.append(url), shown.set()))
    access = Access(8765)
    address = access.new_address()
    with tempfile.TemporaryDirectory() as folder:
        server.open_browser(address, folder)
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
def test_no_command_line_holds_a_token(out, session, tmp_path):
    """A fake browser writes down its argument, which must lead to the gallery without containing the token."""
    browser, noted = tmp_path / "browser", tmp_path / "noted"
    browser.write_text(
        f'#!/bin/sh\nprintf "%s" "$*" > {noted}.part\ncp "${{1#file://}}" {noted}.html\nmv {noted}.part {noted}\n',
        encoding="utf-8",
    )
    browser.chmod(0o755)
    command = [sys.executable, "-m", "synthsieve", "serve", str(out), "--variant", CRAIG.name, "--json"]
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
        result = json.loads(process.stdout.readline())
        end = time.monotonic() + 60
        while not noted.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert "token" not in noted.read_text(encoding="utf-8")
        assert b"token=" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        (address,) = set(re.findall(r"http://127[^\"]*", Path(f"{noted}.html").read_text(encoding="utf-8")))
        assert address != result["url"]
        for url in (address, result["url"]):
            with urllib.request.urlopen(url) as answer:
                assert answer.status == 200
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(url)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert not Path(noted.read_text(encoding="utf-8").removeprefix("file://")).parent.exists()
