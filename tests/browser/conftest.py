"""A real Chromium, started once; console errors, failed requests and answers of 4xx or 5xx fail a page's test."""

import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.finished import CRAIG, finished_run

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium of the system; a fresh profile in every context."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert path, "Chromium is missing: install Debian's package `chromium`"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def new_context(browser):
    """(**options of playwright) -> a context whose pages are watched until the test ends."""
    contexts, problems = [], []

    def make(**options):
        context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
        context.set_default_timeout(60_000)
        context.on("console", lambda line: problems.append(f"console: {line.text}") if line.type == "error" else None)
        context.on("weberror", lambda error: problems.append(f"error: {error.error}"))
        context.on("requestfailed", lambda request: problems.extend(_failed(request)))
        context.on("response", lambda got: problems.append(f"{got.status} {got.url}") if got.status >= 400 else None)
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()
    assert not problems


@pytest.fixture
def page(new_context):
    """A watched page of 1400 x 900."""
    return new_context().new_page()


def until(page, expression, seconds=15):
    """Wait until an expression is true in a page; playwright's own function evaluates text, which the page forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


@dataclass
class Served:
    """A running gallery: the folder of its run, its secrets and its session."""

    out: Path
    access: object
    session: object

    def open(self, page):
        """Open it in a page with a new address, and wait until samples are visible."""
        page.goto(self.access.new_address())
        page.wait_for_selector("body.is-ready .tile")
        until(page, "!document.querySelector('.row:not([hidden]) canvas.is-empty')")
        return page


@pytest.fixture
def serve():
    """folder of a run -> a gallery, served in a thread until the test ends."""
    from synthsieve import open_run
    from synthsieve.results.gallery import server
    from synthsieve.results.gallery.security import Access
    from synthsieve.results.gallery.session import GallerySession

    running = []

    def start(out, port=None):
        run = open_run(out)
        session, listener = GallerySession(run.pool(CRAIG.name), out, run.table), server.listen(port)
        access, ready = Access(listener.getsockname()[1]), threading.Event()
        one = server.new_server(server.guarded_app(session, access), ready.set)
        thread = threading.Thread(target=one.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        assert ready.wait(20)
        running.append((one, thread, listener))
        return Served(out, access, session)

    def stop():
        while running:
            one, thread, listener = running.pop()
            one.should_exit = True
            thread.join(10)
            listener.close()

    start.stop = stop
    yield start
    stop()


@pytest.fixture
def served(serve, tmp_path):
    """A gallery of the small run of digits."""
    return serve(finished_run("digits", tmp_path))


@pytest.fixture
def severe():
    """page -> its serious and critical accessibility violations, one line each."""
    from axe_playwright_python.sync_playwright import Axe

    def look(page):
        found = Axe().run(page).response["violations"]
        return [
            f"{one['id']} ({one['impact']}): {node['html'][:200]}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    return look


def _failed(request):
    """Requests that a page aborted itself (navigation, a newer request) are not failures."""
    return [] if "ERR_ABORTED" in (request.failure or "") else [f"failed: {request.url} {request.failure}"]
