"""Training under Ray Train is data-parallel training: two workers learn what one process learns."""

import pytest

from synthsieve.data.origin import Origin
from synthsieve.errors import ConfigError
from synthsieve.io.locks import locked
from synthsieve.training.defaults import settings_for
from synthsieve.training.history import read
from synthsieve.training.loop import fit
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises
from tests.training.conftest import QUICK

pytest.importorskip("ray")


def test_a_folder_that_another_command_writes_to_is_refused(tmp_path):
    from synthsieve.distributed.train import fit_on_cluster

    settings = settings_for("digits", overrides=QUICK).pretrained()
    with locked(tmp_path / "out"), raises(ConfigError, "locked"):
        fit_on_cluster(tmp_path / "out", Origin("digits"), settings, workers=2)


@pytest.mark.slow
def test_two_workers_under_ray_train(tmp_path):
    from synthsieve.distributed.ray_engine import connected
    from synthsieve.distributed.train import fit_on_cluster

    settings = settings_for("digits", overrides=[*QUICK, "training.steps=20"]).pretrained()
    origin = Origin("digits")
    with connected("local", workers=2):
        run = fit_on_cluster(tmp_path / "two", origin, settings, workers=2)
    dataset = origin.load()
    fit(RunDirectory.create(tmp_path / "one", origin, settings, dataset), dataset)
    ends = [read(tmp_path / name / "history.jsonl")[-1] for name in ("one", "two")]
    assert ends[0]["step"] == ends[1]["step"] == 20
    assert abs(ends[0]["validation_cross_entropy"] - ends[1]["validation_cross_entropy"]) < 0.05
    assert {path.name for path in run.path.iterdir()} == {path.name for path in (tmp_path / "one").iterdir()}
