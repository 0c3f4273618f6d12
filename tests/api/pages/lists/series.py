"""Series over time and what several pages are made of, once from /v1 and once by SQL over the plain tables."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.api.night import settings
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import usd, when

Series = list[float | None]
WILSON = """
WITH 1.959963984540054 AS z,
    (k, n) -> (k + z * z / 2) / (n + z * z) AS middle,
    (k, n) -> z / (n + z * z) * sqrt(k * (n - k) / n + z * z / 4) AS half,
    (k, n) -> if(k = 0, 0, middle(k, n) - half(k, n)) AS low,
    (k, n) -> if(k = n, 1, middle(k, n) + half(k, n)) AS high
"""
"""The interval in its other common form, for SQL that needs it."""
HOURS = 3 * 3600
"""Seconds of the range that Overview and Heads have by themselves."""
STEP, N = 60, 180
"""Seconds of a step of it, and how many it has."""
LIMIT_BLOCKS = 5
"""More is lagging."""
NOW = "at >= {to:DateTime64(3)} - INTERVAL 5 MINUTE AND at < {to:DateTime64(3)}"
SERVED = "outcome NOT IN ('invalid', 'rejected', 'cancelled')"
JUDGED = "outcome IN ('identical', 'identical_masked', 'tolerated', 'mismatch')"
FAILED = "outcome IN ('error', 'timeout', 'transport')"
FOR_CLIENTS = "kind IN ('client', 'retry', 'hedge', 'probe', 'shadow')"
WEEK = "at >= toStartOfMinute({to:DateTime64(3)} - INTERVAL 7 DAY) AND at < {to:DateTime64(3)}"
"""What is counted by minutes begins with a whole one."""


def start_of(full: Full, seconds: float) -> str:
    """Return the instant so long before the night's end, as an address has it."""
    return (full.now - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


# --- heads -----------------------------------------------------------------------------------------------------------


def lags_by_api(full: Full, seconds: int, step: int, axis: str = "latest") -> dict[str, Series]:
    """Return blocks behind the best per step, None where nothing was heard, of each upstream by network and id."""
    n = math.ceil(seconds / step)
    found: dict[str, Series] = {}
    for row in full.asked("head_lag_in_steps", from_=start_of(full, seconds), to=full.to, step=step, axis=axis):
        series = found.setdefault(f"{row['network']} | {row['upstream']}", [None] * n)
        if row["is_heard"]:
            series[row["step"]] = float(row["lag_blocks"])
    return found


def lags_by_sql(full: Full, seconds: int, step: int, axis: str = "latest") -> dict[str, Series]:
    """Return the same by the heads themselves: the highest so far, against the highest of all so far."""
    n = math.ceil(seconds / step)
    rows = full.sql(
        """
        SELECT network, upstream, step, maxIf(number, at < ends_at) AS highest,
            countIf(at >= begins_at AND at < ends_at) AS n_moved
        FROM (SELECT network, upstream, at, number FROM gnomon.heads
            WHERE axis = {axis:String} AND at < {to:DateTime64(3)}
                AND at >= {from:DateTime64(3)} - INTERVAL 1 HOUR) AS h
        CROSS JOIN (SELECT number AS step, {from:DateTime64(3)} + toIntervalSecond(number * {step:UInt32}) AS begins_at,
            begins_at + toIntervalSecond({step:UInt32}) AS ends_at FROM numbers({n:UInt32})) AS s
        GROUP BY network, upstream, step
        """,
        axis=axis,
        step=step,
        n=n,
        **{"from": _bound(full, seconds)},
    )
    polled = full.sql(
        "SELECT network, upstream, intDiv(dateDiff('second', {from:DateTime64(3)}, at), {step:UInt32}) AS step"
        " FROM gnomon.attempts WHERE kind = 'head_poll' AND outcome = 'result' AND at >= {from:DateTime64(3)}"
        " AND at < {to:DateTime64(3)} GROUP BY network, upstream, step",
        step=step,
        **{"from": _bound(full, seconds)},
    )
    heard = {(row["network"], row["upstream"], row["step"]) for row in polled}
    best: dict[tuple[str, int], int] = {}
    for row in rows:
        key = row["network"], row["step"]
        best[key] = max(best.get(key, 0), row["highest"])
    found: dict[str, Series] = {}
    for row in rows:
        series = found.setdefault(f"{row['network']} | {row['upstream']}", [None] * n)
        is_heard = row["n_moved"] or (row["network"], row["upstream"], row["step"]) in heard
        if row["highest"] and is_heard:
            series[row["step"]] = float(best[row["network"], row["step"]] - row["highest"])
    return found


def _bound(full: Full, seconds: float) -> str:
    return f"{full.now - timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}.000"


def last_of(series: Series) -> int | None:
    """Return the lag now: of the last three steps the newest that is known, for the last one is hardly over."""
    now = next((value for value in reversed(series[-3:]) if value is not None), None)
    return None if now is None else int(now)


# --- breakers --------------------------------------------------------------------------------------------------------


def open_by_api(full: Full, seconds: int) -> dict[str, list[tuple[str, datetime, datetime]]]:
    """Return when each breaker was not closed: state, from, to; by network and upstream."""
    rows = full.asked("breaker_history", from_=start_of(full, seconds + 7 * 86400), to=full.to)
    changes = [(f"{r['network']} | {r['upstream']}", when(r["at"]), r["to_state"]) for r in rows]
    return _spans(changes, full, seconds)


def open_by_sql(full: Full, seconds: int) -> dict[str, list[tuple[str, datetime, datetime]]]:
    """Return the same by the changes themselves."""
    rows = full.sql("SELECT network, upstream, at, to_state FROM gnomon.breaker_transitions")
    return _spans([(f"{r['network']} | {r['upstream']}", r["at"], r["to_state"]) for r in rows], full, seconds)


def _spans(
    changes: Sequence[tuple[str, datetime | None, str]], full: Full, seconds: int
) -> dict[str, list[tuple[str, datetime, datetime]]]:
    start, found = full.now - timedelta(seconds=seconds), {}
    for name in {name for name, _, _ in changes}:
        mine = sorted((at, state) for key, at, state in changes if key == name and at is not None)
        ends = [at for at, _ in mine[1:]] + [full.now]
        found[name] = [
            (state, max(at, start), end)
            for (at, state), end in zip(mine, ends, strict=True)
            if state != "closed" and end > start
        ]
    return found


# --- money -----------------------------------------------------------------------------------------------------------


def budgets_by_api(full: Full) -> Rows:
    """Return each account's month: spent, budget, forecast and its band."""
    names = ("spent", "budget", "forecast", "forecast_low", "forecast_high")
    return {
        row["account"]: {name: usd(row[name]) if name in ("spent", "budget") else row[name] for name in names}
        for row in full.asked("budgets", to=full.to)
    }


STUDENT = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.350)
"""0.9 quantile of Student's t by degrees of freedom, from any table of it."""


