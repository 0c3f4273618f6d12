"""What a consumer fetched reaches the feed that is to store it, or is fetched again."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiokafka.structs import ConsumerRecord, OffsetAndMetadata, TopicPartition

from gnomon.config.model import KafkaSettings, Settings
from gnomon.events import topics
from ingest.kafka import consumption
from ingest.kafka.consumption import Consumption
from ingest.kafka.lanes import Lane, Lanes
from ingest.kafka.settings import WorkerSettings
from ingest.kafka.topic_ids import Topic
from ingest.metrics import Metrics
from ingest.settings import context
from ingest.sink import Sink
from tests.ingest.events import mixture
from tests.ingest.kafka.test_consumption import nowhere
from tests.ingest.memory_engine import MemoryEngine

TP = TopicPartition(topics.RESPONSES, 0)
RECORDS = [record for record in mixture(64) if b'"no":"event"' not in record]


class OneTopic:
    """As much of a consumer of one partition as is asked: a position, and answers that can be held back."""

    def __init__(self, missing: Collection[int] = ()) -> None:
        self.position = 0
        self.n_records = 0
        self.missing = missing
        self.n_fetches = 0
        self.is_waiting = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    def pause(self, *tps: TopicPartition) -> None:
        """Nothing comes before `resume` anyhow."""

    def resume(self, *tps: TopicPartition) -> None:
        """What comes is told by `n_records`."""

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self.position = offset

    async def getmany(self, *tps: TopicPartition, timeout_ms: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Answer from where it stands when it answers, as the real one after a rebalance."""
        self.n_fetches += 1
        self.is_waiting.set()
        await self.may_answer.wait()
        await asyncio.sleep(0.001)
        offsets = [n for n in range(self.position, min(self.position + 10, self.n_records)) if n not in self.missing]
        if not offsets:
            return {}
        self.position = offsets[-1] + 1
        return {TP: [_fetched(n) for n in offsets]}

    async def beginning_offsets(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, 0)

    async def end_offsets(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, self.n_records)

    async def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Nobody looks."""


def _fetched(offset: int) -> ConsumerRecord:
    value = RECORDS[offset]
    return ConsumerRecord(TP.topic, TP.partition, offset, 0, 0, None, value, None, 0, len(value), ())


SETTINGS = WorkerSettings(KafkaSettings(bootstrap_servers="nowhere:1"))


@asynccontextmanager
async def member(
    consumer: OneTopic, engine: MemoryEngine, settings: WorkerSettings = SETTINGS
) -> AsyncIterator[Consumption]:
    """A member of the group that was given the partition and fetches."""
    one = Consumption(settings, Lanes([engine]), context(Settings()), Metrics(), nowhere)
    one._consumer = consumer
    await one.given({TP})
    fetching = asyncio.create_task(one._fetch(one))
    try:
        yield one
    finally:
        consumer.may_answer.set()
        await one._give_up([TP])
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)
        one._lanes.close()


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@pytest.fixture(autouse=True)
def known_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nobody to ask for the topic's id."""

    async def ids(kafka: KafkaSettings, names: Collection[str]) -> dict[str, Topic]:
        return {name: Topic("a" * 32, 1) for name in names}

    monkeypatch.setattr(consumption, "topic_ids", ids)


def test_what_was_asked_for_before_a_rebalance_and_comes_after_it_is_not_lost() -> None:
    """The consumer stands behind it, and the partition's next feed has not seen it: it is fetched again."""
    engine = MemoryEngine()

    async def run() -> None:
        consumer = OneTopic()
        async with member(consumer, engine) as one:
            await _until(lambda: one._feeds[TP].state == "reading")
            consumer.may_answer.clear()
            n_fetches = consumer.n_fetches
            await _until(lambda: consumer.n_fetches > n_fetches)
            await one.taken_away({TP})
            await one.given({TP})
            feed = one._feeds[TP]
            await _until(lambda: feed.state == "reading")
            consumer.n_records = len(RECORDS)
            consumer.may_answer.set()
            await _until(lambda: feed.next == len(RECORDS))
        assert feed.n_events == len(RECORDS)

    asyncio.run(run())


