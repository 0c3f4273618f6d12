"""
One partition: take its key over, read, store in batches, write down how far. Runs while the group leaves it to us.

    opening ──► reading ──► (trouble) ──► opening …
                   │
                   ├──► fenced     somebody else stores it: wait for the group to take it away, else ──► opening …
                   └──► failed     a person must look; looked at again now and then

The place to read from is the sink's, never Kafka's committed offset. What was read and is not stored when something
goes wrong is let go and read again.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, Protocol

from aiokafka import errors as kafka_errors
from aiokafka.structs import ConsumerRecord, TopicPartition

from gnomon.kafka.errors import KafkaError
from ingest.batch import Poison
from ingest.engine import Engine
from ingest.errors import EngineAway, EngineRefused, Fenced, TooManyDeadLetters, TopicAhead
from ingest.kafka.lanes import Lane
from ingest.kafka.letters import WINDOW_SECONDS, Allowance
from ingest.kafka.settings import WorkerSettings
from ingest.keeper import Keeper, Stored
from ingest.metrics import Metrics
from ingest.pacing import Pending

log = logging.getLogger("gnomon.ingest")

Clock = Callable[[], float]
State = Literal["opening", "reading", "fenced", "failed", "ended"]


class Host(Protocol):
    """What a feed asks of the group's member."""

    settings: WorkerSettings
    metrics: Metrics

    async def topic_id(self, topic: str) -> str:
        """Return the id of a topic now; raises KafkaError."""

    async def ends(self, tp: TopicPartition) -> tuple[int, int]:
        """Return the first offset there is and the one after the last."""

    def stand_at(self, tp: TopicPartition, offset: int) -> None:
        """Read the partition from there."""

    async def send_letters(self, tp: TopicPartition, poison: Sequence[Poison]) -> None:
        """Send dead letters; return when Kafka has them."""

    def stored(self, tp: TopicPartition, offset: int) -> None:
        """Every record below is stored and written down."""

    def new_keeper(self, engine: Engine, topic_id: str, tp: TopicPartition) -> Keeper:
        """Return the keeper of a partition's key."""

    def kafka_is_in_the_way(self, name: str, error: Exception) -> None:
        """A partition cannot go on because of Kafka."""

    def engine_is_away(self, error: Exception) -> None:
        """ClickHouse did not answer, or said no."""

    def engine_is_back(self) -> None:
        """ClickHouse has done what it was asked."""


