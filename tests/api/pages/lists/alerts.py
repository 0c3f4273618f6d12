"""The numbers of Breakers and alerts."""

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analytics.alerting.rules import configured
from api.pages.charts import sparks
from api.pages.figures import day, duration, exact, moment, number, percent, plural
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, Timed, at, by, note, parts, table, when
from tests.api.pages.lists.firing import (
    FIRING,
    state_bars,
)
from tests.api.pages.lists.series import (
    FAILED,
    open_by_api,
    open_by_sql,
    start_of,
)
from tests.api.pages.reading import Node

WEEK = timedelta(days=7)
DAY = 86400
VALUES = {
    "BreakerFlapping": ("{:.0f} times", "{:.0f}"),
    "FallbackSpend": ("${:,.2f}", "${:,.2f}"),
    "HeadLag": ("{:.0f} blocks", "{:.0f} blocks"),
}
"""Rule → its value and its limit in words."""


def rules(panel: Node) -> Cells:
    """Return the rules that have a row, and those in the line of quiet ones."""
    columns = ("Value", "Limit", "Since", "Strip", "Told")
    found: Cells = {}
    for cells in panel.rows():
        if len(cells) < 8:
            found |= {one.one("b").text: {"Quiet": one} for one in cells[1].all("li")}
            found[""] = {"n": cells[1].one("summary")}
        else:
            name = (cells[1].all("a") or cells[1].all("b"))[0].text
            found[name] = dict(zip(columns, cells[3:8], strict=True))
    return found


def rules_by_api(full: Full) -> Rows:
    known = {row["name"]: (row["threshold"], row["is_above"]) for row in full.get("/v1/alerts/rules")["items"]}
    history = [
        (row["rule"], row["subject"], when(row["fired_at"]), when(row["resolved_at"]))
        for row in full.asked("alert_history", from_=start_of(full, 90 * DAY), to=full.to)
    ]
    firing = {
        row["rule"]: (row["subject"], row["value"], row["threshold"], when(row["fired_at"]))
        for row in full.get("/v1/alerts/firing")["items"]
    }
    silences = {row["rule"]: (when(row["ends_at"]), row["comment"]) for row in full.asked("silences", to=full.to)}
    return _rules(full, known, history, firing, silences)


def rules_by_sql(full: Full) -> Rows:
    known = {rule.name: (rule.threshold, rule.is_above) for rule in configured((), Path(), [])}
    changes = full.sql("SELECT rule, subject, state, at FROM gnomon.alerts ORDER BY at")
    history = [
        (
            row["rule"],
            row["subject"],
            row["at"],
            next(
                (
                    one["at"]
                    for one in changes
                    if (one["rule"], one["subject"]) == (row["rule"], row["subject"])
                    and one["state"] == "resolved"
                    and one["at"] > row["at"]
                ),
                None,
            ),
        )
        for row in changes
        if row["state"] == "firing"
    ]
    firing = {
        name.partition(" ")[0]: (name.partition(" ")[2], row["value"], row["threshold"], row["fired_at"])
        for name, row in full.rows(FIRING).items()
    }
    silences = {
        r["rule"]: (r["ends_at"], r["comment"])
        for r in full.sql("SELECT rule, ends_at, comment FROM gnomon.alert_silences")
    }
    return _rules(full, known, history, firing, silences)


def _rules(full: Full, known: Any, history: Any, firing: Any, silences: Any) -> Rows:
    start, found, n_quiet = full.now - WEEK, Rows(), 0
    for name, (limit, is_above) in known.items():
        fired = [(first, last) for rule, _, first, last in history if rule == name and (last or full.now) > start]
        over = [last for _, last in fired if last is not None]
        if name in firing:
            subject, value, then, began = firing[name]
            mine = [(first, last) for rule, about, first, last in history if (rule, about) == (name, subject)]
            found[name] = {
                "Value": (name, value),
                "Limit": (name, then, None),
                "Since": began,
                "Strip": mine,
                "Told": "every receiver was told",
            }
        elif name in silences or over:
            state = "silenced" if name in silences else "quiet"
            found[name] = {
                "Value": (name, None),
                "Limit": (name, limit, is_above),
                "Since": state,
                "Strip": fired,
                "Told": silences.get(name) or max(over),
            }
        else:
            n_quiet += 1
            found[name] = {"Quiet": (name, limit, is_above)}
    ends = (start, full.now)
    return {**found, "": {"n": n_quiet, "firing": (len(firing), len(known)), "days": ends}}


def limit_words(raw: Any) -> str:
    name, limit, is_above = raw
    return VALUES[name][1].format(limit) if is_above is None else f"{'above' if is_above else 'below'} {number(limit)}"


def strip(raw: Any, now: datetime) -> Markup:
    start = now - WEEK
    spans = [
        sparks.Span(max((first - start) / WEEK, 0.0), min(((last or now) - start) / WEEK, 1.0), "open")
        for first, last in raw
    ]
    times = plural(len(raw), "time") if raw else "never"
    return sparks.spans(spans, f"fired {times} in 7 days", width=150, height=18)


