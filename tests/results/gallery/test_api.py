"""The responses of the API agree with numpy, and invalid requests are refused with a message."""

import io
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from PIL import Image

from synthsieve import open_run
from synthsieve.results.pool_view import changed_settings
from synthsieve.selection.entropy import Reason
from tests.finished import CRAIG


def rows_in(answer):
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, dtype="<u4")


def pixels_in(answer):
    assert answer.headers["content-type"] == "image/png", answer.text
    return np.asarray(Image.open(io.BytesIO(answer.content)))


def test_info(client, session):
    info = client.get("/api/info").json()
    assert info["count"] == len(session.view) == 60
    assert info["classes"] == list(session.view.classes)
    assert info["form"] == "image"
    assert info["tile"] == {"height": 8, "width": 8, "columns": 25}
    assert info["has_oracle"] is True
    assert "parquet" in info["formats"]
    entropy = np.frombuffer(client.get("/api/column", params={"name": "entropy"}).content, dtype="<f8")
    assert np.array_equal(entropy, session.view.pool.entropy)
    y = np.frombuffer(client.get("/api/column", params={"name": "y"}).content, dtype="<i4")
    assert np.array_equal(y, session.view.pool.y)


def test_selection_figures(client, session):
    view = session.view
    ceiling = float(np.quantile(view.pool.entropy, 0.5))
    figures = exact_figures(client, entropy_ceiling=ceiling, budget=0.5)
    outcomes = view.select(changed_settings(view.settings, entropy_ceiling=ceiling, budget=0.5))
    correct = view.pool.oracle_class == view.pool.y
    assert figures["kept"] == outcomes.kept.sum()
    assert figures["selected"] == len(outcomes.selected)
    assert figures["purity_kept"] == pytest.approx(correct[outcomes.kept].mean())
    assert figures["purity_selected"] == pytest.approx(correct[outcomes.selected].mean())
    assert figures["kept_per_class"] == np.bincount(view.pool.y[outcomes.kept], minlength=10).tolist()
    assert figures["selected_per_class"] == np.bincount(view.pool.y[outcomes.selected], minlength=10).tolist()
    content = client.get("/api/outcomes", params={"entropy_ceiling": ceiling, "budget": 0.5}).content
    states, weights = np.frombuffer(content[:60], np.uint8), np.frombuffer(content[60:], "<f4")
    assert np.array_equal(states == Reason.SELECTED, outcomes.weight > 0)
    assert np.array_equal(states[outcomes.weight == 0], outcomes.reason[outcomes.weight == 0])
    assert np.allclose(weights, outcomes.weight)


numbers = st.none() | st.floats(0, 3, allow_nan=False)


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    classes=st.lists(st.integers(0, 9), max_size=4),
    low=numbers,
    high=numbers,
    least=numbers,
    status=st.sampled_from(["all", "selected", "kept", "rejected", "by_hand"]),
    oracle=st.sampled_from(["all", "agrees", "disagrees"]),
    sort=st.sampled_from(["entropy_by_class", "entropy", "weight", "rank", "distance", "log_density", "row"]),
    descending=st.booleans(),
)
def test_filters_and_orders(client, session, classes, low, high, least, status, oracle, sort, descending):
    params = {"status": status, "oracle": oracle, "sort": sort, "descending": int(descending)}
    params |= {"classes": ",".join(map(str, classes))} if classes else {}
    bounds = {"lowest_entropy": low, "highest_entropy": high, "lowest_weight": least}
    params |= {name: repr(value) for name, value in bounds.items() if value is not None}
    found = rows_in(client.get("/api/order", params=params))

    view, pool = session.view, session.view.pool
    expected = {
        "all": np.ones(60, dtype=bool),
        "selected": pool.weight > 0,
        "kept": pool.reason == Reason.KEPT,
        "rejected": pool.reason != Reason.KEPT,
        "by_hand": np.zeros(60, dtype=bool),
    }[status]
    for row in range(60):
        expected[row] &= not classes or pool.y[row] in classes
        expected[row] &= low is None or pool.entropy[row] >= low
        expected[row] &= high is None or pool.entropy[row] <= high
        expected[row] &= least is None or pool.weight[row] >= least
        agrees = pool.oracle_class[row] == pool.y[row]
        expected[row] &= oracle == "all" or agrees == (oracle == "agrees")
    assert np.array_equal(np.sort(found), np.flatnonzero(expected))
    columns = {"entropy": pool.entropy, "weight": pool.weight, "distance": view.nearest_distance}
    columns |= {"log_density": pool.log_density, "row": np.arange(60), "rank": pool.rank}
    if sort == "entropy_by_class":
        y, counts = pool.y[found], np.zeros(10, dtype=int)
        for row, label in zip(found, y, strict=True):  # classes alternate as long as they have rows left
            assert counts[label] == min(counts[other] for other in set(y) if counts[other] < (y == other).sum())
            counts[label] += 1
            of_class = pool.entropy[found[y == label]]
            assert (np.diff(-of_class if descending else of_class) >= 0).all(), row
        return
    values = columns[sort][found].astype(np.float64)
    if sort == "rank":
        without = values < 0
        assert (np.diff(without.astype(int)) >= 0).all()  # last in both directions
        values = values[~without]
    assert (np.diff(-values if descending else values) >= 0).all()
    assert len(view) == 60


