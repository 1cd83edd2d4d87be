"""What a page asks is answered as numpy would, and what cannot be asked is one sentence."""

import io
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from PIL import Image
from tests.finished import CRAIG

from synthsieve import open_run
from synthsieve.entropy import Reason
from synthsieve.gallery.figures import SELECTED
from synthsieve.review.fate import changed_settings


def rows_in(answer):
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, dtype="<u4")


def pixels_in(answer):
    assert answer.headers["content-type"] == "image/png", answer.text
    return np.asarray(Image.open(io.BytesIO(answer.content)))


def test_what_never_changes_is_told_once(client, room):
    told = client.get("/api/about").json()
    assert told["count"] == len(room.view) == 60
    assert told["classes"] == list(room.view.classes)
    assert told["form"] == "picture"
    assert told["tile"] == {"height": 8, "width": 8, "columns": 25}
    assert told["judge"] is True
    assert "parquet" in told["formats"]
    entropy = np.frombuffer(client.get("/api/column", params={"name": "entropy"}).content, dtype="<f8")
    assert np.array_equal(entropy, room.view.pool.entropy)
    y = np.frombuffer(client.get("/api/column", params={"name": "y"}).content, dtype="<i4")
    assert np.array_equal(y, room.view.pool.y)


def test_figures_are_those_of_the_choice(client, room):
    view = room.view
    ceiling = float(np.quantile(view.pool.entropy, 0.5))
    told = client.get("/api/choice", params={"ceiling": ceiling, "budget": 0.5}).json()
    while told["preview"]:
        told = client.get("/api/choice", params={"ceiling": ceiling, "budget": 0.5}).json()
    fate = view.sieved(changed_settings(view.settings, entropy_ceiling=ceiling, budget=0.5))
    right = view.scores.judged == view.pool.y
    assert told["kept"] == fate.kept.sum()
    assert told["selected"] == len(fate.selected)
    assert told["purity_kept"] == pytest.approx(right[fate.kept].mean())
    assert told["purity_selected"] == pytest.approx(right[fate.selected].mean())
    assert told["kept_per_class"] == np.bincount(view.pool.y[fate.kept], minlength=10).tolist()
    assert told["selected_per_class"] == np.bincount(view.pool.y[fate.selected], minlength=10).tolist()
    content = client.get("/api/states", params={"ceiling": ceiling, "budget": 0.5}).content
    states, weights = np.frombuffer(content[:60], np.uint8), np.frombuffer(content[60:], "<f4")
    assert np.array_equal(states == SELECTED, fate.weight > 0)
    assert np.array_equal(states[fate.weight == 0], fate.reason[fate.weight == 0])
    assert np.allclose(weights, fate.weight)


