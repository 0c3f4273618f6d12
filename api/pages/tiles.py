"""The six numbers of the overview, each with what it rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from api.pages import figures, heads, known
from api.pages.figures import duration, iso, percent, plural, rate, usd
from api.pages.money import summed
from api.pages.page import Around, Shown, together
from api.pages.watched import NOW_SECONDS, candidate, listed, service, step_of


@dataclass(frozen=True, slots=True)
class Tile:
    """One of the six numbers."""

    label: str
    href: str
    value: Any
    unit: str
    below: str
    tone: str = ""


async def tiles(around: Around) -> Shown:
    view = around.view
    served, shadows, today, budgets, lags, stages, hours = await together(
        service(around),
        around.rows("divergence_by_shadow", from_=iso(view.now - timedelta(days=7)), to=iso(view.span.end)),
        around.rows("paid_today"),
        around.rows("budgets"),
        heads.lags(around, step_of(around)),
        around.rows("stages"),
        around.hours(),
    )
    return {
        "served": served_words(served),
        "tiles": [
            _requests(around, served),
            _mismatch(around, shadows),
            _paid_today(around, today[0]),
            _month(around, budgets),
            _worst_head(around, lags),
            _data(around, stages[0], hours),
        ],
    }


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


def _requests(around: Around, served: Mapping[str, Any] | None) -> Tile:
    href = around.view.to("/requests")
    if served is None:
        return Tile("Requests", href, figures.Figure("0", "0"), "a second", "none in the last 5 min")
    below = f"{_errors(served)} · p99 {figures.micros(served['p99_us'])}"
    return Tile("Requests", href, figures.number(served["n"] / NOW_SECONDS), "a second", below)


def _mismatch(around: Around, rows: Sequence[Mapping[str, Any]]) -> Tile:
    worst = candidate(rows, around)
    if worst is None:
        return Tile(
            "Mismatch on final data", around.view.to("/divergence"), figures.UNKNOWN, "", "nothing compared in 7 days"
        )
    found = rate(worst["mismatch"], worst["n_judged"])
    below = f"{found.interval} · n {found.n}" if found.interval else "too few for a rate"
    href = around.view.to("/divergence", shadow=worst["shadow_upstream"])
    return Tile(f"Mismatch on final data, {worst['shadow_upstream']}", href, found.figure, "", below)


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


def _worst_head(around: Around, lags: Mapping[tuple[str, str], heads.Lag]) -> Tile:
    tiers = {(one.network, one.id): one.tier for one in known.upstreams(around.settings)}
    mine = {key: lag for key, lag in lags.items() if tiers.get(key, "primary") == "primary"}
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
    return Tile("Worst primary head", href, value, str(duration(worst.seconds)) if behind else "", below, tone)


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
