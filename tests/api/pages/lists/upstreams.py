"""The numbers of Upstreams, and of the page of one."""

import math
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.pages.address import span, ticks
from api.pages.charts import heads as drawing
from api.pages.charts import sparks, svg
from api.pages.figures import Figure, block, count, duration, exact, micros, moment, percent, plural, usd
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Entry, Timed, at, by, facts, note, parts, table, when
from tests.api.pages.listed import usd as amount
from tests.api.pages.lists.divergence import interval, part_of
from tests.api.pages.lists.firing import (
    state_bars,
)
from tests.api.pages.lists.overview import (
    or_word,
)
from tests.api.pages.lists.series import (
    FAILED,
    FOR_CLIENTS,
    JUDGED,
    LIMIT_BLOCKS,
    WILSON,
    lags_by_api,
    lags_by_sql,
    last_of,
    open_by_api,
    open_by_sql,
    start_of,
)

DAY = 86400
WITHIN = "at >= {to:DateTime64(3)} - INTERVAL 24 HOUR AND at < {to:DateTime64(3)}"
HOURS = "at >= toStartOfHour({to:DateTime64(3)} - INTERVAL 24 HOUR) AND at < {to:DateTime64(3)}"
MINUTES = "at >= toStartOfMinute({to:DateTime64(3)} - INTERVAL 24 HOUR) AND at < {to:DateTime64(3)}"
STEP, N = 600, 144


# --- all of them -----------------------------------------------------------------------------------------------------


def cards_by_api(full: Full) -> dict[str, dict[str, Any]]:
    """Return of each upstream its calls, lag, money and verdicts of the last day, from its score card."""
    found = {}
    for card in full.get("/v1/upstreams", from_=start_of(full, DAY), to=full.to)["items"]:
        health = (
            card["health"][0]
            if card["health"]
            else {"n": 0, "n_failed": 0, "n_empty": 0, "p50_us": None, "p99_us": None}
        )
        head = next((row for row in card["heads"] if row["axis"] == "latest"), None)
        pairs = card["divergence"][0] if card["divergence"] else None
        paid = [Decimal(row["usd"]) for row in card["spend"] if row["usd"] is not None]
        found[card["upstream"]] = {
            **{
                name: health.get(name)
                for name in (
                    "n",
                    "n_failed",
                    "n_empty",
                    "p50_us",
                    "p99_us",
                    "failed_low",
                    "failed_high",
                    "empty_low",
                    "empty_high",
                )
            },
            "lag": head["lag_blocks"] if head else None,
            "number": head["number"] if head else None,
            "pairs": (pairs["mismatch"], pairs["n_judged"], pairs["mismatch_low"], pairs["mismatch_high"])
            if pairs
            else None,
            "usd": "own" if not card["vendor"] else sum(paid, Decimal(0)) if paid else "nothing priced",
            "breaker": (
                card["breaker"][0]["state"],
                when(card["breaker"][0]["state_at"]),
                card["breaker"][0]["n_opened"],
            )
            if card["breaker"]
            else None,
        }
    return found


def cards_by_sql(full: Full) -> dict[str, dict[str, Any]]:
    calls = full.rows(
        WILSON + f"SELECT upstream AS row, count() AS n, countIf({FAILED}) AS n_failed, countIf(is_empty) AS n_empty,"
        " toUInt32(quantileExactIf(0.5)(duration_us, outcome != 'cancelled')) AS p50_us,"
        " toUInt32(quantileExactIf(0.99)(duration_us, outcome != 'cancelled')) AS p99_us,"
        " low(n_failed, n) AS failed_low, high(n_failed, n) AS failed_high, low(n_empty, n) AS empty_low,"
        f" high(n_empty, n) AS empty_high FROM gnomon.attempts WHERE {FOR_CLIENTS} AND {WITHIN} GROUP BY upstream"
    )
    heads = full.rows(
        "SELECT upstream AS row, any(network) AS network, max(number) AS number FROM gnomon.heads WHERE axis = 'latest'"
        f" AND {WITHIN} GROUP BY upstream"
    )
    pairs = full.rows(
        WILSON + "SELECT shadow_upstream AS row, countIf(outcome = 'mismatch') AS k, count() AS n,"
        " low(k, n) AS lower, high(k, n) AS upper"
        f" FROM gnomon.comparisons WHERE finality = 'finalized' AND {JUDGED} AND {MINUTES} GROUP BY shadow_upstream"
    )
    money = full.rows(
        f"SELECT upstream AS row, any(vendor) AS seller, sum(usd) AS paid FROM gnomon.attempts"
        f" WHERE vendor != '' AND {HOURS} GROUP BY upstream"
    )
    called = full.sql(
        f"SELECT DISTINCT upstream FROM gnomon.attempts"
        f" WHERE kind IN ('client', 'retry', 'hedge', 'probe') AND {WITHIN} AND tier != 'shadow'"
    )
    changes = full.sql(
        f"SELECT upstream, to_state, at, {WITHIN} AS is_within FROM gnomon.breaker_transitions ORDER BY at"
    )
    found = {}
    for name in dict.fromkeys([*full.upstreams, *calls]):
        mine = [row for row in changes if row["upstream"] == name]
        head, two = heads.get(name), pairs.get(name)
        best = max((row["number"] for row in heads.values() if head and row["network"] == head["network"]), default=0)
        paid = money.get(name)
        is_own = not full.vendors.get(name, "nobody")
        found[name] = {
            **(
                calls.get(name)
                or {
                    "n": 0,
                    "n_failed": 0,
                    "n_empty": 0,
                    "p50_us": None,
                    "p99_us": None,
                    **dict.fromkeys(("failed_low", "failed_high", "empty_low", "empty_high")),
                }
            ),
            "lag": best - head["number"] if head else None,
            "number": head["number"] if head else None,
            "pairs": (two["k"], two["n"], two["lower"], two["upper"]) if two else None,
            "usd": "own" if is_own else paid["paid"] if paid and paid["paid"] is not None else "nothing priced",
            "breaker": (
                mine[-1]["to_state"],
                mine[-1]["at"],
                sum(r["to_state"] == "open" and r["is_within"] for r in mine),
            )
            if mine
            else ("closed", None, 0)
            if {"upstream": name} in called
            else None,
        }
    return found


