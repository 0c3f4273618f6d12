"""Spend: so far, forecast, budget, waste; why each paid call was made; who pays; how sure the prices are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any

from markupsafe import Markup

from api.pages import choices, earlier, figures, money, steps
from api.pages.address import Span, View
from api.pages.charts import month as drawing
from api.pages.charts import sparks
from api.pages.choices import Choices
from api.pages.earlier import Was
from api.pages.figures import count, day, iso, moment, pace, percent, plural, usd
from api.pages.money import Month, Why, summed, why
from api.pages.page import HAS_BEFORE, Around, Chip, Page, Panel, Shown, State, both, together

PACE_SECONDS = 1800
"""What `the last 30 min` are."""
WIDE, NARROW = 760, 342


def _filters(around: Around) -> dict[str, str]:
    return {"account": around.view.get("account")}


async def accounts_of(around: Around) -> list[dict[str, Any]]:
    """Return the accounts that the page is about, with their month."""
    rows = await around.rows("budgets")
    account = around.view.get("account")
    return [row for row in rows if account in ("", row["account"])]


async def _days(around: Around) -> list[dict[str, Any]]:
    rows = await around.rows("spend_daily", **_filters(around))
    cause = around.view.get("cause")
    return [row for row in rows if cause in ("", row["cause"])]


async def _pace(around: Around) -> Decimal:
    """Return USD per hour of the last 30 minutes of the range."""
    start = around.view.span.end - timedelta(seconds=PACE_SECONDS)
    rows = await around.rows("paid_groups", from_=iso(start), limit="1000", **_filters(around))
    return sum((row["usd"] for row in rows if row["usd"] is not None), Decimal(0)) * 3600 / PACE_SECONDS


# --- month -----------------------------------------------------------------------------------------------------------


async def month(around: Around) -> Shown | State:
    view = around.view
    (rows, before), accounts, per_hour = await together(both(_days, around), accounts_of(around), _pace(around))
    if not rows:
        return _nothing(around)
    start = view.span.start
    n_days = (view.span.end - start).total_seconds() / 86400
    whole = summed(accounts)
    is_month = whole is not None and abs((whole.begins_at - start).total_seconds()) < 3600 and view.span.is_running
    length = (whole.ends_at - whole.begins_at).total_seconds() / 86400 if is_month and whole else n_days
    places = [0.0, *(float(at + 1) for at in range(int(n_days))), n_days]
    places = places if places[-1] > places[-2] else places[:-1]
    drawn = drawing.Month(
        days=places,
        n_days=length,
        layers=_layers(rows, start, places),
        before=_cumulative(before, view.before().span, places) if before else (),
        ticks=_ticks(start, length, view.now),
        now_words=str(usd(sum((row["usd"] or Decimal(0) for row in rows), Decimal(0)))),
        **(_outlook(whole, per_hour, start, view) if is_month and whole else {}),
    )
    label = f"Spend by cause, cumulative: {drawn.now_words} so far"
    return {
        "wide": drawing.month(drawn, label, width=WIDE),
        "narrow": drawing.month(drawn, label, width=NARROW, height=240),
        "rows": rows,
        "whole": whole if is_month else None,
        "per_hour": per_hour,
        "causes": [one for one in money.ALL if any(why(row["kind"], row["cause"]) is one for row in rows)],
        HAS_BEFORE: bool(before),
    }


def _cumulative(rows: Sequence[Mapping[str, Any]], asked: Span, places: Sequence[float]) -> list[float]:
    """Return the USD of a range so far at the days of the drawing, as far as the range goes."""
    n_days = sum(place <= asked.seconds / 86400 + 1 for place in places[1:])
    return _summed_up(_daily(rows, asked.start, len(places) - 1)[:n_days])


def _summed_up(daily: Sequence[float]) -> list[float]:
    """Return what it came to at the beginning of the first day and at the end of each."""
    return [0.0, *accumulate(daily)]


def _layers(rows: Sequence[Mapping[str, Any]], start: Any, places: Sequence[float]) -> list[drawing.Layer]:
    layers = []
    for one in money.ALL:
        mine = [row for row in rows if why(row["kind"], row["cause"]) is one]
        if mine:
            totals = _summed_up(_daily(mine, start, len(places) - 1))
            layers.append(drawing.Layer(one.css_class, totals, is_waste=one is money.BEYOND))
    return layers


def _ticks(start: Any, n_days: float, now: Any) -> list[tuple[float, str]]:
    step = max(1, round(n_days / 6))
    marks = []
    for at in range(0, int(n_days) + 1, step):
        words = day(start + timedelta(days=at), now)
        marks.append((float(at), words if at == 0 else words.split()[0] if n_days < 32 else words))
    return marks


def _outlook(whole: Month, per_hour: Decimal, start: Any, view: View) -> dict[str, Any]:
    forecast = drawing.Forecast(float(whole.forecast), _float(whole.low), _float(whole.high))
    words = [str(usd(whole.forecast))]
    if whole.low is not None and whole.high is not None:
        words += [f"{usd(whole.low)} to {usd(whole.high)}", "80 % of cases"]
    found: dict[str, Any] = {"forecast": forecast, "forecast_words": words}
    if whole.budget is not None:
        found |= {"budget": float(whole.budget), "budget_words": f"budget {usd(whole.budget)}"}
        gone = money.gone_at(whole, per_hour, view.now)
        if gone is not None:
            said = f"budget gone {moment(gone, view.clock)}"
            day_of_it = (gone - start).total_seconds() / 86400
            found["pace"] = (day_of_it, f"if the last 30 min went on: {said}", said)
    return found


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _nothing(around: Around) -> State:
    view = around.view
    if view.get("account") or view.get("cause") or view.networks:
        return State("Filtered out", "No paid call fits the filters.", ways=[("Remove filters", "/spend")])
    return State(
        "Nothing was paid in this range",
        "No call went to an upstream with a vendor. Name the vendor of a paid upstream, and its book applies.",
        code="vendor: alchemy",
    )


# --- causes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One reason, over the range."""

    why: Why
    bars: Markup
    usd: figures.Figure
    share: figures.Figure
    n: figures.Figure
    wasted: figures.Figure
    driver: str
    href: str
    was: Was
    n_was: Was


