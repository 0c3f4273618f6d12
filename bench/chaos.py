"""
Faults at the wire: seeded misbehaviour of upstreams and clients against `gnomon up`, then a count of everything.

    python -m bench chaos [--minutes 30] [--seed 1] [--clients 24]

Upstreams stall, cut bodies short, answer with another id, HTML, two values, 429 in storms, close kept connections, send
byte by byte. Clients send halves, pipelines and batches, read slowly, hang up. It fails unless

    every request that a client waited for was answered once, with its id and what was asked, or the connection closed
    nothing is left: client and upstream connections in use, waiting calls, mirrored calls, bytes held
    each upstream took as many calls as SQL shows attempts that left the proxy, client, shadow and poll alike
    every request that was answered is a row, once
"""

import argparse
import asyncio
import contextlib
import functools
import json
import random
import re
import signal
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import uvloop

from bench.proxy import CHAIN, free_port

NAMES: dict[str, dict[str, Any]] = {
    "p1": {},
    "p2": {},
    "f1": {"tags": ["tier:fallback"]},
    "s1": {"shadow": {"enabled": True}},
}
FAULTS = (
    "stall",
    "slow",
    "cut",
    "cut chunked",
    "wrong id",
    "html",
    "two values",
    "500",
    "trickle",
    "close after",
    "error",
)
OWN_TAGS = ("latest", "safe", "finalized")
STORM_SECONDS = 20.0


class Node(asyncio.Protocol):
    """One connection to an upstream; it counts the requests that it took, by client or own question."""

    def __init__(self, name: str, calls: Counter[tuple[str, bool]], rng: random.Random) -> None:
        self._name, self._calls, self._rng = name, calls, rng
        self._buffer = b""
        self._is_closing = False
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        for task in self._tasks:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_closing:
            return  # what comes now was not taken
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = int(self._buffer[:end].lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self._buffer) < end + 4 + length:
                return
            request = json.loads(self._buffer[end + 4 : end + 4 + length])
            self._buffer = self._buffer[end + 4 + length :]
            task = asyncio.get_running_loop().create_task(self._answer(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: dict[str, Any]) -> None:
        method, params = request["method"], request.get("params") or []
        is_own = method == "eth_chainId" or (method == "eth_getBlockByNumber" and params[0] in OWN_TAGS)
        self._calls[self._name, is_own] += 1
        if is_own:
            head = {"number": "0x3e8", "hash": f"0x{1000:064x}", "parentHash": f"0x{999:064x}"}
            self._write(_http(_body(request["id"], hex(CHAIN) if method == "eth_chainId" else head)))
            return
        rng = self._rng
        is_storm = self._name != "f1" and int(time.monotonic() / STORM_SECONDS) % 7 == 3
        if is_storm and rng.random() < 0.8:
            self._write(_http(b"slow down", status=429))
            return
        right = _body(request["id"], meaning(method, params))
        fault = rng.choice(FAULTS) if rng.random() < 0.2 else ""
        if fault == "stall":
            return
        if fault == "slow":
            await asyncio.sleep(rng.random() * 0.4)
        if fault == "cut":
            self._write(_http(right)[:-9])
            self._close()
        elif fault == "cut chunked":
            self._write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" + right[:20])
            self._close()
        elif fault == "wrong id":
            self._write(_http(_body(999_999_999, "0xbad")))
        elif fault == "html":
            self._write(_http(b"<html>busy</html>"))
        elif fault == "two values":
            self._write(_http(right + right))
        elif fault == "500":
            self._write(_http(b"oops", status=500))
        elif fault == "error":
            self._write(
                _http(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"internal"}}' % request["id"])
            )
        elif fault == "trickle":
            for byte in _http(right):
                self._write(bytes([byte]))
                await asyncio.sleep(0)
        else:
            self._write(_http(right))
            if fault == "close after":
                self._close()

    def _write(self, data: bytes) -> None:
        self._transport.write(data)  # type: ignore[attr-defined]

    def _close(self) -> None:
        self._is_closing = True
        self._transport.close()


def meaning(method: str, params: list[Any]) -> str:
    """Return what a question is answered with: what was asked."""
    return json.dumps([method, params])


