"""
Coarse timers: arming is one `set.add`, cancelling one `set.discard`, and one loop timer drives them all.

`loop.call_later` and its cancelling cost about ten times as much, which a proxy that arms a timeout and a hedge for
each request would feel. The price is precision: a timer fires within two ticks of its time. After the loop was held
up, timers come late rather than early: what arrived meanwhile is read before it counts as missing.
"""

import asyncio
from typing import Protocol

TICK_SECONDS = 0.01
CATCH_UP_TICKS = 10
"""At most so many ticks are made up for in one turn; the rest of a stall counts as if time had stood still."""
SLOTS = 16_384
"""Longest delay: SLOTS * TICK_SECONDS = 163 s; longer ones fire at that time (callers re-arm)."""


class Expiring(Protocol):
    def expired(self) -> None: ...


class Lane:
    """Timers of one fixed delay; `bucket` is where to add an entry now, and that set is where to discard it."""

    __slots__ = ("bucket", "offset", "seconds")

    def __init__(self, seconds: float, offset: int, bucket: "set[Expiring]") -> None:
        self.seconds = seconds
        self.offset = offset
        self.bucket = bucket


class Wheel:
    """A wheel of `SLOTS` sets, turned by one timer of `loop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._slots: list[set[Expiring]] = [set() for _ in range(SLOTS)]
        self._position = 0
        self._lanes: dict[int, Lane] = {}
        self._start = loop.time()
        self._turned = 0
        self._handle: asyncio.TimerHandle | None = None
        self._arm()

    def lane(self, seconds: float) -> Lane:
        """Return the lane for a delay, made once for each number of ticks."""
        offset = min(SLOTS - 1, max(1, round(seconds / TICK_SECONDS)) + 1)
        lane = self._lanes.get(offset)
        if lane is None:
            bucket = self._slots[(self._position + offset) % SLOTS]
            lane = self._lanes[offset] = Lane(seconds, offset, bucket)
        return lane

    def armed(self) -> list[Expiring]:
        """Return everything that is armed."""
        return [entry for slot in self._slots for entry in slot]

    def stop(self) -> None:
        """Stop turning; what is armed never fires."""
        if self._handle is not None:
            self._handle.cancel()

    def _arm(self) -> None:
        self._handle = self._loop.call_at(self._start + (self._turned + 1) * TICK_SECONDS, self._turn)

    def _turn(self) -> None:
        # A turn is due when its timer fires, whatever the rounding of its time says.
        due = max(int((self._loop.time() - self._start) / TICK_SECONDS), self._turned + 1)
        stalled = due - self._turned - CATCH_UP_TICKS
        if stalled > 0:
            self._start += stalled * TICK_SECONDS
            due -= stalled
        while self._turned < due:
            self._step()
            self._turned += 1
        self._arm()

    def _step(self) -> None:
        self._position = position = (self._position + 1) % SLOTS
        for lane in self._lanes.values():
            lane.bucket = self._slots[(position + lane.offset) % SLOTS]
        current = self._slots[position]
        while current:
            entry = current.pop()
            try:
                entry.expired()
            except Exception as error:  # one entry's fault must not stop everybody's clock
                self._loop.call_exception_handler(
                    {"message": f"a timer of {type(entry).__name__} failed", "exception": error}
                )
