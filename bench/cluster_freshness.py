"""
Freshness in a cluster: from the answer that a client has to the row that SQL shows.

    python -m bench cluster-freshness [--rate 1000] [--seconds 30] [--workers 2]

Client → proxy → log → shipper → Kafka → workers → ClickHouse, all processes of this machine, nothing pinned; one shadow
gets a copy of each request. Within a partition rows become visible in the order of their offsets, so the greatest
offset of each partition, asked for again and again, tells exactly when each row was there. Needs Java (`make broker`).
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvloop

from bench.cluster_chaos import script
from bench.cluster_chaos.cluster import Cluster, wait_for
from bench.whole import BODY_BYTES, load, quantile
from bench.worker import cpu_seconds
from tests.broker import jars
from tests.ports import free_port

POLL_SECONDS = 0.05
WARM_SECONDS = 5
"""At the beginning, not counted: caches fill and the workers' first batches are small."""
QUIET_SECONDS = 60.0


def ages(
    answered: list[float], polls: list[tuple[float, dict[int, int]]], places: dict[int, tuple[int, int]]
) -> list[float]:
    """
    Return how old each request's row was when it was first seen, in the order of asking.

    Args:
        answered: when the client had each answer.
        polls: moment, and the greatest offset of each partition then; in order of time.
        places: request → partition and offset of its row.
    """
    found: dict[int, float] = {}
    waiting: dict[int, list[tuple[int, int]]] = {}
    for n, (part, off) in places.items():
        waiting.setdefault(part, []).append((off, n))
    for part, rows in waiting.items():
        rows.sort()
        at = 0
        for moment, greatest in polls:
            while at < len(rows) and rows[at][0] <= greatest.get(part, -1):
                n = rows[at][1]
                found[n] = max(0.0, moment - answered[n])
                at += 1
    return [found[n] for n in sorted(found)]


def measure(folder: Path, rate: int, seconds: int, n_workers: int) -> bool:
    """Print the figures; return whether every request was seen as a row."""
    nodes = {name: free_port() for name in (*script.PRIMARIES, script.FALLBACK, script.SHADOW)}
    running = [
        subprocess.Popen([sys.executable, "-m", "bench._node", str(port), str(BODY_BYTES), "repeat"])
        for port in nodes.values()
    ]
    try:
        with Cluster(folder) as cluster:
            endpoints = {name: f"http://127.0.0.1:{port}" for name, port in nodes.items()}
            cluster.begin(endpoints, cluster.clickhouse_port, n_workers)
            uvloop.run(load(cluster.proxy_port, rate * WARM_SECONDS, rate))
            return _measure(cluster, rate, seconds)
    finally:
        for node in running:
            node.kill()
            node.wait()


def _measure(cluster: Cluster, rate: int, seconds: int) -> bool:
    n = rate * seconds
    _as_a_server(cluster.clickhouse.pid)
    stored = "SELECT count() FROM gnomon_core.requests WHERE outcome = 'result'"
    wait_for(lambda: int(cluster.rows(stored)[0][0]) == rate * WARM_SECONDS, QUIET_SECONDS)
    ends = "SELECT part, max(off) FROM gnomon_core.requests GROUP BY part"
    before = {int(part): int(off) for part, off in cluster.rows(ends)}
    watched = {
        "proxy": cluster.proxy.pid, "shipper": cluster.shippers()[0], "ClickHouse": cluster.clickhouse.pid,
        "Kafka": cluster.broker.pid, **{one.name: one.pid for one in cluster.workers},
    }  # fmt: skip
    used = {name: cpu_seconds(pid) for name, pid in watched.items()}
    polls: list[tuple[float, dict[int, int]]] = []

    def look() -> int:
        n_stored = int(cluster.rows(stored)[0][0]) - rate * WARM_SECONDS
        polls.append((time.time(), {int(part): int(off) for part, off in cluster.rows(ends)}))
        return n_stored

    started = time.monotonic()
    with ThreadPoolExecutor(1) as other:
        sending = other.submit(uvloop.run, load(cluster.proxy_port, n, rate))
        while look() < n and time.monotonic() < started + seconds + QUIET_SECONDS:
            time.sleep(POLL_SECONDS)
        seen = sorted(sending.result())
    wall = time.monotonic() - started
    answered = [at for _, at in seen]
    places: dict[int, tuple[int, int]] = {}
    for number, part, off in cluster.rows(
        "SELECT reinterpretAsUInt64(reverse(unhex(substring(extract(params, '0x([0-9a-f]{40})'), 25)))), part, off "
        "FROM gnomon_core.requests WHERE outcome = 'result'"
    ):
        if int(off) > before.get(int(part), -1):
            places[int(number)] = int(part), int(off)
    found = ages(answered, polls, places)
    cores = {name: (cpu_seconds(pid) - used[name]) / wall for name, pid in watched.items()}
    late = [at - due for due, at in seen]
    print(
        f"freshness: {rate} requests/s for {seconds} s, {len(found)} of {n} seen in SQL; from answer to row p50 "
        f"{quantile(found, 0.5):.2f} s, p95 {quantile(found, 0.95):.2f} s, p99 {quantile(found, 0.99):.2f} s, greatest "
        f"{max(found):.2f} s; clients had answers p50 {quantile(late, 0.5) * 1000:.1f} ms, p99 "
        f"{quantile(late, 0.99) * 1000:.0f} ms after they were due to ask"
    )
    print(
        "freshness: cores used: "
        + ", ".join(f"{name} {share:.2f}" for name, share in cores.items())
        + f"; load average of {os.cpu_count()} cores {os.getloadavg()[0]:.1f}"
    )
    return len(found) == n


def _as_a_server(pid: int) -> None:
    """Give the embedded ClickHouse, which stands back for all others, the priority that a server's own machine has."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpriority(os.PRIO_PROCESS, int(thread), os.getpriority(os.PRIO_PROCESS, 0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if why := jars.missing():
        print(f"skipped: {why}")
        return 0
    with tempfile.TemporaryDirectory(prefix="gnomon-bench-") as folder:
        return 0 if measure(Path(folder), args.rate, args.seconds, args.workers) else 1


if __name__ == "__main__":
    sys.exit(main())
