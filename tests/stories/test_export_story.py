"""`synthsieve export` and `synthsieve.export` end to end: files, output, errors."""

import json
import os
import re
import resource
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import synthsieve as synthsieve_package
from synthsieve.errors import ConfigError
from tests import hub
from tests.errors import raises
from tests.finished import finished_run
from tests.modalities import text
from tests.stories.test_command_line import quick, synthsieve

__all__ = ["hub"]  # `datasets`, offline


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return finished_run("digits", tmp_path_factory.mktemp("finished"))


def test_default_export(out):
    report = json.loads(synthsieve("export", out, "--json", "--quiet").stdout)
    assert report["export"] == str(out / "export")
    assert report["formats"] == ["parquet", "images"]
    assert set(os.listdir(out / "export")) == {"README.md", "manifest.json", "data.parquet", "images"}
    assert report["files"]["data.parquet"] == {"bytes": (out / "export" / "data.parquet").stat().st_size, "samples": 60}
    assert report["counts"]["selected"] == report["files"]["images"]["samples"]
    printed = synthsieve("export", out, "--quiet").stdout
    num_classes = report["counts"]["num_classes"]
    assert re.search(rf"\d+ of 60 samples of .* are selected, of {num_classes} classes\n  0: \d+, 1: \d+, ", printed)
    assert ("no sample of" in printed) == (num_classes < 10)
    assert "Against training on real data alone, on 359 test examples: " in printed


def test_the_command_in_the_card_reproduces_the_export(out, tmp_path):
    words = ["--variant", "entropy, L=60", "--keep-fraction", "0.2", "--budget", "0.5", "--format", "npz", "--all"]
    synthsieve("export", out, "--to", tmp_path / "one", *words)
    card = (tmp_path / "one" / "README.md").read_text(encoding="utf-8")
    command = re.search(r"```sh\nsynthsieve (.*)\n```", card)[1]
    again = [str(out) if word == "OUT" else word for word in shlex.split(command)]
    synthsieve(*again, "--to", tmp_path / "two")
    for name in ("README.md", "manifest.json", "arrays.npz"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "keyword"),
    [
        (["--format", "csv"], "parquet, images, npz, hf"),
        (["--arm", "craig"], "'craig'"),
        (["--seed", "7"], "(0)"),
        (["--entropy-ceiling", "1", "--keep-fraction", "0.5"], "both"),
        (["--entropy-ceiling", "1e-300"], "1e-300"),
        (["--entropy-ceiling", "{low}", "--no-require-label"], "--allow-empty-classes"),
        (["--budget", "2"], "budget"),
        (["--to", "{out}/seed-0"], "other than an export"),
        (["--to", "{out}/table.json"], "is a file"),
    ],
)
def test_errors_are_one_line(out, words, keyword):
    if not (out / "export").exists():
        synthsieve("export", out, "--quiet")
    before = sorted(out.iterdir())
    entropy = np.sort(parquet.read_table(out / "export" / "data.parquet", columns=["entropy"])["entropy"].to_numpy())
    low = f"{entropy[5]:.6g}"  # five samples lie below: of ten classes
    done = synthsieve("export", out, *(word.format(out=out, low=low) for word in words), code=2)
    assert keyword in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(out.iterdir()) == before


def test_export_from_python(out, tmp_path):
    result = synthsieve_package.export(out, tmp_path / "csv", format="npz", keep_fraction=0.2, budget=0.5, which="all")
    assert result.path == tmp_path / "csv"
    assert result.files["arrays.npz"]["samples"] == 60
    assert result.manifest["command"].endswith("--keep-fraction 0.2 --budget 0.5 --format npz --all")
    with raises(ConfigError, "unknown-format"):
        synthsieve_package.export(out, tmp_path / "other", format="xlsx")


def test_a_folder_without_a_run(tmp_path):
    assert str(tmp_path) in synthsieve("export", tmp_path, code=2).stderr
    assert "Invalid value for '--format'" in synthsieve("export", tmp_path, "--format", "xlsx", code=2).stderr


@pytest.mark.parametrize("format", ["parquet", "npz", "images"])
def test_a_full_disk_is_one_line_and_leaves_nothing(out, tmp_path, format):
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_FSIZE, (800, 800))  # no file may grow beyond it
        done = synthsieve("export", out, "--to", tmp_path / "exported", "--format", format, code=2)
        os._exit(len(done.stderr.splitlines()) if "File too large" in done.stderr else 9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert not os.listdir(tmp_path)


def test_embeddings_come_with_the_nearest_rows(tmp_path):
    sentences, y = text.sentences(60)
    features = np.random.default_rng(0).normal(4 * y[:, None], 1, (60, 6)).astype(np.float32)
    csv.write_csv(pa.table({"text": sentences, "mood": np.array(["bad", "good"])[y]}), tmp_path / "data.csv")
    np.save(tmp_path / "features.npy", features)
    source = [tmp_path / "data.csv", "--label", "mood", "--text", "text", "--features", tmp_path / "features.npy"]
    small = quick("augmentation.pool_size=40", "augmentation.steps=2", "sampling.num_steps=3", "data.labels=20")
    synthsieve("fit", *source, "-o", tmp_path / "run", "--augment", "--threads", 1, "--quiet", *small)
    synthsieve(
        "export",
        tmp_path / "run",
        "--to",
        tmp_path / "exported",
        "--format",
        "parquet",
        "--format",
        "csv",
        "--format",
        "npz",
        "--all",
    )
    pool = parquet.read_table(tmp_path / "exported" / "data.parquet")
    x = np.load(tmp_path / "exported" / "arrays.npz")["x"]
    assert np.array_equal(np.stack(pool["embedding"].to_numpy()), x)
    for row in (0, 17):
        nearest = pool["nearest_row"][row].as_py()
        assert pool["nearest_text"][row].as_py() == sentences[nearest]
        apart = np.linalg.norm(features - x[row], axis=1)
        assert pool["distance"][row].as_py() == pytest.approx(apart[nearest], rel=1e-5)
    assert set(pool["mood"].to_pylist()) == {"bad", "good"}
    header = csv.read_csv(tmp_path / "exported" / "data.csv").column_names
    assert header == [name for name in pool.column_names if name != "embedding"]


def test_the_code_in_the_documentation_runs(out, tmp_path, monkeypatch):
    shutil.copytree(out, tmp_path / "out", ignore=shutil.ignore_patterns("export"))
    formats = [word for name in ("parquet", "images", "npz", "hf") for word in ("--format", name)]
    synthsieve("export", tmp_path / "out", *formats, "--quiet")
    monkeypatch.chdir(tmp_path)
    document = (Path(__file__).parents[2] / "docs" / "how-to" / "export.md").read_text(encoding="utf-8")
    pieces = [part.partition("```")[0] for part in document.split("```python\n")[1:]]
    assert len(pieces) == 7
    for piece in pieces:
        exec(compile(piece, "export.md", "exec"), {})
    assert (tmp_path / "exported" / "manifest.json").is_file()
