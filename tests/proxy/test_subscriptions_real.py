"""Heads by subscription from a real node: anvil, asked over HTTP and listened to over WebSocket."""

import json
import os
import time
from pathlib import Path

import aiohttp
import pytest

from gnomon.demo.installation import folders, locate
from gnomon.demo.nodes import CHAIN_ID, start_node
from gnomon.events.contract import HeadUpdate, Reorg
from tests.proxy.test_subscriptions import running_all

pytestmark = pytest.mark.nodes


async def test_anvil_pushes_heads_and_reorgs(tmp_path: Path) -> None:
    """Blocks come by subscription, whatever polls see; three replaced blocks are one reorg of that depth."""
    installation = locate(folders(dict(os.environ)))
    assert installation is not None
    async with aiohttp.ClientSession() as session:
        node = await start_node(
            session, "anvil", installation, kind="anvil", genesis_time=int(time.time()) - 3600, folder=tmp_path / "node"
        )
        try:
            url = node.rpc.url
            entry = {"evm": {"chainId": CHAIN_ID, "statePollerInterval": "5s"}}
            upstreams = [
                {"id": "http", "endpoint": url, **entry},
                {"id": "ws", "endpoint": url.replace("http://", "ws://"), **entry},
            ]
            config = {"projects": [{"id": "main", "upstreams": upstreams}], "gnomon": {"proxy": {"port": 0}}}
            async with running_all(json.dumps(config), tmp_path / "log") as proxy:
                network = proxy.service.networks[0]
                await proxy.until(lambda: network.by_id["ws"].is_subscribed and network.book.latest is not None)
                before = network.book.latest
                assert before is not None
                for number in range(before + 1, before + 6):
                    await node.rpc.call("evm_mine")
                    await proxy.until(lambda number=number: network.book.latest == number)  # type: ignore[misc]
                await node.rpc.call("anvil_reorg", 3, [])
                await proxy.until(lambda: any(isinstance(e, Reorg) for e in proxy.events()))

            heads = [e for e in proxy.events() if isinstance(e, HeadUpdate) and e.upstream == "ws"]
            reorgs = [e for e in proxy.events() if isinstance(e, Reorg)]
            assert {e.source for e in heads} == {"subscription"}
            assert [e.number for e in heads[:5]] == list(range(before + 1, before + 6))
            assert (reorgs[0].upstream, reorgs[0].depth) == ("ws", 3)
        finally:
            await node.stop()
