"""Connections for an event loop: bounded, connected anew, closed."""

import asyncio
import threading

import pytest

from analytics.store import Store, StoreAway
from api import reader as module
from api.errors import Refused
from api.reader import Reader
from gnomon.config.model import ClickHouseSettings
from tests.analytics.server import ClickHouse

AWAY = ClickHouseSettings(url="http://127.0.0.1:9")


def test_nobody_there_is_an_error_each_time() -> None:
    """And the next question tries anew."""
    reader = Reader(AWAY, n_connections=1, query_seconds=5)

    async def twice() -> None:
        for _ in range(2):
            with pytest.raises(StoreAway, match="gnomon up"):
                await reader.query("SELECT 1", {})

    asyncio.run(twice())
    reader.close()
    assert reader.n_waiting == 0


class Stores:
    """Stands in for `reading.connect`: connections that can break."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: list[FakeStore] = []
        monkeypatch.setattr("analytics.reading.connect", self.connect)

    def connect(self, settings: ClickHouseSettings, *, timeout_seconds: float) -> "FakeStore":
        self.opened.append(FakeStore())
        return self.opened[-1]


class FakeStore:
    def __init__(self) -> None:
        self.is_broken = self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def use(store: Store) -> int:
    assert isinstance(store, FakeStore)
    if store.is_broken:
        raise StoreAway("broken")
    return id(store)


def test_a_broken_connection_is_replaced_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """ClickHouse was started anew between two questions: nobody needs to know."""
    stores = Stores(monkeypatch)
    reader = Reader(AWAY, n_connections=1, query_seconds=5)

    async def go() -> None:
        first = await reader.run(use)
        assert await reader.run(use) == first
        stores.opened[0].is_broken = True
        assert await reader.run(use) != first

    asyncio.run(go())
    reader.close()
    assert [store.is_closed for store in stores.opened] == [True, True]


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused at once, with when to try again."""
    Stores(monkeypatch)
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    reader = Reader(AWAY, n_connections=1, query_seconds=5)
    gate = threading.Event()

    async def go() -> None:
        waiting = [asyncio.ensure_future(reader.run(lambda _: gate.wait(10))) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refused:
            await reader.run(use)
        assert (refused.value.problem, refused.value.headers["Retry-After"]) == ("busy", "2")
        gate.set()
        await asyncio.gather(*waiting)

    asyncio.run(go())
    reader.close()
    assert reader.n_waiting == 0


def test_a_wait_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where neither ClickHouse nor the connection ends it."""
    Stores(monkeypatch)
    monkeypatch.setattr(module, "WAIT_MARGIN_SECONDS", 0.05)
    reader = Reader(AWAY, n_connections=1, query_seconds=0.05)
    gate = threading.Event()

    async def go() -> None:
        with pytest.raises(Refused, match="no answer within"):
            await reader.run(lambda _: gate.wait(10))

    asyncio.run(go())
    gate.set()
    reader.close()


@pytest.mark.clickhouse
def test_a_question_is_bounded_by_clickhouse(clickhouse: ClickHouse) -> None:
    """Its own error comes first, and the connection goes on."""
    from analytics.store import StoreError

    reader = Reader(ClickHouseSettings(url=clickhouse.url), n_connections=1, query_seconds=1)

    async def go() -> None:
        with pytest.raises(StoreError) as slow:
            await reader.query(
                "SELECT count() FROM numbers(900000000) WHERE NOT ignore(sipHash128(toString(number)))", {}
            )
        assert slow.value.code == 159
        assert (await reader.query("SELECT 1 AS one", {})).rows == [(1,)]

    asyncio.run(go())
    reader.close()


@pytest.mark.clickhouse
def test_questions_run_beside_each_other(clickhouse: ClickHouse) -> None:
    """As many as there are connections; each can only read."""
    from analytics.store import StoreError

    reader = Reader(ClickHouseSettings(url=clickhouse.url), n_connections=3, query_seconds=10)

    async def go() -> None:
        found = await asyncio.gather(*(reader.query("SELECT {n:UInt8} AS n", {"n": n}) for n in range(12)))
        assert [one.rows for one in found] == [[(n,)] for n in range(12)]
        with pytest.raises(StoreError):
            await reader.query("SELECT * FROM url('http://127.0.0.1/', 'CSV')", {})

    asyncio.run(go())
    reader.close()
