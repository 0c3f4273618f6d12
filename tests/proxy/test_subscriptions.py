"""Heads by subscription, against a scripted WebSocket node on loopback."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection, serve

from gnomon.events.contract import HeadUpdate, InternalAttempt, Reorg
from proxy.core import listening
from proxy.networks import NetworkState
from tests.proxy.scripted import CHAIN, PATH, Proxy, Upstream, configuration


class Node:
    """A node that pushes heads when it is told to."""

    def __init__(self, *, chain: int = CHAIN, is_refusing: bool = False) -> None:
        self.chain = chain
        self.is_refusing = is_refusing
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.listeners: set[ServerConnection] = set()
        self.n_connections = 0
        self.port = 0
        self._server: Any = None

    async def start(self) -> "Node":
        self._server = await serve(self._serve, "127.0.0.1", self.port)
        self.port = next(iter(self._server.sockets)).getsockname()[1]
        return self

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def push(self, number: int, own: str = "", parent: str = "") -> None:
        for listener in list(self.listeners):
            await listener.send(self.text(number, own, parent))

    def text(self, number: int, own: str = "", parent: str = "") -> str:
        head = {
            "number": hex(number),
            "hash": own or f"0x{number:064x}",
            "parentHash": parent or f"0x{number - 1:064x}",
        }
        params = {"subscription": "0xs", "result": head}
        return json.dumps({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})

    async def _serve(self, connection: ServerConnection) -> None:
        self.n_connections += 1
        assert connection.request is not None
        self.headers.append({name.lower(): value for name, value in connection.request.headers.raw_items()})
        try:
            await self._answer(connection)
        finally:
            self.listeners.discard(connection)

    async def _answer(self, connection: ServerConnection) -> None:
        async for message in connection:
            question = json.loads(message)
            method = question["method"]
            self.asked.append(method)
            answer: dict[str, object] = {"jsonrpc": "2.0", "id": question["id"]}
            if method == "eth_chainId":
                answer["result"] = hex(self.chain)
            elif self.is_refusing:
                answer["error"] = {"code": -32601, "message": "no subscriptions here"}
            else:
                answer["result"] = "0xs"
                self.listeners.add(connection)
            await connection.send(json.dumps(answer))


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once, and ticks are short."""
    monkeypatch.setattr("proxy.core.listening.FIRST_WAIT_SECONDS", 0.02)
    monkeypatch.setattr("proxy.core.listening.LONGEST_WAIT_SECONDS", 0.05)
    monkeypatch.setattr("proxy.subscriptions.TICK_SECONDS", 0.05)


@contextlib.asynccontextmanager
async def nodes(*listed: Node) -> AsyncIterator[list[Node]]:
    started = [await node.start() for node in listed]
    try:
        yield started
    finally:
        for node in started:
            await node.stop()


@contextlib.asynccontextmanager
async def followed(
    folder: Path, primary: Upstream, listeners: dict[str, Node], **more: Any
) -> AsyncIterator[tuple[Proxy, NetworkState]]:
    """Run a proxy over one HTTP primary and WebSocket endpoints; a name that begins with `f` is a fallback's."""
    config = json.loads(configuration([primary], **more))
    for name, node in listeners.items():
        entry = {"id": name, "endpoint": f"ws://user:pw@127.0.0.1:{node.port}", "evm": {"chainId": CHAIN}}
        if name.startswith("f"):
            entry |= {"tags": ["tier:fallback"], "vendor": "chainstack"}
        if name.startswith("paid"):
            entry |= {"vendor": "alchemy"}
        config["projects"][0]["upstreams"].append(entry)
    async with running_all(json.dumps(config), folder) as proxy:
        yield proxy, proxy.service.networks[0]


@contextlib.asynccontextmanager
async def running_all(config: str, folder: Path) -> AsyncIterator[Proxy]:
    """Run a proxy without waiting for endpoints that nobody listens to."""
    from gnomon.config.load import loads
    from gnomon.events.log import Writer
    from proxy.service import Service

    writer = Writer(str(folder), segment_bytes=8 << 20, max_bytes=64 << 20)
    service = Service(loads(config, environment={}), writer)
    await service.start()
    proxy = Proxy(service, folder)
    try:
        yield proxy
    finally:
        await service.drain()
        writer.close()


def heads(proxy: Proxy, upstream: str) -> list[tuple[int, str]]:
    return [(e.number, e.source) for e in proxy.events() if isinstance(e, HeadUpdate) and e.upstream == upstream]


