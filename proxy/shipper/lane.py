"""
One log to Kafka: read a chunk, prepare the next while it is under way, move the position when it is acknowledged.

Kafka away: the chunk waits, the log grows, one line says so when it begins, one a minute, and one when it is over. A
log that cannot be read stands still and says why; it is looked at again every few seconds.
"""

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

from gnomon.config.model import KafkaSettings
from gnomon.errors import GnomonError
from gnomon.events.errors import LogBehind, LogError, LogMissing, LogReplaced
from gnomon.events.log import Consumer, Reader, status
from gnomon.events.log.segment import read_newest
from gnomon.kafka.admin import opened
from gnomon.kafka.errors import KafkaAway, KafkaError, KafkaRefused, TopicsMissing
from gnomon.kafka.hearsay import Heard, listening
from proxy.shipper.chunk import Chunk, Place, Queue, build
from proxy.shipper.cluster import SENT, Producer, ProducerLost, RecordsRefused
from proxy.shipper.metrics import Counts

log = logging.getLogger("gnomon.shipper")

CONSUMER: Final = "shipper"
CHUNK_EVENTS: Final = 5_000
CHUNK_BYTES: Final = 4 << 20
"""What a death may repeat; smaller chunks make smaller batches, which cost more each."""
LINGER_SECONDS: Final = 0.05
"""Between two chunks of a quiet log: it gathers events into batches, and they are no older when they leave."""
FIRST_DELAY_SECONDS: Final = 0.2
MAX_DELAY_SECONDS: Final = 5.0
STALL_SECONDS: Final = 3.0
"""So long nothing acknowledged although something is under way: Kafka does not take events."""
REMINDER_SECONDS: Final = 60.0
DAMAGED_SECONDS: Final = 5.0


