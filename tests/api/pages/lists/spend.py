"""The numbers of Spend."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.pages import money
from api.pages.charts import month as drawing
from api.pages.charts import sparks
from api.pages.figures import count, day, exact, moment, pace, percent, plural, price, usd
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, Timed, at, by, facts, note, parts, table
from tests.api.pages.listed import usd as amount
from tests.api.pages.lists.series import budgets_by_api, budgets_by_sql, start_of
from tests.api.pages.reading import Node

NOTHING = Decimal(0)
THIS_MONTH = "at >= toStartOfMonth({to:DateTime64(3)}) AND at < {to:DateTime64(3)}"
Days = list[dict[str, Any]]


def days_by_api(full: Full) -> Days:
    """Return what was paid by day, tier, kind and cause."""
    rows = full.asked("spend_daily", from_=full.month, to=full.to)
    return [{**row, "usd": amount(row["usd"]), "day": int(row["day"][8:10]) - 1} for row in rows]


def days_by_sql(full: Full) -> Days:
    return full.sql(
        "SELECT toDayOfMonth(at) - 1 AS day, tier, kind, cause, count() AS n, countIf(is_wasted) AS n_wasted,"
        " countIf(isNull(a.usd)) AS n_unpriced, sum(a.usd) AS usd FROM gnomon.attempts AS a WHERE vendor != ''"
        f" AND {THIS_MONTH} GROUP BY day, tier, kind, cause ORDER BY day, tier, kind, cause"
    )


def waste_by_api(full: Full) -> Days:
    rows = full.asked("wasted_by_cause", from_=full.month, to=full.to)
    return [{**row, "usd": amount(row["usd"])} for row in rows]


def waste_by_sql(full: Full) -> Days:
    return full.sql(
        f"SELECT kind, cause, sum(usd) AS usd FROM gnomon.attempts WHERE is_wasted"
        f" AND {THIS_MONTH} GROUP BY kind, cause"
    )


def pace_by_api(full: Full) -> Decimal:
    """Return USD an hour, of the last half hour."""
    rows = full.asked("spend_in_steps", from_=start_of(full, 1800), to=full.to, step=1800)
    return sum((amount(row["usd"]) or NOTHING for row in rows), NOTHING) * 2


def pace_by_sql(full: Full) -> Decimal:
    (row,) = full.sql(
        "SELECT sum(usd) * 2 AS pace FROM gnomon.attempts WHERE vendor != ''"
        " AND at >= {to:DateTime64(3)} - INTERVAL 30 MINUTE AND at < {to:DateTime64(3)}"
    )
    return row["pace"] or NOTHING


def total(rows: Days) -> Decimal:
    return sum((row["usd"] or NOTHING for row in rows), NOTHING)


def whole(accounts: Rows) -> tuple[Decimal, ...]:
    """Return the accounts as one: spent, budget, forecast, its band."""
    names = ("spent", "budget", "forecast", "forecast_low", "forecast_high")
    return tuple(sum((Decimal(str(row[name])) for row in accounts.values()), NOTHING) for name in names)


# --- by cause --------------------------------------------------------------------------------------------------------


def of(one: money.Why, rows: Days) -> Days:
    return [row for row in rows if money.why(row["kind"], row["cause"]) is one]


def per_day(rows: Days, n_days: int) -> list[float]:
    values = [0.0] * n_days
    for row in rows:
        values[min(row["day"], n_days - 1)] += float(row["usd"] or 0)
    return values


def scale(rows: Days, n_days: int) -> float:
    """Return the top of all bars: eight times the median day, or the highest."""
    some = sorted(value for one in money.ALL for value in per_day(of(one, rows), n_days) if value > 0)
    return min(some[-1], some[len(some) // 2] * 8)


def causes(full: Full, rows: Days, waste: Days) -> Rows:
    n_days = full.now.day
    top, found = scale(rows, n_days), {}
    for one in money.ALL:
        mine = of(one, rows)
        if not mine:
            continue
        n, n_wasted = sum(row["n"] for row in mine), sum(row["n_wasted"] for row in mine)
        by_cause: dict[str, int] = {}
        for row in mine:
            name = row["cause"] or row["kind"]
            by_cause[name] = by_cause.get(name, 0) + row["n"]
        most = sorted(by_cause.items(), key=lambda item: -item[1])[:2]
        found[one.name] = {
            "Days": (one.css_class, one.name, per_day(mine, n_days), top),
            "Spent": total(mine) if any(row["usd"] is not None for row in mine) else None,
            "Share": float(total(mine) / total(rows)),
            "Calls": n,
            "Wasted": (n_wasted, total(of(one, waste))),
            "What drives it": (one.name, n, n_wasted, most),
        }
    return found


def cause_bars(raw: Any) -> Markup:
    css, name, values, top = raw
    label = f"{name}, USD a day: {', '.join(f'{value:.4g}' for value in values[-31:])}"
    return sparks.bars(values, label, width=118, height=20, css_class=css, top=top)


def driver(raw: Any) -> str:
    name, n, n_wasted, most = raw
    if name == "Hedge":
        return f"{percent((n - n_wasted) / n)} of them won"
    if name == "Beyond the head":
        return "shortCircuitFutureBlocks would end it"
    return ", ".join(f"{cause} {percent(n_of / n)}" for cause, n_of in most)


def foot(panel: Node) -> Cells:
    """Return the sums below the causes."""
    cells = panel.one("tfoot").all("td")
    return {"": {"Spent": cells[2], "Calls": cells[4], "Wasted": cells[5], "Unpriced": cells[6]}}


def sums(rows: Days, waste: Days) -> Rows:
    n_unpriced = sum(row["n_unpriced"] for row in rows)
    return {
        "": {
            "Spent": total(rows),
            "Calls": sum(row["n"] for row in rows),
            "Wasted": total(waste),
            "Unpriced": n_unpriced,
        }
    }


# --- the month -------------------------------------------------------------------------------------------------------


def drawn(raw: Any, now: Any, *, width: int, height: int = 300) -> Markup:
    """Return the month of these numbers: causes on each other, forecast with its band, budget, the present pace."""
    layers, spent, (_, budget, forecast, low, high), per_hour = raw
    start = now.replace(day=1, hour=0, minute=0, second=0)
    following = (start + timedelta(days=32)).replace(day=1)
    elapsed, length = (now - start).total_seconds() / 86400, (following - start).total_seconds() / 86400
    days = sorted({0.0, *(float(at + 1) for at in range(int(elapsed))), elapsed})
    step = max(1, round(length / 6))
    marks = [
        (float(n), day(start, now) if n == 0 else str(1 + n if n < length else 1))
        for n in range(0, int(length) + 1, step)
    ]
    gone = gone_at(spent_of=raw[2], per_hour=per_hour, now=now, end=following)
    short = f"budget gone {moment(gone, now)}" if gone else ""
    picture = drawing.Month(
        days=days,
        n_days=length,
        ticks=marks,
        now_words=str(usd(spent)),
        layers=[
            drawing.Layer(css, [0.0, *running(values[: len(days) - 1])], is_waste=is_waste)
            for css, values, is_waste in layers
        ],
        forecast=drawing.Forecast(float(forecast), float(low), float(high)),
        forecast_words=[str(usd(forecast)), f"{usd(low)} to {usd(high)}", "80 % of cases"],
        budget=float(budget),
        budget_words=f"budget {usd(budget)}",
        pace=((gone - start).total_seconds() / 86400, f"if the last 30 min went on: {short}", short) if gone else None,
    )
    return drawing.month(picture, f"Spend by cause, cumulative: {usd(spent)} so far", width=width, height=height)


def running(values: list[float]) -> list[float]:
    found: list[float] = []
    for value in values:
        found.append((found[-1] if found else 0.0) + value)
    return found


def gone_at(*, spent_of: tuple[Decimal, ...], per_hour: Decimal, now: Any, end: Any) -> Any:
    """Return when the budget is gone at this pace; None: not within the month."""
    spent, budget, *_ = spent_of
    if per_hour <= 0 or spent >= budget:
        return None
    at_that = now + timedelta(hours=float((budget - spent) / per_hour))
    return at_that if at_that < end else None


def month(full: Full, rows: Days, accounts: Rows, per_hour: Decimal) -> Rows:
    layers = [
        (one.css_class, per_day(of(one, rows), full.now.day), one is money.BEYOND) for one in money.ALL if of(one, rows)
    ]
    raw = (layers, total(rows), whole(accounts), per_hour)
    return {"": {"wide": raw, "narrow": raw}}


def first_words(raw: Any, now: Any) -> str:
    spent, wasted, (_, budget, forecast, low, high) = raw
    return (
        f"{now:%B}: {usd(spent)} of {usd(budget)} so far. Forecast {usd(forecast)} at month end"
        f" ({usd(low)} to {usd(high)} in 80 % of cases)."
        + (f" {usd(wasted)}, {percent(float(wasted / spent))}, bought nothing." if wasted else "")
    )


def pace_words(raw: Any, now: Any) -> str:
    per_hour, accounts, n_unpriced = raw
    start = now.replace(day=1, hour=0, minute=0, second=0)
    end = (start + timedelta(days=32)).replace(day=1)
    even = accounts[1] / Decimal(str((end - start).total_seconds())) * 3600
    gone = gone_at(spent_of=accounts, per_hour=per_hour, now=now, end=end)
    words = f"The last 30 min cost {pace(per_hour)} an hour against a budget pace of {pace(even)}"
    if gone:
        words += f". If that went on, the budget would be gone on {day(gone, now)} at {gone:%H:%M}"
    return f"{words}." + (f" {plural(n_unpriced, 'call')} unpriced, in no sum." if n_unpriced else "")


def said(rows: Days, waste: Days, accounts: Rows, per_hour: Decimal) -> Rows:
    n_unpriced = sum(row["n_unpriced"] for row in rows)
    return {
        "": {"first": (total(rows), total(waste), whole(accounts)), "pace": (per_hour, whole(accounts), n_unpriced)}
    }


# --- groups, accounts, prices ----------------------------------------------------------------------------------------


def groups(rows: Days) -> Rows:
    """Return the twelve largest groups of paid calls."""
    names = ("network", "method", "tier", "kind", "cause", "upstream")
    rows = sorted(
        rows, key=lambda row: (row["usd"] is None, -(row["usd"] or 0), -row["n"], *(row[name] for name in names))
    )
    return by(
        [{**row, "cause": row["cause"] or row["kind"]} for row in rows[:12]],
        "network method cause upstream",
        {
            "Calls": "n",
            "Cost": "usd",
            "Of no use": lambda r: (r["n"], r["n_wasted"], r["n_empty"]),
            "One of them": "example_request_id",
        },
    )


def groups_by_api(full: Full) -> Rows:
    rows = full.asked("paid_groups", from_=full.midnight, to=full.to, limit=1000)
    return groups([{**row, "usd": amount(row["usd"])} for row in rows])


def groups_by_sql(full: Full) -> Rows:
    return groups(
        full.sql(
            "SELECT network, method, tier, kind, cause, upstream, count() AS n, countIf(is_wasted) AS n_wasted,"
            " countIf(is_empty) AS n_empty, sum(a.usd) AS usd, argMax(request_id, at) AS example_request_id"
            " FROM gnomon.attempts AS a WHERE vendor != '' AND at >= toStartOfDay({to:DateTime64(3)})"
            " AND at < {to:DateTime64(3)} GROUP BY network, method, tier, kind, cause, upstream"
        )
    )


def useless(raw: Any) -> str:
    n, n_wasted, n_empty = raw
    if n_wasted:
        return f"{percent(n_wasted / n)} wasted"
    return f"{percent(n_empty / n)} empty" if n_empty else "none"


def accounts(found: Rows) -> Rows:
    top = max(max(float(row["budget"]), row["forecast_high"]) for row in found.values()) * 1.1
    shown = {
        name: {
            "bar": (name, top, tuple(row.values())),
            "So far": row["spent"],
            "Forecast": row["forecast"],
            "Budget": row["budget"],
        }
        for name, row in found.items()
    }
    return {**shown, "": {"top": top}}


def bar(raw: Any) -> Markup:
    name, top, (spent, budget, forecast, low, high) = raw
    label = f"{name}: {usd(spent)} so far, forecast {usd(Decimal(repr(forecast)))}"
    return drawing.bullet(
        float(spent), top, label, budget=float(budget), forecast=drawing.Forecast(forecast, low, high)
    )


def priced(rows: Days) -> Rows:
    found = {
        row["account"] or row["vendor"]: (row["usd_per_million_units"], row["n"], row["n_estimates"]) for row in rows
    }
    return {"": {**found, "Unpriced": sum(row["n_unpriced"] for row in rows)}}


def price_words(raw: Any) -> Markup:
    per_million, n, n_estimates = raw
    first = "unpriced" if per_million is None else Markup("{} per 1 M units").format(price(Decimal(repr(per_million))))
    estimated = Markup(" · {} of them by an estimate").format(percent(n_estimates / n)) if n_estimates else ""
    return Markup("{} · {} calls{}").format(first, count(n), estimated)


PRICES = (
    "SELECT vendor, account, count() AS n, countIf(isNull(usd)) AS n_unpriced, countIf(is_estimate AND usd IS NOT NULL)"
    " AS n_estimates, round(sum(toFloat64(usd)) / nullIf(sumIf(toFloat64(units), usd IS NOT NULL), 0) * 1e6, 6)"
    f" AS usd_per_million_units FROM gnomon.attempts WHERE vendor != '' AND {THIS_MONTH} GROUP BY vendor, account"
)


SPEND = [
    Entry(
        name="spend, first sentence",
        address=at("/spend"),
        panel="lead",
        read=parts(first=lambda part: part.all("p")[0], pace=lambda part: part.all("p")[1]),
        shown={"first": Timed(first_words), "pace": Timed(pace_words)},
        api=lambda full: said(days_by_api(full), waste_by_api(full), budgets_by_api(full), pace_by_api(full)),
        sql=lambda full: said(days_by_sql(full), waste_by_sql(full), budgets_by_sql(full), pace_by_sql(full)),
        near={"first": 1e-3, "pace": 1e-3},
    ),
    Entry(
        name="month",
        address=at("/spend"),
        panel="month",
        read=parts(wide=lambda part: part.one("div", "only-wide"), narrow=lambda part: part.one("div", "only-phone")),
        shown={
            "wide": Timed(lambda raw, now: drawn(raw, now, width=760)),
            "narrow": Timed(lambda raw, now: drawn(raw, now, width=342, height=240)),
        },
        api=lambda full: month(full, days_by_api(full), budgets_by_api(full), pace_by_api(full)),
        sql=lambda full: month(full, days_by_sql(full), budgets_by_sql(full), pace_by_sql(full)),
        near={"wide": 1e-3, "narrow": 1e-3},
    ),
    Entry(
        name="causes",
        address=at("/spend"),
        panel="causes",
        read=table(names={1: "Days"}),
        shown={
            "Days": cause_bars,
            "Spent": lambda raw: usd(raw) or "unpriced",
            "Share": percent,
            "Calls": count,
            "Wasted": lambda raw: usd(raw[1]) if raw[0] or raw[1] else "none",
            "What drives it": driver,
        },
        api=lambda full: causes(full, days_by_api(full), waste_by_api(full)),
        sql=lambda full: causes(full, days_by_sql(full), waste_by_sql(full)),
    ),
    Entry(
        name="causes, scale",
        address=at("/spend"),
        panel="causes",
        read=parts(top=lambda part: part.all("th")[1]),
        shown={"top": lambda raw: Markup("USD a day, to {}").format(usd(Decimal(repr(raw))))},
        api=lambda full: {"": {"top": scale(days_by_api(full), full.now.day)}},
        sql=lambda full: {"": {"top": scale(days_by_sql(full), full.now.day)}},
    ),
    Entry(
        name="causes, sums",
        address=at("/spend"),
        panel="causes",
        read=foot,
        shown={"Spent": usd, "Calls": count, "Wasted": usd, "Unpriced": lambda raw: f"{plural(raw, 'call')} unpriced"},
        api=lambda full: sums(days_by_api(full), waste_by_api(full)),
        sql=lambda full: sums(days_by_sql(full), waste_by_sql(full)),
    ),
    Entry(
        name="groups",
        address=at("/spend"),
        panel="groups",
        read=table(key=("Network", "Method", "Cause", "Upstream")),
        shown={
            "Calls": exact,
            "Cost": lambda raw: usd(raw) or "unpriced",
            "Of no use": useless,
            "One of them": lambda raw: raw[:13] or "our own call",
        },
        api=groups_by_api,
        sql=groups_by_sql,
    ),
    Entry(
        name="groups, since",
        address=at("/spend"),
        panel="groups",
        read=note,
        shown={"note": Timed(lambda raw, now: f"since {moment(raw, now)}")},
        api=lambda full: {"": {"note": full.now.replace(hour=0, minute=0, second=0)}},
        sql=lambda full: {"": {"note": full.sql("SELECT toStartOfDay({to:DateTime64(3)}) AS at")[0]["at"]}},
    ),
    Entry(
        name="accounts",
        address=at("/spend"),
        panel="accounts",
        read=table(names={1: "bar"}),
        shown={"bar": bar, "So far": usd, "Forecast": lambda raw: usd(Decimal(repr(raw))), "Budget": usd},
        api=lambda full: accounts(budgets_by_api(full)),
        sql=lambda full: accounts(budgets_by_sql(full)),
        near={"bar": 1e-3, "Forecast": 1e-3},
    ),
    Entry(
        name="accounts, scale",
        address=at("/spend"),
        panel="accounts",
        read=parts(top=lambda part: part.all("th")[1]),
        shown={"top": lambda raw: Markup("To {}").format(usd(Decimal(repr(round(raw, 6)))))},
        api=lambda full: {"": accounts(budgets_by_api(full))[""]},
        sql=lambda full: {"": accounts(budgets_by_sql(full))[""]},
        near={"top": 1e-3},
    ),
    Entry(
        name="prices",
        address=at("/spend"),
        panel="prices",
        read=facts,
        shown={
            **dict.fromkeys(("alchemy", "infura", "chainstack", "nobody"), price_words),
            "Unpriced": lambda raw: Markup("{} {}").format(exact(raw), "call" if raw == 1 else "calls"),
        },
        api=lambda full: priced(full.asked("prices_in_effect", from_=full.month, to=full.to)),
        sql=lambda full: priced(full.sql(PRICES)),
    ),
]
