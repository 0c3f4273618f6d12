"""
Threads that make rows and speak to ClickHouse, away from the event loop that must go on answering Kafka.

A lane is one thread with one connection; the partitions are dealt out among the lanes. While one lane waits for an
insert another makes rows.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from ingest.engine import Engine

P = ParamSpec("P")
T = TypeVar("T")


class Lane:
    """One thread; what is asked of it runs in the order of asking."""

    def __init__(self, engine: Engine, number: int) -> None:
        self.engine = engine
        self.n_feeds = 0
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"lane-{number}")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """
        Return what the work returns.

        A wait that is cancelled takes the work back if it has not begun. What has begun goes on: the fence must stop
        it.
        """
        return await asyncio.wrap_future(self._threads.submit(work, *args, **kwargs))

    def close(self) -> None:
        """Take no new work, and let go of what was not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Wait for the end of the work at hand, then close the connection; only after `close`."""
        self._threads.shutdown(wait=True)
        self.engine.close()


class Lanes:
    """All lanes of a worker."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._lanes = [Lane(engine, number) for number, engine in enumerate(engines)]

    def take(self) -> Lane:
        """Return the lane with the fewest feeds, one more now."""
        lane = min(self._lanes, key=lambda one: one.n_feeds)
        lane.n_feeds += 1
        return lane

    def give_back(self, lane: Lane) -> None:
        """A feed of the lane has ended."""
        lane.n_feeds -= 1

    def close(self) -> None:
        """Close all; returns at once."""
        for lane in self._lanes:
            lane.close()

    def join(self) -> None:
        """Close all, wait for the end of what they are at, and close their connections."""
        self.close()
        for lane in self._lanes:
            lane.join()
