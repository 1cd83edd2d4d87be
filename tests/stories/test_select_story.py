"""`synthsieve select` from a file to a directory, and every way it says no."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synthsieve.cli.app import main

NAMES = np.array(["cat", "dog", "eel"])


@pytest.fixture
def pool():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(300, 3)) * 3
    return {
        "labels": logits.argmax(axis=1),
        "logits": logits,
        "x": generator.normal(size=(300, 2, 2)).astype(np.float32),
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
def test_an_npz_is_sieved_whole(tmp_path, pool, save, capsys):
    save(tmp_path / "pool.npz", **pool)
    out = tmp_path / "out"
    assert run("select", tmp_path / "pool.npz", "-o", out, "--keep-fraction", "0.5", "--refine", "--quiet") == 0
    said = capsys.readouterr().out
    assert "150 survive" in said
    assert "guaranteed at most" in said
    assert len(said.splitlines()) < 24
    rows = read(out / "selection.parquet")
    assert len(rows["row"]) == 300
    assert sum(rows["weight"]) == 150
    chosen = np.load(out / "selected.npz", allow_pickle=False)
    assert np.array_equal(chosen["x"], pool["x"][rows["selected"]])
    assert chosen["weights"].sum() == 150
    assert sorted(path.name for path in out.iterdir()) == ["selected.npz", "selection.parquet", "summary.json"]


def test_parquet_with_text_labels_keeps_every_column(tmp_path, pool, capsys):
    table = {"label": NAMES[pool["labels"]], "note": [f"row {i}" for i in range(300)]}
    table |= {f"logit_{name}": pool["logits"][:, k] for k, name in enumerate(NAMES)}
    pq.write_table(pa.table(table), tmp_path / "pool.parquet", row_group_size=70)
    out = tmp_path / "out"
    assert run("select", tmp_path / "pool.parquet", "-o", out, "--budget", "30", "--json", "--quiet") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["selected"] == 30
    assert [entry["label"] for entry in told["classes"]] == NAMES.tolist()
    assert told["gradient_error"] <= told["gradient_bound"]
    rows, chosen = read(out / "selection.parquet"), read(out / "selected.parquet")
    picked = [row for row in range(300) if rows["selected"][row]]
    assert chosen["note"] == [f"row {row}" for row in picked]
    assert chosen["label"] == NAMES[pool["labels"]][picked].tolist()
    assert sum(chosen["weight"]) == 300


def test_a_list_column_of_probabilities(tmp_path, pool):
    p = np.exp(pool["logits"]) / np.exp(pool["logits"]).sum(axis=1, keepdims=True)
    table = pa.table({"y": pool["labels"], "probabilities": list(p), "image": [b"bytes"] * 300})
    pq.write_table(table, tmp_path / "pool.parquet")
    assert run("select", tmp_path / "pool.parquet", "-o", tmp_path / "out", "--entropy-ceiling", "0.2", "--quiet") == 0
    assert set(read(tmp_path / "out" / "selected.parquet")["image"]) == {b"bytes"}


def test_features_alone_are_judged_by_a_classifier_and_that_is_said(tmp_path, pool, capsys):
    table = pa.table({"label": NAMES[pool["labels"]], **{f"f{k}": pool["logits"][:, k] for k in range(3)}})
    pq.write_table(table, tmp_path / "pool.parquet")
    assert run("select", tmp_path / "pool.parquet", "-o", tmp_path / "out", "--quiet") == 0
    assert "cross-validated" in capsys.readouterr().out


def test_a_dry_run_writes_nothing(tmp_path, pool, capsys):
    np.savez(tmp_path / "pool.npz", **pool)
    assert run("select", tmp_path / "pool.npz", "-o", tmp_path / "out", "--dry-run") == 0
    assert "nothing written" in capsys.readouterr().out
    assert run("select", tmp_path / "pool.npz", "-o", tmp_path / "out", "--dry-run", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == 300
    assert told["memory_bytes"] > 0
    assert not (tmp_path / "out").exists()


def test_an_earlier_selection_is_replaced_only_when_forced(tmp_path, pool, capsys):
    np.savez(tmp_path / "pool.npz", **pool)
    command = ("select", tmp_path / "pool.npz", "-o", tmp_path / "out", "--quiet")
    assert run(*command) == 0
    assert run(*command) == 2
    assert "--force" in capsys.readouterr().err
    assert run(*command, "--force", "--budget", "0.2") == 0


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


LOGITS = np.random.default_rng(0).normal(size=(300, 3))
BAD = {
    "missing": ("none.npz", lambda path, pool: None, [], "does not exist"),
    "ending": ("pool.csv", lambda path, pool: path.write_text("a,b"), [], "ending in .npz or .parquet"),
    "wrong bytes": ("pool.npz", parquet_named_npz, [], "what its ending says"),
    "half a file": ("pool.npz", corrupt, [], "write it again"),
    "half a parquet": ("pool.parquet", half_parquet, [], "write it again"),
    "objects": ("pool.npz", npz_of(labels=np.array([None] * 300)), [], "plain arrays"),
    "no labels": ("pool.npz", npz_of(labels=None), [], "use --label"),
    "other label": ("pool.npz", npz_of(), ["--label", "z"], "name one of those"),
    "nothing to judge": ("pool.npz", npz_of(logits=None, x=None), [], "add one"),
    "nan": ("pool.npz", npz_of(logits=np.where(np.eye(300, 3) == 1, np.nan, LOGITS)), [], "got nan in row 0"),
    "sums": ("pool.npz", npz_of(logits=None, probabilities=np.full((300, 3), 0.5)), [], "sum of 1.5 in row 0"),
    "labels outside": ("pool.npz", npz_of(labels=np.full(300, 7)), [], "labels from 0 to 2"),
    "lengths": ("pool.npz", npz_of(labels=np.zeros(299, dtype=int)), [], "expected 300 rows in labels"),
    "matrix labels": ("pool.npz", npz_of(labels=np.zeros((300, 2), dtype=int)), [], "one label a row"),
    "budget": ("pool.npz", npz_of(), ["--budget", "1.5"], "(0, 1]"),
    "budget word": ("pool.npz", npz_of(), ["--budget", "some"], "a fraction or a count"),
    "negative budget": ("pool.npz", npz_of(), ["--budget=-3"], "at least 1"),
    "method": ("pool.npz", npz_of(), ["--method", "best"], "auto, exact"),
    "nobody": ("pool.npz", npz_of(), ["--entropy-ceiling", "1e-40"], "lowest was"),
    "two filters": ("pool.npz", npz_of(), ["--entropy-ceiling", "1", "--keep-fraction", "0.5"], "got both"),
    "memory": ("pool.npz", npz_of(), ["--memory-limit", "lots"], "expected memory_limit"),
    "one class": ("pool.npz", npz_of(logits=None, labels=np.zeros(300, dtype=int)), [], "two classes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_2_one_sentence_and_nothing_left_behind(tmp_path, pool, capsys, name):
    file, write, options, said = BAD[name]
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / file, pool)
    assert run("select", tmp_path / "in" / file, "-o", tmp_path / "out", "--quiet", *options) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_a_failure_while_writing_leaves_nothing(tmp_path, pool, monkeypatch):
    np.savez(tmp_path / "pool.npz", **pool)
    monkeypatch.setattr("synthsieve.sieve_files._write_selected_npz", lambda *a: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        run("select", tmp_path / "pool.npz", "-o", tmp_path / "out", "--quiet")
    assert not (tmp_path / "out").exists()