def each(cards: dict[str, dict[str, Any]]) -> Rows:
    return {
        name: {
            "Calls": card["n"],
            "Failed": (card["n_failed"], card["n"]),
            "Empty": card["n_empty"] / card["n"] if card["n"] else None,
            "p50": card["p50_us"],
            "p99": card["p99_us"],
            "Lag, blocks": card["lag"],
            "Mismatch, final": card["pairs"],
            "Spent": card["usd"],
        }
        for name, card in cards.items()
    }


def worst(cards: dict[str, dict[str, Any]]) -> Rows:
    """Return how many there are, whose breaker is not closed, and who fails most."""
    not_closed = [name for name, card in cards.items() if card["breaker"] and card["breaker"][0] != "closed"]
    called = [name for name in cards if cards[name]["n"]]
    name = max(called, key=lambda one: cards[one]["n_failed"] / cards[one]["n"])
    card = cards[name]
    return {
        "": {
            "lead": (
                len(cards),
                not_closed,
                name,
                (card["n_failed"], card["n"], card["failed_low"], card["failed_high"]),
            )
        }
    }


def in_words(raw: Any) -> str:
    """Return a rate with its interval and its sample; of a small one what it is of."""
    k, n, low, high = raw
    if n < 100:
        return f"{k:,} of {n:,}" if n else ""
    return f"{percent(k / n) if k else 0} ({interval((k, n, low, high))}, n {count(n)})"


def worst_words(raw: Any) -> str:
    n, not_closed, name, failed = raw
    first = f"{plural(n, 'upstream')}. The breaker of {', '.join(not_closed)} is not closed."
    return f"{first} {name} fails most: {in_words(failed)}."


def mismatch(raw: Any) -> Figure | str:
    return "" if raw is None else part_of(raw[:2])


UPSTREAMS = [
    Entry(
        name="upstreams, first sentence",
        address=at("/upstreams"),
        panel="lead",
        read=parts(lead=lambda part: part.one("p", "lead")),
        shown={"lead": worst_words},
        api=lambda full: worst(cards_by_api(full)),
        sql=lambda full: worst(cards_by_sql(full)),
    ),
    Entry(
        name="upstreams",
        address=at("/upstreams"),
        panel="table",
        read=table(),
        shown={
            "Calls": count,
            "Failed": part_of,
            "Empty": percent,
            "p50": micros,
            "p99": micros,
            "Lag, blocks": exact,
            "Mismatch, final": mismatch,
            "Spent": or_word(usd),
        },
        api=lambda full: each(cards_by_api(full)),
        sql=lambda full: each(cards_by_sql(full)),
    ),
]


# --- one of them -----------------------------------------------------------------------------------------------------


def steps(full: Full, rows: list[dict[str, Any]]) -> Rows:
    start = full.now - timedelta(seconds=DAY)
    return {
        str(moment(start + timedelta(seconds=STEP * row["step"]), full.now)): {
            "At": start + timedelta(seconds=STEP * row["step"]),
            "p50, ms": row["p50_us"] / 1000,
            "p99, ms": row["p99_us"] / 1000,
        }
        for row in rows
    }


