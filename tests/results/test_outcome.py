"""What is written at the end of an experiment: pictures, the kept samples."""

import numpy as np
import pytest

from synthsieve.data.dataset import Dataset, Examples, Kind
from synthsieve.data.origin import Origin
from synthsieve.evaluation.quality import TemperatureRow
from synthsieve.experiments.arms import BASELINE, TableEntry
from synthsieve.experiments.experiment import Experiment
from synthsieve.results.outcome import keep_synthetic, write_figures
from synthsieve.settings import load_settings
from synthsieve.training import checkpoint
from synthsieve.training.run_dir import RunDirectory
from tests.experiments.conftest import SMALL_SETTINGS
from tests.finished import CRAIG, finished_run


def kept(out, cell: TableEntry):
    first = RunDirectory.open(out / "seed-0" / "pretrained")
    return keep_synthetic(Experiment(out, first.origin, first.settings, (0,), (cell,)), cell)


def test_only_stale_samples_are_removed(tmp_path):
    out = finished_run("image", tmp_path)
    for name in ("synthetic-for-anna/manifest.json", "synthetic/manifest.json", "synthetic/metadata.csv"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("{}", encoding="utf-8")
    (out / "synthetic_notes.md").write_text("notes", encoding="utf-8")
    assert {path.name for path in kept(out, CRAIG)} == {"synthetic.npz", "synthetic.png"}
    assert kept(out, BASELINE) == []
    assert {path.name for path in out.glob("synthetic*")} == {"synthetic", "synthetic-for-anna", "synthetic_notes.md"}
    assert (out / "synthetic" / "metadata.csv").exists()


def test_stale_sounds_are_removed(tmp_path):
    out = finished_run("sound", tmp_path)
    assert (out / "synthetic" / "metadata.csv").exists()
    assert kept(out, BASELINE) == []
    assert not list(out.glob("synthetic*"))


@pytest.mark.parametrize(("channels", "pictures"), [(1, 2), (3, 2), (4, 0)])
def test_figures_of_grey_and_colour_images(tmp_path, channels, pictures):
    x = np.random.default_rng(0).integers(0, 255, (60, channels, 8, 8)).astype(np.uint8)
    dataset = Dataset("made up", Kind.IMAGE, ("a", "b"), Examples(x, np.arange(60) % 2))
    settings = load_settings(None, [*SMALL_SETTINGS, "data.labels=10", "data.validation=extra", "data.balanced=true"])
    run = RunDirectory.create(tmp_path, Origin("made up"), settings, dataset)
    checkpoint.save_weights(run.best, run.new_train_state(), {})
    curve = [TemperatureRow(1.0, 2, 0.1, 0.1, 0.5, 0.2, 0.2, 0.5, None)]
    written = write_figures(tmp_path / "figures", run, curve, temperature=1.0)
    assert len(written) == pictures + 1
    assert all(path.is_file() for path in written)
