"""
The scripted upstreams: answer as `script` says, count each call by question, show heads that move and fork.

One primary fails everything for a second now and then, so that its breaker opens; nobody's answer depends on it.
"""

import asyncio
import contextlib
import functools
import json
import time
from collections import Counter
from collections.abc import AsyncIterator

from bench.cluster_chaos import script

OWN_TAGS = ("latest", "safe", "finalized")
BAD_EVERY_SECONDS = 9
FORK_EVERY = 20
"""Heads between two forks."""


class Calls:
    """How often each upstream was called, by question."""

    def __init__(self) -> None:
        self.by_question: Counter[tuple[str, int]] = Counter()


class Upstream(asyncio.Protocol):
    """One connection to an upstream."""

    def __init__(self, name: str, calls: Calls) -> None:
        self._name, self._calls = name, calls
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = int(self._buffer[:end].lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self._buffer) < end + 4 + length:
                return
            request = json.loads(self._buffer[end + 4 : end + 4 + length])
            self._buffer = self._buffer[end + 4 + length :]
            self._take(request["id"], request["method"], request.get("params") or [])

    def _take(self, rpc_id: object, method: str, params: list[str]) -> None:
        if method == "eth_chainId":
            self._write(script.answer(rpc_id, {"result": hex(script.CHAIN)}))
            return
        if params[0] in OWN_TAGS:
            self._write(script.answer(rpc_id, {"result": _head(params[0])}))
            return
        n = int(params[0], 16)
        self._calls.by_question[self._name, n] += 1
        if self._name == script.SHADOW:
            members = script.mirrored(n)
            if members is None:
                return
            text = script.answer(rpc_id, members)
            if script.kind(n) == "late":
                asyncio.get_running_loop().call_later(script.LATE_SECONDS, self._write, text)
            else:
                self._write(text)
            return
        if self._name in script.PRIMARIES and (script.kind(n) == "failed" or self._is_bad()):
            self._write(b"out of order", status=500)
            return
        self._write(script.answer(rpc_id, {"result": script.served(n)}))

    def _is_bad(self) -> bool:
        return self._name == script.PRIMARIES[1] and int(time.monotonic()) % BAD_EVERY_SECONDS == 0

    def _write(self, body: bytes, status: int = 200) -> None:
        if not self._transport.is_closing():
            head = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
                status,
                len(body),
            )
            self._transport.write(head + body)  # type: ignore[attr-defined]


def _head(tag: str) -> dict[str, str]:
    """Return a head that is one higher each second; some blocks are replaced by another one of the same height."""
    at = int(time.monotonic() * 2)
    number = script.HEAD + at // 2 if tag == "latest" else script.FINALIZED
    is_fork = tag == "latest" and at // 2 % FORK_EVERY == 0 and at % 2 == 1
    return {
        "number": hex(number),
        "hash": f"0x{number + (is_fork << 200):064x}",
        "parentHash": f"0x{number - 1:064x}",
        "timestamp": hex(int(time.time())),
    }


@contextlib.asynccontextmanager
async def listening(calls: Calls) -> AsyncIterator[dict[str, str]]:
    """Run all upstreams as long as the block lasts; give their addresses by name."""
    loop = asyncio.get_running_loop()
    servers = {
        name: await loop.create_server(functools.partial(Upstream, name, calls), "127.0.0.1", 0)
        for name in (*script.PRIMARIES, script.FALLBACK, script.SHADOW)
    }
    try:
        yield {name: f"http://127.0.0.1:{one.sockets[0].getsockname()[1]}" for name, one in servers.items()}
    finally:
        for one in servers.values():
            one.close()