def test_records_that_are_not_there_are_asked_for_once_more_and_then_left_out() -> None:
    """A hole that is met twice is the topic's own: compaction, or a transaction's mark."""
    engine = MemoryEngine()

    async def run() -> None:
        consumer = OneTopic(missing={3, 10, 11})
        async with member(consumer, engine) as one:
            consumer.n_records = len(RECORDS)
            feed = one._feeds[TP]
            await _until(lambda: feed.next == len(RECORDS))
        assert feed.n_events == len(RECORDS) - 3

    asyncio.run(run())


def test_a_partition_that_is_taken_away_before_its_turn_is_not_taken_over() -> None:
    """Its next owner would be refused from then on, by one who reads nothing any more."""
    engine = MemoryEngine()

    async def run() -> None:
        async with member(OneTopic(), engine) as one:
            await _until(lambda: one._feeds[TP].state == "reading")
            before = dict(engine.epochs)
            lane, may_end = one._feeds[TP].lane, threading.Event()
            busy = asyncio.create_task(lane.run(may_end.wait, 30))
            await one.taken_away({TP})
            await one.given({TP})
            await asyncio.sleep(0)  # it asks its lane
            leaving = asyncio.create_task(one.taken_away({TP}))
            await asyncio.sleep(0)
            may_end.set()
            await asyncio.gather(busy, leaving)
        assert engine.epochs == before

    asyncio.run(run())


def test_what_waits_in_a_lane_is_taken_back_with_its_wait() -> None:
    """What has begun goes on to its end."""
    done: list[str] = []

    async def run() -> None:
        lane = Lane(MemoryEngine(), 0)
        has_begun, may_end = threading.Event(), threading.Event()

        def long() -> None:
            has_begun.set()
            may_end.wait(30)
            done.append("long")

        waits = [asyncio.create_task(lane.run(long)), asyncio.create_task(lane.run(done.append, "short"))]
        await asyncio.sleep(0)
        await asyncio.to_thread(has_begun.wait, 30)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        may_end.set()
        await lane.run(done.append, "last")
        lane.close()
        lane.join()

    asyncio.run(run())
    assert done == ["long", "last"]


def test_a_former_owner_that_comes_late_does_not_stop_the_partition() -> None:
    """Whoever has it from the group takes it over again after the session timeout, and stores what was refused."""
    engine = MemoryEngine()

    async def run() -> None:
        consumer = OneTopic()
        async with member(consumer, engine, replace(SETTINGS, session_seconds=0.01)) as one:
            feed = one._feeds[TP]
            await _until(lambda: feed.state == "reading")
            Sink(engine, "a" * 32, TP.topic, TP.partition).take_over()
            consumer.n_records = len(RECORDS)
            await _until(lambda: feed.next == len(RECORDS))
            assert feed.fenced_at > 0

    asyncio.run(run())
    assert len({row[-4:] for row in engine.tables["requests"]}) == len(engine.tables["requests"]) > 0


def test_an_owner_that_comes_again_and_again_counts_from_the_first_time() -> None:
    """So two groups that store the same partition are told from one owner that was late, and one of them ends."""
    engine = MemoryEngine()
    settings = replace(SETTINGS, session_seconds=0.01, fenced_seconds=60)

    async def run() -> list[float]:
        consumer = OneTopic()
        async with member(consumer, engine, settings) as one:
            feed = one._feeds[TP]
            seen = []
            for n in range(10, 40, 10):
                await _until(lambda: feed.state == "reading")
                Sink(engine, "a" * 32, TP.topic, TP.partition).take_over()
                consumer.n_records = n
                await _until(lambda n=n: feed.next == n)  # type: ignore[misc]
                seen.append(feed.fenced_at)
            return seen

    first, *others = asyncio.run(run())
    assert others == [first, first]
