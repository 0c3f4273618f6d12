"""The one place that makes asyncio tasks: named, referenced until they end, their exceptions counted and logged."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger("gnomon.proxy")


class Tasks:
    """Tasks of one service."""

    def __init__(self, on_error: Callable[[str, BaseException], None]) -> None:
        """`on_error(scope, exception)` counts what no task handled; the scope is the name up to its first colon."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._on_error = on_error

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, name: str, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in the background."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def cancel(self) -> None:
        """Cancel everything that still runs, and wait for it."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            log.error("task failed", exc_info=error, extra={"task": task.get_name()})
            self._on_error(task.get_name().split(":", 1)[0], error)
