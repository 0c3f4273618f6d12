"""Every page in every state, in a real browser: empty, failed, stale, too few, refused, waiting to be let in."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import pytest
from playwright.sync_api import Browser

from analytics.questions import load_all
from analytics.store import StoreError
from api.access import Access, Caller, Token
from tests.api.calling import Api, FakeReader
from tests.api.pages.test_site import STATIC_PAGES
from tests.api.pages.test_states import FRESH, NOW, pages, shadow
from tests.browser import tools
from tests.browser.conftest import listening
from tests.browser.test_pages import SIZES, opened

pytestmark = [pytest.mark.clickhouse, pytest.mark.browser, pytest.mark.timeout(900)]

ITEMS: Final = ("/divergence/F-00000000", "/requests/none", "/upstreams/nobody", "/sql/no_such_question")
SLOW: Final = StoreError("slow", 159, "TIMEOUT_EXCEEDED")


def failing() -> Mapping[str, Any]:
    """Return a store that says of each question that it took too long."""
    return {question.name: SLOW for question in load_all()}


STATES: Final[Mapping[str, Any]] = {
    "empty": lambda: pages({}),
    "failed": lambda: pages(failing()),
    "stale": lambda: pages({"stages": [{**FRESH, "last_stored_at": NOW - timedelta(minutes=4)}]}),
    "too few": lambda: pages({"divergence_by_shadow": [shadow(identical=40, mismatch=1)]}),
}


def troubles_at(browser: Browser, theme: str, size: str, base: str, addresses: tuple[str, ...]) -> list[Any]:
    """Return what axe finds, what the console says of scripts and policy, and what is wider than the screen."""
    script = tools.axe().read_text("utf-8")
    found: list[Any] = []
    with opened(browser, theme, size) as (page, said):
        for address in addresses:
            page.goto(base + address, wait_until="networkidle")
            page.evaluate(script)
            for violation in page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]:
                found.append((address, violation["id"], violation["nodes"][0]["html"][:200]))
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append((address, "overflow"))
        # An address that is refused is an answer of 400; the browser itself notes that.
        found += [line for line in said if "Failed to load resource" not in line]
    return found


@pytest.mark.parametrize(("theme", "size"), [("light", "wide"), ("dark", "medium"), ("dark", "phone")])
@pytest.mark.parametrize("state", STATES)
def test_each_state_is_fit_for_everybody(browser: Browser, state: str, theme: str, size: str) -> None:
    """
    No violation, nothing said, nothing cut, on every page that is there without rows.

    Each theme and each width once: a state is one block whose colours do not depend on the width.
    """
    addresses = tuple(f"{path}?whole=1" for path in (*STATIC_PAGES, *ITEMS))
    with listening(STATES[state]().door) as base:
        assert troubles_at(browser, theme, size, base, addresses) == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_keeps_somebody_out_is_fit_for_everybody(browser: Browser, theme: str, size: str) -> None:
    """The form that asks for a token, and an address that cannot be read."""
    locked = Api(FakeReader(SLOW), access=Access([Token(Caller("ann", "read"), b"0" * 32)]))
    with listening(locked.door) as base:
        found = troubles_at(browser, theme, size, base, ("/login",))
    with listening(pages({}).door) as base:
        found += troubles_at(browser, theme, size, base, ("/divergence?from=yesterday", "/?form=x"))

    assert found == []
