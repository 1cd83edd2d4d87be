"""Every file that is read: a small good file for each, and its reader.

`TARGETS` is used twice: by the tests here, with some tens of damaged files each, and by `make fuzz`, with thousands.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from scipy.io import wavfile

from synthsieve.data.download import RemoteFile, fetch
from synthsieve.data.formats.audio import read_audio
from synthsieve.data.modalities.table.schema import read_types
from synthsieve.data.origin import Origin
from synthsieve.data.registry import Request, load
from synthsieve.data.sources import adult, sst2
from synthsieve.data.splits import Split
from synthsieve.errors import SynthsieveError
from synthsieve.estimators import persistence
from synthsieve.estimators.classifier import LatentEBMClassifier
from synthsieve.evaluation.answers import Answers, write_answers
from synthsieve.experiments import runner
from synthsieve.experiments.baselines.search import BaselineResult
from synthsieve.io.progress import NullProgress
from synthsieve.results.export import directory
from synthsieve.results.export.media import write_wav
from synthsieve.results.pool_view import Rejections
from synthsieve.results.run import open_run
from synthsieve.selection import files
from synthsieve.selection.curvature import CurvatureState
from synthsieve.selection.estimate import estimate_cost
from synthsieve.selection.options import SelectionOptions
from synthsieve.selection.select import select
from synthsieve.settings import load_settings
from synthsieve.training import checkpoint, extra_data, history, loop
from synthsieve.training.defaults import settings_for
from synthsieve.training.extra_data import ExtraData, PseudoLabels
from synthsieve.training.pool import SyntheticPool
from synthsieve.training.run_dir import RunDirectory
from tests.data import made_up, made_up_sounds
from tests.distributed import example_rows as distributed_rows
from tests.results import made_up_table
from tests.scratch import new_folder
from tests.training.conftest import QUICK


@dataclass(frozen=True)
class Ready:
    """A target whose folder is filled.

    Attributes:
        path: the file that is damaged.
        read: reads it, and does at least what a command would do next with what it read.
        seeds: good files.
    """

    path: Path
    read: Callable[[], Any]
    seeds: tuple[bytes, ...]

    def feed(self, data: bytes) -> None:
        """Read `data` in place of the good file."""
        self.path.write_bytes(data)
        self.read()


Prepare = Callable[[Path], Ready]
TARGETS: dict[str, Prepare] = {}


def target(prepare: Prepare) -> Prepare:
    TARGETS[prepare.__name__.replace("_", "-")] = prepare
    return prepare


def of_file(path: Path, read: Callable[[], Any], *more: bytes) -> Ready:
    return Ready(path, read, (path.read_bytes(), *more))


@target
def npz_images(folder: Path) -> Ready:
    path = made_up.write_npz(folder / "a.npz", x=made_up.images(8, (1, 4, 4)), y=made_up.labels(8))
    packed = io.BytesIO()
    np.savez_compressed(packed, x=made_up.images(8, (4, 4)) / 255, y=np.array(list("abababab")), range=[0.0, 1.0])
    return of_file(path, lambda: load(str(path)), packed.getvalue())


@target
def npz_vectors(folder: Path) -> Ready:
    x, y = np.linspace(0, 1, 24).reshape(8, 3), np.array(["a", "b"] * 4)
    path = made_up.write_npz(folder / "a.npz", x=x, y=y, groups=np.arange(8) // 2, x_test=x[:2], y_test=y[:2])
    return of_file(path, lambda: load(str(path)))


@target
def idx_images(folder: Path) -> Ready:
    path = made_up.write_idx(folder, gz=False, n=8)
    zipped = made_up.write_idx(folder / "zipped", n=8).read_bytes()
    return of_file(path, lambda: load(str(path)), zipped)


@target
def idx_labels(folder: Path) -> Ready:
    images = made_up.write_idx(folder, n=8)
    return of_file(folder / "train-labels-idx1-ubyte.gz", lambda: load(str(images)))


@target
def mat(folder: Path) -> Ready:
    from scipy.io import savemat

    path = made_up.write_mat(folder / "a.mat", 12, photos=False)
    plain = io.BytesIO()
    savemat(plain, {"X": made_up.images(4, (4, 4, 3)).transpose(1, 2, 3, 0), "y": np.array([[1], [2], [1], [2]])})
    return of_file(path, lambda: load(str(path)), plain.getvalue())


@target
def photo_ids(folder: Path) -> Ready:
    path = made_up.write_mat(folder / "train_32x32.mat", 12)
    return of_file(folder / "photo_id_train.npy", lambda: load(str(path)))


TABLE = """name,age,paid,when,id,mood
 ann,31,yes,2024-01-05,1001,good
