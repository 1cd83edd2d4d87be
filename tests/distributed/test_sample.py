"""Shards hold what `draw_samples` draws, and `select` reads them."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from synthsieve.data.origin import Origin
from synthsieve.distributed import ray_engine, sample
from synthsieve.distributed.engine import InProcess
from synthsieve.distributed.sample import SampleJob, sample_shards
from synthsieve.errors import ConfigError
from synthsieve.io.locks import locked_beside
from synthsieve.models.generate import draw_samples
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.selection.entropy import entropy_of_logits
from synthsieve.selection.files import read_table
from synthsieve.training.loop import fit
from synthsieve.training.run_dir import RunDirectory
from tests.distributed.example_rows import contents
from tests.errors import raises
from tests.training.conftest import QUICK


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from synthsieve.training.defaults import settings_for

    dataset = Origin("digits").load()
    settings = settings_for("digits", overrides=[*QUICK, "training.steps=2"]).pretrained()
    run = RunDirectory.create(tmp_path_factory.mktemp("run") / "run", Origin("digits"), settings, dataset)
    fit(run, dataset)
    return run


def test_shards_hold_the_samples_of_draw_samples(tmp_path, run, monkeypatch):
    monkeypatch.setattr(sample, "SHARD", 40)
    chains = LangevinSettings(num_steps=3)
    options = {"per_class": 9, "labels": range(10), "chains": chains, "noise": True, "seed": 5}
    paths = sample_shards(SampleJob(run.path, tmp_path / "out", **options), engine=InProcess())
    assert [path.name for path in paths] == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    alone = draw_samples(run.load_model(), run.encoding, per_class=9, chains=chains, noise=True, seed=5)
    table = pq.read_table(tmp_path / "out")
    metadata = json.loads((tmp_path / "out" / "_samples.json").read_text(encoding="utf-8"))
    x = np.array(table["x"].to_pylist(), dtype=metadata["x"]["dtype"]).reshape(-1, *metadata["x"]["shape"])
    assert np.array_equal(x, alone.x)
    assert np.array_equal(np.array(table["latent"].to_pylist(), dtype=np.float32), alone.z)
    assert np.array_equal(table["chain_seed"].to_numpy(), alone.chain_seed)
    assert table["class"].to_pylist() == [run.split.classes[y] for y in alone.y]
    read = read_table(tmp_path / "out")
    logits = read.outputs["logits"]
    assert logits.columns == tuple(run.split.classes)
    assert np.array_equal(entropy_of_logits(logits.values), table["entropy"].to_numpy())
    sample_shards(SampleJob(run.path, tmp_path / "again", **options), engine=InProcess())
    assert contents(tmp_path / "out") == contents(tmp_path / "again")
    with raises(ConfigError, "output-exists"):
        sample_shards(SampleJob(run.path, tmp_path / "out", **options), engine=InProcess())
    sample_shards(SampleJob(run.path, tmp_path / "some", **{**options, "labels": (2, 7)}), engine=InProcess())
    of_two = table.filter([name in ("2", "7") for name in table["class"].to_pylist()])
    assert pq.read_table(tmp_path / "some").to_pylist() == of_two.to_pylist()


def test_two_writers_of_one_folder_are_refused(tmp_path, run, monkeypatch):
    from synthsieve.cli.app import app

    monkeypatch.setattr(ray_engine, "connected", lambda *options, **more: pytest.fail("it was not refused"))
    words = ["sample", str(run.path), "--to", str(tmp_path / "out"), "--cluster", "local", "--quiet"]
    with locked_beside(tmp_path / "out"):
        refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, ConfigError)
    assert str(tmp_path / "out") in str(refused.exception)
