"""`synthsieve.benchmark`: from a file to a table and an answer, resumed where it was stopped."""

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import synthsieve
from synthsieve.data.origin import Origin
from synthsieve.errors import ConfigError, DataError
from synthsieve.evaluation.answers import Answers, read_answers, write_answers
from synthsieve.evaluation.comparison import Verdict
from synthsieve.experiments.benchmark import Benchmark, MethodResult
from synthsieve.experiments.workers import InProcessPool
from synthsieve.results.benchmark import result_of
from synthsieve.settings import Metric, Settings
from tests.errors import raises
from tests.stories.test_command_line import synthsieve as command

SETTINGS = [
    *("model.encoder_width=8", "model.label_width=8", "model.generator_width=8", "model.energy_width=8"),
    *("training.steps=8", "training.batch_labeled=10", "training.batch_unlabeled=10", "sampling.training_steps=2"),
    *("data.folds=3", "comparison.pool_sizes=[20]", "sampling.num_steps=2", "training.shift=2"),
]
METHODS = "supervised,logistic-regression,jem"
OPTIONS = {"methods": METHODS, "label": "kind", "workers": 0, "overrides": SETTINGS, "log": lambda _: None}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("data") / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "b", "word", "kind"])
        for i in range(90):
            c = i % 2
            label = "" if i >= 60 else "xy"[c]
            numbers = [f"{value:.3f}" for value in rng.normal(size=2) + 2 * c]
            rows.writerow([*numbers, "red" if rng.random() < 0.5 else "blue", label])
    return path


@pytest.fixture(scope="module")
def whole(table, tmp_path_factory):
    return synthsieve.benchmark(table, tmp_path_factory.mktemp("whole"), **OPTIONS)


def without_times(report):
    text = json.dumps(report)
    return {k: v for k, v in json.loads(text).items() if k != "budgets"}, [
        {key: value for key, value in run.items() if key != "seconds"}
        for method in report["budgets"]["1"].values()
        for run in method["runs"]
    ]


def test_benchmark_of_a_table(whole):
    assert {row[0] for row in whole.rows()} == {"supervised", "logistic-regression", "ours"}
    assert whole.left_out == {"jem": "it needs x of continuous numbers, which those of table are not"}
    assert whole.sizes["test"] == 60  # cross-fitting: every label measures once
    assert whole.settings["seeds"] == [0]
    assert whole.settings["training"]["shift"] == 0  # hand-made augmentation, which no method gets here
    assert whole.answer in (whole.out / "benchmark.md").read_text(encoding="utf-8")
    assert (whole.out / "benchmark.svg").read_text(encoding="utf-8").startswith("<svg")


def test_an_interrupted_benchmark_is_resumed(whole, table, tmp_path, monkeypatch):
    started, poll = [], InProcessPool.poll

    def killed(self, *, seconds):
        started.append(self.running[0].output_path)
        if len(started) == 12:
            raise KeyboardInterrupt
        return poll(self, seconds=seconds)

    monkeypatch.setattr(InProcessPool, "poll", killed)
    with pytest.raises(KeyboardInterrupt):
        synthsieve.benchmark(table, tmp_path / "killed", **OPTIONS)
    resumed = synthsieve.benchmark(table, tmp_path / "killed", **OPTIONS)
    assert len(started) == len(set(started)) + 1  # only the killed one was started twice
    assert without_times(resumed.as_dict()) == without_times(whole.as_dict())

    started.clear()
    synthsieve.benchmark(table, tmp_path / "killed", **OPTIONS, budgets="1,0.25")
    assert {path.name for path in started} == {"0.25.npz"}  # nothing else is trained again


def test_other_data_in_the_same_folder_are_refused(whole, table, tmp_path):
    out = shutil.copytree(whole.out, tmp_path / "copy")
    changed = tmp_path / "table.csv"
    changed.write_text(table.read_text(encoding="utf-8").replace("blue,x", "blue,y", 1), encoding="utf-8")
    with raises(DataError, "other-data"):
        synthsieve.benchmark(changed, out, **OPTIONS)


def test_the_best_trial_has_the_budget_that_counts(whole):
    folders = sorted(whole.out.glob("seed-0/fold-*/supervised"))
    assert len(folders) == 3
    for folder in folders:
        trials = [read_answers(folder / f"trial-0.25-{i}.npz") for i in (1, 2, 3)]
        assert all(set(answers) == {"validation"} for answers, _ in trials)  # test rows are not looked at
        scores = [answers["validation"].right.mean() for answers, _ in trials]
        chosen = read_answers(folder / "1.npz")[1]["identity"]["parameters"]
        assert chosen == trials[int(np.argmax(scores))][1]["identity"]["parameters"]
        assert {metadata["identity"]["share"] for _, metadata in trials} == {0.25}


