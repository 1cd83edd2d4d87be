"""An exported pool has the samples, labels, weights and outcomes of the pool, for every kind of data."""

import io
import json
import os
import shutil
import signal
import wave
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet

import synthsieve
from synthsieve import open_run
from synthsieve.errors import ConfigError, SelectionError
from synthsieve.results.export import from_pool
from synthsieve.results.export.formats import Format, Which
from synthsieve.results.export.from_pool import export_pool
from synthsieve.results.export.media import wav_bytes
from synthsieve.results.pool_view import changed_settings
from synthsieve.results.provenance import MEANINGS, recommended
from synthsieve.settings import Coreset
from tests.errors import raises
from tests.finished import CRAIG, KINDS, finished_run
from tests.hub import loaded

DEFAULT_FILES = {
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
def test_every_kind_of_data(kind, tmp_path):
    run, view = run_and_view(finished_run(kind, tmp_path))
    outcomes, to = view.select(), tmp_path / "export"
    result = export_pool(view, outcomes, to=to, table=run.table)
    assert result.manifest["rows"].keys() == DEFAULT_FILES[kind]
    pool = parquet.read_table(to / "data.parquet")
    assert pool.num_rows == len(view)
    names = {column["meaning"]: column["name"] for column in result.manifest["columns"]}
    ours = {key: pool[names[MEANINGS[key]]].to_pylist() for key in ("label", "weight", "reason", "seed", "entropy")}
    assert ours["label"] == [view.classes[y] for y in view.pool.y]
    assert ours["weight"] == outcomes.weight.tolist()
    assert ours["reason"] == [outcomes.describe(row) for row in range(len(view))]
    assert ours["seed"] == view.pool.chain_seed.tolist()
    assert ours["entropy"] == view.pool.entropy.tolist()
    check_samples(kind, view, pool)
    export_pool(view, outcomes, to=to, formats=[Format.NPZ, Format.HF], table=run.table)
    with np.load(to / "arrays.npz") as arrays:
        assert arrays["x"].tobytes() == view.pool.x.tobytes()
        assert np.array_equal(arrays["y"], view.pool.y[outcomes.selected])
        assert np.array_equal(arrays["weight"], outcomes.weight[outcomes.selected])
        assert np.array_equal(arrays["latent"], view.pool.z[outcomes.selected])
    assert len(loaded(to)) == len(outcomes.selected)


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


def test_ids_of_a_table_do_not_depend_on_which_samples(tmp_path):
    _, view = run_and_view(finished_run("table", tmp_path))
    export_pool(view, view.select(), to=tmp_path / "all", formats=[Format.PARQUET])
    export_pool(view, view.select(), to=tmp_path / "some", formats=[Format.PARQUET], which=Which.SELECTED)
    pool, some = (parquet.read_table(tmp_path / name / "data.parquet") for name in ("all", "some"))
    assert some.num_rows == len(view.pool.selected)
    assert some.equals(pool.filter(pool["selected"]))


@pytest.fixture(scope="module")
def run_and_pool(out):
    return run_and_view(out)


def test_manifest(run_and_pool, tmp_path):
    run, view = run_and_pool
    result = export_pool(view, view.select(), to=tmp_path / "export", table=run.table)
    manifest = json.loads((tmp_path / "export" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest == result.manifest
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
    assert manifest["selection"]["changed"] == {}
    assert manifest["selection"]["entropy_ceiling"] == view.figures["entropy_ceiling"]
    one = run.table.comparisons[CRAIG.name]
    assert manifest["paired_comparison"]["verdict"] == one.verdict
    assert f"{100 * one.difference:+.2f} points" in manifest["paired_comparison"]["words"]
    assert manifest["quality"] == run.table.as_dict()["quality"]
    assert manifest["recommended"] is None
    gain = {"difference": 0.138, "interval_95": [0.123, 0.153]}
    used = {"chosen": "self-labelled rows", "chosen_on_validation": True, "mean": {"self-labelled rows": gain}}
    sentence = recommended(run.table.model_copy(update={"usefulness": used}))
    assert "chosen on validation" in sentence
    assert "self-labelled rows" in sentence
    assert "+13.8 points (95 % interval +12.3 to +15.3)" in sentence
    assert manifest["command"] == "synthsieve export OUT --variant 'entropy + CRAIG, L=60' --seed 0"
    assert str(tmp_path) not in json.dumps(manifest)
    card = (tmp_path / "export" / "README.md").read_text(encoding="utf-8")
    assert manifest["paired_comparison"]["words"] in card
    assert "steps that starts in the Gaussian mixture fitted to the encoded examples" in card
    assert run.table.quality.memorisation.describe()[1:] in card
    report = result.as_dict()
    assert report["files"]["data.parquet"]["samples"] == 60
    assert report["files"]["images"]["bytes"] > 0


def test_another_selection(run_and_pool, tmp_path):
    run, view = run_and_pool
    lowest = lowest_in_each_class(view, changed_settings(view.settings, require_label=False))
    ceiling = 1.01 * float(max(lowest.values()))  # of every class a sample is left
    outcomes = view.select(changed_settings(view.settings, entropy_ceiling=ceiling, budget=0.5, require_label=False))
    result = export_pool(
        view, outcomes, to=tmp_path / "export", formats=[Format.PARQUET], which=Which.SELECTED, table=run.table
    )
    pool = parquet.read_table(tmp_path / "export" / "data.parquet")
    assert pool["id"].to_pylist() == outcomes.selected.tolist()
    assert max(pool["entropy"].to_pylist()) < ceiling
    assert pool["weight"].to_pylist() == outcomes.weight[outcomes.selected].tolist()
    assert result.manifest["selection"]["changed"]["coreset_fraction"] == [0.1, 0.5]
    assert result.manifest["selection"]["changed"]["entropy_ceiling"] == [None, ceiling]
    assert result.manifest["paired_comparison"]["words"].startswith("Nothing was trained on exactly these samples")
    expected = f"--entropy-ceiling {ceiling} --no-require-label --budget 0.5 --format parquet --only-selected"
    assert result.manifest["command"].endswith(expected)
    kept = changed_settings(view.settings, keep_fraction=0.2)
    assert "--keep-fraction 0.2" in export_pool(view, view.select(kept), to=tmp_path / "export").manifest["command"]


def test_another_way_to_select(run_and_pool, tmp_path):
    _, view = run_and_pool
    settings = changed_settings(view.settings, budget=0.5, coreset=Coreset.HERDING)
    outcomes = view.select(settings)
    craig = view.select(changed_settings(view.settings, budget=0.5))
    assert len(outcomes.selected) == len(craig.selected)
    manifest = export_pool(view, outcomes, to=tmp_path / "export").manifest
    assert manifest["command"].endswith("--budget 0.5 --coreset herding")
    everything = view.settings.model_copy(update={"coreset": Coreset.EVERYTHING})
    assert changed_settings(everything, budget=0.5).coreset is Coreset.HERDING


def test_real_rows_are_exported_on_request(run_and_pool, tmp_path):
    run, _ = run_and_pool
    out = tmp_path / "run"
    shutil.copytree(run.path, out)
    with raises(ConfigError, "no-labeled-set"):
        synthsieve.export(out, tmp_path / "export", real_rows=True)
    assert not (tmp_path / "export").exists()
    (out / "dataset.npz").write_bytes(b"rows")
    manifest = synthsieve.export(out, tmp_path / "export", real_rows=True).manifest
    assert (tmp_path / "export" / "dataset.npz").read_bytes() == b"rows"
    assert manifest["files"]["dataset.npz"]["bytes"] == 4
    assert manifest["command"].endswith("--real-rows")
    assert "`dataset.npz`" in (tmp_path / "export" / "README.md").read_text(encoding="utf-8")
    assert "dataset.npz" not in synthsieve.export(out, tmp_path / "export").manifest["files"]


def lowest_in_each_class(view, settings):
    """The lowest entropy of each class among samples that the filter may keep."""
    allowed = (view.pool.predicted == view.pool.y) | (not settings.require_label)
    return {y: view.pool.entropy[allowed & (view.pool.y == y)].min() for y in np.unique(view.pool.y[allowed])}


def test_a_ceiling_that_empties_classes(run_and_pool, tmp_path):
    run, view = run_and_pool
    lowest = lowest_in_each_class(view, changed_settings(view.settings, require_label=False))
    order = sorted(lowest, key=lowest.get)
    ceiling = float(lowest[order[-2]])  # two classes lie at it or above
    settings = changed_settings(view.settings, entropy_ceiling=ceiling, require_label=False)
    outcomes = view.select(settings)
    with raises(SelectionError, "empty-classes") as refused:
        export_pool(view, outcomes, to=tmp_path / "export", table=run.table)
    for label in order[-2:]:
        assert f"'{view.classes[label]}' (lowest entropy {lowest[label]:.3g})" in str(refused.value)
    assert "2 of 10" in str(refused.value)
    assert not os.listdir(tmp_path)
    result = export_pool(view, outcomes, to=tmp_path / "export", table=run.table, allow_empty_classes=True)
    counts = result.manifest["counts"]
    assert counts["num_classes"] == 8
    assert sorted(counts["empty_classes"]) == sorted(view.classes[label] for label in order[-2:])
    assert "--allow-empty-classes" in result.manifest["command"]
    card = (tmp_path / "export" / "README.md").read_text(encoding="utf-8")
    assert f"{counts['selected']} labelled synthetic images of 8 classes" in card
    assert "No sample of 2 of the 10 classes" in card


def test_classes_that_training_left_out_are_allowed(run_and_pool, tmp_path):
    _, view = run_and_pool
    empty = set(range(10)) - set(view.pool.y[view.pool.selected].tolist())
    for outcomes in (view.select(), view.select(changed_settings(view.settings, budget=0.5))):
        result = export_pool(view, outcomes, to=tmp_path / "export")
        assert {view.classes.index(label) for label in result.manifest["counts"]["empty_classes"]} == empty
        assert result.manifest["counts"]["num_classes"] == 10 - len(empty)


def test_a_class_that_is_rejected_completely(run_and_pool, tmp_path):
    _, view = run_and_pool
    label = int(view.pool.y[view.pool.selected[0]])
    rejections = type(view.rejections)(tmp_path / "rejections", {}).update(
        view.pool, np.flatnonzero(view.pool.y == label), reject=True
    )
    marked = view.with_rejections(rejections)
    with pytest.raises(SelectionError, match=rf"'{label}' \(rejected by hand\)"):
        export_pool(marked, marked.select(), to=tmp_path / "export")


def test_rejected_samples(run_and_pool, tmp_path):
    _, view = run_and_pool
    rejected = view.pool.selected[:2]
    marked = view.with_rejections(
        type(view.rejections)(tmp_path / "rejections", {}).update(view.pool, rejected, reject=True)
    )
    result = export_pool(
        marked, marked.select(), to=tmp_path / "export", formats=[Format.PARQUET], allow_empty_classes=True
    )
    pool = parquet.read_table(tmp_path / "export" / "data.parquet").to_pylist()
    assert [pool[row]["reason"] for row in rejected] == ["rejected by hand"] * 2
    assert not any(pool[row]["selected"] for row in rejected)
    assert result.manifest["counts"]["reasons"]["rejected by hand"] == 2
    assert result.manifest["selection"]["rejected_by_hand"] == 2


def test_exports_are_reproducible(run_and_pool, tmp_path):
    run, view = run_and_pool
    formats = [Format.PARQUET, Format.IMAGES, Format.NPZ, Format.HF]
    for name in ("one", "two"):
        export_pool(view, view.select(), to=tmp_path / name, formats=formats, table=run.table)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_single_fit_has_no_comparison(run_and_pool, tmp_path):
    _, view = run_and_pool
    single = open_run(view.run.path)
    result = export_pool(single.pool(), single.pool().select(), to=tmp_path / "export", table=single.table)
    assert result.manifest["paired_comparison"]["verdict"] is None
    assert result.manifest["command"] == "synthsieve export OUT"
    assert result.manifest["paired_comparison"]["words"] in (tmp_path / "export" / "README.md").read_text(
        encoding="utf-8"
    )


def test_an_empty_selection(run_and_pool, tmp_path):
    from dataclasses import replace

    _, view = run_and_pool
    nothing = replace(view.select(), weight=np.zeros(len(view)))
    with raises(SelectionError, "nothing-selected"):
        export_pool(view, nothing, to=tmp_path / "export")
    assert not os.listdir(tmp_path)


def test_a_killed_export_leaves_only_a_temporary_folder(run_and_pool, tmp_path, monkeypatch):
    _, view = run_and_pool
    child = os.fork()
    if not child:

        def killed(*_):
            yield next(whole)
            os.kill(os.getpid(), signal.SIGKILL)

        whole = from_pool.sample_blocks(view, view.select(), np.arange(len(view)))
        monkeypatch.setattr(from_pool, "sample_blocks", killed)
        export_pool(view, view.select(), to=tmp_path / "export")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".export.")
    assert os.listdir(tmp_path / left)
    export_pool(view, view.select(), to=tmp_path / "export")
    assert os.listdir(tmp_path) == ["export"]


def test_latents_of_an_earlier_model(run_and_pool, tmp_path):
    run, view = run_and_pool
    moved = replace(view, pool=replace(view.pool, origin={**view.pool.origin, "latents_of": "0123456789abcdef"}))
    export_pool(moved, moved.as_trained(), to=tmp_path / "export", table=run.table)
    card = (tmp_path / "export" / "README.md").read_text(encoding="utf-8")
    assert "Latents can be reproduced from their seeds (the column `seed`) and the weights `0123456789abcdef`" in card
    assert "Each sample can be reproduced" not in card
