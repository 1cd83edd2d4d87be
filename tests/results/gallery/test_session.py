"""Exports in the background, to new folders inside the run."""

import json
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from synthsieve.errors import InputError
from synthsieve.results.gallery.session import BackgroundExport
from tests.errors import raises


def finished_export(client):
    while (status := client.get("/api/export").json())["state"] == "running":
        pass
    return status


def test_export_excludes_rejected_samples(client, session, out):
    rejected = [int(row) for row in session.view.pool.selected[:3]]
    client.post("/api/reject", json={"rows": rejected, "rejected": True})
    begun = client.post(
        "/api/export",
        json={"formats": ["parquet", "images"], "selection": {"budget": "0.5"}, "allow_empty_classes": True},
    )
    assert begun.status_code == 200
    status = finished_export(client)
    assert status["state"] == "done", status
    folder = Path(status["path"])
    assert folder.parent == out
    assert "data.parquet" in status["files"]
    table = pq.read_table(folder / "data.parquet").to_pydict()
    by_hand = [
        seed for seed, reason in zip(table["seed"], table["reason"], strict=True) if reason == "rejected by hand"
    ]
    assert sorted(by_hand) == sorted(int(seed) for seed in session.view.pool.chain_seed[rejected])
    assert sum(table["selected"]) == len(list((folder / "images").rglob("*.png")))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["rows"]["data.parquet"] == 60
    client.post("/api/export", json={"formats": ["npz"], "allow_empty_classes": True})
    number = int(folder.name.removeprefix("export-"))
    assert finished_export(client)["path"] == str(out / f"export-{number + 1}")


def test_export_without_some_classes_needs_permission(client, session, out):
    view = session.view
    allowed = view.pool.predicted == view.pool.y
    selection = {"entropy_ceiling": f"{np.quantile(view.pool.entropy[allowed], 0.2):.6g}"}
    client.post("/api/export", json={"formats": ["npz"], "selection": selection})
    status = finished_export(client)
    assert status["state"] == "failed"
    assert "--allow-empty-classes" in status["message"]
    client.post("/api/export", json={"formats": ["npz"], "selection": selection, "allow_empty_classes": True})
    status = finished_export(client)
    assert status["state"] == "done", status
    odd = client.post("/api/export", json={"formats": ["npz"], "allow_empty_classes": "yes"})
    assert odd.status_code == 400


@pytest.mark.parametrize("formats", [None, [], ["exe"], ["csv"], "parquet", [["parquet"]], ["../x"]])
def test_unsupported_formats_are_refused(client, formats):
    answer = client.post("/api/export", json={"formats": formats})
    assert answer.status_code == 400
    assert "parquet, images" in answer.json()["error"]


def test_one_export_at_a_time_and_failures_are_reported(tmp_path):
    exports, go = BackgroundExport(tmp_path), threading.Event()

    def write(to, progress):
        progress.update(1, 2, "writing")
        assert go.wait(300)
        raise OSError("no space left on device")

    exports.start(write)
    with raises(InputError, "export-running"):
        exports.start(write)
    go.set()
    while exports.status.state == "running":
        pass
    assert exports.status.state == "failed"
    assert exports.status.message == "no space left on device"
    exports.start(lambda to, progress: to.mkdir())
    while exports.status.state == "running":
        pass
    assert exports.status.path == str(tmp_path / "export-1")