numbers = st.none() | st.floats(0, 3, allow_nan=False)


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    classes=st.lists(st.integers(0, 9), max_size=4),
    low=numbers,
    high=numbers,
    least=numbers,
    status=st.sampled_from(["all", "selected", "kept", "rejected", "marked"]),
    judge=st.sampled_from(["all", "agrees", "disagrees"]),
    sort=st.sampled_from(["entropy_by_class", "entropy", "weight", "rank", "distance", "log_density", "row"]),
    descending=st.booleans(),
)
def test_the_law_of_filters(client, room, classes, low, high, least, status, judge, sort, descending):
    asked = {"status": status, "judge": judge, "sort": sort, "descending": int(descending)}
    asked |= {"classes": ",".join(map(str, classes))} if classes else {}
    bounds = {"lowest_entropy": low, "highest_entropy": high, "lowest_weight": least}
    asked |= {name: repr(value) for name, value in bounds.items() if value is not None}
    found = rows_in(client.get("/api/order", params=asked))

    view, pool, scores = room.view, room.view.pool, room.view.scores
    expected = {
        "all": np.ones(60, dtype=bool),
        "selected": pool.weight > 0,
        "kept": pool.reason == Reason.KEPT,
        "rejected": pool.reason != Reason.KEPT,
        "marked": np.zeros(60, dtype=bool),
    }[status]
    for row in range(60):
        expected[row] &= not classes or pool.y[row] in classes
        expected[row] &= low is None or pool.entropy[row] >= low
        expected[row] &= high is None or pool.entropy[row] <= high
        expected[row] &= least is None or pool.weight[row] >= least
        agrees = scores.judged[row] == pool.y[row]
        expected[row] &= judge == "all" or agrees == (judge == "agrees")
    assert np.array_equal(np.sort(found), np.flatnonzero(expected))
    columns = {"entropy": pool.entropy, "weight": pool.weight, "distance": scores.nearest_distance}
    columns |= {"log_density": scores.log_density, "row": np.arange(60), "rank": pool.rank}
    if sort == "entropy_by_class":
        y, counts = pool.y[found], np.zeros(10, dtype=int)
        for row, label in zip(found, y, strict=True):  # no class comes again before all that have as many left came
            assert counts[label] == min(counts[other] for other in set(y) if counts[other] < (y == other).sum())
            counts[label] += 1
            mine = pool.entropy[found[y == label]]
            assert (np.diff(-mine if descending else mine) >= 0).all(), row
        return
    values = columns[sort][found].astype(np.float64)
    if sort == "rank":
        without = values < 0
        assert (np.diff(without.astype(int)) >= 0).all()  # last, either way
        values = values[~without]
    assert (np.diff(-values if descending else values) >= 0).all()
    assert len(view) == 60


