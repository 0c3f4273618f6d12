"""A lane over a real log and a cluster that fails as it is told: order, position, and what people are told."""

import asyncio
import logging
import random
import shutil
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gnomon.config.model import KafkaSettings
from gnomon.events.log import Consumer, Writer, status
from gnomon.events.topics import ATTEMPTS, BREAKERS, HEADS, RESPONSES
from gnomon.kafka.admin import Cluster
from gnomon.kafka.errors import KafkaAway, KafkaRefused
from gnomon.kafka.topics import Found
from proxy.shipper import lane as lanes
from proxy.shipper.cluster import ProducerLost, RecordsRefused
from proxy.shipper.lane import CONSUMER, Lane
from tests.proxy.shipper.shipping import event, seq_of

KAFKA = KafkaSettings(bootstrap_servers="nowhere:1")
Fault = Callable[[str, int, Sequence[bytes]], Exception | None]


class Batch:
    """As aiokafka's: takes records until it is full."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def append(self, *, timestamp: int, key: bytes, value: bytes) -> object | None:
        if len(self.values) >= 50:
            return None
        self.values.append(value)
        return self


class FakeCluster:
    """Partitions in memory, and a rule of a real one: a producer that had an error at a partition is done there."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        self.fault: Fault = lambda topic, partition, values: None
        self.n_sessions = 0
        self.n_under_way: dict[tuple[str, int], int] = defaultdict(int)
        self.connect: Callable[[], Exception | None] = lambda: None

    def producer(self, kafka: KafkaSettings) -> "FakeProducer":
        return FakeProducer(self)


class FakeProducer:
    n_partitions = {RESPONSES: 4, ATTEMPTS: 3, HEADS: 3, BREAKERS: 1}  # noqa: RUF012  nobody changes it

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._broken: set[tuple[str, int]] = set()

    async def __aenter__(self) -> "FakeProducer":
        if error := self._cluster.connect():
            raise error
        self._cluster.n_sessions += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def new_batch(self) -> Batch:
        return Batch()

    async def send(self, batch: Batch, topic: str, partition: int) -> None:
        place = (topic, partition)
        self._cluster.n_under_way[place] += 1
        assert self._cluster.n_under_way[place] == 1, "two batches under way for one partition"
        await asyncio.sleep(0)
        self._cluster.n_under_way[place] -= 1
        assert place not in self._broken, "sent where the numbering has a gap"
        if error := self._cluster.fault(topic, partition, batch.values):
            self._broken.add(place)
            raise error
        self._cluster.stored[place] += batch.values


