"""A gallery of the small run of digits, asked without a browser."""

import pytest
from starlette.testclient import TestClient
from tests.finished import CRAIG, finished_run

from synthsieve import open_run
from synthsieve.gallery.room import Room
from synthsieve.gallery.security import KEY_HEADER, Access
from synthsieve.gallery.server import guarded_app
from synthsieve.review.marks import Marks

PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"


def visited(app):
    """A client that opened an address once: it has the cookie, and sends the key as the page does."""
    client = TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN, KEY_HEADER: app.access.key})
    assert client.get(app.access.new_address()).status_code == 200
    return client


def client_of(room):
    """The same for a gallery of its own."""
    return visited(guarded_app(room, Access(PORT)))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return finished_run("digits", tmp_path_factory.mktemp("gallery"))


@pytest.fixture(scope="module")
def opened(out):
    return open_run(out).pool(CRAIG.name)


@pytest.fixture
def room(out, opened):
    """The pool as it was drawn, without marks."""
    (out / "marked-bad.json").unlink(missing_ok=True)
    return Room(opened.with_marks(Marks.of(out)), out)


@pytest.fixture
def client(app):
    return visited(app)


@pytest.fixture
def app(room):
    return guarded_app(room, Access(PORT))


@pytest.fixture
def stranger(app):
    """Nobody showed it an address."""
    return TestClient(app, base_url=ORIGIN)
