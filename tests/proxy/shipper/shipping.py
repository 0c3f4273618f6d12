"""A log that somebody writes, a shipper as a process, and what of it is in Kafka."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition

from gnomon.config.load import load
from gnomon.config.model import Gnomon, KafkaSettings
from gnomon.events.log import Consumer, Writer
from gnomon.events.topics import ATTEMPTS, BREAKERS, HEADS, RESPONSES, TOPICS
from gnomon.kafka.admin import opened
from gnomon.kafka.migrate import migrate
from gnomon.kafka.partitions import partition_of
from gnomon.process import child_environment
from proxy.shipper.lane import CONSUMER
from tests.broker.topics import make_topic
from tests.services import ROOT

PROC = "00000000000000aa"
SEGMENT_BYTES = 1 << 20
UPSTREAM = "{id: p1, endpoint: 'http://127.0.0.1:1', evm: {chainId: 1}}"


def event(seq: int, n_bytes: int = 300) -> tuple[str, bytes, bytes]:
    """Return topic, key and record of the event with that number: most are of requests, as a proxy's are."""
    head = f'"v":1,"event_id":"{PROC}:{seq}","at":{1_790_000_000_000_000_000 + seq},"network":"evm:{seq % 3}"'
    padding = f'"agent":"{"x" * n_bytes}"'
    match seq % 20:
        case 0:
            topic, key, more = HEADS, f"evm:{seq % 3}", f'"upstream":"p1","axis":"latest","number":{seq}'
            kind = "head_update"
        case 1:
            topic, key, more = ATTEMPTS, f"p{seq % 5}", f'"attempt_id":"{seq}","attempt":{{"upstream":"p{seq % 5}"}}'
            kind = "attempt"
        case 2:
            topic, key, more = BREAKERS, "p1", '"upstream":"p1","from_state":"closed","to_state":"open"'
            kind = "breaker_transition"
        case _:
            topic, key, more = RESPONSES, f"{PROC}-{seq // 2:x}", f'"request_id":"{PROC}-{seq // 2:x}",{padding}'
            kind = "primary_response" if seq % 2 else "shadow_response"
    return topic, key.encode(), f'{{"type":"{kind}",{head},{more}}}'.encode()


def seq_of(record: bytes) -> int:
    """Return the number in a record's id."""
    return int(json.loads(record)["event_id"].partition(":")[2])