def test_a_sheet_holds_the_samples_side_by_side(client, room):
    rows = np.arange(59, 28, -1)
    sheet = pixels_in(client.get("/api/sheet", params={"rows": ",".join(map(str, rows))}))
    assert sheet.shape == (2 * 8, 25 * 8)
    x = room.view.decode(rows)
    for place in (0, 24, 25, 30):
        top, left = 8 * (place // 25), 8 * (place % 25)
        assert np.array_equal(sheet[top : top + 8, left : left + 8], x[place, 0])
    one = pixels_in(client.get("/api/picture?row=7"))
    assert np.array_equal(one, room.view.decode([7])[0, 0])
    assert client.get("/api/lines?rows=1").status_code == 200


def test_a_sample_is_told_whole_and_its_seed_is_text(client, room):
    view, row = room.view, int(room.view.pool.selected[3])
    told = client.get("/api/sample", params={"row": row}).json()
    assert told["seed"] == str(view.pool.chain_seed[row])
    assert int(told["seed"]) == view.pool.chain_seed[row]
    assert told["asked"] == view.classes[view.pool.y[row]]
    assert told["judge"] == view.classes[view.scores.judged[row]]
    assert told["classifier"] == view.classes[view.scores.predicted[row]]
    assert told["reason"] == "selected"
    assert told["weight"] == view.pool.weight[row]
    assert told["rank"] == view.pool.rank[row] + 1
    near = client.get("/api/neighbours", params={"row": row}).json()
    assert [one["row"] for one in near["pool"]] == view.neighbours(row).rows.tolist()
    assert [one["row"] for one in near["real"]] == view.nearest_real(row).rows.tolist()
    assert near["real"][0]["distance"] == pytest.approx(view.scores.nearest_distance[row])
    assert {one["label"] for one in near["real"]} <= {*view.classes, "unlabelled"}
    steps = client.get("/api/chain", params={"row": row}).json()["steps"]
    assert steps[0] == 0
    assert steps[-1] == 8
    strip = pixels_in(client.get("/api/chain-sheet", params={"row": row}))
    assert np.array_equal(strip[:, -8:], view.decode([row])[0, 0])


def test_real_examples_are_shown_but_none_that_is_held_out(client, room):
    real, held = room.view.scores.real_rows[0], room.view.run.split.test[0]
    assert client.get("/api/real-sheet", params={"rows": int(real)}).headers["content-type"] == "image/png"
    refused = client.get("/api/real-sheet", params={"rows": int(held)})
    assert refused.status_code == 400
    assert "held out" in refused.json()["error"]


def test_marks_are_written_at_once_excluded_and_taken_back(client, room, out):
    rows = [int(row) for row in room.view.pool.selected[:3]]
    assert client.post("/api/mark", json={"rows": rows, "bad": True}).json() == {"changed": 3, "can_undo": 1}
    stored = json.loads((out / "marked-bad.json").read_text(encoding="utf-8"))["marked"]
    assert sorted(*stored.values()) == sorted(int(seed) for seed in room.view.pool.chain_seed[rows])
    told = settled(client)
    assert told["marked"] == 3
    assert told["rejected"]["rejected by hand"] == 3
    assert set(rows_in(client.get("/api/order?status=marked"))) == set(rows)
    assert not set(rows_in(client.get("/api/order?status=selected"))) & set(rows)
    assert client.get("/api/sample", params={"row": rows[0]}).json()["reason"] == "rejected by hand"
    assert client.post("/api/mark", json={"rows": rows, "bad": True}).json()["changed"] == 0
    assert open_run(out).pool(CRAIG.name).marked.tolist() == rows  # a restart knows them
    assert client.post("/api/undo", json={}).json() == {"changed": 3, "can_undo": 0}
    assert settled(client)["marked"] == 0
    assert np.array_equal(rows_in(client.get("/api/order?status=selected&sort=row")), room.view.pool.selected)
    assert client.post("/api/undo", json={}).status_code == 400


def test_all_that_pass_a_filter_are_marked_together(client, room):
    told = client.post("/api/mark", json={"filter": {"classes": "3"}, "choice": {}, "bad": True}).json()
    assert told["changed"] == (room.view.pool.y == 3).sum()
    assert set(room.view.pool.y[room.view.marked]) == {3}
    assert client.post("/api/mark", json={"rows": [0, 59], "bad": False}).json()["changed"] == 0
    everything = client.post("/api/mark", json={"filter": {}, "bad": True})
    assert everything.json()["changed"] == 60 - told["changed"]
    told = settled(client)
    assert told["kept"] == 0
    assert "every one is rejected by hand" in told["note"]
    client.post("/api/export", json={"formats": ["npz"]})
    while (told := client.get("/api/export").json())["state"] == "running":
        pass
    assert told["state"] == "failed"
    assert "no sample is selected" in told["message"]


def test_a_ceiling_under_everybody_keeps_nobody_and_says_so(client, room):
    told = settled(client, ceiling=1e-300)
    assert told["kept"] == told["selected"] == 0
    assert told["note"].startswith("no sample under entropy_ceiling=1e-300")
    assert told["purity_kept"] is None
    assert len(rows_in(client.get("/api/order?ceiling=1e-300&status=kept"))) == 0
    states = np.frombuffer(client.get("/api/states?ceiling=1e-300").content[:60], np.uint8)
    wrong = room.view.scores.predicted != room.view.pool.y
    assert np.array_equal(states == Reason.OTHER_LABEL, wrong)


def test_a_share_of_each_class_is_kept_and_lost_classes_are_named(client, room):
    view = room.view
    told = client.get("/api/about").json()["trained"]
    assert told["keep_fraction"] == view.settings.keep_fraction is not None
    figures = settled(client, keep=0.5)
    fate = view.sieved(changed_settings(view.settings, keep_fraction=0.5))
    assert figures["kept_per_class"] == np.bincount(view.pool.y[fate.kept], minlength=10).tolist()
    assert figures["keep"] == 0.5
    assert figures["lost_classes"] == []
    allowed = view.scores.predicted == view.pool.y
    ceiling = float(np.quantile(view.pool.entropy[allowed], 0.2))
    figures = settled(client, ceiling=ceiling)
    assert figures["keep"] is None
    under = set(view.pool.y[allowed & (view.pool.entropy < ceiling)].tolist())
    lost = [
        view.classes[label] for label in range(10) if label not in under and (allowed & (view.pool.y == label)).any()
    ]
    assert figures["lost_classes"] == lost
    assert 0 < len(lost) < 10
    both = client.get("/api/choice", params={"keep": 0.5, "ceiling": 1})
    assert both.status_code == 400
    assert "got both" in both.json()["error"]


def test_two_galleries_of_one_run_keep_each_others_marks(client, room, out):
    client.post("/api/mark", json={"rows": [1], "bad": True})
    other = open_run(out).pool(CRAIG.name)
    other.marks.changed(other.pool, [2], bad=True)
    client.post("/api/mark", json={"rows": [3], "bad": True})
    assert open_run(out).pool(CRAIG.name).marked.tolist() == [1, 2, 3]


BAD = [
    ("choice", {"ceiling": "nan"}, "a finite number as ceiling, got 'nan'"),
    ("choice", {"ceiling": "1e999"}, "a finite number as ceiling"),
    ("choice", {"ceiling": "-1"}, "above 0 nats, got -1"),
    ("choice", {"ceiling": "9" * 5000}, "a finite number as ceiling"),
    ("choice", {"budget": "0"}, "budget above 0"),
    ("choice", {"budget": "2"}, "at most 1, got 2"),
    ("choice", {"tab": "<script>"}, "letters and digits"),
    ("order", {"sort": "sideways"}, "expected sort as one of entropy_by_class, entropy"),
    ("order", {"status": "odd"}, "expected status as one of"),
    ("order", {"classes": "10"}, "expected classes from 0 to 9, got '10'"),
    ("order", {"classes": "1,,2"}, "expected classes from 0 to 9, got ''"),
    ("order", {"descending": "yes"}, "expected descending as 0 or 1"),
    ("order", {"lowest_entropy": "inf"}, "a finite number as lowest_entropy"),
    ("sheet", {}, "expected rows from 0 to 59, got ''"),
    ("sheet", {"rows": "-1"}, "expected rows from 0 to 59, got '-1'"),
    ("sheet", {"rows": "60"}, "got '60'"),
    ("sheet", {"rows": "1.5"}, "got '1.5'"),
    ("sheet", {"rows": "٣"}, "expected rows from 0 to 59"),
    ("sheet", {"rows": "9" * 300}, "expected rows from 0 to 59"),
    ("sheet", {"rows": ",".join(["1"] * 513)}, "at most 512 rows"),
    ("sample", {"row": "true"}, "expected row from 0 to 59"),
    ("sound", {"row": "1"}, "no sounds"),
    ("column", {"name": "__class__"}, "expected name as one of"),
]


@pytest.mark.parametrize(("name", "asked", "said"), BAD)
def test_what_cannot_be_asked_is_one_sentence(client, name, asked, said):
    answer = client.get(f"/api/{name}", params=asked)
    assert answer.status_code == 400
    assert said in answer.json()["error"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "a JSON object"),
        (b"[1]", "a JSON object"),
        (b"[" * 100_000, "a JSON object"),
        (b"x" * 300_000, "at most 262,144 bytes"),
        (json.dumps({"rows": [60], "bad": True}).encode(), "rows from 0 to 59"),
        (json.dumps({"rows": [True], "bad": True}).encode(), "rows from 0 to 59"),
        (json.dumps({"rows": [1e30], "bad": True}).encode(), "rows from 0 to 59"),
        (json.dumps({"rows": [], "bad": True}).encode(), "at least one"),
        (json.dumps({"rows": [1]}).encode(), "bad as true or false"),
        (json.dumps({"filter": 3, "bad": True}).encode(), "filter as an object"),
        (json.dumps({"filter": {"classes": 3}, "bad": True}).encode(), "an object of short text"),
    ],
)
def test_a_body_that_is_none_is_one_sentence(client, body, said, out):
    answer = client.post("/api/mark", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert said in answer.json()["error"]
    assert not (out / "marked-bad.json").exists()


def test_a_form_of_another_page_cannot_be_posted(client):
    answer = client.post("/api/mark", content=b'{"rows":[1],"bad":true}', headers={"Content-Type": "text/plain"})
    assert answer.status_code == 400
    assert "application/json" in answer.json()["error"]


def settled(client, **asked):
    """The figures, once the true picks are known."""
    while (told := client.get("/api/choice", params=asked).json())["preview"]:
        pass
    return told
