"""The six numbers of the overview, each with what it rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from api.pages import earlier, figures, heads, known
from api.pages.earlier import NOT_ASKED, Was
from api.pages.figures import duration, iso, percent, plural, rate, usd
from api.pages.money import summed
from api.pages.page import HAS_BEFORE, Around, Shown, both, together
from api.pages.watched import NOW_SECONDS, candidate, listed, service, step_of

MISMATCH_DAYS = 7


@dataclass(frozen=True, slots=True)
class Tile:
    """One of the six numbers."""

    label: str
    href: str
    value: Any
    unit: str
    below: str
    tone: str = ""
    was: Was = NOT_ASKED


async def tiles(around: Around) -> Shown:
    step = step_of(around)
    (
        (served, served_before),
        shadows,
        shadows_before,
        today,
        budgets,
        (lags, lags_before),
        stages,
        hours,
    ) = await together(
        both(service, around),
        _shadows(around),
        _shadows_before(around),
        around.rows("paid_today"),
        around.rows("budgets"),
        both(lambda one: heads.lags(one, step), around),
        around.rows("stages"),
        around.hours(),
    )
    return {
        "served": served_words(served),
        "tiles": [
            _requests(around, served, served_before),
            _mismatch(around, shadows, shadows_before),
            _paid_today(around, today[0]),
            _month(around, budgets),
            _worst_head(around, lags, lags_before),
            _data(around, stages[0], hours),
        ],
        HAS_BEFORE: bool(served_before or shadows_before or lags_before),
    }


async def _shadows(around: Around) -> list[dict[str, Any]]:
    start = around.view.now - timedelta(days=MISMATCH_DAYS)
    return await around.rows("divergence_by_shadow", from_=iso(start), to=iso(around.view.span.end))


async def _shadows_before(around: Around) -> list[dict[str, Any]]:
    """Return the same of the seven days before: a rate of a week is compared with one of a week."""
    before = around.before
    if before is None:
        return []
    end = around.view.now - timedelta(days=MISMATCH_DAYS)
    return await before.rows("divergence_by_shadow", from_=iso(end - timedelta(days=MISMATCH_DAYS)), to=iso(end))


def served_words(served: Mapping[str, Any] | None) -> str:
    """Return how clients are served, as the page's first sentence ends."""
    if served is None:
        return "No request came in the last 5 min."
    return f"Clients: {_errors(served)}, p99 {figures.micros(served['p99_us'])}."


def _errors(served: Mapping[str, Any]) -> str:
    failed, n = served["n_failed"], served["n"]
    if n < figures.MIN_RATE_N:
        return f"{failed:,} of {plural(n, 'request')} failed"
    return f"{percent(failed / n)} errors" if failed else "no error"


def _requests(around: Around, served: Mapping[str, Any] | None, before: Mapping[str, Any] | None) -> Tile:
    href = around.view.to("/requests")
    if served is None:
        return Tile("Requests", href, figures.Figure("0", "0"), "a second", "none in the last 5 min")
    below = f"{_errors(served)} · p99 {figures.micros(served['p99_us'])}"
    pace = served["n"] / NOW_SECONDS
    pace_before = before["n"] / NOW_SECONDS if before is not None else None
    was = earlier.amount(pace, pace_before, figures.number(pace_before))
    return Tile("Requests", href, figures.number(pace), "a second", below, was=was)