def test_sheet_of_samples(client, session):
    rows = np.arange(59, 28, -1)
    sheet = pixels_in(client.get("/api/sheet", params={"rows": ",".join(map(str, rows))}))
    assert sheet.shape == (2 * 8, 25 * 8)
    x = session.view.decode(rows)
    for place in (0, 24, 25, 30):
        top, left = 8 * (place // 25), 8 * (place % 25)
        assert np.array_equal(sheet[top : top + 8, left : left + 8], x[place, 0])
    one = pixels_in(client.get("/api/image?row=7"))
    assert np.array_equal(one, session.view.decode([7])[0, 0])
    assert client.get("/api/text?rows=1").status_code == 200


def test_sample_neighbors_and_chain(client, session):
    view, row = session.view, int(session.view.pool.selected[3])
    sample = client.get("/api/sample", params={"row": row}).json()
    assert sample["seed"] == str(view.pool.chain_seed[row])
    assert int(sample["seed"]) == view.pool.chain_seed[row]
    assert sample["label"] == view.classes[view.pool.y[row]]
    assert sample["oracle"] == view.classes[view.pool.oracle_class[row]]
    assert sample["classifier"] == view.classes[view.pool.predicted[row]]
    assert sample["outcome"] == "selected"
    assert sample["weight"] == view.pool.weight[row]
    assert sample["rank"] == view.pool.rank[row] + 1
    near = client.get("/api/neighbors", params={"row": row}).json()
    assert [one["row"] for one in near["pool"]] == view.neighbours(row).indices.tolist()
    assert [one["row"] for one in near["real"]] == view.nearest_real(row).indices.tolist()
    assert near["real"][0]["distance"] == pytest.approx(view.nearest_real(row, 1).distances[0])
    assert {one["label"] for one in near["real"]} <= {*view.classes, "unlabelled"}
    steps = client.get("/api/chain", params={"row": row}).json()["steps"]
    assert steps[0] == 0
    assert steps[-1] == 8
    strip = pixels_in(client.get("/api/chain-sheet", params={"row": row}))
    assert np.array_equal(strip[:, -8:], view.decode([row])[0, 0])


def test_held_out_examples_are_not_shown(client, session):
    real, held = session.view.real_rows[0], session.view.run.split.test[0]
    assert client.get("/api/real-sheet", params={"rows": int(real)}).headers["content-type"] == "image/png"
    refused = client.get("/api/real-sheet", params={"rows": int(held)})
    assert refused.status_code == 400
    assert "held out" in refused.json()["error"]


def test_reject_and_undo(client, session, out):
    rows = [int(row) for row in session.view.pool.selected[:3]]
    assert client.post("/api/reject", json={"rows": rows, "rejected": True}).json() == {"changed": 3, "undo_count": 1}
    stored = json.loads((out / "rejections.json").read_text(encoding="utf-8"))["rejected"]
    assert sorted(*stored.values()) == sorted(int(seed) for seed in session.view.pool.chain_seed[rows])
    figures = exact_figures(client)
    assert figures["rejected_by_hand"] == 3
    assert set(rows_in(client.get("/api/order?status=by_hand"))) == set(rows)
    assert not set(rows_in(client.get("/api/order?status=selected"))) & set(rows)
    assert client.get("/api/sample", params={"row": rows[0]}).json()["outcome"] == "rejected by hand"
    assert client.post("/api/reject", json={"rows": rows, "rejected": True}).json()["changed"] == 0
    assert open_run(out).pool(CRAIG.name).rejected.tolist() == rows  # stored on disk
    assert client.post("/api/undo", json={}).json() == {"changed": 3, "undo_count": 0}
    assert exact_figures(client)["rejected_by_hand"] == 0
    assert np.array_equal(rows_in(client.get("/api/order?status=selected&sort=row")), session.view.pool.selected)
    assert client.post("/api/undo", json={}).status_code == 400


def test_reject_all_that_pass_a_filter(client, session):
    figures = client.post("/api/reject", json={"filter": {"classes": "3"}, "selection": {}, "rejected": True}).json()
    assert figures["changed"] == (session.view.pool.y == 3).sum()
    assert set(session.view.pool.y[session.view.rejected]) == {3}
    assert client.post("/api/reject", json={"rows": [0, 59], "rejected": False}).json()["changed"] == 0
    everything = client.post("/api/reject", json={"filter": {}, "rejected": True})
    assert everything.json()["changed"] == 60 - figures["changed"]
    figures = exact_figures(client)
    assert figures["kept"] == 0
    assert "rejected by hand" in figures["note"]
    client.post("/api/export", json={"formats": ["npz"]})
    while (status := client.get("/api/export").json())["state"] == "running":
        pass
    assert status["state"] == "failed"
    assert "no sample is selected" in status["message"]


def test_a_ceiling_below_every_entropy(client, session):
    figures = exact_figures(client, entropy_ceiling=1e-300)
    assert figures["kept"] == figures["selected"] == 0
    assert "entropy_ceiling=1e-300" in figures["note"]
    assert figures["purity_kept"] is None
    assert len(rows_in(client.get("/api/order?entropy_ceiling=1e-300&status=kept"))) == 0
    states = np.frombuffer(client.get("/api/outcomes?entropy_ceiling=1e-300").content[:60], np.uint8)
    wrong = session.view.pool.predicted != session.view.pool.y
    assert np.array_equal(states == Reason.OTHER_LABEL, wrong)


def test_keep_fraction_and_lost_classes(client, session):
    view = session.view
    trained = client.get("/api/info").json()["trained"]
    assert trained["keep_fraction"] == view.settings.keep_fraction is not None
    figures = exact_figures(client, keep_fraction=0.5)
    outcomes = view.select(changed_settings(view.settings, keep_fraction=0.5))
    assert figures["kept_per_class"] == np.bincount(view.pool.y[outcomes.kept], minlength=10).tolist()
    assert figures["keep_fraction"] == 0.5
    assert figures["lost_classes"] == []
    allowed = view.pool.predicted == view.pool.y
    ceiling = float(np.quantile(view.pool.entropy[allowed], 0.2))
    figures = exact_figures(client, entropy_ceiling=ceiling)
    assert figures["keep_fraction"] is None
    under = set(view.pool.y[allowed & (view.pool.entropy < ceiling)].tolist())
    lost = [
        view.classes[label] for label in range(10) if label not in under and (allowed & (view.pool.y == label)).any()
    ]
    assert figures["lost_classes"] == lost
    assert 0 < len(lost) < 10
    both = client.get("/api/selection", params={"keep_fraction": 0.5, "entropy_ceiling": 1})
    assert both.status_code == 400
    assert "got both" in both.json()["error"]


def test_two_galleries_keep_each_others_rejections(client, session, out):
    client.post("/api/reject", json={"rows": [1], "rejected": True})
    other = open_run(out).pool(CRAIG.name)
    other.rejections.update(other.pool, [2], reject=True)
    client.post("/api/reject", json={"rows": [3], "rejected": True})
    assert open_run(out).pool(CRAIG.name).rejected.tolist() == [1, 2, 3]


INVALID = [
    ("selection", {"entropy_ceiling": "nan"}, "entropy_ceiling"),
    ("selection", {"entropy_ceiling": "1e999"}, "entropy_ceiling"),
    ("selection", {"entropy_ceiling": "-1"}, "-1"),
    ("selection", {"entropy_ceiling": "9" * 5000}, "entropy_ceiling"),
    ("selection", {"budget": "0"}, "budget"),
    ("selection", {"budget": "2"}, "budget"),
    ("selection", {"require_label": "yes"}, "require_label"),
    ("selection", {"tab": "<script>"}, "tab"),
    ("order", {"sort": "sideways"}, "entropy_by_class, entropy"),
    ("order", {"status": "odd"}, "status"),
    ("order", {"classes": "10"}, "from 0 to 9, got '10'"),
    ("order", {"classes": "1,,2"}, "from 0 to 9, got ''"),
    ("order", {"descending": "yes"}, "descending"),
    ("order", {"lowest_entropy": "inf"}, "lowest_entropy"),
    ("sheet", {}, "from 0 to 59, got ''"),
    ("sheet", {"rows": "-1"}, "'-1'"),
    ("sheet", {"rows": "60"}, "'60'"),
    ("sheet", {"rows": "1.5"}, "'1.5'"),
    ("sheet", {"rows": "٣"}, "from 0 to 59"),
    ("sheet", {"rows": "9" * 300}, "from 0 to 59"),
    ("sheet", {"rows": ",".join(["1"] * 513)}, "512"),
    ("sample", {"row": "true"}, "from 0 to 59"),
    ("sound", {"row": "1"}, "not sounds"),
    ("column", {"name": "__class__"}, "y, entropy"),
]


@pytest.mark.parametrize(("name", "params", "keyword"), INVALID)
def test_invalid_arguments(client, name, params, keyword):
    answer = client.get(f"/api/{name}", params=params)
    assert answer.status_code == 400
    assert keyword in answer.json()["error"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("body", "keyword"),
    [
        (b"{", "a JSON object"),
        (b"[1]", "a JSON object"),
        (b"[" * 100_000, "a JSON object"),
        (b"x" * 300_000, "at most 262,144 bytes"),
        (json.dumps({"rows": [60], "rejected": True}).encode(), "rows from 0 to 59"),
        (json.dumps({"rows": [True], "rejected": True}).encode(), "rows from 0 to 59"),
        (json.dumps({"rows": [1e30], "rejected": True}).encode(), "rows from 0 to 59"),
        (json.dumps({"rows": [], "rejected": True}).encode(), "at least one"),
        (json.dumps({"rows": [1]}).encode(), "rejected"),
        (json.dumps({"filter": 3, "rejected": True}).encode(), "filter"),
        (json.dumps({"filter": {"classes": 3}, "rejected": True}).encode(), "short strings"),
    ],
)
def test_invalid_bodies(client, body, keyword, out):
    answer = client.post("/api/reject", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert keyword in answer.json()["error"]
    assert not (out / "rejections.json").exists()


def test_other_content_types_are_refused(client):
    answer = client.post("/api/reject", content=b'{"rows":[1],"rejected":true}', headers={"Content-Type": "text/plain"})
    assert answer.status_code == 400
    assert "application/json" in answer.json()["error"]


def exact_figures(client, **params):
    """The figures of the exact selection."""
    while (figures := client.get("/api/selection", params=params).json())["preview"]:
        pass
    return figures
