"""Opening the directory of a run, of a single fit, and of neither."""

import json

import numpy as np
import pytest

from synthsieve import open_run
from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.results.finished import SINGLE_FIT
from synthsieve.results.table import ResultsTable
from tests.errors import raises
from tests.finished import CRAIG, KINDS, finished_run
from tests.results.made_up_table import table_json


def test_variants_and_default_pool(out):
    run = open_run(out)
    assert set(run.pooled) == {"entropy, L=60", "entropy + CRAIG, L=60"}
    assert run.default_arm == (run.chosen if run.chosen in run.pooled else CRAIG.name)
    assert run.dataset.name == "digits"
    assert run.pretrained.split.classes == run.dataset.classes


def test_pool_of_another_variant(out):
    view = open_run(out).pool("entropy, L=60")
    assert view.name == "entropy, L=60"
    assert len(view) == 60
    with raises(ConfigError, "unknown-variant"):
        open_run(out).pool("craig")


def test_single_fit(out):
    run = open_run(out / "seed-0" / CRAIG.slug)
    assert run.table is None
    assert list(run.pooled) == [SINGLE_FIT]
    assert np.array_equal(run.pool().pool.z, open_run(out).pool(CRAIG.name).pool.z)


def test_run_without_a_pool(out):
    run = open_run(out / "seed-0" / "real-only")
    assert not run.pooled
    with raises(ConfigError, "no-pool"):
        run.pool()


@pytest.mark.parametrize(
    "damage",
    [
        "{",
        "[]",
        {"arms": {"a": {"arm": "../..", "pool_size": 1}}},
        {"paired_comparison": {}},
        {"paired_comparison": None},
        {"choice": {"arm": "another"}},
        {"quality": {"of": 3}},
        {"metrics": {}},
        {"seeds": []},
    ],
)
def test_damaged_table(tmp_path, damage):
    text = damage if isinstance(damage, str) else json.dumps(table_json() | damage)
    (tmp_path / "table.json").write_text(text, encoding="utf-8")
    with raises(CheckpointError, "damaged-table"):
        open_run(tmp_path)


def test_table_is_written_as_read(out):
    stored = json.loads((out / "table.json").read_text(encoding="utf-8"))
    table = ResultsTable.read(out / "table.json")
    assert table.as_dict() == stored
    assert ResultsTable.model_validate(stored) == table
    assert table.paired_comparison.comparison(CRAIG.name).describe()
    assert table.means == stored["paired_comparison"]["mean"]


def test_not_a_run(tmp_path, out):
    with raises(CheckpointError, "no-run"):
        open_run(tmp_path)
    with raises(ConfigError, "unknown-seed"):
        open_run(out, seed=7)
    (tmp_path / "seed-0" / "pretrained").mkdir(parents=True)
    with raises(CheckpointError, "unfinished-run"):
        open_run(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data(kind, tmp_path):
    view = open_run(finished_run(kind, tmp_path)).pool()
    rows = view.pool.selected[:3]
    assert view.decode(view.pool.selected).tobytes() == view.pool.x.tobytes()
    assert len(view.items(rows)) == len(view.real_items(view.nearest(rows).indices)) == len(rows)
    steps, x = view.chain(int(rows[0]), count=3)
    assert steps.tolist() == [0, 4, 8]
    assert x[-1].tobytes() == view.decode(rows[:1])[0].tobytes()
