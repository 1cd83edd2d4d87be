"""The gallery as people use it: by mouse, by keys alone, in the dark, on a phone, in two tabs, after a restart."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from synthsieve.entropy import Reason
from tests.browser.conftest import PHONE, until
from tests.finished import finished_run

pytestmark = pytest.mark.browser


def settle(page):
    """Wait for the true picks."""
    until(page, "!document.getElementById('picks-state').classList.contains('is-preview')")


def figure(page, name):
    """The number that the choice tells under a name."""
    text = page.locator(f"#figures dt:text-is('{name}') + dd b").inner_text()
    return float(re.sub(r"[^0-9.]", "", text))


def shown_rows(page):
    return page.eval_on_selector_all(
        ".row:not([hidden]) .tile:not([hidden])",
        "all => all.sort((a, b) => a.dataset.place - b.dataset.place).map(tile => Number(tile.dataset.row))",
    )


def drag(page, slider, share):
    """Drag a slider's handle to a share of its width, by the mouse, in several steps."""
    box = page.locator(slider).bounding_box()
    now = page.eval_on_selector(slider, "one => one.value / one.max")
    middle, room = box["y"] + box["height"] / 2, box["width"] - 16
    page.mouse.move(box["x"] + 8 + now * room, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 8 + share * room, middle, steps=12)
    page.mouse.up()


def test_the_whole_story(served, page):
    view, out = served.room.view, served.out
    served.open(page)
    assert "token" not in page.url
    assert page.locator("#count").inner_text() == "60 samples"
    assert page.evaluate("document.cookie") == ""

    # filter a class
    page.get_by_role("button", name="3", exact=True).click()
    until(page, "document.getElementById('count').textContent === '6 of 60 samples'")
    assert set(shown_rows(page)) == set(np.flatnonzero(view.pool.y == 3).tolist())
    page.get_by_role("button", name="show all").click()
    until(page, "document.getElementById('count').textContent === '60 samples'")

    # drag the ceiling: numbers and picks change
    kept, picked = figure(page, "kept"), figure(page, "selected")
    assert page.get_by_role("radio", name="share of each class").is_checked()  # as training kept them
    drag(page, "#ceiling", 1.0)
    allowed = int((view.scores.predicted == view.pool.y).sum())
    until(page, f"document.querySelector('#figures dd b').textContent === '{allowed}'")
    settle(page)
    until(page, "document.getElementById('ceiling-number').value === '100 %'")
    page.get_by_role("radio", name="one ceiling for all").check()
    told = []
    for share in (0.95, 0.05):
        drag(page, "#ceiling", share)
        until(page, "!document.getElementById('as-trained').hidden")
        page.wait_for_timeout(600)
        settle(page)
        ceiling = page.evaluate("document.getElementById('ceiling').getAttribute('aria-valuetext')")
        below = (view.pool.entropy < float(ceiling.split()[0])) & (view.scores.predicted == view.pool.y)
        told.append((figure(page, "kept"), figure(page, "selected")))
        assert told[-1][0] == pytest.approx(below.sum(), abs=1)  # the ceiling is told in three digits
    assert told[0] > told[1]
    page.get_by_role("button", name="Reset to the training settings").click()
    until(page, "document.getElementById('picks-state').textContent === 'as trained'")
    assert figure(page, "kept") == kept
    drag(page, "#budget", 1.0)
    until(page, f"document.querySelectorAll('#figures dd b')[2].textContent === '{kept:.0f}'")
    settle(page)
    assert figure(page, "selected") == kept
    page.get_by_role("button", name="Reset to the training settings").click()
    until(page, "document.getElementById('picks-state').textContent === 'as trained'")

    # open a sample
    page.get_by_role("radio", name="selected").check()
    until(page, f"document.getElementById('count').textContent.startsWith('{picked:.0f} of')")
    row = shown_rows(page)[0]
    page.locator(f".tile[data-row='{row}']").click()
    details = page.locator("#details")
    details.get_by_role("heading", name=f"Sample {row}").wait_for()
    assert details.get_by_text(str(int(view.pool.chain_seed[row])), exact=True).count() == 1  # all 63 bits of it
    details.locator(".chain canvas").nth(8).wait_for()
    assert details.locator(".chain .card").count() == 9
    neighbours = details.get_by_role("button", name="Neighbour: sample")
    assert neighbours.count() == 8
    assert details.get_by_role("button", name="Real example").count() == 4
    details.get_by_role("button", name="Real example").first.click()
    assert details.get_by_role("img", name="Real example").count() == 1  # large, where the sample was
    details.get_by_role("button", name="After 0 steps").click()
    assert details.get_by_role("img", name="After 0 steps").count() == 1
    near = int(view.neighbours(row).rows[0])
    neighbours.first.click()
    details.get_by_role("heading", name=f"Sample {near}").wait_for()
    page.keyboard.press("Escape")
    assert details.is_hidden()

    # reject three: they are excluded at once
    bad = shown_rows(page)[:3]
    for sample in bad:
        page.locator(f".tile[data-row='{sample}']").click(modifiers=["Control"])
    assert page.locator("#chosen-count").inner_text() == "3 picked out"
    page.get_by_role("button", name="Mark as bad").click()
    until(page, "document.querySelector('#figures').textContent.includes('marked as bad')")
    settle(page)
    until(page, f"!document.querySelector('.row:not([hidden]) .tile[data-row=\"{bad[0]}\"]:not([hidden])')")
    assert not set(bad) & set(shown_rows(page))
    stored = json.loads((out / "marked-bad.json").read_text(encoding="utf-8"))["marked"]
    assert sorted(*stored.values()) == sorted(int(seed) for seed in view.pool.chain_seed[bad])

    # export what is left
    page.get_by_role("button", name="Export…").click()
    assert "3 rejected by hand" in page.locator("#export-what").inner_text()
    page.get_by_role("button", name="Write the files").click()
    if page.locator("#export-lost").inner_text():  # the three may have been all of their classes
        page.get_by_role("button", name="Export anyway").click()
    page.locator("#export-done").wait_for()
    assert page.locator("#export-path").inner_text() == str(out / "export-1")
    table = pq.read_table(out / "export-1" / "data.parquet").to_pydict()
    assert table["reason"].count("rejected by hand") == 3
    assert sum(table["selected"]) == figure(page, "selected") == len(list((out / "export-1").rglob("*.png")))