class Lane:
    """See the module's text. Runs until `stop` is set and what was in the log then is acknowledged."""

    def __init__(self, path: Path, kafka: KafkaSettings, stop: asyncio.Event) -> None:
        """
        Args:
            path: the log's folder.
            stop: set by the process's signal.
        """
        self.path = path
        self.counts = Counts()
        self._kafka = kafka
        self._stop = stop
        self._producer: Producer | None = None
        self._reader: Reader | None = None
        self._consumer: Consumer | None = None
        self._log_id = b""
        self._failed = ""
        self._stalled_since: float | None = None
        self._said_at = 0.0
        self._acknowledged_at = 0.0
        self._under_way = False
        self._heard = Heard()

    @property
    def lag(self) -> int:
        """Events in the log that are not acknowledged, where the log can be read."""
        if self._consumer is None:
            return 0
        try:
            return max(0, read_newest(str(self.path)).end - self._consumer.get())
        except LogError:
            return 0

    @property
    def is_stalled(self) -> bool:
        """Whether Kafka takes nothing at this time."""
        return self._stalled_since is not None

    async def run(self) -> None:
        """Ship until told to stop."""
        with listening() as self._heard:
            watcher = asyncio.ensure_future(self._watch())
            try:
                await self._ship()
            finally:
                watcher.cancel()
                await asyncio.gather(watcher, return_exceptions=True)
                await self._disconnect()
                self._close_log()

    # --- the log ------------------------------------------------------------------------------------------------------

    async def _ship(self) -> None:
        until: int | None = None
        delivery: asyncio.Task[None] | None = None
        try:
            while True:
                is_open = self._open_log()
                producer = await self._connected()
                chunk = self._read(producer) if is_open else None
                if delivery is not None:
                    await delivery
                    delivery = None
                if chunk is not None:
                    delivery = asyncio.ensure_future(self._deliver(chunk))
                if self._stop.is_set():
                    until = self._end() if until is None else until
                    if self._reader is None or self._reader.seq >= until:
                        if delivery is not None:
                            await delivery
                        return
                if chunk is None or chunk.end - chunk.first < CHUNK_EVENTS // 10:
                    await self._pause(DAMAGED_SECONDS if self._failed else LINGER_SECONDS)
                else:
                    await asyncio.sleep(0)
        finally:
            if delivery is not None:
                delivery.cancel()
                await asyncio.gather(delivery, return_exceptions=True)

    async def _pause(self, seconds: float) -> None:
        """Wait, not longer than until the stop."""
        if self._stop.is_set():
            return
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return

    def _end(self) -> int:
        """Return how far the log goes now."""
        try:
            return read_newest(str(self.path)).end
        except LogError:
            return 0

    def _open_log(self) -> bool:
        """Stand where the last shipper stopped, unless it stands already; return whether the log can be read."""
        if self._reader is not None:
            return True
        try:
            consumer = Consumer(self.path, CONSUMER)
            self._consumer, self._log_id = consumer, consumer.log_id
            try:
                self._reader = Reader(self.path, consumer.get())
            except LogBehind as error:
                self._reader = self._skip(error)
        except LogMissing:
            return False
        except LogError as error:
            self._fail(error)
            return False
        if self._failed:
            return True
        log.info("shipping log=%s id=%s from=%d", self.path, self._log_id.hex(), self._reader.seq)
        for name, lag in status(self.path).lag_by_consumer.items():
            if name != CONSUMER and lag:
                log.warning(
                    "another consumer holds the log back, and it fills up unless that one reads on; if it never will, "
                    "remove its file at-%s log=%s lag=%d",
                    name,
                    self.path,
                    lag,
                )
        return True

    def _read(self, producer: Producer) -> Chunk | None:
        """Return what is new in the log; None when there is nothing, or it cannot be read."""
        assert self._reader is not None
        try:
            first, records = self._reader.read(CHUNK_EVENTS, CHUNK_BYTES)
        except LogReplaced as error:
            log.warning("another log stands here log=%s: %s", self.path, error)
            self._close_log()
            return None
        except LogBehind as error:
            self._reader.close()
            self._reader = self._skip(error)
            return None
        except LogError as error:
            self._fail(error)
            return None
        if self._failed:
            log.info("can be read again log=%s", self.path)
            self._failed = ""
            self.counts.set("gnomon_shipper_log_failed", 0)
        if not records:
            return None
        chunk = build(first, records, producer.n_partitions, self._log_id)
        if chunk.n_unroutable:
            self.counts.add("gnomon_shipper_dead_letters_total", chunk.n_unroutable, "no_event")
            log.error("records without event log=%s in=%d-%d n=%d", self.path, first, chunk.end, chunk.n_unroutable)
        return chunk

    def _skip(self, error: LogBehind) -> Reader:
        """Go on at the oldest record there is."""
        self.counts.add("gnomon_shipper_lost_events_total", error.start - error.seq)
        log.error("events lost log=%s n=%d: %s", self.path, error.start - error.seq, error)
        return Reader(self.path, error.start)

    def _fail(self, error: LogError) -> None:
        """Stand still, and say why, once."""
        self._close_log()
        if str(error) != self._failed:
            log.error("cannot read log=%s: %s", self.path, error)
        self._failed = str(error)
        self.counts.set("gnomon_shipper_log_failed", 1)

    def _move_on(self, chunk: Chunk) -> None:
        """Let go of what is acknowledged; the log may have been closed or replaced since it was read."""
        if self._consumer is not None and self._consumer.log_id == chunk.log_id:
            self._consumer.set(chunk.end)
            return
        try:
            consumer = Consumer(self.path, CONSUMER)
        except LogError:
            return
        try:
            if consumer.log_id == chunk.log_id:
                consumer.set(chunk.end)
        finally:
            consumer.close()

    def _close_log(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._consumer is not None:
            self._consumer.close()
        self._reader = self._consumer = None

    # --- Kafka --------------------------------------------------------------------------------------------------------

    async def _deliver(self, chunk: Chunk) -> None:
        """Return when all of a chunk is stored and the position says so."""
        self._under_way = True
        self._acknowledged_at = time.monotonic()
        delay = FIRST_DELAY_SECONDS
        while True:
            producer = await self._connected()
            waiting = [(place, queue) for place, queue in chunk.queues.items() if not queue.is_done]
            ends = await asyncio.gather(
                *(self._drain(producer, place, queue) for place, queue in waiting), return_exceptions=True
            )
            errors = [end for end in ends if isinstance(end, BaseException)]
            if not errors:
                break
            if unexpected := [e for e in errors if not isinstance(e, RecordsRefused | ProducerLost | KafkaError)]:
                raise unexpected[0]
            # Its numbering has a gap now, so the cluster takes nothing more of it for that partition.
            await self._disconnect()
            serious = [error for error in errors if not isinstance(error, RecordsRefused)]
            if serious:
                self._stall(str(serious[0]))
                await asyncio.sleep(delay)
                delay = min(MAX_DELAY_SECONDS, delay * 2)
        self._under_way = False
        self.counts.add("gnomon_shipper_events_total", chunk.end - chunk.first)
        self.counts.add("gnomon_shipper_bytes_total", chunk.n_bytes)
        self._move_on(chunk)

    async def _drain(self, producer: Producer, place: Place, queue: Queue) -> None:
        """
        Send what one partition gets, batch by batch, each after the one before is stored.

        Raises:
            RecordsRefused: and the queue knows what to do about it with the next producer.
            ProducerLost, KafkaError: nothing more goes with this producer.
        """
        topic, partition = place
        while not queue.is_done:
            batch = producer.new_batch()
            now_ms = time.time_ns() // 1_000_000
            most = queue.n_done + queue.n_most if queue.n_most else len(queue.records)
            n = 0
            for key, value in queue.records[queue.n_done : most]:
                if batch.append(timestamp=now_ms, key=key, value=value) is None:
                    break
                n += 1
            try:
                await producer.send(batch, topic, partition)
            except RecordsRefused as error:
                blamed = queue.refused(n, error.reason)
                if blamed is not None:
                    self.counts.add("gnomon_shipper_dead_letters_total", 1, error.reason)
                    log.error(
                        "refused by Kafka, a stand-in goes to the dead letters topic=%s reason=%s bytes=%d record=%r",
                        topic,
                        error.reason,
                        len(blamed),
                        blamed[:120],
                    )
                raise
            queue.acknowledged(n)
            self.counts.add("gnomon_shipper_batches_total")
            self._acknowledged()

    async def _connected(self) -> Producer:
        """Return the producer, a new one when there is none; waits for Kafka and its topics as long as it takes."""
        delay = FIRST_DELAY_SECONDS
        while self._producer is None:
            try:
                self._producer = await Producer(self._kafka).__aenter__()
            except (KafkaAway, KafkaRefused, TopicsMissing, ProducerLost) as error:
                self._stall(str(error))
                await asyncio.sleep(delay)
                delay = min(MAX_DELAY_SECONDS, delay * 2)
            else:
                self.counts.add("gnomon_shipper_reconnects_total")
                if not self._under_way:
                    self._acknowledged()
        return self._producer

    async def _disconnect(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.__aexit__(None, None, None)

    # --- what people are told -----------------------------------------------------------------------------------------

    def _acknowledged(self) -> None:
        self._acknowledged_at = time.monotonic()
        self._heard.last = ""
        self.counts.set("gnomon_shipper_up", 1)
        if self._stalled_since is not None:
            log.warning(
                "Kafka takes events again log=%s after_seconds=%.1f", self.path, time.monotonic() - self._stalled_since
            )
            self._stalled_since = None

    def _stall(self, why: str) -> None:
        now = time.monotonic()
        self.counts.set("gnomon_shipper_up", 0)
        if self._stalled_since is None:
            self._stalled_since = now
        elif now < self._said_at + REMINDER_SECONDS:
            return
        self._said_at = now
        log.warning("Kafka takes no events, the log keeps them log=%s waiting=%d: %s", self.path, self.lag, why)

    async def _watch(self) -> None:
        """Notice that nothing is acknowledged, which the client does not tell: it tries again for ever."""
        while True:
            await asyncio.sleep(STALL_SECONDS / 3)
            if self._under_way and time.monotonic() - self._acknowledged_at > STALL_SECONDS:
                is_said = self._stalled_since is not None and time.monotonic() < self._said_at + REMINDER_SECONDS
                self._stall("" if is_said else await self._why())

    async def _why(self) -> str:
        """Return what keeps the cluster from taking events, as far as asking tells."""
        names = [self._kafka.topic_prefix + topic for topic in SENT]
        try:
            async with opened(self._kafka) as admin:
                cluster = await admin.look(names)
        except GnomonError as error:
            return str(error)
        missing = [name for name in names if name not in cluster.topics]
        if missing:
            return str(TopicsMissing(missing))
        return f"it answers, and does not store what it is sent: {self._heard.last or 'it does not say why'}"
