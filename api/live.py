"""
The live stream: who listens is told what is new, by one poller for all, which runs only while somebody listens.

A listener holds no more than its place among the changes, so one who is slow costs nothing: the changes it misses are
put together (`api.changes`). One that takes nothing for a while is cut. What is written is made once for all who are at
the same place, and they are woken a few at a time, so that other requests come in between.
"""

import asyncio
import logging
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final, Literal

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api import changes, problems, values
from api.asking import Asking
from api.changes import KINDS, Change, Changes, Mark
from api.connected import while_connected
from api.errors import Refused
from api.metrics import Metrics
from api.slots import Slots

log = logging.getLogger("gnomon.api")

QUESTION: Final = "stored_since"
WINDOW: Final = timedelta(hours=1)
"""What is stored later than that after its own time is new to nobody."""
MOVED_AFTER: Final = timedelta(hours=2)
"""The range that is counted begins at most so long ago."""
FORGOTTEN_AFTER_SECONDS: Final = 600.0
"""Without a listener for so long, changes are counted anew, and who comes back is told so."""
AT_ONCE: Final = 25
"""Listeners woken together."""
PAUSE_SECONDS: Final = 0.002
"""Between those, for other requests."""
RETRY_MS: Final = 2000
"""After which a client connects again."""

End = Literal["gone", "slow", "old", "revoked", "shutdown"]


class Listener:
    """One who listens."""

    def __init__(self, number: int, opening: bytes) -> None:
        self.number = number
        """Of the last change that was told."""
        self.opening = opening
        self.woken = asyncio.Event()


