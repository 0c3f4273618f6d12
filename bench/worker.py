"""
One worker of a cluster on one core: from the broker to rows in ClickHouse, beside a consumer that only fetches.

    python -m bench worker [--events N] [--bytes 1200 10000] [--rounds N] [--codec zstd|none] [--workers 1]

A request and its mirrored pair in turn: 80 % of the pairs equal by digest, 15 % by a mask, 5 % differ; answers are
blocks with the hashes of their transactions. The topic is as the shipper writes it: its codec, its batches. Broker
and embedded ClickHouse are processes of this machine, pinned to its other cores; `gnomon ingest` and the bare aiokafka
consumer have core 0 to themselves, one after the other, over the same topic. The consumer fetches as the worker does,
decompresses, checks and counts the records. With `--workers 2` the second one has the next core, and what each has
done is told: its partitions, its events, its CPU an event. Needs Java (`make broker`).
"""

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from msgspec import Raw
from xxhash import xxh3_128_hexdigest

from bench.ingest import AT, HEADS, SERVED
from gnomon.events import codec, topics
from gnomon.events.contract import NO_BODY, Answer, Attempt, PrimaryResponse, ShadowResponse
from gnomon.kafka.partitions import partition_of
from proxy.shipper.cluster import BATCH_BYTES, COMPRESSION
from tests.broker import jars
from tests.broker.local import LocalBroker
from tests.ingest.engine_process import EngineProcess
from tests.ingest.kafka.cluster import Cluster, Worker

