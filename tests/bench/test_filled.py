"""The store that `bench pages` fills is one that the product could have written: it adds up."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.migrate import migrate
from analytics.store import Store
from bench._filled import Span, fill
from bench.pages import filled
from gnomon.config.model import Retention
from ingest.rollups import round_duration
from tests.analytics.server import ClickHouse

pytestmark = pytest.mark.clickhouse

N_PAIRS = 3_000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    server = ClickHouse(tmp_path_factory.mktemp("filled"))
    server.start()
    try:
        with server.store() as writer:
            migrate(writer, Retention(rows_seconds=1e9, bodies_seconds=1e9, rollups_seconds=1e9))
            fill(writer, Span(N_PAIRS, 1, int(time.time() * 1000)))
            yield writer
    finally:
        server.stop()


def one(store: Store, sql: str) -> int:
    return int(store.rows(sql)[0][0])


def test_there_are_as_many_pairs_as_asked_for(store: Store) -> None:
    """Within a hundredth: requests come in whole numbers; each pair has its mirrored call."""
    n = one(store, "SELECT count() FROM gnomon.comparisons")

    assert abs(n - N_PAIRS) <= N_PAIRS // 100
    assert n == one(store, "SELECT count() FROM gnomon.attempts WHERE kind = 'shadow'")


def test_rollups_are_what_their_rows_add_up_to(store: Store) -> None:
    """Pairs, calls and money."""
    assert one(store, "SELECT sum(n) FROM gnomon.divergence_minutely") == one(
        store, "SELECT count() FROM gnomon.comparisons"
    )
    assert one(store, "SELECT sum(n) FROM gnomon.spend_hourly") == one(store, "SELECT count() FROM gnomon.attempts")
    assert store.rows("SELECT sum(usd) FROM gnomon.spend_hourly") == store.rows("SELECT sum(usd) FROM gnomon.attempts")
    assert one(store, "SELECT sum(n) FROM gnomon.health_minutely") == one(
        store, "SELECT count() FROM gnomon.attempts WHERE kind IN ('client', 'retry', 'hedge', 'probe', 'shadow')"
    )


def test_every_event_is_counted_once_and_none_is_missing(store: Store) -> None:
    """Accepted = shipped = stored + dead letters in each hour; no process has a gap in its numbers."""
    hours = store.rows("SELECT accepted, shipped, stored, distinct_stored, dead_lettered FROM gnomon.reconciliation")

    assert len(hours) >= 24
    for accepted, shipped, stored, distinct, dead in hours:
        assert accepted == shipped == stored + dead
        assert stored == distinct
    for proc, n, least, most in store.rows(
        "SELECT proc, count(), min(seq), max(seq) FROM gnomon.events WHERE proc != '' GROUP BY proc"
    ):
        assert n == most - least + 1, proc


def test_every_kind_of_row_is_there(store: Store) -> None:
    """A page over it shows something in each panel."""
    for view in ("findings", "heads", "reorgs", "breaker_transitions", "alerts", "gauges", "dead_letters"):
        assert one(store, f"SELECT count() FROM gnomon.{view}") > 0, view


def test_rounded_durations_are_those_of_the_sink(store: Store) -> None:
    """The same buckets as `ingest.rollups` makes, so that quantiles are as exact and maps as large."""
    calls = store.rows(
        "SELECT DISTINCT duration_us FROM gnomon.attempts WHERE outcome != 'cancelled'"
        " AND kind IN ('client', 'retry', 'hedge', 'probe', 'shadow')"
    )
    kept = store.rows("SELECT DISTINCT arrayJoin(mapKeys(durations)) FROM gnomon_core.health_minutely")

    assert {int(row[0]) for row in kept} == {round_duration(int(row[0])) for row in calls}


def test_a_data_folder_is_left_as_it_is(tmp_path: Path) -> None:
    """A kept store that is too old is refused, not filled twice."""
    (tmp_path / "filled.json").write_text('{"end": 1}')

    with pytest.raises(SystemExit, match="too old"), filled(tmp_path, 10, 1):
        pass