bob,?,no,2024-02-05,1002,bad
"c,d",44.5,yes,,1003,good
,19,NA,2023-12-31,1004,
eve,-7e3,no,2024-01-01,1005,bad
"""


@target
def csv(folder: Path) -> Ready:
    path = made_up.write_csv(folder / "a.csv", TABLE)
    return of_file(path, lambda: load(str(path), label="mood"), made_up.csv_text(30).replace("answer", "mood").encode())


@target
def tsv(folder: Path) -> Ready:
    path = made_up.write_csv(folder / "a.tsv", TABLE.replace(",", "\t"))
    return of_file(path, lambda: load(str(path), label="mood"))


@target
def parquet(folder: Path) -> Ready:
    return of_file(*_parquet(folder), _many_types())


@target
def text_column(folder: Path) -> Ready:
    lines = ["text,mood", *(f'"the {i} th word, said",{"ab"[i % 2]}' for i in range(8))]
    path = made_up.write_csv(folder / "a.csv", "\n".join(lines))
    return of_file(path, lambda: load(str(path), label="mood", text="text"))


@target
def schema(folder: Path) -> Ready:
    table, path = made_up.write_csv(folder / "a.csv", TABLE), folder / "schema.toml"
    path.write_text('[columns]\nage = "number"\npaid = "boolean"\nid = "ignore"\nwhen = "date"\n', encoding="utf-8")

    def read() -> None:
        read_types(path)
        load(str(table), label="mood", schema=path)

    return of_file(path, read)


@target
def embeddings_npy(folder: Path) -> Ready:
    table, path = made_up.write_csv(folder / "a.csv", TABLE), folder / "e.npy"
    np.save(path, np.linspace(0, 1, 15, dtype=np.float32).reshape(5, 3))
    return of_file(path, lambda: load(str(table), label="mood", features=path))


@target
def embeddings_npz(folder: Path) -> Ready:
    table, path = made_up.write_csv(folder / "a.csv", TABLE), folder / "e.npz"
    np.savez(path, x=np.linspace(0, 1, 15).reshape(5, 3))
    return of_file(path, lambda: load(str(table), label="mood", features=path))


@target
def images(folder: Path) -> Ready:
    """Pictures of every kind that is read, all under one name: what a file is, its first bytes say."""
    made_up.write_folder(folder / "root", n=1, unlabeled=False)
    path, picture, seeds = folder / "root" / "cat" / "000.png", Image.fromarray(made_up.images(1, (8, 8, 3))[0]), []
    for kind in ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM"):
        stream = io.BytesIO()
        picture.save(stream, kind)
        seeds.append(stream.getvalue())
    return Ready(path, lambda: load(str(folder / "root")), tuple(seeds))


@target
def sounds(folder: Path) -> Ready:
    made_up_sounds.write_sound_folder(folder / "root", n=1, unlabeled=False)
    path = folder / "root" / "low" / "000.wav"
    return of_file(path, lambda: load(str(folder / "root")))


@target
def wav(folder: Path) -> Ready:
    path = folder / "a.wav"
    write_wav(path, made_up_sounds.tone(300, 0.05), 8000)
    data, floats = path.read_bytes(), io.BytesIO()
    three_bytes = data[:34] + b"\x18\0" + data[36:]
    wavfile.write(floats, 8000, made_up_sounds.tone(300, 0.05).astype(np.float32))
    return of_file(path, lambda: read_audio(path), three_bytes, floats.getvalue())


@target
def flac(folder: Path) -> Ready:
    import soundfile

    path = folder / "a.flac"
    soundfile.write(path, made_up_sounds.tone(300, 0.05), 8000)
    return of_file(path, lambda: read_audio(path))


@target
def sound_list(folder: Path) -> Ready:
    root = made_up_sounds.write_listed(folder / "root", n=4)
    return of_file(root / "metadata.csv", lambda: load(str(root)))


@target
def adult_rows(folder: Path) -> Ready:
    path = folder / "adult.data"
    path.write_text(
        "39, State-gov, 77516, Bachelors, 13, Single, Clerical, Not-in-family, White, Male, 2174, 0, 40, ?, <=50K\n"
        "50, Self-emp, 83311, Bachelors, 13, Married, Exec, Husband, White, Female, 0, 0, 13, United-States, >50K\n",
        encoding="utf-8",
    )
    good = adult.read_adult(path)
    schema = adult.read_rows(good.drop_columns(["income"])).schema

    def read() -> None:
        table = adult.read_adult(path).drop_columns(["income"])
        adult.read_rows(table)
        adult.read_rows_like(table, schema)

    return of_file(path, read)


@target
def sst2_rows(folder: Path) -> Ready:
    for name in sst2.FILES:
        (folder / name).write_text("sentence\tlabel\nfine and dandy\t1\nawful\t0\n", encoding="utf-8")
    return of_file(folder / "train.tsv", lambda: sst2.load_sst2(Request("sst2", data_dir=folder)))


@target
def download(folder: Path) -> Ready:
    """What a server may answer; the target's file is the answer, byte for byte."""
    content = b"what was published"
    file = RemoteFile("a.bin", len(content), hashlib.sha256(content).hexdigest())
    path = folder / "answer"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n" + content + b"\r\n0\r\n\r\n"
    moved = b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n"
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

    def answer() -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                try:
                    connection.settimeout(2)
                    connection.recv(4096)
                    connection.sendall(path.read_bytes())
                except OSError:
                    pass

    threading.Thread(target=answer, daemon=True).start()

    def read() -> None:
        (folder / "a.bin").unlink(missing_ok=True)
        assert fetch(file, folder, base_url=url, progress=NullProgress()).read_bytes() == content

    return Ready(path, read, (head + content, chunked, moved))


