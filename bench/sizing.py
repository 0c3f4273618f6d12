"""
What a request leaves behind on disk: in its topic on Kafka and in ClickHouse's tables, by size of its answer.

    python -m bench sizing [--requests N] [--bytes 600 10000]

Each request has a mirrored pair: 80 % of the pairs equal by digest, 15 % by a mask, 5 % differ. Everything that is
random in traffic is random here: ids, times, durations, heights, methods; each answer is a new one, half of it hex
digits that nothing can compress below half. Tables are merged to the end. Needs Java (`make broker`). Also the CPU of
ClickHouse per event in batches of 20,000, merges included, and of the steps and the encoding.
"""

import argparse
import asyncio
import logging
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec import Raw
from xxhash import xxh3_128_hexdigest

from bench.ingest import AT
from bench.worker import ship
from gnomon.config.model import Settings
from gnomon.events import codec, topics
from gnomon.events.contract import NO_BODY, Answer, Attempt, Head, Heads, PrimaryResponse, ShadowResponse
from ingest.keeper import Keeper
from ingest.metrics import Metrics
from ingest.settings import context
from ingest.tables import TABLES
from proxy.shipper.cluster import COMPRESSION
from tests.broker.local import LocalBroker
from tests.broker.topics import make_topic
from tests.ingest.engine_process import EngineProcess

METHODS = ("eth_getBlockByNumber", "eth_call", "eth_getLogs", "eth_getTransactionReceipt", "eth_getBalance")
BATCH = 20_000


