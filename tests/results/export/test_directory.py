"""Exports are read back unchanged by pandas, pyarrow, datasets, NumPy and others."""

import csv
import hashlib
import io
import json
import os
import sys
import types
import wave

import huggingface_hub
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from synthsieve.data.registry import load
from synthsieve.errors import ConfigError
from synthsieve.results.export import directory, writers
from synthsieve.results.export.block import block_table
from synthsieve.results.export.formats import AVAILABLE, Format, SampleForm, Which
from tests.errors import raises
from tests.hub import datasets, loaded, undecoded
from tests.results.export import made_up
from tests.results.export.made_up import CLASSES, KINDS, exported, samples


def pixels(content):
    """uint8 (channels, height, width) of the bytes of a PNG."""
    image = np.asarray(Image.open(io.BytesIO(content)))
    return image[None] if image.ndim == 2 else image.transpose(2, 0, 1)


def wav_samples(content):
    """int16 samples of the bytes of a WAV, and its rate."""
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()


def all_formats(kind):
    return AVAILABLE[samples(kind)[0].form]


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module", params=KINDS)
def written(request, tmp_path_factory):
    """An export of a kind in all its formats: kind, folder, info, whole block."""
    folder = tmp_path_factory.mktemp("export") / "out"
    info, whole, _ = exported(folder, request.param, *all_formats(request.param))
    return request.param, folder, info, whole


def test_parquet_round_trip(written):
    kind, folder, info, whole = written
    read = parquet.read_table(folder / "data.parquet")
    assert read.equals(block_table(whole, info)[0])
    assert read.num_rows == 23
    if info.form is SampleForm.IMAGES:
        assert all((pixels(cell["bytes"].as_py()) == x).all() for cell, x in zip(read["image"], whole.x, strict=True))
    if info.form is SampleForm.SOUNDS:
        sound, rate = wav_samples(read["audio"][3]["bytes"].as_py())
        assert rate == 8000
        assert np.abs(sound / 32767 - whole.items.sounds[3]).max() < 1e-4
    if kind == "rows":
        assert read.select(whole.items.column_names).equals(whole.items)
        assert read["synthetic_id"].to_pylist() == list(range(23))
        assert read["synthetic_synthetic_label"].to_pylist() == [CLASSES[y] for y in whole.y]


def test_pandas_reads_parquet(written):
    kind, folder, info, whole = written
    frame = pd.read_parquet(folder / "data.parquet")
    label, weight = ("synthetic_synthetic_label", "synthetic_weight") if kind == "rows" else ("label", "weight")
    assert frame[label].tolist() == [CLASSES[y] for y in whole.y]
    assert np.array_equal(frame[weight], whole.columns["weight"])
    assert frame["seed"].tolist() == whole.columns["seed"].tolist()
    if info.form is SampleForm.SENTENCES:
        assert frame["text"].tolist() == whole.items


def test_datasets_reads_both_configurations(written):
    kind, folder, info, whole = written
    read, pool = loaded(folder, "default"), loaded(folder, "pool")
    assert len(read) == 6
    assert len(pool) == 23
    label = "synthetic_synthetic_label" if kind == "rows" else "label"
    assert read.features[label] == datasets.ClassLabel(names=list(CLASSES))
    assert list(read[label]) == whole.y[whole.selected].tolist()
    assert list(pool[label]) == [CLASSES[y] for y in whole.y]
    if info.form is SampleForm.IMAGES:
        assert isinstance(read.features["image"], datasets.Image)
        assert isinstance(pool.features["image"], datasets.Image)
        found = np.stack([pixels(cell["bytes"]) for cell in undecoded(read, "image")["image"]])
        assert np.array_equal(found, whole.x[whole.selected])
        assert (np.asarray(read[0]["image"]).shape[:2]) == (4, 8)
    if info.form is SampleForm.SOUNDS:
        assert isinstance(pool.features["audio"], datasets.Audio)
        cells = undecoded(read, "audio")["audio"]
        assert [cell["bytes"] for cell in cells] == [
            one for one, chosen in zip(whole.files, whole.selected, strict=True) if chosen
        ]
    if kind == "arrays":
        assert np.array_equal(np.array(pool["x"], np.float32).reshape(whole.x.shape), whole.x)
    if kind == "rows":
        assert pool["price"][0] == whole.items["price"][0].as_py()
        assert list(pool["label"]) == ["x"] * 23