async def causes(around: Around) -> Shown | State:
    view = around.view
    (rows, before), waste = await together(both(_days, around), around.rows("wasted_by_cause", **_filters(around)))
    if not rows:
        return _nothing(around)
    n_days = max(1, steps.count_of(view.span, 86400))
    total = sum((row["usd"] or Decimal(0) for row in rows), Decimal(0))
    by_reason = {one: [row for row in rows if why(row["kind"], row["cause"]) is one] for one in money.ALL}
    daily = {one: _daily(mine, view.span.start, n_days) for one, mine in by_reason.items()}
    top = _scale([value for values in daily.values() for value in values])
    shown = []
    for one, mine in by_reason.items():
        if not mine:
            continue
        amount = sum((row["usd"] for row in mine if row["usd"] is not None), Decimal(0))
        is_priced = any(row["usd"] is not None for row in mine)
        n_wasted = sum(row["n_wasted"] for row in mine)
        wasted = _wasted(waste, one)
        label = f"{one.name}, USD a day: {', '.join(f'{value:.4g}' for value in daily[one][-31:])}"
        shown.append(
            CauseRow(
                why=one,
                bars=sparks.bars(daily[one], label, width=118, height=20, css_class=one.css_class, top=top),
                usd=usd(amount if is_priced else None),
                was=_was(amount if is_priced else None, before, one),
                n_was=_n_was(sum(row["n"] for row in mine), before, one),
                share=percent(float(amount / total)) if total else figures.UNKNOWN,
                n=count(sum(row["n"] for row in mine)),
                wasted=usd(wasted) if n_wasted or wasted else figures.UNKNOWN,
                driver=_driver(one, mine, n_wasted),
                href=_explained(one, around),
            )
        )
    return {
        "rows": shown,
        "total": usd(total),
        "total_was": _was(total, before, None),
        "n": count(sum(row["n"] for row in rows)),
        "n_was": _n_was(sum(row["n"] for row in rows), before, None),
        HAS_BEFORE: bool(before),
        "wasted": usd(sum((row["usd"] or Decimal(0) for row in waste), Decimal(0))),
        "n_unpriced": sum(row["n_unpriced"] for row in rows),
        "top": usd(Decimal(repr(top))),
        "waste": waste,
        "spent": total,
    }


def _was(amount: Decimal | None, before: Sequence[Mapping[str, Any]] | None, one: Why | None) -> Was:
    """Return what a reason, or all of them, cost in the range before."""
    if not before:
        return earlier.NOT_ASKED
    mine = [row for row in before if one is None or why(row["kind"], row["cause"]) is one]
    if mine and all(row["usd"] is None for row in mine):
        return earlier.NOT_ASKED
    old = sum((row["usd"] or Decimal(0) for row in mine), Decimal(0))
    return earlier.amount(amount, old, usd(old))


