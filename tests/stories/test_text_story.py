"""Sentences through the command line: fit with augmented training, draw, read what was drawn."""

import csv
import json

import numpy as np
from typer.testing import CliRunner

from synthsieve.cli.app import app
from tests.modalities import text

SMALL = (
    "data.labels=20",
    "training.steps=10",
    "augmentation.steps=4",
    "augmentation.pool_size=100",
    "augmentation.require_label=false",
    "sampling.num_steps=5",
    "model.generator_width=16",
)


def test_sentences_are_learned_and_drawn(tmp_path):
    texts, y = text.sentences(200)
    path, out = tmp_path / "opinions.tsv", tmp_path / "out"
    lines = [f"{words}\t{('bad', 'good')[one]}" for words, one in zip(texts, y, strict=True)]
    path.write_text("\n".join(["said\tmood", *lines]) + "\n", encoding="utf-8")
    overrides = [word for one in SMALL for word in ("--set", one)]
    command = ["fit", str(path), "-o", str(out), "--text", "said", "--label", "mood", "--augment", "--threads", "1"]
    done = CliRunner().invoke(app, [*command, "--quiet", "--json", *overrides])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["steps"] == 14
    drawings = []
    for name in ("first", "second"):
        to = tmp_path / f"{name}.npz"
        done = CliRunner().invoke(app, ["sample", str(out), "--per-class", "3", "--to", str(to), "--threads", "1"])
        assert done.exit_code == 0, done.output
        with np.load(to, allow_pickle=False) as held:
            drawings.append(held["x"])
    np.testing.assert_array_equal(*drawings)
    with (tmp_path / "first.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["mood"] for row in rows] == ["bad"] * 3 + ["good"] * 3
    assert [row["text"].encode() for row in rows] == drawings[0].tolist()
    known = {word for words in texts for word in words.split()}
    assert all(set(row["text"].split()) <= known for row in rows)