async def test_heads_come_by_subscription(tmp_path: Path) -> None:
    """A push is the endpoint's head at once, with its source; its user goes along; it is never called for clients."""
    primary = await Upstream(latest=100).start()
    async with nodes(Node()) as (node,), followed(tmp_path, primary, {"ws": node}) as (proxy, network):
        await proxy.until(lambda: bool(node.listeners) and network.book.latest == 100)
        await node.push(101)
        await proxy.until(lambda: network.book.latest == 101)
        answer = await proxy.call("eth_call")

        assert answer["result"] == "0x2a"
        assert node.asked == ["eth_chainId", "eth_subscribe"]
        assert node.headers[0]["authorization"].startswith("Basic ")
        assert heads(proxy, "ws") == [(101, "subscription")]
        assert [u.id for u in network.routed] == ["p0"]
        status, _, _ = await proxy.post(b'{"jsonrpc":"2.0","id":1,"method":"eth_call"}', path=f"{PATH}?use-upstream=ws")
        assert status == 404
    kinds = {(e.attempt.upstream, e.attempt.kind, e.attempt.method) for e in proxy.internal()}
    assert kinds >= {("ws", "chain_check", "eth_chainId"), ("ws", "subscription", "eth_subscribe")}
    assert not any(e.attempt.method == "eth_subscription" for e in proxy.internal())
    await primary.stop()


async def test_a_replaced_block_is_seen_by_subscription(tmp_path: Path) -> None:
    """Another block of the same height and its child: one reorg with depth and hashes."""
    primary = await Upstream(latest=100).start()
    async with nodes(Node()) as (node,), followed(tmp_path, primary, {"ws": node}) as (proxy, network):
        await proxy.until(lambda: bool(node.listeners))
        for number in (101, 102):
            await node.push(number)
        await node.push(101, own="0xother")
        await proxy.until(lambda: network.book.positions["ws"].latest == 101)

    found = [e for e in proxy.events() if isinstance(e, Reorg)]
    assert [(e.upstream, e.number, e.depth, e.new_hash) for e in found] == [("ws", 101, 2, "0xother")]
    await primary.stop()


async def test_a_lost_connection_is_made_again(tmp_path: Path) -> None:
    """The node goes away and comes back at the same port: heads come again, and the gauge says when they do not."""
    primary = await Upstream(latest=100).start()
    async with nodes(Node()) as (node,), followed(tmp_path, primary, {"ws": node}) as (proxy, network):
        upstream = network.by_id["ws"]
        await proxy.until(lambda: upstream.is_subscribed)
        await node.stop()
        await proxy.until(lambda: not upstream.is_subscribed)
        node.listeners.clear()
        await node.start()
        await proxy.until(lambda: upstream.is_subscribed and bool(node.listeners))
        await node.push(105)
        await proxy.until(lambda: network.book.positions["ws"].latest == 105)
    await primary.stop()


@pytest.mark.parametrize(
    ("node", "trouble"),
    [
        pytest.param(Node(chain=5), f"chain id 5, not {CHAIN}", id="another chain"),
        pytest.param(Node(is_refusing=True), "", id="no subscriptions"),
    ],
)
async def test_a_node_that_is_no_use_is_tried_again_with_a_wait(node: Node, trouble: str, tmp_path: Path) -> None:
    """Nothing of it counts, and requests go on."""
    primary = await Upstream(latest=100).start()
    async with nodes(node), followed(tmp_path, primary, {"ws": node}) as (proxy, network):
        await proxy.until(lambda: node.n_connections >= 3)

        assert network.book.positions["ws"].latest is None
        assert network.by_id["ws"].chain_error == trouble
        assert (await proxy.call("eth_call"))["result"] == "0x2a"
    await primary.stop()


async def test_a_fallback_is_listened_to_only_while_no_primary_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never connected to while a primary tells its head, is while none does, and is let go when one is back."""
    monkeypatch.setattr(listening, "FRESH_SECONDS", 0.4)
    monkeypatch.setattr(listening, "FRESH_POLLS", 1)
    primary = await Upstream(latest=100).start()
    async with nodes(Node(), Node()) as (own, paid):
        async with followed(tmp_path, primary, {"ws": own, "fws": paid}) as (proxy, network):
            await proxy.until(lambda: network.by_id["ws"].is_subscribed and network.by_id["p0"].is_verified)
            await asyncio.sleep(0.3)
            assert paid.n_connections == 0

            await own.stop()
            await asyncio.sleep(0.3)
            assert paid.n_connections == 0, "the HTTP primary still tells its head"

            await primary.stop()
            await proxy.until(lambda: network.by_id["fws"].is_subscribed)
            await paid.push(140)
            await proxy.until(lambda: network.book.positions["fws"].latest == 140)

            own.listeners.clear()
            await own.start()
            await proxy.until(lambda: network.by_id["ws"].is_subscribed)
            await proxy.until(lambda: not network.by_id["fws"].is_subscribed)
            await proxy.until(lambda: not paid.listeners)
            n = paid.n_connections
            await asyncio.sleep(0.3)
            assert paid.n_connections == n

    pushes = [e.attempt for e in proxy.internal() if e.attempt.method == "eth_subscription"]
    assert [(a.upstream, a.kind, a.tier, a.request_bytes > 0) for a in pushes] == [
        ("fws", "subscription", "fallback", True)
    ]


async def test_every_push_of_a_vendor_is_a_call_of_its_size(tmp_path: Path) -> None:
    """Heads, and messages that hold none: each was delivered, so each is paid for; an own node's are not counted."""
    primary = await Upstream(latest=100).start()
    async with nodes(Node(), Node()) as (own, paid):
        async with followed(tmp_path, primary, {"ws": own, "paid": paid}) as (proxy, network):
            await proxy.until(lambda: bool(own.listeners) and bool(paid.listeners))
            await own.push(101)
            await paid.push(101)
            odd = json.dumps({"method": "eth_subscription", "params": {"subscription": "0xs", "result": "0xé"}})
            for listener in list(paid.listeners):
                await listener.send(odd)
            await paid.push(102)
            await proxy.until(lambda: network.book.positions["paid"].latest == 102)
    await primary.stop()

    pushes = [e.attempt for e in proxy.internal() if e.attempt.method == "eth_subscription"]
    head = len(paid.text(101))
    assert [(a.upstream, a.kind, a.outcome, a.response_bytes) for a in pushes] == [
        ("paid", "subscription", "result", head), ("paid", "subscription", "result", len(odd)),
        ("paid", "subscription", "result", head),
    ]  # fmt: skip


