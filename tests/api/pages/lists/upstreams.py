"""The numbers of Upstreams."""

from decimal import Decimal
from typing import Any

from api.pages.figures import Figure, count, exact, micros, percent, plural, usd
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Entry, at, parts, table, when
from tests.api.pages.lists.divergence import interval, part_of
from tests.api.pages.lists.overview import (
    or_word,
)
from tests.api.pages.lists.series import (
    FAILED,
    FOR_CLIENTS,
    JUDGED,
    WILSON,
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
