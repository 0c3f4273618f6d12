"""
One suite for the embedded runner and the Kafka worker: same events in, same rows out, byte for byte.

What "same" leaves out is defined in `tests.ingest.conformance`. Against an engine in memory for every cut and failure;
against the broker and the real engine for the whole of it.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from aiokafka.structs import ConsumerRecord, TopicPartition

from gnomon.config.model import KafkaSettings, Settings
from gnomon.events import codec, topics
from gnomon.events.log import Reader, Writer
from gnomon.kafka.partitions import partition_of
from ingest.batch import Poison
from ingest.engine import Engine
from ingest.kafka.feed import Feed
from ingest.kafka.lanes import Lane
from ingest.kafka.settings import WorkerSettings
from ingest.keeper import Keeper
from ingest.metrics import Metrics
from ingest.runner import Runner
from ingest.settings import RunnerSettings, context
from tests.ingest.conformance import Image, Place, image_of, image_of_memory, places_of, places_of_memory
from tests.ingest.events import mixture
from tests.ingest.kafka.cluster import Cluster
from tests.ingest.memory_engine import Fate, MemoryEngine

CONTEXT = context(Settings())
PACE = RunnerSettings(
    flush_seconds=0, quick_flush_seconds=0, progress_seconds=0, poll_seconds=0.001, retry_seconds=0.001,
    max_retry_seconds=0.001, missing_seconds=float("inf"), max_events=37,
)  # fmt: skip
N_PARTITIONS = 3
TOPIC_ID = "ab" * 16


class Stage(Protocol):
    """A runner over an engine in memory."""

    def run(self, records: Sequence[bytes], engine: MemoryEngine) -> dict[str, Place]:
        """Store records; return event id → where the event was put."""


class Embedded:
    """The log of one worker, and the embedded runner."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, records: Sequence[bytes], engine: MemoryEngine) -> dict[str, Place]:
        writer = Writer(self._folder / "0", segment_bytes=1 << 20, max_bytes=1 << 24)
        placed = {event_id(record): writer.append(record) for record in records}
        runner = Runner(self._folder, engine, CONTEXT, settings=PACE)
        log_id = Reader(self._folder / "0").log_id.hex()
        for _ in range(3000):
            runner._retry_at = float("-inf")
            runner.round()
            feed = runner._feeds["0"]
            if feed._keeper is not None and feed._keeper.sink.stored_next == len(records):
                break
        else:
            raise AssertionError("not stored")
        feed.forget()
        writer.close()
        return {name: (log_id, "log", 0, off) for name, off in placed.items()}


class Cluster3:
    """Topics of three partitions as lists, and a feed for each."""

    def run(self, records: Sequence[bytes], engine: MemoryEngine) -> dict[str, Place]:
        partitions: dict[TopicPartition, list[bytes]] = defaultdict(list)
        placed: dict[str, Place] = {}
        for record in records:
            tp = partition(record)
            placed[event_id(record)] = (TOPIC_ID, tp.topic, tp.partition, len(partitions[tp]))
            partitions[tp].append(record)
        asyncio.run(self._feed(partitions, engine))
        return placed

    async def _feed(self, partitions: dict[TopicPartition, list[bytes]], engine: MemoryEngine) -> None:
        host = Host(engine, partitions)
        lane = Lane(engine, 0)
        feeds = [Feed(host, tp, lane) for tp in partitions]
        tasks = [asyncio.create_task(feed.run()) for feed in feeds]
        try:
            async with asyncio.timeout(60):
                while any(host.committed.get(feed.tp) != len(partitions[feed.tp]) for feed in feeds):
                    for feed in feeds:
                        at = host.position.get(feed.tp)
                        if at is None or not feed.has_room or at >= len(partitions[feed.tp]):
                            continue
                        chosen = partitions[feed.tp][at : at + 11]
                        host.position[feed.tp] = at + len(chosen)
                        feed.add([fetched(feed.tp, at + i, value) for i, value in enumerate(chosen)], feed.turn)
                    await asyncio.sleep(0)
        finally:
            for feed in feeds:
                feed.revoke()
            await asyncio.gather(*tasks)
            lane.close()


class Host:
    """What a feed asks of the group's member, without Kafka."""

    def __init__(self, engine: MemoryEngine, partitions: dict[TopicPartition, list[bytes]]) -> None:
        self.settings = WorkerSettings(KafkaSettings(bootstrap_servers="nowhere:1"), PACE)
        self.metrics = Metrics()
        self.position: dict[TopicPartition, int] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.letters: list[tuple[TopicPartition, int]] = []
        self._partitions = partitions

    async def topic_id(self, topic: str) -> str:
        return TOPIC_ID

    async def ends(self, tp: TopicPartition) -> tuple[int, int]:
        return 0, len(self._partitions[tp])

    def stand_at(self, tp: TopicPartition, offset: int) -> None:
        self.position[tp] = offset

    async def send_letters(self, tp: TopicPartition, poison: Sequence[Poison]) -> None:
        self.letters += [(tp, one.off) for one in poison]

    def stored(self, tp: TopicPartition, offset: int) -> None:
        self.committed[tp] = offset

    def new_keeper(self, engine: Engine, topic_id: str, tp: TopicPartition) -> Keeper:
        return Keeper(
            engine, CONTEXT, self.metrics, (topic_id, tp.topic, tp.partition), name=tp.topic,
            missing_horizon_seconds=None, has_repetitions=True,
        )  # fmt: skip

    def kafka_is_in_the_way(self, name: str, error: Exception) -> None:
        """Nothing to tell."""

    def engine_is_away(self, error: Exception) -> None:
        """Nothing to tell."""

    def engine_is_back(self) -> None:
        """Nothing to tell."""