def _body(rpc_id: object, result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": rpc_id, "result": result}).encode()


def _http(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )


class Clients:
    """What clients did and got."""

    def __init__(self, port: int, seed: int) -> None:
        self.port = port
        self.rng = random.Random(seed)
        self.n_id = 0
        self.counts: Counter[str] = Counter()
        self.answered: set[str] = set()
        self.wrong: list[str] = []

    def question(self) -> tuple[dict[str, Any], bytes]:
        """Return a new question and its text."""
        self.n_id += 1
        method = self.rng.choice(("eth_getBalance", "eth_call", "eth_getLogs", "eth_getCode"))
        params: list[Any] = [f"0x{self.n_id:040x}", "0x10"]
        if method == "eth_call":
            params[0] = {"to": params[0]}
        elif method == "eth_getLogs":
            params = [{"address": params[0], "fromBlock": "0x1", "toBlock": "0x2"}]
        request = {"jsonrpc": "2.0", "id": self.n_id, "method": method, "params": params}
        return request, json.dumps(request).encode()

    def check(self, request: dict[str, Any], answer: Any) -> None:
        """Judge one answer."""
        if not isinstance(answer, dict) or answer.get("id") != request["id"]:
            self.wrong.append(f"{request} got {answer}")
        elif "result" in answer:
            self.counts["result"] += 1
            if answer["result"] != meaning(request["method"], request["params"]):
                self.wrong.append(f"{request} got {answer}")
        else:
            self.counts["error"] += 1

    async def run(self, until: float) -> None:
        """Ask until then, one manner after the other."""
        while time.monotonic() < until:
            manner = self.rng.choice((self._plain, self._plain, self._plain, self._batch, self._pipeline, self._half,
                                      self._hang_up, self._slow))  # fmt: skip
            try:
                async with asyncio.timeout(30):
                    await manner()
            except TimeoutError:
                self.wrong.append(f"no answer within 30 s ({manner.__name__})")
            except (OSError, asyncio.IncompleteReadError):
                self.counts["closed"] += 1

    @contextlib.asynccontextmanager
    async def _connection(self) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.close()

    def _post(self, body: bytes) -> bytes:
        head = f"POST /main/evm/{CHAIN} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def _read(self, reader: asyncio.StreamReader) -> Any:
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"x-gnomon-request-id: (\S+)", head, re.IGNORECASE)
        body = await reader.readexactly(int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]))
        if found:
            self.answered.add(found[1].decode())
        return json.loads(body)

    async def _plain(self) -> None:
        async with self._connection() as (reader, writer):
            for _ in range(self.rng.randrange(1, 20)):
                request, text = self.question()
                writer.write(self._post(text))
                self.check(request, await self._read(reader))

    async def _batch(self) -> None:
        async with self._connection() as (reader, writer):
            pairs = [self.question() for _ in range(self.rng.randrange(1, 12))]
            writer.write(self._post(b"[" + b",".join(text for _, text in pairs) + b"]"))
            answers = await self._read(reader)
            if not isinstance(answers, list) or len(answers) != len(pairs):
                self.wrong.append(f"a batch of {len(pairs)} got {answers}")
                return
            for (request, _), answer in zip(pairs, answers, strict=True):
                self.check(request, answer)

    async def _pipeline(self) -> None:
        async with self._connection() as (reader, writer):
            pairs = [self.question() for _ in range(self.rng.randrange(2, 10))]
            writer.write(b"".join(self._post(text) for _, text in pairs))
            for request, _ in pairs:
                self.check(request, await self._read(reader))

    async def _half(self) -> None:
        async with self._connection() as (_, writer):
            whole = self._post(self.question()[1])
            writer.write(whole[: self.rng.randrange(1, len(whole) - 1)])
            await asyncio.sleep(self.rng.random() * 0.05)
            self.counts["half"] += 1

    async def _hang_up(self) -> None:
        async with self._connection() as (_, writer):
            writer.write(self._post(self.question()[1]))
            await asyncio.sleep(self.rng.random() * 0.01)
            self.counts["hung up"] += 1

    async def _slow(self) -> None:
        async with self._connection() as (reader, writer):
            request, text = self.question()
            for byte in self._post(text):
                writer.write(bytes([byte]))
                await asyncio.sleep(0)
            self.check(request, await self._read(reader))


