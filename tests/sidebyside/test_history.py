"""Where two histories part."""

import asyncio
from collections.abc import Sequence

import aiohttp
import pytest

from gnomon.sidebyside.client import Client, Pace
from gnomon.sidebyside.history import find_parting
from tests.sidebyside.endpoints import Answer, chain, serving


def _parting(primary: Answer, shadow: Answer, height: int) -> int | None:
    async def run(urls: list[str]) -> int | None:
        async with aiohttp.ClientSession() as session:
            a, b = (Client(session, url, Pace(per_second=10_000.0)) for url in urls)
            return await find_parting(a, b, height)

    with serving(primary, shadow) as urls:
        return asyncio.run(run(urls))


def _forked_at(height: int) -> Answer:
    """Return the test chain with other hashes from a height on."""
    answer = chain().answer

    def forked(method: str, params: Sequence[object]) -> object:
        block = answer(method, params)
        if isinstance(block, dict) and int(str(block["number"]), 16) >= height:
            return {**block, "hash": "0x" + "9" * 64}
        return block

    return forked


@pytest.mark.parametrize("height", [0, 1, 7, 19, 20])
def test_the_first_different_block_is_found(height: int) -> None:
    """By its number, the genesis block included."""
    assert _parting(chain().answer, _forked_at(height), 20) == height


def test_one_history_parts_nowhere() -> None:
    """A fork above the height does not count."""
    assert _parting(chain().answer, _forked_at(20), 19) is None


def test_blocks_that_one_does_not_serve_agree() -> None:
    """Old blocks may be pruned: then the fork is at the first block that both have, at the latest."""
    forked = _forked_at(5)

    def pruned(method: str, params: Sequence[object]) -> object:
        return None if int(str(params[0]), 16) < 9 else forked(method, params)

    assert _parting(chain().answer, pruned, 20) == 9