def test_datasets_reads_a_folder_with_parquet_only(tmp_path):
    exported(tmp_path / "out", "grey", Format.PARQUET)
    assert len(loaded(tmp_path / "out")) == 23


def test_npz_round_trip_without_pickle(written):
    _, folder, _, whole = written
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        chosen = whole.selected
        assert np.array_equal(arrays["x"], whole.x[chosen])
        assert arrays["x"].dtype == whole.x.dtype
        assert np.array_equal(arrays["classes"][arrays["y"]], np.array(CLASSES)[whole.y[chosen]])
        assert np.array_equal(arrays["weight"], whole.columns["weight"][chosen])
        assert np.array_equal(arrays["latent"], whole.latent[chosen])
        assert arrays["id"].tolist() == np.flatnonzero(chosen).tolist()
        assert set(arrays["reason_words"][arrays["reason"]]) == {"selected"}


@pytest.fixture
def torchcodec(monkeypatch):
    """`datasets` imports torchcodec to list sound files, but does not need it."""
    encoders = types.ModuleType("torchcodec.encoders")
    encoders.AudioEncoder = object
    monkeypatch.setitem(sys.modules, "torchcodec", types.ModuleType("torchcodec"))
    monkeypatch.setitem(sys.modules, "torchcodec.encoders", encoders)


def image_folder(root, suffix):
    """torchvision's rule: each folder is a class, sorted by name; samples are files with the suffix."""
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    found = []
    for index, name in enumerate(classes):
        inside = [os.path.join(at, file) for at, _, files in sorted(os.walk(root / name)) for file in sorted(files)]
        assert inside  # torchvision refuses empty classes
        found += [(path, index) for path in inside if path.endswith(suffix)]
    return classes, found


@pytest.mark.parametrize("kind", ["grey", "colour", "sounds"])
@pytest.mark.usefixtures("torchcodec")
def test_class_folders_for_datasets_and_torchvision(tmp_path, kind):
    info, whole, _ = exported(tmp_path / "out", kind, Format.SOUNDS if kind == "sounds" else Format.IMAGES)
    name, builder, column = (
        ("sounds", "audiofolder", "audio") if kind == "sounds" else ("images", "imagefolder", "image")
    )
    root = tmp_path / "out" / name
    classes, found = image_folder(root, ".wav" if kind == "sounds" else ".png")
    assert classes == ["cat", "dog_fox", "dog_fox_2"]  # dog/fox and dog_fox are two classes
    rows = np.flatnonzero(whole.selected)
    by_id = {int(os.path.basename(path).partition(".")[0]): (path, index) for path, index in found}
    assert sorted(by_id) == rows.tolist()
    for row in rows:
        path, index = by_id[row]
        assert index == whole.y[row]
        with open(path, "rb") as file:
            assert file.read() == whole.files[row]
    read = undecoded(loaded(builder, data_dir=str(root)), column)
    assert sorted(os.path.basename(cell["path"]) for cell in read[column]) == [info.file_name(row) for row in rows]
    for row in read:
        id = row["id"]
        assert os.path.basename(row[column]["path"]) == info.file_name(id)
        assert row["label"] == CLASSES[whole.y[id]]
        assert row["weight"] == whole.columns["weight"][id]


@pytest.mark.parametrize("kind", ["grey", "colour", "sounds"])
def test_class_folders_are_a_source(tmp_path, kind):
    _, whole, _ = exported(
        tmp_path / "out", kind, Format.SOUNDS if kind == "sounds" else Format.IMAGES, which=Which.ALL
    )
    dataset = load(str(tmp_path / "out" / ("sounds" if kind == "sounds" else "images")))
    assert len(dataset.train) == 23
    if kind == "sounds":  # by metadata.csv: in order, and with the true labels
        assert [dataset.classes[y] for y in dataset.train.y] == [CLASSES[y] for y in whole.y]
    else:
        assert np.array_equal(dataset.train.x, whole.x[np.argsort(whole.y, kind="stable")])


