"""
Live streams: `gnomon up` with traffic, and many clients of /v1/stream.

    python -m bench sse [--clients 1000] [--seconds 60] [--rate 100]

First without clients, then with them, then after they have gone: what a request waits that needs the API's event loop
alone (/healthcheck), and an ordinary one (/v1/breakers, one question); how old the newest stored request is (the
engine's lag); CPU and anonymous memory of the API; events for each client. The clients run in this process, on the same
machine.
"""

import argparse
import asyncio
import contextlib
import os
import resource
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import uvloop

from bench.whole import Product, load, quantile

BEFORE_SECONDS = 20
SETTLE_SECONDS = 5
LOOP_EVERY_SECONDS = 0.02
CALL_EVERY_SECONDS = 0.2
LAG_EVERY_SECONDS = 1.0


class Client(asyncio.Protocol):
    """One stream; counts its events."""

    n_open = 0

    def __init__(self, port: int) -> None:
        self._port = port
        self._rest = b""
        self.n_events = 0
        self.listening = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % self._port)

    def data_received(self, data: bytes) -> None:
        text = self._rest + data
        if not self.listening.is_set() and b"event: hello" in text:
            self.listening.set()
            Client.n_open += 1
            text = text.partition(b"event: hello")[2]
        self.n_events += text.count(b"event: ") if self.listening.is_set() else 0
        self._rest = text[-6:] if self.listening.is_set() else text  # `event: ` may be cut in two, never counted twice

    def connection_lost(self, exc: Exception | None) -> None:
        if self.listening.is_set():
            Client.n_open -= 1


class Asker:
    """A kept connection that asks one path, again and again."""

    def __init__(self, port: int, path: str) -> None:
        self._port = port
        self._request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        self.waits: list[float] = []

    async def run(self, every_seconds: float, until: float) -> None:
        """Ask at a fixed pace until a monotonic time; a request that is late waits for nothing, and counts as it is."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        due = time.monotonic()
        while (due := max(due + every_seconds, time.monotonic())) < until:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            started = time.monotonic()
            writer.write(self._request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"bench: the API said {head!r}")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            self.waits.append((time.monotonic() - started) * 1000)
        writer.close()


@dataclass
class Phase:
    """What was seen in one stretch of time."""

    loop: Asker
    call: Asker
    lags: list[float] = field(default_factory=list)
    seconds: float = 0.0
    api_cpu: float = 0.0
    memory: float = 0.0

    def told(self) -> str:
        return (
            f"event loop {spread(self.loop.waits, 'ms')}; /v1/breakers {spread(self.call.waits, 'ms')}; "
            f"engine's lag {spread(self.lags, 's')}; API's CPU {100 * self.api_cpu / self.seconds:.1f} % of a core, "
            f"anonymous memory {self.memory:.1f} MiB"
        )


def spread(values: list[float], unit: str) -> str:
    return (
        f"p50 {quantile(values, 0.5):.1f}, p99 {quantile(values, 0.99):.1f}, max {max(values):.1f} {unit} "
        f"({len(values)})"
    )


def cpu_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def watched(product: Product, seconds: float) -> Phase:
    """Watch for a while."""
    phase = Phase(Asker(product.api_port, "/healthcheck"), Asker(product.api_port, "/v1/breakers"))
    api = product.processes()["api"]
    started, cpu = time.monotonic(), cpu_seconds(api)
    end = started + seconds

    async def lags() -> None:
        query = "SELECT toUnixTimestamp64Milli(max(at)) FROM gnomon.requests WHERE at >= now() - INTERVAL 10 MINUTE"
        while time.monotonic() < end:
            newest = await asyncio.to_thread(product.count, query)
            phase.lags.append(time.time() - newest / 1000)
            await asyncio.sleep(LAG_EVERY_SECONDS)

    await asyncio.gather(phase.loop.run(LOOP_EVERY_SECONDS, end), phase.call.run(CALL_EVERY_SECONDS, end), lags())
    phase.seconds = time.monotonic() - started
    phase.api_cpu = cpu_seconds(api) - cpu
    phase.memory = product.anonymous_mib()["api"]
    return phase


async def compared(product: Product, n_clients: int, seconds: int, rate: int) -> bool:
    n_requests = rate * (BEFORE_SECONDS + seconds + 3 * SETTLE_SECONDS)
    sending = asyncio.ensure_future(load(product.proxy_port, n_requests, rate))
    await asyncio.sleep(SETTLE_SECONDS)
    before = await watched(product, BEFORE_SECONDS)
    print(f"without clients: {before.told()}", flush=True)

    started = time.monotonic()
    clients: list[Client] = []
    loop = asyncio.get_running_loop()
    for _ in range(n_clients):
        clients.append(
            (await loop.create_connection(lambda: Client(product.api_port), "127.0.0.1", product.api_port))[1]
        )
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(60):
            await asyncio.gather(*(client.listening.wait() for client in clients))
    print(f"{Client.n_open} of {n_clients} streams open after {time.monotonic() - started:.1f} s", flush=True)
    for client in clients:
        client.n_events = 0
    during = await watched(product, seconds)
    counts = sorted(client.n_events for client in clients)
    n_left = Client.n_open
    print(f"with {n_clients} clients for {seconds} s: {during.told()}")
    print(
        f"events for each client: least {counts[0]}, median {counts[len(counts) // 2]}, most {counts[-1]}; "
        f"{n_left} streams still open; memory for each stream "
        f"{1024 * (during.memory - before.memory) / n_clients:.1f} KiB",
        flush=True,
    )
    for client in clients:
        client.transport.close()
    await asyncio.sleep(SETTLE_SECONDS)
    left = _open_streams(product.api_port)
    print(f"after they have gone: {left} streams open, API's memory {product.anonymous_mib()['api']:.1f} MiB")
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    return n_left == n_clients and counts[0] > 0 and left == 0


def _open_streams(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return next(int(float(line.split()[1])) for line in text.splitlines() if line.startswith("gnomon_api_streams "))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1000, help="streams open at once (default: 1000)")
    parser.add_argument("--seconds", type=int, default=60, help="how long they listen (default: 60)")
    parser.add_argument("--rate", type=int, default=100, help="requests a second through the proxy (default: 100)")
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, args.clients + 1024)), hard))
    limits = {"requestsPerSecond": 0, "streams": max(args.clients, 1)}
    with tempfile.TemporaryDirectory(prefix="gnomon-bench-") as folder:
        product = Product(Path(folder), "repeat", limits)
        try:
            is_right = uvloop.run(compared(product, args.clients, args.seconds, args.rate))
        finally:
            product.stop()
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
