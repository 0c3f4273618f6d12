"""Breakers and alerts: what fires and who was told; when each breaker was open and why; what that did to traffic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from markupsafe import Markup

from analytics.alerting.rules import Rule
from api.pages import choices, earlier, figures, known
from api.pages.address import ticks
from api.pages.charts import sparks
from api.pages.choices import Choices
from api.pages.earlier import Was
from api.pages.figures import duration, iso, moment, percent, plural
from api.pages.heads import breaker_changes, open_spans
from api.pages.page import HAS_BEFORE, Around, Chip, Page, Panel, Shown, State, both, together
from api.pages.told import told

REASONS = ("timeout", "transport", "status", "parse", "validate", "rpcerror", "quota", "rate_limited")
"""Error classes that have a column; the rest is one of its own."""
N_CHANGES = 30
TRAFFIC_SECONDS = 120
HISTORY_DAYS = 7
LOOKED_BACK = timedelta(days=90)
"""What fires since longer than that is not looked for."""
MIN_FOLDED = 4
"""As many rules that were quiet all the time stand in one line; fewer have a row each."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule and subject: firing, silenced, or quiet."""

    glyph: str
    rule: str
    href: str
    subject: str
    value: str
    limit: str
    since: figures.Moment | None
    state: str
    strip: Markup
    said: str
    tone: str
    can_silence: bool


async def rules(around: Around) -> Shown | State:
    view = around.view
    end = view.span.end
    start = end - timedelta(days=HISTORY_DAYS)
    firing, history, silences = await together(
        around.rows("alerts_firing", from_=iso(end - LOOKED_BACK)),
        around.rows("alert_history", from_=iso(end - LOOKED_BACK)),
        around.rows("silences"),
    )
    only = view.get("rule")
    severity = {rule.name: str(rule.severity) for rule in around.rules}
    rows = []
    for row in firing:
        if only in ("", row["rule"]):
            rows.append(_firing(around, row, severity.get(row["rule"], ""), history, silences, start, end))
    seen = {row.rule for row in rows}
    for rule in around.rules:
        if rule.name not in seen and only in ("", rule.name):
            rows.append(_quiet(around, rule, history, silences, start, end))
    if not rows:
        return State("No such rule", f"There is no rule {only!r} in force.", ways=[("All rules", view.to("/alerts"))])
    order = {"bad": 0, "warn": 1, "off": 2, "ok": 3}
    rows.sort(key=lambda row: (row.state != "firing", order[row.glyph], row.rule))
    quiet = [row for row in rows if row.state == "quiet" and not row.said]
    is_folded = not only and len(quiet) >= MIN_FOLDED
    return {
        "rows": [row for row in rows if row not in quiet] if is_folded else rows,
        "quiet": quiet if is_folded else [],
        "n_firing": sum(row.state == "firing" for row in rows),
        "n_rules": len(around.rules),
        "days": f"{figures.day(start, view.clock)} to {figures.day(end, view.clock)}",
        "can_silence": around.may_change,
    }


def _firing(
    around: Around,
    row: Mapping[str, Any],
    severity: str,
    history: Sequence[Mapping[str, Any]],
    silences: Sequence[Mapping[str, Any]],
    start: datetime,
    end: datetime,
) -> RuleRow:
    said = told(row, severity, around.view)
    silence = _silence(silences, row["rule"], row["subject"], end)
    delivery = "every receiver was told" if row["delivered"] else "nobody was told"
    if silence is not None:
        delivery = f"silenced to {moment(silence['ends_at'], around.view.clock)}"
    return RuleRow(
        glyph=said.glyph,
        rule=row["rule"],
        href=said.href,
        subject=row["subject"],
        value=said.value,
        limit=said.limit,
        since=moment(row["fired_at"], around.view.clock),
        state="firing",
        strip=_strip(history, row["rule"], row["subject"], start, end),
        said=delivery,
        tone=said.glyph if said.glyph in ("bad", "warn") else "",
        can_silence=around.may_change and silence is None,
    )


