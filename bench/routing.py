"""
What the routing costs and saves: paid calls of clients that poll for the next block, and what failing primaries harm.

    python -m bench routing [future] [failing] [breaker] [--minutes N] [--speed N]

future    two primaries and two paid fallbacks; five polls a block, the first nine seconds early, for N minutes (10) of
          a chain that runs N times (20) as fast as Ethereum: calls with each feature off and on, in both modes
failing   both primaries refuse, answer 500 or never answer: time until the fallback's answer is with the client
breaker   one of two primaries never answers: requests that felt it, without a breaker and with one
"""

import argparse
import asyncio
import functools
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import uvloop

from bench.proxy import CHAIN, free_port

BLOCK_SECONDS, EARLY_SECONDS, POLLS_A_BLOCK = 12.0, 9.0, 5
FIRST_BLOCK = 1_000
TIMEOUT_SECONDS = 0.3


class Chain:
    """Heights by the clock."""

    def __init__(self, speed: float) -> None:
        self.block_seconds = BLOCK_SECONDS / speed
        self._start = time.monotonic()

    @property
    def head(self) -> int:
        return FIRST_BLOCK + int((time.monotonic() - self._start) / self.block_seconds)

    def time_of(self, number: int) -> float:
        return self._start + (number - FIRST_BLOCK) * self.block_seconds


class Node(asyncio.Protocol):
    """One connection to a node of the chain: `kind` is well, status (500 to all but head questions) or silent."""

    def __init__(self, chain: Chain, calls: Counter[str], kind: str) -> None:
        self._chain, self._calls, self._kind = chain, calls, kind
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = transport.write  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = int(self._buffer[:end].lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self._buffer) < end + 4 + length:
                return
            request = json.loads(self._buffer[end + 4 : end + 4 + length])
            self._buffer = self._buffer[end + 4 + length :]
            status, body = self._answer(request)
            if status:
                self._write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))

    def _answer(self, request: dict[str, Any]) -> tuple[int, bytes]:
        method, params = request["method"], request.get("params") or []
        head = self._chain.head
        tags = {"latest": head, "safe": head - 32, "finalized": head - 64}
        is_poll = method == "eth_chainId" or (method == "eth_getBlockByNumber" and params[0] in tags)
        self._calls["poll" if is_poll else "client"] += 1
        if not is_poll and self._kind != "well":
            return (500, b"oops") if self._kind == "status" else (0, b"")
        if method == "eth_chainId":
            result: object = hex(CHAIN)
        elif method == "eth_getBlockByNumber":
            number = tags.get(params[0]) if params[0] in tags else int(params[0], 16)
            assert number is not None
            result = {"number": hex(number), "hash": f"0x{number:064x}", "parentHash": f"0x{number - 1:064x}"}
            result = result if number <= head else None
        else:
            result = "0x2a"
        return 200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()


