"""The heads of two endpoints, and the highest block that is final at both."""

import asyncio
from dataclasses import dataclass
from typing import Final

from gnomon.sidebyside.client import Client
from gnomon.sidebyside.errors import EndpointFailed, SideBySideError

MARGIN_BLOCKS: Final = 64
"""Two epochs of Ethereum: how far below the newest block counts as final where no finalized block is served."""


@dataclass(frozen=True, slots=True)
class Heads:
    """What one endpoint says of its chain."""

    chain_id: int
    latest: int
    finalized: int | None
    """None: it serves no finalized block."""
    version: str


@dataclass(frozen=True, slots=True)
class Common:
    """What holds for both endpoints."""

    chain_id: int
    latest: int
    """The lower of the two newest blocks."""
    final: int
    explanation: str
    """How `final` was found, in a few words."""


async def read_heads(client: Client) -> Heads:
    """
    Return the endpoint's heads.

    Raises:
        EndpointFailed: it does not answer, or not as a node of an EVM chain.
    """
    chain_id = _number(client, "eth_chainId", await client.result("eth_chainId"))
    latest = _number(client, "eth_blockNumber", await client.result("eth_blockNumber"))
    try:
        version = str(await client.result("web3_clientVersion"))
    except EndpointFailed:
        version = "of an unknown kind"
    return Heads(chain_id, latest, await read_finalized(client), version)


async def read_finalized(client: Client) -> int | None:
    """Return the endpoint's finalized height, or None where it serves none."""
    try:
        block = await client.result("eth_getBlockByNumber", "finalized", False)
    except EndpointFailed:
        return None
    number = block.get("number") if isinstance(block, dict) else None
    return int(number, 16) if isinstance(number, str) else None


def _number(client: Client, method: str, value: object) -> int:
    try:
        return int(str(value), 16)
    except ValueError:
        raise EndpointFailed(f"{client.display} answers {method} with {str(value)[:80]!r}, not a number") from None


async def read_common(primary: Client, shadow: Client, margin: int = MARGIN_BLOCKS) -> tuple[Common, Heads, Heads]:
    """
    Return what both have in common, and each one's heads.

    Raises:
        EndpointFailed: one does not answer.
        SideBySideError: they serve different chains.
    """
    a, b = await asyncio.gather(read_heads(primary), read_heads(shadow))
    return common(a, b, margin), a, b


def common(primary: Heads, shadow: Heads, margin: int = MARGIN_BLOCKS) -> Common:
    """
    Return the common final height: the lower finalized block, with a margin below the newest where none is served.

    A chain shorter than twice the margin keeps half of its blocks.

    Raises:
        SideBySideError: the two are of different chains.
    """
    if primary.chain_id != shadow.chain_id:
        raise SideBySideError(
            f"the endpoints serve different chains: {primary.chain_id} (primary) and {shadow.chain_id} (shadow)"
        )
    latest = min(primary.latest, shadow.latest)
    assumed = max(latest - margin, latest // 2)
    served = [heads.finalized for heads in (primary, shadow) if heads.finalized is not None]
    final = min([*served, latest]) if len(served) == 2 else min([*served, assumed])
    if len(served) == 2:
        explanation = "finalized at both"
    else:
        without = "neither endpoint serves" if not served else "one endpoint does not serve"
        explanation = f"{without} a finalized block, so {latest - assumed} blocks below the newest count as final"
    return Common(primary.chain_id, latest, final, explanation)