def told_words(raw: Any, now: datetime) -> str:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, datetime):
        return f"resolved {moment(raw, now)}"
    return f"silenced to {moment(raw[0], now)}, {raw[1]}"


def _part(rows: Rows, *names: str) -> Rows:
    return {"": {name: rows[""][name] for name in names}}


# --- breakers --------------------------------------------------------------------------------------------------------

REASONS = ("timeout", "transport", "status", "parse", "validate", "rpcerror", "quota", "rate_limited")


def _misses(reason: str, row: dict[str, Any]) -> int:
    return int(row["misses"].get(reason, 0))


def breakers_by_api(full: Full) -> Rows:
    rows = full.asked("breakers", from_=start_of(full, DAY), to=full.to)
    opened = open_by_api(full, DAY)
    return by(
        rows,
        "upstream",
        {
            "Opened": "n_opened",
            "Time open": "open_seconds",
            "When": lambda r: (r["upstream"], r["n_opened"], opened.get(f"{r['network']} | {r['upstream']}", [])),
            **{reason: partial(_misses, reason) for reason in REASONS},
            "other": lambda r: sum(n for reason, n in r["misses"].items() if reason not in REASONS),
        },
    )


def breakers_by_sql(full: Full) -> Rows:
    each = ", ".join(f"countIf(error_class = '{reason}' AND {FAILED}) AS {reason}" for reason in REASONS)
    rows = full.sql(
        f"SELECT network, upstream, {each}, countIf({FAILED} AND error_class NOT IN {REASONS}"
        f" AND error_class != '') AS other"
        " FROM gnomon.attempts WHERE kind IN ('client', 'retry', 'hedge', 'probe') AND tier != 'shadow'"
        " AND at >= {to:DateTime64(3)} - INTERVAL 24 HOUR AND at < {to:DateTime64(3)} GROUP BY network, upstream"
    )
    n_opened = full.rows(
        "SELECT upstream AS row, count() AS n FROM gnomon.breaker_transitions WHERE to_state = 'open'"
        " AND at >= {to:DateTime64(3)} - INTERVAL 24 HOUR AND at < {to:DateTime64(3)} GROUP BY upstream"
    )
    opened = open_by_sql(full, DAY)
    found: Rows = {}
    for row in rows:
        name, n = row["upstream"], n_opened.get(row["upstream"], {"n": 0})["n"]
        spans = opened.get(f"{row['network']} | {name}", [])
        seconds = sum((last - first).total_seconds() for state, first, last in spans if state == "open")
        found[name] = {
            "Opened": n,
            "Time open": seconds,
            "When": (name, n, spans),
            **{r: row[r] for r in (*REASONS, "other")},
        }
    return found


def line(raw: Any, now: datetime) -> Markup:
    name, n, spans = raw
    return sparks.spans(state_bars(spans, now, DAY), f"{name}: opened {plural(n, 'time')} in the range")


def changes(rows: list[dict[str, Any]], traffic: Any, full: Full) -> Rows:
    found: Rows = {}
    for row in rows:
        is_opening = (row["from_state"], row["to_state"]) == ("closed", "open")
        found[f"{moment(row['at'], full.now, with_seconds=True)} | {row['upstream']}"] = {
            "At": row["at"],
            "Counters": sorted(row["counters"].items(), key=lambda one: -one[1]),
            "What it did to traffic": (row["network"], *traffic(row)) if is_opening else None,
        }
    return found


AROUND = ("n_before", "n_after", "paid_before", "paid_after", "failed_before", "failed_after")


def changes_by_api(full: Full) -> Rows:
    rows = [{**r, "at": when(r["at"])} for r in full.asked("breaker_changes", from_=start_of(full, DAY), to=full.to)]

    def traffic(row: dict[str, Any]) -> Any:
        (found,) = full.asked("traffic_around", network=row["network"], at=row["at"].isoformat())
        return [found[name] for name in AROUND]

    return changes(rows, traffic, full)


def changes_by_sql(full: Full) -> Rows:
    def traffic(row: dict[str, Any]) -> Any:
        moment_of = {"network": row["network"], "moment": f"{row['at']:%Y-%m-%d %H:%M:%S.%f}"[:-3]}
        sides = [
            full.sql(
                "SELECT count() AS n, countIf(tier = 'fallback') AS paid, countIf(outcome = 'error') AS failed"
                f" FROM gnomon.requests WHERE network = {{network:String}} AND {only}",
                **moment_of,
            )[0]
            for only in (
                "at < {moment:DateTime64(3)} AND at >= {moment:DateTime64(3)} - INTERVAL 2 MINUTE",
                "at >= {moment:DateTime64(3)} AND at < {moment:DateTime64(3)} + INTERVAL 2 MINUTE",
            )
        ]
        return [side[name] for name in ("n", "paid", "failed") for side in sides]

    return changes(
        full.sql(
            "SELECT at, network, upstream, from_state, to_state, counters FROM gnomon.breaker_transitions"
            " WHERE at >= {to:DateTime64(3)} - INTERVAL 24 HOUR AND at < {to:DateTime64(3)}"
        ),
        traffic,
        full,
    )


