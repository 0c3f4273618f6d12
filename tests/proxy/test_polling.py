"""Heads by polling: who is asked what, how often, and what is written of it (behaviour.md 3, sentence by sentence)."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

from gnomon.events.contract import HeadUpdate, Reorg
from proxy.polling import check_chain
from tests.proxy.scripted import CHAIN, Script, Upstream, configuration, http, result, running, upstreams


class Asked(Upstream):
    """A node that counts what it is asked, and may answer head questions by a script of its own."""

    def __init__(self, heads: Script | None = None, *, latest: int = 100) -> None:
        super().__init__(latest=latest)
        self.heads = heads
        self.polls: Counter[str] = Counter()

    async def start(self) -> "Asked":
        await super().start()
        return self

    def _answer(self, request: dict[str, Any]) -> bytes | None:
        params = request.get("params") or [""]
        self.polls[f"{request['method']} {params[0]}".strip()] += 1
        if self.heads is not None:
            answer = self.heads(request)
            if answer is not None:
                return answer
        return super()._answer(request)


def refusal(request: dict[str, Any]) -> bytes:
    error = {"code": -32602, "message": "invalid block tag"}
    return http(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode())


async def test_every_tier_is_polled_by_one_loop(tmp_path: Path) -> None:
    """One poller for each upstream, shadows and fallbacks too, as the gauge says; each interval is one poll."""
    nodes = [await Asked().start() for _ in range(3)]
    async with running(configuration([nodes[0]], [nodes[1]], [nodes[2]]), tmp_path) as proxy:
        await asyncio.sleep(1.1)

        assert "gnomon_head_pollers 3\n" in await proxy.metrics()
    for node in nodes:
        assert 4 <= node.polls["eth_getBlockByNumber latest"] <= 8, "200 ms apart for 1.1 s, spread by a tenth"
        assert node.polls["eth_chainId"] == 1
        await node.stop()


async def test_latest_and_finalized_are_asked_of_all_and_safe_of_those_that_are_free(tmp_path: Path) -> None:
    """A fallback's polls cost money: `safe` is left out there."""
    nodes = [await Asked().start() for _ in range(3)]
    async with running(configuration([nodes[0]], [nodes[1]], [nodes[2]]), tmp_path) as proxy:
        await proxy.until(lambda: all(node.polls["eth_getBlockByNumber finalized"] >= 2 for node in nodes))
        network = proxy.service.networks[0]

        assert [node.polls["eth_getBlockByNumber safe"] > 0 for node in nodes] == [True, False, True]
        assert (network.book.latest, network.book.safe, network.book.finalized) == (100, 90, 90)
    for node in nodes:
        await node.stop()


async def test_an_axis_that_a_node_refuses_is_not_asked_for_ever(tmp_path: Path) -> None:
    """Three refusals are enough until the next chain check; the other axes go on."""

    def no_safe(request: dict[str, Any]) -> bytes | None:
        return refusal(request) if (request.get("params") or [""])[0] == "safe" else None

    node = await Asked(no_safe).start()
    async with running(configuration([node]), tmp_path) as proxy:
        await proxy.until(lambda: node.polls["eth_getBlockByNumber latest"] >= 6)

        assert node.polls["eth_getBlockByNumber safe"] == 3
        assert proxy.service.networks[0].book.safe is None
    await node.stop()


async def test_each_change_is_an_event(tmp_path: Path) -> None:
    """With number, hash, parent, axis and source, the first observation too; the same again is none."""
    async with upstreams(None) as (node,), running(configuration([node]), tmp_path) as proxy:
        await asyncio.sleep(0.5)
        node.latest = 101
        await proxy.until(lambda: proxy.service.networks[0].book.latest == 101)

    seen = [(e.axis, e.number, e.hash, e.parent_hash, e.source) for e in proxy.events() if isinstance(e, HeadUpdate)]
    assert [s for s in seen if s[0] == "latest"] == [
        ("latest", n, f"0x{n:064x}", f"0x{n - 1:064x}", "poll") for n in (100, 101)
    ]
    assert [s[1] for s in seen if s[0] == "finalized"] == [90]