class FakeAdmin:
    """Finds every topic."""

    async def look(self, names: Sequence[str]) -> Cluster:
        return Cluster(1, {name: Found(1, {}) for name in names})


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster in memory in place of Kafka, and no waiting between tries."""
    fake = FakeCluster()
    monkeypatch.setattr(lanes, "Producer", fake.producer)
    monkeypatch.setattr(lanes, "FIRST_DELAY_SECONDS", 0.001)
    monkeypatch.setattr(lanes, "MAX_DELAY_SECONDS", 0.002)
    monkeypatch.setattr(lanes, "LINGER_SECONDS", 0.001)
    monkeypatch.setattr(lanes, "DAMAGED_SECONDS", 0.01)
    monkeypatch.setattr(lanes, "CHUNK_EVENTS", 400)
    return fake


@pytest.fixture
def writer(tmp_path: Path) -> Any:
    one = Writer(tmp_path / "0", segment_bytes=1 << 16, max_bytes=64 << 20)
    yield one
    one.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  (the lane tells nobody)
            await asyncio.sleep(0.002)


def position(path: Path) -> int:
    consumer = Consumer(path, CONSUMER)
    try:
        return consumer.get()
    finally:
        consumer.close()


def ship(path: Path, wanted: Callable[[Lane], bool]) -> Lane:
    """Run a lane until the condition holds, then stop it in good order."""

    async def run() -> Lane:
        stop = asyncio.Event()
        lane = Lane(path, KAFKA, stop)
        task = asyncio.ensure_future(lane.run())
        try:
            await until(lambda: task.done() or wanted(lane))
        finally:
            stop.set()
            await asyncio.wait_for(task, 20)
        return lane

    return asyncio.run(run())


def looked_at(n: int) -> Callable[[Lane], bool]:
    """Return a condition that holds when it was asked for that often: the lane had time to look again and again."""
    left = iter(range(n))
    return lambda lane: next(left, None) is None


def check_order(cluster: FakeCluster, n: int) -> int:
    """Every event is there, in order at its first occurrence; return how many are repeated."""
    n_stored = 0
    seen: set[int] = set()
    for values in cluster.stored.values():
        greatest = -1
        here: set[int] = set()
        for value in values:
            seq = seq_of(value)
            assert seq > greatest or seq in here
            greatest = max(greatest, seq)
            here.add(seq)
        n_stored += len(values)
        seen |= here
    assert seen == set(range(n))
    return n_stored - n


def test_a_producer_that_is_lost_again_and_again_keeps_the_order(cluster: FakeCluster, writer: Writer) -> None:
    """Whether what was under way is stored or not: all is there, in order, and the position is at the end."""
    dice = random.Random(1)

    def fault(topic: str, partition: int, values: Sequence[bytes]) -> Exception | None:
        if dice.random() > 0.2:
            return None
        if dice.random() < 0.5:  # stored, and the answer was lost
            cluster.stored[topic, partition] += values
        return ProducerLost("gone")

    cluster.fault = fault
    for seq in range(5_000):
        writer.append(event(seq)[2])
    path = Path(writer.path)
    lane = ship(path, lambda lane: lane.counts.get("gnomon_shipper_events_total") == 5_000)

    assert check_order(cluster, 5_000) > 0
    assert position(path) == 5_000
    assert lane.counts.get("gnomon_shipper_reconnects_total") == cluster.n_sessions > 10


def test_a_lane_that_dies_at_any_await_repeats_a_chunk_at_most(cluster: FakeCluster, writer: Writer) -> None:
    """Cancelled anywhere and begun anew, as a killed process is: nothing lost, order kept."""
    dice = random.Random(2)
    path = Path(writer.path)
    for seq in range(6_000):
        writer.append(event(seq)[2])

    async def run() -> int:
        n_deaths = 0
        while True:
            lane = Lane(path, KAFKA, asyncio.Event())
            task = asyncio.ensure_future(lane.run())
            for _ in range(dice.randrange(1, 60)):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            cluster.n_under_way.clear()
            if position(path) == 6_000:
                return n_deaths
            n_deaths += 1

    n_deaths = asyncio.run(run())

    assert n_deaths > 5
    assert check_order(cluster, 6_000) <= 2 * 400 * n_deaths


def test_a_cluster_that_says_no_is_asked_again(
    cluster: FakeCluster, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    """Its answer is told once, and when it lets us in, what waited is sent."""
    answers: list[Exception | None] = [KafkaRefused("not you"), KafkaAway("gone"), KafkaRefused("not you"), None]
    cluster.connect = lambda: answers.pop(0) if answers else None
    writer.append(event(0)[2])
    with caplog.at_level(logging.INFO, "gnomon.shipper"):
        ship(Path(writer.path), lambda lane: lane.counts.get("gnomon_shipper_events_total") == 1)

    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 2
    assert "waiting=1: not you" in told[0]
    assert told[1].startswith("Kafka takes events again")


def test_a_record_without_an_end_of_refusals_does_not_stop_the_others(cluster: FakeCluster, writer: Writer) -> None:
    """The refused one is replaced; those beside it are stored once."""

    def fault(topic: str, partition: int, values: Sequence[bytes]) -> Exception | None:
        bad = any(b"head_base64" not in value and seq_of(value) == 777 for value in values)
        return RecordsRefused("too_large") if bad else None

    cluster.fault = fault
    for seq in range(2_000):
        writer.append(event(seq)[2])
    lane = ship(Path(writer.path), lambda lane: lane.counts.get("gnomon_shipper_events_total") == 2_000)

    assert lane.counts.get("gnomon_shipper_dead_letters_total", "too_large") == 1
    assert check_order(cluster, 2_000) == 0
    assert not lane.is_stalled


def test_a_cluster_that_stores_nothing_is_told_with_its_reason(
    cluster: FakeCluster, writer: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its client tries for ever and says so in its own log alone; ours says it once, and when it is over."""
    released = asyncio.Event()

    async def send(self: FakeProducer, batch: Batch, topic: str, partition: int) -> None:
        logging.getLogger("aiokafka").warning("retrying: NotEnoughReplicas")
        await released.wait()

    @asynccontextmanager
    async def opened(kafka: KafkaSettings) -> AsyncIterator[FakeAdmin]:
        yield FakeAdmin()

    monkeypatch.setattr(FakeProducer, "send", send)
    monkeypatch.setattr(lanes, "opened", opened)
    monkeypatch.setattr(lanes, "STALL_SECONDS", 0.03)
    writer.append(event(0)[2])

    def release(lane: Lane) -> bool:
        if lane.is_stalled:
            assert lane.counts.get("gnomon_shipper_up") == 0
            released.set()
        return lane.counts.get("gnomon_shipper_events_total") == 1

    with caplog.at_level(logging.WARNING, "gnomon.shipper"):
        lane = ship(Path(writer.path), release)

    told = [record.getMessage() for record in caplog.records if record.name == "gnomon.shipper"]
    assert len(told) == 2
    assert told[0].endswith("it answers, and does not store what it is sent: retrying: NotEnoughReplicas")
    assert told[1].startswith("Kafka takes events again")
    assert lane.counts.get("gnomon_shipper_up") == 1


