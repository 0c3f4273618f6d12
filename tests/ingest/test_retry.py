"""Dead letters tried again get their rows once, whatever dies meanwhile, and the counts stay whole."""

from collections.abc import Sequence
from typing import Any

import pytest

from gnomon.config.model import Settings
from ingest import retry as retrying
from ingest.batch import decode, without
from ingest.engine import Engine
from ingest.errors import EngineAway, EngineRefused, UnknownOutcome
from ingest.native import Column
from ingest.rebuild import rebuild
from ingest.retry import Letter, Tried, letters, retry
from ingest.rows import rows_of
from ingest.settings import context
from ingest.sink import Sink
from ingest.tables import DATABASE, TABLES
from tests.ingest.conformance import Image, image_of
from tests.ingest.engine_process import EngineProcess
from tests.ingest.events import AT, mixture
from tests.ingest.kafka.cluster import Cluster
from tests.ingest.test_rebuild import ListSource

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(240)]

CONTEXT = context(Settings())
KEY = ("aa" * 16, "log", 0)
N = 96
RECORDS = mixture(480, step_ns=4 * 60 * 10**9)
ASIDE = (3, 5, 6, 7, 9, 13, 23, 77)
"""One of each kind, and a pair that differs."""
POISON = 39
"""A record that is no event."""


@pytest.fixture
def cluster(clickhouse: EngineProcess) -> Cluster:
    """Only its ClickHouse."""
    return Cluster("nowhere:1", clickhouse, "t.")


@pytest.fixture
def engine(clickhouse: EngineProcess) -> Engine:
    return clickhouse.connect()


