"""Every kind of data has a look: pictures, spectrograms that can be heard, cells, numbers, sentences."""

import io
import wave

import numpy as np
import pytest
from PIL import Image
from tests.finished import finished_run
from tests.gallery.conftest import client_of

from synthsieve import open_run
from synthsieve.gallery.room import Room


@pytest.fixture(scope="module", params=["table", "text", "sound", "vector"])
def shown(request, tmp_path_factory):
    out = finished_run(request.param, tmp_path_factory.mktemp("kinds"))
    room = Room(open_run(out).pool(), out)
    return request.param, room, client_of(room)


def test_a_kind_is_shown_as_people_have_it(shown):
    kind, room, client = shown
    told = client.get("/api/about").json()
    assert told["form"] == ("sound" if kind == "sound" else "lines")
    if kind == "sound":
        sheet = np.asarray(Image.open(io.BytesIO(client.get("/api/sheet?rows=0,1,2").content)))
        tile = told["tile"]
        assert sheet.shape == (tile["height"], 3 * tile["width"], 3)
        with wave.open(io.BytesIO(client.get("/api/sound?row=1").content)) as sound:
            assert sound.getnframes() > 100
        real = room.view.scores.real_rows[0]
        assert client.get(f"/api/real-sound?rows={real}").headers["content-type"] == "audio/wav"
        return
    lines = client.get("/api/lines?rows=5,3").json()
    assert len(lines["cells"]) == 2
    items = room.view.items(np.array([5, 3]))
    if kind == "table":
        assert lines["names"] == items.column_names
        assert len(lines["cells"][0]) == items.num_columns
    elif kind == "text":
        assert lines["names"] == []
        assert [cells[0] for cells in lines["cells"]] == items
    else:
        assert [float(cell) for cell in lines["cells"][0]] == pytest.approx(items[0], rel=1e-3)
    refused = client.get("/api/sheet?rows=1")
    assert refused.status_code == 400
    assert "ask for their lines" in refused.json()["error"]


def test_a_sample_has_neighbours_and_a_chain(shown):
    kind, _, client = shown
    near = client.get("/api/neighbours?row=4").json()
    assert len(near["pool"]) == 8
    rows = ",".join(str(one["row"]) for one in near["real"])
    assert client.get(f"/api/real-{'sheet' if kind == 'sound' else 'lines'}?rows={rows}").status_code == 200
    told = client.get("/api/chain?row=4").json()
    assert told["steps"][-1] == 8
    if kind != "sound":
        assert told["cells"][-1] == client.get("/api/lines?rows=4").json()["cells"][0]


def test_formats_are_those_of_the_kind(shown):
    kind, room, _ = shown
    expected = {"table": "csv", "text": "csv", "vector": "csv", "sound": "sounds"}[kind]
    assert expected in room.formats
