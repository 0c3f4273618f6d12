"""
What an event costs the shipper, beside a bare loop of aiokafka's batches that sends the same records, in the same run.

    python -m bench shipper [--events N] [--rounds N] [--codecs]

Both send to a broker on this machine (`make broker` once, or GNOMON_TEST_KAFKA), 12 partitions, idempotent, batches of
the same size and compression. The bare loop has the records in memory and gives each batch to the next partition; the
shipper reads them from a log, routes them by key and keeps its position. CPU time of the process, median of alternating
rounds. `--codecs` compares compressions in the bare loop.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from aiokafka import AIOKafkaProducer

from bench.ingest import records
from gnomon.config.model import EventSettings, Gnomon, KafkaSettings
from gnomon.events.log import Consumer, Writer
from gnomon.events.topics import RESPONSES
from gnomon.kafka.migrate import migrate
from proxy.shipper.cluster import BATCH_BYTES, COMPRESSION
from proxy.shipper.lane import CONSUMER, Lane
from tests.broker.choice import missing, running

N_PARTITIONS = 12
KEY = slice(150, 182)
"""Some bytes as long as a key; the bare loop does not look for it."""


async def bare(kafka: KafkaSettings, data: Sequence[bytes], codec: str | None) -> tuple[float, float]:
    """Return (CPU, wall) seconds to send the records batch by batch."""
    producer = AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        enable_idempotence=True,
        acks="all",
        compression_type=codec,
        max_batch_size=BATCH_BYTES,
    )
    await producer.start()
    topic = kafka.topic_prefix + RESPONSES
    await producer.partitions_for(topic)
    cpu, wall = time.process_time(), time.perf_counter()
    under_way: list[asyncio.Future[object]] = []
    partition = 0
    now_ms = time.time_ns() // 1_000_000
    batch = producer.create_batch()
    for record in data:
        if batch.append(timestamp=now_ms, key=record[KEY], value=record) is None:
            under_way.append(await producer.send_batch(batch, topic, partition=partition))
            partition = (partition + 1) % N_PARTITIONS
            if len(under_way) > N_PARTITIONS:
                await under_way.pop(0)
            batch = producer.create_batch()
            batch.append(timestamp=now_ms, key=record[KEY], value=record)
    under_way.append(await producer.send_batch(batch, topic, partition=partition))
    await asyncio.gather(*under_way)
    taken = time.process_time() - cpu, time.perf_counter() - wall
    await producer.stop()
    return taken


async def shipped(kafka: KafkaSettings, path: Path, n: int) -> tuple[float, float]:
    """Return (CPU, wall) seconds of a lane from its first acknowledgement to the log's end, scaled to all records."""
    stop = asyncio.Event()
    lane = Lane(path, kafka, stop)
    running_lane = asyncio.ensure_future(lane.run())
    while not lane.counts.get("gnomon_shipper_events_total"):  # noqa: ASYNC110 the lane tells nobody
        await asyncio.sleep(0.002)
    cpu, wall = time.process_time(), time.perf_counter()
    before = lane.counts.get("gnomon_shipper_events_total")
    while lane.counts.get("gnomon_shipper_events_total") < n:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    stop.set()
    await running_lane
    share = (n - before) / n
    return cpu / share, wall / share


def line(name: str, taken: Sequence[tuple[float, float]], n: int) -> float:
    """Print one line; return CPU microseconds per event."""
    cpu = statistics.median(c for c, _ in taken) / n * 1e6
    wall = n / statistics.median(w for _, w in taken)
    print(f"  {name:<16} {cpu:6.2f} us of CPU an event, {wall:9,.0f} events/s")
    return cpu


def measure(address: str, args: argparse.Namespace) -> None:
    """Measure and print, on the broker at `address`."""
    prefix = f"bench-{os.getpid()}-{os.urandom(3).hex()}."
    kafka = KafkaSettings(bootstrap_servers=address, topic_prefix=prefix, partitions=N_PARTITIONS)
    asyncio.run(migrate(Gnomon(events=EventSettings(kafka=kafka)), lambda text: None, wait_seconds=10))
    base = records(20_000)
    for padding, n in ((0, args.events), (9_000, args.events // 8)):
        tail = b',"pad":"%s"}' % os.urandom(padding // 2).hex().encode() if padding else b"}"
        data = [base[i % len(base)][:-1] + tail for i in range(n)]
        print(f"{n} events of {sum(map(len, data)) / n:,.0f} B")
        if args.codecs:
            for codec in (None, "lz4", "zstd"):
                line(f"bare, {codec}", [asyncio.run(bare(kafka, data, codec)) for _ in range(args.rounds)], n)
            continue
        taken: dict[str, list[tuple[float, float]]] = {"bare": [], "shipper": []}
        with tempfile.TemporaryDirectory() as folder:
            writer = Writer(Path(folder) / "0")
            for record in data:
                writer.append(record)
            for _ in range(args.rounds):
                taken["bare"].append(asyncio.run(bare(kafka, data, COMPRESSION)))
                taken["shipper"].append(asyncio.run(shipped(kafka, Path(folder) / "0", n)))
                Consumer(folder + "/0", CONSUMER).unregister()
            writer.close()
        ratio = line("shipper", taken["shipper"], n) / line("bare send_batch", taken["bare"], n)
        print(f"  shipper / bare   {ratio:6.2f}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--codecs", action="store_true")
    args = parser.parse_args()
    if why := missing():
        raise SystemExit(why)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "broker") as address:
        measure(address, args)


if __name__ == "__main__":
    main()