def steps_by_sql(full: Full, name: str) -> Rows:
    return steps(
        full,
        full.sql(
            f"SELECT intDiv(dateDiff('second', {{to:DateTime64(3)}} - INTERVAL 24 HOUR, at), {STEP}) AS step,"
            " toUInt32(quantileTDigestIf(0.5)(duration_us, outcome != 'cancelled')) AS p50_us,"
            " toUInt32(quantileTDigestIf(0.99)(duration_us, outcome != 'cancelled')) AS p99_us"
            f" FROM gnomon.attempts WHERE upstream = {{upstream:String}} AND {FOR_CLIENTS} AND {WITHIN} GROUP BY step",
            upstream=name,
        ),
    )


def milliseconds(raw: float) -> Figure:
    return Figure(f"{raw:.1f}", str(raw))


def methods(rows: list[dict[str, Any]]) -> Rows:
    return by(
        rows,
        "method",
        {
            "Calls": "n",
            "Failed": lambda r: (r["n_failed"], r["n"]),
            "Empty": lambda r: (r["n_empty"], r["n"]),
            "p50": "p50_us",
            "p99": "p99_us",
            "Cost": "usd",
            "Of no use": "n_wasted",
        },
    )


def methods_by_sql(full: Full, name: str) -> Rows:
    return methods(
        full.sql(
            f"SELECT method, count() AS n, countIf({FAILED}) AS n_failed, countIf(is_empty) AS n_empty,"
            f" countIf(is_wasted) AS n_wasted,"
            " toUInt32(quantileExactIf(0.5)(duration_us, outcome != 'cancelled')) AS p50_us,"
            " toUInt32(quantileExactIf(0.99)(duration_us, outcome != 'cancelled')) AS p99_us, sum(a.usd) AS usd"
            f" FROM gnomon.attempts AS a WHERE upstream = {{upstream:String}} AND {FOR_CLIENTS}"
            f" AND {WITHIN} GROUP BY method",
            upstream=name,
        )
    )


def errors_by_sql(full: Full, name: str) -> list[dict[str, Any]]:
    return full.sql(
        f"SELECT outcome, error_class, count() AS n, max(at) AS last_at FROM gnomon.attempts"
        f" WHERE {FAILED} AND {WITHIN}"
        " AND upstream = {upstream:String} GROUP BY outcome, error_class",
        upstream=name,
    )


def card_facts(card: dict[str, Any]) -> Rows:
    failed = (card["n_failed"], card["n"], card["failed_low"], card["failed_high"])
    empty = (card["n_empty"], card["n"], card["empty_low"], card["empty_high"])
    found: dict[str, Any] = {
        "Breaker": card["breaker"],
        "Calls": card["n"],
        "Failed": failed,
        "Empty": empty,
        "Latency": (card["p50_us"], card["p99_us"]),
        "Head": (card["number"], card["lag"]),
        "Spent": card["usd"],
    }
    if card["pairs"]:
        found["Mismatch"] = card["pairs"]
    return {"": found}


def breaker_words(raw: Any, now: datetime) -> object:
    if raw is None:
        return "closed"
    state, changed_at, n_opened = raw
    since = Markup(" since {}").format(moment(changed_at, now)) if changed_at else ""
    return Markup("{}{}, opened {}").format(state, since, plural(n_opened, "time"))


def lag(name: str, values: Any, spans: Any) -> Rows:
    raw = (name, values, spans)
    return {"": {"drawing": raw, "words": values, "note": values}}


def top_of(values: Any) -> float:
    return svg.nice_top(max(10.0, *(value for value in values if value is not None)))


def lag_drawing(raw: Any, now: datetime) -> Markup:
    name, values, spans = raw
    ridge = drawing.ridge(values, f"lag of {name}", top=top_of(values), limit=LIMIT_BLOCKS, width=380, height=60)
    states = sparks.spans(state_bars(spans, now, DAY), f"breaker of {name}", width=380)
    return ridge + states + sparks.ticks(ticks(span("now-24h", "now", now), now, most=5), width=380)


def lag_words(values: Any) -> str:
    now, most = last_of(values), max(value for value in values if value is not None)
    first = "Its head is unknown now" if now is None else f"{now} blocks behind now"
    return f"{first}, {most:,.0f} at most."


def lead_words(name: str) -> Any:
    def words(raw: Any, now: datetime) -> str:
        state, failed, p99 = raw
        said = (
            f"; its breaker is {state[0].replace('_', ' ')} since {moment(state[1], now)}"
            if state and state[0] != "closed"
            else ""
        )
        network = "Ethereum" if name in ("node-b", "infura-eth") else "Base"
        tier = {"op-1": "primary", "op-2": "primary", "node-b": "shadow", "alchemy-base": "fallback"}[name]
        return f"{name} is a {tier} of {network}{said}. It failed {in_words(failed)}; p99 {micros(p99)}."

    return words


