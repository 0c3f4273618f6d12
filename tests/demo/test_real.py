"""The world of real nodes; needs anvil and hardhat or ganache (`GNOMON_NODES`, or the cache folder)."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gnomon.demo import contract
from gnomon.demo.installation import Installation, folders, locate
from gnomon.demo.nodes import Rpc
from gnomon.demo.real import RealWorld
from gnomon.demo.world import HISTORY_BLOCKS

pytestmark = pytest.mark.nodes


@pytest.fixture
def installation() -> Installation:
    """Return the real nodes that the marker has found."""
    found = locate(folders(dict(os.environ)))
    assert found is not None
    return found


def in_world(installation: Installation, folder: Path, scenario: Callable[[RealWorld, Any], Awaitable[None]]) -> None:
    async def go() -> None:
        async with aiohttp.ClientSession() as session:
            world = await RealWorld.open(session, installation, folder)
            try:
                await scenario(world, lambda url: Rpc(session, url))
            finally:
                await world.stop()

    asyncio.run(go())


def test_nodes_hold_the_same_transactions(installation: Installation, tmp_path: Path) -> None:
    """Every node has the same heights, timestamps, transaction hashes, logs and state, block after block."""

    async def scenario(world: RealWorld, rpc: Any) -> None:
        await world.advance()
        assert world.height == HISTORY_BLOCKS + 2
        nodes = [rpc(endpoint.url) for endpoint in (world.primary, world.shadow, world.fallback)]
        for height in (1, 4, world.height - 1):
            blocks = [await node.call("eth_getBlockByNumber", hex(height), False) for node in nodes]
            seen = {(b["number"], b["timestamp"], tuple(b["transactions"]), b["gasUsed"]) for b in blocks if b}
            assert len(seen) == 1
            assert next(iter(seen))[2]
        query = {"fromBlock": "0x1", "toBlock": hex(world.height), "address": world.register}
        logs = [await node.call("eth_getLogs", query) for node in nodes]
        assert len({tuple(log["data"] for log in each) for each in logs}) == 1
        assert len(logs[0]) == 2 * (world.height - 1)
        words = {
            await node.call("eth_call", {"to": world.register, "data": contract.get_call(1)}, "latest")
            for node in nodes
        }
        assert len(words) == 1

    in_world(installation, tmp_path, scenario)


def test_finalized_is_served(installation: Installation, tmp_path: Path) -> None:
    """Primary and fallback serve a finalized block a little below the newest, so that verdicts know finality."""

    async def scenario(world: RealWorld, rpc: Any) -> None:
        for endpoint in (world.primary, world.fallback):
            block = await rpc(endpoint.url).call("eth_getBlockByNumber", "finalized", False)
            assert world.height - 4 <= int(block["number"], 16) <= world.height

    in_world(installation, tmp_path, scenario)


def test_stop_leaves_no_process(installation: Installation, tmp_path: Path) -> None:
    """After `stop` every node has ended."""
    pids: list[int] = []

    async def scenario(world: RealWorld, rpc: Any) -> None:
        pids.extend(node.pid for node in world._nodes)
        assert all(_is_running(pid) for pid in pids)

    in_world(installation, tmp_path, scenario)

    assert len(pids) == 3
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.skipif(not Path("/proc").exists(), reason="the kernel's request to die with the parent is Linux only")
def test_nodes_die_with_us(installation: Installation, tmp_path: Path) -> None:
    """When the process that started the nodes is killed, the kernel ends them."""
    script = (
        "import asyncio, sys, aiohttp\n"
        "from pathlib import Path\n"
        "from gnomon.demo.installation import folders, locate\n"
        "from gnomon.demo.real import RealWorld\n"
        "async def go():\n"
        "    import os\n"
        "    async with aiohttp.ClientSession() as session:\n"
        "        world = await RealWorld.open(session, locate(folders(dict(os.environ))), Path(sys.argv[1]))\n"
        "        print(*[node.pid for node in world._nodes], flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(go())\n"
    )

    async def go() -> list[int]:
        import sys

        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, str(tmp_path), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        pids = [int(word) for word in (await process.stdout.readline()).split()]
        process.kill()
        await process.wait()
        for _ in range(100):
            if not [pid for pid in pids if _is_running(pid)]:
                break
            await asyncio.sleep(0.05)
        return pids

    pids = asyncio.run(go())

    assert len(pids) == 3
    assert not [pid for pid in pids if _is_running(pid)]


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
