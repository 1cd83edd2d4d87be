"""Each example runs and prints what it should."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.finished import finished_run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.slow
def test_generate_and_select(tmp_path):
    command = [sys.executable, EXAMPLES / "generate_and_select.py", "--out", tmp_path / "out", "--steps", "60"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, encoding="utf-8")
    assert "10,000 generated, " in done.stdout
    assert "reproduced: identical" in done.stdout
    assert (tmp_path / "out" / "selected.png").stat().st_size > 1000


def test_select_only():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "select_only.py"], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert "3,000 rows" in done.stdout
    *_, last = done.stdout.splitlines()
    shares = [float(word.rstrip("%")) for word in last.replace(",", "").split() if word.endswith("%")]
    assert shares[0] < 90 < 97 < shares[1]


@pytest.mark.slow
def test_sound(tmp_path):
    command = [sys.executable, EXAMPLES / "sound.py", "--out", tmp_path / "out", "--steps", "15"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, encoding="utf-8")
    assert "20 labels, " in done.stdout
    assert "6 new sounds in " in done.stdout
    assert len(list((tmp_path / "out" / "samples").rglob("*.wav"))) == 6


def test_table(tmp_path):
    command = [sys.executable, EXAMPLES / "table.py", "--out", tmp_path / "shop", "--steps", "12"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, encoding="utf-8")
    assert "order_id: id" in done.stdout
    assert "on 500 held-out rows" in done.stdout
    assert (
        (tmp_path / "shop" / "synthetic.csv")
        .read_text(encoding="utf-8")
        .startswith("order_id,price,discount,size,gift,day,outcome")
    )
    assert "from real ones: 0." in done.stdout


def test_text(tmp_path):
    command = [sys.executable, EXAMPLES / "text.py", "--out", tmp_path / "out", "--steps", "15"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, encoding="utf-8")
    assert "on 200 held-out sentences" in done.stdout
    assert len((tmp_path / "out" / "samples.csv").read_text(encoding="utf-8").splitlines()) == 11


@pytest.mark.slow
def test_embeddings():
    command = [sys.executable, EXAMPLES / "embeddings.py", "--steps", "30"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, encoding="utf-8")
    first, *drawn = done.stdout.splitlines()
    assert "on 100 held-out questions" in first
    assert len(drawn) == 10
    assert all(" do I " in line for line in drawn)


@pytest.mark.slow
def test_own_modality():
    command = [sys.executable, EXAMPLES / "own_modality_used.py", "--steps", "40"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, encoding="utf-8")
    assert "on 397 held-out digits" in done.stdout
    assert len(done.stdout.strip().splitlines()) == 9


@pytest.mark.slow
def test_image(tmp_path):
    command = [sys.executable, EXAMPLES / "image.py", "--out", tmp_path / "out", "--steps", "30"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, encoding="utf-8")
    assert "on 397 held-out digits" in done.stdout
    assert "synthetic examples kept of 2000 drawn" in done.stdout
    assert (tmp_path / "out" / "kept.png").stat().st_size > 500


@pytest.mark.slow
def test_figures(tmp_path):
    out = finished_run("digits", tmp_path)
    command = [sys.executable, EXAMPLES / "figures.py", out, "--out", tmp_path / "figures"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, encoding="utf-8")
    assert " figures: gain, variants, accuracy, losses" in done.stdout
    assert "60 samples with a median entropy of" in done.stdout
    assert (tmp_path / "figures" / "variants.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (tmp_path / "figures" / "latent_map.png").stat().st_size > 10_000
