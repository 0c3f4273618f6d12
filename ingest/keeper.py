"""
The keeper of one key: records of one log go through the steps into the sink. Both runners have one per log.

The embedded runner reads files and the Kafka worker partitions; from the record on they share everything here. A batch
whose rows do not fit one block is cut in halves. A batch that ClickHouse refuses for a value in it, twice, is cut until
the record is found, and that record goes to the dead letters: one bad row stops nobody.
"""

import json
import logging
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ingest.batch import Batch, Poison, decode, without
from ingest.engine import Engine
from ingest.errors import BlockTooLarge, EngineRefused, UnknownOutcome
from ingest.metrics import Metrics
from ingest.missing import MissingJob
from ingest.rows import Context, Step, joined, rows_of
from ingest.sink import Sink
from ingest.verdicts import lines

log = logging.getLogger("gnomon.ingest")

PIECE = 1000
"""Records that become rows together."""
MAX_POISON_LINES = 20
"""Dead letters of one batch that get a line in the log."""
REFUSALS_BEFORE_SEARCH = 2
"""A batch is tried so often as it is; a refusal may be an accident."""
_SEARCH_ENDS_AT = 10_000
"""A search is over when batches have grown beyond it again."""

_VALUE_CODES = frozenset({
    6,  # CANNOT_PARSE_TEXT
    33,  # CANNOT_READ_ALL_DATA
    53,  # TYPE_MISMATCH
    69,  # ARGUMENT_OUT_OF_BOUND
    70,  # CANNOT_CONVERT_TYPE
    117,  # INCORRECT_DATA
    131,  # TOO_LARGE_STRING_SIZE
    321,  # VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
    407,  # DECIMAL_OVERFLOW
    469,  # VIOLATED_CONSTRAINT
})  # fmt: skip
"""Refusals that speak of a value; all others speak of the server or the schema, and every record would meet them."""

_ENCODING_ERRORS = (OverflowError, UnicodeError, struct.error)
"""What `ingest.native` raises for a value that its column cannot hold."""


@dataclass(slots=True)
class Stored:
    """What one call of `store` did."""

    n_events: int = 0
    n_repeated: int = 0
    newest_at_ms: int = 0
    poison: list[Poison] = field(default_factory=list)