class Live:
    """Tells listeners what is new."""

    def __init__(
        self,
        asking: Asking,
        metrics: Metrics,
        most: int,
        *,
        poll_seconds: float = 2.0,
        heartbeat_seconds: float = 15.0,
        send_seconds: float = 10.0,
        longest_seconds: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            asking: asks how much is stored.
            metrics: counted up.
            most: listeners at once.
            poll_seconds: between two looks; a kind is told no more often.
            heartbeat_seconds: after so long without a change a comment is sent.
            send_seconds: who takes nothing for so long is cut.
            longest_seconds: of one stream; its client connects again, and goes on where it was.
            clock: monotonic.
        """
        self._asking = asking
        self._metrics = metrics
        self._poll_seconds = poll_seconds
        self._clock = clock
        self.heartbeat_seconds = heartbeat_seconds
        self.send_seconds = send_seconds
        self.longest_seconds = longest_seconds
        self.places = Slots("streams are open", most)
        self.is_closed = False
        self._listeners: dict[Listener, None] = {}
        self._changes = Changes(secrets.token_hex(4))
        self._since: datetime | None = None
        """Events from then on are counted."""
        self._poller: asyncio.Future[None] | None = None
        self._left_at = clock()
        self._encoded: dict[tuple[str, int, int], bytes] = {}

    @asynccontextmanager
    async def listen(self, last_id: str) -> AsyncIterator[Listener]:
        """
        Hold a listener's place; the poller runs as long as there is one.

        Args:
            last_id: of the last event that the client has seen; empty: none.

        Raises:
            Refused: `busy`: too many listen, or the API ends.
        """
        if self.is_closed:
            raise Refused("busy", "the API ends; connect again", headers={"Retry-After": str(problems.RETRY_SECONDS)})
        async with self.places.take():
            if not self._listeners and self._clock() - self._left_at > FORGOTTEN_AFTER_SECONDS:
                self._changes, self._since = Changes(secrets.token_hex(4)), None
            listener = self._listener(last_id)
            self._listeners[listener] = None
            if self._poller is None:
                self._poller = asyncio.ensure_future(self._poll())
            try:
                yield listener
            finally:
                del self._listeners[listener]
                if not self._listeners:
                    poller, self._poller, self._left_at = self._poller, None, self._clock()
                    poller.cancel()

    def _listener(self, last_id: str) -> Listener:
        known = self._changes
        place = known.place(last_id) if last_id else known.number
        if place is not None:
            said = changes.event("hello", known.id(place), {"kinds": KINDS})
        else:
            place = known.number
            said = changes.event(
                "reset", known.id(place), {"detail": "what was new since then is not kept; ask for all that you show"}
            )
        return Listener(place, b"retry: %d\n\n" % RETRY_MS + said)

    def news(self, listener: Listener) -> bytes:
        """Return what a listener has not been told yet, and count it as told."""
        known = self._changes
        key = (known.name, listener.number, known.number)
        found = self._encoded.get(key)
        if found is None:
            found = changes.events(known, listener.number)
            if len(self._encoded) >= changes.KEPT:
                self._encoded.clear()
            self._encoded[key] = found
        listener.number = known.number
        return found

    def close(self) -> None:
        """End every stream, after what is being written; none begins any more."""
        self.is_closed = True
        for listener in self._listeners:
            listener.woken.set()

    def ended(self, why: End) -> None:
        """Count the end of a stream."""
        self._metrics.add("gnomon_api_streams_ended_total", (why,))

    async def _poll(self) -> None:
        while True:
            try:
                await self._look()
            except Exception as error:
                self._metrics.add("gnomon_api_stream_looks_total", ("failed",))
                refused = problems.refusal(error)
                if refused is None:
                    log.exception("cannot look for what is new")
                else:
                    log.debug("cannot look for what is new: %s", refused.detail)
            else:
                self._metrics.add("gnomon_api_stream_looks_total", ("ok",))
            await asyncio.sleep(self._poll_seconds)

    async def _look(self) -> None:
        now = self._asking.now()
        if self._since is None:
            self._since = now - WINDOW
        elif now - self._since > MOVED_AFTER:
            # Counted from both beginnings, the new one first: what is stored between is told twice, and never missed.
            moved = now - WINDOW
            base = await self._counted(moved)
            found = self._saw(await self._counted(self._since))
            self._changes.count_anew(base)
            self._since = moved
            await self._wake(found)
        await self._wake(self._saw(await self._counted(self._since)))

    def _saw(self, marks: Mapping[str, Mark]) -> Sequence[Change]:
        """Count and return what is new."""
        found = self._changes.saw(marks)
        for change in found:
            self._metrics.add("gnomon_api_stream_changes_total", (change.kind,))
        return found

    async def _wake(self, found: Sequence[Change]) -> None:
        """Have all who listen told, where there is something to tell."""
        if not found:
            return
        self._encoded.clear()
        for count, listener in enumerate(tuple(self._listeners), 1):
            listener.woken.set()
            if count % AT_ONCE == 0:
                await asyncio.sleep(PAUSE_SECONDS)

    async def _counted(self, since: datetime) -> dict[str, Mark]:
        rows = await self._asking.ask(QUESTION, {"from": values.moment(since)})
        return {row["kind"]: Mark(int(row["n"]), row["newest_at"]) for row in rows.records()}


class Stream(Response):
    """A stream of server-sent events, until the client goes or is cut, or the API ends."""

    media_type = "text/event-stream"

    def __init__(self, live: Live, last_id: str, may_listen: Callable[[], bool]) -> None:
        """
        Args:
            live: tells what is new.
            last_id: the header Last-Event-ID; empty: none.
            may_listen: whether the caller still may, by the configuration in force.
        """
        super().__init__()
        self._live = live
        self._last_id = last_id
        self._may_listen = may_listen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._live.listen(self._last_id) as listener:
            if not await while_connected(receive, self._tell(listener, send)):
                self._live.ended("gone")

    async def _tell(self, listener: Listener, send: Send) -> None:
        live = self._live
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + live.longest_seconds
        try:
            async with asyncio.timeout(live.send_seconds):
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await self._put(send, listener.opening + live.news(listener))
            while (why := self._over(ends_at - loop.time())) is None:
                # Not all at one moment: who was told something together would get heartbeats together for ever.
                quiet = live.heartbeat_seconds * random.uniform(0.7, 1.0)
                try:
                    async with asyncio.timeout(min(quiet, max(ends_at - loop.time(), 0.001))):
                        await listener.woken.wait()
                except TimeoutError:
                    pass
                listener.woken.clear()
                await self._put(send, live.news(listener) or b":\n\n")
            await self._put(send, b"", is_last=True)
        except TimeoutError:
            why = "slow"  # the answer has no end: the connection is closed
        live.ended(why)

    def _over(self, seconds_left: float) -> End | None:
        if self._live.is_closed:
            return "shutdown"
        if seconds_left <= 0:
            return "old"
        return None if self._may_listen() else "revoked"

    async def _put(self, send: Send, text: bytes, *, is_last: bool = False) -> None:
        async with asyncio.timeout(self._live.send_seconds):
            await send({"type": "http.response.body", "body": text, "more_body": not is_last})


_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold events back
]
