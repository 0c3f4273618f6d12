"""
All tables built again from the events: today's masks, prices and steps, and the same answers where nothing changed.

    1. tables like ours, empty, in a database of their own
    2. what no event is there for any more is copied: rows of logs that are gone, rows below the oldest event of a log
    3. every event that is there goes through the keeper, into those tables
    4. the tables change places, one by one; progress last

Nothing is taken away before its successor is whole. Killed before 4 it has changed nothing; killed within 4, the tables
that have changed places hold more than their progress says, and the sink's floors know what to do. The events' own
readers must be stopped: whoever runs this sees to it (`gnomon.cli.rebuild`).

Groups of an hour cannot be taken apart: of a log whose oldest events are gone, hours that have such events keep the
groups they have. The first hour that is built anew is told.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ingest.engine import Engine, literal
from ingest.errors import EngineAway, EngineRefused
from ingest.keeper import Keeper
from ingest.metrics import Metrics
from ingest.retry import MARK
from ingest.rows import Context
from ingest.sink import ROLLUPS, Sink
from ingest.tables import DATABASE, HOUR_MS, TABLES

REBUILT = "gnomon_rebuild"
"""The database of the tables that are being built."""
HOME = ("requests", "comparisons", "attempts", "heads", "reorgs", "breaker_transitions")
_NUMBERED = "^[0-9a-f]{16}:[0-9]{1,19}$"
TRIES = 50
_RETRY_SECONDS = 0.2


class Source(Protocol):
    """The events of one log that are there."""

    key: tuple[str, str, int]
    """Log id, topic, part."""
    begin: int
    """The oldest offset there is."""
    end: int
    """The offset after the newest one, when it was looked at."""
    has_repetitions: bool

    def read(self, start: int) -> Iterator[tuple[Sequence[int], list[bytes]]]:
        """Yield offsets and records from `start` to `end`, in batches."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was done for one log."""

    key: tuple[str, str, int]
    n_events: int
    first_hour_ms: int
    """Groups and counts of earlier hours are the old ones; 0 = all are new."""


def rebuild(
    engine: Engine,
    context: Context,
    sources: Sequence[Source],
    report: Callable[[str], None] = lambda line: None,
    before_exchange: Callable[[str], None] = lambda table: None,
) -> list[Rebuilt]:
    """
    Build all tables again; return what was done for each log.

    Args:
        engine: a connection with the writer's rights.
        context: prices, masks, what is kept: today's.
        sources: every log whose events are there; what is stored of others stays as it is.
        report: is told each step in one line.
        before_exchange: is told each table before it changes places (tests die there).

    Raises:
        EngineAway, EngineRefused: nothing has changed, or some tables have changed places; run it again.
    """
    tables = [*TABLES, "sink_progress"]
    engine.command(f"DROP DATABASE IF EXISTS {REBUILT} SYNC")
    engine.command(f"CREATE DATABASE {REBUILT}")
    for table in tables:
        engine.command(f"CREATE TABLE {REBUILT}.{table} AS {DATABASE}.{table}")
    first_hours = {source.key: _first_hour(engine, source) for source in sources}
    _copy(engine, sources, first_hours)
    done = []
    for source in sources:
        done.append(_fill(engine, context, source, first_hours[source.key]))
        report(f"built {source.key[1]}/{source.key[2]}: {done[-1].n_events} events from {source.begin} on")
    for table in tables:
        before_exchange(table)
        engine.command(f"EXCHANGE TABLES {REBUILT}.{table} AND {DATABASE}.{table}")
    engine.command(f"DROP DATABASE {REBUILT} SYNC")
    return done


