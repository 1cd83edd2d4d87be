"""`synthsieve utility` and `synthsieve label` from files: what is printed, written and refused."""

import csv
import json

import numpy as np
import pytest

import synthsieve
from synthsieve.api.utility import utility_of_files
from synthsieve.errors import ConfigError, DataError, InputError
from synthsieve.evaluation.labeling import label_rows
from synthsieve.settings import Metric
from tests.errors import raises
from tests.stories.test_command_line import synthsieve as command

COLOURS = ("blue", "green", "red")


def write_table(path, n, seed, *, extra=False, unlabeled=0):
    """Three classes by two numbers and a word."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["size", "weight", "shape", "colour", *(["entropy"] if extra else [])])
        for i in range(n):
            c = i % 3
            x, word = rng.normal(size=2) + np.array([c, -c]), ("round", "square")[int(rng.random() < 0.3 + 0.2 * c)]
            label = "" if i >= n - unlabeled else COLOURS[c]
            rows.writerow([f"{x[0]:.4f}", f"{x[1]:.4f}", word, label, *([0.1] if extra else [])])
    return path


@pytest.fixture
def files(tmp_path):
    real = write_table(tmp_path / "real.csv", 30, 0, unlabeled=12)
    synthetic = write_table(tmp_path / "synthetic.csv", 60, 1, extra=True)
    return real, synthetic, write_table(tmp_path / "test.csv", 60, 2)


@pytest.mark.parametrize("estimator", ["logistic", "forest", "boosting", "knn", "mlp"])
def test_every_common_model_reads_tables(files, estimator):
    real, synthetic, test = files
    found = utility_of_files(real, synthetic, label="colour", test=test, estimator=estimator, repeats=1)
    assert (found.num_labels, found.num_synthetic, found.num_test) == (18, 60, 60)
    assert found.rows["self-labelled real rows"] == 12
    assert found.scores["all synthetic rows"][Metric.ACCURACY] > 0.4


def test_the_command_prints_the_answer_and_writes_a_chart(files, tmp_path):
    real, synthetic, test = files
    arguments = [real, synthetic, "--label", "colour", "--test", test, "--estimator", "logistic", "--repeats", "1"]
    shown = command("utility", *arguments, "--figure", tmp_path / "chart.svg")
    assert "all synthetic rows - labels only" in shown.stdout
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8").startswith("<svg")
    plain = json.loads(command("utility", *arguments, "--json", "--quiet").stdout)
    assert plain["answer"] in shown.stdout
    assert plain["primary"]["primary"]


def test_an_estimator_of_the_users_own_module(files, tmp_path, monkeypatch):
    (tmp_path / "own_models_of_a_user.py").write_text(
        "from sklearn.dummy import DummyClassifier\ndef make(): return DummyClassifier()\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    real, synthetic, test = files
    found = utility_of_files(
        real, synthetic, label="colour", test=test, estimator="own_models_of_a_user:make", repeats=1
    )
    assert found.scores["labels only"][Metric.BALANCED_ACCURACY] == pytest.approx(1 / 3)
    with raises(ConfigError, "unknown-estimator"):
        utility_of_files(real, synthetic, label="colour", test=test, estimator="own_models_of_a_user:absent")
    with raises(InputError, "unknown-estimator"):
        utility_of_files(real, synthetic, label="colour", test=test, estimator="perceptron")


def test_arrays_and_texts(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("real", 12), ("synthetic", 60), ("test", 60)):
        y = np.arange(n) % 2
        np.savez(tmp_path / f"{name}.npz", x=rng.normal(size=(n, 1, 4, 4)) + y[:, None, None, None], y=y)
        words = [f"{('good fine', 'bad poor')[c]} {rng.integers(10**9)}" for c in y]
        lines = "".join(f"{text},{c}\n" for text, c in zip(words, y, strict=True))
        (tmp_path / f"{name}.csv").write_text(f"text,mood\n{lines}", encoding="utf-8")
    for suffix, options in ((".npz", {}), (".csv", {"label": "mood", "text": "text"})):
        paths = [tmp_path / f"{name}{suffix}" for name in ("real", "synthetic", "test")]
        found = utility_of_files(*paths[:2], test=paths[2], estimator="logistic", repeats=1, **options)
        assert found.scores["all synthetic rows"][Metric.ACCURACY] > 0.8


def test_refused_files(files, tmp_path):
    real, synthetic, test = files
    with raises(ConfigError, "missing-label"):
        utility_of_files(real, synthetic)
    with raises(DataError, "missing-column"):
        utility_of_files(real, synthetic, label="color")
    with raises(DataError, "missing-file"):
        utility_of_files(real, tmp_path / "absent.csv", label="colour")
    with raises(InputError, "leak"):
        utility_of_files(real, test, label="colour", test=test)


def test_labels_with_low_probability_are_rejected():
    p = np.array([[0.9, 0.05, 0.05], [0.4, 0.3, 0.3], [0.0, 0.0, 1.0]])
    rows = label_rows(p, np.array(COLOURS))
    assert rows.y.tolist() == ["blue", "blue", "red"]
    assert rows.rejected.tolist() == [False, True, False]
    assert rows.weight.tolist() == [0.9, 0.0, 1.0]
    assert rows.reason[1]
    assert not rows.reason[0]
    assert rows.entropy[2] == 0
    assert rows.kept.tolist() == [0, 2]
    with raises(InputError, "invalid-parameter"):
        label_rows(p, np.array(COLOURS), min_probability=2)


def test_new_rows_are_labelled_and_keep_their_columns(tmp_path):
    real = write_table(tmp_path / "real.csv", 60, 0, unlabeled=30)
    new = write_table(tmp_path / "new.csv", 9, 1)
    out = tmp_path / "out"
    synthsieve.fit(real, out, label="colour", overrides=["training.steps=20", "training.evaluate_every=20"])
    to = tmp_path / "labelled.csv"
    command("label", out, new, "-o", to, "--quiet")
    rows = list(csv.DictReader(to.open()))
    names = ["size", "weight", "shape", "colour", "label", "probability", "entropy", "synthetic_weight"]
    assert list(rows[0]) == [*names, "rejected", "reason"]
    assert len(rows) == 9
    assert {row["label"] for row in rows} <= set(COLOURS)
    command("label", out, new, "-o", to, "--quiet", code=2)
    with raises(ConfigError, "bad-target"):
        synthsieve.label(out, new, tmp_path / "labelled.npz")
    found = synthsieve.label(out, new, tmp_path / "all.parquet", min_probability=0.0)
    assert not found.rows.rejected.any()
