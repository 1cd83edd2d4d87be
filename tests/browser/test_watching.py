"""The watch itself: a page that complains fails its test."""

import pytest

pytestmark = pytest.mark.browser


def test_a_quiet_page_passes_and_axe_sees_what_is_wrong(page, severe):
    page.set_content("<html lang=en><title>quiet</title><main><h1>quiet</h1></main></html>")
    assert not severe(page)
    page.set_content("<html lang=en><title>loud</title><main><h1>loud</h1><button></button></main></html>")
    assert any("button-name" in line for line in severe(page))