class Bed:
    """A proxy over nodes of its own; leave it as a context."""

    def __init__(self, chain: Chain, kinds: list[str], speed: float, more: dict[str, Any]) -> None:
        self._chain, self._kinds, self._speed, self._more = chain, kinds, speed, more
        self.calls: list[Counter[str]] = [Counter() for _ in kinds]
        self.port = free_port()
        self._folder = tempfile.TemporaryDirectory()

    async def __aenter__(self) -> "Bed":
        loop = asyncio.get_running_loop()
        upstreams = []
        for i, (kind, calls) in enumerate(zip(self._kinds, self.calls, strict=True)):
            port = free_port()
            state = kind.partition(":")[2] or "well"
            if state != "refused":
                await loop.create_server(functools.partial(Node, self._chain, calls, state), "127.0.0.1", port)
            upstreams.append(
                {
                    "id": f"u{i}",
                    "endpoint": f"http://127.0.0.1:{port}",
                    "evm": {"chainId": CHAIN, "statePollerInterval": f"{2000 / self._speed:.0f}ms"},
                    **({"tags": ["tier:fallback"]} if kind.startswith("fallback") else {}),
                    **self._more.get("upstream", {}),
                }
            )
        failsafe = [
            {
                "matchMethod": "*",
                "timeout": {"duration": f"{TIMEOUT_SECONDS * 1000:.0f}ms"},
                **self._more.get("failsafe", {}),
            }
        ]
        network = {
            "architecture": "evm",
            "evm": {"chainId": CHAIN, **self._more.get("evm", {})},
            "failsafe": failsafe,
            "selectionPolicy": {"mode": self._more.get("mode", "tiered")},
        }
        config = {
            "projects": [{"id": "main", "networks": [network], "upstreams": upstreams}],
            "gnomon": {"proxy": {"port": self.port}, "events": {"log": {"path": f"{self._folder.name}/log"}}},
        }
        file = Path(self._folder.name) / "gnomon.yaml"
        file.write_text(json.dumps(config))
        self._proxy = _start(file)
        await self._until_ready()
        return self

    async def _until_ready(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                answer = await self.ask("eth_getBalance", ["0x1", hex(FIRST_BLOCK)])
            except OSError:
                answer = None
            if answer is not None and all(calls["poll"] >= 3 for calls in self.calls if calls):
                for calls in self.calls:
                    calls.clear()
                return
            await asyncio.sleep(0.1)
        raise SystemExit("bench: the proxy does not answer")

    async def __aexit__(self, *_: object) -> None:
        self._proxy.send_signal(signal.SIGKILL)
        self._proxy.wait()
        self._folder.cleanup()

    async def ask(self, method: str, params: list[object]) -> bytes | None:
        """Return the answer's body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        head = f"POST /main/evm/{CHAIN} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.read()
        writer.close()
        return answer.partition(b"\r\n\r\n")[2]


def _start(file: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gnomon", "proxy", "--config", str(file)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# --- clients that poll for the next block -----------------------------------------------------------------------------

FEATURES: dict[str, dict[str, object]] = {
    "none": {"acceptEmptyBeyondHead": False},
    "accept (default)": {},
    "short-circuit": {"shortCircuitFutureBlocks": True},
}


async def future(minutes: float, speed: float) -> None:
    """Print the calls of each feature and mode, run side by side."""
    chain = Chain(speed)
    print(f"future: {minutes:g} minutes of a chain at {speed:g} times its speed, {POLLS_A_BLOCK} polls a block")
    runs = [(mode, name) for mode in ("ordered", "tiered") for name in FEATURES]
    rows = await asyncio.gather(*(_poll(chain, minutes, speed, mode, name) for mode, name in runs))
    print(f"  {'mode':8} {'features':17} {'polls':>6} {'to primaries':>13} {'paid':>6} {'paid head polls/h':>18}")
    for (mode, name), (n, primary, paid, per_hour) in zip(runs, rows, strict=True):
        print(f"  {mode:8} {name:17} {n:6} {primary:13} {paid:6} {per_hour:18.0f}")


async def _poll(chain: Chain, minutes: float, speed: float, mode: str, name: str) -> tuple[int, int, int, float]:
    failsafe = {
        "retry": {"maxAttempts": 5, "delay": "0ms"},
        "hedge": {"delay": f"{500 / speed:.0f}ms", "maxCount": 1},
        "timeout": {"duration": "2s"},
    }
    more = {"mode": mode, "evm": FEATURES[name], "failsafe": failsafe}
    async with Bed(chain, ["primary", "primary", "fallback", "fallback"], speed, more) as bed:
        n = 0
        started = time.monotonic()
        last = chain.head + 1 + round(minutes * 60 / BLOCK_SECONDS)
        for number in range(chain.head + 2, last + 1):
            for i in range(POLLS_A_BLOCK):
                early = EARLY_SECONDS * (1 - i / POLLS_A_BLOCK) / speed
                await asyncio.sleep(max(0.0, chain.time_of(number) - early - time.monotonic()))
                await bed.ask("eth_getBlockByNumber", [hex(number), False])
                n += 1
        hours = (time.monotonic() - started) * speed / 3600
        polls = sum(calls["poll"] for calls in bed.calls[2:]) / 2 / hours
        return n, sum(c["client"] for c in bed.calls[:2]), sum(c["client"] for c in bed.calls[2:]), polls


# --- primaries that fail ----------------------------------------------------------------------------------------------


async def failing(n: int = 400) -> None:
    """Print how long clients wait for the fallback's answer."""
    print(f"failing: both primaries, {n} requests one after the other, attempt timeout {TIMEOUT_SECONDS * 1000:.0f} ms")
    for state in ("refused", "status", "silent"):
        kinds = [f"primary:{state}", f"primary:{state}", "fallback"]
        async with Bed(Chain(1), kinds, 1, {}) as bed:
            print(f"  {state:8} {_spread(await _times(bed, n if state != 'silent' else n // 10, 1))}")


async def breaker(n: int = 400) -> None:
    """Print how many requests one silent primary harms."""
    print(f"breaker: the first of two primaries never answers, {n} requests, 8 at once")
    for name, upstream in (("none", {}), ("threshold 3", {"breaker": {"threshold": 3, "openFor": "60s"}})):
        async with Bed(Chain(1), ["primary:silent", "primary"], 1, {"upstream": upstream}) as bed:
            times = await _times(bed, n, 8)
            harmed = sum(seconds >= TIMEOUT_SECONDS * 0.9 for seconds in times)
            print(f"  {name:12} harmed {harmed:4} of {n}   {_spread(times)}")


async def _times(bed: Bed, n: int, at_once: int) -> list[float]:
    times: list[float] = []

    async def ask(count: int) -> None:
        for _ in range(count):
            started = time.monotonic()
            answer = await bed.ask("eth_getBalance", ["0x1", hex(FIRST_BLOCK)])
            if b'"0x2a"' not in (answer or b""):
                raise SystemExit(f"bench: not answered: {answer!r}")
            times.append(time.monotonic() - started)

    await asyncio.gather(*(ask(n // at_once) for _ in range(at_once)))
    return times


def _spread(times: list[float]) -> str:
    cuts = statistics.quantiles(times, n=100)
    return f"p50 {cuts[49] * 1000:7.1f} ms   p99 {cuts[98] * 1000:7.1f} ms"


async def main() -> None:
    """Run what was named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=("future", "failing", "breaker", []))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--speed", type=float, default=20.0)
    args = parser.parse_args()
    parts = args.parts or ["future", "failing", "breaker"]
    if "future" in parts:
        await future(args.minutes, args.speed)
    if "failing" in parts:
        await failing()
    if "breaker" in parts:
        await breaker()


if __name__ == "__main__":
    uvloop.run(main())
