"""Scripted upstreams and a running proxy, all on loopback and in one event loop."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from gnomon.config.load import loads
from gnomon.events.codec import decode
from gnomon.events.contract import AnyEvent, InternalAttempt, PrimaryResponse, ShadowResponse
from gnomon.events.log import Reader, Writer
from proxy.metrics import DEFINITIONS
from proxy.service import Service
from proxy.shipper import metrics as shipper
from tests.exposition import undeclared

CHAIN = 31337
PATH = f"/main/evm/{CHAIN}"

PATIENCE_SECONDS = 30.0
"""How long a test waits for what must come: on a machine that does something else, too."""

DECLARED = {d.name: d.labels for d in (*DEFINITIONS, *shipper.DEFINITIONS)}
"""Every metric that /metrics may show, with its labels."""

Script = Callable[[dict[str, Any]], bytes | None]
"""A request → the raw bytes to send back; None = never answer; b"" = close the connection."""


def http(body: bytes, *, status: int = 200, length: int | None = None, headers: str = "") -> bytes:
    """Return a raw HTTP answer; `length` lies about the body's length."""
    n = len(body) if length is None else length
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{headers}Content-Length: {n}\r\n\r\n"
    return head.encode() + body


def result(request: dict[str, Any], value: object) -> bytes:
    return http(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": value}, separators=(",", ":")).encode())


class Upstream:
    """A node that answers head questions by itself and all else by its script; it may know no finalized block."""

    def __init__(self, script: Script | None = None, *, latest: int = 100, finalized: int | None = 90) -> None:
        self.script: Script = script or (lambda request: result(request, "0x2a"))
        self.latest, self.finalized = latest, finalized
        self.delay_seconds = 0.0
        """How long each answer takes that is not about heads."""
        self.calls: list[dict[str, Any]] = []
        self.n_connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server
        self.port = 0

    async def start(self) -> "Upstream":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def close_connections(self) -> None:
        for writer in list(self._writers):
            writer.close()

    async def stop(self) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.n_connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.partition("content-length:")[2].partition("\r\n")[0])
                n_calls = len(self.calls)
                answer = self._answer(json.loads(await reader.readexactly(length)))
                if self.delay_seconds and len(self.calls) > n_calls:
                    await asyncio.sleep(self.delay_seconds)
                if answer == b"":
                    return
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._writers.discard(writer)
            writer.close()

    def _answer(self, request: dict[str, Any]) -> bytes | None:
        method, params = request["method"], request.get("params") or []
        if method == "eth_chainId":
            return result(request, hex(CHAIN))
        if method == "eth_getBlockByNumber" and params[0] in ("latest", "safe", "finalized"):
            number = self.latest if params[0] == "latest" else self.finalized
            if number is None:
                return result(request, None)
            return result(
                request, {"number": hex(number), "hash": f"0x{number:064x}", "parentHash": f"0x{number - 1:064x}"}
            )
        self.calls.append(request)
        return self.script(request)


def configuration(
    primaries: list[Upstream],
    fallbacks: list[Upstream] | None = None,
    shadows: list[Upstream] | None = None,
    *,
    project: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None,
    shadow: dict[str, Any] | None = None,
    timeout: str = "1s",
    primary: dict[str, Any] | None = None,
    network: dict[str, Any] | None = None,
    evm: dict[str, Any] | None = None,
) -> str:
    """
    Return a configuration over upstreams p0…, f0…, s0…

    Args:
        project, shadow, primary, network, evm: members to add to those.
    """

    def entry(name: str, node: Upstream, **more: object) -> dict[str, object]:
        return {
            "id": name,
            "endpoint": f"http://127.0.0.1:{node.port}",
            "evm": {"chainId": CHAIN, "statePollerInterval": "200ms"},
            **more,
        }

    failsafe = [{"matchMethod": "*", "timeout": {"duration": timeout}}]
    upstreams = [entry(f"p{i}", node, **(primary or {})) for i, node in enumerate(primaries)]
    upstreams += [entry(f"f{i}", node, tags=["tier:fallback"]) for i, node in enumerate(fallbacks or [])]
    upstreams += [
        entry(f"s{i}", node, shadow={"enabled": True, **(shadow or {})}, failsafe=failsafe)
        for i, node in enumerate(shadows or [])
    ]
    whole = {"architecture": "evm", "evm": {"chainId": CHAIN, **(evm or {})}, "failsafe": failsafe, **(network or {})}
    return json.dumps(
        {
            "projects": [{"id": "main", "networks": [whole], "upstreams": upstreams, **(project or {})}],
            "gnomon": {"proxy": {"port": 0, **({"limits": limits} if limits else {})}},
        }
    )