def _mismatch(around: Around, rows: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> Tile:
    worst = candidate(rows, around)
    if worst is None:
        return Tile(
            "Mismatch on final data", around.view.to("/divergence"), figures.UNKNOWN, "", "nothing compared in 7 days"
        )
    found = rate(worst["mismatch"], worst["n_judged"])
    below = f"{found.interval} · n {found.n}" if found.interval else "too few for a rate"
    href = around.view.to("/divergence", shadow=worst["shadow_upstream"])
    key = (worst["network"], worst["shadow_upstream"])
    mine = next((row for row in before if (row["network"], row["shadow_upstream"]) == key), None)
    was = earlier.share(found, rate(mine["mismatch"], mine["n_judged"]) if mine else None)
    return Tile(f"Mismatch on final data, {worst['shadow_upstream']}", href, found.figure, "", below, was=was)


def _paid_today(around: Around, row: Mapping[str, Any]) -> Tile:
    paid = row["usd"] if row["usd"] is not None else (None if row["n_unpriced"] else Decimal(0))
    usual = row["usd_usual"]
    words = f"usually {usd(Decimal(str(usual)))} by now" if usual is not None else "no day before to compare"
    if row["n_unpriced"]:
        words = f"{plural(row['n_unpriced'], 'call')} unpriced · {words}"
    return Tile("Paid today, since 00:00", around.view.to("/spend"), usd(paid), "", words)


def _month(around: Around, rows: Sequence[Mapping[str, Any]]) -> Tile:
    href = around.view.to("/spend")
    whole = summed(rows)
    if whole is None:
        return Tile("Month, forecast", href, figures.UNKNOWN, "", "no account has a budget")
    unit = f"of {usd(whole.budget)}" if whole.budget is not None else ""
    below = f"{usd(whole.spent)} so far"
    if whole.low is not None and whole.high is not None:
        below += f" · 80 %: {usd(whole.low)} to {usd(whole.high)}"
    is_over = whole.budget is not None and whole.forecast > whole.budget
    return Tile("Month, forecast", href, usd(whole.forecast), unit, below, "warn" if is_over else "")


def _worst_head(around: Around, lags: heads.Lags, before: heads.Lags | None) -> Tile:
    mine = _of_primaries(around, lags)
    href = around.view.to("/heads")
    unknown = [up for (_, up), lag in mine.items() if lag.now is None]
    also = f" · {listed(unknown)} unknown" if unknown else ""
    heard = {key: lag for key, lag in mine.items() if lag.now is not None}
    if not heard:
        return Tile("Worst primary head", href, figures.UNKNOWN, "", f"no head is known{also}")
    (network, upstream), worst = max(heard.items(), key=lambda item: item[1].now or 0)
    behind = worst.now or 0
    tone = "warn" if behind > heads.LIMIT_BLOCKS else ""
    below = f"{upstream}, {network}{also}" if behind else f"all at the head{also}"
    value = figures.Figure(plural(behind, "block"), str(behind))
    heard_before = [lag.now for lag in _of_primaries(around, before or {}).values() if lag.now is not None]
    was = earlier.level(behind, max(heard_before, default=None))
    seconds = str(duration(worst.seconds)) if behind else ""
    return Tile("Worst primary head", href, value, seconds, below, tone, was)


def _of_primaries(around: Around, lags: heads.Lags) -> heads.Lags:
    tiers = {(one.network, one.id): one.tier for one in known.upstreams(around.settings)}
    return {key: lag for key, lag in lags.items() if tiers.get(key, "primary") == "primary"}


def _data(around: Around, stages: Mapping[str, Any], hours: Sequence[Mapping[str, Any]]) -> Tile:
    href = around.view.to("/data")
    past = [row for row in hours if row["hour"].year > 1970]
    lost = sum(max(row["shipped"] - row["stored"] - row["dead_lettered"], 0) for row in past[:-1]) + stages["n_dropped"]
    doubled = sum(row["stored"] - row["distinct_stored"] for row in past)
    words = f"{lost:,} lost, {doubled:,} doubled, {plural(stages['n_dead'], 'dead letter')}"
    at = stages["last_stored_at"]
    if at.year <= 1970:
        return Tile("Data", href, figures.UNKNOWN, "", "nothing stored yet")
    age = max((around.view.now - at).total_seconds(), 0.0)
    tone = "bad" if lost or doubled else "warn" if age > 60 else ""
    return Tile("Data", href, duration(age), "behind", words, tone)
