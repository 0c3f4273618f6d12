"""Work that ends with its client."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from api.connected import while_connected


def run(work: Callable[[], Awaitable[None]], receive: Callable[[], Awaitable[Any]]) -> bool:
    async def worked() -> None:
        await work()

    return asyncio.run(while_connected(receive, worked()))


async def never() -> dict[str, str]:
    await asyncio.Event().wait()
    return {}


def test_work_that_is_done_is_done() -> None:
    """The client is still there."""

    async def work() -> None:
        await asyncio.sleep(0)

    assert run(work, never) is True


def test_work_ends_when_the_client_goes() -> None:
    """It is cancelled where it stands, and has ended when the call returns."""
    said: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            said.append("ended")

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    assert (run(work, gone), said) == (False, ["ended"])


def test_an_error_is_the_callers() -> None:
    """As it was raised."""

    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        run(work, never)
