"""The lease over ClickHouse: what one service writes is what another one sees."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from analytics.alerting import lease
from analytics.alerting.leading import Leadership, clock, holder_of
from analytics.store import Store, StoreAway
from tests.analytics.server import ClickHouse


@pytest.fixture
def seconds() -> list[float]:
    """The clock of all services."""
    return [1000.0]


Make = Callable[[str], Leadership]


@pytest.fixture
def make(clickhouse: ClickHouse, seconds: list[float]) -> Iterator[Make]:
    """Make services over an empty table."""
    with clickhouse.store() as store:
        store.command("TRUNCATE TABLE gnomon_core.alert_leases")
    made: list[Leadership] = []

    def one(holder: str) -> Leadership:
        made.append(Leadership(holder, f"host of {holder}", clickhouse.store, lambda: seconds[0]))
        return made[-1]

    yield one
    for it in made:
        it._close()


def states(clickhouse: ClickHouse) -> list[tuple[object, ...]]:
    with clickhouse.store() as store:
        return store.rows("SELECT holder, epoch, state FROM gnomon_core.alert_leases ORDER BY at, epoch")


def lead(it: Leadership, seconds: list[float]) -> None:
    it.step()
    seconds[0] += lease.SETTLE_SECONDS
    it.step()
    assert it.is_leading
    assert it.may_act()


@pytest.mark.clickhouse
def test_one_leads_and_the_others_stand_by(clickhouse: ClickHouse, make: Make, seconds: list[float]) -> None:
    """The first; the others say that they are there, and see that it lives."""
    first, second = make("a"), make("b")
    lead(first, seconds)
    for _ in range(10):
        second.step()
        seconds[0] += lease.RENEW_SECONDS
        first.step()

    assert first.may_act()
    assert not second.may_act()
    assert first._lease.has_others
    assert ("b", 0, "standing_by") in states(clickhouse)
    assert ("a", 1, "leading") in states(clickhouse)


@pytest.mark.clickhouse
def test_who_is_gone_is_followed(make: Make, seconds: list[float]) -> None:
    """After it was silent for so long, and then as long as it could have acted; when it is back it stands by."""
    first, second = make("a"), make("b")
    lead(first, seconds)
    began_at = seconds[0]
    while not second.is_leading:
        second.step()
        seconds[0] += 1.0
        assert not (first._lease.has_others and first.may_act() and second.may_act())
    first._lease.next(seconds[0], began_at, second._view())

    assert lease.LEASE_SECONDS + lease.VALID_SECONDS <= seconds[0] - began_at < 35
    assert not first.is_leading


@pytest.mark.clickhouse
def test_who_gives_up_is_followed_at_once(clickhouse: ClickHouse, make: Make, seconds: list[float]) -> None:
    """A service that is stopped says so."""
    first, second = make("a"), make("b")
    lead(first, seconds)
    second.step()
    first._thread.start()
    first.stop()
    assert states(clickhouse)[-1] == ("a", 1, "released")
    lead(second, seconds)

    assert second._lease.epoch == 2


@pytest.mark.clickhouse
def test_the_next_life_over_a_folder_goes_on_at_once(make: Make, seconds: list[float]) -> None:
    """Its last process is gone for certain."""
    lead(make("a"), seconds)
    again = make("a")
    again.step()
    again.step()

    assert again.may_act()


def test_a_store_that_is_away_makes_no_leader(seconds: list[float]) -> None:
    """Nobody leads by not being able to ask; the thread goes on."""

    def connect() -> Store:
        raise StoreAway("away")

    it = Leadership("a", "h", connect, lambda: seconds[0])
    with pytest.raises(StoreAway):
        it.step()
    it.start()
    it.stop()

    assert not it.is_leading


def test_a_folder_keeps_its_name(tmp_path: Path) -> None:
    """For the next life; without a folder each process has another one."""
    assert holder_of(tmp_path) == holder_of(tmp_path)
    assert holder_of(None) != holder_of(None)
    (tmp_path / "alerts.id").write_text("")
    assert len(holder_of(tmp_path)) == 16


def test_the_clock_goes_on() -> None:
    """In seconds."""
    before = clock()

    assert 0 <= clock() - before < 60
