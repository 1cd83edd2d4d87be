"""`synthsieve select` and `select_file`: from a file to a folder, and every error."""

import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import synthsieve
from synthsieve.cli.app import main
from synthsieve.errors import SelectionError
from synthsieve.selection.options import SelectionOptions
from tests.errors import raises

NAMES = np.array(["cat", "dog", "eel"])
REPRESENTED = "not selected: a selected one represents it"


@pytest.fixture
def pool():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3)) * 3
    return {
        "labels": logits.argmax(axis=1),
        "logits": logits,
        "x": rng.normal(size=(300, 2, 2)).astype(np.float32),
    }


def run(*arguments):
    """The exit code of the command line."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as ended:
        return ended.code or 0
    return 0


def read(path):
    return pq.read_table(path).to_pydict()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, pool, save, capsys):
    save(tmp_path / "pool.npz", **pool)
    out = tmp_path / "out"
    assert run("select", tmp_path / "pool.npz", "-o", out, "--keep-fraction", "0.5", "--refine", "--quiet") == 0
    printed = capsys.readouterr().out
    assert "150 survive" in printed
    assert "guaranteed at most" in printed
    assert len(printed.splitlines()) < 24
    rows = read(out / "selection.parquet")
    assert len(rows["row"]) == 300
    assert sum(rows["weight"]) == 150
    chosen = np.load(out / "selected.npz", allow_pickle=False)
    assert np.array_equal(chosen["x"], pool["x"][rows["selected"]])
    assert chosen["weight"].sum() == 150
    assert chosen["loss_weight"].mean() == pytest.approx(1.0)
    assert sorted(path.name for path in out.iterdir()) == ["selected.npz", "selection.parquet", "summary.json"]


def test_parquet_keeps_every_column(tmp_path, pool, capsys):
    table = {"label": NAMES[pool["labels"]], "note": [f"row {i}" for i in range(300)]}
    table |= {f"logit_{name}": pool["logits"][:, k] for k, name in enumerate(NAMES)}
    pq.write_table(pa.table(table), tmp_path / "pool.parquet", row_group_size=70)
    out = tmp_path / "out"
    assert run("select", tmp_path / "pool.parquet", "-o", out, "--budget", "30", "--json", "--quiet") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["selected"] == 30
    assert [entry["label"] for entry in result["classes"]] == NAMES.tolist()
    assert result["gradient_error"] <= result["gradient_bound"]
    rows, chosen = read(out / "selection.parquet"), read(out / "selected.parquet")
    picked = [row for row in range(300) if rows["selected"][row]]
    assert chosen["note"] == [f"row {row}" for row in picked]
    assert chosen["label"] == NAMES[pool["labels"]][picked].tolist()
    assert sum(chosen["weight"]) == 300


def test_folder_of_parquet_files(tmp_path, pool, capsys):
    table = pa.table(
        {"label": NAMES[pool["labels"]], **{f"logit_{n}": pool["logits"][:, k] for k, n in enumerate(NAMES)}}
    )
    pq.write_table(table, tmp_path / "whole.parquet")
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        pq.write_table(table[100 * number : 100 * (number + 1)], folder / f"{number}.parquet")
    (folder / "notes.txt").write_text("not a table", encoding="utf-8")
    (folder / "_about.parquet").write_text("not for readers of rows", encoding="utf-8")
    command = ("--keep-fraction", "0.5", "--quiet")
    assert run("select", tmp_path / "whole.parquet", "-o", tmp_path / "one", *command) == 0
    assert run("select", folder, "-o", tmp_path / "two", *command) == 0
    for name in ("selection.parquet", "selected.parquet"):
        assert read(tmp_path / "one" / name) == read(tmp_path / "two" / name)
    assert run("select", folder, "-o", folder, "--quiet") == 2
    assert "--out" in capsys.readouterr().err
    pq.write_table(table.drop_columns("label"), folder / "2.parquet")
    assert run("select", folder, "-o", tmp_path / "three", "--quiet") == 2
    assert "2.parquet" in capsys.readouterr().err


def write_csv(path, table):
    csv.write_csv(table, path, csv.WriteOptions(delimiter="\t" if path.suffix == ".tsv" else ","))


def write_lines(path, table):
    path.write_text("\n".join(json.dumps(row) for row in table.to_pylist()), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "write"), [("pool.csv", write_csv), ("pool.tsv", write_csv), ("pool.jsonl", write_lines)]
)
def test_text_tables_equal_parquet(tmp_path, pool, name, write):
    logits = pool["logits"].round(3)
    table = {"note": [f'row {i}, said "so"' for i in range(300)], "label": NAMES[pool["labels"]]}
    table = pa.table(table | {f"logit_{name}": logits[:, k] for k, name in enumerate(NAMES)})
    pq.write_table(table, tmp_path / "pool.parquet")
    write(tmp_path / name, table)
    for source in ("pool.parquet", name):
        assert run("select", tmp_path / source, "-o", tmp_path / source.replace(".", "-"), "--quiet") == 0
    one, two = tmp_path / "pool-parquet", tmp_path / name.replace(".", "-")
    for file in ("selection.parquet", "selected.parquet"):
        assert read(one / file) == read(two / file)


def test_json_lines_with_lists(tmp_path, pool):
    write_lines(tmp_path / "a.jsonl", pa.table({"label": pool["labels"], "logits": pool["logits"].tolist()}))
    assert run("select", tmp_path / "a.jsonl", "-o", tmp_path / "out", "--require-label", "--quiet") == 0
    assert len(read(tmp_path / "out" / "selected.parquet")["logits"]) == 30


def test_deeply_nested_json(tmp_path, pool, capsys):
    path = tmp_path / "a.jsonl"
    for deep in ("[" * 200_000 + "]" * 200_000, "[\n" * 200_000 + "]\n" * 200_000):
        path.write_text(f'{{"label": 0, "logits": {deep}}}', encoding="utf-8")
        assert run("select", path, "-o", tmp_path / "out", "--quiet") == 2
        assert "nested" in capsys.readouterr().err
    rows = {"label": pool["labels"], "logits": pool["logits"].tolist(), "note": ['[{"[' * 300, "]" * 300, ":-["] * 100}
    write_lines(path, pa.table(rows))
    assert run("select", path, "-o", tmp_path / "out", "--quiet") == 0


def test_cell_of_megabytes(tmp_path, pool):
    table = {"note": ["x" * 3_000_000] + [""] * 299, "label": NAMES[pool["labels"]]}
    table = pa.table(table | {f"logit_{name}": pool["logits"][:, k] for k, name in enumerate(NAMES)})
    write_csv(tmp_path / "a.csv", table)
    assert run("select", tmp_path / "a.csv", "-o", tmp_path / "out", "--quiet") == 0


def test_numbered_columns_with_text_labels(tmp_path, pool, capsys):
    table = {"label": NAMES[pool["labels"]], **{f"prob_{k}": softmax(pool["logits"])[:, k] for k in range(3)}}
    pq.write_table(pa.table(table), tmp_path / "pool.parquet")
    out = tmp_path / "out"
    assert run("select", tmp_path / "pool.parquet", "-o", out, "--require-label", "--quiet", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    order = ", ".join(repr(str(name)) for name in sorted(NAMES))
    assert any(f"sorted labels: {order}" in note for note in result["notes"])


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["features", "embeddings"])
def test_embeddings_are_features(tmp_path, pool, name, capsys):
    np.savez(tmp_path / "a.npz", **{"labels": pool["labels"], name: pool["logits"]})
    pq.write_table(pa.table({"label": pool["labels"], "n": range(300), name: list(pool["logits"])}), tmp_path / "a.pq")
    for source in ("a.npz", "a.pq"):
        assert run("select", tmp_path / source, "-o", tmp_path / f"{source}-out", "--quiet", "--json") == 0
        result = json.loads(capsys.readouterr().out)
        assert any("logistic regression" in note for note in result["notes"])
        picked = [
            row
            for row, selected in enumerate(read(tmp_path / f"{source}-out" / "selection.parquet")["selected"])
            if selected
        ]
        assert picked == sorted(synthsieve.select(pool["logits"], pool["labels"]).indices.tolist())


def test_weight_columns_do_not_replace_existing_ones(tmp_path, pool):
    np.savez(tmp_path / "a.npz", **pool, weight=np.arange(300), row=np.arange(300) + 7)
    pq.write_table(
        pa.table({"label": pool["labels"], "logits": list(pool["logits"]), "weight": np.arange(300)}),
        tmp_path / "a.parquet",
    )
    for source in ("a.npz", "a.parquet"):
        assert run("select", tmp_path / source, "-o", tmp_path / "out", "--quiet", "--force") == 0
        rows = read(tmp_path / "out" / "selection.parquet")
        picked = np.flatnonzero(rows["selected"])
        npz = source.endswith(".npz")
        chosen = np.load(tmp_path / "out" / "selected.npz") if npz else read(tmp_path / "out" / "selected.parquet")
        assert np.array_equal(chosen["weight"], picked)  # the user's own
        assert np.array_equal(chosen["coreset_weight"], np.array(rows["weight"])[picked])
        assert np.array_equal(chosen["loss_weight"], np.array(rows["loss_weight"])[picked])
        assert sum(chosen["coreset_weight"]) == 300
        assert np.mean(chosen["loss_weight"]) == pytest.approx(1.0)
        if npz:
            assert np.array_equal(chosen["row"], picked + 7)
            assert np.array_equal(chosen["coreset_row"], picked)


def test_threads_and_its_former_name(tmp_path, pool, capsys):
    np.savez(tmp_path / "pool.npz", **pool)
    for option in ("--threads", "--jobs"):
        assert run("select", tmp_path / "pool.npz", "-o", tmp_path / option[2:], option, "1", "--quiet") == 0
        assert run("select", tmp_path / "pool.npz", "-o", tmp_path / "out", option, "0", "--quiet") == 2
    capsys.readouterr()
    assert run("select", "--help") == 0
    printed = capsys.readouterr().out
    assert "--threads" in printed
    assert "--jobs" not in printed


def test_dry_run_with_many_classes(tmp_path, capsys):
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 100
    np.savez(tmp_path / "a.npz", labels=labels, logits=rng.normal(size=(400, 100)).astype(np.float32))
    command = ("select", tmp_path / "a.npz", "-o", tmp_path / "out", "--dry-run")
    assert run(*command, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["classes"] == 100
    assert result["selected"] == 100
    assert result["seconds"] > 0
    assert run(*command, "--memory-limit", "30MB", "--threads", "1") == 0
    printed = capsys.readouterr().out
    assert "one class at a time" not in printed
    assert run(*command, "--memory-limit", "30MB", "--threads", "2") == 0
    assert "one class at a time" in capsys.readouterr().out
    assert run(*command, "--memory-limit", "1MB") == 2
    assert "limit" in capsys.readouterr().err


def test_list_column_of_probabilities(tmp_path, pool):
    p = np.exp(pool["logits"]) / np.exp(pool["logits"]).sum(axis=1, keepdims=True)
    table = pa.table({"y": pool["labels"], "probabilities": list(p), "image": [b"bytes"] * 300})
    pq.write_table(table, tmp_path / "pool.parquet")
    assert run("select", tmp_path / "pool.parquet", "-o", tmp_path / "out", "--entropy-ceiling", "0.2", "--quiet") == 0
    assert set(read(tmp_path / "out" / "selected.parquet")["image"]) == {b"bytes"}


def test_features_alone_are_noted(tmp_path, pool, capsys):
    table = pa.table({"label": NAMES[pool["labels"]], **{f"f{k}": pool["logits"][:, k] for k in range(3)}})
    pq.write_table(table, tmp_path / "pool.parquet")
    assert run("select", tmp_path / "pool.parquet", "-o", tmp_path / "out", "--quiet") == 0
    assert "cross-validated" in capsys.readouterr().out


def test_dry_run_writes_nothing(tmp_path, pool, capsys):
    np.savez(tmp_path / "pool.npz", **pool)
    assert run("select", tmp_path / "pool.npz", "-o", tmp_path / "out", "--dry-run") == 0
    assert "nothing written" in capsys.readouterr().out
    assert run("select", tmp_path / "pool.npz", "-o", tmp_path / "out", "--dry-run", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["rows"] == 300
    assert result["memory_bytes"] > 0
    assert not (tmp_path / "out").exists()


def test_earlier_selection_is_replaced_only_with_force(tmp_path, pool, capsys):
    np.savez(tmp_path / "pool.npz", **pool)
    command = ("select", tmp_path / "pool.npz", "-o", tmp_path / "out", "--quiet")
    assert run(*command) == 0
    assert run(*command) == 2
    assert "--force" in capsys.readouterr().err
    assert run(*command, "--force", "--budget", "0.2") == 0
    for name in ("selection", "selected"):  # of an earlier one on a cluster
        (tmp_path / "out" / name).mkdir()
        (tmp_path / "out" / name / "part-00000.parquet").touch()
    (tmp_path / "out" / "selected.parquet").touch()
    assert run(*command, "--force") == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"selection.parquet", "selected.npz", "summary.json"}


def corrupt(path, pool):
    np.savez(path, **pool)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def parquet_named_npz(path, pool):
    pq.write_table(pa.table({"label": pool["labels"]}), path)


def npz_of(**changes):
    return lambda path, pool: np.savez(path, **{k: v for k, v in {**pool, **changes}.items() if v is not None})


def half_parquet(path, pool):
    pq.write_table(pa.table({"label": pool["labels"], "logits": list(pool["logits"])}), path)
    path.write_bytes(path.read_bytes()[:200])


def parquet_of(**columns):
    return lambda path, pool: pq.write_table(pa.table({"label": pool["labels"], **columns}), path)


def two_labels(path, pool):
    labels = pa.array(pool["labels"])
    pq.write_table(pa.Table.from_arrays([labels, labels, pa.array(list(LOGITS))], ["label", "label", "logits"]), path)


def claiming(shape, packing):
    """An archive whose array claims a shape its bytes do not fill."""

    def write(path, pool):
        labels, logits = io.BytesIO(), io.BytesIO()
        np.save(labels, pool["labels"])
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(logits, header)
        with zipfile.ZipFile(path, "w", packing) as archive:
            archive.writestr("labels.npy", labels.getvalue())
            archive.writestr("logits.npy", logits.getvalue() + bytes(800))
            archive.writestr("more.npy", labels.getvalue())

    return write


def encrypted(path, pool):
    np.savez_compressed(path, **pool)
    whole = bytearray(path.read_bytes())
    whole[whole.find(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(whole)


def flipped(path, pool):
    np.savez_compressed(path, **pool)
    whole = bytearray(path.read_bytes())
    whole[60:90] = bytes(byte ^ 0xFF for byte in whole[60:90])
    path.write_bytes(whole)


LOGITS = np.random.default_rng(0).normal(size=(300, 3))
BAD = {
    "missing": ("none.npz", lambda path, pool: None, [], "none.npz"),
    "ending": (
        "pool.xlsx",
        lambda path, pool: path.write_text("a,b", encoding="utf-8"),
        [],
        "pool.xlsx",
    ),
    "wrong bytes": ("pool.npz", parquet_named_npz, [], "pool.npz"),
    "half a file": ("pool.npz", corrupt, [], "again"),
    "half a parquet": ("pool.parquet", half_parquet, [], "again"),
    "objects": ("pool.npz", npz_of(labels=np.array([None] * 300)), [], "pool.npz"),
    "no labels": ("pool.npz", npz_of(labels=None), [], "--label"),
    "other label": ("pool.npz", npz_of(), ["--label", "z"], "'z'"),
    "nothing to score": ("pool.npz", npz_of(logits=None, x=None), [], "logits"),
    "nan": ("pool.npz", npz_of(logits=np.where(np.eye(300, 3) == 1, np.nan, LOGITS)), [], "row 0"),
    "sums": ("pool.npz", npz_of(logits=None, probabilities=np.full((300, 3), 0.5)), [], "1.5"),
    "labels outside": ("pool.npz", npz_of(labels=np.full(300, 7)), [], "got 7"),
    "lengths": ("pool.npz", npz_of(labels=np.zeros(299, dtype=int)), [], "300"),
    "matrix labels": ("pool.npz", npz_of(labels=np.zeros((300, 2), dtype=int)), [], "label"),
    "budget": ("pool.npz", npz_of(), ["--budget", "1.5"], "budget"),
    "budget word": ("pool.npz", npz_of(), ["--budget", "some"], "budget"),
    "negative budget": ("pool.npz", npz_of(), ["--budget=-3"], "budget"),
    "method": ("pool.npz", npz_of(), ["--method", "best"], "method"),
    "no survivors": ("pool.npz", npz_of(), ["--entropy-ceiling", "1e-40"], "1e-40"),
    "two filters": ("pool.npz", npz_of(), ["--entropy-ceiling", "1", "--keep-fraction", "0.5"], "both"),
    "memory": ("pool.npz", npz_of(), ["--memory-limit", "lots"], "memory_limit"),
    "memory in words": ("pool.npz", npz_of(), ["--memory-limit", "1.2.3MB"], "memory_limit"),
    "a directory": ("pool.npz", lambda path, pool: path.mkdir(), [], "directory"),
    "huge, packed": ("pool.npz", claiming((10**13, 3), zipfile.ZIP_DEFLATED), [], "bytes"),
    "huge, stored": ("pool.npz", claiming((10**13, 3), zipfile.ZIP_STORED), [], "bytes"),
    "overflowing": ("pool.npz", claiming((2**32, 2**32), zipfile.ZIP_STORED), [], "bytes"),
    "negative": ("pool.npz", claiming((-100, 1), zipfile.ZIP_STORED), [], "bytes"),
    "into the next": ("pool.npz", claiming((110, 1), zipfile.ZIP_STORED), [], "bytes"),
    "encrypted": ("pool.npz", encrypted, [], "again"),
    "flipped bits": ("pool.npz", flipped, [], "again"),
    "lone class": ("pool.npz", npz_of(classes=np.array(3)), [], "classes"),
    "lone feature": ("pool.npz", npz_of(logits=None, x=np.array(3.0)), [], "features"),
    "no rows": ("pool.npz", npz_of(labels=LOGITS[:0, 0], logits=None, x=np.zeros((0, 2, 2))), [], "expected"),
    "words": ("pool.parquet", parquet_of(logit_0=["a"] * 300, logit_1=["b"] * 300), [], "numbers"),
    "lists in lists": ("pool.parquet", parquet_of(logits=pa.array([[[1.0]] * 3] * 300)), [], "numbers"),
    "odd lists": ("pool.parquet", parquet_of(logits=[[1.0], [2.0] * 3, [3.0] * 2] * 100), [], "length"),
    "label lists": (
        "pool.parquet",
        parquet_of(y=[[1, 2]] * 300, logits=list(LOGITS)),
        ["--label", "y"],
        "label",
    ),
    "two labels": ("pool.parquet", two_labels, [], "label"),
    "semicolons": ("pool.csv", lambda path, pool: path.write_text("label;a\n1;2\n", encoding="utf-8"), [], "commas"),
    "odd lines": (
        "pool.csv",
        lambda path, pool: path.write_text("label,a\n1\n", encoding="utf-8"),
        [],
        "again",
    ),
    "empty cells": (
        "pool.csv",
        lambda path, pool: path.write_text("label,a\n,2\n1,3\n", encoding="utf-8"),
        [],
        "nulls",
    ),
    "no JSON": ("pool.jsonl", lambda path, pool: path.write_text("label", encoding="utf-8"), [], "again"),
    "nothing in it": ("pool.csv", lambda path, pool: path.touch(), [], "again"),
    "one class": ("pool.npz", npz_of(logits=None, labels=np.zeros(300, dtype=int)), [], "classes"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_input_exits_with_2_and_leaves_nothing(tmp_path, pool, capsys, name):
    file, write, options, keyword = BAD[name]
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / file, pool)
    assert run("select", tmp_path / "in" / file, "-o", tmp_path / "out", "--quiet", *options) == 2
    err = capsys.readouterr().err
    assert keyword in err
    assert len(err.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_write_failure_leaves_nothing(tmp_path, pool, monkeypatch, capsys):
    np.savez(tmp_path / "pool.npz", **pool)
    monkeypatch.setattr(
        "synthsieve.selection.files._write_selected_npz", lambda *a: (_ for _ in ()).throw(OSError("full"))
    )
    assert run("select", tmp_path / "pool.npz", "-o", tmp_path / "out", "--quiet") == 2
    assert "full" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["pool.npz/out", "/proc/none", "n" * 300])
def test_impossible_out_folder(tmp_path, pool, capsys, out):
    np.savez(tmp_path / "pool.npz", **pool)
    assert run("select", tmp_path / "pool.npz", "-o", tmp_path / out, "--quiet") == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_input_is_never_overwritten(tmp_path, pool, capsys):
    np.savez(tmp_path / "selected.npz", **pool)
    whole = (tmp_path / "selected.npz").read_bytes()
    assert run("select", tmp_path / "selected.npz", "-o", tmp_path, "--quiet", "--force") == 2
    assert "selected.npz" in capsys.readouterr().err
    assert (tmp_path / "selected.npz").read_bytes() == whole


def test_notes_on_two_outputs_and_low_precision(tmp_path, pool, capsys):
    np.savez(tmp_path / "pool.npz", **pool, probabilities=np.full((300, 3), 1 / 3))
    assert run("select", tmp_path / "pool.npz", "-o", tmp_path / "both", "--quiet") == 0
    assert "used the logits" in capsys.readouterr().out
    sure = np.eye(3, dtype=np.float32)[pool["labels"]]
    np.savez(tmp_path / "sure.npz", labels=pool["labels"], probabilities=sure)
    assert run("select", tmp_path / "sure.npz", "-o", tmp_path / "sure", "--entropy-ceiling", "1e-7", "--quiet") == 0
    printed = capsys.readouterr()
    assert "note: float32 probabilities resolve" in printed.out
    assert printed.err == ""


def test_label_types_with_numbered_columns(tmp_path, pool):
    p = np.exp(pool["logits"]) / np.exp(pool["logits"]).sum(axis=1, keepdims=True)
    for name, labels in {"floats": pool["labels"].astype(float), "text": pool["labels"].astype(str)}.items():
        table = pa.table({"label": labels, **{f"prob_{k}": p[:, k] for k in range(3)}})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        assert run("select", tmp_path / f"{name}.parquet", "-o", tmp_path / name, "--require-label", "--quiet") == 0
        assert set(read(tmp_path / name / "selection.parquet")["reason"]) <= {"selected", REPRESENTED}


def test_select_file_equals_the_command(tmp_path, pool):
    np.savez(tmp_path / "pool.npz", **pool)
    options = SelectionOptions(budget=30, keep_fraction=0.5, keep_per_class=True)
    chosen = synthsieve.select_file(tmp_path / "pool.npz", tmp_path / "python", options)
    assert [path.name for path in chosen.files] == ["selection.parquet", "selected.npz", "summary.json"]
    assert len(chosen) == 30
    for option in ("--keep-per-class", "--per-class"):
        out = tmp_path / option[2:]
        command = ("select", tmp_path / "pool.npz", "-o", out, "--budget", "30", "--keep-fraction", "0.5", option)
        assert run(*command, "--quiet") == 0
        assert read(out / "selection.parquet") == read(tmp_path / "python" / "selection.parquet")
    with raises(SelectionError, "out-exists"):
        synthsieve.select_file(tmp_path / "pool.npz", tmp_path / "python", options)
    with raises(SelectionError, "out-is-input"):
        synthsieve.select_file(tmp_path / "python" / "selected.npz", tmp_path / "python", options, force=True)


def test_generated_texts(tmp_path, capsys):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(80, 6)).astype(np.float32)
    np.save(tmp_path / "e.npy", points)
    np.save(tmp_path / "real.npy", np.concatenate([points[:3], rng.normal(size=(9, 6)).astype(np.float32)]))
    rows = [{"prompt": row % 5, "completion": f"answer {row}", "score": 1 + row % 4} for row in range(80)]
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given = ("select", tmp_path / "g.jsonl", "--text", "completion", "--embeddings", tmp_path / "e.npy", "--budget", 12)
    assert run(*given, "-o", tmp_path / "out", "--dry-run") == 0
    assert "80 rows in 1 classes, 12 to select" in capsys.readouterr().out
    real = ("--reference", tmp_path / "real.npy", "--reference-role", "cover")
    assert run(*given, *real, "-o", tmp_path / "out", "--dry-run", "--json") == 0
    with_reference = json.loads(capsys.readouterr().out)
    assert run(*given, "--metric", "cosine", "-o", tmp_path / "out", "--dry-run", "--json") == 0
    assert with_reference["memory_bytes"] > json.loads(capsys.readouterr().out)["memory_bytes"]
    more = ("--reference", tmp_path / "real.npy", "--quality", "score", "--quality-floor", 2, "--quality-factor")
    assert run(*given, "-o", tmp_path / "few.jsonl", *more, "--reference-role", "fill", "--json", "--quiet") == 0
    summary = json.loads(capsys.readouterr().out)
    # Rows 0 to 2 are copies; of the others those with a score of 1 are rejected.
    assert summary["rejected"] == {"a copy of a row of the reference": 3, "quality below the floor": 19}
    assert summary["reference"]["rows"] == 12
    few = [json.loads(line) for line in (tmp_path / "few.jsonl").read_text(encoding="utf-8").splitlines()]
    chosen = synthsieve.select(
        rows, embeddings=points, quality="score", quality_floor=2, quality_factor=True, budget=12,
        reference=np.load(tmp_path / "real.npy"), reference_role="fill",
    )  # fmt: skip
    assert [row["completion"] for row in few] == [rows[row]["completion"] for row in np.sort(chosen.indices)]
    assert {row["prompt"] for row in few} <= set(range(5))
    robust = ("--outlier-fraction", 0.1, "--max-weight", 1.5, "--json", "--quiet")
    assert run(*given, "-o", tmp_path / "robust.jsonl", *robust) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["rejected"] == {"an outlier: far from its nearest rows": 8}
    assert summary["capped"] == synthsieve.select(
        embeddings=points, outlier_fraction=0.1, max_weight=1.5, budget=12).num_capped > 0  # fmt: skip
    assert run(*given, "-o", tmp_path / "few.jsonl", "--quiet") == 2
    assert "--force" in capsys.readouterr().err