def effect(raw: Any) -> str:
    if raw is None:
        return ""
    network, before, after, *numbers = raw
    if min(before, after) < 5:
        return "too few requests to tell"
    paid, failed = ((one / before, other / after) for one, other in (numbers[:2], numbers[2:]))
    said = (
        [f"paid share of {network} from {percent(paid[0])} to {percent(paid[1])}"]
        if abs(paid[1] - paid[0]) >= 0.02
        else []
    )
    said += [f"errors from {percent(failed[0])} to {percent(failed[1])}"] if abs(failed[1] - failed[0]) >= 0.005 else []
    return "; ".join(said) or "no change"


def told_first(full: Full, rows: Rows, rows_of_changes: list[dict[str, Any]]) -> Rows:
    """Return how many fire, and since when op-1 is open, after what, with the trials that it failed."""
    mine = [row for row in rows_of_changes if row["upstream"] == "op-1" and row["to_state"] == "open"]
    opening = max((row for row in mine if row["from_state"] == "closed"), key=lambda row: row["at"])
    trials = sorted(row["at"] for row in mine if row["from_state"] == "half_open" and row["at"] > opening["at"])
    n = sum(opening["counters"].values())
    return {"": {"lead": (*rows[""]["firing"], opening["at"], n, opening["reason"], trials)}}


def first_words(raw: Any, now: datetime) -> str:
    n, n_rules, opened_at, missed, reason, trials = raw
    return (
        f"{plural(n, 'alert')} firing, of {plural(n_rules, 'rule')}. op-1 is open since {moment(opened_at, now)} after"
        f" {missed:,} × {reason} and failed its trials at {', '.join(str(moment(one, now)) for one in trials)}."
    )


def breakers_and_alerts(address: str) -> list[Entry]:
    """Return the numbers of a page that has these three panels."""

    def entry(name: str, panel: str, read: Any, shown: Any, api: Any, sql: Any) -> Entry:
        return Entry(
            name=f"{address}, {name}", address=at(address), panel=panel, read=read, shown=shown, api=api, sql=sql
        )

    history = "SELECT at, upstream, from_state, to_state, reason, counters FROM gnomon.breaker_transitions"
    return [
        entry(
            "first sentence",
            "lead",
            parts(lead=lambda part: part.one("p", "lead")),
            {"lead": Timed(first_words)},
            lambda full: told_first(
                full,
                rules_by_api(full),
                [
                    {**r, "at": when(r["at"])}
                    for r in full.asked("breaker_changes", from_=start_of(full, DAY), to=full.to)
                ],
            ),
            lambda full: told_first(full, rules_by_sql(full), full.sql(history)),
        ),
        entry(
            "rules",
            "rules",
            rules,
            {
                "Value": lambda raw: "" if raw[1] is None else VALUES[raw[0]][0].format(raw[1]),
                "Limit": limit_words,
                "Since": Timed(lambda raw, now: raw if isinstance(raw, str) else moment(raw, now)),
                "Strip": Timed(strip),
                "Told": Timed(told_words),
                "Quiet": lambda raw: f"{raw[0]} {limit_words(raw)}",
                "n": lambda raw: f"{raw} other rules were quiet for 7 days",
            },
            rules_by_api,
            rules_by_sql,
        ),
        entry(
            "how many fire",
            "rules",
            lambda panel: {"": {"firing": note(panel)[""]["note"], "days": panel.all("th")[6]}},
            {
                "firing": lambda raw: f"{raw[0]} firing of {raw[1]} rules in force",
                "days": Timed(lambda raw, now: f"{day(raw[0], now)} to {day(raw[1], now)}"),
            },
            lambda full: _part(rules_by_api(full), "firing", "days"),
            lambda full: _part(rules_by_sql(full), "firing", "days"),
        ),
        entry(
            "breakers",
            "breakers",
            table(),
            {
                "Opened": str,
                "Time open": lambda raw: duration(raw or None),
                "When": Timed(line),
                **dict.fromkeys(REASONS, exact),
                "other": lambda raw: f"{raw:,}",
            },
            breakers_by_api,
            breakers_by_sql,
        ),
        entry(
            "changes",
            "changes",
            table(key=("At", "Upstream")),
            {
                "At": Timed(lambda raw, now: moment(raw, now, with_seconds=True)),
                "Counters": lambda raw: ", ".join(f"{reason} {n:,}" for reason, n in raw),
                "What it did to traffic": effect,
            },
            changes_by_api,
            changes_by_sql,
        ),
    ]


ALERTS = [*breakers_and_alerts("/alerts"), *breakers_and_alerts("/breakers")]
