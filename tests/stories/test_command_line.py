"""The command line end to end, as a user types it."""

import io
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

import synthsieve as package
from synthsieve.cli.app import main
from synthsieve.errors import CheckpointError, ConfigError
from tests.errors import raises
from tests.training.conftest import QUICK


@dataclass
class Done:
    stdout: str
    stderr: str


def synthsieve(*words, code=0):
    """What the command would print; run in this process, which already paid for importing torch."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert (ended.value.code or 0) == code, err.getvalue()
    return Done(out.getvalue(), err.getvalue())


def quick(*more):
    return [word for setting in (*QUICK, *more) for word in ("--set", setting)]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    out = tmp_path_factory.mktemp("story") / "digits"
    done = synthsieve("fit", "digits", "-o", out, "--labels", 60, "--seed", 3, "--threads", 1, "--json", *quick())
    return out, json.loads(done.stdout)


def test_fit_writes_a_run(fitted):
    out, report = fitted
    assert report["steps"] == 12
    assert 0 <= report["test_interval"][0] <= report["test_accuracy"] <= report["test_interval"][1] <= 1
    run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert run["settings"]["seed"] == 3
    assert run["settings"]["data"]["labels"] == 60
    assert run["versions"]["torch"]
    split = json.loads((out / "split.json").read_text(encoding="utf-8"))
    assert split["sizes"]["labeled"] == 60
    assert split["hash"] == run["split_hash"]


def test_evaluate_agrees_with_fit(fitted):
    out, report = fitted
    again = json.loads(synthsieve("evaluate", out, "--json", "--threads", 1).stdout)
    assert again["accuracy"] == report["test_accuracy"]
    assert json.loads((out / "evaluation.json").read_text(encoding="utf-8"))["accuracy"] == report["test_accuracy"]
    validation = json.loads(synthsieve("evaluate", out, "--part", "validation", "--json", "--threads", 1).stdout)
    assert validation["accuracy"] == report["validation_accuracy"]


def test_sample_writes_arrays_and_a_picture(fitted, tmp_path):
    out, _ = fitted
    to = tmp_path / "drawn.npz"
    output = synthsieve("sample", out, "--per-class", 5, "--to", to, "--threads", 1).stdout
    assert "50 samples, 5 of each of 10 classes" in output
    with np.load(to, allow_pickle=False) as drawn:
        assert drawn["x"].shape == (50, 1, 8, 8)
        assert drawn["x"].dtype == np.uint8
        assert np.bincount(drawn["y"]).tolist() == [5] * 10
        assert drawn["classes"].tolist() == [str(c) for c in range(10)]
        assert drawn["latent"].shape == (50, 8)
        first = drawn["x"].copy()
    with Image.open(to.with_suffix(".png")) as picture:
        assert picture.size == (4 * (5 * 9 + 1), 4 * (10 * 9 + 1))
    synthsieve("sample", out, "--per-class", 5, "--to", to, "--threads", 1)
    with np.load(to, allow_pickle=False) as again:
        assert np.array_equal(first, again["x"])


def test_sample_draws_requested_classes(fitted, tmp_path):
    out, _ = fitted
    synthsieve("sample", out, "--per-class", 5, "--to", tmp_path / "all.npz", "--threads", 1)
    words = ("sample", out, "--class", 7, "--class", 2, "--n", 5, "--to", tmp_path / "two.npz", "--threads", 1)
    assert "10 samples, 5 of each of 2 classes" in synthsieve(*words).stdout
    with np.load(tmp_path / "all.npz") as every, np.load(tmp_path / "two.npz") as two:
        assert np.array_equal(two["x"], every["x"][np.isin(every["y"], [2, 7])])
        assert two["y"].tolist() == [2] * 5 + [7] * 5
    assert "5 of class 7" in synthsieve("sample", out, "--class", 7, "--n", 5, "--to", tmp_path / "one.npz").stdout
    assert "'7'" in synthsieve("sample", out, "--class", 77, code=2).stderr
    assert "GB" in synthsieve("sample", out, "--n", 10**12, code=2).stderr
    assert not (out / "samples.npz").exists()


def test_verbs_find_the_model_in_a_run_folder(fitted, tmp_path):
    out, report = fitted
    shutil.copytree(out, tmp_path / "model")
    again = json.loads(synthsieve("evaluate", tmp_path, "--json", "--threads", 1).stdout)
    assert again["accuracy"] == report["test_accuracy"]
    assert (tmp_path / "evaluation.json").is_file()
    synthsieve("sample", tmp_path, "--per-class", 1, "--threads", 1)
    assert (tmp_path / "samples.npz").is_file()
    (tmp_path / "begun" / "seed-0" / "pretrained").mkdir(parents=True)
    (tmp_path / "begun" / "seed-0" / "pretrained" / "run.json").write_text("{}", encoding="utf-8")
    assert "finished" in synthsieve("sample", tmp_path / "begun", code=2).stderr


def test_run_folders_of_version_0_1_are_refused(fitted, tmp_path):
    shutil.copytree(fitted[0], tmp_path / "old")
    path = tmp_path / "old" / "run.json"
    run = json.loads(path.read_text(encoding="utf-8")) | {"format": "synthsieve run 1"}
    path.write_text(json.dumps(run), encoding="utf-8")
    for call in (package.evaluate, package.sample, package.open_run, package.load):
        with raises(CheckpointError, "old-run-folder"):
            call(tmp_path / "old")
    (tmp_path / "table.json").write_text('{"proof": {}}', encoding="utf-8")
    with raises(CheckpointError, "old-run-folder"):
        package.open_run(tmp_path)
    assert "0.1" in synthsieve("evaluate", tmp_path / "old", code=2).stderr


def test_fit_refuses_existing_run_or_changed_settings(fitted):
    out, _ = fitted
    words = ["fit", "digits", "-o", out, "--labels", 60, "--seed", 3, *quick()]
    assert "--resume" in synthsieve(*words, code=2).stderr
    assert "training.steps=12" in synthsieve(*words, "--resume", "--set", "training.steps=13", code=2).stderr


@pytest.mark.parametrize(
    ("words", "keyword"),
    [
        (["fit", "digit", "-o", "{tmp}"], "'digits'"),
        (["fit", "digits", "-o", "{tmp}", "--labels", "5"], "label"),
        (["fit", "digits", "-o", "{tmp}", "--config", "digits-hours"], "digits-minutes"),
        (["fit", "digits", "-o", "{tmp}", "--set", "training.stepz=3"], "training.steps"),
        (["sample", "{tmp}"], "run.json"),
        (["evaluate", "{tmp}"], "run.json"),
        (["evaluate", "{tmp}", "--part", "train"], "validation"),
        (["fit", "digits", "-o", "{tmp}", "--set", "model.encoder=dcgan"], "model.encoder"),
        (["fit", "digits", "-o", "{tmp}", "--set", "sampling.temperature=inf"], "sampling.temperature"),
        (["fit", "digits", "-o", "{tmp}", "--set", "model.latent_dim=1000000000000"], "model.latent_dim"),
        (["fit", "digits", "-o", "{tmp}", "--augment", "--supervised"], "--augment"),
        (["fit", "digits", "-o", "{tmp}", "--augment", "--set", "augmentation.augment_from_step=1500"], "1500"),
        (["run", "digits", "-o", "{tmp}", "--set", "comparison.pool_sizes=[1000000000000]"], "100,000,000"),
        (["fit", "digits", "-o", "/dev/null/out"], "/dev/null"),
        (["fit", "", "-o", "{tmp}"], "empty"),
        (["fit", "digits", "-o", ""], "empty"),
    ],
)
def test_bad_input_prints_one_sentence_and_writes_nothing(words, keyword, tmp_path):
    out = tmp_path / "out"
    done = synthsieve(*[word.format(tmp=out) for word in words], code=2)
    assert keyword in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert not out.exists()


def test_python_functions_return_what_the_verbs_print(fitted, tmp_path):
    out, report = fitted
    messages = []
    overrides = [*QUICK, "training.steps=6"]
    summary = package.fit("digits", tmp_path / "fit", labels=60, seed=3, overrides=overrides, log=messages.append)
    assert (summary.steps, summary.warnings, summary.is_main) == (6, (), True)
    assert summary.as_dict().keys() == report.keys()
    assert any("60 labelled" in message for message in messages)
    drawn = package.sample(tmp_path / "fit", per_class=2, classes=["3", "7"])
    assert (drawn.count, drawn.drawn_classes, drawn.samples.y.tolist()) == (4, ("3", "7"), [3, 3, 7, 7])
    assert drawn.path.is_file()
    assert [path.is_file() for path in drawn.readable] == [True]
    assert package.evaluate(out).metrics["accuracy"] == report["test_accuracy"]
    with raises(ConfigError, "bad-temperature"):
        package.sample(out, temperature=float("nan"))
    with raises(ConfigError, "unknown-part"):
        package.evaluate(out, part="train")


@pytest.mark.parametrize("name", package.__all__)
def test_public_names_can_be_imported(name):
    assert getattr(package, name) is not None
    assert name in dir(package)


def test_augment_adds_steps_by_default(tmp_path):
    more = ["--set", "augmentation.pool_size=40", "--set", "augmentation.steps=0"]
    done = synthsieve("fit", "digits", "-o", tmp_path, "--threads", 1, "--json", *quick(), "--augment", *more)
    assert json.loads(done.stdout)["steps"] == 18
    assert (tmp_path / "selections.jsonl").is_file()


def test_fit_and_sample_a_csv_of_numbers(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    x = rng.normal(size=(200, 3)) + 2 * y[:, None]
    rows = ["a,b,c,kind"] + [
        f"{a:.4f},{b:.4f},{c:.4f},{'' if i >= 120 else ('low', 'high')[k]}"
        for i, ((a, b, c), k) in enumerate(zip(x, y, strict=True))
    ]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(rows), encoding="utf-8")
    out = tmp_path / "out"
    synthsieve("fit", table, "-o", out, "--label", "kind", "--labels", 20, "--threads", 1, *quick())
    output = synthsieve("sample", out, "--per-class", 3, "--threads", 1).stdout
    assert "6 samples" in output
    assert ".png" not in output
    with np.load(out / "samples.npz", allow_pickle=False) as drawn:
        assert drawn["x"].shape == (6, 3)
        assert drawn["classes"].tolist() == ["high", "low"]


def test_doctor_lists_versions_data_and_presets(tmp_path):
    report = json.loads(synthsieve("doctor", "--json", "--data-dir", tmp_path).stdout)
    assert report["data"]["digits"] == "embedded"
    assert {"digits-minutes", "mnist-minutes", "svhn-cpu", "svhn-paper"} <= set(report["presets"])
    assert report["cores"] >= 1
    assert set(report["data"]) == {"digits", "svhn", "mnist", "adult", "sst2", "spoken-digits"}
    for name in ("train.tsv", "dev.tsv", "adult.data", "adult.test", "7_ann_0.wav"):
        (tmp_path / name).touch()
    found = json.loads(synthsieve("doctor", "--json", "--data-dir", tmp_path).stdout)["data"]
    assert found["sst2"] == found["adult"] == found["spoken-digits"] == str(tmp_path)


def test_help_and_import_do_not_import_torch():
    heavy = "{'torch', 'numba', 'sklearn', 'scipy'}"
    code = f"import sys, synthsieve, synthsieve.cli.app; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.strip() == "[]"
    words = [sys.executable, "-m", "synthsieve", "--help"]
    assert "fit" in subprocess.run(words, capture_output=True, text=True, check=True, encoding="utf-8").stdout


def test_tensorboard_is_optional(tmp_path):
    pytest.importorskip("torch")
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        words = ["fit", "digits", "-o", tmp_path / "out", "--tensorboard", *quick()]
        assert "pip install 'synthsieve[tensorboard]'" in synthsieve(*words, code=2).stderr
    else:
        synthsieve("fit", "digits", "-o", tmp_path / "out", "--tensorboard", "--threads", 1, *quick())
        assert list((tmp_path / "out" / "tensorboard").glob("events*"))
