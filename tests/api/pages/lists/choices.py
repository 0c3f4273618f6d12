"""The numbers of what pages can be filtered by."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from analytics.alerting.rules import configured
from api.pages.choices import MOST, NAME
from api.pages.figures import count
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, at
from tests.api.pages.lists import alerts, divergence, spend
from tests.api.pages.lists.series import WEEK, start_of
from tests.api.pages.reading import Node

OUTCOMES = ("identical_masked", "tolerated", "error", "incomparable", "missing", "undecided")
"""Without mismatch, which is in force where the address says nothing."""
FIRED = "fired in 7 days"
Counts = Mapping[str, Mapping[str, int]]
"""Parameter → value → how much of it there is."""


def read(part: Node) -> Cells:
    """Return each value of each parameter; of a parameter what is counted, and how many values are left out."""
    found: Cells = {}
    for section in part.all("section"):
        key = section.attributes["aria-label"]
        head, *more = section.all("p")
        found[key] = {"counted": head.one("span"), **({"more": more[0]} if more else {})}
        for link in section.all("a"):
            value, n = link.all("span")
            found[f"{key} | {value.text}"] = {"n": n}
    return found


def listed(counts: Counts, counted: Mapping[str, str]) -> Rows:
    """Return what is to be listed: the most of each, and how many there are beside."""
    found: Rows = {}
    for key, of in counts.items():
        order = sorted(of, key=lambda value: (-of[value], value))
        more = {"more": len(order) - MOST} if len(order) > MOST else {}
        found[key] = {"counted": counted[key], **more}
        found |= {f"{key} | {value}": {"n": of[value]} for value in order[:MOST]}
    return found


def added(rows: Iterable[Mapping[str, Any]], name: str, n: str) -> dict[str, int]:
    """Return a number of rows, added up by a word of them; rows without one are left out."""
    sums: dict[str, int] = {}
    for row in rows:
        if row[name]:
            sums[row[name]] = sums.get(row[name], 0) + row[n]
    return sums


def of_pairs(compared: Any, differences: Any, outcomes: Mapping[str, int]) -> Rows:
    counts = {
        "shadow": added(compared, "shadow_upstream", "n_judged"),
        "method": added(compared, "method", "n_judged"),
        "class": added(differences, "class", "n_pairs"),
        "outcome": outcomes,
    }
    return listed(counts, {"shadow": "pairs", "method": "pairs", "class": "differing", "outcome": "pairs"})


def of_pairs_by_api(full: Full) -> Rows:
    shadows = full.asked("divergence_by_shadow", from_=start_of(full, divergence.DAYS), to=full.to)
    outcomes = {name: sum(row[name] for row in shadows) for name in OUTCOMES}
    return of_pairs(divergence.compared_by_api(full), divergence.differences_by_api(full), outcomes)


def of_pairs_by_sql(full: Full) -> Rows:
    each = ", ".join(f"countIf(outcome = '{name}') AS {name}" for name in OUTCOMES)
    (outcomes,) = full.sql(f"SELECT {each} FROM gnomon.comparisons WHERE finality = 'finalized' AND {WEEK}")
    return of_pairs(divergence.compared_by_sql(full), divergence.differences_by_sql(full), outcomes)


def of_money(priced: Any, days: Any) -> Rows:
    counts = {"account": added(priced, "account", "n"), "cause": added(days, "cause", "n")}
    return listed(counts, {"account": "calls", "cause": "calls"})


def of_money_by_api(full: Full) -> Rows:
    return of_money(full.asked("prices_in_effect", from_=full.month, to=full.to), spend.days_by_api(full))


def of_money_by_sql(full: Full) -> Rows:
    return of_money(full.sql(spend.PRICES), spend.days_by_sql(full))


def of_alerts(fired: Iterable[str], rules: Iterable[str], breakers: Rows) -> Rows:
    names = list(fired)
    counts = {
        "rule": {rule: names.count(rule) for rule in rules},
        "upstream": {upstream: row["Opened"] for upstream, row in breakers.items()},
    }
    return listed(counts, {"rule": FIRED, "upstream": "opened"})


def of_alerts_by_api(full: Full) -> Rows:
    fired = [row["rule"] for row in full.asked("alert_history", from_=start_of(full, 7 * alerts.DAY), to=full.to)]
    rules = [row["name"] for row in full.get("/v1/alerts/rules")["items"]]
    return of_alerts(fired, rules, alerts.breakers_by_api(full))


def of_alerts_by_sql(full: Full) -> Rows:
    changes = full.sql("SELECT rule, subject, state, at FROM gnomon.alerts ORDER BY at")
    start = full.now - timedelta(days=7)
    fired = []
    for row in changes:
        ends = [
            one["at"]
            for one in changes
            if (one["rule"], one["subject"], one["state"]) == (row["rule"], row["subject"], "resolved")
            and one["at"] > row["at"]
        ]
        if row["state"] == "firing" and min(ends, default=full.now) > start:
            fired.append(row["rule"])
    return of_alerts(fired, [rule.name for rule in configured((), Path(), [])], alerts.breakers_by_sql(full))


def choices(address: str, api: Callable[[Full], Rows], sql: Callable[[Full], Rows], *, is_cut: bool = False) -> Entry:
    """Return the choices of a page; of more than are listed, how many are left out too."""
    return Entry(
        name=f"choices of {address}",
        address=at(address),
        panel=NAME,
        is_apart=True,
        read=read,
        shown={"counted": str, "n": count, **({"more": "{} more".format} if is_cut else {})},
        api=api,
        sql=sql,
    )


CHOICES = [
    choices("/divergence", of_pairs_by_api, of_pairs_by_sql),
    choices("/spend", of_money_by_api, of_money_by_sql),
    choices("/alerts", of_alerts_by_api, of_alerts_by_sql, is_cut=True),
    choices("/breakers", of_alerts_by_api, of_alerts_by_sql, is_cut=True),
]
