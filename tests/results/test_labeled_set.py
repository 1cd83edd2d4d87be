"""The data set that a run hands out: every row with its origin, and what common models gain from it."""

import csv

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from synthsieve.api.utility import own_student
from synthsieve.data.origin import Origin
from synthsieve.errors import InputError
from synthsieve.experiments.experiment import Experiment
from synthsieve.experiments.usefulness import (
    CONTROLS,
    SAMPLES,
    SELF_LABELED,
    describe_usefulness,
    measure_usefulness,
)
from synthsieve.io.npz import read_arrays
from synthsieve.io.progress import NullProgress
from synthsieve.results.labeled_set import write_labeled_set
from synthsieve.training.defaults import settings_for
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises
from tests.finished import CELLS, CRAIG, SMALL, finished_run


def experiment_of(kind, tmp_path):
    """A finished run of `kind`, with its data."""
    out = finished_run(kind, tmp_path)
    origin = Origin("digits" if kind == "digits" else f"small-{kind}")
    dataset = origin.load()
    return Experiment(out, origin, settings_for(origin.source, dataset, overrides=SMALL), (0,), CELLS), dataset


@pytest.mark.parametrize("kind", ["image", "table", "text"])
def test_every_row_has_an_origin(kind, tmp_path):
    experiment, dataset = experiment_of(kind, tmp_path)
    paths = write_labeled_set(experiment, dataset, CRAIG)
    assert [path.suffix for path in paths] == {
        "image": [".npz"],
        "table": [".npz", ".csv", ".parquet"],
        "text": [".npz", ".csv"],
    }[kind]
    names = ("x", "y", "origin", "classes", "probability", "entropy", "weight", "rejected", "reason")
    found = read_arrays(paths[0], names)
    split = RunDirectory.open(experiment.folder(CRAIG, experiment.whole_units[0])).split
    origin = found["origin"]
    assert (origin == "labelled").sum() == len(split.labeled)
    assert (origin == "self-labelled").sum() == len(split.unlabeled)
    assert set(origin) <= {"labelled", "self-labelled", "synthetic"}
    own = origin == "labelled"
    assert (found["y"][own] == dataset.train.y[split.labeled]).all()
    assert (found["weight"][own] == 1).all()
    assert (found["weight"][found["rejected"]] == 0).all()
    assert (found["reason"][found["rejected"]] != "").all()
    assert len(found["x"]) == len(found["y"]) == len(found["weight"])
    if kind != "image":
        rows = list(csv.DictReader(paths[1].open(encoding="utf-8")))
        assert [row["origin"] for row in rows] == origin.tolist()


def test_gains_of_common_models(tmp_path):
    experiment, dataset = experiment_of("image", tmp_path)
    found = measure_usefulness(experiment, dataset, CRAIG, progress=NullProgress())
    assert found == measure_usefulness(experiment, dataset, CRAIG, progress=NullProgress())
    assert found["chosen"] in found["mean"]
    assert set(found["rows"]) <= {"labels only", SELF_LABELED, SAMPLES}
    assert found["rows"]["labels only"] == 0
    for name, mean in found["mean"].items():
        each = [gains[name] for gains in found["each"].values()]
        assert mean["difference"] == pytest.approx(np.mean([one["difference"] for one in each]))
        low, high = mean["interval_95"]
        assert low <= mean["difference"] <= high
    assert set(found["controls"]) == set(CONTROLS)
    chosen = found["mean"][found["chosen"]]["with_addition"]
    for control in found["controls"].values():
        assert control["with_addition"] == pytest.approx(chosen)
        assert control["difference"] == pytest.approx(chosen - control["control"])
    mean, controls, each = describe_usefulness(found, 20)
    assert "with the 20 labels alone" in mean
    low, high = found["each"]["random forest"][found["chosen"]]["interval_95"]
    assert f"({100 * low:+.1f} to {100 * high:+.1f})" in each
    best = max(found["controls"].values(), key=lambda one: one["control"])
    assert f"{100 * best['difference']:+.1f} points" in controls


class Fails(GaussianNB):
    def fit(self, X, y):
        raise ValueError("never")


def test_the_users_own_model_is_measured_and_decides_what_to_add(tmp_path):
    experiment, dataset = experiment_of("image", tmp_path)
    common = measure_usefulness(experiment, dataset, CRAIG, progress=NullProgress())
    own = own_student("tests.results.test_labeled_set:GaussianNB")
    found = measure_usefulness(experiment, dataset, CRAIG, own=own, progress=NullProgress())
    assert found["own"] == own.name
    assert found["mean"] == common["mean"]
    assert found["each"].keys() - common["each"].keys() == {own.name}
    gain = found["each"][own.name][found["chosen"]]
    assert f"{100 * gain['difference']:+.1f} points" in describe_usefulness(found, 20)[0]
    assert own.name in describe_usefulness(found, 20)[0]
    with raises(InputError, "estimator-failed"):
        measure_usefulness(experiment, dataset, CRAIG, own=own_student(Fails()), progress=NullProgress())
    with raises(InputError, "no-fit"):
        own_student(object)
