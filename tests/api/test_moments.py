"""When something that is made ends."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from api import moments
from api.errors import Refused

START = datetime(2026, 12, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "lasts", "expected"),
    [
        (None, None, None),
        (None, "2h", START + timedelta(hours=2)),
        (None, "1d12h", START + timedelta(hours=36)),
        (START + timedelta(seconds=1), None, START + timedelta(seconds=1)),
        (datetime(2026, 12, 1, 13, tzinfo=timezone(timedelta(hours=2))), None, START + timedelta(hours=1)),
        (START + moments.LONGEST, None, START + moments.LONGEST),
    ],
)
def test_an_end_is_an_instant_or_a_time(at: datetime | None, lasts: str | None, expected: datetime | None) -> None:
    """In UTC; neither is no end."""
    assert moments.ending(at, lasts, START, "until") == expected


@pytest.mark.parametrize(
    ("at", "lasts", "member"),
    [
        (START, "1h", "until"),
        (START, None, "until"),
        (START - timedelta(seconds=1), None, "until"),
        (START + moments.LONGEST + timedelta(seconds=1), None, "until"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), None, "until"),
        (None, "soon", "for"),
        (None, "0s", "until"),
        (None, "-1h", "until"),
        (None, "9999999999999y", "for"),
    ],
)
def test_an_end_that_cannot_be_is_named(at: datetime | None, lasts: str | None, member: str) -> None:
    """422, with the member that is wrong."""
    with pytest.raises(Refused) as refused:
        moments.ending(at, lasts, START, "until")

    assert refused.value.problem == "invalid-body"
    assert refused.value.errors[0]["pointer"] == f"/{member}"


def test_an_instant_is_cut_to_milliseconds() -> None:
    """As ClickHouse keeps it."""
    assert moments.whole(START.replace(microsecond=123999)) == START.replace(microsecond=123000)
