"""One contract for all kinds of data: the `predict` verb, `load` and saved estimators give the same predictions."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import csv, parquet

import synthsieve as package
from synthsieve import LatentEBMClassifier
from synthsieve.data.origin import Origin
from synthsieve.errors import CheckpointError, ConfigError, DataError, InputError
from synthsieve.evaluation import predict
from synthsieve.results.export.media import write_wav
from synthsieve.settings import load_settings
from synthsieve.training import loop
from synthsieve.training.run_dir import RunDirectory
from tests.errors import raises
from tests.modalities import image, sound, table, text, vector
from tests.stories.test_command_line import synthsieve

QUICK = (
    "training.steps=12", "training.batch_labeled=16", "training.batch_unlabeled=16", "training.warmup=1",
    "sampling.training_steps=2", "sampling.num_steps=5", "data.labels=none", "data.validation_fraction=0",
)  # fmt: skip
CHOSEN = [word for setting in QUICK for word in ("--set", setting)]


@dataclass(frozen=True)
class Case:
    """Files of a kind of data: to train on and to predict, and the latter as in memory.

    Attributes:
        write: folder -> what `fit` takes, what `predict` takes, and the same as `load(OUT).predict_proba` takes it.
        fit: further words for `fit`.
        predict: further words for `predict`.
        names: what identifies a prediction.
    """

    write: Callable[[Path], tuple[Path, Path, Any]]
    fit: tuple[str, ...] = ()
    predict: tuple[str, ...] = ()
    names: str = "row"
    notes: tuple[str, ...] = field(default=())


def images(folder: Path) -> tuple[Path, Path, Any]:
    data, new = image.dataset(), image.dataset(20, seed=1).train.x
    np.savez(folder / "train.npz", x=data.train.x, y=data.train.y)
    (folder / "new").mkdir()
    for i, pixels in enumerate(new):
        Image.fromarray(pixels[0]).save(folder / "new" / f"{i:02d}.png")
    return folder / "train.npz", folder / "new", new


def vectors(folder: Path) -> tuple[Path, Path, Any]:
    data, new = vector.dataset(), vector.dataset(20, seed=1).train
    np.savez(folder / "train.npz", x=data.train.x, y=np.array(data.classes)[data.train.y])
    np.savez(folder / "new.npz", x=new.x, y=new.y)
    return folder / "train.npz", folder / "new.npz", new.x


def tables(folder: Path) -> tuple[Path, Path, Any]:
    (train, y), (new, _) = table.arrow_table(), table.arrow_table(20, seed=1)
    csv.write_csv(train.append_column("kind", [np.array(["old", "new"])[y]]), folder / "train.csv")
    colour = ["mauve", "mauve", *new["colour"].to_pylist()[2:]]
    new = new.set_column(4, "colour", [colour]).append_column("more", [np.arange(20)])
    csv.write_csv(new, folder / "new.csv")
    return folder / "train.csv", folder / "new.csv", new.drop_columns(["more"]).to_pandas()


def sounds(folder: Path) -> tuple[Path, Path, Any]:
    rng = np.random.default_rng(0)
    for i in range(60):
        write_wav(folder / "train" / ("low", "high")[i % 2] / f"{i}.wav", wave(i, rng), sound.FORM.rate)
    for i in range(20):
        write_wav(folder / "new" / f"{i:02d}.wav", wave(i, rng), sound.FORM.rate)
    return folder / "train", folder / "new", sorted((folder / "new").iterdir())


def wave(i: int, rng: np.random.Generator) -> np.ndarray:
    return 0.5 * np.asarray(sound.tone(sound.PITCHES[i % 2], rng))


def texts(folder: Path) -> tuple[Path, Path, Any]:
    (train, y), (new, _) = text.sentences(), text.sentences(20, seed=1)
    pd.DataFrame({"said": train, "mood": np.array(["bad", "good"])[y]}).to_csv(folder / "train.csv", index=False)
    pd.DataFrame({"said": new}).to_csv(folder / "new.csv", index=False)
    return folder / "train.csv", folder / "new.csv", new


def embeddings(folder: Path) -> tuple[Path, Path, Any]:
    train, new, _ = texts(folder)
    np.save(folder / "train.npy", vector.dataset().train.x)
    x = vector.dataset(20, seed=1).train.x
    np.save(folder / "new.npy", x)
    return train, new, x


MOOD = ("--text", "said", "--label", "mood")
CASES = {
    "image": Case(images, names="file"),
    "vector": Case(vectors, notes=("labels y are not used",)),
    "table": Case(
        tables,
        ("--label", "kind"),
        notes=("ignored (1): 'more'", "2 cells of 'colour' have an unknown category"),
    ),
    "sound": Case(sounds, names="file"),
    "text": Case(texts, MOOD),
    "embeddings": Case(embeddings, (*MOOD, "--features", "{folder}/train.npy"), ("--features", "{folder}/new.npy")),
}


@dataclass(frozen=True)
class Fitted:
    case: Case
    folder: Path
    out: Path
    new: Path
    held: Any

    def predict(self, *words: Any, code: int = 0) -> Any:
        more = [word.format(folder=self.folder) for word in self.case.predict]
        return synthsieve("predict", self.out, self.new, "--threads", 1, *more, *words, code=code)


@pytest.fixture(scope="module", params=CASES)
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    case, folder = CASES[request.param], tmp_path_factory.mktemp(request.param)
    source, new, held = case.write(folder)
    words = [word.format(folder=folder) for word in case.fit]
    synthsieve("fit", source, "-o", folder / "out" / "model", "--threads", 1, "--quiet", *words, *CHOSEN)
    return Fitted(case, folder, folder / "out", new, held)


def test_verb_loaded_run_and_saved_file_agree(fitted: Fitted, tmp_path: Path) -> None:
    report = json.loads(fitted.predict("-o", tmp_path / "p.parquet", "--json").stdout)
    found = parquet.read_table(tmp_path / "p.parquet")
    estimator = package.load(fitted.out)
    expected = estimator.predict_proba(fitted.held)
    names = [f"probability_{name}" for name in estimator.classes_]
    assert found.column_names == [fitted.case.names, "predicted", "probability", "entropy", *names]
    assert np.array_equal(np.stack([found[name].to_numpy() for name in names], axis=1), expected)
    assert found["predicted"].to_pylist() == estimator.predict(fitted.held).tolist()
    assert found["probability"].to_numpy() == pytest.approx(expected.max(axis=1), abs=0)
    direct = -(expected * np.log(np.maximum(expected, 1e-300))).sum(axis=1)
    assert found["entropy"].to_numpy() == pytest.approx(direct, abs=1e-12)
    assert report["count"] == 20 == sum(report["predicted"].values())
    for words in fitted.case.notes:
        assert sum(words in note for note in report["notes"]) == 1
    saved = estimator.save(tmp_path / "saved.safetensors")
    assert np.array_equal(LatentEBMClassifier.load(saved).predict_proba(fitted.held), expected)
    more = {"features": fitted.folder / "new.npy"} if fitted.case.predict else {}
    named = {"text": "said"} if fitted.case is CASES["text"] else {}
    again = package.predict(saved, fitted.new, tmp_path / "again.csv", **more, **named)
    assert np.array_equal(again.probabilities, expected)


def test_all_file_formats_hold_the_same(fitted: Fitted, tmp_path: Path) -> None:
    paths = {suffix: tmp_path / f"p{suffix}" for suffix in (".csv", ".parquet", ".jsonl", ".npz")}
    for path in paths.values():
        fitted.predict("-o", path)
    rows = parquet.read_table(paths[".parquet"]).to_pylist()
    assert csv.read_csv(paths[".csv"]).to_pylist() == rows
    assert [json.loads(line) for line in paths[".jsonl"].read_text(encoding="utf-8").splitlines()] == rows
    with np.load(paths[".npz"], allow_pickle=False) as arrays:
        assert arrays["row" if "row" in arrays else "files"].tolist() == [row[fitted.case.names] for row in rows]
        assert arrays["predicted"].tolist() == [row["predicted"] for row in rows]
        columns = [f"probability_{name}" for name in arrays["classes"]]
        assert arrays["probabilities"].tolist() == [[row[name] for name in columns] for row in rows]
    expected = [f"{i:02d}.{'png' if fitted.case is CASES['image'] else 'wav'}" for i in range(20)]
    assert [row[fitted.case.names] for row in rows] == (expected if fitted.case.names == "file" else list(range(20)))


def test_loaded_run_works_without_training_data(fitted: Fitted) -> None:
    estimator = package.load(fitted.out / "model")
    assert estimator.transform(fitted.held).shape == (20, estimator.settings_.model.latent_dim)
    assert not np.isnan(estimator.score_samples(fitted.held)).any()
    drawn, y = estimator.sample(2, classes=estimator.classes_[:1])
    assert y.tolist() == [estimator.classes_[0]] * 2
    assert estimator.predict(drawn).shape == (2,)
    with raises(InputError, "no-training-data"):
        estimator.augment()
    assert estimator.n_iter_ == estimator.expected_iter_ == 12


def test_other_kinds_of_data_are_refused(fitted: Fitted, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,x\n", encoding="utf-8")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "folder").mkdir()
    np.savez(tmp_path / "other.npz", x=np.zeros((3, 7)))
    for name in ("other.csv", "empty.csv", "folder", "other.npz", "absent.csv"):
        message = synthsieve("predict", fitted.out, tmp_path / name, "-o", tmp_path / "p.csv", code=2).stderr
        assert len(message.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.csv", "folder", "other.csv", "other.npz"]


def test_files_are_not_overwritten(fitted: Fitted, tmp_path: Path) -> None:
    to = tmp_path / "deep" / "p.csv"
    fitted.predict("-o", to)
    first = to.read_bytes()
    assert "--force" in fitted.predict("-o", to, code=2).stderr
    fitted.predict("-o", to, "--force")
    assert to.read_bytes() == first
    assert ".parquet" in fitted.predict("-o", tmp_path / "p.xlsx", code=2).stderr
    inputs = [fitted.out / "model" / "history.csv", *fitted.folder.glob("*.csv"), *fitted.folder.glob("*.npz")]
    for path in inputs:
        before = path.read_bytes()
        assert "input" in fitted.predict("-o", path, "--force", code=2).stderr
        assert path.read_bytes() == before


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    folder = tmp_path_factory.mktemp("shop")
    source, new, held = tables(folder)
    synthsieve("fit", source, "-o", folder / "out", "--label", "kind", "--threads", 1, *CHOSEN)
    return Fitted(CASES["table"], folder, folder / "out", new, held)


def test_missing_columns_and_label_column_are_reported(shop: Fitted, tmp_path: Path) -> None:
    frame = pd.read_csv(shop.new)
    frame.drop(columns=["weight", "paid"]).to_csv(tmp_path / "less.csv", index=False)
    message = synthsieve("predict", shop.out, tmp_path / "less.csv", "-o", tmp_path / "p.csv", code=2).stderr
    assert "'weight', 'paid'" in message
    frame.drop(columns=["id", "more"]).assign(kind="x").to_csv(tmp_path / "labelled.tsv", index=False, sep="\t")
    done = synthsieve("predict", shop.out, tmp_path / "labelled.tsv", "-o", tmp_path / "p.csv", "--threads", 1)
    assert "'kind'" in done.stdout
    shop.predict("-o", tmp_path / "q.csv")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()


def test_loaded_run_warns_of_unknown_columns_and_categories(shop: Fitted) -> None:
    estimator, frame = package.load(shop.out), pd.read_csv(shop.new)
    with pytest.warns(UserWarning, match="unknown") as caught:
        found = estimator.predict_proba(frame)
    assert [str(one.message) for one in caught] == [
        "columns unknown from training are ignored (1): 'more'",
        "2 cells of 'colour' have an unknown category: taken as missing",
    ]
    assert np.array_equal(found, package.predict(shop.out, shop.new).probabilities)
    known = frame.drop(columns="more").assign(colour=frame["colour"].replace("mauve", None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(estimator.predict_proba(known), found)


def test_category_with_leading_zero(tmp_path: Path) -> None:
    frame = pd.DataFrame({"zip": ["01067", "20095"] * 40, "n": np.arange(80) % 7, "y": ["a", "b"] * 40})
    frame.to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "schema.toml").write_text('[columns]\nzip = "category"\n', encoding="utf-8")
    words = ("--label", "y", "--schema", tmp_path / "schema.toml", "--threads", 1, *CHOSEN)
    synthsieve("fit", tmp_path / "train.csv", "-o", tmp_path / "out", *words)
    frame.drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    assert not package.predict(tmp_path / "out", tmp_path / "new.csv", tmp_path / "p.csv").notes


def test_single_image_and_image_folders(tmp_path: Path) -> None:
    source, new, held = images(tmp_path)
    synthsieve("fit", source, "-o", tmp_path / "out", "--threads", 1, *CHOSEN)
    expected = package.load(tmp_path / "out").predict_proba(held)
    one = package.predict(tmp_path / "out", new / "03.png", tmp_path / "one.csv")
    assert one.files == ("03.png",)
    assert np.array_equal(one.probabilities, expected[3:4])
    for name, rows in (("b", range(5)), ("a", range(5, 9))):
        (tmp_path / "sorted" / name).mkdir(parents=True)
        for row in rows:
            shutil.copy(new / f"{row:02d}.png", tmp_path / "sorted" / name)
    (tmp_path / "sorted" / "read.me").touch()
    found = package.predict(tmp_path / "out", tmp_path / "sorted", tmp_path / "many.csv")
    assert found.files == tuple(f"a/{row:02d}.png" for row in range(5, 9)) + tuple(
        f"b/{row:02d}.png" for row in range(5)
    )
    assert np.array_equal(found.probabilities, expected[[*range(5, 9), *range(5)]])
    assert found.notes == (
        "1 files that are not images are ignored",
        "images lie in 2 folders; predictions do not use the names of folders",
    )
    with Image.open(new / "03.png") as picture:
        picture.resize((3 * picture.width, 3 * picture.height), Image.Resampling.NEAREST).save(tmp_path / "large.png")
    large = package.predict(tmp_path / "out", tmp_path / "large.png", tmp_path / "large.csv")
    assert large.notes == ("1 images of other sizes are resized to 8x8, as in training",)
    assert large.predicted[0] == one.predicted[0]
    np.save(tmp_path / "floats.npy", held / 255.0)
    floats = package.predict(tmp_path / "out", tmp_path / "floats.npy", tmp_path / "floats.csv")
    assert floats.probabilities == pytest.approx(expected, abs=1e-4)
    assert "taken to span [0, 1]" in floats.notes[0]


def test_float_images_use_the_training_range(tmp_path: Path) -> None:
    data = image.dataset()
    np.savez(tmp_path / "train.npz", x=data.train.x / 255.0 * 16, y=data.train.y, range=np.array([0.0, 16.0]))
    synthsieve("fit", tmp_path / "train.npz", "-o", tmp_path / "out", "--threads", 1, *CHOSEN)
    estimator = package.load(tmp_path / "out")
    faint = data.train.x[:5] // 20
    dark = faint / 255.0 * 16  # within [0, 1], which alone would be taken for the range
    expected = predict.probabilities(estimator.model_, estimator.encoding_, faint)
    assert estimator.predict_proba(dark) == pytest.approx(expected, abs=1e-5)
    drawn, _ = estimator.sample(3)
    assert drawn.dtype == np.float64
    assert 1 < drawn.max() <= 16
    again = LatentEBMClassifier.load(estimator.save(tmp_path / "saved"))
    assert np.array_equal(again.predict_proba(dark), estimator.predict_proba(dark))


def test_saved_estimator_of_arrays_reads_a_csv(tmp_path: Path) -> None:
    data = vector.dataset()
    estimator = LatentEBMClassifier(max_iter=3, random_state=0).fit(data.train.x, data.train.y)
    saved = estimator.save(tmp_path / "saved")
    frame = pd.DataFrame(data.train.x.astype(np.float64), columns=list("abcde"))
    frame.to_csv(tmp_path / "new.csv", index=False)
    found = package.predict(saved, tmp_path / "new.csv", tmp_path / "p.csv")
    assert np.array_equal(found.probabilities, estimator.predict_proba(data.train.x))
    assert "in the order of the file" in found.notes[0]
    frame.drop(columns="b").to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(DataError, match="5 columns"):
        package.predict(saved, tmp_path / "less.csv", tmp_path / "q.csv")
    frame.assign(b="x").to_csv(tmp_path / "words.csv", index=False)
    with pytest.raises(DataError, match="'b'"):
        package.predict(saved, tmp_path / "words.csv", tmp_path / "q.csv")


def test_integer_labels_stay_integers(fitted: Fitted) -> None:
    classes = package.load(fitted.out).classes_
    assert classes.dtype.kind == ("i" if fitted.case is CASES["image"] else "U")


def test_model_of_few_steps_is_reported_as_untrained(tmp_path: Path) -> None:
    data = vector.dataset()
    with pytest.warns(UserWarning, match="practically untrained"):
        estimator = LatentEBMClassifier(max_time=1e-6, random_state=0).fit(data.train.x, data.train.y)
    saved = estimator.save(tmp_path / "saved")
    np.save(tmp_path / "new.npy", data.train.x)
    words = ("predict", saved, tmp_path / "new.npy", "-o", tmp_path / "p.csv")
    assert "note: the model is practically untrained: only 1 of 300 steps" in synthsieve(*words).stdout


def test_stopped_run_is_reported_as_untrained(tmp_path: Path) -> None:
    data = vector.dataset()
    settings = load_settings("vector-minutes", [*QUICK, "training.steps=1000"]).pretrained()
    run = RunDirectory.create(tmp_path / "out", Origin("made up"), settings, data)
    loop.fit(run, data, stop=lambda: "time is up")
    np.save(tmp_path / "new.npy", data.train.x)
    found = package.predict(tmp_path / "out", tmp_path / "new.npy", tmp_path / "p.csv")
    assert found.notes == ("the model is practically untrained: only 1 of 1,000 steps were done",)


def test_files_that_are_no_model_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"nothing")
    for call in (
        lambda: package.load(tmp_path),
        lambda: package.load(tmp_path / "absent"),
        lambda: package.load(tmp_path / "file"),
        lambda: LatentEBMClassifier.load(tmp_path),
    ):
        with pytest.raises(CheckpointError):
            call()


def test_predictions_are_only_written_where_a_file_is_named(shop: Fitted, tmp_path: Path) -> None:
    predictions = package.predict(shop.out, shop.new)
    assert len(predictions) == 20 == sum(predictions.counts().values())
    package.predict(shop.out, shop.new, tmp_path / "p.csv")
    for to, force, code in (
        (tmp_path / "p.csv", False, "target-exists"),
        (shop.new, True, "target-is-input"),
        (tmp_path / "p.xlsx", False, "bad-target"),
        (tmp_path, False, "bad-target"),
    ):
        with raises(ConfigError, code):
            package.predict(shop.out, shop.new, to, force=force)
    with raises(ConfigError, "unknown-method"):
        package.predict(shop.out, shop.new, method="oracle")


def test_arrow_and_data_frames_in_any_column_order(shop: Fitted) -> None:
    estimator = package.load(shop.out)
    expected = estimator.predict_proba(shop.held)
    mixed = shop.held[shop.held.columns[::-1]].assign(extra=1)
    assert np.array_equal(estimator.predict_proba(mixed), expected)
    assert np.array_equal(estimator.predict_proba(pa.Table.from_pandas(mixed)), expected)
    with pytest.raises(InputError, match="'weight'"):
        estimator.predict(shop.held.drop(columns="weight"))