N_PARTITIONS = 4
SHADOW = Attempt(upstream="s1", tier="shadow", kind="shadow", duration_us=2000, status=200)
FETCH = """
import asyncio, resource, sys, time
from aiokafka import AIOKafkaConsumer, TopicPartition
async def main(broker, topic, n_partitions, n):
    consumer = AIOKafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest", group_id=None,
                                max_partition_fetch_bytes=4 << 20)
    async with consumer:
        used = resource.getrusage(resource.RUSAGE_SELF)
        started, cpu = time.monotonic(), used.ru_utime + used.ru_stime
        # It fetches ahead from here on: what it has before the first answer takes its time, too.
        consumer.assign([TopicPartition(topic, partition) for partition in range(n_partitions)])
        seen = 0
        while seen < n:
            found = await consumer.getmany(timeout_ms=200)
            seen += sum(map(len, found.values()))
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(time.monotonic() - started, used.ru_utime + used.ru_stime - cpu)
asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


def records(n: int, n_bytes: int) -> list[bytes]:
    """Return `n` records of about so many bytes on average."""
    n_hashes = max(1, int((2 * n_bytes - 1550) / 1.4 / 69))
    chance = random.Random(6)
    out = []
    for i in range(n // 2):
        params = Raw(b'["0x%x",false]' % (100 + i % 50))
        hashes = b",".join(b'"0x%s"' % chance.randbytes(32).hex().encode() for _ in range(n_hashes))
        body = b'{"number":"0x%x","gasUsed":"0x5208","timestamp":"0x%x","transactions":[%s]}' % (
            100 + i % 50,
            i,
            hashes,
        )
        other = body
        if i % 20 in (3, 9, 15):
            other = body.replace(b'"timestamp":"0x', b'"timestamp":"0x9')
        elif i % 20 == 7:
            other = body.replace(b"0x5208", b"0x1")
        at = AT + i * 1_000_000
        answer = Answer(kind="result", digest=xxh3_128_hexdigest(body), n_bytes=len(body), body=Raw(body))
        common: dict[str, Any] = {
            "v": 1,
            "network": "evm:1",
            "project": "main",
            "method": "eth_getBlockByNumber",
            "params": params,
        }
        primary = PrimaryResponse(
            **common, event_id=f"00000000000000aa:{2 * i}", at=at, request_id=f"{i * 7919:032x}",
            rpc_id=Raw(b"%d" % i), request_bytes=80, response_bytes=700, duration_us=3000, upstream="p1",
            tier="primary", answer=answer, heads=HEADS, attempts=(SERVED,), shadows={"s1": "mirrored"},
        )  # fmt: skip
        travels = other is not body
        shadow = ShadowResponse(
            **common, event_id=f"00000000000000aa:{2 * i + 1}", at=at + 2_000_000, request_id=primary.request_id,
            primary_upstream="p1", primary_duration_us=3000, shadow_upstream="s1", heads=HEADS, primary_heads=HEADS,
            primary=answer if travels else Answer(kind="result", digest=answer.digest, n_bytes=len(body)),
            shadow=Answer(
                kind="result", digest=xxh3_128_hexdigest(other), n_bytes=len(other),
                body=Raw(other) if travels else NO_BODY,
            ),
            attempt=SHADOW, ignore_fields=("timestamp",),
        )  # fmt: skip
        out += [codec.encode(primary), codec.encode(shadow)]
    return out


async def ship(broker: str, topic: str, data: list[bytes], codec: str | None) -> None:
    """Put records on the topic, in partitions by request id."""
    async with AIOKafkaProducer(
        bootstrap_servers=broker, linger_ms=100, max_batch_size=BATCH_BYTES, compression_type=codec
    ) as producer:
        for start in range(0, len(data), 5000):
            waiting = [
                await producer.send(topic, r, partition=partition_of(b"%d" % ((start + i) // 2), N_PARTITIONS))
                for i, r in enumerate(data[start : start + 5000])
            ]
            await asyncio.gather(*waiting)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fetch(cluster: Cluster, n: int) -> tuple[float, float]:
    """Return wall and CPU seconds of a consumer that only fetches."""
    topic = cluster.prefix + topics.RESPONSES
    ran = subprocess.run(
        [sys.executable, "-c", FETCH, cluster.broker, topic, str(N_PARTITIONS), str(n)],
        stdout=subprocess.PIPE, text=True, check=True, timeout=300, preexec_fn=lambda: os.sched_setaffinity(0, {0}),
    )  # fmt: skip
    wall, cpu = map(float, ran.stdout.split())
    return wall, cpu


class Share(NamedTuple):
    """What one worker has done."""

    core: int
    n_partitions: int
    """That it had at the end, of all topics."""
    n_events: int
    """That went through it."""
    cpu: float
    """Seconds, from its first read on."""


def work(cluster: Cluster, n: int, n_workers: int = 1) -> tuple[float, list[Share]]:
    """Return wall seconds from the first read to the last progress row, and what each worker has done."""
    others = os.sched_getaffinity(0)
    workers, cores = [], []
    for number in range(n_workers):
        cores.append(number % (os.cpu_count() or 1))
        os.sched_setaffinity(0, {cores[-1]})  # inherited by all threads of the worker
        workers.append(cluster.start_worker())
    os.sched_setaffinity(0, others)
    started, cpu = [], []
    for worker in workers:
        while "reading log=" not in worker.said():
            if worker.process.poll() is not None:
                raise SystemExit(f"a worker has ended:\n{worker.said()[-3000:]}")
            time.sleep(0.02)
        started.append(time.monotonic())
        cpu.append(cpu_seconds(worker.process.pid))
    engine = cluster.clickhouse.connect()
    deadline = started[0] + 300
    while int(engine.rows("SELECT sum(n) FROM gnomon_core.sink_progress")[0][0]) < n:
        if time.monotonic() > deadline:
            raise SystemExit(f"not stored in time:\n{cluster.said()}")
        time.sleep(0.1)
    wall = time.monotonic() - started[0]
    engine.close()
    shares = [
        Share(
            core,
            int(_metric(worker, "gnomon_ingest_partitions")),
            int(_metric(worker, "gnomon_ingest_events_total")),
            cpu_seconds(worker.process.pid) - before,
        )
        for worker, core, before in zip(workers, cores, cpu, strict=True)
    ]
    for worker in workers:
        worker.stop(60)
    return wall, shares


def _metric(worker: Worker, name: str) -> float:
    (value,) = (line.split()[1] for line in worker.metrics().splitlines() if line.startswith(f"{name} "))
    return float(value)


def main() -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=400_000, help="of 1.2 KB; fewer of larger ones (default 400000)")
    parser.add_argument("--bytes", type=int, nargs="*", default=[1200, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codec", default=COMPRESSION, help=f"of the topic (default {COMPRESSION}, the shipper's)")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    codec = None if args.codec == "none" else args.codec
    if why := jars.missing():
        print(f"skipped: {why}")
        return
    cores = os.sched_getaffinity(0)
    others = cores - {0} or cores
    os.sched_setaffinity(0, others)  # inherited by broker and ClickHouse
    for n_bytes in args.bytes:
        n = max(20_000, args.events * 1200 // n_bytes // 20_000 * 20_000)
        data = records(n, n_bytes)
        mean = sum(map(len, data)) / n
        with tempfile.TemporaryDirectory() as folder, LocalBroker(Path(folder) / "broker") as broker:
            clickhouse = EngineProcess(Path(folder))
            clickhouse.start()
            clickhouse.migrate()
            cluster = Cluster(broker.address, clickhouse, "bench.", N_PARTITIONS)
            cluster.make_topics()
            asyncio.run(ship(broker.address, cluster.prefix + topics.RESPONSES, data, codec))
            walls, ratios, costs = [], [], []
            for _ in range(args.rounds):
                fetch_wall, fetch_cpu = fetch(cluster, n)
                cluster.empty()
                wall, shares = work(cluster, n, args.workers)
                walls.append((n / wall, n / fetch_wall))
                ratios.append(fetch_wall / wall)
                costs.append((sum(share.cpu for share in shares) / n * 1e6, fetch_cpu / n * 1e6))
                for share in shares if args.workers > 1 else ():
                    print(
                        f"  core {share.core}: {share.n_partitions} partitions, {share.n_events} events, "
                        f"{share.cpu / max(share.n_events, 1) * 1e6:.1f} us/event",
                        flush=True,
                    )
            cluster.close()
            clickhouse.stop()
        print(
            f"{n} events of {mean:.0f} B, {args.codec}: {statistics.median(w for w, _ in walls):,.0f} events/s stored, "
            f"{statistics.median(f for _, f in walls):,.0f} only fetched, ratio {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f}-{max(ratios):.2f}); CPU {statistics.median(c for c, _ in costs):.1f} against "
            f"{statistics.median(c for _, c in costs):.1f} us/event",
            flush=True,
        )


if __name__ == "__main__":
    main()
