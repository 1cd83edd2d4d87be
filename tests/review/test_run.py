"""A folder is opened as what it is, or refused in a sentence."""

import json

import numpy as np
import pytest

from synthsieve import open_run
from synthsieve.errors import CheckpointError, ConfigError
from synthsieve.review.run import ALONE
from tests.finished import CRAIG, KINDS, finished_run


def test_a_run_knows_its_arms_and_shows_craigs_pool_where_real_data_alone_are_kept(out):
    run = open_run(out)
    assert set(run.pooled) == {"entropy, L=60", "entropy + CRAIG, L=60"}
    assert run.looked_at == (run.chosen if run.chosen in run.pooled else CRAIG.name)
    assert run.dataset.name == "digits"
    assert run.first_phase.split.classes == run.dataset.classes


def test_another_arm_can_be_asked_for(out):
    view = open_run(out).pool("entropy, L=60")
    assert view.name == "entropy, L=60"
    assert len(view) == 60
    with pytest.raises(ConfigError, match=r"expected an arm with a pool \(entropy, L=60; .*got 'craig'"):
        open_run(out).pool("craig")


def test_one_arm_of_a_run_is_a_run_of_its_own(out):
    run = open_run(out / "seed-0" / CRAIG.slug)
    assert run.table is None
    assert list(run.pooled) == [ALONE]
    assert np.array_equal(run.pool().pool.z, open_run(out).pool(CRAIG.name).pool.z)


def test_a_run_without_a_pool_opens_but_has_none_to_show(out):
    run = open_run(out / "seed-0" / "real-only")
    assert not run.pooled
    with pytest.raises(ConfigError, match="drew no synthetic pool"):
        run.pool()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        (json.dumps({"seeds": [0], "arms": {"a": {"arm": "../..", "pool_size": 1}}}), "cannot be read"),
    ],
)
def test_a_damaged_table_is_told(tmp_path, text, said):
    (tmp_path / "table.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=said):
        open_run(tmp_path)


def test_what_is_no_run_is_refused(tmp_path, out):
    with pytest.raises(CheckpointError, match="holds no run"):
        open_run(tmp_path)
    with pytest.raises(ConfigError, match=r"expected a seed of the run \(0\), got 7"):
        open_run(out, seed=7)
    (tmp_path / "seed-0" / "first-phase").mkdir(parents=True)
    with pytest.raises(CheckpointError, match="not finished"):
        open_run(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_can_be_looked_at(kind, tmp_path):
    view = open_run(finished_run(kind, tmp_path)).pool()
    rows = view.pool.selected[:3]
    assert view.decode(view.pool.selected).tobytes() == view.pool.x.tobytes()
    assert len(view.items(rows)) == len(view.real_items(view.scores.nearest_row[rows])) == len(rows)
    steps, x = view.chain(int(rows[0]), count=3)
    assert steps.tolist() == [0, 4, 8]
    assert x[-1].tobytes() == view.decode(rows[:1])[0].tobytes()