def test_classes_named_train_and_test(tmp_path, monkeypatch):
    monkeypatch.setattr(made_up, "CLASSES", ("train", "test", "bus"))
    exported(tmp_path / "out", "grey", Format.IMAGES, Format.HF)
    monkeypatch.chdir(tmp_path / "out")
    read = loaded("imagefolder", data_files="images/**")
    assert sorted(set(read["label"])) == ["bus", "test", "train"]
    assert len(read) == len(loaded(tmp_path / "out")) == 6


@pytest.mark.parametrize("kind", ["sentences", "rows"])
def test_csv_round_trip(tmp_path, kind):
    _, whole, _ = exported(tmp_path / "out", kind, Format.CSV)
    path, chosen = tmp_path / "out" / "data.csv", np.flatnonzero(whole.selected)
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    frame = pd.read_csv(path)
    assert len(rows) == len(frame) == len(chosen)
    if kind == "sentences":
        assert [row["text"] for row in rows] == [whole.items[i] for i in chosen]
        assert np.array_equal(frame["weight"], whole.columns["weight"][chosen])
    else:
        assert [row["code"] for row in rows] == [whole.items["code"][i].as_py() for i in chosen]
        assert [row["price"] for row in rows] == ["1.50"] * len(chosen)
        assert rows[0]["day"] == ""
        assert [int(row["synthetic_id"]) for row in rows] == chosen.tolist()


def test_which_samples_are_written(tmp_path):
    formats = all_formats("grey")
    for which, in_parquet, elsewhere in ((Which.DEFAULT, 23, 6), (Which.SELECTED, 6, 6), (Which.ALL, 23, 23)):
        _, _, manifest = exported(tmp_path / which, "grey", *formats, which=which)
        expected = {"data.parquet": in_parquet, "images": elsewhere, "arrays.npz": elsewhere, "data": elsewhere}
        assert manifest["rows"] == expected
        assert parquet.read_table(tmp_path / which / "data.parquet").num_rows == in_parquet
        assert len(list((tmp_path / which / "images").rglob("*.png"))) == elsewhere
        assert len(np.load(tmp_path / which / "arrays.npz")["x"]) == elsewhere
        assert len(loaded(tmp_path / which, "default")) == elsewhere


def test_row_groups_and_shards(tmp_path, monkeypatch):
    one = exported(tmp_path / "one", "colour", Format.PARQUET, Format.HF, which=Which.ALL)[1]
    monkeypatch.setattr(writers, "GROUP_ROWS", 5)
    monkeypatch.setattr(writers, "SHARD_BYTES", 1)
    exported(tmp_path / "many", "colour", Format.PARQUET, Format.HF, which=Which.ALL)
    stored = parquet.read_metadata(tmp_path / "many" / "data.parquet")
    assert stored.num_row_groups > 3
    assert parquet.read_table(tmp_path / "many" / "data.parquet").equals(
        parquet.read_table(tmp_path / "one" / "data.parquet")
    )
    shards = sorted(path.name for path in (tmp_path / "many" / "data").iterdir())
    assert shards == [f"train-{i:05d}-of-00004.parquet" for i in range(4)]
    read = loaded(tmp_path / "many", "default")
    assert list(read["id"]) == one.ids.tolist()


def test_manifest_lists_size_and_checksum(written):
    _, folder, _, _ = written
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    found = contents(folder)
    del found["manifest.json"]
    assert manifest["files"] == {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in found.items()
    }
    assert [column["name"] for column in manifest["columns"]] == parquet.read_schema(folder / "data.parquet").names


def test_exports_are_reproducible(written, tmp_path):
    kind, folder, _, _ = written
    exported(tmp_path / "again", kind, *all_formats(kind))
    assert contents(tmp_path / "again") == contents(folder)


