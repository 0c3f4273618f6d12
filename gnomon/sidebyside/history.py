"""Where the histories of two endpoints part: two nodes of one chain id may serve two chains."""

import asyncio

from gnomon.sidebyside.client import Client
from gnomon.sidebyside.errors import EndpointFailed


async def find_parting(primary: Client, shadow: Client, height: int) -> int | None:
    """
    Return the first block of which the two have different hashes, at most `height`; None where they agree there.

    Blocks build on each other, so the first is found by halving; a height at which one serves no block counts as
    agreement (old blocks may be pruned).
    """
    if not await _differ(primary, shadow, height):
        return None
    low, high = -1, height  # they agree at `low`, and differ at `high`
    while high - low > 1:
        middle = (low + high) // 2
        if await _differ(primary, shadow, middle):
            high = middle
        else:
            low = middle
    return high


async def _differ(primary: Client, shadow: Client, height: int) -> bool:
    a, b = await asyncio.gather(_hash(primary, height), _hash(shadow, height))
    return None not in (a, b) and a != b


async def _hash(client: Client, height: int) -> str | None:
    try:
        block = await client.result("eth_getBlockByNumber", hex(height), False)
    except EndpointFailed:
        return None
    found = block.get("hash") if isinstance(block, dict) else None
    return found.lower() if isinstance(found, str) else None
