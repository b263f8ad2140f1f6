"""The console in Chromium: it starts, every page opens without an error, and hostile texts stay
texts."""

import pytest

from .browser import Console, Watched

pytestmark = pytest.mark.deep


def test_the_first_page_opens_without_an_error(console: Console, page: Watched) -> None:
    page.open("/")
    assert page.page.title()
    assert page.page.get_by_role("navigation").count() >= 1
    page.check_accessible()


def test_an_error_of_a_page_is_noticed(console: Console, page: Watched) -> None:
    page.open("/")
    page.page.evaluate("() => console.error('a mistake')")
    page.page.evaluate("() => fetch('http://127.0.0.1:9/x').catch(() => 0)")
    assert any("a mistake" in one for one in page.problems)
    assert any("Content Security Policy" in one for one in page.problems)
    page._on_request("http://127.0.0.1:9/x")  # what the policy refuses does not become a request
    assert any("another host" in one for one in page.problems)
    page.expects(".")
