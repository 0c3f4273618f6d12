"""The world without real nodes: three instances of the simulated chain, the shadow with planted differences."""

import time

import aiohttp

from gnomon.demo.chain import ACCOUNTS, REGISTER, Chain
from gnomon.demo.faults import FaultShim
from gnomon.demo.planted import FaultyChain
from gnomon.demo.rpc_server import RpcServer
from gnomon.demo.world import BLOCK_SECONDS, GENESIS_AGE_SECONDS, HISTORY_BLOCKS, Endpoint

CHAIN_ID = 31337


class SimulatedWorld:
    """See `gnomon.demo.world.World`."""

    kind = "simulated"
    register = REGISTER
    accounts = ACCOUNTS

    def __init__(self, *, now: float, seed: str = "gnomon") -> None:
        genesis_time = int(now) - GENESIS_AGE_SECONDS
        self._chains = [
            Chain(seed=seed, chain_id=CHAIN_ID, genesis_time=genesis_time, name=name)
            for name in ("primary", "shadow", "fallback")
        ]
        self._timestamp = genesis_time
        for _ in range(HISTORY_BLOCKS):
            self._mine()
        self._servers = [
            RpcServer(self._chains[0].answer),
            RpcServer(FaultyChain(self._chains[1]).answer),
            RpcServer(self._chains[2].answer),
        ]
        self._shim: FaultShim | None = None
        self.primary = self.shadow = self.fallback = Endpoint("", "", "")

    @classmethod
    async def open(cls, session: aiohttp.ClientSession) -> "SimulatedWorld":
        """Return a world whose three endpoints listen."""
        world = cls(now=time.time())
        try:
            urls = [await server.start() for server in world._servers]
            world._shim = FaultShim(session, urls[0])
            urls[0] = await world._shim.start()
        except BaseException:
            await world.stop()
            raise
        world.primary, world.shadow, world.fallback = (
            Endpoint(f"simulated-{name}", url, f"gnomon-simulated-chain/{name}")
            for name, url in zip(("primary", "shadow", "fallback"), urls, strict=True)
        )
        return world

    def _mine(self) -> None:
        self._timestamp += BLOCK_SECONDS
        for chain in self._chains:
            chain.mine(self._timestamp)

    @property
    def height(self) -> int:
        """The newest block."""
        return self._chains[0].height

    @property
    def withheld(self) -> int:
        """Block look-ups answered with null by the shim."""
        return self._shim.n_withheld if self._shim else 0

    @property
    def refused(self) -> int:
        """Calls refused by the shim."""
        return self._shim.n_refused if self._shim else 0

    async def advance(self) -> None:
        """Add one block at all three."""
        self._mine()

    async def stop(self) -> None:
        """Close the listeners."""
        if self._shim is not None:
            await self._shim.stop()
        for server in self._servers:
            await server.stop()