def _quiet(
    around: Around,
    rule: Rule,
    history: Sequence[Mapping[str, Any]],
    silences: Sequence[Mapping[str, Any]],
    start: datetime,
    end: datetime,
) -> RuleRow:
    silence = _silence(silences, rule.name, "", end)
    mine = [row for row in history if row["rule"] == rule.name and (row["resolved_at"] or start) > start]
    last = max(mine, key=lambda row: row["resolved_at"], default=None)
    said = ""
    if silence is not None:
        comment = f", {silence['comment']}" if silence["comment"] else ""
        said = f"silenced to {moment(silence['ends_at'], around.view.clock)}{comment}"
    elif last is not None:
        said = f"resolved {moment(last['resolved_at'], around.view.clock)}"
    sign = "above" if rule.is_above else "below"
    return RuleRow(
        glyph="off" if silence is not None else "ok",
        rule=rule.name,
        href="",
        subject=last["subject"] if last is not None else "",
        value="",
        limit=f"{sign} {figures.number(rule.threshold)}",
        since=None,
        state="silenced" if silence is not None else "quiet",
        strip=_strip(history, rule.name, "", start, end),
        said=said,
        tone="",
        can_silence=False,
    )


def _silence(silences: Sequence[Mapping[str, Any]], rule: str, subject: str, now: datetime) -> Mapping[str, Any] | None:
    """Return the silence in force of a rule and subject; without a subject, one of all its subjects."""
    for one in silences:
        is_now = one["starts_at"] <= now < one["ends_at"]
        if (
            is_now
            and fnmatchcase(rule, one["rule"])
            and (fnmatchcase(subject, one["subject"]) or one["subject"] == "*")
        ):
            return one
    return None


def _strip(history: Sequence[Mapping[str, Any]], rule: str, subject: str, start: datetime, end: datetime) -> Markup:
    """Return when a rule fired in the last days; without a subject, for any."""
    seconds = (end - start).total_seconds()
    spans = []
    for row in history:
        until = row["resolved_at"] or end
        if row["rule"] == rule and subject in ("", row["subject"]) and until > start:
            first = max((row["fired_at"] - start).total_seconds() / seconds, 0.0)
            spans.append(sparks.Span(first, min((until - start).total_seconds() / seconds, 1.0), "open"))
    times = plural(len(spans), "time") if spans else "never"
    return sparks.spans(spans, f"fired {times} in {HISTORY_DAYS} days", width=150, height=18)


# --- breakers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BreakerRow:
    """One breaker over the range."""

    upstream: str
    href: str
    tier: str
    state: str
    n_opened: int
    time_open: figures.Figure
    line: Markup
    misses: Sequence[int]
    others: int
    n_opened_was: Was
    time_open_was: Was


async def breakers(around: Around) -> Shown | State:
    view = around.view
    (rows, old_rows), history = await together(both(lambda one: one.rows("breakers"), around), breaker_changes(around))
    only = view.get("upstream")
    rows = [row for row in rows if only in ("", row["upstream"])]
    configured = {(one.network, one.id): one.tier for one in known.upstreams(around.settings)}
    if not rows:
        ways = [("All", view.here(upstream=None))]
        return State("No call in this range", "Neither a call nor a breaker that changed.", ways=ways)
    groups: dict[str, list[BreakerRow]] = {}
    for row in rows:
        key = (row["network"], row["upstream"])
        spans = open_spans(history, *key, view.span)
        old = next((one for one in old_rows or () if (one["network"], one["upstream"]) == key), None)
        misses = row["misses"]
        groups.setdefault(row["network"], []).append(
            BreakerRow(
                upstream=row["upstream"],
                href=view.to(f"/upstreams/{row['upstream']}"),
                tier=configured.get(key, row["tier"]),
                state=row["state"],
                n_opened=row["n_opened"],
                time_open=duration(row["open_seconds"] or None),
                line=sparks.spans(spans, f"{row['upstream']}: opened {plural(row['n_opened'], 'time')} in the range"),
                misses=[misses.get(reason, 0) for reason in REASONS],
                others=sum(n for reason, n in misses.items() if reason not in REASONS),
                n_opened_was=earlier.level(row["n_opened"], old["n_opened"] if old else None),
                time_open_was=earlier.amount(
                    row["open_seconds"],
                    old["open_seconds"] if old else None,
                    duration(old["open_seconds"] or None) if old else figures.UNKNOWN,
                ),
            )
        )
    order = sorted(groups, key=lambda net: (all(one.state == "closed" for one in groups[net]), net))
    return {
        "groups": [(known.label(network), groups[network]) for network in order],
        "reasons": REASONS,
        "axis": sparks.ticks(ticks(view.span, view.clock), width=330),
        "rows": rows,
        "history": history,
        HAS_BEFORE: bool(old_rows),
    }


