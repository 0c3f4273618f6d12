"""An event loop on a thread of its own, for clients, upstreams and the late way; the main thread is the processes'."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")


class Traffic:
    """A context manager; what was begun and not ended is cancelled at its exit."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="traffic", daemon=True)
        self._stack = AsyncExitStack()

    def __enter__(self) -> "Traffic":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin with it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what it returns."""
        return self.start(work).result()

    def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """Enter it until the exit; return what it gives."""
        return self.run(self._stack.enter_async_context(context))

    async def _close(self) -> None:
        await self._stack.aclose()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
