"""User data, from a file to predictions, with no option but the label column.

Each story makes a file as a new user would have it, runs `synthsieve run FILE` and `synthsieve predict`, and asks for
sensible answers on rows that the run never saw: no worse than the best of three simple methods by more than a standard
error, or a report that says so and names the better one.
"""

import csv
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification

pytestmark = pytest.mark.slow


def synthsieve(*words):
    """Run the command; its standard output."""
    command = [sys.executable, "-m", "synthsieve", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_and_predict(source, new, folder, *options):
    """The run's table, what it printed, and the predicted class of each row of `new`."""
    output = synthsieve("run", source, "-o", folder / "out", *options, "--quiet")
    synthsieve("predict", folder / "out", new, "-o", folder / "predictions.csv")
    with (folder / "predictions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    table = json.loads((folder / "out" / "table.json").read_text(encoding="utf-8"))
    return table, output, [row["predicted"] for row in rows]


def check(table, output, predicted, truth, *, at_least):
    """Good on new rows, and as good as simple methods or a report that says so."""
    accuracy = np.mean([a == b for a, b in zip(predicted, map(str, truth), strict=True)])
    result = table["paired_comparison"]
    print(f"accuracy on new rows {accuracy:.3f}; {json.dumps(result['mean'])}")
    assert accuracy >= at_least
    kept = result["baseline"] if table["choice"] is None else table["choice"]["arm"]
    simple = [name for name in ("logistic regression", "random forest", "label spreading") if name in result["mean"]]
    best = max(simple, key=result["mean"].get)
    low, high = result["comparisons"][best]["interval_95"]
    assert result["mean"][best] - result["mean"][kept] <= (high - low) / 3.92 or "a simpler model is better" in output
    assert "No: " not in output or "points on test" in output
    intervals = [one["interval_95"] for one in result["comparisons"].values()]
    assert all(low < high for low, high in intervals)
    return accuracy


def write_tables(folder, frame, label, *, keep, test_rows, seed=0):
    """A CSV whose labels are emptied but for a share or number `keep`, another of unseen rows, and their labels."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(frame))
    new, train = frame.iloc[order[:test_rows]], frame.iloc[order[test_rows:]].copy()
    train[label] = train[label].astype(object)
    kept = int(keep * len(train)) if keep < 1 else int(keep)
    train.iloc[kept:, train.columns.get_loc(label)] = ""
    train.to_csv(folder / "train.csv", index=False)
    new.drop(columns=label).to_csv(folder / "new.csv", index=False)
    return folder / "train.csv", folder / "new.csv", new[label].tolist()


def scikit_table(load, label):
    bunch = load(as_frame=True)
    frame = bunch.data.copy()
    frame[label] = np.array(bunch.target_names)[bunch.target]
    return frame


def test_breast_cancer_with_a_tenth_of_the_labels(tmp_path):
    source, new, truth = write_tables(
        tmp_path, scikit_table(load_breast_cancer, "diagnosis"), "diagnosis", keep=0.1, test_rows=150
    )
    table, output, predicted = run_and_predict(source, new, tmp_path, "--label", "diagnosis")
    assert table["labeled"] == 41
    check(table, output, predicted, truth, at_least=0.88)


def test_wine_with_a_tenth_of_the_labels(tmp_path):
    source, new, truth = write_tables(
        tmp_path, scikit_table(load_wine, "cultivar"), "cultivar", keep=0.13, test_rows=40
    )
    table, output, predicted = run_and_predict(source, new, tmp_path, "--label", "cultivar")
    assert table["labeled"] == 17
    check(table, output, predicted, truth, at_least=0.85)


def test_a_table_of_400_rows_that_are_all_labelled(tmp_path):
    x, y = make_classification(600, 12, n_informative=6, class_sep=1.2, random_state=0)
    frame = pd.DataFrame(x.round(3), columns=[f"m{i}" for i in range(12)])
    frame["shift"] = np.where(np.random.default_rng(0).random(600) < 0.7, np.where(y, "day", "night"), "late")
    frame["failed"] = np.where(y, "yes", "no")
    source, new, truth = write_tables(tmp_path, frame, "failed", keep=400, test_rows=200)
    table, output, predicted = run_and_predict(source, new, tmp_path, "--label", "failed")
    assert (table["labeled"], table["unlabeled"], table["cross_fitting"]) == (288, 0, None)
    check(table, output, predicted, truth, at_least=0.8)


def test_a_table_of_3000_rows_with_12_labels(tmp_path, real_data):
    columns = [*(f"c{i}" for i in range(14)), "income"]
    frame = pd.read_csv(real_data / "adult" / "adult.data", names=columns, skipinitialspace=True, nrows=4000)
    source, new, truth = write_tables(tmp_path, frame, "income", keep=12, test_rows=1000)
    table, output, predicted = run_and_predict(source, new, tmp_path, "--label", "income")
    assert table["labeled"] == 12
    assert "Cannot tell from 12 labels" in output or "Yes" in output or "No: " in output
    check(table, output, predicted, truth, at_least=0.6)


def test_sentences_with_100_labels_of_which_one_class_is_rare(tmp_path, real_data):
    train = pd.read_csv(real_data / "sst2" / "train.tsv", sep="\t", nrows=6000)
    new = pd.read_csv(real_data / "sst2" / "dev.tsv", sep="\t").rename(columns={"content": "sentence"})
    train["label"] = train["label"].map({0: "bad", 1: "good"})
    rare, often = train[train.label == "bad"].index[:14], train[train.label == "good"].index[:86]
    train.loc[train.index.difference(rare.union(often)), "label"] = ""
    train.to_csv(tmp_path / "train.csv", index=False)
    new[["sentence"]].to_csv(tmp_path / "new.csv", index=False)
    options = ("--text", "sentence", "--label", "label")
    table, output, predicted = run_and_predict(tmp_path / "train.csv", tmp_path / "new.csv", tmp_path, *options)
    assert "compared by balanced accuracy" in output
    recall = table["metrics"][table["choice"]["arm"]]["recall"]
    assert 0.0 not in recall or "never finds class" in output
    truth = new["label"].map({0: "bad", 1: "good"})
    check(table, output, predicted, truth, at_least=0.5)


def drawn_photo(rng, kind, side):
    """A bright disc, a square or stripes on a noisy ground, as a photo of any size."""
    width, height = side, int(side * rng.uniform(0.7, 1.3))
    y, x = np.mgrid[0:height, 0:width]
    centre, radius = (
        rng.uniform(0.4, 0.6, 2) * (height, width),
        rng.uniform(0.22, 0.32) * min(height, width),
    )
    inside = {
        "disc": (y - centre[0]) ** 2 + (x - centre[1]) ** 2 < radius**2,
        "square": (abs(y - centre[0]) < radius) & (abs(x - centre[1]) < radius),
        "stripes": (x // max(2, side // 10)) % 2 == 0,
    }[kind]
    ground, colour = rng.uniform(0, 110, 3), rng.uniform(130, 255, 3)
    picture = np.where(inside[..., None], colour, ground) + rng.normal(0, 18, (height, width, 3))
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


def test_a_folder_of_photos_of_mixed_sizes(tmp_path):
    rng, kinds = np.random.default_rng(0), ("disc", "square", "stripes")
    truth = []
    for i in range(400):
        kind, side = kinds[i % 3], int(rng.integers(40, 240))
        part = f"photos/{kind}" if i < 60 else "photos/unlabeled" if i < 300 else "new"
        (tmp_path / part).mkdir(parents=True, exist_ok=True)
        drawn_photo(rng, kind, side).save(tmp_path / part / f"{i:03d}.jpg")
        truth += [kind] if i >= 300 else []
    table, output, predicted = run_and_predict(tmp_path / "photos", tmp_path / "new", tmp_path)
    assert table["labeled"] == 60
    assert "resized" in output
    check(table, output, predicted, truth, at_least=0.8)


def test_spoken_digits_in_folders(tmp_path, real_data):
    files = sorted((real_data / "fsdd" / "recordings").glob("*.wav"))
    truth = []
    for i, file in enumerate(np.random.default_rng(0).permutation(files)[:900]):
        digit = file.name[0]
        part = f"sounds/{digit}" if i < 100 else "sounds/unlabeled" if i < 700 else "new"
        (tmp_path / part).mkdir(parents=True, exist_ok=True)
        (tmp_path / part / file.name).write_bytes(file.read_bytes())
    truth = [file.name[0] for file in sorted((tmp_path / "new").iterdir())]
    table, output, predicted = run_and_predict(tmp_path / "sounds", tmp_path / "new", tmp_path)
    assert table["labeled"] == 100
    check(table, output, predicted, truth, at_least=0.5)


def test_images_from_0_to_16(tmp_path):
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.images))
    x, y = digits.images[order], digits.target[order].copy()
    known = y.copy()
    known[100:] = -1
    np.savez(tmp_path / "digits.npz", x=x[:1400], y=known[:1400])
    np.savez(tmp_path / "new.npz", x=x[1400:])
    table, output, predicted = run_and_predict(tmp_path / "digits.npz", tmp_path / "new.npz", tmp_path)
    assert table["labeled"] == 100
    assert "pixel values 0 to 16" in output
    check(table, output, predicted, y[1400:], at_least=0.93)
