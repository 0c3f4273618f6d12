"""
The member of the consumer group, as a Faust service: which partitions are ours, what is fetched, what is committed.

Why a plain aiokafka consumer and not Faust's own. Faust's acknowledgements commit past events that are not done, its
per-message path costs thirty times as much, and to hand over batches one overrides six of its private methods. Here
all is aiokafka's public interface, and the place to read from comes from the sink (`seek`), for which Faust's consumer
has no place: it goes back to the committed offsets at each rebalance. docs/pipeline.md has the figures of both.

Partitions taken away: each feed stores what it has read and writes it down, while the group waits (`drain_seconds`).
Partitions given: paused until their feed has taken the key over, then read from where the tables are. A worker that
takes longer, is paused or cut off is fenced by the next owner's epoch; that, not the group, keeps rows from doubling.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

import faust
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka import errors as kafka_errors
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from gnomon.kafka.client import arguments
from gnomon.kafka.errors import KafkaAway, KafkaError, TopicsMissing
from ingest.batch import Poison
from ingest.engine import Engine
from ingest.errors import GroupsCollide
from ingest.kafka.feed import Feed
from ingest.kafka.lanes import Lanes
from ingest.kafka.settings import SOURCES, WorkerSettings
from ingest.kafka.topic_ids import topic_ids
from ingest.kafka.watchdog import Sign, Signs
from ingest.keeper import Keeper
from ingest.metrics import Metrics
from ingest.rows import Context

log = logging.getLogger("gnomon.ingest")

ASK_SECONDS = 15.0
"""For an answer of Kafka about a partition."""
BLIND_SECONDS = 2 * ASK_SECONDS
"""Kafka that has not told the ends of the partitions for so long counts as away."""
FETCH_WAIT_MS = 200
IDLE_SECONDS = 0.02
ASKED_BY_ANOTHER = -1
"""The turn of a feed that is not there any more."""
REBALANCE_MARGIN_SECONDS = 10.0
NEVER_MS = 7 * 86_400 * 1000
"""ClickHouse away for days is no reason to leave the group; the watchdog ends who really stands still."""

SendLetters = Callable[[TopicPartition, Sequence[Poison]], Awaitable[None]]


class Consumption(faust.Service):  # type: ignore[misc]
    """See the module's text."""

    def __init__(
        self,
        settings: WorkerSettings,
        lanes: Lanes,
        context: Context,
        metrics: Metrics,
        send_letters: SendLetters,
        **kwargs: object,
    ) -> None:
        """
        Args:
            settings: the worker's.
            lanes: closed when the service stops.
            context: prices, masks, what is kept.
            metrics: where it counts.
            send_letters: sends dead letters and returns when Kafka has them.
        """
        super().__init__(**kwargs)
        self.settings = settings
        self.metrics = metrics
        self._lanes = lanes
        self._context = context
        self._send_letters = send_letters
        self._feeds: dict[TopicPartition, Feed] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._to_commit: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, str] = {}
        self._trouble = ""
        self._trouble_said_at = float("-inf")
        self._trouble_since = 0.0
        self._kafka_said_at: dict[str, float] = {}
        self._is_rebalancing = True
        self._is_ending = False
        self._turned_at = self._seen_ends_at = time.monotonic()
        self._consumer: AIOKafkaConsumer | None = None

    # -- the service ---------------------------------------------------------------------------------------------------

    async def on_start(self) -> None:
        """Join the group."""
        settings = self.settings
        consumer = AIOKafkaConsumer(
            **arguments(settings.kafka),
            group_id=settings.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            partition_assignment_strategy=(RoundRobinPartitionAssignor,),
            session_timeout_ms=int(settings.session_seconds * 1000),
            heartbeat_interval_ms=int(settings.session_seconds * 1000 / 4),
            rebalance_timeout_ms=int((settings.drain_seconds + REBALANCE_MARGIN_SECONDS) * 1000),
            max_poll_interval_ms=NEVER_MS,
            max_partition_fetch_bytes=settings.max_fetch_bytes,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            metadata_max_age_ms=30_000,
            request_timeout_ms=int((settings.drain_seconds + REBALANCE_MARGIN_SECONDS + ASK_SECONDS) * 1000),
        )
        self._consumer = consumer
        consumer.subscribe(settings.sources, listener=_Listener(self))
        await consumer.start()

    async def on_stop(self) -> None:
        """Store what was read, commit, leave the group."""
        self._is_ending = True
        await self._give_up(list(self._feeds))
        if self._consumer is not None:
            await self._consumer.stop()
        self._lanes.close()

    @faust.Service.task  # type: ignore[untyped-decorator]
    async def _fetch(self) -> None:
        consumer = self._require_consumer()
        said = ""
        while not self.should_stop:
            feeds = {feed.tp: feed for feed in self._feeds.values() if feed.has_room}
            if not feeds:
                await asyncio.sleep(IDLE_SECONDS)
                continue
            turns = {tp: feed.turn for tp, feed in feeds.items()}
            try:
                found = await consumer.getmany(*feeds, timeout_ms=FETCH_WAIT_MS)
            except kafka_errors.IllegalStateError:
                continue  # a partition was taken away meanwhile
            except kafka_errors.ConsumerStoppedError:
                return
            except kafka_errors.KafkaError as error:
                if said != (said := f"{type(error).__name__}: {error}"):
                    log.warning("cannot fetch: %s", said)
                await asyncio.sleep(0.5)
                continue
            for tp, records in found.items():
                # The answer may have waited for a rebalance to end, and be of the partition's next feed.
                if records and (feed := self._feeds.get(tp)):
                    feed.add(records, turns[tp] if feed is feeds[tp] else ASKED_BY_ANOTHER)

    @faust.Service.task  # type: ignore[untyped-decorator]
    async def _turn(self) -> None:
        """Show the watchdog that the loop turns, and end where two groups store the same partitions."""
        while not self.should_stop:
            now = time.monotonic()
            self._count_time(now)
            for feed in self._feeds.values():
                if feed.state == "fenced" and now - feed.fenced_at > self.settings.fenced_seconds:
                    raise GroupsCollide(
                        f"{feed.name} is stored by another process, though the group {self.settings.group} has given "
                        "it to this one: workers of two groups or clusters write the same tables"
                    )
            await self.sleep(0.5)

    def _count_time(self, now: float) -> None:
        """
        Note that the loop turns, and which partitions had a reason to stand where they are until now.

        That ClickHouse or Kafka is away is one for all of them. It ends for all at the moment when the first one goes
        on, and the others need their time to follow.
        """
        self._turned_at = now
        if not self._feeds:
            self._seen_ends_at = now
        is_away = bool(self._trouble) or now - self._seen_ends_at > BLIND_SECONDS
        for feed in self._feeds.values():
            if is_away or not feed.lag:
                feed.moved_at = now

    @faust.Service.task  # type: ignore[untyped-decorator]
    async def _look_at_ends(self) -> None:
        consumer = self._require_consumer()
        while not self.should_stop:
            tps = list(self._feeds)
            if tps:
                try:
                    async with asyncio.timeout(ASK_SECONDS):
                        ends = await consumer.end_offsets(tps)
                except (kafka_errors.KafkaError, TimeoutError) as error:
                    log.debug("no ends of the partitions: %r", error)
                else:
                    self._seen_ends_at = time.monotonic()
                    for tp, end in ends.items():
                        if feed := self._feeds.get(tp):
                            feed.end = end
                            self.metrics.set("gnomon_ingest_lag_events", (feed.name,), feed.lag)
            await self.sleep(self.settings.look_seconds)

    @faust.Service.task  # type: ignore[untyped-decorator]
    async def _commit_now_and_then(self) -> None:
        while not self.should_stop:
            await self.sleep(self.settings.commit_seconds)
            await self._commit(ASK_SECONDS)

    @faust.Service.task  # type: ignore[untyped-decorator]
    async def _look_for_new_topics(self) -> None:
        while not self.should_stop:
            await self.sleep(self.settings.topic_seconds)
            known = dict(self._topic_ids)
            try:
                now = await topic_ids(self.settings.kafka, sorted(known))
            except KafkaError as error:
                log.debug("no topic ids: %s", error)
                continue
            for feed in list(self._feeds.values()):
                topic = now.get(feed.tp.topic)
                if topic is not None and topic.id != known.get(feed.tp.topic, topic.id):
                    feed.reopen()

    # -- what the group says -------------------------------------------------------------------------------------------

    async def given(self, tps: Collection[TopicPartition]) -> None:
        """Begin with partitions; none of them is read before its feed has taken it over."""
        if tps:
            self._require_consumer().pause(*tps)
        if self._is_ending:
            return  # the group has met once more before we could leave it
        # Twice: while one batch is stored the next one is read.
        share = self.settings.max_memory_bytes // max(2 * len(tps), 1)
        for tp in sorted(tps):
            feed = Feed(self, tp, self._lanes.take(), max_bytes=share)
            self._feeds[tp] = feed
            self._tasks[tp] = task = asyncio.create_task(feed.run(), name=f"feed {feed.name}")
            task.add_done_callback(self._ended)
        self._is_rebalancing = False
        self.metrics.set("gnomon_ingest_partitions", (), len(self._feeds))
        log.info("partitions given: %s", ", ".join(f"{tp.topic}/{tp.partition}" for tp in sorted(tps)) or "none")

    async def taken_away(self, tps: Collection[TopicPartition]) -> None:
        """End with partitions: store what was read of them while the group waits."""
        self._is_rebalancing = True
        if tps:
            log.info("partitions taken away: %s", ", ".join(f"{tp.topic}/{tp.partition}" for tp in sorted(tps)))
        await self._give_up(tps)

    async def _give_up(self, tps: Collection[TopicPartition]) -> None:
        # All that are open, not only what the group names: after a lost session it may name none.
        feeds, tasks = self._feeds, self._tasks
        self._feeds, self._tasks = {}, {}
        for feed in feeds.values():
            feed.revoke()
        if tasks:
            seconds = self.settings.drain_seconds
            if self._is_ending:
                seconds = min(seconds, self.settings.stop_seconds / 2)
            _, late = await asyncio.wait(tasks.values(), timeout=seconds)
            for task in late:
                task.cancel()
                log.warning("not stored in time, the next owner will: %s", task.get_name())
        for feed in feeds.values():
            self._lanes.give_back(feed.lane)
        await self._commit(2.0)
        self._to_commit = {}

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.critical("a feed has failed: %s", task.get_name(), exc_info=error)
            self.add_future(self.crash(error))

    async def _commit(self, timeout_seconds: float) -> None:
        """Tell Kafka how far the partitions are stored, for its tools to show; what fails is told the next time."""
        chosen, self._to_commit = self._to_commit, {}
        if not chosen:
            return
        offsets = {tp: OffsetAndMetadata(offset, "") for tp, offset in chosen.items()}
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._require_consumer().commit(offsets)
        except (kafka_errors.KafkaError, TimeoutError) as error:
            log.debug("not committed: %r", error)
            self._to_commit = {**chosen, **self._to_commit} if not self._is_rebalancing else self._to_commit

    # -- what the feeds ask --------------------------------------------------------------------------------------------

    async def topic_id(self, topic: str) -> str:
        """Return the id of a topic now; raises KafkaError."""
        found = await topic_ids(self.settings.kafka, [topic])
        if topic not in found:
            raise TopicsMissing([topic])
        self._topic_ids[topic] = found[topic].id
        return found[topic].id

    async def ends(self, tp: TopicPartition) -> tuple[int, int]:
        """Return the first offset there is and the one after the last."""
        consumer = self._require_consumer()
        async with asyncio.timeout(ASK_SECONDS):
            begin = await consumer.beginning_offsets([tp])
            end = await consumer.end_offsets([tp])
        return int(begin[tp]), int(end[tp])

    def stand_at(self, tp: TopicPartition, offset: int) -> None:
        """Read the partition from there."""
        consumer = self._require_consumer()
        try:
            consumer.seek(tp, offset)
            consumer.resume(tp)
        except kafka_errors.IllegalStateError as error:
            raise KafkaAway(f"{tp.topic}/{tp.partition} was taken away meanwhile") from error

    async def send_letters(self, tp: TopicPartition, poison: Sequence[Poison]) -> None:
        """Send dead letters; return when Kafka has them."""
        await self._send_letters(tp, poison)

    def stored(self, tp: TopicPartition, offset: int) -> None:
        """Every record below is stored and written down."""
        self._to_commit[tp] = offset

    def new_keeper(self, engine: Engine, topic_id: str, tp: TopicPartition) -> Keeper:
        """Return the keeper of a partition's key."""
        settings = self.settings
        is_of_requests = tp.topic == settings.kafka.topic_prefix + SOURCES[0]
        return Keeper(
            engine,
            self._context,
            self.metrics,
            (topic_id, tp.topic, tp.partition),
            name=f"{tp.topic}/{tp.partition}",
            missing_horizon_seconds=settings.missing_horizon_seconds if is_of_requests else None,
            has_repetitions=True,
        )

    def kafka_is_in_the_way(self, name: str, error: Exception) -> None:
        """A partition cannot go on because of Kafka; said once for all that meet the same, and again now and then."""
        now, kind = time.monotonic(), type(error).__name__
        if now - self._kafka_said_at.get(kind, float("-inf")) >= self.settings.pace.repeat_line_seconds:
            self._kafka_said_at[kind] = now
            log.warning("Kafka is in the way, waiting log=%s: %s", name, str(error) or kind)

    def engine_is_away(self, error: Exception) -> None:
        """ClickHouse did not answer, or said no."""
        now = time.monotonic()
        if not self._trouble:
            self._trouble_since = now
        if not self._trouble or now - self._trouble_said_at >= self.settings.pace.repeat_line_seconds:
            log.warning("ClickHouse is away, waiting: %s", error)
            self._trouble_said_at = now
        self._trouble = str(error)
        self.metrics.set("gnomon_ingest_engine_up", (), 0)

    def engine_is_back(self) -> None:
        """ClickHouse has done what it was asked."""
        if self._trouble:
            log.info("ClickHouse is back after_seconds=%.1f", time.monotonic() - self._trouble_since)
        self._trouble = ""
        self.metrics.set("gnomon_ingest_engine_up", (), 1)

    # -- what it shows -------------------------------------------------------------------------------------------------

    def health(self) -> tuple[bool, str]:
        """Return whether all is well, and more as JSON. Called from other threads."""
        feeds = list(self._feeds.values())
        state = {
            "engine": self._trouble or "up",
            "rebalancing": self._is_rebalancing,
            "partitions": {feed.name: feed.failure or feed.state for feed in feeds},
            "lag": {feed.name: feed.lag for feed in feeds if feed.lag},
            "events": sum(feed.n_events for feed in feeds),
        }
        is_well = not self._trouble and all(feed.state in ("reading", "opening", "ended") for feed in feeds)
        return is_well, json.dumps(state)

    def signs(self) -> Signs:
        """Return what the watchdog judges by. Called from its thread."""
        return Signs(
            self._turned_at,
            self._seen_ends_at,
            tuple(
                Sign(feed.name, feed.lag, feed.moved_at, bool(self._trouble) or feed.state in ("failed", "fenced"))
                for feed in list(self._feeds.values())
            ),
        )

    def _require_consumer(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            raise RuntimeError("not started")
        return self._consumer


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """What aiokafka tells of rebalances."""

    def __init__(self, consumption: Consumption) -> None:
        self._consumption = consumption

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        await self._consumption.taken_away(revoked)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        await self._consumption.given(assigned)
