"""The shim withholds blocks and refuses calls, and passes everything else."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from gnomon.demo.faults import REFUSE_EVERY, FaultShim, asks_for_withheld, is_withheld
from gnomon.demo.rpc_server import RpcServer

LOST = next(height for height in range(1, 20) if is_withheld(height))
KEPT = LOST + 1


def lookup(height: int, request_id: object = 1) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "method": "eth_getBlockByNumber", "params": [hex(height), False]}


def behind_shim(scenario: Callable[[Callable[[object], Awaitable[Any]], FaultShim], Awaitable[None]]) -> None:
    """Run a scenario that posts to a shim in front of a server that echoes method and params."""

    async def go() -> None:
        server = RpcServer(lambda method, params: [method, list(params)])
        await server.start()
        async with aiohttp.ClientSession() as session:
            shim = FaultShim(session, server.url)
            await shim.start()

            async def post(message: object) -> Any:
                async with session.post(shim.url, json=message) as response:
                    return response.status if response.status != 200 else await response.json()

            try:
                await scenario(post, shim)
            finally:
                await shim.stop()
                await server.stop()

    asyncio.run(go())


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (lookup(LOST), True),
        (lookup(KEPT), False),
        ({"method": "eth_getBlockReceipts", "params": [hex(LOST)]}, True),
        ({"method": "eth_getBlockByNumber", "params": ["latest", False]}, False),
        ({"method": "eth_getBlockByHash", "params": [hex(LOST)]}, False),
        ({"method": "eth_getBlockByNumber", "params": []}, False),
        ({"method": "eth_getBlockByNumber"}, False),
        ({"method": "eth_getBlockByNumber", "params": [LOST]}, False),
        ([lookup(LOST)], False),
        (None, False),
    ],
)
def test_only_lookups_by_number_are_withheld(message: object, answer: bool) -> None:
    """Tags, hashes, other methods and nonsense are not withheld."""
    assert answer == asks_for_withheld(message)


def test_a_withheld_block_is_null_with_the_asker_s_id() -> None:
    """A lost block is null; its neighbour comes from the node; both are counted right."""

    async def scenario(post: Callable[[object], Awaitable[Any]], shim: FaultShim) -> None:
        assert await post(lookup(LOST, "a")) == {"jsonrpc": "2.0", "id": "a", "result": None}
        assert (await post(lookup(KEPT)))["result"] == ["eth_getBlockByNumber", [hex(KEPT), False]]
        assert shim.n_withheld == 1

    behind_shim(scenario)


def test_a_batch_loses_only_its_withheld_elements() -> None:
    """In a batch only the answers to withheld lookups are null."""

    async def scenario(post: Callable[[object], Awaitable[Any]], shim: FaultShim) -> None:
        answers = {answer["id"]: answer["result"] for answer in await post([lookup(KEPT, 1), lookup(LOST, 2)])}
        assert answers == {1: ["eth_getBlockByNumber", [hex(KEPT), False]], 2: None}
        assert shim.n_withheld == 1

    behind_shim(scenario)


def test_refuses_now_and_then() -> None:
    """Every so many queries for logs one is refused with 503; other methods do not count."""

    async def scenario(post: Callable[[object], Awaitable[Any]], shim: FaultShim) -> None:
        query = {"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [{}]}
        answers = []
        for _ in range(REFUSE_EVERY):
            answers.append(await post(query))
            await post(lookup(KEPT))
        assert [a for a in answers if a == 503] == answers[-1:]
        assert shim.n_refused == 1

    behind_shim(scenario)


def test_a_node_that_is_gone_is_a_502() -> None:
    """When the node behind does not answer, the shim says so and stays up."""

    async def go() -> None:
        server = RpcServer(lambda method, params: 1)
        await server.start()
        await server.stop()
        async with aiohttp.ClientSession() as session:
            shim = FaultShim(session, server.url)
            await shim.start()
            try:
                async with session.post(shim.url, json=lookup(KEPT)) as response:
                    assert response.status == 502
            finally:
                await shim.stop()

    asyncio.run(go())