def test_the_card_is_valid_for_the_hub(written):
    _, folder, _, _ = written
    card = huggingface_hub.DatasetCard.load(folder / "README.md")
    rewritten = huggingface_hub.DatasetCard(card.content)
    assert card.data.to_dict() == rewritten.data.to_dict()
    assert "synthetic" in card.data.tags
    assert card.data.license
    assert [part["config_name"] for part in card.data.to_dict()["configs"]]
    assert card.text.strip().startswith("# ")


@pytest.mark.usefixtures("torchcodec")
def test_code_in_the_card_runs(written, monkeypatch):
    _, folder, _, _ = written
    monkeypatch.chdir(folder)
    card = (folder / "README.md").read_text(encoding="utf-8")
    pieces = [part.partition("```")[0] for part in card.split("```python\n")[1:]]
    assert len(pieces) >= 4
    for piece in pieces:
        exec(compile(piece, "README.md", "exec"), {})
    assert "| a \\| b c | 23 | 10 | 6 |" in card


def test_a_failed_export_leaves_the_earlier_one(tmp_path, monkeypatch):
    exported(tmp_path / "out", "grey", seed=0)
    before = contents(tmp_path / "out")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(directory, "write_card", fail)
        with raises(ConfigError, "cannot-write"):
            exported(tmp_path / "out", "grey", seed=1)
    assert contents(tmp_path / "out") == before
    assert os.listdir(tmp_path) == ["out"]
    exported(tmp_path / "out", "sentences", seed=1)
    assert "images" not in os.listdir(tmp_path / "out")
    assert os.listdir(tmp_path) == ["out"]


def test_other_or_changed_folders_are_not_replaced(tmp_path):
    for name in ("other", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work", encoding="utf-8")
    with raises(ConfigError, "not-an-export"):
        exported(tmp_path / "other", "grey")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with raises(ConfigError, "not-a-folder"):
        exported(tmp_path / "file", "grey")
    with raises(ConfigError, "cannot-write"):
        exported(tmp_path / "file" / "out", "grey")
    exported(tmp_path / "out", "grey")  # an empty folder is filled
    (tmp_path / "out" / ".DS_Store").write_text("", encoding="utf-8")
    exported(tmp_path / "out", "grey")
    (tmp_path / "out" / "notes.md").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"notes\.md"):
        exported(tmp_path / "out", "grey")
    (tmp_path / "out" / "notes.md").unlink()
    card = tmp_path / "out" / "README.md"
    for license in ("mit", "cc0-1.0"):  # the latter is as long as "unknown"
        card.write_text(
            card.read_text(encoding="utf-8").replace('"license": "unknown"', f'"license": "{license}"'),
            encoding="utf-8",
        )
        with raises(ConfigError, "changed-export"):
            exported(tmp_path / "out", "grey")
        card.write_text(
            card.read_text(encoding="utf-8").replace(f'"license": "{license}"', '"license": "unknown"'),
            encoding="utf-8",
        )
    (tmp_path / "out" / "manifest.json").write_text("[" * 10_000, encoding="utf-8")
    with raises(ConfigError, "not-an-export"):
        exported(tmp_path / "out", "grey")


@pytest.mark.parametrize(
    ("kind", "format", "available"),
    [
        ("grey", Format.CSV, "parquet, images, npz, hf"),
        ("rows", Format.IMAGES, "parquet, csv, npz, hf"),
        ("sounds", Format.IMAGES, "parquet, sounds, npz, hf"),
        ("arrays", Format.CSV, "parquet, npz, hf"),
    ],
)
def test_unsupported_formats(tmp_path, kind, format, available):
    with raises(ConfigError, "unsupported-format") as caught:
        exported(tmp_path / "out", kind, format)
    assert available in str(caught.value)
    assert not os.listdir(tmp_path)


def test_a_label_named_like_one_of_our_columns(tmp_path):
    from dataclasses import replace

    info, whole, _ = samples("rows")
    table, names = block_table(whole, replace(info, label_name="seed"))
    assert names["label"] == "seed"
    assert names["seed"] == "synthetic_seed"
    assert table["seed"].type == pa.string()
