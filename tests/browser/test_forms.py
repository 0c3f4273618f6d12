"""What a reader sends by a form, from a real browser: it says where a form comes from, or that it does not tell."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser

from api.access import Access, Caller, Token
from api.routes import silences
from gnomon.config.model import Role
from tests.api.calling import Api
from tests.api.pages.test_states import NOW, pages, rules_of
from tests.browser.conftest import listening
from tests.browser.test_pages import opened

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

TOKEN = "opensesame"
LAG = {"rule": "HeadLag", "subject": "evm:1/geth-1", "value": 9.0, "threshold": 5.0, "delivered": True}


def guarded(role: Role) -> Api:
    """Return a dashboard that asks for a token, where one rule fires."""
    fired_at = NOW - timedelta(minutes=9)
    api = pages(
        {
            "alerts_firing": [{**LAG, "fired_at": fired_at}],
            "alert_history": [{**LAG, "fired_at": fired_at, "resolved_at": None}],
        }
    )
    holder = api.services.holder
    access = Access([Token(Caller("ann", role), hashlib.sha256(TOKEN.encode()).digest())])
    holder.value = replace(holder.value, access=access, rules=rules_of("HeadLag"))
    return api


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_token_lets_a_browser_in(browser: Browser, host: str) -> None:
    """A wrong one is told, the right one leads to the page that was asked for."""
    with listening(guarded("read").door) as base, opened(browser) as (page, _):
        here = base.replace("127.0.0.1", host)
        page.goto(here + "/spend?from=now-6h")
        page.fill("[name=token]", "wrong")
        page.press("[name=token]", "Enter")
        page.wait_for_selector("p.bad")
        page.fill("[name=token]", TOKEN)
        page.press("[name=token]", "Enter")
        page.wait_for_url(here + "/spend?from=now-6h")

        assert page.title() == "Spend · Gnomon"


@pytest.mark.parametrize("size", ["wide", "phone"])
def test_a_reader_signs_out(browser: Browser, size: str) -> None:
    """The page says who it is; afterwards it asks for a token again."""
    with listening(guarded("read").door) as base, opened(browser, size=size) as (page, said):
        page.goto(base + "/login?next=/heads")
        page.fill("[name=token]", TOKEN)
        page.press("[name=token]", "Enter")
        page.wait_for_url(base + "/heads")
        if size == "phone":
            page.click("summary[aria-label='More pages']")
        else:
            assert page.inner_text(".who span") == "ann"
        page.click("button:has-text('Sign out'):visible")
        page.wait_for_url(base + "/login")
        page.goto(base + "/heads")

        assert page.url == base + "/login?next=%2Fheads"
        assert said == []


def test_a_firing_rule_is_silenced_by_its_button(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its reader is at the alerts again."""
    written: list[Any] = []

    async def write(_request: object, silence: object, _now: object) -> None:
        written.append(silence)

    monkeypatch.setattr(silences, "_write", write)
    with listening(guarded("admin").door) as base, opened(browser) as (page, _):
        page.goto(base + "/alerts")
        page.fill("[name=token]", TOKEN)
        page.press("[name=token]", "Enter")
        page.click("[aria-label^='Silence HeadLag']")
        page.wait_for_url(base + "/alerts")

    assert [(one.rule, one.subject) for one in written] == [("HeadLag", "evm:1/geth-1")]


@pytest.mark.parametrize("policy", ["no-referrer", "same-origin"])
def test_a_form_of_another_site_is_refused(browser: Browser, policy: str) -> None:
    """Whatever that site lets its readers say of themselves."""
    with listening(guarded("admin").door) as base, opened(browser) as (page, _):
        form = (
            f"<meta name=referrer content={policy}><form method=post action='{base}/login'><button>go</button></form>"
        )
        page.route("http://other.example/", lambda route: route.fulfill(body=form, content_type="text/html"))
        page.goto("http://other.example/")
        with page.expect_response(base + "/login") as answer:
            page.click("button")

        assert answer.value.status == 403
