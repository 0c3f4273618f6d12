"""Simulated endpoints for the tests of `gnomon compare`."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gnomon.demo.chain import Chain
from gnomon.demo.planted import FaultyChain
from gnomon.demo.rpc_server import RpcServer

Answer = Callable[[str, Sequence[object]], object]
GENESIS = 1_700_000_000


def chain(blocks: int = 20, seed: str = "test", chain_id: int = 31337) -> Chain:
    """Return a chain with some blocks."""
    made = Chain(seed=seed, chain_id=chain_id, genesis_time=GENESIS, name="x")
    for i in range(blocks):
        made.mine(GENESIS + 2 * (i + 1))
    return made


def faulty(blocks: int = 20) -> FaultyChain:
    """Return the same chain with the planted differences."""
    return FaultyChain(chain(blocks))


@contextmanager
def serving(*answers: Answer) -> Iterator[list[str]]:
    """Give the URLs of servers that answer so, run by a thread, so that a command can be called as a function."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    servers = [RpcServer(answer) for answer in answers]
    try:
        yield [asyncio.run_coroutine_threadsafe(server.start(), loop).result(10) for server in servers]
    finally:
        for server in servers:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
