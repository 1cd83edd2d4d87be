"""A pool taken home is the pool: the same samples, labels, weights and reasons, of every kind of data."""

import io
import json
import os
import signal
import wave
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet

from synthsieve import open_run
from synthsieve.errors import CheckpointError, SelectionError
from synthsieve.evaluation.memorisation import copies_in_words
from synthsieve.export.formats import Format, Which
from synthsieve.export.media import wav_bytes
from synthsieve.review import taken_home
from synthsieve.review.fate import changed_settings
from synthsieve.review.provenance import NOT_PROVED
from synthsieve.review.taken_home import export_view
from tests.finished import CRAIG, KINDS, finished_run
from tests.hub import loaded

USUAL = {
    "image": {"data.parquet", "images"},
    "sound": {"data.parquet", "sounds"},
    "table": {"data.parquet", "data.csv"},
    "text": {"data.parquet", "data.csv"},
    "vector": {"data.parquet", "data.csv"},
}


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run_and_view(out):
    run = open_run(out)
    return run, run.pool(CRAIG.name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_taken_home_as_it_is(kind, tmp_path):
    run, view = run_and_view(finished_run(kind, tmp_path))
    fate, home = view.sieved(), tmp_path / "home"
    usual = export_view(view, fate, to=home, table=run.table)
    assert usual.manifest["rows"].keys() == USUAL[kind]
    pool = parquet.read_table(home / "data.parquet")
    assert pool.num_rows == len(view)
    named = dict(zip((column["meaning"] for column in usual.manifest["columns"]), pool.column_names, strict=False))
    ours = {meaning: pool[name].to_pylist() for meaning, name in named.items()}
    assert ours["the class it was asked for"] == [view.classes[y] for y in view.pool.y]
    assert ours["how many samples of the pool it stands for; 0 if it is not selected"] == fate.weight.tolist()
    assert ours["what became of it, in words"] == [fate.in_words(row) for row in range(len(view))]
    assert (
        ours["of its chain: with the weights that ran it, it gives the latent again"] == view.pool.chain_seed.tolist()
    )
    assert ours["of the classifier's answer to it, in nats; low is sure"] == view.pool.entropy.tolist()
    check_samples(kind, view, pool)
    export_view(view, fate, to=home, formats=[Format.NPZ, Format.HF], table=run.table)
    with np.load(home / "arrays.npz") as arrays:
        assert arrays["x"].tobytes() == view.pool.x.tobytes()
        assert np.array_equal(arrays["y"], view.pool.y[fate.selected])
        assert np.array_equal(arrays["weight"], fate.weight[fate.selected])
        assert np.array_equal(arrays["latent"], view.pool.z[fate.selected])
    assert len(loaded(home)) == len(fate.selected)


def check_samples(kind, view, pool):
    """The samples of data.parquet are those of the pool."""
    rows = np.arange(len(view))
    if kind == "image":
        found = [np.asarray(Image.open(io.BytesIO(cell["bytes"].as_py()))) for cell in pool["image"]]
        assert np.array_equal(np.stack(found)[:, None], view.decode(rows))
    elif kind == "sound":
        sounds = view.items(rows)
        assert [cell["bytes"].as_py() for cell in pool["audio"]] == [
            wav_bytes(sound, sounds.rate) for sound in sounds.sounds
        ]
        with wave.open(io.BytesIO(pool["audio"][0]["bytes"].as_py())) as file:
            assert file.getframerate() == sounds.rate
    elif kind == "text":
        assert pool["text"].to_pylist() == view.items(rows)
    elif kind == "vector":
        assert np.array_equal(np.stack([pool[f"x{i}"] for i in range(5)], axis=1), view.decode(rows))
    else:
        items = view.items(rows)
        assert pool.select(items.column_names).equals(items)
        assert [field.type for field in pool.select(items.column_names).schema] == [f.type for f in items.schema]
        assert len(set(pool["id"].to_pylist())) == len(view)
        assert pool["synthetic_id"].to_pylist() == rows.tolist()


def test_ids_of_a_table_are_those_of_the_row_whichever_samples_are_taken(tmp_path):
    _, view = run_and_view(finished_run("table", tmp_path))
    export_view(view, view.sieved(), to=tmp_path / "all", formats=[Format.PARQUET])
    export_view(view, view.sieved(), to=tmp_path / "some", formats=[Format.PARQUET], which=Which.SELECTED)
    pool, some = (parquet.read_table(tmp_path / name / "data.parquet") for name in ("all", "some"))
    assert some.num_rows == len(view.pool.selected)
    assert some.equals(pool.filter(pool["selected"]))


@pytest.fixture(scope="module")
def opened(out):
    return run_and_view(out)


def test_the_manifest_tells_where_the_samples_come_from(opened, tmp_path):
    run, view = opened
    exported = export_view(view, view.sieved(), to=tmp_path / "home", table=run.table)
    manifest = json.loads((tmp_path / "home" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest == exported.manifest
    assert manifest["source"]["arm"] == CRAIG.name
    assert manifest["source"]["model_hash"] == view.pool.origin["model_hash"]
    assert manifest["split"]["hash"] == view.run.split.hash
    assert manifest["split"]["labeled"] == 20
    assert manifest["run"]["settings"] == view.run.settings.model_dump(mode="json")
    assert manifest["run"]["origin"]["source"] == "digits"
    assert manifest["versions"]["pyarrow"]
    counts = manifest["counts"]
    assert counts["drawn"] == len(view) == sum(counts["reasons"].values())
    for name in ("drawn", "kept", "selected"):
        assert counts[name] == sum(one[name] for one in counts["classes"].values())
    assert manifest["sieve"]["changed"] == {}
    assert manifest["sieve"]["entropy_ceiling"] == view.figures["entropy_ceiling"]
    one = run.table["proof"]["comparisons"][CRAIG.name]
    assert manifest["proof"]["verdict"] == one["verdict"]
    assert f"{100 * one['difference']:+.2f} points" in manifest["proof"]["words"]
    assert manifest["quality"] == run.table["quality"]
    assert manifest["command"] == "synthsieve export OUT --arm 'entropy + CRAIG, L=60' --seed 0"
    assert str(tmp_path) not in json.dumps(manifest)
    card = (tmp_path / "home" / "README.md").read_text(encoding="utf-8")
    assert manifest["proof"]["words"] in card
    assert copies_in_words(run.table["quality"]["memorisation"])[1:] in card
    report = exported.as_dict()
    assert report["files"]["data.parquet"]["samples"] == 60
    assert report["files"]["images"]["bytes"] > 0


def test_a_pool_sieved_anew_says_so(opened, tmp_path):
    run, view = opened
    ceiling = float(np.quantile(view.pool.entropy, 0.6))
    fate = view.sieved(changed_settings(view.settings, entropy_ceiling=ceiling, budget=0.5, require_asked_class=False))
    done = export_view(
        view, fate, to=tmp_path / "home", formats=[Format.PARQUET], which=Which.SELECTED, table=run.table
    )
    pool = parquet.read_table(tmp_path / "home" / "data.parquet")
    assert pool["id"].to_pylist() == fate.selected.tolist()
    assert max(pool["entropy"].to_pylist()) < ceiling
    assert pool["weight"].to_pylist() == fate.weight[fate.selected].tolist()
    assert done.manifest["sieve"]["changed"]["coreset_fraction"] == [0.1, 0.5]
    assert done.manifest["sieve"]["changed"]["entropy_ceiling"] == [None, ceiling]
    assert done.manifest["proof"]["words"].startswith("Nothing was trained on exactly these samples")
    told = f"--entropy-ceiling {ceiling} --any-class --budget 0.5 --format parquet --only-selected"
    assert done.manifest["command"].endswith(told)
    kept = changed_settings(view.settings, keep_fraction=0.2)
    assert "--keep-fraction 0.2" in export_view(view, view.sieved(kept), to=tmp_path / "home").manifest["command"]


def lowest_in_each_class(view, settings):
    """The lowest entropy of each class among samples that the filter may keep."""
    allowed = (view.scores.predicted == view.pool.y) | (not settings.require_asked_class)
    return {y: view.pool.entropy[allowed & (view.pool.y == y)].min() for y in np.unique(view.pool.y[allowed])}


def test_a_ceiling_that_empties_a_class_is_refused_unless_allowed(opened, tmp_path):
    run, view = opened
    lowest = lowest_in_each_class(view, changed_settings(view.settings, require_asked_class=False))
    order = sorted(lowest, key=lowest.get)
    ceiling = float(lowest[order[-2]])  # two classes lie at it or above
    settings = changed_settings(view.settings, entropy_ceiling=ceiling, require_asked_class=False)
    fate = view.sieved(settings)
    with pytest.raises(SelectionError, match="no sample would be left of 2 of 10 classes") as refused:
        export_view(view, fate, to=tmp_path / "home", table=run.table)
    for label in order[-2:]:
        assert f"'{view.classes[label]}' (lowest entropy {lowest[label]:.3g})" in str(refused.value)
    assert "--keep-fraction" in str(refused.value)
    assert not os.listdir(tmp_path)
    done = export_view(view, fate, to=tmp_path / "home", table=run.table, allow_empty_classes=True)
    counts = done.manifest["counts"]
    assert counts["num_classes"] == 8
    assert sorted(counts["empty_classes"]) == sorted(view.classes[label] for label in order[-2:])
    assert "--allow-empty-classes" in done.manifest["command"]
    card = (tmp_path / "home" / "README.md").read_text(encoding="utf-8")
    assert f"{counts['selected']} labelled synthetic images of 8 classes" in card
    assert "There is none of 2 of the 10 classes" in card


def test_what_training_itself_left_out_is_told_but_not_refused(opened, tmp_path):
    _, view = opened
    empty = set(range(10)) - set(view.pool.y[view.pool.selected].tolist())
    for fate in (view.sieved(), view.sieved(changed_settings(view.settings, budget=0.5))):
        done = export_view(view, fate, to=tmp_path / "home")
        assert {view.classes.index(label) for label in done.manifest["counts"]["empty_classes"]} == empty
        assert done.manifest["counts"]["num_classes"] == 10 - len(empty)


def test_a_class_that_was_marked_as_bad_as_a_whole_is_missed(opened, tmp_path):
    _, view = opened
    label = int(view.pool.y[view.pool.selected[0]])
    marks = type(view.marks)(tmp_path / "marks", {}).changed(view.pool, np.flatnonzero(view.pool.y == label), bad=True)
    marked = view.with_marks(marks)
    with pytest.raises(SelectionError, match=rf"'{label}' \(marked as bad\); take marks back in the gallery"):
        export_view(marked, marked.sieved(), to=tmp_path / "home")


def test_what_was_marked_by_hand_is_rejected(opened, tmp_path):
    _, view = opened
    bad = view.pool.selected[:2]
    marked = view.with_marks(type(view.marks)(tmp_path / "marks", {}).changed(view.pool, bad, bad=True))
    done = export_view(
        marked, marked.sieved(), to=tmp_path / "home", formats=[Format.PARQUET], allow_empty_classes=True
    )
    pool = parquet.read_table(tmp_path / "home" / "data.parquet").to_pylist()
    assert [pool[row]["reason"] for row in bad] == ["rejected by hand"] * 2
    assert not any(pool[row]["selected"] for row in bad)
    assert done.manifest["counts"]["reasons"]["rejected by hand"] == 2
    assert done.manifest["sieve"]["rejected_by_hand"] == 2


def test_the_same_choice_gives_the_same_bytes(opened, tmp_path):
    run, view = opened
    formats = [Format.PARQUET, Format.IMAGES, Format.NPZ, Format.HF]
    for name in ("one", "two"):
        export_view(view, view.sieved(), to=tmp_path / name, formats=formats, table=run.table)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_run_alone_has_no_proof(opened, tmp_path):
    _, view = opened
    alone = open_run(view.run.path)
    done = export_view(alone.pool(), alone.pool().sieved(), to=tmp_path / "home", table=alone.table)
    assert done.manifest["proof"]["words"] == NOT_PROVED
    assert done.manifest["command"] == "synthsieve export OUT"
    assert NOT_PROVED in (tmp_path / "home" / "README.md").read_text(encoding="utf-8")


def test_a_damaged_table_and_an_empty_choice_are_told(opened, tmp_path):
    from dataclasses import replace

    run, view = opened
    with pytest.raises(CheckpointError, match=r"table.json .*lacks what the card tells"):
        export_view(view, view.sieved(), to=tmp_path / "home", table={**run.table, "proof": {}})
    with pytest.raises(CheckpointError, match=r"table.json .*lacks what the card tells"):
        export_view(view, view.sieved(), to=tmp_path / "home", table={**run.table, "quality": {"of": 3}})
    nothing = replace(view.sieved(), weight=np.zeros(len(view)))
    with pytest.raises(SelectionError, match="no sample is selected"):
        export_view(view, nothing, to=tmp_path / "home")
    assert not os.listdir(tmp_path)


def test_a_killed_export_leaves_nothing_under_its_name_and_the_next_one_sweeps(opened, tmp_path, monkeypatch):
    _, view = opened
    child = os.fork()
    if not child:

        def killed(*_):
            yield next(whole)
            os.kill(os.getpid(), signal.SIGKILL)

        whole = taken_home.blocks(view, view.sieved(), np.arange(len(view)))
        monkeypatch.setattr(taken_home, "blocks", killed)
        export_view(view, view.sieved(), to=tmp_path / "home")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".home.")
    assert os.listdir(tmp_path / left)
    export_view(view, view.sieved(), to=tmp_path / "home")
    assert os.listdir(tmp_path) == ["home"]


def test_latents_of_an_earlier_model_are_said_to_be(opened, tmp_path):
    run, view = opened
    moved = replace(view, pool=replace(view.pool, origin={**view.pool.origin, "latents_of": "0123456789abcdef"}))
    export_view(moved, moved.as_trained(), to=tmp_path / "home", table=run.table)
    card = (tmp_path / "home" / "README.md").read_text(encoding="utf-8")
    assert "Latents come again from their seeds (the column `seed`) and the weights `0123456789abcdef`" in card
    assert "Each sample comes again" not in card
