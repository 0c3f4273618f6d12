"""
When a worker that stands still must end, so that its supervisor starts another.

What waits for a person (a topic that has lost its end, too many dead letters) or for ClickHouse is not a stall: a new
process would wait for the same. What is a stall: records lie unread and nothing moves although nothing says why.

`judge` is pure; `Watchdog` asks it from a thread of its own, for a loop that hangs cannot look at itself.
"""

import faulthandler
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from ingest.ending import EXIT_STATUS

log = logging.getLogger("gnomon.ingest")

PAUSED_SECONDS = 20.0
"""A watchdog that has not looked for so long was paused itself; it sleeps for a second each time."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What one partition shows."""

    name: str
    lag: int
    moved_at: float
    """When its position last changed, or when there was last nothing to read."""
    is_waiting: bool
    """Whether it says itself why it does not go on."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What the worker shows."""

    turned_at: float
    """When the event loop last turned."""
    seen_ends_at: float
    """When Kafka last told the ends of the partitions, or when there was last no partition."""
    partitions: tuple[Sign, ...] = ()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is too long, in seconds."""

    stall: float
    blind: float
    frozen: float


def judge(signs: Signs, now: float, patience: Patience) -> str:
    """Return why the process must end; '' when it need not."""
    if now - signs.turned_at > patience.frozen:
        return f"the event loop has not turned for {now - signs.turned_at:.0f} s"
    if now - signs.seen_ends_at > patience.blind:
        return f"Kafka has not told the ends of the partitions for {now - signs.seen_ends_at:.0f} s"
    for sign in signs.partitions:
        if sign.lag > 0 and not sign.is_waiting and now - sign.moved_at > patience.stall:
            return f"{sign.name} has {sign.lag} unread records and has not moved for {now - sign.moved_at:.0f} s"
    return ""


class Watchdog:
    """Ends the process, after saying why and where its threads are."""

    def __init__(
        self,
        signs: Callable[[], Signs],
        patience: Patience,
        clock: Callable[[], float],
        *,
        every_seconds: float = 1.0,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        """
        Args:
            signs: gives what the worker shows; called from the watchdog's thread.
            patience: how long is too long.
            clock: that of the signs.
            every_seconds: between looks.
            end: ends the process with a status.
        """
        self._signs, self._patience, self._clock = signs, patience, clock
        self._every_seconds = every_seconds
        self._end = end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watch until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        looked_at = self._clock()
        blind_until = float("-inf")
        while not self._stop.wait(self._every_seconds):
            now = self._clock()
            if now - looked_at > PAUSED_SECONDS:
                # Paused with all its threads, or a machine that slept: the signs are from before, and get their time.
                blind_until = now + self._patience.frozen
            looked_at = now
            why = judge(self._signs(), now, self._patience) if now >= blind_until else ""
            if why:
                log.critical("no progress, ending to be started again: %s", why)
                faulthandler.dump_traceback(all_threads=True)
                self._end(EXIT_STATUS)
                return