async def test_a_subscription_that_fell_silent_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection lives, the chain went on by others: the endpoint is subscribed to anew."""
    monkeypatch.setattr(listening, "SILENT_SECONDS", 0.2)
    primary = await Upstream(latest=100).start()
    async with nodes(Node()) as (node,), followed(tmp_path, primary, {"ws": node}) as (proxy, _):
        await proxy.until(lambda: bool(node.listeners))
        await node.push(100)
        primary.latest = 104
        await proxy.until(lambda: node.n_connections >= 2)
    await primary.stop()


async def test_an_unknown_listener_does_not_hold_future_blocks_off(tmp_path: Path) -> None:
    """It is never called, so what it does not know stops nothing; what it knows counts for the ceiling."""
    primary = await Upstream(latest=100).start()
    async with nodes(Node()) as (node,):
        async with followed(tmp_path, primary, {"ws": node}, evm={"shortCircuitFutureBlocks": True}) as (
            proxy,
            network,
        ):
            await proxy.until(lambda: network.book.latest == 100 and bool(node.listeners))
            assert (await proxy.call("eth_getBlockByNumber", ["0x66", False]))["result"] is None
            n = len(primary.calls)
            await node.push(102)
            await proxy.until(lambda: network.book.latest == 102)
            await proxy.call("eth_getBlockByNumber", ["0x66", False])

            assert (n, len(primary.calls)) == (0, 1)
    await primary.stop()


async def test_each_endpoint_has_one_loop(tmp_path: Path) -> None:
    """Pollers and subscriptions are counted apart, one for each upstream."""
    primary = await Upstream(latest=100).start()
    async with nodes(Node()) as (node,), followed(tmp_path, primary, {"ws": node}) as (proxy, network):
        await proxy.until(lambda: network.by_id["ws"].is_subscribed)
        text = await proxy.metrics()

        assert "gnomon_head_pollers 1\n" in text
        assert f'gnomon_head_subscribed{{network="evm:{CHAIN}",upstream="ws"}} 1\n' in text
        assert node.n_connections == 1
    await primary.stop()


async def test_draining_lets_subscriptions_go(tmp_path: Path) -> None:
    """No connection is left behind."""
    primary = await Upstream(latest=100).start()
    async with nodes(Node()) as (node,):
        async with followed(tmp_path, primary, {"ws": node}) as (proxy, _):
            await proxy.until(lambda: bool(node.listeners))
        async with asyncio.timeout(2):
            while node.listeners:  # noqa: ASYNC110  (the node's own state)
                await asyncio.sleep(0.01)

        assert len(proxy.service.tasks) == 0
    assert all(isinstance(e, InternalAttempt) for e in proxy.internal())
    await primary.stop()


@pytest.mark.parametrize("n_turns", [0, 1, 2])
async def test_a_head_that_comes_as_the_proxy_stops_does_not_keep_it(
    n_turns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener that is cancelled in the very moment a message comes ends all the same."""
    came: list[asyncio.Future[bytes]] = []

    async def recv(connection: ClientConnection) -> bytes:
        came.append(asyncio.get_running_loop().create_future())
        return await came[-1]

    monkeypatch.setattr(ClientConnection, "recv", recv)
    monkeypatch.setattr("proxy.subscriptions.TICK_SECONDS", 30.0)
    primary = await Upstream(latest=100).start()
    async with nodes(Node()) as (node,), followed(tmp_path, primary, {"ws": node}) as (proxy, network):
        for result in (hex(CHAIN), "0xs"):
            await proxy.until(lambda: bool(came) and not came[-1].done())
            came[-1].set_result(json.dumps({"id": len(came), "result": result}).encode())
            await asyncio.sleep(0.02)
        assert network.by_id["ws"].is_subscribed
        await proxy.until(lambda: not came[-1].done())
        (listener,) = [task for task in asyncio.all_tasks() if task.get_name() == "subscription:ws"]
        came[-1].set_result(b"{}")
        for _ in range(n_turns):
            await asyncio.sleep(0)  # the message is there, the listener has not yet run
        listener.cancel()
        await asyncio.wait([listener], timeout=5)
        assert listener.cancelled()
    await primary.stop()
