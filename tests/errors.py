"""How tests expect errors: by class and code, not by their wording."""

from contextlib import contextmanager

import pytest


@contextmanager
def raises(error, code, **attributes):
    """Like `pytest.raises`, but the error must be of exactly this code; yields pytest's information on it."""
    with pytest.raises(error) as caught:
        yield caught
    assert caught.value.code == code, f"expected code {code!r}, got {caught.value.code!r}: {caught.value}"
    for name, value in attributes.items():
        assert getattr(caught.value, name) == value
