"""The numbers of Overview."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.pages.address import span, ticks
from api.pages.charts import sparks, strips
from api.pages.figures import (
    Figure,
    between,
    count,
    day,
    duration,
    exact,
    micros,
    moment,
    number,
    pace,
    percent,
    plural,
    rate,
    shown_path,
    usd,
    wilson,
)
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, Shown, Timed, at, by, joined, parts, table, when
from tests.api.pages.listed import usd as money
from tests.api.pages.lists.series import (
    FAILED,
    FOR_CLIENTS,
    JUDGED,
    WEEK,
    WILSON,
    Series,
    budgets_by_api,
    budgets_by_sql,
    hours_by_api,
    hours_by_sql,
    lags_by_api,
    lags_by_sql,
    last_of,
    open_by_api,
    open_by_sql,
    start_of,
)
from tests.api.pages.reading import Node

HOURS = 3 * 3600
STEP, N = 60, 180
SLOW = 300
"""Seconds of a step of the mismatch's strip."""
LIMIT_BLOCKS = 5
NOW = "at >= {to:DateTime64(3)} - INTERVAL 5 MINUTE AND at < {to:DateTime64(3)}"
CALLS = f"""
SELECT upstream AS row, count() AS "Calls", countIf({FAILED}) / count() AS "Errors",
    toUInt32(quantileExactIf(0.99)(duration_us, outcome != 'cancelled')) / 1000 AS "p99 ms"
FROM gnomon.attempts WHERE {FOR_CLIENTS} AND {NOW}
GROUP BY upstream
"""
SERVED = "outcome NOT IN ('invalid', 'rejected', 'cancelled')"


# --- who serves ------------------------------------------------------------------------------------------------------


def _shares(calls: Rows, full: Full) -> Rows:
    """Return each one's part of its network's calls, shadows left out; None: a shadow."""
    tier, network = full.tiers, full.networks
    found: Rows = {}
    for name in full.upstreams:
        total = sum(
            row["Calls"] for key, row in calls.items() if network.get(key) == network[name] and tier[key] != "shadow"
        )
        share = calls.get(name, {"Calls": 0})["Calls"] / total if total else None
        found[name] = {"Share": "mirror" if tier[name] == "shadow" else share}
    return found


def _lags(series: dict[str, Series]) -> Rows:
    return {name.partition(" | ")[2]: {"Lag, blk": last_of(values)} for name, values in series.items()}


def serving_by_api(full: Full) -> Rows:
    rows = full.asked("upstream_health", from_="now-5m", to=full.to)
    calls = by(
        rows,
        "upstream",
        {"Calls": "n", "Errors": lambda r: r["n_failed"] / r["n"], "p99 ms": lambda r: r["p99_us"] / 1000},
    )
    spend = full.asked("spend_by_upstream", from_=full.midnight, to=full.to)
    paid = by([row for row in spend if row["vendor"]], "upstream", {"Today": lambda r: money(r["usd"])})
    return _serving(full, calls, _lags(lags_by_api(full, HOURS, STEP)), paid)


def serving_by_sql(full: Full) -> Rows:
    paid = full.rows(
        "SELECT upstream AS row, sum(usd) AS \"Today\" FROM gnomon.attempts WHERE vendor != ''"
        " AND at >= toStartOfDay({to:DateTime64(3)}) AND at < {to:DateTime64(3)} GROUP BY upstream"
    )
    return _serving(full, full.rows(CALLS), _lags(lags_by_sql(full, HOURS, STEP)), paid)


def _serving(full: Full, calls: Rows, lags: Rows, paid: Rows) -> Rows:
    always = {"Calls": 0, "Errors": None, "p99 ms": None, "Lag, blk": None, "Today": Decimal(0)}
    found = joined(_shares(calls, full), calls, lags, paid, always=always, keys=full.upstreams)
    for name, row in found.items():
        if not full.vendors[name]:
            row["Today"] = "own"
    return found


def blocks(lag: int | None) -> object:
    """Return a lag as tables show it."""
    return "unknown" if lag is None else exact(lag)


def or_word(shown: Any) -> Any:
    """Return how a number is shown in whose place a word may stand."""
    return lambda value: value if isinstance(value, str) else shown(value)


# --- tiles and the first sentence ------------------------------------------------------------------------------------


def tiles(panel: Node) -> Cells:
    """Return the tiles by what they count."""
    return {"": {one.one("span", "l").text.partition(",")[0]: one for one in panel.all("a", "kpi")}}


def tile(label: str, value: object, unit: str, below: str) -> Markup:
    """Return a tile's words, one behind the other."""
    small = Markup("<i> {}</i>").format(unit) if unit else ""
    return Markup("{}{}{}{}").format(label, value, small, below)


def errors(served: Any) -> str:
    """Return how many of some requests failed, as a sentence has it."""
    n, n_failed, _ = served
    if n < 100:
        return f"{n_failed:,} of {plural(n, 'request')} failed"
    return f"{percent(n_failed / n)} errors" if n_failed else "no error"


