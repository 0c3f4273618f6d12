"""
Which handle runs a request: pooled ones for requests without a session, one of its own for each session.

Readers' handles are kept by their limits (nothing can be set on them any more), writers' handles are adapted to each
request. What waits for a handle is bounded; beyond that a request is refused, not queued.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

from analytics.embedded.engine import Engine, Handle, Role
from analytics.embedded.errors import Code, Refusal

T = TypeVar("T")

MAX_SESSIONS = 64


class Pool:
    """Up to `slots` handles of one role at work, as many idle ones, and `waiting` requests in the queue."""

    def __init__(self, engine: Engine, executor: Executor, role: Role, slots: int, waiting: int) -> None:
        self._engine = engine
        self._executor = executor
        self._role: Role = role
        self._slots = slots
        self._waiting = waiting
        self._free = asyncio.Semaphore(slots)
        self._n_waiting = 0
        self._idle: deque[Handle] = deque()

    async def acquire(self, limits: Mapping[str, str]) -> "Lease":
        """
        Return a handle with exactly these limits.

        Raises:
            Refusal: TOO_MANY_SIMULTANEOUS_QUERIES.
        """
        if self._n_waiting >= self._waiting:
            raise Refusal.of(Code.TOO_MANY_SIMULTANEOUS_QUERIES, f"Too many simultaneous queries of {self._role}s")
        self._n_waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._n_waiting -= 1
        try:
            for index, handle in enumerate(self._idle):
                if handle.limits == limits:
                    del self._idle[index]
                    return self._lease(handle)
            if len(self._idle) >= self._slots:
                await self._run(self._idle.popleft().close)
            return self._lease(await self._run(lambda: self._engine.handle(self._role, limits)))
        except BaseException:
            self._free.release()
            raise

    def _lease(self, handle: Handle) -> "Lease":
        return Lease(handle, lambda: self._take_back(handle))

    async def _take_back(self, handle: Handle) -> None:
        try:
            if handle.is_spoilt:
                await self._run(handle.close)
            else:
                self._idle.append(handle)
        finally:
            self._free.release()

    async def close(self) -> None:
        """Close the idle handles."""
        while self._idle:
            await self._run(self._idle.popleft().close)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


class Lease:
    """A handle for one request; given back once, however often `release` is called."""

    def __init__(self, handle: Handle, give_back: Callable[[], Awaitable[None]]) -> None:
        self.handle = handle
        self._give_back = give_back
        self._is_over = False

    async def release(self) -> None:
        if not self._is_over:
            self._is_over = True
            await self._give_back()


@dataclass(slots=True)
class Session:
    handle: Handle
    expires_at: float
    """On the loop's clock; moved on by each request."""
    is_busy: bool = False


class Sessions:
    """The writers' sessions: settings, database and temporary tables live in the session's own handle."""

    def __init__(self, engine: Engine, executor: Executor) -> None:
        self._engine = engine
        self._executor = executor
        self._sessions: dict[str, Session] = {}

    async def acquire(self, session_id: str, *, must_exist: bool, seconds: float, closes: bool) -> Lease:
        """
        Return the session's handle, made when it is new.

        Args:
            session_id: the client's name for it.
            must_exist: refuse to make one.
            seconds: how long it lives on after this request.
            closes: it ends with this request.

        Raises:
            Refusal: it must exist and does not, it is in use, or there are too many.
        """
        await self.sweep()
        session = self._sessions.get(session_id)
        if session is None:
            if must_exist:
                raise Refusal.of(Code.SESSION_NOT_FOUND, f"Session {session_id} not found")
            if len(self._sessions) >= MAX_SESSIONS:
                idle = min(
                    (item for item in self._sessions.items() if not item[1].is_busy),
                    key=lambda item: item[1].expires_at,
                    default=None,
                )
                if idle is None:
                    raise Refusal.of(Code.TOO_MANY_SIMULTANEOUS_QUERIES, "Too many sessions are in use")
                await self._close(idle[0])
            loop = asyncio.get_running_loop()
            handle = await loop.run_in_executor(self._executor, lambda: self._engine.handle("writer"))
            if session_id in self._sessions:
                await loop.run_in_executor(self._executor, handle.close)
                return await self.acquire(session_id, must_exist=must_exist, seconds=seconds, closes=closes)
            session = self._sessions[session_id] = Session(handle, float("inf"))
        if session.is_busy:
            raise Refusal.of(Code.SESSION_IS_LOCKED, f"Session {session_id} is locked by a concurrent client")
        session.is_busy = True
        return Lease(session.handle, lambda: self._take_back(session_id, seconds, closes))

    async def _take_back(self, session_id: str, seconds: float, closes: bool) -> None:
        session = self._sessions[session_id]
        session.is_busy = False
        session.expires_at = asyncio.get_running_loop().time() + seconds
        if closes or session.handle.is_spoilt:
            await self._close(session_id)

    async def sweep(self) -> None:
        """Close the sessions whose time is over."""
        now = asyncio.get_running_loop().time()
        for session_id in [key for key, item in self._sessions.items() if not item.is_busy and item.expires_at <= now]:
            await self._close(session_id)

    async def close(self) -> None:
        for session_id in list(self._sessions):
            await self._close(session_id)

    async def _close(self, session_id: str) -> None:
        session = self._sessions.pop(session_id)
        await asyncio.get_running_loop().run_in_executor(self._executor, session.handle.close)
