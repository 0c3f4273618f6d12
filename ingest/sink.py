"""
The exactly-once sink: rows of a log's events reach every table once, whatever dies, pauses or arrives late.

Key = (log id, topic, part). Each row carries the key and `off`, the place of its event in the log.
`floor[table, P]` = greatest `off` of the key in partition P of the table.

1. **Take over**, at the start and after every insert whose outcome is unknown (one's own insert that timed out is a
   former owner's too): one row in `sink_epochs` with an epoch greater than all of the key.
2. **Fence**: every other insert of the key runs only while its epoch is the greatest, and no two of a key overlap.
   Refused = `Fenced`: this owner stops.
3. **Read**, only after 1: `next` from `sink_progress` (0 if none), and the floors of all tables for `off >= next`.
   With `next` go the numbers of the events seen by then, so that an event that its shipper sends again is known.
4. **Store**: per table the rows above their own partition's floor, in one insert of one block. Tables in any order.
5. **Progress** after all tables of the batch; then, and only then, the log's consumer may move.
6. Which rows an event makes, and in which partition, depends on the event's bytes only (ingest.rows).

Why it is exact: by 2 the inserts of a key into one partition are a sequence of parts with rising offsets, each there
whole or not at all. So what is stored in (table, partition) is all its rows up to the floor and none above, and a
replay of any batch, cut anywhere else, adds exactly the rest. `next` only bounds how far back one reads.

What would break it: overlapping inserts (hence the fence: a paused owner, a request still in a socket), several blocks
per insert (hence the caps), materialised views (a second insert after the first; rollups are tables of the sink),
partitions by a clock. tests/ingest/test_kill.py kills and pauses owners and the engine to show it.
"""

import random
import time
from array import array
from collections.abc import Callable, Mapping
from typing import Any

from ingest import rollups
from ingest.blocks import Block, Rows
from ingest.engine import MAX_BLOCK_ROWS, Engine, Mark, literal
from ingest.errors import BlockTooLarge
from ingest.native import Coded
from ingest.tables import DATABASE, EPOCHS_COLUMNS, PROGRESS_COLUMNS, TABLES, Table

EPOCH_RANDOM_BITS = 20
MAX_PARTITIONS_PER_INSERT = 50
"""ClickHouse refuses an insert into more than 100 partitions at once."""
MAX_ROWS_PER_INSERT = MAX_BLOCK_ROWS


Rollup = Callable[[Block], Block]
ROLLUPS: Mapping[str, tuple[str, Rollup]] = {
    "spend_hourly": ("attempts", rollups.spend),
    "divergence_minutely": ("comparisons", rollups.divergence),
    "health_minutely": ("attempts", rollups.health),
}
"""Rollup → its source table, and how rows become groups. The floor is applied to the rows, before they are grouped."""


def claim(
    engine: Engine,
    key: tuple[str, str, int],
    *,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    random_bits: Callable[[int], int] = random.getrandbits,
) -> Mark:
    """
    Become the owner of a key: from here on no insert of a former one is run, and none of them is running.

    Raises:
        EngineAway, EngineRefused, Fenced: not the owner.
    """
    log_id, topic, part = key
    (row,) = engine.rows(
        f"SELECT max(epoch) FROM {engine.source('sink_epochs')} WHERE log_id = {literal(log_id)} "
        f"AND topic = {literal(topic)} AND part = {part}"
    )
    epoch = ((int(row[0]) >> EPOCH_RANDOM_BITS) + 1 << EPOCH_RANDOM_BITS) + random_bits(EPOCH_RANDOM_BITS)
    mark = Mark(log_id, topic, part, epoch)
    values: list[list[Any]] = [[log_id], [topic], [part], [epoch], [now_ms()]]
    engine.insert("sink_epochs", EPOCHS_COLUMNS, values, mark)
    while not engine.is_alone(mark):
        time.sleep(0.01)
    return mark