def _first_hour(engine: Engine, source: Source) -> int:
    """Return the first hour all of whose events are there; 0 when no event was stored that is not there."""
    if source.begin == 0:
        return 0
    newest = [f"SELECT maxOrNull(at) AS at FROM {DATABASE}.{name} WHERE {_is_gone(source)}" for name in HOME]
    ((text,),) = engine.rows(f"SELECT toUnixTimestamp64Milli(max(at)) FROM ({' UNION ALL '.join(newest)})")
    return 0 if text == "\\N" else (int(text) // HOUR_MS + 1) * HOUR_MS


def _is_of(source: Source) -> str:
    log_id, topic, part = source.key
    return f"(log_id = {literal(log_id)} AND topic = {literal(topic)} AND part = {part})"


def _is_gone(source: Source) -> str:
    return f"({_is_of(source)} AND off < {source.begin})"


def _is_retried(source: Source) -> str:
    """Rows that a dead letter of the log has got later; its event makes them again, if it is there."""
    log_id, topic, part = source.key
    return f"(log_id = {literal(log_id)} AND startsWith(topic, {literal(topic + MARK)}) AND part = {part})"


def _copy(engine: Engine, sources: Sequence[Source], first_hours: dict[tuple[str, str, int], int]) -> None:
    """Copy what no event is there for."""
    others = " AND ".join(f"NOT ({_is_of(source)} OR {_is_retried(source)})" for source in sources) or "1"

    def earlier(source: Source, column: str) -> str:
        hour = first_hours[source.key]
        return f"({_is_of(source)} AND {column} < fromUnixTimestamp64Milli({hour}))" if hour else "0"

    for name, table in TABLES.items():
        time_column = table.columns[0].name
        if name in ROLLUPS:
            kept = [earlier(source, time_column) for source in sources]
        else:
            kept = [_is_gone(source) for source in sources]
        kept += [f"({_is_retried(source)} AND off < {source.begin})" for source in sources]
        where = " OR ".join([f"({others})", *kept])
        engine.command(f"INSERT INTO {REBUILT}.{name} SELECT * FROM {DATABASE}.{name} WHERE {where}")
    engine.command(f"INSERT INTO {REBUILT}.sink_progress SELECT * FROM {DATABASE}.sink_progress WHERE {others}")
    for source in sources:
        # The counts of hours that stay; how far the log is stored, and what was seen, are those of its oldest event.
        if first_hours[source.key]:
            engine.command(
                f"INSERT INTO {REBUILT}.sink_progress SELECT * REPLACE (0 AS next, map() AS procs) "
                f"FROM {DATABASE}.sink_progress WHERE {earlier(source, 'hour')}"
            )
        if source.begin:
            log_id, topic, part = source.key
            numbers = " UNION ALL ".join(
                "SELECT substring(event_id, 1, 16) AS proc, max(toUInt64OrZero(substring(event_id, 18))) AS number "
                f"FROM {DATABASE}.{name} WHERE {_is_gone(source)} AND match(event_id, '{_NUMBERED}') GROUP BY proc"
                for name in HOME
            )
            engine.command(
                f"INSERT INTO {REBUILT}.sink_progress "
                "(log_id, topic, part, hour, n, next, epoch, log_end, dropped, at, procs) "
                f"SELECT {literal(log_id)}, {literal(topic)}, {part}, toDateTime64(0, 3), 0, {source.begin}, 0, 0, 0, "
                f"now64(3), CAST((groupArray(proc), groupArray(number)), 'Map(String, UInt64)') "
                f"FROM (SELECT proc, max(number) AS number FROM ({numbers}) GROUP BY proc)"
            )


def _fill(engine: Engine, context: Context, source: Source, first_hour_ms: int) -> Rebuilt:
    """Store every event that is there."""
    keeper = Keeper(
        engine,
        context,
        Metrics(),
        source.key,
        name=f"{source.key[1]}/{source.key[2]}",
        missing_horizon_seconds=None,
        has_repetitions=source.has_repetitions,
        sink=Sink(
            engine,
            *source.key,
            has_repetitions=source.has_repetitions,
            database=REBUILT,
            owner=f"rebuild-{source.key[0]}",
            rollups_from_ms=first_hour_ms,
        ),
    )
    start, n_tries = source.begin, 0
    is_owner = False
    while start < source.end:
        try:
            if not is_owner:
                start = max(keeper.take_over(), source.begin)
                if start > keeper.sink.next:
                    keeper.sink.skip(start)
                is_owner = True
            for offsets, records in source.read(start):
                keeper.store(records, offsets)
                keeper.sink.progress(source.end)
                start, n_tries = keeper.sink.next, 0
            # Kafka may end with offsets that are no records.
            start = source.end
        except (EngineAway, EngineRefused):
            is_owner, n_tries = False, n_tries + 1
            if n_tries > TRIES:
                raise
            time.sleep(_RETRY_SECONDS)
    return Rebuilt(source.key, source.end - source.begin, first_hour_ms)
