"""A process that was asked to end does end."""

import threading

import pytest

from ingest.ending import EXIT_STATUS, Deadline


def test_what_does_not_end_in_time_is_ended(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """After the time and not before `stop`; it says so, and where every thread is."""
    stop, ended = threading.Event(), threading.Event()
    seen: list[int] = []

    def end(status: int) -> None:
        seen.append(status)
        ended.set()

    with Deadline(stop, 0.01, end=end):
        assert not ended.wait(0.2)
        stop.set()
        assert ended.wait(60)

    assert seen == [EXIT_STATUS]
    assert "not stopped within 0.01 s" in caplog.text
    assert "test_ending.py" in capfd.readouterr().err


@pytest.mark.parametrize("is_asked", [True, False])
def test_what_has_ended_is_left_alone(is_asked: bool) -> None:
    """Whether it was asked or ended by itself; no thread of the deadline stays."""
    stop = threading.Event()
    seen: list[int] = []
    with Deadline(stop, 3600, end=seen.append):
        if is_asked:
            stop.set()

    assert seen == []
    assert not any(thread.name == "deadline" for thread in threading.enumerate())
