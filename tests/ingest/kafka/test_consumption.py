"""The group's member, where only a moment shows the difference."""

import asyncio
from collections.abc import Sequence

import pytest
from aiokafka.structs import TopicPartition

from gnomon.config.model import KafkaSettings, Settings
from gnomon.kafka.errors import KafkaAway
from ingest.batch import Poison
from ingest.kafka.consumption import Consumption
from ingest.kafka.lanes import Lanes
from ingest.kafka.settings import WorkerSettings
from ingest.kafka.watchdog import Patience, judge
from ingest.metrics import Metrics
from ingest.settings import context
from tests.ingest.memory_engine import MemoryEngine


class Paused:
    """As much of a consumer as is asked here."""

    def __init__(self) -> None:
        self.paused: list[TopicPartition] = []

    def pause(self, *tps: TopicPartition) -> None:
        self.paused += tps


class Behind:
    """As much of a feed as is asked here: five records are unread, and it has not moved since 0."""

    name = "t/0"
    lag = 5
    state = "reading"
    moved_at = 0.0


async def nowhere(tp: TopicPartition, poison: Sequence[Poison]) -> None:
    """Nothing is sent."""


def test_partitions_that_come_while_it_ends_are_left_alone() -> None:
    """The group may meet once more between the last batch and the leaving; nobody would store what is read then."""
    settings = WorkerSettings(KafkaSettings(bootstrap_servers="nowhere:1"))

    async def run() -> tuple[int, list[TopicPartition]]:
        consumption = Consumption(settings, Lanes([MemoryEngine()]), context(Settings()), Metrics(), nowhere)
        consumer = Paused()
        consumption._consumer = consumer
        consumption._is_ending = True
        await consumption.given({TopicPartition("t", 0)})
        consumption._lanes.close()
        return len(consumption._feeds), consumer.paused

    assert asyncio.run(run()) == (0, [TopicPartition("t", 0)])


def test_what_stood_still_for_an_outage_has_its_time_afterwards() -> None:
    """
    Of ClickHouse or of Kafka: when it is over for the first partition, the watchdog does not find the others to have
    stood still since it began. Without an outage it does.
    """
    settings = WorkerSettings(KafkaSettings(bootstrap_servers="nowhere:1"))
    patience = Patience(settings.stall_seconds, settings.blind_seconds, settings.frozen_seconds)

    async def run() -> list[str]:
        consumption = Consumption(settings, Lanes([MemoryEngine()]), context(Settings()), Metrics(), nowhere)
        feed = Behind()
        consumption._feeds[TopicPartition("t", 0)] = feed  # type: ignore[assignment]

        def said(now: float, *, sees_ends: bool = True) -> str:
            if sees_ends:
                consumption._seen_ends_at = now
            consumption._count_time(now)
            return judge(consumption.signs(), now, patience)

        found = [said(181)]
        feed.moved_at = 181
        consumption.engine_is_away(OSError("refused"))
        found.append(said(500))
        consumption.engine_is_back()
        found += [said(501), said(680), said(681)]
        found.append(said(900, sees_ends=False))
        found += [said(901), said(1080), said(1081)]
        consumption._lanes.close()
        return found

    stood = "t/0 has 5 unread records and has not moved for 181 s"

    assert asyncio.run(run()) == [stood, "", "", "", stood, "", "", "", stood]


def test_kafka_in_the_way_of_many_partitions_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """All meet the same outage, each of them every two seconds; another trouble has a line of its own."""
    settings = WorkerSettings(KafkaSettings(bootstrap_servers="nowhere:1"))

    async def run() -> None:
        consumption = Consumption(settings, Lanes([MemoryEngine()]), context(Settings()), Metrics(), nowhere)
        for _ in range(3):
            for name in ("t/0", "t/1"):
                consumption.kafka_is_in_the_way(name, KafkaAway("no answer"))
                consumption.kafka_is_in_the_way(name, TimeoutError())
        consumption._lanes.close()

    asyncio.run(run())

    assert [r.message for r in caplog.records if "Kafka is in the way" in r.message] == [
        "Kafka is in the way, waiting log=t/0: no answer",
        "Kafka is in the way, waiting log=t/0: TimeoutError",
    ]
