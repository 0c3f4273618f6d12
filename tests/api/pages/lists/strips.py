"""What changed, on one clock: the strips of Overview."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.pages.address import span, ticks
from api.pages.charts import strips
from api.pages.figures import (
    count,
    duration,
    moment,
    number,
    pace,
    percent,
    rate,
    wilson,
)
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, when
from tests.api.pages.listed import usd as money
from tests.api.pages.lists.firing import (
    FIRING,
    state_bars,
)
from tests.api.pages.lists.series import (
    HOURS,
    JUDGED,
    LIMIT_BLOCKS,
    SERVED,
    STEP,
    N,
    Series,
    budgets_by_api,
    budgets_by_sql,
    lags_by_api,
    lags_by_sql,
    last_of,
    open_by_api,
    open_by_sql,
    start_of,
)
from tests.api.pages.lists.tiles import (
    head_by_api,
    head_by_sql,
)
from tests.api.pages.reading import Node

SLOW = 300
"""Seconds of a step of the mismatch's strip."""


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
