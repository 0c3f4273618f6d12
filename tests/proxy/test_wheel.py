"""Timers on a loop whose clock the test moves."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from proxy.wheel import CATCH_UP_TICKS, SLOTS, TICK_SECONDS, Wheel


class Loop:
    """As much of an event loop as a wheel uses."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.armed: tuple[float, Callable[[], None]] | None = None
        self.errors: list[dict[str, Any]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> "Loop":
        self.armed = (when, callback)
        return self

    def cancel(self) -> None:
        self.armed = None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context)

    def run(self, seconds: float) -> None:
        """Let time pass, each timer at its time."""
        end = self.now + seconds
        while self.armed is not None and self.armed[0] <= end:
            when, callback = self.armed
            self.now = max(self.now, when)
            self.armed = None
            callback()
        self.now = end

    def stall(self, seconds: float) -> None:
        """Let time pass while nothing runs."""
        self.now += seconds


class Bell:
    """An entry that notes when it fires."""

    def __init__(self, loop: Loop, *, breaks: bool = False) -> None:
        self.loop = loop
        self.rang: list[float] = []
        self.breaks = breaks

    def expired(self) -> None:
        self.rang.append(self.loop.now)
        if self.breaks:
            raise RuntimeError("a fault in an entry")


def make() -> tuple[Loop, Wheel]:
    loop = Loop()
    return loop, Wheel(cast(asyncio.AbstractEventLoop, loop))


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.01, 0.014, 0.25, 1.0, 30.0, 60.0])
@pytest.mark.parametrize("phase", [0.0, 0.003, 0.0099])
def test_a_timer_fires_once_and_never_early(seconds: float, phase: float) -> None:
    """It comes within two ticks and a half of its time (half of one by rounding)."""
    loop, wheel = make()
    loop.run(0.5 + phase)
    bell, start = Bell(loop), loop.now
    wheel.lane(seconds).bucket.add(bell)
    loop.run(seconds + 1.0)

    assert len(bell.rang) == 1
    late = bell.rang[0] - start - seconds
    assert -0.5 * TICK_SECONDS - 1e-6 <= late <= 2.5 * TICK_SECONDS


def test_a_cancelled_timer_never_fires() -> None:
    """It is taken out of the set it was put into, although the lane has moved on."""
    loop, wheel = make()
    lane, bell = wheel.lane(0.5), Bell(loop)
    bucket = lane.bucket
    bucket.add(bell)
    loop.run(0.3)
    assert lane.bucket is not bucket
    bucket.discard(bell)
    loop.run(200.0)

    assert bell.rang == []


def test_a_delay_beyond_the_wheel_fires_at_its_end() -> None:
    """Not at once."""
    loop, wheel = make()
    bell = Bell(loop)
    wheel.lane(10_000.0).bucket.add(bell)
    loop.run(SLOTS * TICK_SECONDS + 1.0)

    assert len(bell.rang) == 1
    assert bell.rang[0] - 1000.0 == pytest.approx(SLOTS * TICK_SECONDS, abs=3 * TICK_SECONDS)


def test_lanes_are_made_once() -> None:
    """One for each number of ticks."""
    _, wheel = make()

    assert wheel.lane(0.3) is wheel.lane(0.301)
    assert wheel.lane(0.3) is not wheel.lane(0.31)


def test_an_entry_that_fails_stops_nobody() -> None:
    """Its neighbours fire, the wheel turns on, and the loop is told."""
    loop, wheel = make()
    bells = [Bell(loop, breaks=i % 2 == 0) for i in range(6)]
    for bell in bells:
        wheel.lane(0.1).bucket.add(bell)
    loop.run(0.2)
    later = Bell(loop)
    wheel.lane(0.1).bucket.add(later)
    loop.run(0.2)

    assert [len(bell.rang) for bell in [*bells, later]] == [1] * 7
    assert [type(context["exception"]) for context in loop.errors] == [RuntimeError] * 3


def test_an_entry_may_arm_another() -> None:
    """The new one has its whole delay."""
    loop, wheel = make()
    second = Bell(loop)

    class First(Bell):
        def expired(self) -> None:
            super().expired()
            wheel.lane(0.1).bucket.add(second)

    first = First(loop)
    wheel.lane(0.1).bucket.add(first)
    loop.run(1.0)

    assert second.rang[0] - first.rang[0] == pytest.approx(0.1, abs=0.025)


def test_after_a_stall_nothing_fires_early() -> None:
    """What is armed right after the loop was held up for seconds has nearly its whole delay."""
    loop, wheel = make()
    loop.run(0.05)
    loop.stall(5.0)
    bell, start = Bell(loop), loop.now
    wheel.lane(0.3).bucket.add(bell)
    loop.run(1.0)

    assert bell.rang[0] - start >= 0.3 - (CATCH_UP_TICKS + 1) * TICK_SECONDS


def test_a_stopped_wheel_fires_nothing() -> None:
    """Nor does it keep the loop busy."""
    loop, wheel = make()
    bell = Bell(loop)
    wheel.lane(0.1).bucket.add(bell)
    wheel.stop()
    loop.run(1.0)

    assert (bell.rang, loop.armed) == ([], None)
