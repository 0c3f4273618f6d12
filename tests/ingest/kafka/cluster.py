"""A cluster for tests: topics on the broker, the embedded ClickHouse, workers as child processes."""

import asyncio
import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.structs import TopicPartition

from gnomon.events import codec, topics
from gnomon.kafka.partitions import partition_of
from ingest.tables import TABLES
from tests.ingest.engine_process import GNOMON, EngineProcess

READY = re.compile(r"gnomon ingest: ready at (http://\S+)")
HOME = ("requests", "comparisons", "heads", "reorgs", "breaker_transitions", "dead_letters")


class Cluster:
    """Topics with a prefix of their own, and who reads them."""

    def __init__(self, broker: str, clickhouse: EngineProcess, prefix: str, n_partitions: int = 2) -> None:
        self.broker = broker
        self.clickhouse = clickhouse
        self.prefix = prefix
        self.n_partitions = n_partitions
        self.config = clickhouse.folder / "cluster.yaml"
        self.config.write_text(
            "projects: [{id: main, upstreams: [{id: p1, endpoint: 'http://127.0.0.1:1', evm: {chainId: 31337}}]}]\n"
            f"gnomon:\n  clickhouse: {{url: '{clickhouse.url}'}}\n"
            f"  events: {{kafka: {{bootstrapServers: '{broker}', topicPrefix: '{prefix}'}}}}\n"
        )
        self.workers: list[Worker] = []

    def make_topics(self) -> None:
        """Make every topic there is."""

        async def make() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.broker)
            await admin.start()
            try:
                await admin.create_topics([NewTopic(self.prefix + t, self.n_partitions, 1) for t in topics.TOPICS])
            finally:
                await admin.close()

        asyncio.run(make())

    def delete_topics(self) -> None:
        """Delete every topic; return when they are gone."""

        async def delete() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.broker)
            await admin.start()
            try:
                await admin.delete_topics([self.prefix + t for t in topics.TOPICS])
                for _ in range(300):
                    if not any(name.startswith(self.prefix) for name in await admin.list_topics()):
                        return
                    await asyncio.sleep(0.1)
                raise AssertionError("the topics stay")
            finally:
                await admin.close()

        asyncio.run(delete())

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Delete what is below an offset, as retention does."""

        async def delete() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.broker)
            await admin.start()
            try:
                tp = TopicPartition(self.prefix + topic, partition)
                await admin.delete_records({tp: RecordsToDelete(before)})
            finally:
                await admin.close()

        asyncio.run(delete())

    def consume(self, topic: str, n: int, seconds: float = 30.0) -> list[bytes]:
        """Return the first records of a topic."""

        async def read() -> list[bytes]:
            consumer = AIOKafkaConsumer(
                self.prefix + topic, bootstrap_servers=self.broker, auto_offset_reset="earliest"
            )
            async with consumer, asyncio.timeout(seconds):
                return [(await consumer.getone()).value or b"" for _ in range(n)]

        return asyncio.run(read())

    def place(self, record: bytes) -> tuple[str, int]:
        """Return topic and partition of a record, as the shipper chooses them; poison goes with the responses."""
        try:
            name, key = topics.topic_and_key(codec.decode(record))
        except Exception:
            return self.prefix + topics.RESPONSES, 0
        return self.prefix + name, partition_of(key.encode(), self.n_partitions)

    async def ship(self, records: Iterable[bytes]) -> None:
        """Produce records in order."""
        producer = AIOKafkaProducer(
            bootstrap_servers=self.broker, acks="all", linger_ms=5, max_batch_size=1 << 18, request_timeout_ms=20_000
        )
        async with producer:
            waiting = []
            for record in records:
                topic, partition = self.place(record)
                waiting.append(await producer.send(topic, record, partition=partition))
            await asyncio.gather(*waiting)

    def produce(self, records: Iterable[bytes]) -> None:
        """Produce records in order; return when the broker has them."""
        asyncio.run(self.ship(records))

    def start_worker(self, *arguments: str, session_seconds: float = 2.0) -> "Worker":
        """Start `gnomon ingest`."""
        worker = Worker(self, ["--session-timeout", str(session_seconds), *arguments])
        self.workers.append(worker)
        return worker

    def rows(self, sql: str) -> list[list[str]]:
        """Ask ClickHouse."""
        engine = self.clickhouse.connect()
        try:
            return engine.rows(sql)
        finally:
            engine.close()

    @property
    def n_stored(self) -> int:
        """Rows at home, each event has one."""
        parts = [f"SELECT count() AS n FROM gnomon_core.{name} WHERE topic != 'missing'" for name in HOME]
        parts.append("SELECT count() FROM gnomon_core.attempts WHERE attempt_id != ''")
        return int(self.rows(f"SELECT sum(n) FROM ({' UNION ALL '.join(parts)})")[0][0])

    def wait_stored(self, n: int, seconds: float = 60.0) -> None:
        """Return when so many events have their row at home."""
        wait_for(lambda: self.n_stored >= n, seconds, lambda: f"{self.n_stored} of {n} stored\n{self.said()}")

    def empty(self) -> None:
        """Leave no row in any table of the sink."""
        engine = self.clickhouse.connect()
        for table in (*TABLES, "sink_progress"):  # the front remembers the epochs
            engine.command(f"TRUNCATE TABLE gnomon_core.{table}")
        engine.close()

    def said(self) -> str:
        """Return what the workers said last."""
        return "\n".join(worker.said()[-3000:] for worker in self.workers[-3:])

    def close(self) -> None:
        """Kill what is left."""
        for worker in self.workers:
            worker.kill()


class Worker:
    """One `gnomon ingest`."""

    def __init__(self, cluster: Cluster, arguments: Sequence[str]) -> None:
        folder = cluster.clickhouse.folder
        self._file = Path(folder / f"worker-{len(cluster.workers)}.log")
        with self._file.open("wb") as output:
            self.process = subprocess.Popen(
                [*GNOMON, "ingest", "--config", str(cluster.config), "--data", str(folder), *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        """Return all it said."""
        return self._file.read_text("utf-8", "replace")

    @property
    def url(self) -> str:
        """Where its health is, once it is ready."""
        wait_for(lambda: bool(READY.search(self.said())), 30, self.said)
        match = READY.search(self.said())
        assert match is not None
        return match[1]

    def health(self) -> tuple[int, dict[str, Any]]:
        """Return the status and what `/healthz` says."""
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def metrics(self) -> str:
        """Return the text of `/metrics`."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    def stop(self, seconds: float = 45.0) -> int:
        """End it in peace; return its status."""
        self.process.terminate()
        return self.process.wait(seconds)

    def kill(self) -> None:
        """SIGKILL it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)


def wait_for(condition: Callable[[], bool], seconds: float, why: Callable[[], str] = lambda: "") -> None:
    """Return when the condition holds; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {why()}")