@target
def config_file(folder: Path) -> Ready:
    path = folder / "a.toml"
    path.write_text(
        'seed = 3\n[training]\nsteps = 10\nschedule = "cosine"\n[comparison]\npool_sizes = [10, 20]\n', encoding="utf-8"
    )
    presets = Path(load_settings.__code__.co_filename).with_name("presets").glob("*.toml")
    return of_file(path, lambda: load_settings(path), *(preset.read_bytes() for preset in sorted(presets)))


@target
def override(folder: Path) -> Ready:
    path = folder / "override"

    def read() -> None:
        settings_for("digits", overrides=[path.read_bytes().decode("utf-8", "surrogateescape")])

    words = (
        "training.steps=10",
        "augmentation.entropy_ceiling=auto",
        "comparison.pool_sizes=[1, 2]",
        "model.norm='group'",
    )
    return Ready(path, read, tuple(word.encode() for word in words))


@target
def select_npz(folder: Path) -> Ready:
    path, rng = folder / "a.npz", np.random.default_rng(0)
    labels = np.arange(12) % 3
    np.savez(path, labels=labels, logits=rng.normal(size=(12, 3)), features=rng.normal(size=(12, 2, 2)))
    packed = io.BytesIO()
    np.savez_compressed(
        packed, y=np.array(list("ab") * 6), probabilities=np.full((12, 2), 0.5), classes=np.array(["a", "b"])
    )
    _select_all(path)  # compiles, which no input is to be blamed for
    return of_file(path, lambda: _select_all(path), packed.getvalue())


@target
def select_parquet(folder: Path) -> Ready:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, rng = folder / "a.parquet", np.random.default_rng(0)
    logits = {f"logit_{i}": rng.normal(size=12) for i in range(3)}
    pq.write_table(pa.table({"label": np.arange(12) % 3, **logits}), path)
    lists = io.BytesIO()
    pq.write_table(pa.table({"y": list("ab") * 6, "gradients": rng.normal(size=(12, 2)).tolist()}), lists)
    _select_all(path)
    return of_file(path, lambda: _select_all(path), lists.getvalue())


