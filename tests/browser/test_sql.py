"""Statements of one's own on the page: what stands there belongs to the last one."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.api.pages.test_states import pages
from tests.browser.conftest import listening
from tests.browser.test_pages import opened

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROWS = {
    "columns": [{"name": "n", "type": "UInt8"}],
    "items": [{"n": 7}],
    "next_cursor": None,
    "statistics": {"seconds": 0.1, "rows": 1, "read_rows": 1, "read_bytes": 1},
}


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """The page, in front of a server that answers `good`, refuses `bad`, and keeps `slow` waiting."""
    kept: list[Route] = []

    def answer(route: Route) -> None:
        sql = json.loads(route.request.post_data or "")["sql"]
        if sql == "slow":
            kept.append(route)
        elif sql == "good":
            route.fulfill(json=ROWS)
        else:
            route.fulfill(status=400, json={"title": "no", "detail": f"refused: {sql}"})

    with listening(pages({}).door) as base, opened(browser) as (page, _):
        page.set_default_timeout(20_000)
        page.route("**/v1/sql", answer)
        page.goto(base + "/sql")
        yield page
        page.unroute_all(behavior="ignoreErrors")


def run(page: Page, sql: str) -> None:
    page.fill("#q", sql)
    page.press("#q", "Control+Enter")


def test_a_refused_statement_takes_the_rows_of_the_one_before_away(page: Page) -> None:
    """They would pass for its answer."""
    run(page, "good")
    page.wait_for_selector("#sql-table")
    run(page, "bad")
    page.wait_for_selector("text=refused: bad")

    assert not page.is_visible("#sql-table")

    run(page, "good")
    page.wait_for_selector("#sql-table", state="visible")


def test_a_statement_begun_in_place_of_another_has_the_word(page: Page) -> None:
    """It runs, and is not called ended with the other; Esc ends it."""
    run(page, "slow")
    page.wait_for_selector("text=Asking…")
    run(page, "slow")
    page.wait_for_timeout(300)

    assert page.inner_text("#sql-words") == "Asking…"
    assert page.get_attribute("form[data-sql]", "aria-busy") == "true"

    page.press("#q", "Escape")
    page.wait_for_selector("text=Ended.")
    assert page.get_attribute("form[data-sql]", "aria-busy") is None
