"""Each example runs, and says what it promises."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_demo(tmp_path):
    words = ["--out", tmp_path, "--set", "learning.steps=30", "--set", "model.encoder_width=32"]
    command = [sys.executable, EXAMPLES / "demo.py", *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    assert "digits: 50 labelled, 1245 unlabelled, 143 validation, 359 test" in done.stdout
    assert "supervised only  test accuracy" in done.stdout
    assert "joint model      test accuracy" in done.stdout
    assert (tmp_path / "samples.png").stat().st_size > 1000
    assert (tmp_path / "samples.npz").is_file()


def test_sieve_alone():
    done = subprocess.run([sys.executable, EXAMPLES / "sieve_alone.py"], capture_output=True, text=True, check=True)
    assert "3,000 rows" in done.stdout
    *_, last = done.stdout.splitlines()
    shares = [float(word.rstrip("%")) for word in last.replace(",", "").split() if word.endswith("%")]
    assert shares[0] < 90 < 97 < shares[1]