def _select_all(path: Path) -> None:
    table = files.read_table(path)
    estimate_cost(table, SelectionOptions(budget=0.5))
    if table.outputs:
        select(labels=table.labels, classes=table.classes, **table.outputs, budget=0.5, n_jobs=1)


@target
def shards(folder: Path) -> Ready:
    """One of two files that are selected from block by block, as on a cluster."""
    labels, logits = distributed_rows.rows(40)
    given = distributed_rows.write_shards(folder / "given", labels, logits, files=2, group=8)
    out = folder / "out"

    def read() -> None:
        try:
            distributed_rows.select_folder(given, out, budget=0.5)
        finally:
            left = [path.name for path in out.rglob("*.partial*")] if out.exists() else []
            shutil.rmtree(out, ignore_errors=True)
            assert not left, left

    return of_file(given / "0.parquet", read)


@target
def pool(folder: Path) -> Ready:
    path = folder / "pool-0000012.npz"
    _pool().write(path)

    def read() -> None:
        found = SyntheticPool.read(path)
        if len(found.selected):
            _ = found.loss_weights
        _ = found.survivors, [found.describe(row) for row in range(len(found))]
        Rejections(folder / "r", {}).rows(found)

    return of_file(path, read)


@target
def choice_of_extra_data(folder: Path) -> Ready:
    run = _small_run(folder / "run")
    return of_file(run.path / "extra-data-0000012.npz", lambda: extra_data.latest(run.path))


@target
def selections(folder: Path) -> Ready:
    run = _small_run(folder / "run")
    return of_file(run.path / "selections.jsonl", lambda: extra_data.latest(run.path))


@target
def history_lines(folder: Path) -> Ready:
    path = folder / "history.jsonl"
    path.write_text('{"step": 5, "validation_accuracy": 0.5, "kl": 1.0}\n{"step": 10, "kl": 2.0}\n', encoding="utf-8")

    def read() -> None:
        history.History().restore({"sums": {}, "count": 0}, history.read(path))

    return of_file(path, read)


@target
def run_json(folder: Path) -> Ready:
    run = _small_run(folder / "run")
    return of_file(run.path / "run.json", lambda: RunDirectory.open(run.path).load_model())


@target
def split_json(folder: Path) -> Ready:
    path, run = folder / "split.json", _small_run(folder / "run")
    run.split.write(path)
    return of_file(path, lambda: Split.read(path))


@target
def weights(folder: Path) -> Ready:
    run = _small_run(folder / "run")
    return of_file(run.best, lambda: RunDirectory.open(run.path).load_model())


@target
def last_checkpoint(folder: Path) -> Ready:
    """Read as `fit --resume` reads it; the run has no step left to take."""
    run, dataset = _small_run(folder / "run"), Origin("digits").load()
    return of_file(run.last, lambda: loop.fit(run, dataset))


@target
def estimator(folder: Path) -> Ready:
    path, rng = folder / "model", np.random.default_rng(0)
    y = np.arange(40) % 2
    x = rng.normal(4 * y[:, None], 1, (40, 3))
    small = {
        "model.encoder_width": 8,
        "model.generator_width": 8,
        "model.energy_width": 8,
        "sampling.training_steps": 1,
    }
    model = LatentEBMClassifier(max_iter=2, random_state=0, settings=small).fit(x, y)
    persistence.save(model, path)

    def read() -> None:
        persistence.load(LatentEBMClassifier, path)

    return of_file(path, read)


@target
def rejections(folder: Path) -> Ready:
    path = folder / "rejections.json"
    path.write_text(json.dumps({"format": "synthsieve rejections 1", "rejected": {"abc": [11, 12]}}), encoding="utf-8")
    return of_file(path, lambda: Rejections.read(folder).rows(_pool()))


@target
def table_json(folder: Path) -> Ready:
    path = folder / "table.json"
    path.write_text(json.dumps(made_up_table.table_json(made_up_table.CRAIG)), encoding="utf-8")

    def read() -> None:
        run = open_run(folder)
        _ = run.chosen, run.pooled
        run.arm_folder(run.default_arm)

    return of_file(path, read)