def test_an_order_by_entropy_shows_every_class_first(served, page):
    view = served.room.view
    served.open(page)
    first = np.array(shown_rows(page)[:10])
    assert sorted(view.pool.y[first]) == list(range(10))
    page.locator("#sort").select_option("entropy")
    lowest = int(np.argmin(view.pool.entropy))
    until(page, f"document.querySelector('.tile[data-place=\"0\"]').dataset.row === '{lowest}'")


def test_what_is_no_number_is_told(served, page, severe):
    served.open(page)
    for box in ("#ceiling-number", "#budget-number"):
        for text in ("abc", "-1", "0", ""):
            page.locator(box).fill(text)
            page.locator(box).press("Enter")
            page.locator("#knob-note").get_by_text(f"got “{text}”").wait_for()
            assert page.locator(box).get_attribute("aria-invalid") == "true"
    assert severe(page) == []
    page.locator("#budget-number").fill("50 %")
    page.locator("#budget-number").press("Enter")
    until(page, "document.getElementById('knob-note').textContent === ''")
    until(page, "!document.getElementById('as-trained').hidden")


def test_classes_that_would_be_missing_are_named_and_asked_about(served, page, severe):
    view, out = served.room.view, served.out
    served.open(page)
    assert page.locator("#lost-classes").inner_text() == ""
    page.get_by_role("radio", name="one ceiling for all").check()
    allowed = view.scores.predicted == view.pool.y
    ceiling = float(np.quantile(view.pool.entropy[allowed], 0.2))
    page.locator("#ceiling-number").fill(f"{ceiling:.6g}")
    page.locator("#ceiling-number").press("Enter")
    until(page, "document.getElementById('lost-classes').textContent.startsWith('No sample is left of')")
    settle(page)
    lost = page.locator("#lost-classes").inner_text()
    assert severe(page) == []
    page.get_by_role("button", name="Export…").click()
    assert page.locator("#export-lost").inner_text() == lost
    page.get_by_role("button", name="Write the files").click()
    page.get_by_role("heading", name="Export without").wait_for()
    assert severe(page) == []
    page.get_by_role("button", name="Cancel").click()
    assert not (out / "export-1").exists()
    page.get_by_role("button", name="Write the files").click()
    page.get_by_role("button", name="Export anyway").click()
    page.locator("#export-done").wait_for()
    counts = json.loads((out / "export-1" / "manifest.json").read_text(encoding="utf-8"))["counts"]
    assert counts["num_classes"] < 10
    assert sum(one["selected"] > 0 for one in counts["classes"].values()) == counts["num_classes"]