class _Search:
    """Which record of a refused batch it is: batches get smaller from the refusal on, and larger again behind it."""

    def __init__(self) -> None:
        self._refused_at = -1
        self._n_refused = 0
        self._within = -1
        self.limit = 0
        """Records of the next batch at most; 0 = as many as there are."""
        self.condemned: dict[int, str] = {}

    def refused(self, batch_first: int, offsets: Sequence[int], why: str) -> None:
        """A batch was refused for a value in it."""
        is_again = batch_first == self._refused_at
        self._refused_at = batch_first
        self._n_refused = self._n_refused + 1 if is_again else 1
        if not self.limit and self._n_refused < REFUSALS_BEFORE_SEARCH:
            return
        self._within = offsets[-1]
        if len(offsets) == 1:
            self.condemned[offsets[0]] = why
        self.limit = max(len(offsets) // 2, 1)

    def stored(self, last: int) -> None:
        """A batch was stored, up to the offset `last`."""
        if last < self._within:
            return  # the search goes on behind it
        self._n_refused = 0
        self.condemned.clear()
        self.limit = 0 if self.limit > _SEARCH_ENDS_AT else self.limit * 2


class Keeper:
    """One thread uses it, with the connection that it was given."""

    def __init__(
        self,
        engine: Engine,
        context: Context,
        metrics: Metrics,
        key: tuple[str, str, int],
        *,
        name: str,
        missing_horizon_seconds: float | None,
        has_repetitions: bool = False,
        sink: Sink | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """
        Args:
            engine: a connection with the writer's rights.
            context: prices, masks, what is kept.
            metrics: where it counts.
            key: log id, topic, part.
            name: of the log, in lines and labels.
            missing_horizon_seconds: see `ingest.missing`; None: nobody looks for calls that never ended.
            has_repetitions: whether the log may have events twice.
            sink: of the key, where it is not the usual one.
            now_ms: the clock of dead letters and progress rows.
        """
        self.name = name
        self.sink = sink or Sink(engine, *key, now_ms=now_ms, has_repetitions=has_repetitions)
        self._context = context
        self._metrics = metrics
        self._now_ms = now_ms
        self._has_repetitions = has_repetitions
        self._missing = (
            None if missing_horizon_seconds is None else MissingJob(engine, *key, missing_horizon_seconds, now_ms)
        )
        self._search = _Search()
        self.newest_stored_ms = 0

    def take_over(self) -> int:
        """
        Become the owner of the key; return the offset to go on from.

        Raises:
            EngineAway, EngineRefused, Fenced: not the owner.
        """
        self.forget()
        start = self.sink.take_over()
        self._metrics.add("gnomon_ingest_take_overs_total")
        return start

    def forget(self) -> None:
        """Somebody else may have the key now: take it over again before anything else."""
        if self._missing is not None:
            self._missing.forget()

    def store(self, records: Sequence[bytes], offsets: Sequence[int] | None = None) -> Stored:
        """
        Store records that begin at `sink.next`; return when all tables have them.

        Args:
            records: their bytes.
            offsets: of the records; by default without a gap from `sink.next` on.

        Raises:
            UnknownOutcome, Fenced: take over before anything else.
        """
        done = Stored()
        first = self.sink.next
        places = range(first, first + len(records)) if offsets is None else offsets
        start, end = 0, 0
        while end < len(records):
            start, end = end, end + (self._search.limit or len(records))
            chosen, where = records[start:end], places[start:end]
            begins_at = self.sink.next
            try:
                self._store(chosen, where, done)
            except UnknownOutcome as error:
                cause = error.__cause__
                if isinstance(cause, EngineRefused) and cause.code in _VALUE_CODES:
                    self._search.refused(begins_at, where, str(cause))
                raise
            except _ENCODING_ERRORS as error:
                # Tables before this one may have the batch: the floors know after the next take-over.
                self._search.refused(begins_at, where, f"{type(error).__name__}: {error}")
                raise UnknownOutcome(f"a row cannot be written: {error}") from error
            self._search.stored(where[-1])
        self.newest_stored_ms = max(self.newest_stored_ms, done.newest_at_ms)
        for poison in done.poison[:MAX_POISON_LINES]:
            log.error("dead letter log=%s offset=%d reason=%s: %s", self.name, poison.off, poison.reason, poison.detail)
        return done

    def _store(self, records: Sequence[bytes], offsets: Sequence[int], done: Stored) -> None:
        """Store records, halving the batch where a table's rows do not fit one block."""
        sink = self.sink
        step = self._step(records, offsets)
        before = sink.n_inserts
        try:
            sink.store(step.rows)
        except BlockTooLarge:
            if len(records) == 1:
                raise
            middle = len(records) // 2
            self._store(records[:middle], offsets[:middle], done)
            self._store(records[middle:], offsets[middle:], done)
            return
        done.n_events += len(records)
        done.n_repeated += step.n_repeated
        done.newest_at_ms = max(done.newest_at_ms, step.newest_at_ms)
        done.poison += step.poison
        self._metrics.add("gnomon_ingest_inserts_total", (), sink.n_inserts - before)
        self._metrics.add("gnomon_ingest_events_total", (), len(records))
        if step.n_repeated:
            self._metrics.add("gnomon_ingest_repeated_total", (self.name,), step.n_repeated)
        self._metrics.observe(step)
        if step.newest_at_ms:
            age = max(self._now_ms() / 1000 - step.newest_at_ms / 1000, 0)
            self._metrics.set("gnomon_ingest_freshness_seconds", (self.name,), age)
        for line in lines(step.verdicts):
            log.log(_LEVELS[line.level], "%s", _text(line.event, line.facts))

    def _step(self, records: Sequence[bytes], offsets: Sequence[int]) -> Step:
        """Return what records become, a piece at a time: what is small enough stays near the processor."""
        seen = dict(self.sink.seen) if self._has_repetitions else None
        steps = []
        first = self.sink.next
        for start in range(0, len(records), PIECE):
            where = offsets[start : start + PIECE]
            batch = decode(first, records[start : start + PIECE], where, seen)
            steps.append(rows_of(self._without_condemned(batch), self._context, self._now_ms()))
            first = batch.next
            if seen is not None:
                seen.update(batch.seen)
        return joined(steps)

    def _without_condemned(self, batch: Batch) -> Batch:
        for off, why in self._search.condemned.items():
            if any(off in group.offsets for group in batch.groups.values()):
                batch = without(batch, off, why, "refused")
        return batch

    def look_for_missing(self, until_ms: int) -> int:
        """
        Give mirrored calls that never ended their verdict `missing`; return how many.

        Args:
            until_ms: every event of the log up to this time is stored.

        Raises:
            EngineAway, EngineRefused, Fenced: take over before anything else.
        """
        if self._missing is None:
            return 0
        n = self._missing.run(self.sink.next, until_ms)
        if n:
            log.warning("mirrored calls never ended log=%s n=%d", self.name, n)
            self._metrics.add("gnomon_ingest_missing_total", (self.name,), n)
        return n


_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def _text(event: str, facts: dict[str, object]) -> str:
    return " ".join(
        [event, *(f"{name}={json.dumps(value) if _is_quoted(value) else value}" for name, value in facts.items())]
    )


def _is_quoted(value: object) -> bool:
    return isinstance(value, str) and (not value or any(c in value for c in ' "=\n'))
