"""How each kind of data is shown: images, spectrograms with sound, cells, numbers, sentences."""

import io
import wave

import numpy as np
import pytest
from PIL import Image

from synthsieve import open_run
from synthsieve.results.gallery.session import GallerySession
from tests.finished import finished_run
from tests.results.gallery.conftest import client_of


@pytest.fixture(scope="module", params=["table", "text", "sound", "vector"])
def shown(request, tmp_path_factory):
    out = finished_run(request.param, tmp_path_factory.mktemp("kinds"))
    session = GallerySession(open_run(out).pool(), out)
    return request.param, session, client_of(session)


def test_form_of_each_kind(shown):
    kind, session, client = shown
    info = client.get("/api/info").json()
    assert info["form"] == ("sound" if kind == "sound" else "text")
    if kind == "sound":
        sheet = np.asarray(Image.open(io.BytesIO(client.get("/api/sheet?rows=0,1,2").content)))
        tile = info["tile"]
        assert sheet.shape == (tile["height"], 3 * tile["width"], 3)
        with wave.open(io.BytesIO(client.get("/api/sound?row=1").content)) as sound:
            assert sound.getnframes() > 100
        real = session.view.real_rows[0]
        assert client.get(f"/api/real-sound?rows={real}").headers["content-type"] == "audio/wav"
        return
    text = client.get("/api/text?rows=5,3").json()
    assert len(text["cells"]) == 2
    items = session.view.items(np.array([5, 3]))
    if kind == "table":
        assert text["names"] == items.column_names
        assert len(text["cells"][0]) == items.num_columns
    elif kind == "text":
        assert text["names"] == []
        assert [cells[0] for cells in text["cells"]] == items
    else:
        assert [float(cell) for cell in text["cells"][0]] == pytest.approx(items[0], rel=1e-3)
    refused = client.get("/api/sheet?rows=1")
    assert refused.status_code == 400
    assert "request their text" in refused.json()["error"]


def test_neighbors_and_chain_of_each_kind(shown):
    kind, _, client = shown
    near = client.get("/api/neighbors?row=4").json()
    assert len(near["pool"]) == 8
    rows = ",".join(str(one["row"]) for one in near["real"])
    assert client.get(f"/api/real-{'sheet' if kind == 'sound' else 'text'}?rows={rows}").status_code == 200
    chain = client.get("/api/chain?row=4").json()
    assert chain["steps"][-1] == 8
    if kind != "sound":
        assert chain["cells"][-1] == client.get("/api/text?rows=4").json()["cells"][0]


def test_formats_of_each_kind(shown):
    kind, session, _ = shown
    expected = {"table": "csv", "text": "csv", "vector": "csv", "sound": "sounds"}[kind]
    assert expected in session.formats
