"""Work that is of use only while the client is there: it ends when the client goes."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.types import Receive


async def while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> bool:
    """
    Run some work; cancel it when the client closes the connection. Return whether it came to its end.

    Args:
        receive: of a request whose body has been read.
        work: cancelled where it stands; its exceptions are the caller's.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
