"""The choice of now is exported into a new folder of the run, in the background."""

import json
import threading

import numpy as np
import pyarrow.parquet as pq
import pytest

from synthsieve.errors import InputError
from synthsieve.gallery.exporting import Exports


def wait_for(client):
    while (told := client.get("/api/export").json())["state"] == "running":
        pass
    return told


def test_an_export_holds_the_choice_without_what_was_rejected_by_hand(client, room, out):
    bad = [int(row) for row in room.view.pool.selected[:3]]
    client.post("/api/mark", json={"rows": bad, "bad": True})
    begun = client.post(
        "/api/export", json={"formats": ["parquet", "images"], "choice": {"budget": "0.5"}, "allow_empty_classes": True}
    )
    assert begun.status_code == 200
    told = wait_for(client)
    assert told["state"] == "done", told
    assert told["path"] == str(out / "export-1")
    assert "data.parquet" in told["files"]
    table = pq.read_table(out / "export-1" / "data.parquet").to_pydict()
    by_hand = [
        seed for seed, reason in zip(table["seed"], table["reason"], strict=True) if reason == "rejected by hand"
    ]
    assert sorted(by_hand) == sorted(int(seed) for seed in room.view.pool.chain_seed[bad])
    assert sum(table["selected"]) == len(list((out / "export-1" / "images").rglob("*.png")))
    manifest = json.loads((out / "export-1" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["rows"]["data.parquet"] == 60
    client.post("/api/export", json={"formats": ["npz"], "allow_empty_classes": True})
    assert wait_for(client)["path"] == str(out / "export-2")


def test_an_export_without_some_classes_must_be_asked_for(client, room, out):
    view = room.view
    allowed = view.scores.predicted == view.pool.y
    choice = {"ceiling": f"{np.quantile(view.pool.entropy[allowed], 0.2):.6g}"}
    client.post("/api/export", json={"formats": ["npz"], "choice": choice})
    told = wait_for(client)
    assert told["state"] == "failed"
    assert "no sample would be left of" in told["message"]
    client.post("/api/export", json={"formats": ["npz"], "choice": choice, "allow_empty_classes": True})
    told = wait_for(client)
    assert told["state"] == "done", told
    odd = client.post("/api/export", json={"formats": ["npz"], "allow_empty_classes": "yes"})
    assert odd.status_code == 400


@pytest.mark.parametrize("formats", [None, [], ["exe"], ["csv"], "parquet", [["parquet"]], ["../x"]])
def test_formats_that_make_no_sense_are_refused(client, formats):
    answer = client.post("/api/export", json={"formats": formats})
    assert answer.status_code == 400
    assert "expected formats among parquet, images" in answer.json()["error"]


def test_one_export_at_a_time_and_failures_are_told(tmp_path):
    exports, go = Exports(tmp_path), threading.Event()

    def write(to, progress):
        progress.update(1, 2, "writing")
        assert go.wait(300)
        raise OSError("no space left on device")

    exports.begin(write)
    with pytest.raises(InputError, match="one export at a time"):
        exports.begin(write)
    go.set()
    while exports.told.state == "running":
        pass
    assert exports.told.state == "failed"
    assert exports.told.message == "no space left on device"
    exports.begin(lambda to, progress: to.mkdir())
    while exports.told.state == "running":
        pass
    assert exports.told.path == str(tmp_path / "export-1")
