"""
The whole path: `gnomon up` with one shadow, under load.

    python -m bench whole [volume] [freshness] [stalled] [--requests N] [--seconds N]

volume      N requests (100,000), then as many again: accepted = stored = distinct, anonymous memory of each process
freshness   500 requests/s: from the answer to the row that SQL shows
stalled     500 requests/s, with no shadow and with one that takes every call and never answers: p99 and memory
"""

import argparse
import asyncio
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import uvloop

from bench.proxy import CHAIN, free_port
from gnomon.events.log import status

RATE = 500
CONNECTIONS = 32
BODY_BYTES = 1_000


class Product:
    """`gnomon up` over nodes of its own, in a folder of its own."""

    def __init__(self, folder: Path, shadow: str | None, limits: Mapping[str, object] | None = None) -> None:
        """
        Args:
            folder: gets configuration, output and data.
            shadow: how it answers (see `bench._node`); None: there is none.
            limits: `gnomon.api.limits`.
        """
        self.folder = folder
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.proxy_port, self.sql_port, self.api_port = free_port(), free_port(), free_port()
        upstreams = [self._upstream("p1", "new")]
        if shadow is not None:
            upstreams.append(self._upstream("s1", shadow, shadow={"enabled": True}))
        network = {"architecture": "evm", "evm": {"chainId": CHAIN}}
        config = {
            "projects": [{"id": "main", "networks": [network], "upstreams": upstreams}],
            "gnomon": {
                "proxy": {"port": self.proxy_port},
                "api": {"port": self.api_port, "limits": dict(limits or {})},
                "clickhouse": {"url": f"http://127.0.0.1:{self.sql_port}"},
            },
        }
        (folder / "gnomon.yaml").write_text(json.dumps(config))
        self.output = open(folder / "output", "wb")  # noqa: SIM115  (lives as long as the child)
        command = [sys.executable, "-m", "gnomon", "up", "--config", str(folder / "gnomon.yaml")]
        command += ["--data", str(folder / "data")]
        self.up = subprocess.Popen(command, stdout=self.output, stderr=self.output)
        deadline = time.monotonic() + 120
        while b"ready" not in self._told() or b"SQL" not in self._told():
            if self.up.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"bench: gnomon up: {self._told()[-500:]!r}")
            time.sleep(0.1)

    def _told(self) -> bytes:
        return (self.folder / "output").read_bytes()

    def _upstream(self, name: str, kind: str, **more: object) -> dict[str, object]:
        port = free_port()
        command = [sys.executable, "-m", "bench._node", str(port), str(BODY_BYTES), kind]
        self.nodes.append(subprocess.Popen(command))
        return {"id": name, "endpoint": f"http://127.0.0.1:{port}", "evm": {"chainId": CHAIN}, **more}

    def stop(self) -> None:
        self.up.send_signal(signal.SIGTERM)
        self.up.wait(60)
        for node in self.nodes:
            node.kill()
            node.wait()

    def sql(self, query: str) -> list[dict[str, object]]:
        """Ask as a reader."""
        text = urllib.parse.urlencode({"query": query + " FORMAT JSON"})
        with urllib.request.urlopen(f"http://127.0.0.1:{self.sql_port}/?{text}", timeout=30) as answer:
            rows: list[dict[str, object]] = json.load(answer)["data"]
        return rows

    def count(self, query: str) -> int:
        return int(str(next(iter(self.sql(query)[0].values()))))

    def anonymous_mib(self) -> dict[str, float]:
        """Return the anonymous resident memory of each process below `up`, by its command."""
        found = {}
        for name, pid in self.processes().items():
            held = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            found[name] = int(held[1]) / 1024 if held else 0.0
        return found

    def processes(self) -> dict[str, int]:
        """Return the process of each command below `up`, and `up` itself."""
        found = {}
        todo = [self.up.pid]
        while todo:
            pid = todo.pop()
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                todo += [int(child) for child in task.read_text().split()]
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            name = words[words.index("gnomon") + 1] if "gnomon" in words else "?"
            found[name] = pid
        return found

    def wait_stored(self, n: int, seconds: float = 120) -> int:
        """Wait until that many requests are rows; return how many are."""
        deadline = time.monotonic() + seconds
        stored = 0
        while stored < n and time.monotonic() < deadline:
            stored = self.count("SELECT count() FROM gnomon.requests")
            time.sleep(0.2)
        return stored


class Caller(asyncio.Protocol):
    """One client connection; one request at a time."""

    def __init__(self) -> None:
        self.buffer = b""
        self.answer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.write = transport.write  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", self.buffer[:end]) if end >= 0 else None
        if length and len(self.buffer) >= end + 4 + int(length[1]) and self.answer is not None:
            if b'"result"' not in self.buffer:
                raise SystemExit(f"bench: the proxy said {self.buffer[:300]!r}")
            self.buffer = b""
            self.answer.set_result(None)

    async def call(self, n: int) -> None:
        body = b'{"jsonrpc":"2.0","id":%d,"method":"eth_call","params":[{"to":"0x%040x"},"0x384"]}' % (n, n)
        head = b"POST /main/evm/%d HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % CHAIN
        self.answer = asyncio.get_running_loop().create_future()
        self.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))
        await self.answer


