"""What fuzzing found, one case each: no traceback, no crash, no memory for a mere claim."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

import synthsieve
from synthsieve.data.checks import check_dataset
from synthsieve.data.modalities.registry import from_json
from synthsieve.data.modalities.table.schema import read_types
from synthsieve.data.registry import load
from synthsieve.data.splits import indices_of
from synthsieve.errors import CheckpointError, ConfigError, DataError, SelectionError
from synthsieve.io.files import parse_json
from synthsieve.io.npz import ArchiveError, read_arrays
from synthsieve.results.run import open_run
from synthsieve.selection.estimate import estimate_cost
from synthsieve.selection.files import read_table
from synthsieve.selection.options import SelectionOptions
from synthsieve.settings import load_settings, settings_from
from synthsieve.training import checkpoint, extra_data, history
from synthsieve.training.pool import SyntheticPool
from synthsieve.training.run_dir import RunDirectory
from tests.data import made_up
from tests.errors import raises
from tests.results.made_up_table import table_json
from tests.robustness.fuzz.targets import _pool, _small_run


def npy(descr: str, shape: tuple[int, ...], body: bytes = b"") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue() + body


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


MEMBERS = {
    "2^40 rows": npy("<f8", (2**40,)),
    "more rows than a machine can count": npy("<f8", (2**63,)),
    "rows of nothing": npy("<U0", (2**50,)),
    "sides of nothing": npy("<f8", (2**50, 0)),
    "text of no character": npy("<U1", (1,), struct.pack("<I", 0x110000)),
    "objects": npy("|O", (1,), b"\x80\x04N."),
    "a header that never ends": b"\x93NUMPY\x01\x00" + struct.pack("<H", 20) + b"{'descr': '<f8', (((",
    "no array": b"plain bytes",
}


@pytest.mark.parametrize("name", MEMBERS)
def test_an_array_that_is_none(name: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", x=MEMBERS[name], y=npy("<i8", (1,), bytes(8)))
    with pytest.raises(ArchiveError):
        read_arrays(path)
    with pytest.raises(DataError):
        load(str(path))
    with pytest.raises(SelectionError):
        read_table(path)


@pytest.mark.parametrize("sides", [(0xBFFFFFFF, 0xFFFFFFFF, 0), (0xFFFFFFFF, 0, 28)])
def test_an_idx_file_with_sides_of_nothing(sides: tuple[int, ...], tmp_path: Path) -> None:
    path = made_up.write_idx(tmp_path, gz=False)
    path.write_bytes(struct.pack(">BBBB3I", 0, 0, 8, 3, *sides))
    with raises(DataError, "damaged-file"):
        load(str(path))


def test_an_archive_with_an_unknown_compression(tmp_path: Path) -> None:
    _pool().write(tmp_path / "a.npz")
    data = (tmp_path / "a.npz").read_bytes()
    place = data.rfind(b"PK\x01\x02")
    (tmp_path / "a.npz").write_bytes(data[: place + 10] + b"\x63" + data[place + 11 :])
    with raises(CheckpointError, "damaged-pool"):
        SyntheticPool.read(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("y", np.asarray(0)),
        ("y", np.array(["a"] * 4)),
        ("weight", np.full(4, np.nan)),
        ("weight", np.full(4, -1.0)),
        ("reason", np.full(4, 77, dtype=np.int8)),
        ("z", np.zeros(4, dtype=np.float32)),
        ("header", np.asarray("[" * 100_000)),
        ("header", np.asarray('{"format": "synthsieve pool 2", "origin": []}')),
        ("header", np.asarray('{"format": "synthsieve pool 2", "origin": {"model_hash": 7}}')),
    ],
)
def test_a_pool_whose_columns_are_something_else(name: str, value: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "pool.npz"
    _pool().write(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, name: value})
    with raises(CheckpointError, "damaged-pool"):
        SyntheticPool.read(path)


def test_a_mat_file_that_made_a_c_library_crash(tmp_path: Path) -> None:
    """Every byte of the description of X changed in turn, in a file that is not packed; scipy 1.17 crashes at some."""
    from scipy.io import savemat

    path = tmp_path / "a.mat"
    savemat(path, {"X": made_up.images(2, (4, 4, 3)).transpose(1, 2, 3, 0), "y": np.array([[1], [2]], np.uint8)})
    good, messages = path.read_bytes(), []
    for place in range(128, 200):
        for value in (0, 1, 14, 255):
            path.write_bytes(good[:place] + bytes([value]) + good[place + 1 :])
            try:
                check_dataset(load(str(path)))
            except DataError as error:
                messages.append(str(error))
    assert messages
    assert not any("\n" in sentence for sentence in messages)


def test_a_mat_file_packed_around_nothing(tmp_path: Path) -> None:
    content = zlib.compress(b"\x0e\0\0\0\xff\xff\xff\xff")
    head = b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    (tmp_path / "a.mat").write_bytes(head + struct.pack("<II", 15, len(content)) + content)
    with raises(DataError, "damaged-file"):
        load(str(tmp_path / "a.mat"))


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "a = " + "[" * 3000, "\ud800"])
def test_toml_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ConfigError):
        load_settings(tmp_path / "a.toml")
    with pytest.raises(DataError):
        read_types(tmp_path / "a.toml")
    with pytest.raises(ConfigError):
        load_settings(None, [f"training.steps{text}"])


@pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "Infinity", "1e999", "9" * 5000, "", "{"])
def test_json_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        parse_json(text)
    (tmp_path / "history.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "selections.jsonl").write_text(text, encoding="utf-8")
    if text:
        with pytest.raises(CheckpointError):
            history.read(tmp_path / "history.jsonl")
        with pytest.raises(CheckpointError):
            extra_data.read_figures(tmp_path)


@pytest.mark.parametrize("row", ['{"step": 1, "kl": "x"}', '{"step": 1, "a b": 2}', '{"kl": 1}', "[]", '{"step": "1"}'])
def test_a_row_of_the_history_that_is_none(row: str, tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text(row, encoding="utf-8")
    with raises(CheckpointError, "damaged-file"):
        history.read(tmp_path / "history.jsonl")


@pytest.mark.parametrize("ranges", ["0-4000000000", "0-99999999999999999999", "5-3", "0-1,1-2", "a", "1--2"])
def test_a_split_of_more_rows_than_there_are(ranges: str) -> None:
    with pytest.raises(ValueError):
        indices_of(ranges)


@pytest.mark.parametrize("shape", [[1, 2**40, 2**40], [1, float("inf"), 8], [8], [], [0, 8, 8], None])
def test_an_encoding_of_no_image(shape: object) -> None:
    with raises(DataError, "damaged-encoding"):
        from_json({"kind": "image", "shape": shape})


def test_settings_that_ask_for_larger_networks_than_the_weights(tmp_path: Path) -> None:
    run = _small_run(tmp_path / "run")
    value = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    value["settings"]["model"]["encoder_width"] = 65536
    (run.path / "run.json").write_text(json.dumps(value), encoding="utf-8")
    with raises(CheckpointError, "other-run"):  # before memory is taken
        RunDirectory.open(run.path).load_model()


def test_a_checkpoint_of_other_tensors(tmp_path: Path) -> None:
    run = _small_run(tmp_path / "run")
    tensors = {"averaged/x": torch.zeros(3, dtype=torch.bfloat16)}
    save_file(tensors, run.best, metadata={"synthsieve": json.dumps({"format": checkpoint.FORMAT})})
    with pytest.raises(CheckpointError):
        RunDirectory.open(run.path).load_model()


@pytest.mark.parametrize("settings", [[], None, "x", {"learning": 3}])
def test_settings_that_are_none(settings: object) -> None:
    with pytest.raises(ConfigError):
        settings_from(settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": []},
        {"seeds": [1e400]},
        {"choice": {}},
        {"choice": []},
        {"choice": {"arm": "unknown", "words": "x"}},
        {"arms": {"a": {"arm": "../..", "pool_size": 1}}},
        {"paired_comparison": {"baseline": "x", "mean": {}, "comparisons": {}}},
    ],
)
def test_a_table_without_what_is_shown(change: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text(json.dumps(table_json() | change), encoding="utf-8")
    with raises(CheckpointError, "damaged-table"):
        open_run(tmp_path)


def test_dates_outside_the_calendar(tmp_path: Path) -> None:
    far = pa.array([2**31 - 1, 0], pa.int32()).view(pa.date32())
    pq.write_table(pa.table({"x": [1.0, 2.0], "label": far, "y": ["a", "b"]}), tmp_path / "a.parquet")
    with raises(DataError, "bad-cell"):
        load(str(tmp_path / "a.parquet"), label="label")
    with raises(DataError, "bad-cell"):
        load(str(tmp_path / "a.parquet"), label="y", text="label")


def test_columns_named_by_digits_that_are_no_numbers(tmp_path: Path) -> None:
    pq.write_table(pa.table({"label": [0, 1], "logit_²": [0.1, 0.2], "logit_1": [0.3, 0.4]}), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").classes is None


def test_one_dimensional_logits_are_refused_before_any_work(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", labels=np.arange(3), logits=np.zeros(3))
    with raises(SelectionError, "shape"):
        estimate_cost(read_table(tmp_path / "a.npz"), SelectionOptions(budget=0.5))


@pytest.mark.parametrize("requested", [{"epsilon": 10**400}, {"memory_limit": []}, {"memory_limit": True}])
def test_numbers_that_no_float_holds(requested: dict[str, object]) -> None:
    with pytest.raises(SelectionError):
        synthsieve.select(labels=[0, 1], logits=np.eye(2), **requested)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1e21, 1e300])
def test_a_bound_that_every_row_meets_takes_one_of_each_class(epsilon: float) -> None:
    logits = np.random.default_rng(0).normal(size=(40, 3))
    chosen = synthsieve.select(labels=np.arange(40) % 3, logits=logits, epsilon=epsilon, n_jobs=1)
    assert sorted(chosen.indices % 3) == [0, 1, 2]
    assert chosen.weights.sum() == 40


def test_a_picture_that_is_another_programs(tmp_path: Path) -> None:
    """PostScript under the name of a PNG: Pillow would hand it to Ghostscript."""
    made_up.write_folder(tmp_path / "root", n=1, unlabeled=False)
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    (tmp_path / "root" / "cat" / "000.png").write_bytes(postscript)
    with raises(DataError, "damaged-file"):
        load(str(tmp_path / "root"))


@pytest.mark.parametrize("features", [None, np.full((2, 1), 1e308)])
def test_distances_that_no_float_holds(features: np.ndarray | None) -> None:
    with raises(SelectionError, "overflow"):
        synthsieve.select(labels=[0, 0], gradients=np.array([[1e308], [-1e308]]), features=features, budget=1, n_jobs=1)


def test_masked_entries_are_no_numbers() -> None:
    whole = np.ma.masked_invalid(np.random.default_rng(0).normal(size=(6, 2)))
    gradients = np.ma.masked_less(whole, whole.min() + 1e-9)
    with raises(SelectionError, "missing"):
        synthsieve.select(labels=[0] * 6, gradients=gradients, n_jobs=1)
    with raises(SelectionError, "length"):
        synthsieve.select(labels=[0] * 6, gradients=whole, sample_weight=np.ma.masked_invalid(np.empty(0)), n_jobs=1)
    chosen = synthsieve.select(labels=np.ma.masked_equal([0] * 6, 1), gradients=whole, budget=2, n_jobs=1)
    assert chosen.weights.sum() == 6
