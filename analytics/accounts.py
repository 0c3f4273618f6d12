"""
Accounts of vendors: their months, and what the configuration says of them in the form that SQL binds.

A month of an account begins on its `cycleDay` (1 to 28), 00:00 UTC. Its budget is one pool over all methods, upstreams
and networks that are billed to it; an account without a budget has a month all the same.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from gnomon.config.model import Account

NAMES = ("accounts", "budgets", "cycle_from", "cycle_to")
"""Parameters of a statement; each is an `Array(String)`, one element an account, in the same order."""


def cycle(now: datetime, cycle_day: int) -> tuple[datetime, datetime]:
    """
    Return the month that an instant lies in: its beginning, and the next one's.

    >>> cycle(datetime(2026, 3, 1, 0, 0, tzinfo=UTC), 15)[0].isoformat()
    '2026-02-15T00:00:00+00:00'
    """
    now = now.astimezone(UTC)
    begin = datetime(now.year, now.month, cycle_day, tzinfo=UTC)
    if begin > now:
        begin = _month_before(begin)
    return begin, _month_after(begin)


def _month_after(begin: datetime) -> datetime:
    return begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)


def _month_before(begin: datetime) -> datetime:
    return begin.replace(year=begin.year - (begin.month == 1), month=(begin.month - 2) % 12 + 1)


def bindings(accounts: Iterable[Account], now: datetime) -> Mapping[str, list[str]]:
    """
    Return what a statement may bind of the accounts, by name of the parameter.

    Args:
        accounts: as configured.
        now: aware; which month is meant.

    Returns:
        `accounts`: ids; `budgets`: USD as texts, empty = none; `cycle_from`, `cycle_to`: bounds of the month, UTC.
    """
    bound: dict[str, list[str]] = {name: [] for name in NAMES}
    for account in accounts:
        begin, end = cycle(now, account.cycle_day)
        bound["accounts"].append(account.id)
        bound["budgets"].append("" if account.monthly_budget_usd is None else account.monthly_budget_usd)
        bound["cycle_from"].append(f"{begin:%Y-%m-%d %H:%M:%S}")
        bound["cycle_to"].append(f"{end:%Y-%m-%d %H:%M:%S}")
    return bound
