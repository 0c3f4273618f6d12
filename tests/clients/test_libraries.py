"""web3.py, viem and ethers get the same through the proxy as from the node itself, batches included."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gnomon.demo import contract
from gnomon.demo.clients import kept_recursion_limit
from gnomon.demo.installation import folders, locate
from gnomon.demo.real import RealWorld
from tests.clients.libraries import folder, missing
from tests.proxy.scripted import PATH, configuration, running
from tests.services import is_ci

with kept_recursion_limit():
    from web3 import Web3

pytestmark = [pytest.mark.nodes, pytest.mark.timeout(180)]
SUITE = Path(__file__).parent / "suite.cjs"


class Place:
    """Stands where a scripted upstream stands: only its port is read."""

    def __init__(self, url: str) -> None:
        self.port = int(url.rpartition(":")[2].strip("/"))


def compare(tmp_path: Path, ask: Callable[[str, RealWorld], Any]) -> tuple[Any, Any]:
    """Return what a client is told by the node, and through the proxy over it."""

    async def run() -> tuple[Any, Any]:
        found = locate(folders(dict(os.environ)))
        assert found is not None
        async with aiohttp.ClientSession() as session:
            world = await RealWorld.open(session, found, tmp_path / "nodes")
            try:
                node = world._nodes[0].rpc.url
                config = configuration([Place(node)], timeout="10s")  # type: ignore[list-item]
                async with running(config, tmp_path / "log") as proxy:
                    through = f"http://127.0.0.1:{proxy.service.port}{PATH}"
                    return (await asyncio.to_thread(ask, node, world), await asyncio.to_thread(ask, through, world))
            finally:
                await world.stop()

    return asyncio.run(run())


@pytest.mark.parametrize("library", ["viem", "ethers"])
@pytest.mark.parametrize("batch", ["0", "1"], ids=["single", "batched"])
def test_javascript_libraries_are_told_the_same(library: str, batch: str, tmp_path: Path) -> None:
    """Blocks, transactions, receipts, state, calls, reverts, gas, logs, and what is not there."""
    why = missing()
    if why is not None:
        if is_ci():
            pytest.fail(why)
        pytest.skip(why)

    def ask(url: str, world: RealWorld) -> Any:
        done = subprocess.run(
            ["node", str(SUITE), str(folder()), library, url, world.register],
            capture_output=True, text=True, timeout=60, env={**os.environ, "BATCH": batch}, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    direct, through = compare(tmp_path, ask)

    assert through == direct
    assert len(direct) >= 18
    assert "asked to fail" in direct["revert"]


def test_web3_is_told_the_same(tmp_path: Path) -> None:
    """The same ground, with Python's library."""

    def ask(url: str, world: RealWorld) -> Any:
        web3 = Web3(Web3.HTTPProvider(url))
        height = web3.eth.block_number
        block = web3.eth.get_block(height, True)
        transaction = block["transactions"][0]
        assert not isinstance(transaction, bytes)
        sender = transaction["from"]
        register = Web3.to_checksum_address(world.register)
        get = {"to": register, "data": f"0x{contract.GET}{1:064x}"}
        fail = {"to": register, "data": f"0x{contract.FAIL}"}
        answers: list[Any] = []
        for question in (
            lambda: web3.eth.chain_id,
            lambda: block,
            lambda: web3.eth.get_block(block["hash"]),
            lambda: web3.eth.get_block(height + 1000),
            lambda: web3.eth.get_transaction(transaction["hash"]),
            lambda: web3.eth.get_transaction_receipt(transaction["hash"]),
            lambda: web3.eth.get_transaction_receipt(b"\x11" * 32),  # type: ignore[arg-type]
            lambda: web3.eth.get_balance(sender, height),
            lambda: web3.eth.get_transaction_count(sender, height),
            lambda: web3.eth.get_code(register),
            lambda: web3.eth.get_storage_at(register, 1, height),
            lambda: web3.eth.call(get, height),  # type: ignore[arg-type]
            lambda: web3.eth.call(fail, height),  # type: ignore[arg-type]
            lambda: web3.eth.estimate_gas({"from": sender, "to": sender, "value": Web3.to_wei(1, "wei")}),
            lambda: web3.eth.get_logs({"address": register, "fromBlock": 0, "toBlock": height}),
            lambda: web3.eth.fee_history(2, height, [50]),
        ):
            try:
                answers.append(Web3.to_json(question()))  # type: ignore[arg-type]
            except Exception as error:
                answers.append(f"{type(error).__name__}: {error}")
        return answers

    direct, through = compare(tmp_path, ask)

    assert through == direct
    assert any("asked to fail" in answer for answer in direct)
