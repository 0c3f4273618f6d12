"""A worker that stands still ends; one that waits for somebody does not."""

import threading

import pytest

from ingest.ending import EXIT_STATUS
from ingest.kafka.watchdog import Patience, Sign, Signs, Watchdog, judge

PATIENCE = Patience(stall=180, blind=600, frozen=60)


def signs(
    *, now: float = 1000.0, turned: float = 0, seen: float = 0, lag: int = 0, moved: float = 0, is_waiting: bool = False
) -> Signs:
    """Return signs of so many seconds ago."""
    return Signs(now - turned, now - seen, (Sign("r/0", lag, now - moved, is_waiting),))


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (signs(), ""),
        (signs(lag=5, moved=180), ""),
        (signs(lag=5, moved=180.1), "r/0 has 5 unread records and has not moved for 180 s"),
        (signs(lag=0, moved=5000), ""),
        (signs(lag=5, moved=5000, is_waiting=True), ""),
        (signs(turned=60), ""),
        (signs(turned=61), "the event loop has not turned for 61 s"),
        (signs(seen=600), ""),
        (signs(seen=601), "Kafka has not told the ends of the partitions for 601 s"),
    ],
)
def test_what_is_a_stall(shown: Signs, why: str) -> None:
    """Unread records and no word why; a frozen loop; no word of Kafka."""
    assert why == judge(shown, 1000.0, PATIENCE)


def test_the_process_ends_with_its_status(capfd: pytest.CaptureFixture[str]) -> None:
    """From a thread of its own, after saying where the threads are."""
    ended = threading.Event()
    seen: list[int] = []

    def end(status: int) -> None:
        seen.append(status)
        ended.set()

    watchdog = Watchdog(lambda: signs(turned=61), PATIENCE, lambda: 1000.0, every_seconds=0.01, end=end)
    watchdog.start()
    assert ended.wait(10)
    watchdog.stop()

    assert seen == [EXIT_STATUS]
    assert "most recent call first" in capfd.readouterr().err


def test_a_watchdog_that_is_stopped_ends_nothing() -> None:
    """An orderly stop may take longer than patience."""
    seen: list[int] = []
    watchdog = Watchdog(lambda: signs(), PATIENCE, lambda: 1000.0, every_seconds=0.01, end=seen.append)
    watchdog.start()
    watchdog.stop()

    assert seen == []


def test_a_process_that_was_paused_is_not_found_to_have_stood_still() -> None:
    """The watchdog was paused with it; the loop gets its time to turn again, and is ended when it does not."""
    seen: list[int] = []
    ended = threading.Event()
    moments = [1000.0, 1001.0, *range(1301, 1361, 10), 1360.9, 1361.0]
    to_come = iter(moments)
    asked: list[float] = []

    def clock() -> float:
        asked.append(next(to_come))
        return asked[-1]

    def end(status: int) -> None:
        seen.append(status)
        ended.set()

    watchdog = Watchdog(lambda: Signs(1001.0, 1301.0), PATIENCE, clock, every_seconds=0.01, end=end)
    watchdog.start()
    assert ended.wait(10)
    watchdog.stop()

    assert asked == moments
