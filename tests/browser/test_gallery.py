"""The gallery in a browser: mouse, keyboard, dark mode, phone, two tabs, restart."""

import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from synthsieve.selection.entropy import Reason
from tests.browser.conftest import PHONE, until
from tests.finished import finished_run

pytestmark = pytest.mark.browser


def wait_exact(page):
    """Wait for the exact selection."""
    until(page, "!document.getElementById('selection-state').classList.contains('is-preview')")


def figure(page, name):
    """A figure of the selection by its name."""
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
    middle, width = box["y"] + box["height"] / 2, box["width"] - 16
    page.mouse.move(box["x"] + 8 + now * width, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 8 + share * width, middle, steps=12)
    page.mouse.up()


def test_filter_select_reject_and_export(served, page):
    view, out = served.session.view, served.out
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

    # drag the ceiling: the figures change
    kept, picked = figure(page, "kept"), figure(page, "selected")
    assert page.get_by_role("radio", name="fraction of each class").is_checked()  # as in training
    drag(page, "#ceiling", 1.0)
    allowed = int((view.pool.predicted == view.pool.y).sum())
    until(page, f"document.querySelector('#figures dd b').textContent === '{allowed}'")
    wait_exact(page)
    until(page, "document.getElementById('ceiling-number').value === '100 %'")
    page.get_by_role("radio", name="one ceiling for all").check()
    figures = []
    for share in (0.95, 0.05):
        drag(page, "#ceiling", share)
        until(page, "!document.getElementById('as-trained').hidden")
        page.wait_for_timeout(600)
        wait_exact(page)
        ceiling = page.evaluate("document.getElementById('ceiling').getAttribute('aria-valuetext')")
        below = (view.pool.entropy < float(ceiling.split()[0])) & (view.pool.predicted == view.pool.y)
        figures.append((figure(page, "kept"), figure(page, "selected")))
        assert figures[-1][0] == pytest.approx(below.sum(), abs=1)  # the ceiling is shown with three digits
    assert figures[0] > figures[1]
    page.get_by_role("button", name="Reset to the training settings").click()
    until(page, "document.getElementById('selection-state').textContent === 'as trained'")
    assert figure(page, "kept") == kept
    drag(page, "#budget", 1.0)
    until(page, f"document.querySelectorAll('#figures dd b')[2].textContent === '{kept:.0f}'")
    wait_exact(page)
    assert figure(page, "selected") == kept
    page.get_by_role("button", name="Reset to the training settings").click()
    until(page, "document.getElementById('selection-state').textContent === 'as trained'")

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
    neighbours = details.get_by_role("button", name="Neighbor: sample")
    assert neighbours.count() == 8
    assert details.get_by_role("button", name="Real example").count() == 4
    details.get_by_role("button", name="Real example").first.click()
    assert details.get_by_role("img", name="Real example").count() == 1  # large, where the sample was
    details.get_by_role("button", name="After 0 steps").click()
    assert details.get_by_role("img", name="After 0 steps").count() == 1
    near = int(view.neighbours(row).indices[0])
    neighbours.first.click()
    details.get_by_role("heading", name=f"Sample {near}").wait_for()
    page.keyboard.press("Escape")
    assert details.is_hidden()

    # reject three: they are excluded at once
    rejected = shown_rows(page)[:3]
    for sample in rejected:
        page.locator(f".tile[data-row='{sample}']").click(modifiers=["Control"])
    assert page.locator("#highlighted-count").inner_text() == "3 highlighted"
    page.get_by_role("button", name="Reject", exact=True).click()
    until(page, "document.querySelector('#figures').textContent.includes('rejected by hand')")
    wait_exact(page)
    until(page, f"!document.querySelector('.row:not([hidden]) .tile[data-row=\"{rejected[0]}\"]:not([hidden])')")
    assert not set(rejected) & set(shown_rows(page))
    stored = json.loads((out / "rejections.json").read_text(encoding="utf-8"))["rejected"]
    assert sorted(*stored.values()) == sorted(int(seed) for seed in view.pool.chain_seed[rejected])

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


def test_default_order_alternates_classes(served, page):
    view = served.session.view
    served.open(page)
    first = np.array(shown_rows(page)[:10])
    assert sorted(view.pool.y[first]) == list(range(10))
    page.locator("#sort").select_option("entropy")
    lowest = int(np.argmin(view.pool.entropy))
    until(page, f"document.querySelector('.tile[data-place=\"0\"]').dataset.row === '{lowest}'")


