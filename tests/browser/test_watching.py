"""The fixtures themselves: axe reports violations, and a correct page has none."""

import pytest

pytestmark = pytest.mark.browser


def test_axe_reports_violations(page, severe):
    page.set_content("<html lang=en><title>quiet</title><main><h1>quiet</h1></main></html>")
    assert not severe(page)
    page.set_content("<html lang=en><title>loud</title><main><h1>loud</h1><button></button></main></html>")
    assert any("button-name" in line for line in severe(page))