def _n_was(n: int, before: Sequence[Mapping[str, Any]] | None, one: Why | None) -> Was:
    if not before:
        return earlier.NOT_ASKED
    old = sum(row["n"] for row in before if one is None or why(row["kind"], row["cause"]) is one)
    return earlier.amount(n, old, count(old))


def _daily(rows: Sequence[Mapping[str, Any]], start: Any, n_days: int) -> list[float]:
    """Return USD by day of a range: its first day may have begun before it."""
    values = [0.0] * n_days
    for row in rows:
        at = min(max(int((row["day"] - start).total_seconds() // 86400), 0), n_days - 1)
        values[at] += float(row["usd"] or 0)
    return values


def _scale(values: Sequence[float]) -> float:
    """Return the scale that all bars share: eight times the median day, or the peak if that is less."""
    some = sorted(value for value in values if value > 0)
    return min(some[-1], some[len(some) // 2] * 8) if some else 1.0


def _wasted(waste: Sequence[Mapping[str, Any]], one: Why) -> Decimal:
    return sum((row["usd"] or Decimal(0) for row in waste if why(row["kind"], row["cause"]) is one), Decimal(0))


def _driver(one: Why, rows: Sequence[Mapping[str, Any]], n_wasted: int) -> str:
    n = sum(row["n"] for row in rows)
    if one is money.HEDGE:
        return f"{percent((n - n_wasted) / n)} of them won" if n else ""
    if one is money.BEYOND:
        return "shortCircuitFutureBlocks would end it"
    by_cause: dict[str, int] = {}
    for row in rows:
        by_cause[row["cause"] or row["kind"]] = by_cause.get(row["cause"] or row["kind"], 0) + row["n"]
    top = sorted(by_cause.items(), key=lambda item: -item[1])[:2]
    return ", ".join(f"{name} {percent(n_of / n)}" for name, n_of in top)


def _explained(one: Why, around: Around) -> str:
    """Return the page that explains a reason."""
    if one is money.FAILED:
        return around.view.to("/breakers")
    if one in (money.EMPTY, money.BEYOND):
        return around.view.to("/heads")
    if one is money.SHADOW:
        return around.view.to("/divergence")
    return ""


# --- groups ----------------------------------------------------------------------------------------------------------


async def groups(around: Around) -> Shown | State:
    view = around.view
    start = max(view.span.end.replace(hour=0, minute=0, second=0, microsecond=0), view.span.start)
    rows = await around.rows("paid_groups", from_=iso(start), limit="12", **_filters(around))
    rows = [row for row in rows if view.get("cause") in ("", row["cause"])]
    if not rows:
        return State("Nothing was paid today", "No call to a vendor since 00:00.")
    return {
        "since": moment(start, view.clock),
        "rows": [
            {
                **row,
                "why": why(row["kind"], row["cause"]),
                "cause": row["cause"] or row["kind"],
                "useless": _useless(row),
                "href": view.to(f"/requests/{row['example_request_id']}") if row["example_request_id"] else "",
            }
            for row in rows
        ],
    }


def _useless(row: Mapping[str, Any]) -> str:
    if row["n_wasted"]:
        return f"{percent(row['n_wasted'] / row['n'])} wasted"
    return f"{percent(row['n_empty'] / row['n'])} empty" if row["n_empty"] else "none"


# --- accounts, prices ------------------------------------------------------------------------------------------------


async def accounts(around: Around) -> Shown | State:
    rows = await accounts_of(around)
    if not rows:
        return State(
            "No account has a budget",
            "Declare the accounts of your vendors, and what a month may cost.",
            code="gnomon: {pricing: {accounts: {alchemy: {monthlyBudgetUsd: 500}}}}",
        )
    top = max(max(float(row["budget"] or 0), row["forecast_high"] or row["forecast"] or 0.0) for row in rows) * 1.1
    top = top or 1.0
    shown = []
    for row in rows:
        forecast = drawing.Forecast(row["forecast"], row["forecast_low"], row["forecast_high"])
        budget = _float(row["budget"])
        label = f"{row['account']}: {usd(row['spent'])} so far, forecast {usd(Decimal(repr(row['forecast'])))}"
        shown.append(
            {
                **row,
                "bullet": drawing.bullet(float(row["spent"]), top, label, budget=budget, forecast=forecast),
                "is_over": budget is not None and row["forecast"] > budget,
                "forecast_usd": usd(Decimal(repr(row["forecast"]))),
                "href": around.view.here(account=row["account"]),
            }
        )
    return {"rows": shown, "top": usd(Decimal(repr(round(top, 6))))}


async def prices(around: Around) -> Shown | State:
    rows = await around.rows("prices_in_effect", **_filters(around))
    if not rows:
        return _nothing(around)
    return {
        "rows": [
            {**row, "price": figures.price(_price(row)), "estimated": percent(row["n_estimates"] / row["n"])}
            for row in rows
        ],
        "n_unpriced": sum(row["n_unpriced"] for row in rows),
    }


def _price(row: Mapping[str, Any]) -> Decimal | None:
    value = row["usd_per_million_units"]
    return None if value is None else Decimal(repr(value))


# --- the page --------------------------------------------------------------------------------------------------------


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return what was spent of the budget, the forecast with its band, and what bought nothing."""
    drawn, table = shown.get("month"), shown.get("causes")
    if drawn is None or isinstance(drawn, State) or table is None or isinstance(table, State):
        return "Nothing was paid in this range.", ""
    view = around.view
    spent, wasted = table["spent"], sum((row["usd"] or Decimal(0) for row in table["waste"]), Decimal(0))
    whole: Month | None = drawn["whole"]
    name = f"{view.span.start:%B}" if whole is not None else view.words()
    first = f"{name}: {usd(spent)}"
    if whole is not None and whole.budget is not None:
        first += f" of {usd(whole.budget)}"
    first += " so far."
    if whole is not None:
        band = f" ({usd(whole.low)} to {usd(whole.high)} in 80 % of cases)" if whole.low is not None else ""
        first += f" Forecast {usd(whole.forecast)} at month end{band}."
    if wasted:
        first += f" {usd(wasted)}, {percent(float(wasted / spent)) if spent else ''}, bought nothing."
    below = _pace_words(drawn["per_hour"], whole, view, table["n_unpriced"])
    if table["total_was"]:
        words = view.before_words
        below += f" {words[0].upper()}{words[1:]}: {table['total_was']}."
    return first, below


def _pace_words(per_hour: Decimal, whole: Month | None, view: View, n_unpriced: int) -> str:
    said = f"The last 30 min cost {pace(per_hour)} an hour"
    if whole is not None and whole.even_pace is not None:
        said += f" against a budget pace of {pace(whole.even_pace)}"
        gone = money.gone_at(whole, per_hour, view.now)
        if gone is not None:
            shown = gone.astimezone(view.clock.tzinfo)
            said += f". If that went on, the budget would be gone on {day(shown, view.clock)} at {shown:%H:%M}"
    return said + "." + (f" {plural(n_unpriced, 'call')} unpriced, in no sum." if n_unpriced else "")


async def _choices(around: Around) -> list[Choices]:
    """Return the accounts and causes of the range, by calls."""
    priced, rows = await together(around.rows("prices_in_effect"), around.rows("spend_daily", **_filters(around)))
    return [
        choices.choices(around, "account", "calls", choices.summed(priced, "account", "n")),
        choices.choices(around, "cause", "calls", choices.summed(rows, "cause", "n")),
    ]


def chips(around: Around) -> list[Chip]:
    """Return the filters in force."""
    view = around.view
    found = [Chip("network", net, view.with_networks([n for n in view.networks if n != net])) for net in view.networks]
    found += [Chip(name, view.get(name), view.here(**{name: None})) for name in ("account", "cause") if view.get(name)]
    return found


PAGE = Page(
    name="spend",
    path="/spend",
    title="Spend",
    default_from="month",
    own=("account", "cause"),
    lead=lead,
    chips=chips,
    panels=(
        Panel(name="month", title="What will it be at month end?", build=month, template="spend_month.html",
              tall=320, compares="dotted", questions=("spend_daily", "budgets")),
        Panel(name="causes", title="Why was each paid call made?", build=causes, template="spend_causes.html",
              tall=240, compares="below", questions=("spend_daily", "wasted_by_cause")),
        Panel(name="groups", title="Largest groups today", build=groups, template="spend_groups.html", is_slow=True,
              tall=240, questions=("paid_groups",)),
        Panel(name="accounts", title="Which account pays?", build=accounts, template="spend_accounts.html",
              questions=("budgets",)),
        Panel(name="prices", title="How sure are the prices?", build=prices, template="spend_prices.html",
              is_slow=True, tall=160, questions=("prices_in_effect",)),
        choices.panel(_choices, ("prices_in_effect", "spend_daily")),
    ),
)  # fmt: skip