@target
def export_manifest(folder: Path) -> Ready:
    out = folder / "export"
    out.mkdir()
    (out / "data.csv").write_text("x", encoding="utf-8")
    path = out / "manifest.json"
    path.write_text(
        json.dumps(
            {
                "format": directory.FORMAT,
                "files": {"data.csv": {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}},
            }
        ),
        encoding="utf-8",
    )
    return of_file(path, lambda: directory.check_destination(out))


@target
def right_answers(folder: Path) -> Ready:
    path = folder / runner.ANSWERS
    part = Answers(np.arange(3), np.array([0, 1, 1]), np.full((3, 2), 0.5, dtype=np.float32))
    write_answers(path, {"validation": part, "test": part})
    return of_file(path, lambda: runner.answers_of(folder)["test"].right.sum())


@target
def classical_answers(folder: Path) -> Ready:
    path = folder / "a.npz"
    metadata = {"chosen": "a", "grid": None, "unlabeled": 0, "seconds": 1.0, "split_hash": "ab", "failed": None}
    part = Answers(np.arange(3), np.array([0, 1, 1]), np.full((3, 2), 0.5, dtype=np.float32))
    BaselineResult({"test": part}, metadata).write(path)
    return of_file(path, lambda: BaselineResult.read(path).metadata["split_hash"])


def _pool() -> SyntheticPool:
    origin = {"model_hash": "abc", "num_steps": 3, "step_size": 0.1, "temperature": 1.0, "decode_noise": False}
    return SyntheticPool(
        y=np.array([0, 0, 1, 1]),
        z=np.zeros((4, 2), dtype=np.float32),
        chain_seed=np.array([11, 12, 13, 14]),
        logits_z=np.zeros((4, 2), dtype=np.float32),
        logits_x=np.zeros((4, 2), dtype=np.float32),
        z_reencoded=np.zeros((4, 2), dtype=np.float32),
        oracle_class=np.full(4, -1),
        entropy=np.array([0.1, 0.2, 0.9, 0.3]),
        reason=np.array([0, 0, 1, 0], dtype=np.int8),
        weight=np.array([2.0, 0.0, 0.0, 1.0]),
        rank=np.array([0, -1, -1, 0]),
        x=np.zeros((2, 1, 8, 8), dtype=np.uint8),
        origin=origin,
    )


def _small_run(path: Path) -> RunDirectory:
    """A copy of a finished run of three steps with additions."""
    shutil.copytree(_made_once(), path)
    return RunDirectory.open(path)


@functools.cache
def _made_once() -> Path:
    path = new_folder() / "run"
    torch.set_num_threads(1)
    dataset = Origin("digits").load()
    settings = settings_for("digits", overrides=[*QUICK, "training.steps=3", "training.evaluate_every=3"])
    run = RunDirectory.create(path, Origin("digits"), settings, dataset)
    loop.fit(run, dataset)
    train_state = run.new_train_state()
    checkpoint.load(run.last, train_state)
    pseudo = PseudoLabels(np.arange(3), np.zeros(3, dtype=np.int64), np.zeros(3), 0.5)
    state = CurvatureState(np.zeros((4, 10)), np.ones((10, 10)), 1, 1)
    extra_data.write(ExtraData(12, _pool(), pseudo, state, {"step": 12, "drawn": 4}), run.path, train_state)
    return path


def _parquet(folder: Path) -> tuple[Path, Callable[[], Any]]:
    path = made_up.write_parquet(folder / "a.parquet", 12)
    return path, lambda: _load_by_any_label(path)


def _load_by_any_label(path: Path) -> None:
    """With each of some columns as the label; refused where all of them are."""
    errors = []
    for label in ("answer", "flag", "a", "b", "c"):
        try:
            load(str(path), label=label)
        except SynthsieveError as error:
            errors.append(error)
    if len(errors) == 5:
        raise errors[0]


def _many_types() -> bytes:
    import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    day = datetime.date(2024, 1, 5)
    columns = {
        "a": pa.array(["x", "y", None, "x"]).dictionary_encode(),
        "b": pa.array([1, 2, 3, None], pa.uint64()),
        "c": pa.array([day, None, day, day]),
        "d": pa.array([datetime.datetime(2024, 1, 5, 3)] * 4, pa.timestamp("ns", "UTC")),
        "g": pa.array([datetime.time(3, 4)] * 4),
    }
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()
