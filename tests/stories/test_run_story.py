"""`run` and `reproduce` end to end: files, messages and resuming."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from synthsieve import load
from synthsieve.evaluation.answers import read_answers, write_answers
from synthsieve.experiments.arms import BASELINE, WITHOUT_SAMPLES, Arm, TableEntry, table_entries
from tests.experiments.conftest import SMALL_SETTINGS, in_process_pool, work_here
from tests.stories.test_command_line import synthsieve

__all__ = ["in_process_pool"]  # the fixture

ARMS = table_entries((40, 80))
SUPERVISED_BASELINE = TableEntry(Arm.SUPERVISED, 0)
CLASSICAL = [
    "majority class",
    "logistic regression",
    "random forest",
    "gradient boosting",
    "self-training",
    "label spreading",
]
CRAIG = TableEntry(Arm.CRAIG, 80)
PSEUDO = TableEntry(Arm.PSEUDO, 0)
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def words(out, *more, source="digits", labels=60):
    settings = [word for setting in SMALL_SETTINGS for word in ("--set", setting)]
    return ["run", source, "-o", str(out), "--labels", str(labels), "--workers", "1", *settings, *map(str, more)]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def written(folder):
    """When every file of a run was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run, and the JSON it printed."""
    out = tmp_path_factory.mktemp("story") / "whole"
    torch.set_num_threads(1)  # as in the processes it is compared with
    with pytest.MonkeyPatch.context() as patch:
        work_here(patch)
        done = synthsieve(*words(out, "--json", "--seed", 3))
    for sentence in (
        "digits: 60 labels of 10 classes (0 6, 1 6, 2 6, 3 6, 4 6, 5 6, 6 6, 7 6, ...), 1,235 unlabelled examples",
        "143 labelled rows choose the model, 359 measure it",
        "with 359 labels to measure on, differences below about 3 points of accuracy cannot be detected",
        "training 14 variants, 7 baselines, 1 seed",
    ):
        assert sentence in done.stderr
    return out, json.loads(done.stdout)


@pytest.fixture
def copy(whole, tmp_path):
    """The same run, to change."""
    shutil.copytree(whole[0], tmp_path / "copy")
    return tmp_path / "copy"


def test_run_writes_table_figures_and_model(whole):
    out, output = whole
    table = json.loads((out / "table.json").read_text(encoding="utf-8"))
    assert table["settings"]["data"]["labels"] == 60
    assert "seed" not in table["settings"]
    assert table["seeds"] == [3]
    assert table["versions"]["torch"]
    assert (table["labeled"], table["unlabeled"]) == (60, 1235)
    names = [entry.name for entry in ARMS]
    assert list(table["arms"]) == names
    result, baselines = table["paired_comparison"], [SUPERVISED_BASELINE.name, *CLASSICAL]
    assert list(result["scores"]) == list(table["groups"]) == [*baselines, *names[1:]]
    assert set(result["comparisons"]) == {*names, *CLASSICAL} - {BASELINE.name}
    assert result["test_examples"] == [359]
    without = {str(arm) for arm in WITHOUT_SAMPLES}
    assert table["against_best"]["baseline"] in without
    assert set(table["against_best"]["comparisons"]) == set(names[1:]) - without
    (last,) = table["arms"][CRAIG.name]["selections"][0]
    assert last["drawn"] == 80
    assert 0 <= last["purity"] <= 1  # by the oracle, since most labels are known
    assert table["quality"]["of"] == "entropy, L=80"
    temperatures = [row["temperature"] for row in table["temperature"]]
    assert temperatures == sorted(set(temperatures))
    assert table["groups"] == output["groups"]
    assert [name for name, group in table["groups"].items() if group == "baseline"] == baselines
    assert {name for name, group in table["groups"].items() if group == "real"} == {"pretrained", "real only"}
    assert not set(baselines) & set(table["choice"]["candidates"])
    assert set(table["validation"]) == set(table["groups"])
    for each in table["baselines"].values():
        (metadata,) = each
        assert metadata["grid"][metadata["chosen"]] == max(metadata["grid"].values())
        assert metadata["failed"] is None
    assert list(table["baselines"]) == CLASSICAL
    text = (out / "table.md").read_text(encoding="utf-8")
    assert all(f"\n| {name} |" in text and f"\n- {name}: " in text for name in CLASSICAL)
    assert all(f"| {entry.name} |" in text for entry in ARMS)
    assert output["words"] in text
    assert output["paired_comparison"] == table["paired_comparison"]
    assert output["choice"] == table["choice"]
    figures = ["fig-1a-samples.png", "fig-1b-by-entropy.png", "temperature.svg"]
    assert output["figures"] == [str(out / "figures" / name) for name in figures]
    for name in figures[:2]:
        with Image.open(out / "figures" / name) as picture:
            assert picture.width == 4 * (20 * 9 + 1)
    ElementTree.parse(out / "figures" / "temperature.svg")
    assert not [path for path in out.rglob("*") if path.suffix == ".partial"]


def test_kept_model_can_be_evaluated_and_sampled(whole, copy):
    _, output = whole
    chosen = output["chosen"]
    report = json.loads(synthsieve("evaluate", copy / "model", "--json", "--threads", 1).stdout)
    assert report["accuracy"] == output["paired_comparison"]["scores"][chosen][0]
    synthsieve("sample", copy / "model", "--per-class", 2, "--threads", 1)
    with np.load(copy / "model" / "samples.npz", allow_pickle=False) as drawn:
        assert drawn["x"].shape == (20, 1, 8, 8)


def test_run_folder_works_with_predict_evaluate_and_load(whole, copy, tmp_path):
    _, output = whole
    report = json.loads(synthsieve("evaluate", copy, "--json", "--threads", 1).stdout)
    assert report["accuracy"] == output["paired_comparison"]["scores"][output["chosen"]][0]
    digits = load_digits()
    np.savez(tmp_path / "new.npz", x=(digits.images[:50] * (255 / 16)).astype(np.uint8))
    synthsieve("predict", copy, tmp_path / "new.npz", "-o", tmp_path / "p.npz", "--threads", 1)
    with np.load(tmp_path / "new.npz") as new, np.load(tmp_path / "p.npz", allow_pickle=False) as found:
        estimator = load(copy)
        assert np.array_equal(found["probabilities"], estimator.predict_proba(new["x"]))
        assert np.array_equal(found["predicted"], estimator.predict(new["x"]))
    assert estimator.classes_.tolist() == list(range(10))


def test_repeated_command_trains_nothing(whole, copy, in_process_pool):
    out, output = whole
    before, runs = contents(copy), written(copy / "seed-3") | written(copy / "oracle")
    again = json.loads(synthsieve(*words(copy, "--json", "--seed", 3)).stdout)
    assert in_process_pool == []
    assert written(copy / "seed-3") | written(copy / "oracle") == runs
    assert contents(copy) == before == contents(out)
    paths = dict.fromkeys(("out", "model", "dataset", "table", "figures", "report"))
    assert {**again, **paths} == {**output, **paths}


@pytest.mark.slow
def test_missing_baselines_are_added_to_a_finished_run(whole, copy, in_process_pool):
    _, output = whole
    for folder in (copy / "seed-3" / SUPERVISED_BASELINE.slug, copy / "seed-3" / "baselines"):
        shutil.rmtree(folder)
    bare = json.loads(synthsieve(*words(copy, "--json", "--seed", 3, "--set", "comparison.baselines=false")).stdout)
    assert in_process_pool == []
    assert not {SUPERVISED_BASELINE.name, *CLASSICAL} & set(bare["groups"])
    assert bare["choice"] == output["choice"]
    ours = [name for name in bare["groups"] if name != BASELINE.name]
    few, every = (one["paired_comparison"]["comparisons"] for one in (bare, output))
    assert all(few[name] == every[name] for name in ours)
    again = json.loads(synthsieve(*words(copy, "--json", "--seed", 3)).stdout)
    assert in_process_pool == [f"{name}, seed 3" for name in (SUPERVISED_BASELINE.name, *CLASSICAL)]
    assert again["paired_comparison"] == output["paired_comparison"]


def test_damaged_answers_are_measured_again_and_foreign_ones_refused(whole, copy, in_process_pool):
    path = copy / "seed-3" / "baselines" / "label-spreading.npz"
    path.write_bytes(path.read_bytes()[:99])
    again = json.loads(synthsieve(*words(copy, "--json", "--seed", 3)).stdout)
    assert in_process_pool == ["label spreading, seed 3"]
    assert again["paired_comparison"] == whole[1]["paired_comparison"]
    with np.load(path) as stored:
        parts = {name: stored[name] for name in stored.files}
    metadata = json.loads(str(parts["about"])) | {"split_hash": "another"}
    np.savez(path, **parts | {"about": np.asarray(json.dumps(metadata))})
    done = synthsieve(*words(copy, "--seed", 3, "--json"), code=2)
    assert "split" in done.stderr


def test_reproduce_writes_table_and_resumes(tmp_path, in_process_pool):
    settings = [word for setting in (*SMALL_SETTINGS, "data.labels=60") for word in ("--set", setting)]
    command = ["reproduce", "--dataset", "digits", "-o", tmp_path, "--seeds", 1, "--workers", 1, *settings]
    done = synthsieve(*command, "--quiet")
    assert done.stderr == ""
    assert done.stdout.startswith("# digits: does synthetic data help?")
    assert "The paper's" not in done.stdout
    assert len(in_process_pool) == 1 + len(ARMS) + len(CLASSICAL)
    report = json.loads(synthsieve(*command, "--json").stdout)
    assert len(in_process_pool) == 1 + len(ARMS) + len(CLASSICAL)
    assert report == json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert not (tmp_path / "model").exists()


def test_changed_settings_are_refused(copy, in_process_pool):
    before = written(copy)
    for change, keyword in (
        (["--set", "training.steps=13"], "training.steps=12"),
        (["--set", "augmentation.temperature=0.9"], "augmentation.temperature=0.5"),
        (["--labels", 70], "data.labels=60"),
    ):
        refused(words(copy, "--seed", 3, *change), keyword)
    assert in_process_pool == []
    assert written(copy) == before


def arrange(out, **share):
    """Let every arm predict 80 % of validation correctly, except those given."""
    for entry in (entry for entry in ARMS if entry.arm is not Arm.PRETRAINED):  # which is no candidate
        right = np.arange(143) < round(143 * share.get(entry.arm.name, 0.8))
        path = out / "seed-3" / entry.slug / "answers.npz"
        answers, metadata = read_answers(path)
        y = answers["validation"].y
        sure = np.eye(10, dtype=np.float32)[np.where(right, y, (y + 1) % 10)]
        write_answers(path, answers | {"validation": replace(answers["validation"], probabilities=sure)}, metadata)


def test_baseline_is_kept_when_no_variant_is_better(copy, in_process_pool):
    arrange(copy, REAL_ONLY=0.81, SUPERVISED=0.95)
    done = synthsieve(*words(copy, "--seed", 3))
    assert "the model without synthetic data is kept" in done.stdout
    assert "samples it was trained on" not in done.stdout
    same_weights(copy, BASELINE)
    assert not list(copy.glob("synthetic*"))


def test_better_variant_is_kept_with_its_samples(copy, in_process_pool):
    arrange(copy, CRAIG=0.95, PSEUDO=0.9)
    first = TableEntry(Arm.CRAIG, 40)  # of two that are equally good
    done = synthsieve(*words(copy, "--seed", 3))
    assert f"{first.name} is better on validation and is kept" in done.stdout or f"{first.name} adds" in done.stdout
    same_weights(copy, first)
    with np.load(copy / "synthetic.npz", allow_pickle=False) as kept:
        count = len(kept["y"])
        assert kept["x"].shape == (count, 1, 8, 8)
        assert kept["x"].dtype == np.uint8
        assert {len(kept[name]) for name in ("weight", "entropy", "rank", "chain_seed", "latent")} == {count}
        assert (kept["weight"] > 0).all()
        assert kept["classes"].tolist() == [str(c) for c in range(10)]
        (last,) = json.loads((copy / "table.json").read_text(encoding="utf-8"))["arms"][first.name]["selections"][0]
        assert count == last["selected"]
        assert kept["weight"].sum() == last["survivors"]

    arrange(copy, PSEUDO=0.95)  # an arm without a pool: the samples of the other must not stay
    done = json.loads(synthsieve(*words(copy, "--seed", 3, "--json")).stdout)
    assert done["chosen"] == PSEUDO.name
    assert done["synthetic"] == []
    same_weights(copy, PSEUDO)
    assert not list(copy.glob("synthetic*"))


def same_weights(out, entry):
    kept, trained = out / "model" / "best.safetensors", out / "seed-3" / entry.slug / "best.safetensors"
    assert kept.read_bytes() == trained.read_bytes()


def write_table(path, known, lone=False):
    """200 rows of three numbers and two classes, of which `known` have their label; `lone`: "high" has only one."""
    y = np.arange(200) % 2
    x = np.random.default_rng(0).normal(size=(200, 3)) + 2 * y[:, None]
    kinds = ["" if i >= known or (lone and i > 1 and k) else ("low", "high")[k] for i, k in enumerate(y)]
    rows = [f"{a:.4f},{b:.4f},{c:.4f},{kind}" for (a, b, c), kind in zip(x, kinds, strict=True)]
    path.write_text("\n".join(["a,b,c,kind", *rows]), encoding="utf-8")
    return path


def test_run_on_a_csv_of_numbers(tmp_path, in_process_pool):
    source, out = write_table(tmp_path / "table.csv", 150), tmp_path / "out"
    done = synthsieve(*words(out, "--label", "kind", "--quick", source=source, labels=20))
    assert "20 labels of 2 classes (high 8, low 12), 150 unlabelled examples" in done.stdout
    assert "each of 5 parts of the labels chooses once while the others train; 30 test rows measure" in done.stdout
    assert "training 4 variants, 7 baselines, cross-fitting over 5 parts of the labels" in done.stdout
    table = json.loads((out / "table.json").read_text(encoding="utf-8"))
    assert table["cross_fitting"] == {"folds": 5, "measures": False}
    assert (table["labeled"], table["validation_examples"], table["labels_for_choosing"]) == (20, 20, 0)
    assert table["paired_comparison"]["test_examples"] == [30]
    assert table["arms"][TableEntry(Arm.CRAIG, 40).name]["selections"][0][0]["purity"] is not None
    assert [path.name for path in (out / "figures").iterdir()] == ["temperature.svg"]
    synthsieve("sample", out / "model", "--per-class", 3, "--threads", 1)
    with np.load(out / "model" / "samples.npz", allow_pickle=False) as drawn:
        assert drawn["x"].shape == (6, 3)


def test_few_labels_without_validation_have_no_oracle_and_no_choice(tmp_path, in_process_pool):
    source, out = write_table(tmp_path / "table.csv", 30), tmp_path / "out"
    more = ["--label", "kind", "--set", "data.validation_fraction=0"]
    done = synthsieve(*words(out, *more, source=source, labels=20))
    assert "no labelled rows for validation: the last weights are kept; 6 rows measure" in done.stdout
    assert "there are no labels to choose on" in done.stdout
    assert not (out / "oracle").exists()
    assert "oracle" not in in_process_pool
    table = json.loads((out / "table.json").read_text(encoding="utf-8"))
    assert table["choice"] is None
    assert table["validation"] == {}
    assert "purity" not in table["arms"][TableEntry(Arm.CRAIG, 40).name]["selections"][0][0]
    assert {row["purity"] for row in table["temperature"]} == {None}
    assert table["paired_comparison"]["test_examples"] == [6]
    assert (out / "model" / "best.safetensors").read_bytes() == (out / "seed-0/real-only/best.safetensors").read_bytes()
    synthsieve("evaluate", out / "model", "--threads", 1)


@pytest.mark.parametrize(
    ("more", "keyword"),
    [
        (["--labels", "5"], "label"),
        (["--labels", "5000"], "labels=5000"),
        (["--config", "digits-hours"], "digits-minutes"),
        (["--set", "comparison.pool_sizes=[80,40]"], "pool_sizes=[80, 40]"),
        (["--set", "model.encoder=dcgan"], "model.encoder"),
        (["--set", "data.validation_fraction=0", "--set", "augmentation.entropy_ceiling=auto"], "entropy_ceiling"),
        (["-o", "/dev/null/out"], "/dev/null"),
        (["--max-time", "0"], "max_time"),
    ],
)
def test_bad_input_prints_one_sentence_and_writes_nothing(more, keyword, tmp_path, in_process_pool):
    refused(words(tmp_path / "out", *more), keyword)
    assert not (tmp_path / "out").exists()


def test_missing_labels_and_bad_folder_are_refused(tmp_path, in_process_pool):
    source = write_table(tmp_path / "table.csv", 200, lone=True)
    balanced = ["--label", "kind", "--set", "data.balanced=true"]
    refused(words(tmp_path / "out", *balanced, source=source, labels=20), "'high'")
    refused(words(tmp_path / "out", source=source, labels=20), "label")
    refused(words(source), str(source))
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def refused(command, keyword):
    done = synthsieve(*command, code=2)
    assert keyword in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.slow  # `make test-faults` kills runs of one process at random moments
def test_killed_run_resumes_to_identical_files(whole, tmp_path):
    kill_when(tmp_path / "seed-3" / BASELINE.slug / "last.safetensors", tmp_path, os.killpg)
    ends_as(whole[0], tmp_path)


@pytest.mark.slow
def test_workers_end_when_the_main_process_is_killed(whole, tmp_path):
    kill_when(tmp_path / "oracle" / "last.safetensors", tmp_path, os.kill)
    kill_when(tmp_path / "seed-3" / CRAIG.slug / "last.safetensors", tmp_path, os.kill)
    ends_as(whole[0], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kill", [os.kill, os.killpg], ids=["alone", "with its workers"])
def test_ctrl_c_ends_all_processes(kill, tmp_path):
    long = [*command(tmp_path), "--set", "training.steps=100000"]
    process = subprocess.Popen(long, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    while process.poll() is None and not (tmp_path / "oracle" / "last.safetensors").exists():
        time.sleep(0.01)
    kill(process.pid, signal.SIGINT)
    _, output = process.communicate(timeout=600)
    assert process.returncode == 130
    assert b"Traceback" not in output
    wait_for_the_last_of(process.pid)


def command(out):
    return [sys.executable, "-m", "synthsieve", *words(out, "--seed", 3, "--quiet")]


def kill_when(reached, out, kill):
    """Start or resume a run, kill it once a file exists, and wait until all its processes have ended."""
    process = subprocess.Popen(command(out), start_new_session=True, stdout=subprocess.DEVNULL, env=ONE_THREAD)
    while process.poll() is None and not reached.exists():
        time.sleep(0.005)
    kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    wait_for_the_last_of(process.pid)
    assert not (out / "table.json").exists()


def ends_as(whole, out):
    """A resumed run writes the same bytes as an uninterrupted one."""
    subprocess.run(command(out), check=True, stdout=subprocess.DEVNULL, env=ONE_THREAD)
    resumed, expected = contents(out), contents(whole)
    assert resumed.keys() == expected.keys()
    # selections.jsonl and the answers of classical baselines tell the time they took, run.json the number of threads
    other = {path.name for path in resumed if resumed[path] != expected[path] and path.parent.name != "baselines"}
    assert other <= {"selections.jsonl", "run.json"}


def wait_for_the_last_of(group):
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError("a process goes on")


@pytest.mark.slow
def test_cross_fitting_with_few_labels(tmp_path, in_process_pool):
    source, out = write_table(tmp_path / "table.csv", 40), tmp_path / "out"
    settings = [word for setting in SMALL_SETTINGS for word in ("--set", setting)]
    done = synthsieve("run", source, "-o", out, "--label", "kind", "--quick", "--workers", 1, *settings)
    assert "40 labels of 2 classes (high 20, low 20), 160 unlabelled examples" in done.stdout
    assert "each of 5 parts of them measures once, another one chooses, and the others train" in done.stdout
    assert "differences below about 10 points of accuracy cannot be detected" in done.stdout
    assert "chosen on validation" in done.stdout
    assert len(in_process_pool) == 6 * (5 + len(CLASSICAL))
    table = json.loads((out / "table.json").read_text(encoding="utf-8"))
    assert table["cross_fitting"] == {"folds": 5, "measures": True}
    assert table["paired_comparison"]["test_examples"] == [40]
    assert table["paired_comparison"]["metric"] == "accuracy"
    assert np.sum(table["metrics"]["real only"]["confusion"]) == 40
    intervals = [one["interval_95"] for one in table["paired_comparison"]["comparisons"].values()]
    assert all(low < high for low, high in intervals)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "with the 40 labels alone" in page
    assert "Cannot tell from 40 labels" in page or "Yes:" in page or "No:" in page
    output = synthsieve("evaluate", out, "--threads", 1).stdout
    assert "cross-fitting accuracy" in output
    assert "40 examples" in output
    assert "balanced accuracy" in output
    own = json.loads(synthsieve("evaluate", out, "--test", source, "--json", "--threads", 1).stdout)
    assert (own["part"], own["count"]) == ("table.csv", 40)
    before = written(out / "seed-0")
    again = synthsieve("run", source, "-o", out, "--label", "kind", "--quick", "--workers", 1, *settings)
    assert again.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]
    assert written(out / "seed-0") == before


def test_rare_class_uses_balanced_accuracy(tmp_path, in_process_pool):
    source, out = tmp_path / "rare.csv", tmp_path / "out"
    rng = np.random.default_rng(0)
    kinds = ["rare" if i % 6 == 0 else "often" for i in range(48)] + [""] * 100
    rows = [f"{a:.3f},{b:.3f},{kind}" for (a, b), kind in zip(rng.normal(size=(148, 2)), kinds, strict=True)]
    source.write_text("\n".join(["a,b,kind", *rows]), encoding="utf-8")
    settings = [word for setting in SMALL_SETTINGS for word in ("--set", setting)]
    done = synthsieve("run", source, "-o", out, "--label", "kind", "--quick", "--workers", 1, *settings)
    assert "compared by balanced accuracy" in done.stdout
    assert "balanced accuracy %" in done.stdout
    table = json.loads((out / "table.json").read_text(encoding="utf-8"))
    assert table["paired_comparison"]["metric"] == "balanced-accuracy"
    assert table["paired_comparison"]["mean"]["majority class"] == 0.5


def test_own_test_and_validation_files_and_predict_with_a_baseline(tmp_path, in_process_pool):
    source, test = write_table(tmp_path / "table.csv", 30), write_table(tmp_path / "test.csv", 60)
    validation, out = write_table(tmp_path / "validation.csv", 50), tmp_path / "out"
    settings = [word for setting in SMALL_SETTINGS for word in ("--set", setting)]
    own = ["--test", test, "--validation", validation]
    done = synthsieve("run", source, "-o", out, "--label", "kind", "--quick", "--workers", 1, *own, *settings)
    assert "30 labels of 2 classes" in done.stdout
    assert "50 labelled rows choose the model, 60 measure it" in done.stdout
    table = json.loads((out / "table.json").read_text(encoding="utf-8"))
    assert table["cross_fitting"] is None
    assert (table["labels_for_choosing"], table["paired_comparison"]["test_examples"]) == (50, [60])
    synthsieve("predict", out, test, "-o", tmp_path / "forest.csv", "--method", "random forest", "--threads", 1)
    lines = (tmp_path / "forest.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 201
    right = sum(line.split(",")[1].strip('"') == ("low", "high")[i % 2] for i, line in enumerate(lines[1:]))
    assert right > 180
    refused(["predict", out, test, "-o", tmp_path / "x.csv", "--method", "oracle"], "'random forest'")
    assert not (tmp_path / "x.csv").exists()
