"""Shards hold what `draw_samples` draws, and `select` reads them."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from synthsieve.distributed import sample
from synthsieve.distributed.engine import InProcess
from synthsieve.distributed.sample import Drawing, sample_shards
from synthsieve.drawing import draw_samples
from synthsieve.entropy import entropy_of_logits
from synthsieve.errors import ConfigError
from synthsieve.learning.loop import fit
from synthsieve.learning.run_folder import Origin, RunFolder
from synthsieve.lock import locked_beside
from synthsieve.sampling.langevin import LangevinSettings
from synthsieve.sieve_files import read_table
from tests.distributed.made_up import contents
from tests.learning.conftest import QUICK


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from synthsieve.defaults import settings_for

    dataset = Origin("digits").load()
    settings = settings_for("digits", overrides=[*QUICK, "learning.steps=2"]).first_phase()
    run = RunFolder.create(tmp_path_factory.mktemp("run") / "run", Origin("digits"), settings, dataset)
    fit(run, dataset)
    return run


def test_shards_are_the_samples_of_one_process(tmp_path, run, monkeypatch):
    monkeypatch.setattr(sample, "SHARD", 40)
    chains = LangevinSettings(num_steps=3)
    asked = {"per_class": 9, "labels": range(10), "chains": chains, "noise": True, "seed": 5}
    paths = sample_shards(Drawing(run.path, tmp_path / "out", **asked), engine=InProcess())
    assert [path.name for path in paths] == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    alone = draw_samples(run.model(), run.encoding, per_class=9, chains=chains, noise=True, seed=5)
    table = pq.read_table(tmp_path / "out")
    about = json.loads((tmp_path / "out" / "_samples.json").read_text(encoding="utf-8"))
    x = np.array(table["x"].to_pylist(), dtype=about["x"]["dtype"]).reshape(-1, *about["x"]["shape"])
    assert np.array_equal(x, alone.x)
    assert np.array_equal(np.array(table["latent"].to_pylist(), dtype=np.float32), alone.z)
    assert np.array_equal(table["chain_seed"].to_numpy(), alone.chain_seed)
    assert table["class"].to_pylist() == [run.split.classes[y] for y in alone.y]
    read = read_table(tmp_path / "out")
    logits = read.answers["logits"]
    assert logits.columns == tuple(run.split.classes)
    assert np.array_equal(entropy_of_logits(logits.values), table["entropy"].to_numpy())
    sample_shards(Drawing(run.path, tmp_path / "again", **asked), engine=InProcess())
    assert contents(tmp_path / "out") == contents(tmp_path / "again")
    with pytest.raises(ConfigError, match="a new or empty folder"):
        sample_shards(Drawing(run.path, tmp_path / "out", **asked), engine=InProcess())
    sample_shards(Drawing(run.path, tmp_path / "some", **{**asked, "labels": (2, 7)}), engine=InProcess())
    of_two = table.filter([name in ("2", "7") for name in table["class"].to_pylist()])
    assert pq.read_table(tmp_path / "some").to_pylist() == of_two.to_pylist()


def test_two_into_one_folder_are_refused_before_the_work_folder_of_the_first_is_swept(tmp_path, run, monkeypatch):
    from synthsieve.cli.app import app
    from synthsieve.distributed import on_ray

    monkeypatch.setattr(on_ray, "connected", lambda *asked, **more: pytest.fail("it was not refused"))
    words = ["sample", str(run.path), "--to", str(tmp_path / "out"), "--cluster", "local", "--quiet"]
    with locked_beside(tmp_path / "out"):
        refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, ConfigError)
    assert "is being written by another command" in str(refused.exception)