def test_wrong_input(table, tmp_path):
    done = command("benchmark", table, "--label", "kind", "--methods", "vat,meanteacher", "-o", tmp_path, code=2)
    assert "no method is named 'meanteacher'; the methods are: supervised, pseudo-labels" in done.stderr
    for wrong in ("0", "", "a", "1,-1", "nan"):
        with raises(ConfigError, "bad-budget"):
            synthsieve.benchmark(table, tmp_path, budgets=wrong, **OPTIONS)
    few = tmp_path / "few.csv"
    few.write_text("a,kind\n1,x\n2,y\n3,x\n", encoding="utf-8")
    with raises(DataError, "no-test-rows"):
        synthsieve.benchmark(few, tmp_path / "out", **OPTIONS)


def outcome(right):
    """Answers that are right where `right` says so, on validation as on test."""
    right = np.asarray(right, dtype=bool)
    answers = Answers(
        np.arange(len(right)), np.ones(len(right), dtype=np.int64), np.stack([~right, right], axis=1) * 1.0
    )
    history = [
        {"spent": 50.0, "validation": 0.4},
        {"spent": 75.0, "validation": 0.5},
        {"spent": 100.0, "validation": 0.3},
    ]
    trial = {"budget": 100, "spent": 100, "steps": 2, "costs": {"": 50}, "history": history, "diverged": None}
    return MethodResult([answers], [answers], ["rate 1"], [{**trial, "seconds": 1.0, "split_hash": ""}])


def result(tmp_path, **rights):
    names = {name: right if isinstance(right, MethodResult) else outcome(right) for name, right in rights.items()}
    settings = Settings().changed("comparison", metric=Metric.ACCURACY)
    plan = Benchmark(tmp_path, Origin("digits"), settings, (0,), tuple(names))
    sizes = {"labeled": 10, "unlabeled": 20, "validation": 5, "test": 200}
    return result_of(plan, {1.0: names}, {}, shared_items=False, sizes=sizes)


def test_the_answer_names_a_method_only_where_the_interval_shows_it(tmp_path):
    many = np.arange(200)
    clear = result(tmp_path, vat=many < 180, ours=many < 100)
    assert clear.best == "vat"
    assert clear.answer.startswith("Use vat here")
    assert clear.comparison.comparison("vat").verdict is Verdict.HELPS
    assert "+40.00 points" in clear.answer
    close = result(tmp_path, vat=many < 181, ours=many < 180)
    assert close.answer.startswith("Cannot tell from 200 test rows and 1 seed: vat is the best on validation")
    own = result(tmp_path, vat=many < 100, supervised=many < 90, ours=many < 180)
    assert own.answer.startswith("Use ours here")
    assert "against vat" in own.answer
    assert "It is better than all others" in own.answer


def test_the_chart_has_a_curve_for_each_method(tmp_path):
    chart = result(tmp_path, vat=np.arange(200) < 180, ours=np.arange(200) < 100).chart()
    assert [layer.name for layer in chart.layers] == ["vat", "ours"]
    assert chart.layers[0].x[-1] == pytest.approx(1)
    assert (chart.layers[0].y[0], chart.layers[0].y[-1]) == (pytest.approx(40), pytest.approx(50))


def test_the_chart_of_several_budgets_has_a_point_for_each(tmp_path):
    names = {
        score: {"vat": outcome(np.arange(200) < score), "ours": outcome(np.arange(200) < 100)} for score in (180, 150)
    }
    found = replace(result(tmp_path, **names[180]), outcomes={1.0: names[180], 0.5: names[150]})
    vat = found.chart().layers[0]
    assert (vat.name, vat.x, vat.y) == ("vat", (0.5, 1.0), (pytest.approx(75), pytest.approx(90)))
    assert "| vat | 75.0 | 90.0 |" in found.markdown()


def test_damaged_answers_are_measured_again(whole, table, tmp_path):
    out = shutil.copytree(whole.out, tmp_path / "copy")
    folder = out / "seed-0" / "fold-0" / "supervised"
    answers, metadata = read_answers(folder / "trial-0.25-1.npz")
    (folder / "trial-0.25-1.npz").write_bytes(b"damaged")
    write_answers(folder / "1.npz", answers, {**metadata, "identity": {}})
    again = synthsieve.benchmark(table, out, **OPTIONS)
    assert without_times(again.as_dict()) == without_times(whole.as_dict())