class Shipping:
    """One log, its writer, and shippers that come and go."""

    def __init__(self, folder: Path, address: str, prefix: str, *, more: str = "", segment_bytes: int = SEGMENT_BYTES):
        """
        Args:
            more: further members of `gnomon.events.kafka`.
        """
        self.folder = folder
        self.prefix = prefix
        self.address = address
        self.log = folder / "events" / "0"
        self.log.mkdir(parents=True)
        self.config = folder / "gnomon.yaml"
        kafka = f"{{bootstrapServers: '{address}', topicPrefix: '{prefix}', partitions: 4{more}}}"
        self.config.write_text(
            f"projects: [{{id: main, upstreams: [{UPSTREAM}]}}]\n"
            f"gnomon: {{events: {{log: {{path: '{folder / 'events'}'}}, kafka: {kafka}}}}}\n"
        )
        self.writer = Writer(self.log, segment_bytes=segment_bytes, max_bytes=256 << 20)
        self.n_appended = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.output = folder / "shipper.out"

    @property
    def settings(self) -> Gnomon:
        return load(self.config, environment={}).gnomon

    def migrate(self) -> None:
        """Make the topics."""
        asyncio.run(migrate(self.settings, lambda line: None, wait_seconds=10))

    def migrate_others(self) -> None:
        """Make the topics beside that of responses, where a test makes that one itself."""
        for topic in (ATTEMPTS, HEADS, BREAKERS):
            asyncio.run(make_topic(self.address, self.prefix + topic))

    def append(self, n: int) -> None:
        """Write the next `n` events."""
        for _ in range(n):
            assert self.writer.append(event(self.n_appended)[2]) == self.n_appended
            self.n_appended += 1

    def start(self) -> None:
        """Start a shipper."""
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "gnomon", "shipper", "--config", str(self.config)],
                cwd=ROOT,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def kill(self) -> None:
        """`kill -9`."""
        self.end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; return the exit status."""
        return self.end(signal.SIGTERM)

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(30)

    @property
    def position(self) -> int:
        """Up to where everything is acknowledged."""
        if not (self.log / f"at-{CONSUMER}").exists():
            return 0
        consumer = Consumer(self.log, CONSUMER)
        try:
            return consumer.get()
        finally:
            consumer.close()

    def metric(self, name: str) -> float:
        """Return what the shipper has written last; 0 where it has not."""
        file = self.log / "shipper.metrics"
        lines = file.read_text().splitlines() if file.exists() else []
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)), 0.0)

    def said(self, phrase: str) -> bool:
        """Return whether the shippers have logged a phrase."""
        return phrase in self.output.read_text("utf-8", "replace")

    def wait(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Return when the condition holds; the shipper must live as long."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process is None or self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()[-3000:]
            time.sleep(0.005)

    def wait_shipped(self, seconds: float = 30.0) -> None:
        """Return when everything appended is acknowledged."""
        self.wait(lambda: self.position == self.n_appended, seconds)

    def stored(self) -> dict[tuple[str, int], list[tuple[bytes, bytes]]]:
        """Return (key, value) of every record in Kafka, by topic without prefix and partition, in order."""
        return asyncio.run(stored(self.address, self.prefix))

    def check(self) -> Counter[int]:
        """
        Compare what is in Kafka with what was appended: all of it, in its partition, in order at its first occurrence,
        what is repeated below what was there.

        Returns:
            Repetitions by number of the event.
        """
        found = self.stored()
        n_partitions = Counter(topic for topic, _ in found)
        seen: Counter[int] = Counter()
        for (topic, partition), records in found.items():
            greatest = -1
            here: set[int] = set()
            for key, value in records:
                seq = seq_of(value)
                assert (topic, key, value) == event(seq)
                assert partition == partition_of(key, n_partitions[topic])
                assert seq > greatest or seq in here, f"{seq} came after {greatest} and is no repetition"
                greatest = max(greatest, seq)
                here.add(seq)
                seen[seq] += 1
        assert sorted(seen) == list(range(self.n_appended))
        return seen - Counter(range(self.n_appended))

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.writer.close()


@contextmanager
def shipping(folder: Path, address: str, prefix: str, *, more: str = "") -> Iterator[Shipping]:
    """Give a log with its topics made, and end its shipper afterwards."""
    one = Shipping(folder, address, prefix, more=more)
    try:
        one.migrate()
        yield one
    finally:
        one.close()


async def stored(address: str, prefix: str) -> dict[tuple[str, int], list[tuple[bytes, bytes]]]:
    """Return every record of the topics with that prefix."""
    found: dict[tuple[str, int], list[tuple[bytes, bytes]]] = {}
    async with opened(KafkaSettings(bootstrap_servers=address)) as admin:
        topics = (await admin.look([prefix + topic for topic in TOPICS])).topics
    places = [TopicPartition(topic, p) for topic, at in topics.items() for p in range(at.n_partitions)]
    if not places:
        return {}
    consumer = AIOKafkaConsumer(bootstrap_servers=address, max_partition_fetch_bytes=4 << 20)
    await consumer.start()
    try:
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        for place, end in (await consumer.end_offsets(places)).items():
            found[place.topic.removeprefix(prefix), place.partition] = records = []
            while await consumer.position(place) < end:
                records += [(r.key, r.value) for r in (await consumer.getmany(place, timeout_ms=1000)).get(place, [])]
    finally:
        await consumer.stop()
    return found


def pid_is_alive(pid: int) -> bool:
    """Return whether a process is there; one that ended and was not waited for is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int, word: bytes) -> list[int]:
    """Return the children of a process that have a word on their command line."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        found += [int(p) for p in Path(f"/proc/{pid}/task/{thread}/children").read_text("ascii").split()]
    return [p for p in found if word in Path(f"/proc/{p}/cmdline").read_bytes()]
