"""
Dead letters tried again: after an upgrade, a mended mask or price book, a column that has grown.

A letter that can be stored now gets its rows, with its own place in the log and its own time, and leaves the dead
letters; any other stays as it is. Each letter has a key of its own in the sink (log id, `TOPIC/retry/OFFSET`, part), so
that what makes batches exact makes this exact too: a retry that was killed, or two at once, store nothing twice. The
letter goes after its rows are there; in between it is counted twice, until the next retry takes it away.

A letter waits while its log has not been written down beyond it (a second or two): a worker that died now would read
its record again and make it a dead letter once more.
"""

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ingest.batch import decode
from ingest.engine import Engine, literal
from ingest.errors import EngineRefused, UnknownOutcome
from ingest.rows import Context, rows_of
from ingest.sink import Sink
from ingest.tables import DATABASE, TABLES

MARK = "/retry/"
"""In the topic of rows that a retry has stored, between the topic and the offset."""
TRIES = 3

Outcome = Literal["stored", "poison", "waits"]


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter."""

    log_id: str
    topic: str
    part: int
    off: int
    reason: str

    @property
    def where(self) -> str:
        """Its row in `dead_letters` as a condition."""
        return (
            f"log_id = {literal(self.log_id)} AND topic = {literal(self.topic)} AND part = {self.part} "
            f"AND off = {self.off}"
        )


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one."""

    letter: Letter
    outcome: Outcome
    reason: str = ""
    """Why it is poison still, as in `dead_letters`."""
    detail: str = ""


def letters(engine: Engine, *, topic: str = "", part: int = -1, off: int = -1, reason: str = "") -> list[Letter]:
    """Return the dead letters that are there, oldest places first; '' and -1 = any."""
    chosen = ["1"]
    chosen += [f"topic = {literal(topic)}"] if topic else []
    chosen += [f"part = {part}"] if part >= 0 else []
    chosen += [f"off = {off}"] if off >= 0 else []
    chosen += [f"reason = {literal(reason)}"] if reason else []
    rows = engine.rows(
        f"SELECT DISTINCT log_id, topic, part, off, reason FROM {DATABASE}.dead_letters "
        f"WHERE {' AND '.join(chosen)} ORDER BY log_id, topic, part, off"
    )
    return [Letter(log_id, topic, int(part), int(off), reason) for log_id, topic, part, off, reason in rows]


def retry(
    engine: Engine,
    context: Context,
    letter: Letter,
    *,
    is_dry: bool = False,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> Tried:
    """
    Try one letter again.

    Args:
        engine: a connection with the writer's rights.
        context: prices, masks, what is kept: today's.
        letter: what to try.
        is_dry: store nothing; `stored` means that it would be.
        now_ms: the clock of the sink's epochs.

    Raises:
        EngineAway, EngineRefused: ClickHouse cannot work now, or not at all; try again later.
    """
    found = engine.rows(f"SELECT hex(bytes) FROM {DATABASE}.dead_letters WHERE {letter.where} LIMIT 1")
    if not found:
        return Tried(letter, "stored")  # somebody else was quicker
    batch = decode(0, [bytes.fromhex(found[0][0])], [letter.off])
    # Its hour is counted as the record's already.
    batch.hours = dict.fromkeys(batch.hours, 0)
    step = rows_of(batch, context, now_ms())
    if step.poison:
        (poison,) = step.poison
        return Tried(letter, "poison", poison.reason, poison.detail)
    if _stored_next(engine, letter) <= letter.off:
        return Tried(letter, "waits", letter.reason, "its log is not written down beyond it yet: try again")
    if is_dry:
        return Tried(letter, "stored")
    sink = Sink(engine, letter.log_id, f"{letter.topic}{MARK}{letter.off}", letter.part, now_ms=now_ms)
    for n in range(TRIES):
        try:
            sink.take_over()
            sink.store(step.rows)
            break
        except (OverflowError, UnicodeError, struct.error) as error:
            return _refused(engine, letter, str(error))
        except UnknownOutcome as error:
            if n < TRIES - 1:
                continue
            if isinstance(error.__cause__, EngineRefused):
                return _refused(engine, letter, str(error.__cause__))
            raise
    engine.command(f"{_delete(engine, 'dead_letters')} WHERE {letter.where}")
    return Tried(letter, "stored")


def _stored_next(engine: Engine, letter: Letter) -> int:
    progress = engine.source("sink_progress")
    ((text,),) = engine.rows(
        f"SELECT max(next) FROM {progress} WHERE log_id = {literal(letter.log_id)} "
        f"AND topic = {literal(letter.topic)} AND part = {letter.part}"
    )
    return int(text)


def _refused(engine: Engine, letter: Letter, why: str) -> Tried:
    """Take back what some tables have of it: a letter has all of its rows or none."""
    where = (
        f"log_id = {literal(letter.log_id)} AND topic = {literal(letter.topic + MARK + str(letter.off))} "
        f"AND part = {letter.part}"
    )
    for table in TABLES:
        engine.command(f"{_delete(engine, table)} WHERE {where}")
    return Tried(letter, "poison", "refused", why)


def _delete(engine: Engine, table: str) -> str:
    return f"DELETE FROM {engine.stored_in(table)}"
