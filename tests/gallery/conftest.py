"""A gallery of the small run of digits, asked without a browser."""

import pytest
from starlette.testclient import TestClient
from tests.finished import CRAIG, finished_run

from synthsieve import open_run
from synthsieve.gallery.room import Room
from synthsieve.gallery.server import guarded_app
from synthsieve.review.marks import Marks

TOKEN, PORT = "a-token-for-tests", 8765
ORIGIN = f"http://127.0.0.1:{PORT}"


def client_of(room):
    """A client that was shown the token and has the cookie."""
    client = TestClient(guarded_app(room, token=TOKEN, port=PORT), base_url=ORIGIN, headers={"Origin": ORIGIN})
    assert client.get("/", params={"token": TOKEN}).status_code == 200
    return client


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
def client(room):
    return client_of(room)


@pytest.fixture
def stranger(room):
    """Nobody showed it the token."""
    return TestClient(guarded_app(room, token=TOKEN, port=PORT), base_url=ORIGIN)
