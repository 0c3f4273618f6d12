"""The events that the topics still have, for building the tables again; and whether anybody reads them now."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, errors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import TopicPartition

from gnomon.kafka.client import arguments
from gnomon.kafka.errors import KafkaAway, KafkaRefused, TopicsMissing
from ingest.kafka.settings import WorkerSettings
from ingest.kafka.topic_ids import topic_ids

T = TypeVar("T")

IDLE_SECONDS = 30.0
"""Without a record before the end of a partition: Kafka is away."""
MAX_EVENTS = 20_000
MAX_BYTES = 32 << 20


class TopicSource:
    """One partition; see `ingest.rebuild.Source`."""

    has_repetitions = True

    def __init__(self, settings: WorkerSettings, topic_id: str, tp: TopicPartition, begin: int, end: int) -> None:
        self._settings = settings
        self._tp = tp
        self.key = (topic_id, tp.topic, tp.partition)
        self.begin, self.end = begin, end

    def read(self, start: int) -> Iterator[tuple[Sequence[int], list[bytes]]]:
        """Yield offsets and records from `start` to the end, in batches."""
        loop = asyncio.new_event_loop()
        try:
            consumer = loop.run_until_complete(self._open(start))
            try:
                while start < self.end:
                    offsets, records = loop.run_until_complete(self._batch(consumer))
                    if not offsets:
                        return
                    start = offsets[-1] + 1
                    yield offsets, records
            finally:
                loop.run_until_complete(consumer.stop())
        finally:
            loop.close()

    async def _open(self, start: int) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **arguments(self._settings.kafka),
            enable_auto_commit=False,
            max_partition_fetch_bytes=self._settings.max_fetch_bytes,
        )
        await consumer.start()
        consumer.assign([self._tp])
        consumer.seek(self._tp, start)
        return consumer

    async def _batch(self, consumer: AIOKafkaConsumer) -> tuple[list[int], list[bytes]]:
        offsets: list[int] = []
        records: list[bytes] = []
        n_bytes = 0
        while len(records) < MAX_EVENTS and n_bytes < MAX_BYTES:
            if await consumer.position(self._tp) >= self.end:
                break
            found = await consumer.getmany(self._tp, timeout_ms=int(IDLE_SECONDS * 1000), max_records=MAX_EVENTS)
            chosen = [record for record in found.get(self._tp, ()) if record.offset < self.end]
            if not found:
                raise KafkaAway(f"no record of {self._tp.topic}/{self._tp.partition} within {IDLE_SECONDS:.0f} s")
            offsets += [record.offset for record in chosen]
            records += [record.value or b"" for record in chosen]
            n_bytes += sum(len(record.value or b"") for record in chosen)
        return offsets, records


def sources(settings: WorkerSettings) -> list[TopicSource]:
    """
    Return all partitions of the topics.

    Raises:
        KafkaAway, KafkaRefused, TopicsMissing.
    """

    async def look(consumer: AIOKafkaConsumer) -> list[TopicSource]:
        found = await topic_ids(settings.kafka, settings.sources)
        if missing := [name for name in settings.sources if name not in found]:
            raise TopicsMissing(missing)
        tps = [TopicPartition(name, n) for name, topic in found.items() for n in range(topic.n_partitions)]
        begins, ends = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
        return [TopicSource(settings, found[tp.topic].id, tp, begins[tp], ends[tp]) for tp in tps]

    return _ask(settings, lambda: AIOKafkaConsumer(**arguments(settings.kafka)), look, "stop")


def n_members(settings: WorkerSettings) -> int:
    """
    Return how many workers the group has now.

    Raises:
        KafkaAway, KafkaRefused.
    """

    async def look(admin: AIOKafkaAdminClient) -> int:
        answers = await admin.describe_consumer_groups([settings.group])
        return sum(len(group[5]) for answer in answers for group in answer.groups)

    return _ask(settings, lambda: AIOKafkaAdminClient(**arguments(settings.kafka)), look, "close")


def _ask(
    settings: WorkerSettings, new: Callable[[], AIOKafkaConsumer], look: Callable[..., Awaitable[T]], end: str
) -> T:
    async def ask() -> T:
        client = new()
        try:
            await client.start()
            return await look(client)
        except (errors.KafkaConnectionError, TimeoutError) as error:
            raise KafkaAway(f"no answer from Kafka at {settings.kafka.bootstrap_servers}: {error}") from error
        except errors.KafkaError as error:
            raise KafkaRefused(f"Kafka at {settings.kafka.bootstrap_servers}: {error}") from error
        finally:
            await getattr(client, end)()

    return asyncio.run(ask())
