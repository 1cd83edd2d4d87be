"""What is kept of an experiment, and what is left alone."""

from synthsieve.experiments.arms import BASELINE, Cell
from synthsieve.experiments.outcome import keep_synthetic
from synthsieve.experiments.table import Experiment
from synthsieve.learning.run_folder import RunFolder
from tests.finished import CRAIG, finished_run


def kept(out, cell: Cell):
    first = RunFolder.open(out / "seed-0" / "first-phase")
    return keep_synthetic(Experiment(out, first.origin, first.settings, (0,), (cell,)), cell)


def test_only_what_it_wrote_itself_is_removed_when_another_arm_is_kept(tmp_path):
    out = finished_run("image", tmp_path)
    for name in ("synthetic-for-anna/manifest.json", "synthetic/manifest.json", "synthetic/metadata.csv"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("{}", encoding="utf-8")
    (out / "synthetic_notes.md").write_text("mine", encoding="utf-8")
    assert {path.name for path in kept(out, CRAIG)} == {"synthetic.npz", "synthetic.png"}
    assert kept(out, BASELINE) == []
    assert {path.name for path in out.glob("synthetic*")} == {"synthetic", "synthetic-for-anna", "synthetic_notes.md"}
    assert (out / "synthetic" / "metadata.csv").exists()


def test_sounds_of_an_arm_that_was_kept_before_go(tmp_path):
    out = finished_run("sound", tmp_path)
    assert (out / "synthetic" / "metadata.csv").exists()
    assert kept(out, BASELINE) == []
    assert not list(out.glob("synthetic*"))