async def main(minutes: float, seed: int, n_clients: int) -> int:
    """Return 0 when everything adds up."""
    loop = asyncio.get_running_loop()
    calls: Counter[tuple[str, bool]] = Counter()
    rng = random.Random(seed)
    upstreams = []
    for name, more in NAMES.items():
        port = free_port()
        await loop.create_server(functools.partial(Node, name, calls, rng), "127.0.0.1", port)
        upstreams.append({"id": name, "endpoint": f"http://127.0.0.1:{port}", "evm": {"chainId": CHAIN}, **more})
    failsafe = [{"matchMethod": "*", "timeout": {"duration": "250ms"}, "retry": {"maxAttempts": 2, "delay": "10ms"},
                 "hedge": {"delay": "100ms", "maxCount": 1}}]  # fmt: skip
    proxy_port, sql_port = free_port(), free_port()
    network = {"architecture": "evm", "evm": {"chainId": CHAIN}, "failsafe": failsafe}
    config = {
        "projects": [{"id": "main", "networks": [network], "upstreams": upstreams}],
        "gnomon": {
            "proxy": {"port": proxy_port},
            "api": {"port": 0},
            "clickhouse": {"url": f"http://127.0.0.1:{sql_port}"},
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gnomon.yaml"
        file.write_text(json.dumps(config))
        output = (Path(folder) / "output").open("wb")
        command = [sys.executable, "-m", "gnomon", "up", "--config", str(file), "--data", f"{folder}/data"]
        up = await asyncio.create_subprocess_exec(*command, stdout=output, stderr=output)
        try:
            await _until(lambda: b"SQL" in (Path(folder) / "output").read_bytes(), 60)
            clients = Clients(proxy_port, seed)
            until = time.monotonic() + minutes * 60
            await asyncio.gather(*(clients.run(until) for _ in range(n_clients)))
            return await _judge(clients, calls, proxy_port, sql_port)
        finally:
            if up.returncode is None:
                up.send_signal(signal.SIGTERM)
            await up.wait()
            output.close()


_OWN = "kind IN ('head_poll', 'chain_check')"
_ATTEMPTS = f"SELECT upstream, {_OWN} AS own, count() AS n FROM gnomon.attempts WHERE request_bytes > 0 GROUP BY 1, 2"
_REQUESTS = "SELECT count() AS n, uniqExact(request_id) AS n_distinct FROM gnomon.requests"
_IDS = "SELECT DISTINCT if(batch_id = '', request_id, batch_id) AS id FROM gnomon.requests"
_POLLS_MEANWHILE = 5
"""Own questions go on while they are counted."""


async def _judge(clients: Clients, calls: Counter[tuple[str, bool]], proxy_port: int, sql_port: int) -> int:
    """Wait for quiet, count on both sides, tell; return the exit status."""

    async def sql(query: str) -> list[dict[str, Any]]:
        return await asyncio.to_thread(_sql, sql_port, query)

    complaints = clients.wrong[:5]
    if clients.wrong:
        complaints.append(f"{len(clients.wrong)} wrong answers")
    print(f"chaos: {clients.n_id} questions asked: {dict(clients.counts)}; {len(clients.answered)} HTTP answers")
    await asyncio.sleep(12)  # mirrored calls and slow attempts end within their time-outs
    gauges = await asyncio.to_thread(_metrics, proxy_port)
    left = {name: value for name, value in gauges.items() if value > ("client_connections" in name)}
    print(f"chaos: left over: {left or 'nothing'}")
    complaints += [f"left over: {name} {value}" for name, value in left.items()]
    deadline = time.monotonic() + 60
    while True:
        await asyncio.sleep(3)
        taken = calls.copy()
        found = {(str(row["upstream"]), bool(row["own"])): int(row["n"]) for row in await sql(_ATTEMPTS)}
        if all(found.get(key) == n for key, n in taken.items() if not key[1]) or time.monotonic() > deadline:
            break
    for (name, is_own), n in sorted(taken.items()):
        shown = found.get((name, is_own), 0)
        print(f"chaos: {name} {'own questions' if is_own else 'calls':13} took {n:7}, SQL shows {shown:7}")
        if abs(shown - n) > (_POLLS_MEANWHILE if is_own else 0):
            complaints.append(f"{name}: took {n}, SQL shows {shown}")
    [row] = await sql(_REQUESTS)
    print(f"chaos: requests stored {row['n']}, distinct {row['n_distinct']}")
    if row["n"] != row["n_distinct"]:
        complaints.append("a request is stored twice")
    missing = clients.answered - {str(row["id"]) for row in await sql(_IDS)}
    if missing:
        complaints.append(f"{len(missing)} answered requests are not stored")
    print(f"chaos: {'adds up' if not complaints else '; '.join(complaints)}")
    return 1 if complaints else 0


async def _until(condition: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("bench: gnomon up does not get ready")
        await asyncio.sleep(0.1)


def _metrics(port: int) -> dict[str, float]:
    """Return the gauges that must be back at nothing."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    wanted = re.compile(
        r"(gnomon_client_connections|gnomon_client_bytes|gnomon_upstream_waiting|gnomon_shadow_in_flight"
        r"|gnomon_upstream_connections|gnomon_unexpected_errors_total|gnomon_events_dropped_total)(\{.*\})? (\S+)"
    )
    found = {}
    for line in text.splitlines():
        match = wanted.fullmatch(line)
        if match and 'state="idle"' not in line:
            found[match[1] + (match[2] or "")] = float(match[3])
    return found


def _sql(port: int, query: str) -> list[dict[str, Any]]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/?default_format=JSON", query.encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return list(json.loads(answer.read())["data"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=24)
    args = parser.parse_args()
    sys.exit(uvloop.run(main(args.minutes, args.seed, args.clients)))