@dataclass(frozen=True, slots=True)
class Change:
    """One change of state, and what it did."""

    at: figures.Moment
    upstream: str
    before: str
    after: str
    tone: str
    because: str
    counters: str
    effect: str


async def changes(around: Around) -> Shown | State:
    view = around.view
    only = view.get("upstream")
    given = {"upstream": only} if only else {}
    rows = (await around.page("breaker_changes", given, limit=N_CHANGES, cursor=None)).records()
    if not rows:
        return State("No breaker changed in this range", "All stayed as they were.")
    opened = [row for row in rows if row["to_state"] == "open" and row["from_state"] == "closed"][:6]
    effects = {}
    for row in opened:
        found = await around.asks.ask("traffic_around", {"network": row["network"], "at": iso(row["at"])})
        effects[row["network"], row["upstream"], row["at"]] = _effect(row["network"], found.records()[0])
    shown = [
        Change(
            at=moment(row["at"], view.clock, with_seconds=True),
            upstream=row["upstream"],
            before=row["from_state"],
            after=row["to_state"],
            tone={"open": "bad", "half_open": "warn"}.get(row["to_state"], "t2"),
            because=_because(row),
            counters=", ".join(f"{reason} {n:,}" for reason, n in sorted(row["counters"].items(), key=lambda i: -i[1])),
            effect=effects.get((row["network"], row["upstream"], row["at"]), ""),
        )
        for row in rows
    ]
    return {"rows": shown}


def _because(row: Mapping[str, Any]) -> str:
    if row["to_state"] == "half_open":
        return "openFor has passed: trial calls go through"
    if row["to_state"] == "closed":
        return "trial calls were served" if row["from_state"] == "half_open" else ""
    last = f"last miss: {row['reason']}" if row["reason"] else ""
    return f"a trial call missed; {last}" if row["from_state"] == "half_open" and last else last


def _effect(network: str, row: Mapping[str, Any]) -> str:
    """Return what changed in the traffic of a network within two minutes; nothing where too little was asked."""
    before, after = row["n_before"], row["n_after"]
    if min(before, after) < 5:
        return "too few requests to tell"
    paid = [row["paid_before"] / before, row["paid_after"] / after]
    failed = [row["failed_before"] / before, row["failed_after"] / after]
    said = []
    if abs(paid[1] - paid[0]) >= 0.02:
        said.append(f"paid share of {network} from {percent(paid[0])} to {percent(paid[1])}")
    if abs(failed[1] - failed[0]) >= 0.005:
        said.append(f"errors from {percent(failed[0])} to {percent(failed[1])}")
    return "; ".join(said) or "no change"


