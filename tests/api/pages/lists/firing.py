"""The firing alerts of Overview, each with its evidence."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.pages.charts import sparks
from api.pages.figures import (
    percent,
)
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, when
from tests.api.pages.listed import usd as money
from tests.api.pages.lists.series import (
    FAILED,
    HOURS,
    LIMIT_BLOCKS,
    STEP,
    N,
    Series,
    lags_by_api,
    lags_by_sql,
    last_of,
    open_by_api,
    open_by_sql,
    start_of,
)
from tests.api.pages.reading import Node

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
