"""How much may go on at once: places that are taken for a while, and a bounded number who wait for one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api.errors import Refused
from api.problems import RETRY_SECONDS


class Slots:
    """Places for one kind of work."""

    def __init__(self, what: str, most: int, most_waiting: int = 0, problem: str = "busy") -> None:
        """
        Args:
            what: the work, as a refusal names it: `comparisons are judged`.
            most: places.
            most_waiting: who may wait for one; more are refused at once.
            problem: what a refusal is.
        """
        self._what = what
        self._problem = problem
        self._most = most
        self._most_waiting = most_waiting
        self._semaphore = asyncio.Semaphore(most)
        self.n_taken = 0
        self.n_waiting = 0

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """
        Hold a place, waiting for one where there is room to.

        Raises:
            Refused: with `problem`.
        """
        if self._semaphore.locked() and self.n_waiting >= self._most_waiting:
            raise Refused(
                self._problem,
                f"{self.n_taken + self.n_waiting} {self._what} already; try again",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        self.n_waiting += 1
        try:
            await self._semaphore.acquire()
        finally:
            self.n_waiting -= 1
        self.n_taken += 1
        try:
            yield
        finally:
            self.n_taken -= 1
            self._semaphore.release()