def test_invalid_numbers(served, page, severe):
    served.open(page)
    for box in ("#ceiling-number", "#budget-number"):
        for text in ("abc", "-1", "0", ""):
            page.locator(box).fill(text)
            page.locator(box).press("Enter")
            page.locator("#input-note").get_by_text(f"got “{text}”").wait_for()
            assert page.locator(box).get_attribute("aria-invalid") == "true"
    assert severe(page) == []
    page.locator("#budget-number").fill("50 %")
    page.locator("#budget-number").press("Enter")
    until(page, "document.getElementById('input-note').textContent === ''")
    until(page, "!document.getElementById('as-trained').hidden")


def test_lost_classes_need_confirmation(served, page, severe):
    view, out = served.session.view, served.out
    served.open(page)
    assert page.locator("#lost-classes").inner_text() == ""
    page.get_by_role("radio", name="one ceiling for all").check()
    allowed = view.pool.predicted == view.pool.y
    ceiling = float(np.quantile(view.pool.entropy[allowed], 0.2))
    page.locator("#ceiling-number").fill(f"{ceiling:.6g}")
    page.locator("#ceiling-number").press("Enter")
    until(page, "document.getElementById('lost-classes').textContent.startsWith('No sample is left of')")
    wait_exact(page)
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
def test_legend_matches_tiles(serve, page, tmp_path, kind):
    served = serve(finished_run(kind, tmp_path))
    served.open(page)
    page.keyboard.press("g")
    page.keyboard.press("x")
    until(page, "document.querySelectorAll('.tile.is-by-hand').length === 1")
    wait_exact(page)
    look = """where => {
        const dot = document.querySelector(where + ' .dot');
        const style = dot && getComputedStyle(dot);
        if (dot) return [style.borderTopColor, style.backgroundColor, style.transform !== 'none'];
        const frame = document.querySelector(where + ' .frame');
        const picture = frame.querySelector('canvas, .swatch');
        return [getComputedStyle(frame, '::after').backgroundColor, getComputedStyle(frame, '::after').height,
                getComputedStyle(picture).opacity, getComputedStyle(frame.querySelector('.cross')).display];
    }"""
    for state in ("is-selected", "is-kept", "is-rejected", "is-by-hand"):
        if page.locator(f".row:not([hidden]) .tile.{state}").count():
            tile = page.evaluate(look, f".row:not([hidden]) .tile.{state}:not([hidden])")
            assert page.evaluate(look, f"#legend .{state}") == tile, state


def test_keyboard(served, page):
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
    assert page.locator("#highlighted-count").inner_text() == "3 highlighted"
    page.keyboard.press("x")
    until(page, "document.querySelectorAll('.row:not([hidden]) .tile.is-by-hand:not([hidden])').length === 3")
    assert len(served.session.view.rejected) == 3
    assert page.locator("#announcement").inner_text() == "3 rejected"
    page.keyboard.press("u")
    until(page, "document.querySelectorAll('.row:not([hidden]) .tile.is-by-hand:not([hidden])').length === 0")
    assert len(served.session.view.rejected) == 0
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


def test_reject_all_shown(served, page):
    served.open(page)
    page.get_by_role("button", name="7", exact=True).click()
    until(page, "document.getElementById('count').textContent === '6 of 60 samples'")
    page.get_by_role("button", name="Reject all shown").click()
    page.get_by_role("button", name="Cancel").click()
    assert not len(served.session.view.rejected)
    page.get_by_role("button", name="Reject all shown").click()
    page.get_by_role("button", name="Reject 6").click()
    until(page, "document.querySelector('#figures').textContent.includes('rejected by hand')")
    assert set(served.session.view.pool.y[served.session.view.rejected]) == {7}
    page.get_by_role("button", name="Undo").click()
    until(page, "!document.querySelector('#figures').textContent.includes('rejected by hand')")