async def test_a_replaced_block_is_a_reorg(tmp_path: Path) -> None:
    """Another hash at the same height: depth 1, old and new hash."""
    fork = {"hash": "0xa"}

    def block(request: dict[str, Any]) -> bytes | None:
        if (request.get("params") or [""])[0] != "latest":
            return None
        return result(request, {"number": "0x64", "hash": fork["hash"], "parentHash": "0x63"})

    node = await Asked(block).start()
    async with running(configuration([node]), tmp_path) as proxy:
        fork["hash"] = "0xb"
        await proxy.until(lambda: any(isinstance(e, Reorg) for e in proxy.events()))

    (found,) = [e for e in proxy.events() if isinstance(e, Reorg)]
    assert (found.upstream, found.number, found.depth, found.old_hash, found.new_hash) == ("p0", 100, 1, "0xa", "0xb")
    await node.stop()


async def test_a_head_learnt_from_a_response_counts(tmp_path: Path) -> None:
    """By `eth_blockNumber`, and by any answer that speaks of a block above the head; a pending block is none."""

    def answers(request: dict[str, Any]) -> bytes:
        if request["method"] == "eth_blockNumber":
            return result(request, "0x65")
        if request["method"] == "eth_getTransactionReceipt":
            return result(request, {"blockNumber": "0x66", "blockHash": "0x1"})
        return result(request, {"number": "0x67", "hash": None})

    primary = {"evm": {"chainId": CHAIN, "statePollerInterval": "1h"}}
    async with upstreams(answers) as (node,), running(configuration([node], primary=primary), tmp_path) as proxy:
        book = proxy.service.networks[0].book
        await proxy.call("eth_getBlockByNumber", ["pending", False])
        assert book.latest == 100
        await proxy.call("eth_blockNumber")
        assert book.latest == 101
        await proxy.call("eth_getTransactionReceipt", ["0x" + "1" * 64])
        assert book.latest == 102

    sources = [(e.number, e.source) for e in proxy.events() if isinstance(e, HeadUpdate) and e.axis == "latest"]
    assert sources == [(100, "poll"), (101, "response"), (102, "response")]


async def test_lag_is_told_in_blocks_and_seconds(tmp_path: Path) -> None:
    """The one behind by its blocks and since when, the best by nothing."""
    async with upstreams(None, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        nodes[0].latest = 104
        await proxy.until(lambda: proxy.service.networks[0].book.latest == 104)
        await asyncio.sleep(0.3)
        text = await proxy.metrics()

        own = f'{{network="evm:{CHAIN}",upstream="p1"}} '
        assert f"gnomon_head_lag_blocks{own}4\n" in text
        seconds = float(text.partition(f"gnomon_head_lag_seconds{own}")[2].partition("\n")[0])
        assert 0.3 <= seconds < 2
        assert f'gnomon_head_lag_seconds{{network="evm:{CHAIN}",upstream="p0"}} 0\n' in text


async def test_an_outlier_sets_no_head_and_is_named(tmp_path: Path) -> None:
    """Far above the second highest: the network's head stays, the event names it, the ceiling counts it."""
    async with upstreams(None, None, None) as nodes:
        evm = {"shortCircuitFutureBlocks": True}
        async with running(configuration(nodes, evm=evm), tmp_path) as proxy:
            nodes[2].latest = 5000
            network = proxy.service.networks[0]
            await proxy.until(lambda: network.book.positions["p2"].latest == 5000)

            assert (network.book.latest, network.ceiling) == (100, 5000)
    left_out = [(e.upstream, e.number) for e in proxy.events() if isinstance(e, HeadUpdate) and e.is_outlier]
    assert left_out == [("p2", 5000)]


async def test_who_changes_the_chain_sets_no_head(tmp_path: Path) -> None:
    """An upstream whose chain id is another at the next check serves nobody, and its head is left out."""
    chain = {"id": hex(CHAIN)}
    node = await Asked(lambda r: result(r, chain["id"]) if r["method"] == "eth_chainId" else None, latest=120).start()
    async with upstreams(None) as (other,), running(configuration([other, node]), tmp_path) as proxy:
        network = proxy.service.networks[0]
        await proxy.until(lambda: network.book.latest == 120)
        chain["id"] = "0x5"
        await check_chain(proxy.service, network, network.by_id["p1"])

        assert network.book.latest == 100
        assert not network.by_id["p1"].is_verified
        assert (await proxy.call("eth_call"))["result"] == "0x2a"
        assert not node.calls
    await node.stop()
