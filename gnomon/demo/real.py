"""The world of real nodes: anvil, another implementation and a second anvil, fed the same signed transactions."""

import asyncio
import time
from pathlib import Path
from typing import Final

import aiohttp

from gnomon.demo import contract
from gnomon.demo.errors import NodeFailed
from gnomon.demo.faults import FaultShim
from gnomon.demo.installation import Installation
from gnomon.demo.nodes import CHAIN_ID, Node, start_node
from gnomon.demo.world import BLOCK_SECONDS, GENESIS_AGE_SECONDS, HISTORY_BLOCKS, Endpoint

COINBASE: Final = "0x00000000000000000000000000000000c0ffee00"
_MAX_FEE: Final = hex(100 * 10**9)
_TIP: Final = hex(10**9)
_N_KEYS: Final = 8


class RealWorld:
    """See `gnomon.demo.world.World`."""

    kind = "real"
    register = ""
    accounts: tuple[str, ...] = ()

    def __init__(self, session: aiohttp.ClientSession, installation: Installation, folder: Path) -> None:
        self._session = session
        self._installation = installation
        self._folder = folder
        self._genesis_time = int(time.time()) - GENESIS_AGE_SECONDS
        self._timestamp = self._genesis_time
        self._nodes: list[Node] = []
        self._shim: FaultShim | None = None
        self._height = 0
        self._nonces: dict[str, int] = {}
        self.primary = self.shadow = self.fallback = Endpoint("", "", "")

    @classmethod
    async def open(cls, session: aiohttp.ClientSession, installation: Installation, folder: Path) -> "RealWorld":
        """
        Return a world with its contract deployed and some history.

        Raises:
            NodeFailed: a node did not start, or refused a transaction.
        """
        world = cls(session, installation, folder)
        try:
            await world._start()
        except BaseException:
            await world.stop()
            raise
        return world

    async def _start(self) -> None:
        kinds = (("anvil", "anvil"), (self._installation.shadow, self._installation.shadow), ("anvil-paid", "anvil"))
        starts = [self._start_node(name, kind) for name, kind in kinds]
        results = await asyncio.gather(*starts, return_exceptions=True)
        self._nodes = [result for result in results if isinstance(result, Node)]
        for result in results:
            if isinstance(result, BaseException):
                raise result
        anvil, shadow, paid = self._nodes
        self._shim = FaultShim(self._session, anvil.rpc.url)
        self.primary = Endpoint("anvil", await self._shim.start(), anvil.version)
        self.shadow = Endpoint(shadow.name, shadow.rpc.url, shadow.version)
        self.fallback = Endpoint("anvil-paid", paid.rpc.url, paid.version)
        for node in (anvil, paid):
            await node.rpc.call("anvil_setCoinbase", COINBASE)
        if shadow.name == "hardhat":
            await shadow.rpc.call("hardhat_setLoggingEnabled", False)
            await shadow.rpc.call("hardhat_setCoinbase", COINBASE)
        else:
            await shadow.rpc.call("miner_stop")
        accounts = await anvil.rpc.call("eth_accounts")
        assert isinstance(accounts, list)
        self.accounts = tuple(str(account).lower() for account in accounts)
        await self._deploy()
        for _ in range(HISTORY_BLOCKS):
            await self.advance()

    async def _start_node(self, name: str, kind: str) -> Node:
        return await start_node(
            self._session,
            name,
            self._installation,
            kind=kind,
            genesis_time=self._genesis_time,
            folder=self._folder,
        )

    @property
    def height(self) -> int:
        """The newest block that every node has."""
        return self._height

    @property
    def withheld(self) -> int:
        """Block look-ups answered with null by the shim."""
        return self._shim.n_withheld if self._shim else 0

    @property
    def refused(self) -> int:
        """Calls refused by the shim."""
        return self._shim.n_refused if self._shim else 0

    async def _deploy(self) -> None:
        creation = await self._send(self.accounts[0], None, contract.creation_code(), 0x80000)
        await self._mine()
        receipt = await self._nodes[0].rpc.call("eth_getTransactionReceipt", creation)
        if not isinstance(receipt, dict) or receipt.get("status") != "0x1":
            raise NodeFailed(f"the demo's contract was not created: {receipt}")
        self.register = str(receipt["contractAddress"]).lower()

    async def advance(self) -> None:
        """
        Add one block at every node: writes to the register, a transfer, now and then one that reverts.

        Raises:
            NodeFailed: a node refused, or the nodes no longer agree on transactions and height.
        """
        turn = self._height + 1
        sender, other = (self.accounts[(turn + shift) % 4] for shift in (0, 1))
        await self._send(sender, self.register, contract.set_call(turn % _N_KEYS, turn * 1000 + 7), 0x20000)
        await self._send(other, self.register, contract.set_call((turn * 3) % _N_KEYS, turn), 0x20000, access_list=True)
        await self._send(other, sender, "0x", 21_000, value=turn * 10**9, legacy=True)
        if turn % 4 == 0:
            await self._send(sender, self.register, "0x" + contract.FAIL, 0x20000, legacy=True)
        await self._mine()

    async def _send(
        self,
        sender: str,
        to: str | None,
        data: str,
        gas: int,
        *,
        value: int = 0,
        legacy: bool = False,
        access_list: bool = False,
    ) -> str:
        """Have the first node sign one transaction, give the same bytes to all, and return its hash."""
        nonce = self._nonces.get(sender, 0)
        transaction: dict[str, object] = {
            "from": sender,
            "nonce": hex(nonce),
            "gas": hex(gas),
            "value": hex(value),
            "data": data,
            "chainId": hex(CHAIN_ID),
        }
        if to:
            transaction["to"] = to
        if legacy:
            transaction |= {"gasPrice": _MAX_FEE}
        else:
            transaction |= {"maxFeePerGas": _MAX_FEE, "maxPriorityFeePerGas": _TIP, "type": "0x2"}
        if access_list:
            slot = "0x" + data[10:74]
            transaction["accessList"] = [{"address": to, "storageKeys": [slot]}]
        raw = await self._nodes[0].rpc.call("eth_signTransaction", transaction)
        hashes = await asyncio.gather(*(node.rpc.call("eth_sendRawTransaction", raw) for node in self._nodes))
        if len(set(hashes)) != 1:
            raise NodeFailed(f"the nodes hash one transaction differently: {hashes}")
        self._nonces[sender] = nonce + 1
        return str(hashes[0])

    async def _mine(self) -> None:
        """
        Mine one block everywhere at one timestamp.

        The first node's randomness and base fee are given to hardhat: anvil leaves the base fee as it was in the first
        block where EIP-1559 lowers it, after which every price and balance would differ for that one reason.
        """
        self._timestamp += BLOCK_SECONDS
        anvil, shadow, paid = self._nodes
        await asyncio.gather(self._mine_at(anvil), self._mine_at(paid))
        if shadow.name == "hardhat":
            block = await anvil.rpc.call("eth_getBlockByNumber", "latest", False)
            assert isinstance(block, dict)
            await shadow.rpc.call("hardhat_setPrevRandao", block["mixHash"])
            await shadow.rpc.call("hardhat_setNextBlockBaseFeePerGas", block["baseFeePerGas"])
        await self._mine_at(shadow)
        heights = await asyncio.gather(*(node.rpc.call("eth_blockNumber") for node in self._nodes))
        if len(set(heights)) != 1:
            raise NodeFailed(f"the nodes are at different heights: {heights}")
        self._height = int(str(heights[0]), 16)

    async def _mine_at(self, node: Node) -> None:
        if node.name == "ganache":
            await node.rpc.call("evm_mine", {"timestamp": self._timestamp, "blocks": 1})
            return
        await node.rpc.call("evm_setNextBlockTimestamp", self._timestamp)
        await node.rpc.call("evm_mine")

    async def stop(self) -> None:
        """End the nodes and the shim."""
        if self._shim is not None:
            await self._shim.stop()
        await asyncio.gather(*(node.stop() for node in self._nodes))
