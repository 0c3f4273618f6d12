"""Tables built again from the events give the same answers, whatever happened to the tables or in the midst of it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from gnomon.config.model import Settings
from ingest.keeper import Keeper
from ingest.metrics import Metrics
from ingest.rebuild import REBUILT, rebuild
from ingest.settings import context
from ingest.tables import HOUR_MS, TABLES
from tests.ingest.conformance import Image, image_of, places_of
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import AT, mixture
from tests.ingest.kafka.cluster import Cluster

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(240)]

CONTEXT = context(Settings())
KEYS = [("aa" * 16, "log", 0), ("bb" * 16, "log", 1)]
RECORDS = {
    KEYS[0]: mixture(480, step_ns=4 * 60 * 10**9),
    KEYS[1]: mixture(320, start=1000, step_ns=3 * 60 * 10**9),
}


class ListSource:
    """A log as a list, the oldest of which may be gone."""

    has_repetitions = True

    def __init__(self, key: tuple[str, str, int], begin: int = 0, end: int = -1) -> None:
        self.key, self.begin = key, begin
        self.end = len(RECORDS[key]) if end < 0 else end

    def read(self, start: int) -> Iterator[tuple[Sequence[int], list[bytes]]]:
        for first in range(start, self.end, 220):
            end = min(first + 220, self.end)
            yield range(first, end), RECORDS[self.key][first:end]


@pytest.fixture
def cluster(clickhouse: EngineProcess) -> Cluster:
    """Only its ClickHouse."""
    return Cluster("nowhere:1", clickhouse, "t.")


def store(clickhouse: EngineProcess, key: tuple[str, str, int], until: int = -1) -> None:
    """Store a log, from where the tables are."""
    engine = clickhouse.connect()
    keeper = Keeper(
        engine, CONTEXT, Metrics(), key, name="t", missing_horizon_seconds=None, has_repetitions=True,
        now_ms=lambda: AT // 10**6,
    )  # fmt: skip
    start = keeper.take_over()
    records = RECORDS[key][start : None if until < 0 else until]
    for first in range(0, len(records), 190):
        keeper.store(records[first : first + 190])
        keeper.sink.progress()


def counts(cluster: Cluster) -> list[list[str]]:
    return [
        *cluster.rows("SELECT log_id, sum(n), max(next) FROM gnomon_core.sink_progress GROUP BY 1 ORDER BY 1"),
        *cluster.rows("SELECT * FROM gnomon.reconciliation ORDER BY hour"),
    ]


@pytest.fixture
def image(cluster: Cluster, clickhouse: EngineProcess) -> Image:
    """The tables as they were stored."""
    for key in KEYS:
        store(clickhouse, key)
    return image_of(cluster)


@pytest.mark.parametrize("begins", [(0, 0), (200, 100), (479, 320)])
def test_the_answers_are_the_same(
    cluster: Cluster, clickhouse: EngineProcess, image: Image, begins: tuple[int, int]
) -> None:
    """Also where the oldest events are gone: rows below them stay, and the hours that they share keep their groups."""
    places, before = places_of(cluster), counts(cluster)
    done = rebuild(clickhouse.connect(), CONTEXT, [ListSource(k, b) for k, b in zip(KEYS, begins, strict=True)])

    assert image_of(cluster) == image
    assert places_of(cluster) == places
    assert counts(cluster) == before
    assert [one.n_events for one in done] == [len(RECORDS[k]) - b for k, b in zip(KEYS, begins, strict=True)]
    assert [one.first_hour_ms % HOUR_MS for one in done] == [0, 0]
    assert [bool(one.first_hour_ms) for one in done] == [b > 0 for b in begins]
    assert cluster.rows(f"SELECT count() FROM system.tables WHERE database = '{REBUILT}'") == [["0"]]


def test_what_was_broken_is_whole_again(cluster: Cluster, clickhouse: EngineProcess, image: Image) -> None:
    """Rows that were deleted come back, rows that were doubled are there once."""
    engine = clickhouse.connect()
    engine.command("ALTER TABLE gnomon_core.requests DELETE WHERE off % 3 = 0 SETTINGS mutations_sync = 2")
    engine.command("INSERT INTO gnomon_core.comparisons SELECT * FROM gnomon_core.comparisons WHERE off < 100")
    engine.command("TRUNCATE TABLE gnomon_core.spend_hourly")
    assert image_of(cluster) != image
    rebuild(engine, CONTEXT, [ListSource(key) for key in KEYS])

    assert image_of(cluster) == image


def test_a_log_that_is_gone_stays_as_it_is(cluster: Cluster, clickhouse: EngineProcess, image: Image) -> None:
    """Nothing is taken away that cannot be built."""
    done = rebuild(clickhouse.connect(), CONTEXT, [ListSource(KEYS[0])])

    assert image_of(cluster) == image
    assert len(done) == 1


def test_the_settings_are_those_of_today(cluster: Cluster, clickhouse: EngineProcess, image: Image) -> None:
    """What is kept is decided anew: with bodies `none` there are none."""
    rebuild(clickhouse.connect(), replace(CONTEXT, keep_bodies="none"), [ListSource(key) for key in KEYS])
    anew = image_of(cluster)

    assert image["bodies"]
    assert not anew["bodies"]
    assert {name: rows for name, rows in anew.items() if name != "bodies"} == {
        name: rows for name, rows in image.items() if name != "bodies"
    }


class Died(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("table", ["attempts", "spend_hourly", "sink_progress"])
def test_killed_among_the_exchanges_nothing_is_lost(cluster: Cluster, clickhouse: EngineProcess, table: str) -> None:
    """The log has more by then than the tables: what was exchanged is ahead of what was not, and ingest goes on."""
    for key in KEYS:
        store(clickhouse, key, 150)

    def die(name: str) -> None:
        if name == table:
            raise Died

    with pytest.raises(Died):
        rebuild(clickhouse.connect(), CONTEXT, [ListSource(key, 0, 250) for key in KEYS], before_exchange=die)
    for key in KEYS:
        store(clickhouse, key)
    found = image_of(cluster)
    cluster.empty()
    for key in KEYS:
        store(clickhouse, key)

    assert found == image_of(cluster)
    rebuild(clickhouse.connect(), CONTEXT, [ListSource(key) for key in KEYS])
    assert found == image_of(cluster)


def test_every_table_of_the_sink_is_built(cluster: Cluster, clickhouse: EngineProcess) -> None:
    """None is forgotten when one is added."""
    seen: list[str] = []
    rebuild(clickhouse.connect(), CONTEXT, [], before_exchange=seen.append)

    assert seen == [*TABLES, "sink_progress"]
