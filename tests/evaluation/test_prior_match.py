"""The prior match: one half for the same distribution, near 1 for another, None for too few rows."""

import numpy as np
import pytest

import synthsieve
from synthsieve.errors import ConfigError
from synthsieve.evaluation.prior_match import PriorMatch, prior_match
from synthsieve.results.report.page import write_report
from synthsieve.settings import Draw
from tests.errors import raises


def test_same_and_other_distributions():
    rng = np.random.default_rng(0)
    y = np.arange(3).repeat([300, 300, 5])
    drawn, encoded = rng.normal(size=(605, 3)), rng.normal(size=(605, 3))
    encoded[y == 1] += 3
    found = prior_match(drawn, y, encoded, y, num_classes=3, seed=0)
    same, other, few = found.auc
    assert same is not None
    assert other is not None
    # The standard error of an AUC of 300 against 300 rows is about 1 / sqrt(12 * 150).
    assert abs(same - 0.5) < 4 / np.sqrt(12 * 150)
    assert other > 0.95
    assert few is None
    assert found.worst == other
    assert found.mean == np.mean([same, other])
    assert found == prior_match(drawn, y, encoded, y, num_classes=3, seed=0)


def test_nothing_to_measure():
    found = PriorMatch((None, None))
    assert found.mean is None
    assert found.worst is None
    assert "not measured" in found.describe()


@pytest.mark.parametrize("draw", [Draw.LANGEVIN, Draw.MIXTURE])
def test_a_fit_measures_the_draw_of_its_settings(draw, tmp_path):
    steps = ["training.steps=2", "training.evaluate_every=2", f"sampling.draw={draw}"]
    found = synthsieve.fit("digits", tmp_path, labels=50, overrides=steps)
    assert found.prior_match is not None
    assert found.prior_match.mean is not None
    written = write_report(synthsieve.open_run(tmp_path), tmp_path / "report.html")
    assert f"AUC {found.prior_match.mean:.2f} on average" in written.path.read_text(encoding="utf-8")
    assert synthsieve.sample(tmp_path, per_class=1).drawn_by == f"drawn by {draw}"
    with raises(ConfigError, "unknown-draw"):
        synthsieve.sample(tmp_path, draw="gauss")