def store(engine: Engine, aside: Sequence[int], *, is_written_down: bool = True) -> None:
    """Store the log, some of its events as dead letters."""
    sink = Sink(engine, *KEY, now_ms=lambda: AT // 10**6)
    sink.take_over()
    batch = decode(0, RECORDS[:N])
    for off in aside:
        batch = without(batch, off, "an older program could not do it")
    sink.store(rows_of(batch, CONTEXT, AT // 10**6).rows)
    if is_written_down:
        sink.progress()


@pytest.fixture
def wanted(cluster: Cluster, engine: Engine) -> Image:
    """The tables as they are where nothing was put aside; they are empty afterwards."""
    store(engine, ())
    found = image_of(cluster)
    for table in (*TABLES, "sink_progress"):
        engine.command(f"TRUNCATE TABLE gnomon_core.{table}")
    return found


def counts(cluster: Cluster) -> list[tuple[int, ...]]:
    rows = cluster.rows("SELECT shipped, stored, distinct_stored, dead_lettered FROM gnomon.reconciliation")
    return [tuple(map(int, row)) for row in rows]


def test_what_can_be_stored_now_is_as_if_it_had_been_at_once(cluster: Cluster, engine: Engine, wanted: Image) -> None:
    """Row for row in every table and rollup; what is poison still stays; the counts are whole before and after."""
    store(engine, ASIDE)
    chosen = letters(engine)
    before = counts(cluster)
    tried = [retry(engine, CONTEXT, letter) for letter in chosen]

    assert [letter.off for letter in chosen] == sorted((*ASIDE, POISON))
    assert [t.letter.off for t in tried if t.outcome == "poison"] == [POISON]
    assert all(t.outcome == "stored" for t in tried if t.letter.off != POISON)
    assert image_of(cluster) == wanted
    assert [letter.off for letter in letters(engine)] == [POISON]
    for shipped, stored, distinct, dead in [*before, *counts(cluster)]:
        assert (shipped, stored) == (stored + dead, distinct)


class Dying(Engine):
    """Fails at one statement: before it runs, or behind it."""

    def __init__(self, other: Engine, at: str, *, is_run: bool) -> None:
        super().__init__(*other._again, fence=other.fence())
        self._at, self._is_run = at, is_run

    def insert(
        self,
        table: str,
        columns: Sequence[Column],
        values: Sequence[Sequence[Any]],
        mark: Any,
        database: str = DATABASE,
    ) -> None:
        """Insert, or die."""
        if table != self._at:
            return super().insert(table, columns, values, mark, database)
        if self._is_run:
            super().insert(table, columns, values, mark, database)
        raise EngineAway("killed")

    def command(self, sql: str, parameters: Any = None) -> None:
        """Delete, or die."""
        if self._at == "DELETE":
            raise EngineAway("killed")
        super().command(sql, parameters)


@pytest.mark.parametrize("is_run", [False, True])
@pytest.mark.parametrize("at", ["requests", "attempts", "shadow_decisions", "spend_hourly", "DELETE"])
def test_a_retry_that_dies_anywhere_is_taken_up_by_the_next(
    cluster: Cluster, engine: Engine, wanted: Image, at: str, is_run: bool
) -> None:
    """Between any two of its statements."""
    store(engine, [6])
    (letter, _) = letters(engine)
    dying = Dying(engine, at, is_run=is_run)
    with pytest.raises(EngineAway):
        retry(dying, CONTEXT, letter)
    dying.close()

    assert letters(engine)[0] == letter
    assert retry(engine, CONTEXT, letter) == Tried(letter, "stored")
    assert retry(engine, CONTEXT, letter) == Tried(letter, "stored")
    assert image_of(cluster) == wanted


def test_a_letter_waits_until_its_log_is_written_down_beyond_it(cluster: Cluster, engine: Engine) -> None:
    """Else a worker that dies now would put it aside again, beside its rows."""
    store(engine, [6], is_written_down=False)
    (letter, _) = letters(engine)

    assert retry(engine, CONTEXT, letter).outcome == "waits"
    assert cluster.rows("SELECT count() FROM gnomon_core.requests WHERE off = 6") == [["0"]]


def test_a_dry_run_changes_nothing(cluster: Cluster, engine: Engine) -> None:
    """It tells what would become of each."""
    store(engine, [6])
    before = image_of(cluster)

    assert [retry(engine, CONTEXT, letter, is_dry=True).outcome for letter in letters(engine)] == ["stored", "poison"]
    assert image_of(cluster) == before


def test_one_that_is_refused_leaves_no_row(cluster: Cluster, engine: Engine) -> None:
    """A table had its rows already when another one refused them."""
    store(engine, [6])
    before = image_of(cluster)
    (letter, _) = letters(engine)

    class Refusing(Dying):
        def insert(
            self, table: str, columns: Sequence[Column], values: Sequence[Sequence[Any]], mark: Any,
            database: str = DATABASE,
        ) -> None:  # fmt: skip
            try:
                super().insert(table, columns, values, mark, database)
            except EngineAway:
                raise UnknownOutcome("refused") from EngineRefused(407, "DECIMAL_OVERFLOW")

    refusing = Refusing(engine, "attempts", is_run=False)
    tried = retry(refusing, CONTEXT, letter)
    refusing.close()

    assert (tried.outcome, tried.reason) == ("poison", "refused")
    assert "DECIMAL_OVERFLOW" in tried.detail
    assert image_of(cluster) == before


def test_letters_are_chosen_by_what_is_asked(engine: Engine) -> None:
    """Place and reason; nothing asked is all."""
    store(engine, [6, 9])

    assert {letter.off for letter in letters(engine, reason="step_failed")} == {6, 9}
    assert letters(engine, off=POISON) == [Letter(*KEY, POISON, "no_event")]
    assert len(letters(engine, topic="log", part=0)) == 3
    assert letters(engine, topic="other") == letters(engine, part=1) == []


@pytest.mark.parametrize("begin", [0, 50])
def test_tables_built_again_have_each_once(cluster: Cluster, engine: Engine, wanted: Image, begin: int) -> None:
    """The event makes its rows where it is there; where it is gone the rows of the retry stay."""
    store(engine, ASIDE)
    for letter in letters(engine):
        retry(engine, CONTEXT, letter)
    rebuild(engine, CONTEXT, [ListSource(KEY, begin, N)])

    assert image_of(cluster) == wanted
    assert retrying.MARK in "".join(
        cluster.rows("SELECT groupUniqArray(topic)::String FROM gnomon_core.attempts")[0]
    ) or (begin == 0)