def test_another_log_in_the_same_place_is_begun_at_0(
    cluster: FakeCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its id is another one, so its numbers are too."""
    path = tmp_path / "0"
    first = Writer(path, segment_bytes=1 << 16, max_bytes=64 << 20)
    for seq in range(100):
        first.append(event(seq)[2])

    async def run() -> None:
        stop = asyncio.Event()
        lane = Lane(path, KAFKA, stop)
        task = asyncio.ensure_future(lane.run())
        await until(lambda: lane.counts.get("gnomon_shipper_events_total") == 100)
        first.close()
        shutil.rmtree(path)
        second = Writer(path, segment_bytes=1 << 16, max_bytes=64 << 20)
        for seq in range(100, 130):
            second.append(event(seq)[2])
        await until(lambda: lane.counts.get("gnomon_shipper_events_total") == 130)
        stop.set()
        await asyncio.wait_for(task, 10)
        second.close()

    with caplog.at_level(logging.WARNING, "gnomon.shipper"):
        asyncio.run(run())

    assert check_order(cluster, 130) == 0
    assert position(path) == 30


def test_a_damaged_log_stands_still_and_says_why(
    cluster: FakeCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What lies before the damage is sent; the line is told once, and a metric shows it."""
    path = tmp_path / "0"
    writer = Writer(path, segment_bytes=1 << 16, max_bytes=64 << 20)
    for seq in range(60):
        writer.append(event(seq)[2])
    writer.close()
    segment = next(path.glob("seg-*"))
    data = bytearray(segment.read_bytes())
    place = data.index(b'"event_id":"00000000000000aa:40"')
    data[place : place + 4] = b"####"
    segment.write_bytes(bytes(data))
    with caplog.at_level(logging.ERROR, "gnomon.shipper"):
        lane = ship(path, looked_at(40))

    assert check_order(cluster, 40) == 0
    assert position(path) == 40
    assert lane.counts.get("gnomon_shipper_log_failed") == 1
    assert lane.counts.get("gnomon_shipper_events_total") == 40
    assert len([record for record in caplog.records if "record 40" in record.getMessage()]) == 1


def test_records_that_are_gone_are_counted_and_the_rest_is_sent(
    cluster: FakeCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody removed old segments: a loss, and never silence."""
    path = tmp_path / "0"
    writer = Writer(path, segment_bytes=1 << 16, max_bytes=64 << 20)
    for seq in range(1_000):
        writer.append(event(seq)[2])
    Consumer(path, CONSUMER).close()
    min(path.glob("seg-*")).unlink()
    start = status(path).start
    assert start > 0
    with caplog.at_level(logging.ERROR, "gnomon.shipper"):
        lane = ship(path, lambda lane: position(path) == 1_000)
    writer.close()

    assert lane.counts.get("gnomon_shipper_lost_events_total") == start
    assert sum(len(values) for values in cluster.stored.values()) == 1_000 - start
    assert any(f"n={start}" in record.getMessage() for record in caplog.records)


def test_a_consumer_that_holds_the_log_back_is_named(
    cluster: FakeCluster, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    """A log that was read by another consumer before fills up, although all of it is shipped."""
    Consumer(writer.path, "ingest").close()
    writer.append(event(0)[2])
    with caplog.at_level(logging.WARNING, "gnomon.shipper"):
        ship(Path(writer.path), lambda lane: lane.counts.get("gnomon_shipper_events_total") == 1)

    assert any("remove its file at-ingest" in record.getMessage() for record in caplog.records)


def test_a_full_log_takes_events_again_when_kafka_is_back(cluster: FakeCluster, tmp_path: Path) -> None:
    """What was refused meanwhile is counted by the log; what it had taken is all sent."""
    path = tmp_path / "0"
    writer = Writer(path, segment_bytes=1 << 16, max_bytes=4 << 16)
    n = 0
    while writer.append(event(n)[2]) >= 0:
        n += 1
    assert writer.append(event(n)[2]) == -1
    answers = [KafkaAway("gone")] * 5
    cluster.connect = lambda: answers.pop() if answers else None
    lane = ship(path, lambda lane: lane.counts.get("gnomon_shipper_events_total") == n)
    writer.prepare_next()

    assert writer.append(event(n)[2]) == n
    assert status(path).dropped == writer.dropped >= 2
    assert check_order(cluster, n) == 0
    assert lane.lag == 0
    writer.close()