@pytest.mark.parametrize("kind", ["digits", "table"])
def test_the_legend_shows_the_marks_of_the_tiles(serve, page, tmp_path, kind):
    served = serve(finished_run(kind, tmp_path))
    served.open(page)
    page.keyboard.press("g")
    page.keyboard.press("x")
    until(page, "document.querySelectorAll('.tile.is-marked').length === 1")
    settle(page)
    look = """where => {
        const dot = document.querySelector(where + ' .dot');
        const style = dot && getComputedStyle(dot);
        if (dot) return [style.borderTopColor, style.backgroundColor, style.transform !== 'none'];
        const frame = document.querySelector(where + ' .frame');
        const picture = frame.querySelector('canvas, .swatch');
        return [getComputedStyle(frame, '::after').backgroundColor, getComputedStyle(frame, '::after').height,
                getComputedStyle(picture).opacity, getComputedStyle(frame.querySelector('.cross')).display];
    }"""
    for state in ("is-selected", "is-kept", "is-rejected", "is-marked"):
        if page.locator(f".row:not([hidden]) .tile.{state}").count():
            tile = page.evaluate(look, f".row:not([hidden]) .tile.{state}:not([hidden])")
            assert page.evaluate(look, f"#legend .{state}") == tile, state


def test_by_keys_alone(served, page):
    served.open(page)
    page.keyboard.press("g")
    active = "document.activeElement.dataset.place"
    assert page.evaluate(active) == "0"
    columns = int(page.locator("#grid").get_attribute("aria-colcount"))
    moves = {"ArrowRight": 1, "ArrowDown": 1 + columns, "ArrowLeft": columns, "ArrowUp": 0, "End": columns - 1}
    for key, place in moves.items():
        page.keyboard.press(key)
        assert page.evaluate(active) == str(place)
    page.keyboard.press("Control+End")
    assert page.evaluate(active) == "59"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(active) == "59"
    page.keyboard.press("Control+Home")
    assert page.locator(".tile[tabindex='0']").count() == 1

    page.keyboard.press("Enter")
    page.locator("#details h2").wait_for()
    assert page.evaluate("document.activeElement.id") == "details-title"
    page.keyboard.press("Escape")
    assert page.evaluate(active) == "0"

    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator("#chosen-count").inner_text() == "3 picked out"
    page.keyboard.press("x")
    until(page, "document.querySelectorAll('.row:not([hidden]) .tile.is-marked:not([hidden])').length === 3")
    assert len(served.room.view.marked) == 3
    assert "marked as bad" in page.locator("#said").inner_text()
    page.keyboard.press("u")
    until(page, "document.querySelectorAll('.row:not([hidden]) .tile.is-marked:not([hidden])').length === 0")
    assert len(served.room.view.marked) == 0
    assert page.evaluate("document.activeElement.getAttribute('role')") == "gridcell"

    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.id") == "ceiling"
    kept = figure(page, "kept")
    for _ in range(6):
        page.keyboard.press("PageDown")
    until(page, f"document.querySelector('#figures dd b').textContent !== '{kept:.0f}'")
    page.keyboard.press("?")
    assert page.locator("#keys-dialog").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#keys-dialog").is_hidden()
    page.keyboard.press("e")
    page.locator("#export-dialog").wait_for()
    page.keyboard.press("Escape")
    assert page.locator("#export-dialog").is_hidden()


