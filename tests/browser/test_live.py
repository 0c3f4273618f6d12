"""A live page in a real browser: what is stored while it is open comes to stand in it, by itself."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from analytics.alerting.rules import configured
from analytics.store import Store
from api.live import Live
from api.reader import Reader
from gnomon.config.model import ClickHouseSettings
from tests.api.calling import Api, settings_of
from tests.api.listening import listening
from tests.browser.test_pages import WAIT_MS, opened
from tests.ingest.engine_process import EngineProcess, migrated_engine

pytestmark = [pytest.mark.clickhouse, pytest.mark.browser, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """An empty one, for this module alone."""
    with migrated_engine(tmp_path_factory.mktemp("live")) as process:
        yield process


@pytest.fixture(scope="module")
def api(engine: EngineProcess) -> Iterator[Api]:
    reader = Reader(ClickHouseSettings(url=engine.url), n_connections=4, query_seconds=20)
    settings = settings_of(f"{{clickhouse: {{url: '{engine.url}'}}, api: {{limits: {{requestsPerSecond: 0}}}}}}")
    made = Api(reader, settings, data_dir=engine.folder, rules=tuple(configured((), Path(), [])))
    made.services.live = Live(made.services.asking, made.services.metrics, 8, poll_seconds=0.2)
    yield made
    reader.close()


@pytest.fixture(scope="module")
def served(api: Api) -> Iterator[str]:
    with listening(api) as url:
        yield url


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_MS / 1000
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def fire(engine: EngineProcess, subject: str) -> None:
    """Store that an alert fires, as the alert service does."""
    user, password = engine.credentials()
    at = datetime.now(UTC)
    names = ("rule", "state", "subject", "at", "value", "threshold", "severity", "since", "fingerprint")
    with Store.connect(engine.url, user, password, database="gnomon_core") as store:
        row = ("HeadLag", "firing", subject, at, 12.0, 5.0, "page", at, subject)
        store.insert("gnomon_core.alerts", names, [row])


def test_a_live_page_shows_what_comes(browser: Browser, served: str, api: Api, engine: EngineProcess) -> None:
    """
    An alert that is stored stands on the open page; paused it stands still, and catches up when it goes on; a lost
    stream says so, and heals.
    """
    live, metrics = api.services.live, api.services.metrics
    with opened(browser) as (page, said):
        page.goto(served + "/?live=1", wait_until="load")
        until(lambda: metrics.get("gnomon_api_stream_looks_total", ("ok",)) > 0)
        button, alerts = page.locator("[data-live]"), page.locator("#p-alerts li")
        expect(button).to_have_attribute("data-live", "on")
        expect(alerts).to_have_count(0)
        fire(engine, "evm:31337/p1")
        expect(alerts).to_have_count(1, timeout=WAIT_MS)
        expect(alerts.first).to_contain_text("p1")
        assert live.places.n_taken == 1

        button.click()
        expect(button).to_have_attribute("data-live", "off")
        until(lambda: live.places.n_taken == 0)
        fire(engine, "evm:31337/p2")
        assert alerts.count() == 1
        button.click()
        expect(alerts).to_have_count(2, timeout=WAIT_MS)
        until(lambda: live.places.n_taken == 1)
        assert said == []

        assert live._poller is not None
        live._poller.get_loop().call_soon_threadsafe(live.close)
        expect(button).to_have_attribute("data-live", "lost", timeout=WAIT_MS)
        fire(engine, "evm:31337/p3")
        live.is_closed = False
        expect(button).to_have_attribute("data-live", "on", timeout=WAIT_MS)
        expect(alerts).to_have_count(3, timeout=WAIT_MS)


def test_a_first_connection_that_is_refused_is_tried_again(browser: Browser, served: str, api: Api) -> None:
    """The page says that it is not live until it is."""
    api.services.live.is_closed = True
    try:
        with opened(browser) as (page, _):
            page.goto(served + "/heads?live=1", wait_until="load")
            button = page.locator("[data-live]")
            expect(button).to_have_attribute("data-live", "lost", timeout=WAIT_MS)
            expect(page.locator("#live")).to_have_count(1)
            api.services.live.is_closed = False
            expect(button).to_have_attribute("data-live", "on", timeout=WAIT_MS)
            until(lambda: api.services.live.places.n_taken == 1)
    finally:
        api.services.live.is_closed = False