async def load(port: int, n_requests: int, rate: float | None) -> list[tuple[float, float]]:
    """Send exactly so many requests, at a rate or as fast as it goes; return (due, answered) of each, wall seconds."""
    loop = asyncio.get_running_loop()
    callers = [(await loop.create_connection(Caller, "127.0.0.1", port))[1] for _ in range(CONNECTIONS)]
    numbers = iter(range(n_requests))
    seen: list[tuple[float, float]] = []
    start = time.time()

    async def work(caller: Caller) -> None:
        for n in numbers:
            due = start + n / rate if rate else time.time()
            if due > time.time():
                await asyncio.sleep(due - time.time())
            await caller.call(n)
            seen.append((due, time.time()))

    await asyncio.gather(*(work(caller) for caller in callers))
    return seen


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def volume(folder: Path, n_requests: int) -> bool:
    product = Product(folder, "repeat")
    try:
        before: dict[str, float] = {}
        is_right = True
        for round_ in (1, 2):
            started = time.monotonic()
            uvloop.run(load(product.proxy_port, n_requests, None))
            served = time.monotonic() - started
            product.wait_stored(round_ * n_requests)
            pairs = 0
            while pairs < round_ * n_requests and time.monotonic() - started < 180:
                pairs = product.count("SELECT count() FROM gnomon.comparisons")
                time.sleep(0.2)
            kept = product.sql(
                "SELECT count() AS stored, uniqExact(request_id) AS distinct_stored FROM gnomon.requests"
            )[0]
            compared = product.sql(
                "SELECT count() AS stored, uniqExact(request_id) AS distinct_stored FROM gnomon.comparisons"
            )[0]
            log = status(str(product.folder / "data" / "events" / "0"))
            print(
                f"volume: round {round_}: {n_requests} answered in {served:.1f} s, all stored after "
                f"{time.monotonic() - started:.1f} s; requests {kept}, comparisons {compared}; "
                f"log accepted {log.accepted}, dropped {log.dropped}"
            )
            expected = str(round_ * n_requests)
            is_right &= {str(v) for v in (*kept.values(), *compared.values())} == {expected} and not log.dropped
            memory = product.anonymous_mib()
            growth = {name: round(memory[name] - before.get(name, memory[name]), 1) for name in memory}
            print(f"volume: anonymous MiB { ({k: round(v, 1) for k, v in memory.items()}) }, grown by {growth}")
            before = memory
        return is_right
    finally:
        product.stop()


def freshness(folder: Path, seconds: int) -> bool:
    product = Product(folder, "repeat")
    try:
        n = RATE * seconds
        polls: list[tuple[float, int]] = []

        async def both() -> list[tuple[float, float]]:
            sending = asyncio.ensure_future(load(product.proxy_port, n, RATE))
            while not polls or polls[-1][1] < n:
                query = "SELECT count() FROM gnomon.requests"
                stored = await asyncio.to_thread(product.count, query)
                polls.append((time.time(), stored))
                await asyncio.sleep(0.05)
                if sending.done() and time.time() - max(t for _, t in sending.result()) > 30:
                    break
            return await sending

        seen = asyncio.run(both())
        answered = sorted(t for _, t in seen)
        ages, at = [], 0
        for moment, stored in polls:
            while at < min(stored, n):
                ages.append(max(0.0, moment - answered[at]))
                at += 1
        print(
            f"freshness: {RATE} requests/s for {seconds} s, {at} of {n} seen in SQL; from answer to row "
            f"p50 {quantile(ages, 0.5):.2f} s, p99 {quantile(ages, 0.99):.2f} s, greatest {max(ages):.2f} s"
        )
        return at == n
    finally:
        product.stop()


def stalled(folder: Path, seconds: int) -> bool:
    for name, shadow in (("no shadow", None), ("a shadow that never answers", "silent")):
        home = folder / (shadow or "none")
        home.mkdir()
        product = Product(home, shadow)
        try:
            seen = uvloop.run(load(product.proxy_port, RATE * seconds, RATE))
            waits = [(answered - due) * 1000 for due, answered in seen]
            memory = product.anonymous_mib()["proxy"]
            print(
                f"stalled: {name}: {RATE} requests/s for {seconds} s: client p50 {statistics.median(waits):.1f} ms, "
                f"p99 {quantile(waits, 0.99):.1f} ms; proxy's anonymous memory {memory:.1f} MiB"
            )
        finally:
            product.stop()
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["volume", "freshness", "stalled", []], default=[])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=30)
    args = parser.parse_args()
    is_right = True
    for what in args.what or ["volume", "freshness", "stalled"]:
        with tempfile.TemporaryDirectory(prefix="gnomon-bench-") as folder:
            if what == "volume":
                is_right &= volume(Path(folder), args.requests)
            elif what == "freshness":
                is_right &= freshness(Path(folder), args.seconds)
            else:
                is_right &= stalled(Path(folder), args.seconds)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