def records(n: int, n_bytes: int) -> list[bytes]:
    """Return the events of `n` requests whose answers have so many bytes."""
    chance = random.Random(6)
    out = []
    at = AT
    for i in range(n):
        at += int(chance.expovariate(1000) * 1e9)
        height = 20_000_000 + i // 500
        filler = chance.randbytes(max(0, (n_bytes - 60) // 4)).hex().encode()
        body = b'{"number":"0x%x","gasUsed":"0x%x","data":"%s%s"}' % (
            height, chance.getrandbits(24), filler, b"0" * len(filler),
        )  # fmt: skip
        pick = chance.random()
        other = body
        if pick < 0.15:
            other = body.replace(b'"number":"0x', b'"number":"0x9')
        elif pick < 0.20:
            other = body.replace(b'"gasUsed":"0x', b'"gasUsed":"0x9')
        heads = Heads(
            network=Head(latest=height + 3, finalized=height - 60),
            upstreams={"p1": Head(latest=height + 3), "s1": Head(latest=height + 2)},
        )
        answer = Answer(kind="result", digest=xxh3_128_hexdigest(body), n_bytes=len(body), body=Raw(body))
        method = chance.choice(METHODS)
        common: dict[str, Any] = {
            "v": 1, "network": "evm:1", "project": "main", "method": method, "heads": heads,
            "params": Raw(b'["0x%s","0x%x"]' % (chance.randbytes(20).hex().encode(), height)),
            "request_id": f"00000000000000aa-{i:x}",
        }  # fmt: skip
        took = int(chance.lognormvariate(8, 0.7))
        served = Attempt(upstream="p1", duration_us=took, request_bytes=90, response_bytes=len(body) + 40, status=200)
        primary = PrimaryResponse(
            **common, event_id=f"00000000000000aa:{2 * i}", at=at, rpc_id=Raw(b"%d" % i), request_bytes=120,
            response_bytes=len(body) + 40, duration_us=took + 150, upstream="p1", tier="primary", answer=answer,
            attempts=(served,), shadows={"s1": "mirrored"}, user="client", config_hash="0123456789abcdef",
        )  # fmt: skip
        travels = other is not body
        their = int(chance.lognormvariate(8.2, 0.7))
        shadow = ShadowResponse(
            **common, event_id=f"00000000000000aa:{2 * i + 1}", at=at + their * 1000, primary_upstream="p1",
            primary_duration_us=took, shadow_upstream="s1", primary_heads=heads, user="client",
            primary=answer if travels else Answer(kind="result", digest=answer.digest, n_bytes=len(body)),
            shadow=Answer(
                kind="result", digest=xxh3_128_hexdigest(other), n_bytes=len(other),
                body=Raw(other) if travels else NO_BODY,
            ),
            attempt=Attempt(
                upstream="s1", tier="shadow", kind="shadow", duration_us=their, status=200, request_bytes=90,
                response_bytes=len(other) + 40,
            ),
            ignore_fields=("number",), config_hash="0123456789abcdef",
        )  # fmt: skip
        out += [codec.encode(primary), codec.encode(shadow)]
    return out


def cpu_seconds(pid: int) -> float:
    """Return what a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_tables(data: list[bytes], folder: Path) -> None:
    """Store the events, and print what the tables take per request."""
    process = EngineProcess(folder)
    process.start()
    try:
        process.migrate()
        engine = process.connect()
        assert process._process is not None
        before, own = cpu_seconds(process._process.pid), time.process_time()
        keeper = Keeper(
            engine, context(Settings()), Metrics(), ("aa" * 16, "t", 0), name="t", missing_horizon_seconds=None
        )
        keeper.take_over()
        for start in range(0, len(data), BATCH):
            keeper.store(data[start : start + BATCH])
            keeper.sink.progress()
        own = time.process_time() - own
        for name in TABLES:
            engine.command(f"OPTIMIZE TABLE gnomon_core.{name} FINAL")
        theirs = cpu_seconds(process._process.pid) - before
        n = len(data) / 2
        rows = engine.rows(
            "SELECT table, sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'gnomon_core' "
            "AND table IN ('" + "', '".join(TABLES) + "') GROUP BY table ORDER BY 3 DESC"
        )
        sizes = {name: (int(rows_) / n, int(size) / n) for name, rows_, size in rows}
        bodies = sizes.pop("bodies", (0.0, 0.0))
        rollups = sum(sizes.pop(name, (0.0, 0.0))[1] for name in list(sizes) if name.endswith("ly"))
        print(f"  ClickHouse     {sum(size for _, size in sizes.values()):>7.0f} B a request without bodies", end=": ")
        print(", ".join(f"{name} {size:.0f}" for name, (_, size) in sizes.items() if size >= 1))
        print(f"  bodies kept    {bodies[1]:>7.0f} B a request ({bodies[0]:.2f} rows); rollups {rollups:.1f} B")
        print(f"  CPU            {theirs / len(data) * 1e6:>7.1f} us an event in ClickHouse, all merged", end="; ")
        print(f"{own / len(data) * 1e6:.1f} us an event in the steps and the encoding")
    finally:
        process.stop()


async def in_topic(data: list[bytes], broker: LocalBroker) -> None:
    """Send the events as a shipper does, and print what the topic takes per request."""
    await make_topic(broker.address, topics.RESPONSES, 4)
    await ship(broker.address, topics.RESPONSES, data, COMPRESSION)
    size = sum(f.stat().st_size for f in (broker.folder / "log").glob(f"{topics.RESPONSES}-*/*.log"))
    print(f"  Kafka          {size / len(data) * 2:>7.0f} B a request, one copy, {COMPRESSION}")


def main() -> None:
    """Print what each size of answer takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--bytes", type=int, nargs="*", default=[600, 10_000])
    args = parser.parse_args()
    logging.getLogger("gnomon").setLevel(logging.CRITICAL)
    for n_bytes in args.bytes:
        n = min(args.requests, 400_000_000 // (2 * n_bytes))
        data = records(n, n_bytes)
        print(f"answers of {n_bytes} B: {n} requests, {sum(map(len, data)) / n:.0f} B of events a request")
        with tempfile.TemporaryDirectory() as folder:
            with LocalBroker(Path(folder) / "kafka") as broker:
                asyncio.run(in_topic(data, broker))
            (Path(folder) / "clickhouse").mkdir()
            in_tables(data, Path(folder) / "clickhouse")


if __name__ == "__main__":
    main()
