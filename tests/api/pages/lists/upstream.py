"""The numbers of an upstream's page."""

import math
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from api.pages.address import span, ticks
from api.pages.charts import heads as drawing
from api.pages.charts import sparks, svg
from api.pages.figures import Figure, block, count, duration, exact, micros, moment, plural, usd
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Entry, Timed, at, by, facts, note, parts, table, when
from tests.api.pages.listed import usd as amount
from tests.api.pages.lists.divergence import part_of
from tests.api.pages.lists.firing import (
    state_bars,
)
from tests.api.pages.lists.overview import (
    or_word,
)
from tests.api.pages.lists.series import (
    FAILED,
    FOR_CLIENTS,
    LIMIT_BLOCKS,
    lags_by_api,
    lags_by_sql,
    last_of,
    open_by_api,
    open_by_sql,
    start_of,
)
from tests.api.pages.lists.upstreams import (
    DAY,
    STEP,
    WITHIN,
    N,
    cards_by_api,
    cards_by_sql,
    in_words,
)


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
