"""Months of accounts: where they begin and end, and what SQL gets of them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from analytics.accounts import bindings, cycle
from gnomon.config.model import Account


@pytest.mark.parametrize(
    ("now", "day", "begin", "end"),
    [
        ("2026-12-01T00:00", 1, "2026-12-01", "2027-01-01"),
        ("2026-12-31T23:59", 1, "2026-12-01", "2027-01-01"),
        ("2026-12-14T23:59", 15, "2026-11-15", "2026-12-15"),
        ("2026-12-15T00:00", 15, "2026-12-15", "2027-01-15"),
        ("2026-01-02T00:00", 28, "2025-12-28", "2026-01-28"),
        ("2028-02-29T12:00", 28, "2028-02-28", "2028-03-28"),
    ],
)
def test_a_month_begins_on_its_day(now: str, day: int, begin: str, end: str) -> None:
    """At 00:00 UTC; the beginning is in it, the end is not."""
    found = cycle(datetime.fromisoformat(now).replace(tzinfo=UTC), day)

    assert [f"{at:%Y-%m-%d}" for at in found] == [begin, end]


def test_another_time_zone_is_converted() -> None:
    """Half past one on the 1st in Moscow is the month before."""
    moscow = timezone(timedelta(hours=3))

    assert cycle(datetime(2026, 12, 1, 1, 30, tzinfo=moscow), 1)[0] == datetime(2026, 11, 1, tzinfo=UTC)


def test_what_sql_binds() -> None:
    """Arrays of one length; without a budget the text is empty, a budget of 0 is one."""
    accounts = [Account(id="a", monthly_budget_usd="0"), Account(id="o'b", cycle_day=15)]

    assert bindings(accounts, datetime(2026, 12, 1, tzinfo=UTC)) == {
        "accounts": ["a", "o'b"],
        "budgets": ["0", ""],
        "cycle_from": ["2026-12-01 00:00:00", "2026-11-15 00:00:00"],
        "cycle_to": ["2027-01-01 00:00:00", "2026-12-15 00:00:00"],
    }