# --- the pages -----------------------------------------------------------------------------------------------------


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return how many rules fire, and which breaker opened when."""
    table, line = shown.get("rules"), shown.get("breakers")
    if table is None or isinstance(table, State):
        first = "Whether something fires cannot be told."
    else:
        n = table["n_firing"]
        rules_in_force = plural(table["n_rules"], "rule")
        first = f"{plural(n, 'alert')} firing, of {rules_in_force}." if n else f"None of {rules_in_force} fires."
    if line is None or isinstance(line, State):
        return first, ""
    return f"{first} {_open_words(around, line)}", ""


def _open_words(around: Around, content: Shown) -> str:
    now_open = [row for row in content["rows"] if row["state"] != "closed"]
    if not now_open:
        n = sum(row["n_opened"] for row in content["rows"])
        opened = f"; they opened {plural(n, 'time')} in the range" if n else ""
        return f"All breakers are closed{opened}."
    said = []
    for row in now_open[:2]:
        mine = [c for c in content["history"] if (c["network"], c["upstream"]) == (row["network"], row["upstream"])]
        first = next((c for c in mine if c["to_state"] == "open" and c["from_state"] == "closed"), None)
        trials = [
            c for c in mine
            if c["from_state"] == "half_open" and c["to_state"] == "open" and first and c["at"] >= first["at"]
        ]  # fmt: skip
        words = f"{row['upstream']} is {row['state'].replace('_', ' ')}"
        if first is not None:
            n = sum(first["counters"].values())
            missed = f"{n:,} × {first['reason']}" if first["reason"] else plural(n, "miss", "misses")
            words += f" since {moment(first['at'], around.view.clock)} after {missed}"
        if trials:
            times = ", ".join(str(moment(c["at"], around.view.clock)) for c in reversed(trials[:3]))
            words += f" and failed its trials at {times}"
        said.append(words)
    return "; ".join(said) + "."


async def _choices(around: Around) -> list[Choices]:
    """Return the rules in force by how often they fired in the last days, and upstreams by how often they opened."""
    start = around.view.span.end - timedelta(days=HISTORY_DAYS)
    history, rows = await together(around.rows("alert_history", from_=iso(start)), around.rows("breakers"))
    fired = [(rule.name, sum(row["rule"] == rule.name for row in history)) for rule in around.rules]
    return [
        choices.choices(around, "rule", f"fired in {HISTORY_DAYS} days", fired),
        choices.choices(around, "upstream", "opened", choices.summed(rows, "upstream", "n_opened")),
    ]


def chips(around: Around) -> list[Chip]:
    """Return the filters in force."""
    view = around.view
    found = [Chip(name, view.get(name), view.here(**{name: None})) for name in ("rule", "upstream") if view.get(name)]
    return found + [
        Chip("network", net, view.with_networks([n for n in view.networks if n != net])) for net in view.networks
    ]


_RULES = Panel(
    name="rules",
    title="Which alerts fire, who was told?",
    build=rules,
    template="alerts_rules.html",
    tall=480,
    on="alerts",
    questions=("alerts_firing", "alert_history"),
)
_BREAKERS = Panel(
    name="breakers",
    title="When was each breaker open, and why?",
    build=breakers,
    template="alerts_breakers.html",
    tall=240,
    on="breakers",
    compares="below",
    questions=("breakers", "breaker_history"),
)
_CHANGES = Panel(
    name="changes",
    title="What changed, and what did it do?",
    build=changes,
    template="alerts_changes.html",
    is_slow=True,
    tall=240,
    on="breakers",
    questions=("breaker_history",),
)
_CHOICES = choices.panel(_choices, ("alert_history", "breakers"))
PAGE = Page(
    name="alerts",
    path="/alerts",
    title="Breakers, alerts",
    default_from="now-24h",
    own=("rule", "upstream"),
    can_be_live=True,
    lead=lead,
    chips=chips,
    panels=(_RULES, _BREAKERS, _CHANGES, _CHOICES),
)
BREAKERS = Page(
    name="breakers",
    path="/breakers",
    title="Breakers",
    default_from="now-24h",
    own=("rule", "upstream"),
    can_be_live=True,
    here="alerts",
    lead=lead,
    chips=chips,
    panels=(_BREAKERS, _CHANGES, _RULES, _CHOICES),
)