class Proxy:
    """A proxy at work, its answers and its events."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service = service
        self._folder = folder

    async def send(self, raw: bytes) -> bytes:
        """Send raw bytes on a connection of their own; return everything until it closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.service.port)
        writer.write(raw)
        try:
            return await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
        finally:
            writer.close()

    async def post(self, body: bytes, headers: str = "", path: str = PATH) -> tuple[int, dict[str, str], bytes]:
        """Post a body; return status, headers (lower case) and body."""
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}"
        if "content-type" not in headers.lower():
            head += "Content-Type: application/json\r\n"
        raw = await self.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        top, _, rest = raw.partition(b"\r\n\r\n")
        lines = top.decode("latin-1").split("\r\n")
        named = dict(line.lower().split(": ", 1) for line in lines[1:])
        return int(lines[0].split()[1]), named, rest

    async def metrics(self) -> str:
        """Return the text of /metrics; a metric or a label that is not declared is an AssertionError."""
        answer = await self.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = answer.partition(b"\r\n\r\n")[2].decode()
        assert undeclared(text, DECLARED) == []
        return text

    async def call(self, method: str, params: list[object] | None = None, rpc_id: object = 1) -> dict[str, Any]:
        """Ask one question; return the decoded answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params or []}).encode()
        answer: dict[str, Any] = json.loads((await self.post(body))[2])
        return answer

    def events(self) -> list[AnyEvent]:
        reader = Reader(str(self._folder))
        found: list[AnyEvent] = []
        while records := reader.read()[1]:
            found += [decode(record) for record in records]
        reader.close()
        return found

    def requests(self) -> list[PrimaryResponse]:
        return [event for event in self.events() if isinstance(event, PrimaryResponse)]

    def mirrored(self) -> list[ShadowResponse]:
        return [event for event in self.events() if isinstance(event, ShadowResponse)]

    def internal(self) -> list[InternalAttempt]:
        return [event for event in self.events() if isinstance(event, InternalAttempt)]

    async def until(self, condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for a condition."""
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110  (the condition is somebody else's state)
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def running(config: str, folder: Path, secret: str = "") -> AsyncIterator[Proxy]:
    """
    Run a proxy over a configuration until the block ends; its heads are known when the block begins.

    Args:
        secret: the control secret; empty: there is none.
    """
    writer = Writer(str(folder), segment_bytes=8 << 20, max_bytes=64 << 20)
    service = Service(loads(config, environment={}), writer, lambda settings: secret)
    await service.start()
    proxy = Proxy(service, folder)
    try:
        await proxy.until(lambda: all(n.finalized is not None for n in service.networks if n.is_evm))
        await proxy.until(lambda: all(u.is_verified for n in service.networks for u in n.upstreams))
        yield proxy
    finally:
        await service.drain()
        writer.close()


@contextlib.asynccontextmanager
async def upstreams(*scripts: Script | None) -> AsyncIterator[list[Upstream]]:
    """Start one upstream for each script."""
    nodes = [await Upstream(script).start() for script in scripts]
    try:
        yield nodes
    finally:
        for node in nodes:
            await node.stop()