def budgets_by_sql(full: Full) -> Rows:
    """Return the same by the calls: the mean of whole days for the days that are left, 80 % by how days differ."""
    known = {a.id: a.monthly_budget_usd for a in settings().gnomon.pricing.accounts}
    hour = full.now.replace(minute=0, second=0)
    month = hour.replace(day=1, hour=0)
    following = (month + timedelta(days=32)).replace(day=1)
    left = (following - full.now).total_seconds() / 86400
    rows = full.sql(
        "SELECT account, toStartOfHour(at) AS hour, sum(usd) AS usd FROM gnomon.attempts"
        " WHERE at < {to:DateTime64(3)} AND account != '' GROUP BY account, hour"
    )
    found: Rows = {}
    for account, budget in known.items():
        mine = [
            (row["hour"].replace(tzinfo=UTC), row["usd"] or Decimal(0)) for row in rows if row["account"] == account
        ]
        spent = sum((amount for at, amount in mine if at >= month), Decimal(0))
        n_days = min(14, int((hour - min(at for at, _ in mine)).total_seconds() // 86400))
        days = [
            float(
                sum(amount for at, amount in mine if hour - timedelta(days=ago + 1) <= at < hour - timedelta(days=ago))
            )
            for ago in range(n_days)
        ]
        mean = sum(days) / n_days
        spread = math.sqrt(sum((day - mean) ** 2 for day in days) / (n_days - 1))
        band = STUDENT[n_days - 2] * spread * math.sqrt(left * (1 + left / n_days))
        forecast = float(spent) + mean * left
        found[account] = {
            "spent": spent,
            "budget": Decimal(str(budget)) if budget else None,
            "forecast": forecast,
            "forecast_low": max(forecast - band, float(spent)),
            "forecast_high": forecast + band,
        }
    return found


# --- the data itself -------------------------------------------------------------------------------------------------


def hours_by_api(full: Full, hours: int) -> list[dict[str, Any]]:
    """Return the counts of each hour, the oldest first."""
    rows = full.asked("reconcile", from_=start_of(full, hours * 3600), to=full.to)
    return [{**row, "hour": when(row["hour"])} for row in rows]


def hours_by_sql(full: Full, hours: int) -> list[dict[str, Any]]:
    """Return the same: accepted and shipped is what the night made, stored is what the tables have."""
    made = full.made_by_hour
    dead = {
        row["hour"].replace(tzinfo=UTC): row["n"]
        for row in full.sql(
            "SELECT toStartOfHour(at) AS hour, count() AS n FROM gnomon.events WHERE type = 'dead_letter' GROUP BY hour"
        )
    }
    homes = (
        ("requests", "event_id != ''"),
        ("comparisons", ""),
        ("attempts", "request_id = ''"),
        ("heads", ""),
        ("reorgs", ""),
        ("breaker_transitions", ""),
    )
    stored: dict[datetime, int] = {}
    for table, only in homes:
        where = f"WHERE {only}" if only else ""
        for row in full.sql(
            f"SELECT toStartOfHour(at) AS hour, count() AS n FROM gnomon.{table} {where} GROUP BY hour"
        ):
            hour = row["hour"].replace(tzinfo=UTC)
            stored[hour] = stored.get(hour, 0) + row["n"]
    first = (full.now - timedelta(hours=hours)).replace(minute=0, second=0)
    return [
        {
            "hour": hour,
            "accepted": made.get(hour, 0),
            "shipped": made.get(hour, 0),
            "stored": stored.get(hour, 0),
            "distinct_stored": stored.get(hour, 0),
            "dead_lettered": dead.get(hour, 0),
        }
        for hour in sorted({*made, *stored, *dead})
        if hour >= first or hour.year == 1970
    ]
