"""
The arithmetic of docs/sizing.md: from requests a second to cores, partitions, shards and disks. Nothing is measured.

    python -m bench planning [--requests 1000 …] [--shadows 1.0] [--rows-days 90] [--events-days 7]

`FIGURES` are what was measured (docs/sizing.md says by what); `plan` is the arithmetic; a test keeps the page's tables.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class Figures:
    """Measured for answers of 600 B, one shadow that gets every request: two events a request."""

    proxy_us: float = 55.0
    """CPU of the proxy per request, without shadows."""
    shadow_us: float = 45.0
    """CPU of the proxy per mirrored call."""
    shipper_us: float = 7.0
    """CPU of the shipper per event."""
    worker_us: float = 58.0
    """CPU of `gnomon ingest` per event."""
    clickhouse_us: float = 30.0
    """CPU of ClickHouse per event in large batches, merges included."""
    insert_us: float = 15_000.0
    """CPU of ClickHouse per insert whatever its size, merges included."""
    primary_bytes: float = 1_500.0
    """Of the event of a request, uncompressed."""
    shadow_bytes: float = 1_100.0
    """Of the event of a mirrored call."""
    compression: float = 4.0
    """By which events shrink on the way to Kafka: half of what was measured."""
    primary_row_bytes: float = 80.0
    """What a request takes in ClickHouse, compressed and merged, without bodies."""
    shadow_row_bytes: float = 75.0
    """What a mirrored call takes."""
    body_bytes: float = 75.0
    """What the bodies of the pairs that differ in bytes take, per mirrored call."""


FIGURES: Final = Figures()
BUSY: Final = 0.6
"""How busy a core of ours may be, so that a peak and the loss of a neighbour have room."""
CLICKHOUSE_BUSY: Final = 0.5
"""The same of a ClickHouse, which also answers."""
MIN_PARTITIONS: Final = 4
INSERTS_PER_BATCH: Final = 7
"""Requests, attempts, decisions, comparisons, three rollups."""
FLUSH_SECONDS: Final = 0.8
CORES_PER_SHARD: Final = 16
BYTES_PER_SHARD: Final = 8e12
KAFKA_COPIES: Final = 3
ROW_COPIES: Final = 2
BYTES_PER_BROKER: Final = 200e6
"""What a broker takes a second, copies included: half of what its network of 10 Gbit/s and its disks would."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What so many requests a second need."""

    requests: float
    events: float
    proxies: int
    """Processes, a core each; the shipper of each has a share of another."""
    shipper_cores: float
    workers: int
    """Processes, a core each."""
    partitions: int
    kafka_bytes: float
    """A second, compressed, one copy."""
    brokers: int
    kafka_disk: float
    """All copies."""
    shards: int
    clickhouse_cores: float
    """Of one copy."""
    row_disk: float
    """All copies, bodies left out."""
    body_disk: float
    """All copies."""
    inserts: float
    """A second, all shards."""


def plan(
    requests: float,
    *,
    shadows: float = 1.0,
    rows_days: float = 90,
    events_days: float = 7,
    bodies_days: float = 7,
    figures: Figures = FIGURES,
) -> Plan:
    """
    Return what is needed.

    Args:
        requests: a second, at the busiest hour.
        shadows: mirrored calls per request (`sampleRate` times the number of shadows).
        rows_days, events_days, bodies_days: retention.
        figures: what was measured.
    """
    f = figures
    events = requests * (1 + shadows)
    workers = math.ceil(events * f.worker_us / 1e6 / BUSY)
    kafka_bytes = requests * (f.primary_bytes + shadows * f.shadow_bytes) / f.compression
    row_bytes = requests * (f.primary_row_bytes + shadows * f.shadow_row_bytes)
    row_disk = row_bytes * rows_days * DAY
    body_disk = requests * shadows * f.body_bytes * bodies_days * DAY
    partitions = max(MIN_PARTITIONS, math.ceil(workers * 1.5))
    inserts = partitions * INSERTS_PER_BATCH / FLUSH_SECONDS
    clickhouse_cores = (events * f.clickhouse_us + inserts * f.insert_us) / 1e6 / CLICKHOUSE_BUSY
    shards = math.ceil(max(clickhouse_cores / CORES_PER_SHARD, (row_disk + body_disk) / BYTES_PER_SHARD))
    # A multiple of the shards, so that each has as many.
    partitions = math.ceil(partitions / shards) * shards
    brokers = max(3, math.ceil(kafka_bytes * KAFKA_COPIES / BYTES_PER_BROKER))
    return Plan(
        requests=requests,
        events=events,
        proxies=math.ceil(requests * (f.proxy_us + shadows * f.shadow_us) / 1e6 / BUSY),
        shipper_cores=events * f.shipper_us / 1e6 / BUSY,
        workers=workers,
        partitions=partitions,
        kafka_bytes=kafka_bytes,
        brokers=brokers,
        kafka_disk=kafka_bytes * events_days * DAY * KAFKA_COPIES,
        shards=shards,
        clickhouse_cores=clickhouse_cores,
        row_disk=row_disk * ROW_COPIES,
        body_disk=body_disk * ROW_COPIES,
        inserts=inserts,
    )