class Sink:
    """The owner of one key. One thread uses it."""

    def __init__(
        self,
        engine: Engine,
        log_id: str,
        topic: str,
        part: int,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        random_bits: Callable[[int], int] = random.getrandbits,
        after_insert: Callable[[str], None] = lambda table: None,
        has_repetitions: bool = False,
        database: str = DATABASE,
        owner: str = "",
        rollups_from_ms: int = 0,
    ) -> None:
        """
        Args:
            engine: a connection with the writer's rights.
            log_id, topic, part: the key.
            now_ms: the clock for rows that say when they were written.
            random_bits: tells owners that start at the same moment apart.
            after_insert: is told each table that was stored (tests die there).
            has_repetitions: whether the log may have events twice; then `seen` goes with the progress.
            database: where the tables are; another one while they are built again.
            owner: whose epochs count, in place of the log's id, where these tables are not everybody's.
            rollups_from_ms: groups and counts of earlier hours are there already.
        """
        self._engine = engine
        self.log_id, self.topic, self.part = log_id, topic, part
        self._now_ms = now_ms
        self._random_bits = random_bits
        self._after_insert = after_insert
        self._has_repetitions = has_repetitions
        self._database = database
        self._owner_id = owner or log_id
        self._rollups_from_ms = rollups_from_ms
        self._mark: Mark | None = None
        self._floors: dict[tuple[str, int], int] = {}
        self._floor_top = -1
        self._hours: dict[int, int] = {}
        self._new_seen: dict[str, int] = {}
        self.seen: dict[str, int] = {}
        """Process → greatest number of an event of it below `next`, for logs that may have events twice."""
        self.next = 0
        """Every event below it is stored."""
        self.stored_next = 0
        """The same, as written in `sink_progress`: what the log may forget."""
        self.n_rows = 0
        self.n_inserts = 0
        self.n_take_overs = 0

    @property
    def _where(self) -> str:
        return f"log_id = {literal(self.log_id)} AND topic = {literal(self.topic)} AND part = {self.part}"

    def take_over(self) -> int:
        """
        Become the owner; return the offset to go on from.

        Raises:
            EngineAway, EngineRefused, Fenced: not the owner; try again (after Fenced: only if nobody else should be).
        """
        self._mark = None
        key = (self._owner_id, self.topic, self.part)
        mark = claim(self._engine, key, now_ms=self._now_ms, random_bits=self._random_bits)
        progress = self._engine.source("sink_progress", self._database)
        (row,) = self._engine.rows(f"SELECT max(next) FROM {progress} WHERE {self._where}")
        self.next = self.stored_next = int(row[0])
        if self._has_repetitions:
            found = self._engine.rows(
                f"SELECT proc, number FROM (SELECT maxMap(procs) AS procs FROM {progress} "
                f"WHERE {self._where}) ARRAY JOIN mapKeys(procs) AS proc, mapValues(procs) AS number"
            )
            self.seen = {proc: int(number) for proc, number in found}
        self._floors = self._read_floors(self.next)
        self._floor_top = max(self._floors.values(), default=-1)
        self._hours = {}
        self._new_seen = {}
        self._mark = mark
        self.n_take_overs += 1
        return self.next

    def _read_floors(self, start: int) -> dict[tuple[str, int], int]:
        selects = [
            f"SELECT '{table.name}', {table.partition_sql} AS p, max(off) "
            f"FROM {self._engine.source(table.name, self._database)} WHERE {self._where} AND off >= {start} GROUP BY p"
            for table in TABLES.values()
        ]
        return {(name, int(p)): int(off) for name, p, off in self._engine.rows(" UNION ALL ".join(selects))}

    def store(self, rows: Rows) -> None:
        """
        Store what is not stored yet of a batch that begins at `next`; return when all tables have it.

        Raises:
            UnknownOutcome, Fenced: see `ingest.engine`; take over before anything else.
            BlockTooLarge: a table's rows do not fit one block: cut the batch.
        """
        if rows.first != self.next:
            raise ValueError(f"batch begins at {rows.first}, {self.next} is due")
        for name, source in rows.tables.items():
            if len(source) > MAX_ROWS_PER_INSERT:
                raise BlockTooLarge(f"{name}: {len(source)} rows")
        for name, table in TABLES.items():
            source_name, rollup = ROLLUPS.get(name, (name, None))
            fresh = rows.tables.get(source_name)
            if not fresh:
                continue
            if rollup is not None and self._rollups_from_ms:
                fresh = fresh.where([at >= self._rollups_from_ms for at in fresh.times])
            if self._floors:
                fresh = self._above_floors(table, fresh)
            if rollup is not None:
                fresh = rollup(fresh)
            if fresh:
                self._insert(table, fresh)
        self.next = rows.next
        for hour, n in rows.hours.items():
            self._hours[hour] = self._hours.get(hour, 0) + (n if hour >= self._rollups_from_ms else 0)
        self.seen.update(rows.seen)
        self._new_seen.update(rows.seen)
        if self._floors and rows.next > self._floor_top:
            self._floors = {}

    def _above_floors(self, table: Table, rows: Block) -> Block:
        """Return the rows above their partition's floor."""
        floors = {partition: floor for (name, partition), floor in self._floors.items() if name == table.name}
        partition = table.partition
        return rows.where(
            [off > floors.get(partition(at), -1) for at, off in zip(rows.times, rows.offsets, strict=True)]
        )

    def _insert(self, table: Table, rows: Block) -> None:
        """Store rows in one insert; of more partitions than one insert may touch, in one insert per group of them."""
        partition = table.partition
        if partition(max(rows.times)) - partition(min(rows.times)) < MAX_PARTITIONS_PER_INSERT:
            self._insert_block(table, rows)
            return
        partitions = [partition(at) for at in rows.times]
        all_partitions = sorted(set(partitions))
        for start in range(0, len(all_partitions), MAX_PARTITIONS_PER_INSERT):
            chosen = frozenset(all_partitions[start : start + MAX_PARTITIONS_PER_INSERT])
            self._insert_block(table, rows.where([one in chosen for one in partitions]))

    def _insert_block(self, table: Table, rows: Block) -> None:
        n = len(rows)
        log_id, topic = (Coded([text], array("B", bytes(n))) for text in (self.log_id, self.topic))
        values = [*rows.columns(), log_id, topic, [self.part] * n]
        self._engine.insert(table.name, table.wire_columns, values, self._owner(), self._database)
        self.n_rows += n
        self.n_inserts += 1
        self._after_insert(table.name)

    def skip(self, start: int) -> None:
        """Go on from a later offset: the events between are no longer in the log. The caller says so, loudly."""
        if start < self.next:
            raise ValueError(f"{start} is below {self.next}")
        self.next = start
        self._hours.setdefault(0, 0)

    def progress(self, log_end: int = 0, dropped: int = 0) -> None:
        """
        Write down how far the key is stored; then the log's consumer may move to `stored_next`.

        Args:
            log_end: the log's own end now (its next offset), 0 = not known.
            dropped: events that the log refused since it began.

        Raises:
            UnknownOutcome, Fenced: see `store`.
        """
        if self.next == self.stored_next:
            return
        at = self._now_ms()
        key = (self.log_id, self.topic, self.part)
        rows = [
            (*key, hour, n, self.next, self._owner().epoch, log_end, dropped, at, self._new_seen)
            for hour, n in self._hours.items()
        ]
        values = list(zip(*rows, strict=True))
        self._engine.insert("sink_progress", PROGRESS_COLUMNS, values, self._owner(), self._database)
        self.n_inserts += 1
        self._after_insert("sink_progress")
        self.stored_next = self.next
        self._hours = {}
        self._new_seen = {}

    def _owner(self) -> Mark:
        if self._mark is None:
            raise RuntimeError("take_over() first")
        return self._mark