def served_by_api(full: Full) -> tuple[int, int, int]:
    (row,) = full.asked("service_over_time", from_="now-5m", to=full.to, step=300)
    return row["n"], row["n_failed"], row["p99_us"]


def served_by_sql(full: Full) -> tuple[int, int, int]:
    (row,) = full.sql(
        "SELECT count() AS n,"
        " countIf(outcome = 'error') AS n_failed, toUInt32(quantileTDigest(0.99)(duration_us)) AS p99"
        f" FROM gnomon.requests WHERE {SERVED} AND {NOW}"
    )
    return row["n"], row["n_failed"], row["p99"]


def mismatches_by_sql(full: Full) -> list[dict[str, Any]]:
    return full.sql(
        WILSON + f"SELECT shadow_upstream, countIf(outcome = 'mismatch') AS mismatch, count() AS n_judged,"
        f" low(mismatch, n_judged) AS mismatch_low, high(mismatch, n_judged) AS mismatch_high FROM gnomon.comparisons"
        f" WHERE finality = 'finalized' AND {JUDGED} AND {WEEK} GROUP BY shadow_upstream"
    )


def worst_shadow(rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Return the shadow that surely differs most, controls left out: name, differing, compared, interval."""
    judged = [row for row in rows if row["n_judged"] and row["shadow_upstream"] != "control"]
    worst = max(judged, key=lambda row: (row["mismatch_low"], row["n_judged"]))
    names = ("shadow_upstream", "mismatch", "n_judged", "mismatch_low", "mismatch_high")
    return tuple(worst[name] for name in names)


def paid_by_api(full: Full) -> tuple[Decimal, float | None, int]:
    (row,) = full.asked("paid_today", to=full.to)
    return money(row["usd"]) or Decimal(0), row["usd_usual"], row["n_unpriced"]


def paid_by_sql(full: Full) -> tuple[Decimal, float | None, int]:
    rows = full.sql(
        "SELECT toDate(at) = toDate({to:DateTime64(3)}) AS is_today, dateDiff('day', at, {to:DateTime64(3)}) AS ago,"
        " sum(usd) AS paid, countIf(isNull(usd)) AS n_unpriced FROM gnomon.attempts WHERE vendor != ''"
        " AND at < {to:DateTime64(3)}"
        " AND (is_today OR toHour(at) < toHour({to:DateTime64(3)})) GROUP BY is_today, ago"
    )
    today = [row for row in rows if row["is_today"]]
    before = [row for row in rows if not row["is_today"] and row["ago"] <= 14]
    n_days = max((row["ago"] for row in before), default=0)
    usual = round(float(sum((row["paid"] or Decimal(0) for row in before), Decimal(0))) / n_days, 9) if n_days else None
    return (
        sum((row["paid"] or Decimal(0) for row in today), Decimal(0)),
        usual,
        sum(row["n_unpriced"] for row in today),
    )


def _month(accounts: Rows) -> tuple[Any, ...]:
    names = ("spent", "budget", "forecast", "forecast_low", "forecast_high")
    sums = {name: sum((Decimal(str(row[name])) for row in accounts.values()), Decimal(0)) for name in names}
    return tuple(sums.values())


def _head(series: dict[str, Series], seconds: dict[str, float], full: Full) -> tuple[Any, ...]:
    """Return the primary that is most behind: name, network, blocks, seconds; and who is unknown."""
    mine = {
        name: last_of(values)
        for name, values in series.items()
        if full.tiers.get(name.partition(" | ")[2]) == "primary"
    }
    network, _, worst = max((n for n in mine if mine[n] is not None), key=lambda n: mine[n] or 0).partition(" | ")
    behind = mine[f"{network} | {worst}"] or 0
    return worst, network, behind, behind * seconds[network], [n.partition(" | ")[2] for n in mine if mine[n] is None]


def head_by_api(full: Full) -> tuple[Any, ...]:
    rows = full.asked("head_lag_in_steps", from_=start_of(full, HOURS), to=full.to, step=STEP)
    return _head(lags_by_api(full, HOURS, STEP), {row["network"]: row["block_seconds"] for row in rows}, full)


def head_by_sql(full: Full) -> tuple[Any, ...]:
    return _head(lags_by_sql(full, HOURS, STEP), BLOCK_SECONDS, full)


BLOCK_SECONDS = {"evm:1": 12.0, "evm:8453": 2.0}
"""As the protocols of the two have it."""


def data_by_api(full: Full) -> tuple[Any, ...]:
    (stages,) = full.asked("stages")
    hours = [row for row in hours_by_api(full, 3) if row["hour"].year > 1970]
    return when(stages["last_stored_at"]), *_lost(hours), stages["n_dropped"], stages["n_dead"]


def data_by_sql(full: Full) -> tuple[Any, ...]:
    (row,) = full.sql(
        "SELECT (SELECT max(at) FROM gnomon.progress) AS at, (SELECT sum(dropped) FROM gnomon.progress) AS n_dropped,"
        " (SELECT count() FROM gnomon.dead_letters) AS n_dead"
    )
    hours = [hour for hour in hours_by_sql(full, 3) if hour["hour"].year > 1970]
    return row["at"], *_lost(hours), row["n_dropped"], row["n_dead"]


def _lost(hours: list[dict[str, Any]]) -> tuple[int, int]:
    lost = sum(max(row["shipped"] - row["stored"] - row["dead_lettered"], 0) for row in hours[:-1])
    return lost, sum(row["stored"] - row["distinct_stored"] for row in hours)


TILES: dict[str, Shown | Timed] = {
    "Requests": lambda raw: tile("Requests", number(raw[0] / 300), "a second", f"{errors(raw)} · p99 {micros(raw[2])}"),
    "Mismatch on final data": lambda raw: tile(
        f"Mismatch on final data, {raw[0]}",
        percent(raw[1] / raw[2]),
        "",
        f"{between(raw[3], raw[4])} · n {count(raw[2])}",
    ),
    "Paid today": lambda raw: tile(
        "Paid today, since 00:00",
        usd(raw[0]),
        "",
        (f"{plural(raw[2], 'call')} unpriced · " if raw[2] else "")
        + (f"usually {usd(Decimal(repr(raw[1])))} by now" if raw[1] is not None else "no day before to compare"),
    ),
    "Month": lambda raw: tile(
        "Month, forecast",
        usd(raw[2]),
        f"of {usd(raw[1])}",
        f"{usd(raw[0])} so far · 80 %: {usd(raw[3])} to {usd(raw[4])}",
    ),
    "Worst primary head": lambda raw: tile(
        "Worst primary head",
        Figure(plural(raw[2], "block"), str(raw[2])),
        str(duration(raw[3])),
        f"{raw[0]}, {raw[1]} · {' and '.join(raw[4])} unknown",
    ),
    "Data": Timed(
        lambda raw, now: tile(
            "Data",
            duration(age_of(raw[0], now)),
            "behind",
            f"{raw[1] + raw[3]:,} lost, {raw[2]:,} doubled, {plural(raw[4], 'dead letter')}",
        )
    ),
}


def age_of(stored_at: datetime, now: datetime) -> float:
    return max((now - stored_at).total_seconds(), 0.0)


def first_words(raw: Any, now: datetime) -> str:
    """Return the first sentence of: when each alert fired, and how clients were served."""
    fired, served = raw
    oldest = min(fired)
    age = duration((now - oldest).total_seconds())
    return (
        f"{plural(len(fired), 'alert')} firing, the oldest since {moment(oldest, now)} ({age})."
        f" Clients: {errors(served)}, p99 {micros(served[2])}."
    )


# --- alerts ----------------------------------------------------------------------------------------------------------

FIRING = """
SELECT concat(rule, ' ', subject) AS row, argMax(value, at) AS value, argMax(threshold, at) AS threshold,
    max(at) AS fired_at
FROM gnomon.alerts GROUP BY rule, subject HAVING argMax(state, at) = 'firing'
"""
RULES = {
    "Breaker of op-1": "BreakerFlapping evm:8453/op-1",
    "Spend by cause": "FallbackSpend alchemy",
    "Head of op-2": "HeadLag evm:8453/op-2",
}
"""What stands on the button of an alert → rule and subject."""
WORDS = {
    "BreakerFlapping evm:8453/op-1": "Breaker of op-1 opened {0:.0f} timesevm:8453 · limit {1:.0f} in 10 min",
    "FallbackSpend alchemy": "Paid fallbacks cost ${0:,.2f} in 10 minalchemy · limit ${1:,.2f}",
    "HeadLag evm:8453/op-2": "Head of op-2 lags {0:.0f} blocksevm:8453 · limit {1:.0f} blocks",
}


def alerts(panel: Node) -> Cells:
    """Return the firing alerts, by what their button says."""
    return {
        RULES[one.one("a", "btn").text]: {
            name: one.one("div", css)
            for name, css in (("what", "what"), ("since", "since"), ("trend", "sp"), ("evidence", "ev"))
        }
        for one in panel.all("li")
    }


def alerts_by_api(full: Full) -> Rows:
    firing = {f"{row['rule']} {row['subject']}": row for row in full.get("/v1/alerts/firing")["items"]}
    steps = full.asked("spend_in_steps", from_=start_of(full, HOURS), to=full.to, step=STEP)
    causes = full.asked("spend_by_cause", from_=start_of(full, HOURS), to=full.to)
    misses = next(
        row["misses"]
        for row in full.asked("breakers", from_=start_of(full, HOURS), to=full.to)
        if row["upstream"] == "op-1"
    )
    return _alerts(
        {key: (row["value"], row["threshold"], when(row["fired_at"])) for key, row in firing.items()},
        {row["step"]: money(row["usd"]) for row in steps},
        [(row["cause"], money(row["usd"])) for row in causes if row["cause"]],
        misses,
        open_by_api(full, HOURS),
        lags_by_api(full, HOURS, STEP),
    )


def alerts_by_sql(full: Full) -> Rows:
    within = "at >= {to:DateTime64(3)} - INTERVAL 3 HOUR AND at < {to:DateTime64(3)}"
    steps = full.sql(
        "SELECT intDiv(dateDiff('second', {to:DateTime64(3)} - INTERVAL 3 HOUR, at), 60) AS step, sum(usd) AS usd"
        f" FROM gnomon.attempts WHERE vendor != '' AND {within} GROUP BY step"
    )
    causes = full.sql(
        "SELECT cause, sum(usd) AS usd FROM gnomon.attempts WHERE vendor != '' AND cause != ''"
        " AND at >= toStartOfHour({to:DateTime64(3)} - INTERVAL 3 HOUR) AND at < {to:DateTime64(3)} GROUP BY cause"
    )
    misses = full.sql(
        f"SELECT error_class, count() AS n FROM gnomon.attempts WHERE {FAILED} AND upstream = 'op-1' AND {within}"
        " AND kind IN ('client', 'retry', 'hedge', 'probe') AND error_class != '' GROUP BY error_class"
    )
    return _alerts(
        {key: (row["value"], row["threshold"], row["fired_at"]) for key, row in full.rows(FIRING).items()},
        {row["step"]: row["usd"] for row in steps},
        [(row["cause"], row["usd"]) for row in causes],
        {row["error_class"]: row["n"] for row in misses},
        open_by_sql(full, HOURS),
        lags_by_sql(full, HOURS, STEP),
    )


def _alerts(
    firing: dict[str, Any],
    spend: dict[int, Any],
    causes: list[tuple[str, Any]],
    misses: dict[str, int],
    opened: dict[str, Any],
    lags: dict[str, Series],
) -> Rows:
    found: Rows = {key: {"what": (key, *raw[:2]), "since": raw[2]} for key, raw in firing.items()}
    by_cause: dict[str, Decimal] = {}
    for cause, amount in causes:
        by_cause[cause] = by_cause.get(cause, Decimal(0)) + (amount or Decimal(0))
    total = sum(by_cause.values())
    shares = sorted(((cause, float(part / total)) for cause, part in by_cause.items()), key=lambda one: -one[1])[:2]
    at_head = sorted(
        key.partition(" | ")[2] for key, one in lags.items() if key.startswith("evm:8453") and last_of(one) == 0
    )
    found["HeadLag evm:8453/op-2"] |= {
        "trend": ("lag of op-2 in blocks", "ln", lags["evm:8453 | op-2"], LIMIT_BLOCKS),
        "evidence": at_head,
    }
    found["FallbackSpend alchemy"] |= {
        "trend": ("spend in the range", "ln-bad", [float(spend.get(step) or 0) for step in range(N)], None),
        "evidence": shares,
    }
    found["BreakerFlapping evm:8453/op-1"] |= {
        "trend": opened["evm:8453 | op-1"],
        "evidence": sorted(misses.items(), key=lambda one: -one[1])[:2],
    }
    return found


def state_bars(spans: Any, now: datetime, seconds: int = HOURS) -> list[sparks.Span]:
    """Return states in time on a scale from 0 to 1, with the words of hovering."""
    start = now - timedelta(seconds=seconds)
    return [
        sparks.Span(
            (first - start) / (now - start),
            (last - start) / (now - start),
            "open" if state == "open" else "half",
            f"{state} from {first:%H:%M:%S} to {last:%H:%M:%S} UTC",
        )
        for state, first, last in spans
    ]


def trend(raw: Any, now: datetime) -> Markup:
    if raw and raw[0][0] in ("open", "half_open"):
        return sparks.spans(state_bars(raw, now), "breaker of op-1 over the range", width=110, height=22)
    label, css, values, limit = raw
    return sparks.spark(values, label, css_class=css, limit=limit)


def evidence(raw: Any) -> Markup:
    if isinstance(raw[0], str):
        agree = "agrees" if len(raw) == 1 else "agree"
        some = (
            f"{', '.join(raw[:2])} and {len(raw) - 2} more"
            if len(raw) > 3
            else " and ".join([*([", ".join(raw[:-1])] if len(raw) > 1 else []), raw[-1]])
        )
        return Markup("{} {}{}").format(some, agree, "peers at the head")
    if isinstance(raw[0][1], float):
        return Markup("{}{}").format(
            ", ".join(f"{cause} {percent(part)}" for cause, part in raw), "cause of paid calls, last 3 h"
        )
    return Markup("{}{}").format(", ".join(f"{n:,} × {reason}" for reason, n in raw), "misses of op-1, last 3 h")


# --- strips ----------------------------------------------------------------------------------------------------------


def strips_by_api(full: Full) -> Rows:
    span_of = {"from_": start_of(full, HOURS), "to": full.to}
    served = {row["step"]: row for row in full.asked("service_over_time", step=STEP, **span_of)}
    spend = {row["step"]: money(row["usd"]) for row in full.asked("spend_in_steps", step=STEP, **span_of)}
    pairs = full.asked("divergence_in_steps", step=SLOW, **span_of)
    openings = [
        (when(r["at"]), r["upstream"]) for r in full.asked("breaker_history", **span_of) if r["to_state"] == "open"
    ]
    fired = [when(row["fired_at"]) for row in full.get("/v1/alerts/firing")["items"]]
    head = head_by_api(full)
    return _strips(
        full,
        served,
        spend,
        lags_by_api(full, HOURS, STEP),
        head,
        open_by_api(full, HOURS),
        pairs,
        budgets_by_api(full),
        openings,
        fired,
    )


def strips_by_sql(full: Full) -> Rows:
    within = "at >= {to:DateTime64(3)} - INTERVAL 3 HOUR AND at < {to:DateTime64(3)}"
    step = "intDiv(dateDiff('second', {to:DateTime64(3)} - INTERVAL 3 HOUR, at), 60) AS step"
    served = full.sql(
        f"SELECT {step}, count() AS n, countIf(outcome = 'error') AS n_failed, countIf(tier = 'fallback') AS n_paid,"
        " toUInt32(quantileTDigest(0.99)(duration_us)) AS p99_us"
        f" FROM gnomon.requests WHERE {SERVED} AND {within} GROUP BY step"
    )
    spend = full.sql(
        f"SELECT {step}, sum(usd) AS usd FROM gnomon.attempts WHERE vendor != '' AND {within} GROUP BY step"
    )
    minute = "toStartOfMinute({to:DateTime64(3)} - INTERVAL 3 HOUR)"
    pairs = full.sql(
        f"SELECT intDiv(dateDiff('second', {minute}, toStartOfMinute(at)), {SLOW}) AS step, network, shadow_upstream,"
        " count() AS n, countIf(outcome = 'mismatch') AS mismatch FROM gnomon.comparisons"
        f" WHERE finality = 'finalized' AND {JUDGED} AND at >= {minute} AND at < {{to:DateTime64(3)}}"
        " GROUP BY step, network, shadow_upstream"
    )
    openings = full.sql(f"SELECT at, upstream FROM gnomon.breaker_transitions WHERE to_state = 'open' AND {within}")
    return _strips(
        full,
        {row["step"]: row for row in served},
        {row["step"]: row["usd"] for row in spend},
        lags_by_sql(full, HOURS, STEP),
        head_by_sql(full),
        open_by_sql(full, HOURS),
        pairs,
        budgets_by_sql(full),
        [(row["at"], row["upstream"]) for row in openings],
        [row["fired_at"] for row in full.rows(FIRING).values()],
    )


def _strips(
    full: Full,
    served: dict[int, Any],
    spend: dict[int, Any],
    lags: dict[str, Series],
    head: Any,
    opened: dict[str, Any],
    pairs: list[dict[str, Any]],
    accounts: Rows,
    openings: list[tuple[Any, str]],
    fired: list[Any],
) -> Rows:
    sums: dict[str, list[int]] = {}
    for row in pairs:
        if row["shadow_upstream"] != "control":
            one = sums.setdefault(row["shadow_upstream"], [0, 0])
            one[0] += row["mismatch"]
            one[1] += row["n"]
    worst = max(sums, key=lambda name: (wilson(*sums[name]).low, sums[name][1]))
    rates: Series = [None] * (HOURS // SLOW)
    for row in pairs:
        if row["shadow_upstream"] == worst and row["step"] < len(rates):
            rates[row["step"]] = row["mismatch"] / row["n"] * 100
    month = full.now.replace(day=1, hour=0, minute=0, second=0)
    hours = ((month + timedelta(days=32)).replace(day=1) - month).total_seconds() / 3600
    began, words = min(fired), ""
    for moment_of, upstream in sorted(openings, reverse=True):
        if moment_of < began and began - moment_of < timedelta(minutes=30):
            began, words = moment_of, f"{upstream} opens"
    longest = max(opened, key=lambda key: sum((last - first).total_seconds() for _, first, last in opened[key]))
    n_open = sum(bool(spans) and spans[-1][2] == full.now for spans in opened.values())
    raw: dict[str, Any] = {
        "n": [(served.get(step) or {"n": 0})["n"] for step in range(N)],
        "n_paid": [(served.get(step) or {"n_paid": 0})["n_paid"] for step in range(N)],
        "failed": [served[step]["n_failed"] / served[step]["n"] if step in served else None for step in range(N)],
        "p99_us": [served[step]["p99_us"] if step in served else None for step in range(N)],
        "usd": [float(spend.get(step) or 0) for step in range(N)],
        "pace": sum(float(row["budget"]) for row in accounts.values()) / hours,
        "lag": (head[0], lags[f"{head[1]} | {head[0]}"], head[3]),
        "breaker": (longest.partition(" | ")[2], opened[longest], n_open),
        "mismatch": (worst, *sums[worst], rates),
        "incident": (began, words),
    }
    return {"": {"wide": tuple(raw.values()), "narrow": tuple(raw.values()), "note": len(raw["n"])}}


def drawn(raw: Any, now: datetime, *, width: int, is_narrow: bool) -> Markup:
    """Return the strips of these numbers."""
    n, n_paid, failed, p99, spent, even, lag, breaker, mismatch, (began, words) = raw
    asked = span("now-3h", "now", now)
    rates, paid = [one / STEP for one in n], [one / STEP for one in n_paid]
    shares = [None if one is None else one * 100 for one in failed]
    slow = [None if one is None else one / 1000 for one in p99]
    per_hour = [one * 3600 / STEP for one in spent]
    name, values, behind_seconds = lag
    opened_at, spans, n_open = breaker
    dollars = [str(pace(Decimal(repr(round(one, 9))))) for one in (before(per_hour), sorted(per_hour)[N // 2], even)]
    series = [
        strips.Strip(
            name="Requests",
            unit="per second, below: paid",
            values=rates,
            part=paid,
            last=str(number(rates[N - 2])),
            was=f"{number(paid[N - 2])} paid",
        ),
        strips.Strip(
            name="Errors to clients",
            unit="% of requests",
            values=shares,
            last=str(percent(before(shares) / 100)),
            was=f"peak {number(max(known(shares)), 2)}",
        ),
        strips.Strip(
            name="Client p99",
            unit="ms",
            values=slow,
            last=str(duration(before(slow) / 1000)),
            was=f"peak {number(max(known(slow)))}",
        ),
        strips.Strip(
            name="Paid spend",
            unit="USD per hour",
            values=per_hour,
            last=dollars[0],
            was=f"median {dollars[1]}",
            limit=even,
            limit_words=f"budget pace {dollars[2][1:]}",
            tone="bad" if before(per_hour) > even else "",
        ),
        strips.Strip(
            name="Head lag, blocks",
            unit=name,
            values=values,
            last=f"{last_of(values) or 0:,}",
            was=str(duration(behind_seconds)),
            limit=float(LIMIT_BLOCKS),
            limit_words=f"limit {LIMIT_BLOCKS}",
            tone="warn" if (last_of(values) or 0) > LIMIT_BLOCKS else "",
        ),
        strips.Strip(
            name="Breaker",
            unit=opened_at,
            spans=state_bars(spans, now),
            last=spans[-1][0],
            was=f"{5 - (n_open - 1)} others closed",
            tone="bad",
        ),
        strips.Strip(
            name="Mismatch, %",
            unit=f"final, {mismatch[0]}",
            values=mismatch[3],
            last=str(rate(mismatch[1], mismatch[2]).figure),
            was=f"n {count(mismatch[2])}",
        ),
    ]
    place = asked.place(began)
    clock = strips.Clock(ticks(asked, now), [(place, f"{moment(began, now)} {words}")], place)
    return strips.strips(series, clock, width=width, is_narrow=is_narrow)


SERIES: dict[str, Callable[[Any], list[Any]]] = {
    "Requests, per second, below: paid": lambda raw: [one / STEP for one in raw[0]],
    "Errors to clients, % of requests": lambda raw: [None if one is None else one * 100 for one in raw[2]],
    "Client p99, ms": lambda raw: [None if one is None else one / 1000 for one in raw[3]],
    "Paid spend, USD per hour": lambda raw: [one * 3600 / STEP for one in raw[4]],
    "Head lag, blocks, op-2": lambda raw: raw[6][1],
    "Mismatch, %, final, node-b": lambda raw: raw[8][3],
}
"""Heading of the table of the strips → its values; also the order of the drawing."""


def pointed(panel: Node) -> Cells:
    """Return the values that a drawing says under the pointer, by the quantity."""
    found = [one for one in panel.all("i") if "data-series" in one.attributes]
    return {"": {name: Node("i", {}, [one.attributes["data-series"]]) for name, one in zip(SERIES, found, strict=True)}}


def series(raw: Any) -> Rows:
    return {"": {name: tuple(values(raw)) for name, values in SERIES.items()}}


def step_by_step(full: Full, raw: Any) -> Rows:
    """Return each step with its values; a longer step stands at its beginning."""
    found: Rows = {}
    for step in range(N):
        begins = full.now - timedelta(seconds=HOURS - STEP * step)
        row: dict[str, Any] = {"At": begins}
        for name, values_of in SERIES.items():
            values = values_of(raw)
            each = N // len(values)
            row[name] = values[step // each] if step % each == 0 else None
        found[str(moment(begins, full.now))] = row
    return found


def known(values: Any) -> list[float]:
    return [value for value in values if value is not None]


def before(values: Any) -> float:
    """Return the newest known value before the last step, which is hardly over."""
    return next(float(value) for value in reversed(values[:-1]) if value is not None)


# --- differences, completeness ---------------------------------------------------------------------------------------

DIFFERENCES = f"""
SELECT concat(f.network, ' ', f.method, ' ', f.shadow_upstream, ' ', f.generic_path, ' ', f.class) AS row,
    count(DISTINCT f.request_id) AS n_pairs, min(f.at) AS first_at,
    arrayMap(ago -> countEqual(groupArray(intDiv(dateDiff('second', f.at, {{to:DateTime64(3)}}), 86400)), ago),
        [6, 5, 4, 3, 2, 1, 0]) AS days, any(m.n) AS n_judged
FROM gnomon.findings AS f
INNER JOIN gnomon.comparisons AS c ON c.request_id = f.request_id AND c.shadow_upstream = f.shadow_upstream
INNER JOIN (SELECT network, method, shadow_upstream, count() AS n FROM gnomon.comparisons
    WHERE finality = 'finalized' AND {JUDGED} AND {WEEK} GROUP BY network, method, shadow_upstream) AS m
    ON m.network = f.network AND m.method = f.method AND m.shadow_upstream = f.shadow_upstream
WHERE c.finality = 'finalized' AND c.outcome = 'mismatch'
    AND f.at >= {{to:DateTime64(3)}} - INTERVAL 7 DAY AND f.at < {{to:DateTime64(3)}}
GROUP BY row
"""


def _news(rows: list[dict[str, Any]]) -> Rows:
    """Return the four that a page shows: data loss first, then what grew most on the last day."""

    def order(row: dict[str, Any]) -> tuple[bool, float, int]:
        usual = sum(row["days"][:-1]) / 6
        return "empty_vs_data" not in row["row"], -(row["days"][-1] - usual) / max(usual, 1.0), -row["n_pairs"]

    found: Rows = {}
    for row in sorted(rows, key=order)[:4]:
        _, method, shadow, path, kind = row["row"].split(" ")
        key = f"{method}{shown_path(path)} | {kind} | {shadow}"
        found[key] = {"Pairs": (row["n_pairs"], row["n_judged"]), "Since": row["first_at"]}
    return found


def differences_by_api(full: Full) -> Rows:
    rows = full.asked("differences", from_=start_of(full, 7 * 86400), to=full.to)
    names = ("network", "method", "shadow_upstream", "generic_path", "class")
    return _news([{**r, "row": " ".join(r[n] for n in names), "first_at": when(r["first_at"])} for r in rows])


def differences(panel: Node) -> Cells:
    """Return the rows by method with path, kind and shadow."""
    columns = [th.text for th in panel.one("thead").all("th")]
    found: Cells = {}
    for cells in panel.rows():
        found[f"{cells[0].text} | {cells[2].text} | {cells[3].text}"] = dict(zip(columns, cells, strict=True))
    return found


def whole_hours(hours: list[dict[str, Any]]) -> Rows:
    """Return the last three hours with their counts."""
    names = {"Accepted": "accepted", "Shipped": "shipped", "Stored": "stored", "Distinct": "distinct_stored"}
    known_hours = [row for row in hours if row["hour"].year > 1970][-3:]
    return {
        f"{row['hour']:%H:%M}": {"Hour": row["hour"], **{title: row[name] for title, name in names.items()}}
        for row in known_hours
    }


OVERVIEW = [
    Entry(
        name="first sentence",
        address=at("/"),
        panel="lead",
        read=parts(lead=lambda part: part.one("p", "lead")),
        shown={"lead": Timed(first_words)},
        api=lambda full: {
            "": {"lead": ([when(r["fired_at"]) for r in full.get("/v1/alerts/firing")["items"]], served_by_api(full))}
        },
        sql=lambda full: {
            "": {
                "lead": (
                    [
                        row["fired_at"]
                        for row in sorted(full.rows(FIRING).values(), key=lambda row: row["fired_at"], reverse=True)
                    ],
                    served_by_sql(full),
                )
            }
        },
    ),
    Entry(
        name="alerts firing",
        address=at("/"),
        panel="alerts",
        read=alerts,
        shown={
            "what": lambda raw: WORDS[raw[0]].format(*raw[1:]),
            "since": Timed(
                lambda raw, now: Markup("<b>{}</b>{}").format(
                    moment(raw, now), str(duration((now - raw).total_seconds()))
                )
            ),
            "trend": Timed(trend),
            "evidence": evidence,
        },
        api=alerts_by_api,
        sql=alerts_by_sql,
    ),
    Entry(
        name="six numbers",
        address=at("/"),
        panel="tiles",
        read=tiles,
        shown=TILES,
        api=lambda full: {
            "": {
                "Requests": served_by_api(full),
                "Mismatch on final data": worst_shadow(
                    full.asked("divergence_by_shadow", from_=start_of(full, 7 * 86400), to=full.to)
                ),
                "Paid today": paid_by_api(full),
                "Month": _month(budgets_by_api(full)),
                "Worst primary head": head_by_api(full),
                "Data": data_by_api(full),
            }
        },
        sql=lambda full: {
            "": {
                "Requests": served_by_sql(full),
                "Mismatch on final data": worst_shadow(mismatches_by_sql(full)),
                "Paid today": paid_by_sql(full),
                "Month": _month(budgets_by_sql(full)),
                "Worst primary head": head_by_sql(full),
                "Data": data_by_sql(full),
            }
        },
        near={"Month": 1e-4},
    ),
    Entry(
        name="what changed",
        address=at("/"),
        panel="strips",
        read=parts(
            wide=lambda part: part.one("div", "only-wide"),
            narrow=lambda part: part.one("div", "only-phone"),
            note=lambda part: part.one("span", "note"),
        ),
        shown={
            "wide": Timed(lambda raw, now: drawn(raw, now, width=678, is_narrow=False)),
            "narrow": Timed(lambda raw, now: drawn(raw, now, width=342, is_narrow=True)),
            "note": lambda n_steps: f"last 3 h, UTC, by {duration(HOURS / n_steps)}",
        },
        api=strips_by_api,
        sql=strips_by_sql,
    ),
    Entry(
        name="what changed, under the pointer",
        address=at("/"),
        panel="strips",
        read=pointed,
        shown=dict.fromkeys(SERIES, lambda values: " ".join(str(number(one)) for one in values)),
        api=lambda full: series(strips_by_api(full)[""]["wide"]),
        sql=lambda full: series(strips_by_sql(full)[""]["wide"]),
    ),
    Entry(
        name="what changed, step by step",
        address=at("/"),
        panel="strips-table",
        read=table(),
        is_apart=True,
        shown={"At": Timed(moment), **dict.fromkeys(SERIES, number)},
        api=lambda full: step_by_step(full, strips_by_api(full)[""]["wide"]),
        sql=lambda full: step_by_step(full, strips_by_sql(full)[""]["wide"]),
    ),
    Entry(
        name="who serves",
        address=at("/"),
        panel="serving",
        read=table(),
        shown={
            "Share": or_word(percent),
            "Calls": count,
            "Errors": percent,
            "p99 ms": number,
            "Lag, blk": blocks,
            "Today": or_word(usd),
        },
        api=serving_by_api,
        sql=serving_by_sql,
    ),
    Entry(
        name="differences",
        address=at("/"),
        panel="differences",
        read=differences,
        shown={
            "Pairs": lambda raw: Markup("{} of {}").format(exact(raw[0]), count(raw[1])),
            "Since": Timed(lambda raw, now: day(raw, now)),
        },
        api=differences_by_api,
        sql=lambda full: _news(full.sql(DIFFERENCES)),
    ),
    Entry(
        name="how many differences",
        address=at("/"),
        panel="differences",
        read=parts(all=lambda part: part.one("span", "r")),
        shown={"all": lambda raw: f"All {raw}"},
        api=lambda full: {"": {"all": len(full.asked("differences", from_=start_of(full, 7 * 86400), to=full.to))}},
        sql=lambda full: {"": {"all": len(full.sql(DIFFERENCES))}},
    ),
    Entry(
        name="completeness",
        address=at("/"),
        panel="complete",
        read=table(),
        shown={"Hour": Timed(moment), **dict.fromkeys(("Accepted", "Shipped", "Stored", "Distinct"), exact)},
        api=lambda full: whole_hours(hours_by_api(full, 3)),
        sql=lambda full: whole_hours(hours_by_sql(full, 3)),
    ),
    Entry(
        name="alerts firing, in the side bar",
        address=at("/"),
        panel="nav",
        read=parts(n=lambda part: part.one("span", "n")),
        shown={"n": lambda raw: raw},
        api=lambda full: {"": {"n": len(full.get("/v1/alerts/firing")["items"])}},
        sql=lambda full: {"": {"n": len(full.rows(FIRING))}},
    ),
    Entry(
        name="how old the data is",
        address=at("/"),
        panel="nav",
        read=parts(
            age=lambda part: part.by_id("foot").one("a"),
            complete=lambda part: part.by_id("foot").all("span")[1],
            clock=lambda part: part.by_id("utc"),
        ),
        shown={
            "age": Timed(lambda raw, now: f"Data {duration(age_of(raw, now))} old"),
            "complete": Timed(lambda raw, now: f"Complete to {moment(raw, now)}"),
            "clock": lambda raw: f"{raw:%H:%M:%S}",
        },
        api=lambda full: {
            "": {"age": data_by_api(full)[0], "complete": _complete(full, hours_by_api(full, 6)), "clock": full.now}
        },
        sql=lambda full: {
            "": {
                "age": data_by_sql(full)[0],
                "complete": _complete(full, hours_by_sql(full, 6)),
                "clock": full.sql("SELECT {to:DateTime64(3)} AS now")[0]["now"],
            }
        },
    ),
]


def _complete(full: Full, hours: list[dict[str, Any]]) -> datetime | None:
    """Return the beginning of the running hour where all hours before it are whole."""
    names = ("accepted", "shipped", "stored", "distinct_stored")
    settled = [row for row in hours if row["hour"].year > 1970 and row["hour"] + timedelta(minutes=65) <= full.now]
    is_whole = all(len({row[name] for name in names}) == 1 for row in settled)
    return full.now.replace(minute=0, second=0) if is_whole else None