def test_all_shown_are_marked_after_a_question(served, page):
    served.open(page)
    page.get_by_role("button", name="7", exact=True).click()
    until(page, "document.getElementById('count').textContent === '6 of 60 samples'")
    page.get_by_role("button", name="Mark all shown").click()
    page.get_by_role("button", name="Cancel").click()
    assert not len(served.room.view.marked)
    page.get_by_role("button", name="Mark all shown").click()
    page.get_by_role("button", name="Mark 6").click()
    until(page, "document.querySelector('#figures').textContent.includes('marked as bad')")
    assert set(served.room.view.pool.y[served.room.view.marked]) == {7}
    page.get_by_role("button", name="Undo").click()
    until(page, "!document.querySelector('#figures').textContent.includes('marked as bad')")


def test_filters_and_orders_show_what_they_say(served, page):
    view = served.room.view
    served.open(page)
    for status, expected in (("rejected", view.pool.reason != Reason.KEPT), ("kept", view.pool.reason == Reason.KEPT)):
        page.get_by_role("radio", name=status).check()
        until(page, f"document.getElementById('count').textContent.startsWith('{expected.sum()} of')")
    page.locator("#highest_entropy").fill("0.1")
    page.locator("#highest_entropy").press("Enter")
    count = int(((view.pool.reason == Reason.KEPT) & (view.pool.entropy <= 0.1)).sum())
    until(page, f"document.getElementById('count').textContent === '{count} of 60 samples'")
    page.get_by_role("button", name="clear", exact=True).click()
    until(page, "document.getElementById('count').textContent === '60 samples'")
    page.locator("#sort").select_option("distance")
    expected = np.argsort(view.scores.nearest_distance, kind="stable").tolist()
    until(page, f"document.querySelector('.tile[data-place=\"0\"]').dataset.row === '{expected[0]}'")
    assert shown_rows(page) == expected[: len(shown_rows(page))]
    page.get_by_role("button", name="Ascending").click()
    last = int(np.lexsort((-view.scores.nearest_distance,))[0])
    until(page, f"document.querySelector('.tile[data-place=\"0\"]').dataset.row === '{last}'")
    page.locator("#lowest_entropy").fill("99")
    page.locator("#lowest_entropy").press("Enter")
    page.locator("#empty").wait_for()
    page.get_by_role("button", name="Clear the filters").click()
    until(page, "document.getElementById('count').textContent === '60 samples'")


def test_marks_reach_the_other_tab_and_outlive_the_server(serve, new_context, tmp_path):
    out = finished_run("digits", tmp_path)
    served, context = serve(out), new_context()
    here, there = served.open(context.new_page()), served.open(context.new_page())
    here.keyboard.press("g")
    here.keyboard.press("x")
    until(there, "document.querySelectorAll('.tile.is-marked').length === 1")
    first = int(served.room.view.marked[0])
    here.close()
    there.close()
    serve.stop()
    again = serve(out)
    page = again.open(context.new_page())
    until(page, "document.querySelectorAll('.tile.is-marked').length === 1")
    assert page.locator(".tile.is-marked").get_attribute("data-row") == str(first)


def test_a_second_tab_is_opened_from_the_first(served, new_context):
    context = new_context()
    first = served.open(context.new_page())
    assert served.access.key == first.evaluate("sessionStorage.getItem('synthsieve-key')")
    with context.expect_page() as opened:
        first.get_by_role("button", name="Open another tab").click()
    opened.value.wait_for_selector("body.is-ready .tile")
    first.reload()
    first.wait_for_selector("body.is-ready .tile")


