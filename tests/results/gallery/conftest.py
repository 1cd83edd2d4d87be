"""A gallery of the small run of digits, without a browser."""

import pytest
from starlette.testclient import TestClient

from synthsieve.results.gallery.security import KEY_HEADER, Access
from synthsieve.results.gallery.server import guarded_app
from synthsieve.results.gallery.session import GallerySession
from synthsieve.results.pool_view import Rejections

PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"


def visited(app):
    """A client that visited an address: it has the cookie and sends the key, as the page does."""
    client = TestClient(app, base_url=ORIGIN, headers={"Origin": ORIGIN, KEY_HEADER: app.access.key})
    assert client.get(app.access.new_address()).status_code == 200
    return client


def client_of(session):
    """A client of a new gallery."""
    return visited(guarded_app(session, Access(PORT)))


@pytest.fixture
def session(out, view):
    """The pool as it was drawn, without rejections."""
    (out / "rejections.json").unlink(missing_ok=True)
    return GallerySession(view.with_rejections(Rejections.read(out)), out)


@pytest.fixture
def client(app):
    return visited(app)


@pytest.fixture
def app(session):
    return guarded_app(session, Access(PORT))


@pytest.fixture
def stranger(app):
    """A client without an address."""
    return TestClient(app, base_url=ORIGIN)
