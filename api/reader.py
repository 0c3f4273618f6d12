"""
Connections to ClickHouse for an event loop: a few threads, each with a connection of its own that can only read.

Every question is bounded three times: by ClickHouse (time, rows), by the connection's timeout somewhat later, and by
the wait here last, so that the clearest of the three errors wins. What waits for a thread is bounded too.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from analytics import reading
from analytics.questions import SETTINGS
from analytics.store import Result, Store, StoreAway
from api.errors import Refused
from api.problems import RETRY_SECONDS
from gnomon.config.model import ClickHouseSettings

T = TypeVar("T")

MAX_WAITING: Final = 256
"""Questions that wait for a thread; one more is refused."""
CONNECTION_MARGIN_SECONDS: Final = 3.0
WAIT_MARGIN_SECONDS: Final = 5.0


class Asks(Protocol):
    """What the routes need of ClickHouse."""

    async def query(self, sql: str, bound: Mapping[str, object]) -> Result:
        """
        Return the rows of a statement.

        Raises:
            StoreError: ClickHouse refuses, or it is away.
            Refused: too many wait already, or it took too long.
        """
        ...


class Reader:
    """Threads and their connections; `close` ends them."""

    def __init__(self, settings: ClickHouseSettings, *, n_connections: int, query_seconds: float) -> None:
        """
        Args:
            settings: where ClickHouse is. Nothing is connected before the first question.
            n_connections: questions asked at once.
            query_seconds: longest time of one.
        """
        self._settings = settings
        self._seconds = query_seconds
        self._limits = {**SETTINGS, "max_execution_time": int(query_seconds)}
        self._threads = ThreadPoolExecutor(n_connections, thread_name_prefix="ask")
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: set[Store] = set()
        self.n_waiting = 0

    async def query(self, sql: str, bound: Mapping[str, object]) -> Result:
        """See `Asks`."""
        return await self.run(lambda store: store.query(sql, bound, self._limits))

    async def run(self, work: Callable[[Store], T]) -> T:
        """
        Return what a function makes of a connection, run in one of the threads.

        A caller that goes away ends its wait; the function ends by itself.

        Raises:
            StoreError, Refused: as `query`, and what the function raises.
        """
        if self.n_waiting >= MAX_WAITING:
            raise Refused(
                "busy",
                f"{self.n_waiting} questions wait for ClickHouse already; try again",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        with self._lock:
            self.n_waiting += 1
        future = self._threads.submit(self._work, work)
        future.add_done_callback(self._count_down)
        try:
            async with asyncio.timeout(self._seconds + WAIT_MARGIN_SECONDS):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Refused("query-too-slow", f"no answer within {self._seconds:g} s; narrow the range") from None

    def _count_down(self, _: "Future[T]") -> None:
        with self._lock:
            self.n_waiting -= 1

    def _work(self, work: Callable[[Store], T]) -> T:
        store: Store | None = getattr(self._local, "store", None)
        if store is not None:
            try:
                return work(store)
            except StoreAway:  # it may have been started anew since the last question: reading twice does no harm
                self._drop(store)
        store = self._local.store = self._connected()
        try:
            return work(store)
        except StoreAway:
            self._drop(store)
            raise

    def _drop(self, store: Store) -> None:
        self._local.store = None
        with self._lock:
            self._open.discard(store)
        store.close()

    def _connected(self) -> Store:
        store = reading.connect(self._settings, timeout_seconds=self._seconds + CONNECTION_MARGIN_SECONDS)
        with self._lock:
            self._open.add(store)
        return store

    def close(self) -> None:
        """End the threads, each after the question that it asks, and close the connections."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            for store in self._open:
                store.close()
            self._open.clear()