def partition(record: bytes) -> TopicPartition:
    """Return where the shipper would send a record."""
    try:
        name, key = topics.topic_and_key(codec.decode(record))
    except Exception:
        return TopicPartition(topics.RESPONSES, 0)
    return TopicPartition(name, partition_of(key.encode(), N_PARTITIONS))


def event_id(record: bytes) -> str:
    try:
        return codec.decode(record).event_id
    except Exception:
        return f"poison {record!r}"


def fetched(tp: TopicPartition, offset: int, value: bytes) -> ConsumerRecord:
    return ConsumerRecord(tp.topic, tp.partition, offset, 0, 0, None, value, None, 0, len(value), ())


@pytest.fixture(params=["embedded", "kafka"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Embedded(tmp_path) if request.param == "embedded" else Cluster3()


RECORDS = mixture(600, step_ns=7 * 60 * 10**9)
"""Over three days."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """What the embedded runner makes of the records when nothing goes wrong."""
    engine = MemoryEngine()
    Embedded(tmp_path_factory.mktemp("log")).run(RECORDS, engine)
    return image_of_memory(engine)


def places(placed: dict[str, Place], found: dict[str, set[Place]]) -> None:
    """Check that all rows of an event have the place where it was put, and no other event has it."""
    assert {name: {place} for name, place in placed.items() if name in found} == found
    assert len(set.union(*found.values())) == len(found)


def test_rows_are_the_same(stage: Stage, image: Image) -> None:
    """Every table, every column but the event's place."""
    engine = MemoryEngine()
    placed = stage.run(RECORDS, engine)

    assert image_of_memory(engine) == image
    places(placed, places_of_memory(engine))


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_the_same_whatever_fails(stage: Stage, image: Image, seed: int) -> None:
    """Inserts that are lost, stored in half of their partitions, or stored without an answer."""
    chance = random.Random(seed)
    fates: list[Fate] = ["stored", "stored", "stored", "stored", "lost", "torn", "stored_unknown"]
    fate: Callable[[], Fate] = lambda: chance.choice(fates)  # noqa: E731
    engine = MemoryEngine(fate)
    placed = stage.run(RECORDS, engine)

    assert image_of_memory(engine) == image
    places(placed, places_of_memory(engine))


def test_a_refused_record_is_the_same_one(stage: Stage) -> None:
    """Both find it, and store what is around it."""
    engine = MemoryEngine(refuses=lambda table, values: table == "requests" and "r100" in values[1])
    stage.run(RECORDS, engine)

    assert [(row[2], row[4]) for row in engine.tables["dead_letters"] if row[2] == "refused"] == [
        ("refused", RECORDS[100])
    ]
    assert sum(1 for row in engine.tables["requests"] if row[1] == "r100") == 0
    assert sum(1 for row in engine.tables["requests"] if row[1] == "r101") == 0  # no such request
    assert sum(1 for row in engine.tables["requests"] if row[1] == "r102") == 1


def test_dead_letters_are_told_of_on_kafka() -> None:
    """Each at least once, before its offset is committed."""
    engine = MemoryEngine()
    partitions = {TopicPartition(topics.RESPONSES, 0): [b"no event", *RECORDS[:5], b"neither"]}
    stage = Cluster3()
    hosts: list[Host] = []
    original = Host.__init__

    def remember(self: Host, *arguments: object) -> None:
        original(self, *arguments)  # type: ignore[arg-type]
        hosts.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Host, "__init__", remember)
        asyncio.run(stage._feed(partitions, engine))

    assert [off for _, off in hosts[0].letters] == [0, 6]


@pytest.mark.kafka
@pytest.mark.clickhouse
@pytest.mark.timeout(240)
def test_rows_are_the_same_in_clickhouse(cluster: Cluster, tmp_path: Path) -> None:
    """The product's own commands over a log and over a broker, the tables read back as text."""
    writer = Writer(tmp_path / "0", segment_bytes=1 << 20, max_bytes=1 << 24)
    for record in RECORDS:
        writer.append(record)
    writer.close()
    engine = cluster.clickhouse.connect()
    runner = Runner(tmp_path, engine, CONTEXT, settings=PACE)
    while cluster.n_stored < len(RECORDS):
        runner.round()
    for feed in runner._feeds.values():
        feed.forget()
    by_log = image_of(cluster)
    log_id = Reader(tmp_path / "0").log_id.hex()
    assert {place[:3] for found in places_of(cluster).values() for place in found} == {(log_id, "log", 0)}
    cluster.empty()
    cluster.produce(RECORDS)
    worker = cluster.start_worker()
    cluster.wait_stored(len(RECORDS))
    assert worker.stop() == 0, worker.said()

    assert image_of(cluster) == by_log
    offsets: dict[TopicPartition, int] = defaultdict(int)
    placed = {}
    for record in RECORDS:
        tp = TopicPartition(*cluster.place(record))
        placed[event_id(record)] = (tp.topic, tp.partition, offsets[tp])
        offsets[tp] += 1
    found = places_of(cluster)
    assert {name: {place[1:] for place in where} for name, where in found.items()} == {
        name: {place} for name, place in placed.items() if name in found
    }
