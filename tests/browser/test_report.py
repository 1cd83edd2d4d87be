"""The report in a real browser: offline, responsive, usable by keyboard, without serious findings of axe."""

import pytest

from synthsieve import open_run
from synthsieve.results.report.page import write_report
from tests.finished import KINDS, finished_run

pytestmark = pytest.mark.browser

PAGES = ("digits", *KINDS)
PHONE = {"width": 360, "height": 780}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Kind -> the address of the report of a small run of it."""
    folder, made = tmp_path_factory.mktemp("reports"), {}

    def of(kind):
        if kind not in made:
            made[kind] = write_report(open_run(finished_run(kind, folder))).path.as_uri()
        return made[kind]

    return of


@pytest.mark.parametrize("kind", PAGES)
def test_offline_and_no_wider_than_a_phone(kind, address, new_context):
    context = new_context(viewport=PHONE, offline=True)
    requested = []
    context.on("request", lambda request: requested.append(request.url))
    page = context.new_page()
    page.goto(address(kind))
    assert [url for url in requested if not url.startswith("data:")] == [address(kind)]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator(".verdict").is_visible()


def test_captions_of_wide_tables_fit_a_phone(address, new_context):
    page = new_context(viewport=PHONE).new_page()
    page.goto(address("digits"))
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    edges = page.evaluate("[...document.querySelectorAll('caption')].map(one => one.getBoundingClientRect().right)")
    assert edges
    assert max(edges) <= PHONE["width"]


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious(kind, colours, address, new_context, severe):
    page = new_context(color_scheme=colours).new_page()
    page.goto(address(kind))
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    assert not severe(page)


def test_ceiling_slider_by_keyboard(address, page):
    page.goto(address("digits"))
    slider = page.get_by_role("slider")
    assert page.locator(".sample.above").count() == 0
    slider.focus()
    for _ in range(3):
        page.keyboard.press("PageDown")
    dimmed = page.locator(".sample.above")
    total = page.locator(".sample").count()
    assert 0 < dimmed.count() < total
    limits = page.evaluate(
        "Array.from(document.querySelectorAll('.sample'), (s) => [+s.dataset.entropy, s.classList.contains('above')])"
    )
    assert max(h for h, above in limits if not above) < min(h for h, above in limits if above)
    assert page.locator("output").inner_text().startswith(f"{total - dimmed.count()} of the {total} shown lie below")
    page.keyboard.press("End")
    assert dimmed.count() == 0


def test_sorting_within_groups(address, page):
    page.goto(address("digits"))
    table = page.locator("table.sortable").first
    button = table.get_by_role("button", name="Accuracy")
    button.press("Enter")
    for order in ("descending", "ascending"):
        groups = table.evaluate(
            "(t) => [...t.tBodies].map((b) => [...b.rows].slice(1).map((r) => Number(r.cells[1].dataset.value)))"
        )
        assert groups
        assert groups == [sorted(group, reverse=order == "descending") for group in groups]
        assert table.locator("th[aria-sort]").get_attribute("aria-sort") == order
        assert table.evaluate("(t) => [...t.tBodies].every((b) => b.rows[0].classList.contains('group'))")
        button.press("Enter")


def test_tooltips(address, page):
    page.goto(address("digits"))
    mark = page.locator(".chart rect.mark").first
    tooltip = mark.locator("title").text_content()
    mark.scroll_into_view_if_needed()
    page.wait_for_timeout(100)  # a page that scrolls shows no values
    mark.hover()
    assert page.locator(".tip").inner_text() == tooltip
    page.mouse.move(0, 0)
    assert page.locator(".tip").count() == 0
    assert mark.locator("title").text_content() == tooltip


def test_readable_without_scripts(address, new_context):
    page = new_context(java_script_enabled=False).new_page()
    page.goto(address("digits"))
    assert page.locator("form.ceiling").is_hidden()
    assert page.locator(".class img").first.is_visible()
    assert page.locator("th button").count() == 0


def test_print(address, new_context):
    page = new_context(color_scheme="dark").new_page()
    page.goto(address("digits"))
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.get_by_text("training.steps", exact=True).is_visible()
    assert not page.get_by_role("slider").is_visible()


def test_sounds_play(address, page):
    page.goto(address("sound"))
    player = page.locator("audio").first
    assert player.evaluate("(a) => new Promise((r) => { a.onended = () => r(true); a.muted = true; a.play(); })")