def one(name: str) -> list[Entry]:
    """Return the numbers of an upstream's page."""

    def entry(title: str, panel: str, read: Any, shown: Any, api: Any, sql: Any, near: Any = None) -> Entry:
        return Entry(
            name=f"upstream {name}, {title}",
            address=at(f"/upstreams/{name}"),
            panel=panel,
            read=read,
            shown=shown,
            api=api,
            sql=sql,
        )

    def lead(card: dict[str, Any]) -> Rows:
        return {
            "": {
                "lead": (
                    card["breaker"],
                    (card["n_failed"], card["n"], card["failed_low"], card["failed_high"]),
                    card["p99_us"],
                )
            }
        }

    def card_by_api(full: Full) -> dict[str, Any]:
        return cards_by_api(full)[name]

    def more_by_api(full: Full) -> dict[str, Any]:
        found: dict[str, Any] = full.get(f"/v1/upstreams/{name}", from_=start_of(full, DAY), to=full.to)
        return found

    def key(full: Full) -> str:
        return f"{full.networks[name]} | {name}"

    is_paid = name in ("alchemy-base", "infura-eth")
    entries = [
        entry(
            "first sentence",
            "lead",
            parts(lead=lambda part: part.one("p", "lead")),
            {"lead": Timed(lead_words(name))},
            lambda full: lead(card_by_api(full)),
            lambda full: lead(cards_by_sql(full)[name]),
        ),
        entry(
            "over time",
            "latency",
            table(),
            {"At": Timed(moment), "p50, ms": milliseconds, "p99, ms": milliseconds},
            lambda full: steps(
                full,
                full.asked(
                    "upstream_in_steps",
                    network=full.networks[name],
                    upstream=name,
                    from_=start_of(full, DAY),
                    to=full.to,
                    step=STEP,
                ),
            ),
            lambda full: steps_by_sql(full, name),
        ),
        entry(
            "over time, step",
            "latency",
            note,
            {"note": lambda raw: f"ms, by {duration(raw)}"},
            lambda full: {"": {"note": STEP}},
            lambda full: {"": {"note": math.ceil(DAY / N)}},
        ),
        entry(
            "methods",
            "methods",
            table(),
            {
                "Calls": count,
                "Failed": part_of,
                "Empty": part_of,
                "p50": micros,
                "p99": micros,
                **({"Cost": lambda raw: usd(raw) or "unpriced", "Of no use": exact} if is_paid else {}),
            },
            lambda full: methods([{**row, "usd": amount(row["usd"])} for row in more_by_api(full)["methods"]]),
            lambda full: methods_by_sql(full, name),
        ),
        entry(
            "score card",
            "facts",
            facts,
            {
                "Breaker": Timed(breaker_words),
                "Calls": count,
                "Failed": in_words,
                "Empty": in_words,
                "Latency": lambda raw: Markup("p50 {}, p99 {}").format(micros(raw[0]), micros(raw[1])),
                "Head": lambda raw: Markup("{}, {} blocks behind the best").format(block(raw[0]), raw[1]),
                "Spent": or_word(usd),
                **({"Mismatch": lambda raw: f"{in_words(raw)} on final data"} if name == "node-b" else {}),
            },
            lambda full: card_facts(card_by_api(full)),
            lambda full: card_facts(cards_by_sql(full)[name]),
        ),
        entry(
            "lag",
            "lag",
            parts(
                drawing=lambda part: part.one("div", "scroll"),
                words=lambda part: part.one("p"),
                note=lambda part: part.one("span", "note"),
            ),
            {
                "drawing": Timed(lag_drawing),
                "words": lag_words,
                "note": lambda raw: f"blocks, 0 to {top_of(raw):,.10g}, line: limit {LIMIT_BLOCKS}; below: breaker",
            },
            lambda full: lag(name, lags_by_api(full, DAY, STEP)[key(full)], open_by_api(full, DAY).get(key(full), [])),
            lambda full: lag(name, lags_by_sql(full, DAY, STEP)[key(full)], open_by_sql(full, DAY).get(key(full), [])),
        ),
    ]
    if name in ("op-1", "node-b"):
        entries.append(
            entry(
                "errors",
                "errors",
                table(key=("Outcome", "Class")),
                {"Calls": exact, "Last": Timed(lambda raw, now: moment(raw, now))},
                lambda full: by(
                    [{**row, "last_at": when(row["last_at"])} for row in more_by_api(full)["errors"]],
                    "outcome error_class",
                    {"Calls": "n", "Last": "last_at"},
                ),
                lambda full: by(errors_by_sql(full, name), "outcome error_class", {"Calls": "n", "Last": "last_at"}),
            )
        )
    return entries


UPSTREAM = [*one("op-1"), *one("alchemy-base"), *one("node-b")]