def test_filters_and_orders(served, page):
    view = served.session.view
    served.open(page)
    for status, expected in (("rejected", view.pool.reason != Reason.KEPT), ("kept", view.pool.reason == Reason.KEPT)):
        page.get_by_role("radio", name=status, exact=True).check()
        until(page, f"document.getElementById('count').textContent.startsWith('{expected.sum()} of')")
    page.locator("#highest_entropy").fill("0.1")
    page.locator("#highest_entropy").press("Enter")
    count = int(((view.pool.reason == Reason.KEPT) & (view.pool.entropy <= 0.1)).sum())
    until(page, f"document.getElementById('count').textContent === '{count} of 60 samples'")
    page.get_by_role("button", name="clear", exact=True).click()
    until(page, "document.getElementById('count').textContent === '60 samples'")
    page.locator("#sort").select_option("distance")
    expected = np.argsort(view.nearest_distance, kind="stable").tolist()
    until(page, f"document.querySelector('.tile[data-place=\"0\"]').dataset.row === '{expected[0]}'")
    rows = shown_rows(page)
    assert rows == expected[: len(rows)]
    page.get_by_role("button", name="Ascending").click()
    last = int(np.lexsort((-view.nearest_distance,))[0])
    until(page, f"document.querySelector('.tile[data-place=\"0\"]').dataset.row === '{last}'")
    page.locator("#lowest_entropy").fill("99")
    page.locator("#lowest_entropy").press("Enter")
    page.locator("#empty").wait_for()
    page.get_by_role("button", name="Clear the filters").click()
    until(page, "document.getElementById('count').textContent === '60 samples'")


def test_rejections_reach_other_tabs_and_survive_a_restart(serve, new_context, tmp_path):
    out = finished_run("digits", tmp_path)
    served, context = serve(out), new_context()
    here, there = served.open(context.new_page()), served.open(context.new_page())
    here.keyboard.press("g")
    here.keyboard.press("x")
    until(there, "document.querySelectorAll('.tile.is-by-hand').length === 1")
    first = int(served.session.view.rejected[0])
    here.close()
    there.close()
    serve.stop()
    again = serve(out)
    page = again.open(context.new_page())
    until(page, "document.querySelectorAll('.tile.is-by-hand').length === 1")
    assert page.locator(".tile.is-by-hand").get_attribute("data-row") == str(first)


def test_open_another_tab(served, new_context):
    context = new_context()
    first = served.open(context.new_page())
    assert served.access.key == first.evaluate("sessionStorage.getItem('synthsieve-key')")
    with context.expect_page() as opened:
        first.get_by_role("button", name="Open another tab").click()
    opened.value.wait_for_selector("body.is-ready .tile")
    first.reload()
    first.wait_for_selector("body.is-ready .tile")


def test_a_tab_with_the_cookie_only(served, browser):
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
def test_accessibility(served, new_context, severe, scheme):
    page = served.open(new_context(color_scheme=scheme).new_page())
    page.keyboard.press("g")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    until(page, "document.querySelectorAll('.tile.is-by-hand').length === 1")
    wait_exact(page)
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
    page.get_by_role("button", name="Reject all shown").click()
    assert severe(page) == []
    page.get_by_role("button", name="Cancel").click()


def test_themes(served, new_context):
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
def test_phone(serve, new_context, severe, tmp_path, kind):
    served = serve(finished_run(kind, tmp_path))
    page = served.open(new_context(viewport=PHONE, has_touch=True, is_mobile=True).new_page())

    def fits():
        return page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    assert fits()
    assert severe(page) == []
    page.get_by_role("button", name="Filters and selection").click()
    assert page.locator("#ceiling").is_visible()
    assert fits()
    assert severe(page) == []
    page.get_by_role("button", name="Filters and selection").click()
    page.locator(".tile").first.click()
    page.locator("#details h2").wait_for()
    page.locator("#details .chain .card").nth(8).wait_for()
    assert fits()
    assert severe(page) == []
    page.get_by_role("button", name="Close the details").click()
    assert page.locator("#details").is_hidden()


@pytest.mark.parametrize("kind", ["table", "text", "vector", "sound"])
def test_every_kind_of_data(serve, page, severe, tmp_path, kind):
    served = serve(finished_run(kind, tmp_path))
    served.open(page)
    view = served.session.view
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


def test_data_are_never_markup(serve, page, tmp_path, monkeypatch):
    from synthsieve.results.gallery import renderer

    evil = "<img src=x onerror=alert(1)><b>bold</b>"
    served = serve(finished_run("text", tmp_path))
    monkeypatch.setattr(renderer, "cut", lambda text, longest: evil)
    split = served.session.view.run.split
    object.__setattr__(split, "classes", (evil, "other"))
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    served.open(page)
    until(page, "document.querySelector('.tile .cells').textContent.includes('<b>')")
    page.locator(".tile").first.click()
    page.locator("#details .chain .card").nth(8).wait_for()
    assert page.locator("b:text-is('bold'), img[src='x']").count() == 0
    assert evil in page.locator("#classes").inner_text()