def test_a_tab_that_has_the_cookie_alone_says_what_to_do(served, browser):
    context = browser.new_context()
    try:
        served.open(context.new_page())
        bare = context.new_page()
        bare.goto(f"http://127.0.0.1:{served.access.port}/")
        bare.get_by_text("press Enter in the terminal").wait_for()
        assert bare.locator(".tile").count() == 0
    finally:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_severe(served, new_context, severe, scheme):
    page = served.open(new_context(color_scheme=scheme).new_page())
    page.keyboard.press("g")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    until(page, "document.querySelectorAll('.tile.is-marked').length === 1")
    settle(page)
    assert severe(page) == []
    page.keyboard.press("Enter")
    page.locator("#details .chain canvas").nth(8).wait_for()
    assert severe(page) == []
    page.keyboard.press("Escape")
    for opener, dialog in (("?", "#keys-dialog"), ("e", "#export-dialog")):
        page.keyboard.press(opener)
        page.locator(dialog).wait_for()
        assert severe(page) == []
        page.keyboard.press("Escape")
    page.get_by_role("button", name="Mark all shown").click()
    assert severe(page) == []
    page.get_by_role("button", name="Cancel").click()


def test_light_and_dark_follow_the_system_and_the_button(served, new_context):
    ground = "getComputedStyle(document.body).backgroundColor"
    page = served.open(new_context(color_scheme="dark").new_page())
    assert page.evaluate(ground) == "rgb(16, 20, 26)"
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.reload()
    page.wait_for_selector("body.is-ready")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(ground) == "rgb(16, 20, 26)"


@pytest.mark.parametrize("kind", ["digits", "table", "text", "sound"])
def test_a_phone_has_room_for_everything(serve, new_context, severe, tmp_path, kind):
    served = serve(finished_run(kind, tmp_path))
    page = served.open(new_context(viewport=PHONE, has_touch=True, is_mobile=True).new_page())

    def fits():
        return page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    assert fits()
    assert severe(page) == []
    page.get_by_role("button", name="Filters and choice").click()
    assert page.locator("#ceiling").is_visible()
    assert fits()
    assert severe(page) == []
    page.get_by_role("button", name="Filters and choice").click()
    page.locator(".tile").first.click()
    page.locator("#details h2").wait_for()
    page.locator("#details .chain .card").nth(8).wait_for()
    assert fits()
    assert severe(page) == []
    page.get_by_role("button", name="Close the details").click()
    assert page.locator("#details").is_hidden()


@pytest.mark.parametrize("kind", ["table", "text", "vector", "sound"])
def test_every_kind_is_shown(serve, page, severe, tmp_path, kind):
    served = serve(finished_run(kind, tmp_path))
    served.open(page)
    view = served.room.view
    row = shown_rows(page)[0]
    tile = page.locator(f".tile[data-row='{row}']")
    if kind == "sound":
        with page.expect_response(lambda answer: "/api/sound" in answer.url) as heard:
            tile.get_by_role("button", name="Play").click()
        assert heard.value.headers["content-type"] == "audio/wav"
        page.keyboard.press("g")
        with page.expect_response(lambda answer: "/api/sound" in answer.url):
            page.keyboard.press("p")
    else:
        until(page, f"document.querySelector('.tile[data-row=\"{row}\"] .cells').textContent !== ''")
        words = tile.locator(".cells").inner_text()
        if kind == "text":
            assert view.items(np.array([row]))[0] in words
        assert severe(page) == []
    page.keyboard.press("g")
    page.keyboard.press("Enter")
    page.locator("#details .chain .card").nth(8).wait_for()
    assert page.locator("#details").get_by_text(str(int(view.pool.chain_seed[row])), exact=True).count() == 1
    assert severe(page) == []


def test_labels_and_texts_are_never_markup(serve, page, tmp_path, monkeypatch):
    from synthsieve.gallery import lines

    evil = "<img src=x onerror=alert(1)><b>bold</b>"
    served = serve(finished_run("text", tmp_path))
    monkeypatch.setattr(lines, "_cut", lambda text, longest: evil)
    split = served.room.view.run.split
    object.__setattr__(split, "classes", (evil, "other"))
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    served.open(page)
    until(page, "document.querySelector('.tile .cells').textContent.includes('<b>')")
    page.locator(".tile").first.click()
    page.locator("#details .chain .card").nth(8).wait_for()
    assert page.locator("b:text-is('bold'), img[src='x']").count() == 0
    assert evil in page.locator("#classes").inner_text()