class Feed:
    """See the module's text. The event loop uses it; the keeper runs in the lane."""

    def __init__(
        self,
        host: Host,
        tp: TopicPartition,
        lane: Lane,
        clock: Clock = time.monotonic,
        max_bytes: int | None = None,
    ) -> None:
        """
        Args:
            host: the group's member.
            tp: the partition.
            lane: where the keeper runs.
            clock: monotonic seconds.
            max_bytes: of a batch; by default as the settings have it.
        """
        self._host = host
        self._settings = host.settings
        self._clock = clock
        self.tp = tp
        self.name = f"{tp.topic}/{tp.partition}"
        self.lane = lane
        self.state: State = "opening"
        self.failure = ""
        """Why it is `failed`."""
        self.turn = 0
        """Counts how often it was opened: what was asked for before is not taken."""
        self.end = 0
        """Kafka's offset after the last record, as last told."""
        self.moved_at = clock()
        self.fenced_at = float("-inf")
        """When it was first refused, of refusals that follow each other."""
        self._last_fenced_at = float("-inf")
        self.n_events = 0
        self._keeper: Keeper | None = None
        self._records: list[bytes] = []
        self._offsets: list[int] = []
        pace = self._settings.pace
        self._pending = Pending(pace if max_bytes is None else replace(pace, max_bytes=min(pace.max_bytes, max_bytes)))
        self._expected = 0
        self._went_back = False
        self._gap: tuple[int, int] | None = None
        self._asked_again_at = -1
        """Where a gap was met and fetched once more; met again, the records are not there."""
        self._is_revoked = False
        self._wake = asyncio.Event()
        self._last_progress = float("-inf")
        self._last_missing = clock()
        self._retry_seconds = self._settings.pace.retry_seconds
        self._allowance = Allowance(self._settings.max_dead_letters)

    @property
    def has_room(self) -> bool:
        """Whether more should be fetched."""
        return self.state == "reading" and not self._pending.is_full and not self._went_back

    @property
    def next(self) -> int:
        """Every record below is stored."""
        return self._keeper.sink.next if self._keeper is not None else 0

    @property
    def lag(self) -> int:
        """Records that are not stored; 0 while nobody knows."""
        return max(self.end - self.next, 0) if self._keeper is not None else 0

    def add(self, records: Sequence[ConsumerRecord], turn: int) -> None:
        """
        Take what was fetched.

        The consumer stands behind these records by now. What is not taken is asked for again: nobody else would.

        Args:
            records: consecutive records of the partition, at least one.
            turn: `turn` when they were asked for.
        """
        if self.state != "reading" or self._went_back:
            return  # the next opening says where to read
        first = records[0].offset
        if turn != self.turn:
            self._ask_again()
        elif first < self._expected:
            self._went_back = True
            self._wake.set()
        elif first > self._expected != self._asked_again_at:
            self._asked_again_at = self._expected
            self._ask_again()
        else:
            self._take(records)

    def _ask_again(self) -> None:
        """Have the consumer fetch once more from the first record that was not taken."""
        try:
            self._host.stand_at(self.tp, self._expected)
        except KafkaError as error:
            log.debug("not asked again log=%s: %s", self.name, error)  # taken away: the next owner reads it

    def _take(self, records: Sequence[ConsumerRecord]) -> None:
        first = records[0].offset
        if first > self._expected and self._gap is None:
            self._gap = (self._expected, first)
        self._records += [record.value or b"" for record in records]
        self._offsets += [record.offset for record in records]
        self._expected = self._offsets[-1] + 1
        self._pending.add(len(records), sum(len(record.value or b"") for record in records), self._clock())
        self._wake.set()

    def revoke(self) -> None:
        """The group takes the partition away: store what was read, write down how far, end."""
        self._is_revoked = True
        self._wake.set()

    async def run(self) -> None:
        """
        Go on until `revoke`.

        Raises:
            What nobody expects; the process should end.
        """
        while not self._is_revoked:
            try:
                if self.state == "opening":
                    await self._open()
                if not self._is_revoked:
                    await self._advance()
            except Fenced as error:
                self._is_fenced(error)
            except (EngineAway, EngineRefused) as error:
                self._host.engine_is_away(error)
                await self._close_for_a_while()
            except (TopicAhead, TooManyDeadLetters) as error:
                await self._failed(error)
            except (KafkaError, kafka_errors.KafkaError, TimeoutError, OSError) as error:
                self._host.kafka_is_in_the_way(self.name, error)
                await self._close_for_a_while()
        await self._finish()

    async def _open(self) -> None:
        topic_id = await self._host.topic_id(self.tp.topic)
        keeper = self._keeper
        if keeper is None or keeper.sink.log_id != topic_id:
            if keeper is not None:
                log.warning("topic was made anew log=%s id=%s", self.name, topic_id)
            keeper = self._host.new_keeper(self.lane.engine, topic_id, self.tp)
        try:
            start = await self.lane.run(self._take_over, keeper)
        except Fenced as error:
            # Two owners came at the same moment, and the group has chosen us.
            raise EngineAway(str(error)) from error
        if start is None:
            return
        self._host.engine_is_back()
        self._keeper = keeper
        begin, self.end = await self._host.ends(self.tp)
        if start > self.end:
            raise TopicAhead(
                f"{self.name} (topic id {topic_id}) ends at {self.end}, but the tables have it up to {start}: "
                "it has lost its end, or ClickHouse belongs to another cluster"
            )
        if start < begin:
            self._say_lost(start, begin)
            keeper.sink.skip(begin)
        self._expected = keeper.sink.next
        self._went_back, self._gap, self._asked_again_at = False, None, -1
        self._host.stand_at(self.tp, self._expected)
        self._host.stored(self.tp, self._expected)
        self.turn += 1
        self.state, self.failure = "reading", ""
        self.moved_at = self._clock()
        self._host.metrics.set("gnomon_ingest_log_failed", (self.name,), 0)
        log.info("reading log=%s id=%s from=%d end=%d", self.name, topic_id, self._expected, self.end)

    def _take_over(self, keeper: Keeper) -> int | None:
        """
        Return where to go on, in the lane; None: the partition was taken away while this waited for its turn.

        Who takes over then would fence the next owner, though nobody reads here any more.
        """
        return None if self._is_revoked else keeper.take_over()

    def _say_lost(self, start: int, begin: int) -> None:
        if start == 0:
            log.warning("tables are younger than the topic log=%s begin=%d", self.name, begin)
            return
        log.error(
            "events lost log=%s from=%d to=%d n=%d: Kafka has deleted them", self.name, start, begin, begin - start
        )
        self._host.metrics.add("gnomon_ingest_lost_events_total", (self.name,), begin - start)

    async def _advance(self) -> None:
        """Do what is due, or wait for something to do."""
        if self.state == "fenced":
            # Who was paused or cut off knows by then that the partition is another's. Else that one has gone, or was
            # late: it took over when the group had given the partition to us already.
            left = self._last_fenced_at + self._settings.session_seconds - self._clock()
            if left > 0:
                await self._wait(left)
            else:
                self.state = "opening"
            return
        if self._gap is not None:
            (start, found), self._gap = self._gap, None
            begin, _ = await self._host.ends(self.tp)
            if begin > start:
                self._say_lost(start, min(begin, found))
        if self._went_back:
            log.warning("topic has gone back behind what was read log=%s expected=%d", self.name, self._expected)
            self._close()
            return
        pace = self._settings.pace
        is_due = self._is_due(self._clock())
        if is_due:
            await self._flush()
        now = self._clock()
        if now - self._last_progress >= pace.progress_seconds and self._is_to_write_down:
            await self._progress()
        elif now - self._last_missing >= pace.missing_seconds:
            await self._look_for_missing()
        elif not is_due:
            await self._wait(pace.poll_seconds)

    def _is_due(self, now: float) -> bool:
        """Return whether what was read should be stored now; with as much again to read it may become a full batch."""
        pending = self._pending
        if not pending.is_due(now):
            return False
        is_behind = self.end - self._expected > pending.n_events
        since = pending.first_seen if pending.first_seen is not None else now
        return pending.is_full or not is_behind or now - since >= self._settings.behind_seconds

    @property
    def _is_to_write_down(self) -> bool:
        return self._keeper is not None and self._keeper.sink.next != self._keeper.sink.stored_next

    async def _flush(self) -> None:
        now = self._clock()
        if self._allowance.is_exceeded(now):
            raise TooManyDeadLetters(
                f"{self.name}: more than {self._settings.max_dead_letters} dead letters within a minute; look at "
                "`gnomon query --sql 'SELECT reason, detail FROM gnomon.dead_letters ORDER BY at DESC LIMIT 20'`, "
                "and let it go on with `gnomon ingest --max-dead-letters 0` if they are to be so many"
            )
        keeper = self._require_keeper()
        records, offsets = self._records, self._offsets
        self._records, self._offsets = [], []
        self._pending.clear()
        self._pending.last_flush = now
        done: Stored = await self.lane.run(keeper.store, records, _dense(offsets))
        self._host.engine_is_back()
        self._retry_seconds = self._settings.pace.retry_seconds
        if done.poison:
            await self._host.send_letters(self.tp, done.poison)
            self._allowance.add(len(done.poison), now)  # once, also where it took several tries to send them
        self.moved_at = self._clock()
        self.n_events += done.n_events
        self._host.metrics.add("gnomon_ingest_store_seconds_total", (), self.moved_at - now)
        self._host.metrics.add("gnomon_ingest_batches_total")

    async def _progress(self) -> None:
        keeper = self._require_keeper()
        await self.lane.run(keeper.sink.progress, max(self.end, keeper.sink.next))
        self._last_progress = self._clock()
        self._host.stored(self.tp, keeper.sink.stored_next)

    async def _look_for_missing(self) -> None:
        keeper = self._require_keeper()
        self._last_missing = self._clock()
        # Read to its end, all that was shipped until now is stored.
        until_ms = keeper.newest_stored_ms if self.lag else time.time_ns() // 1_000_000
        await self.lane.run(keeper.look_for_missing, until_ms)

    async def _finish(self) -> None:
        """Store what was read and write down how far; whoever comes next does what fails here."""
        try:
            if self.state == "reading" and not self._went_back:
                if self._records:
                    await self._flush()
                if self._is_to_write_down:
                    await self._progress()
        except Fenced:
            log.info("stored by somebody else already log=%s", self.name)
        except (EngineAway, EngineRefused, TooManyDeadLetters, KafkaError, kafka_errors.KafkaError, OSError) as error:
            log.warning("not stored at the end, will be by the next owner log=%s: %s", self.name, error)
        finally:
            self._close()
            self.state = "ended"

    def reopen(self) -> None:
        """Take over again, from what the sink says: the topic is not the one it was."""
        self._went_back = True
        self._wake.set()

    def _is_fenced(self, error: Fenced) -> None:
        log.warning("another owner stores it log=%s: %s", self.name, error)
        self._close()
        self.state = "fenced"
        now = self._clock()
        if now - self._last_fenced_at > self._settings.fenced_seconds:
            self.fenced_at = now
        self._last_fenced_at = now

    async def _failed(self, error: Exception) -> None:
        if self.failure != str(error):
            log.error("cannot go on log=%s: %s", self.name, error)
        self._close()
        self.state, self.failure = "failed", str(error)
        self._host.metrics.set("gnomon_ingest_log_failed", (self.name,), 1)
        seconds = WINDOW_SECONDS if isinstance(error, TooManyDeadLetters) else self._settings.pace.failed_retry_seconds
        await self._wait(seconds, is_pause=True)
        self.state = "opening"

    async def _close_for_a_while(self) -> None:
        self._close()
        await self._wait(self._retry_seconds, is_pause=True)
        self._retry_seconds = min(self._retry_seconds * 2, self._settings.pace.max_retry_seconds)

    def _close(self) -> None:
        """Let go of what was read and not stored."""
        self.state = "opening"
        self._records, self._offsets = [], []
        self._pending.clear()
        self._went_back, self._gap = False, None
        if self._keeper is not None:
            self._keeper.forget()

    async def _wait(self, seconds: float, *, is_pause: bool = False) -> None:
        """Wait until there is something to do; as a pause, only its end or `revoke` is."""
        deadline = self._clock() + seconds
        while not self._is_revoked and (left := deadline - self._clock()) > 0:
            self._wake.clear()
            try:
                async with asyncio.timeout(left):
                    await self._wake.wait()
            except TimeoutError:
                return
            if not is_pause:
                return

    def _require_keeper(self) -> Keeper:
        if self._keeper is None:
            raise RuntimeError("not open")
        return self._keeper


def _dense(offsets: list[int]) -> Sequence[int]:
    """Return the same offsets, as a range where none is left out."""
    if offsets[-1] - offsets[0] == len(offsets) - 1:
        return range(offsets[0], offsets[-1] + 1)
    return offsets