def table(plans: Sequence[Plan]) -> str:
    """Return plans as a table of Markdown, one column each."""
    lines = [
        ("requests/s", [f"{p.requests:,.0f}" for p in plans]),
        ("events/s", [f"{p.events:,.0f}" for p in plans]),
        ("proxy processes, a core each", [f"{p.proxies:,}" for p in plans]),
        ("cores of their shippers, together", [f"{p.shipper_cores:.1f}" for p in plans]),
        ("`gnomon ingest` processes, a core each", [f"{p.workers:,}" for p in plans]),
        ("partitions of the responses", [f"{p.partitions:,}" for p in plans]),
        ("into Kafka, compressed, one copy", [f"{_size(p.kafka_bytes)}/s" for p in plans]),
        ("brokers", [f"{p.brokers}" for p in plans]),
        ("disk of Kafka, three copies", [_size(p.kafka_disk) for p in plans]),
        ("shards of ClickHouse", [f"{p.shards}" for p in plans]),
        ("cores of ClickHouse, of one copy", [f"{p.clickhouse_cores:.1f}" for p in plans]),
        ("disk of rows, two copies", [_size(p.row_disk) for p in plans]),
        ("disk of bodies, two copies", [_size(p.body_disk) for p in plans]),
        ("inserts/s, all shards", [f"{p.inserts:,.0f}" for p in plans]),
    ]
    head, *rest = lines
    rule = "| --- |" + " ---: |" * len(plans)
    return "\n".join(
        [f"| {head[0]} | {' | '.join(head[1])} |", rule, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rest)]
    )


def _size(n_bytes: float) -> str:
    """
    Return bytes for people, two digits.

    >>> _size(650_000), _size(1.18e15), _size(12)
    ('650 KB', '1.2 PB', '12 B')
    """
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if n_bytes >= size:
            value = n_bytes / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"
    return f"{n_bytes:.0f} B"


EVERYTHING: Final = (100.0, 1_000.0, 10_000.0, 100_000.0)
MILLION: Final = 1_000_000.0


def pages_tables() -> tuple[str, str]:
    """Return the two tables of docs/sizing.md."""
    sampled = plan(MILLION, shadows=0.02, rows_days=7, events_days=1, bodies_days=2)
    heads = ("| requests/s | 1,000,000 | 1,000,000 |", "| requests/s | 1,000,000 all | 1,000,000 sampled |")
    million = table([plan(MILLION), sampled]).replace(*heads)
    return table([plan(n) for n in EVERYTHING]), million


def main() -> None:
    """Print the tables of docs/sizing.md, or one for what was asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=float, nargs="*", default=[*EVERYTHING, MILLION])
    parser.add_argument("--shadows", type=float, default=1.0, help="mirrored calls per request (default 1)")
    parser.add_argument("--rows-days", type=float, default=90)
    parser.add_argument("--events-days", type=float, default=7)
    parser.add_argument("--bodies-days", type=float, default=7)
    args = parser.parse_args()
    plans = [
        plan(
            n,
            shadows=args.shadows,
            rows_days=args.rows_days,
            events_days=args.events_days,
            bodies_days=args.bodies_days,
        )
        for n in args.requests
    ]
    print(table(plans))


if __name__ == "__main__":
    main()
