"""
Overview: is something wrong, since when, how much, what next?

Its first sentence must do at 3 a.m.: what fires and since when, and whether clients are served.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.pages import figures, heads, known, steps
from api.pages.address import HOURS
from api.pages.charts import sparks
from api.pages.figures import duration, iso, moment, percent, plural, rate, usd
from api.pages.frame import SETTLED_AFTER
from api.pages.page import Around, Page, Panel, Shown, State, together
from api.pages.tiles import tiles
from api.pages.timeline import N_MISMATCH_STEPS, strips
from api.pages.told import Told
from api.pages.watched import NOW_SECONDS, listed, step_of
from api.pages.watched import firing as firing_now

# --- alerts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One firing alert with its evidence."""

    told: Told
    since: figures.Moment
    age: str
    spark: Markup
    evidence: str
    evidence_of: str


async def alerts(around: Around) -> Shown | State:
    firing = await firing_now(around)
    rows = [
        AlertRow(
            one,
            moment(one.since, around.view.clock),
            str(duration((around.view.now - one.since).total_seconds())),
            *await _evidence(one, around),
        )
        for one in firing
    ]
    last = None
    if not rows:
        changes = await around.rows("alert_changes", from_="now-30d", state="resolved", limit="1")
        last = changes[0] if changes else None
    return {
        "rows": rows,
        "last": last
        and {"rule": last["rule"], "subject": last["subject"], "at": moment(last["at"], around.view.clock)},
        "firing": firing,
        "n_rules": len(around.rules),
    }


async def _evidence(one: Told, around: Around) -> tuple[Markup, str, str]:
    """Return the trend of what fires, what is known of its cause, and what that is counted over."""
    match one.kind:
        case "head":
            lags = await heads.lags(around, step_of(around))
            mine = lags.get((one.network, one.upstream))
            peers = [up for (net, up), lag in lags.items() if net == one.network and lag.now == 0]
            limit = float(heads.LIMIT_BLOCKS)
            spark = sparks.spark(mine.values if mine else [], f"lag of {one.upstream} in blocks", limit=limit)
            agree = "agrees" if len(peers) == 1 else "agree"
            return spark, f"{listed(peers)} {agree}" if peers else "no other head is known", "peers at the head"
        case "breaker":
            rows = await around.rows("breakers")
            row = next((r for r in rows if (r["network"], r["upstream"]) == (one.network, one.upstream)), None)
            changes = await heads.breaker_changes(around)
            found = heads.open_spans(changes, one.network, one.upstream, around.view.span)
            spark = sparks.spans(found, f"breaker of {one.upstream} over the range", width=110, height=22)
            misses = sorted((row["misses"] if row else {}).items(), key=lambda item: -item[1])[:2]
            words = ", ".join(f"{n:,} × {reason}" for reason, n in misses) or "no miss in the range"
            return spark, words, f"misses of {one.upstream}, {around.view.words_within()}"
        case "spend":
            step = step_of(around)
            rows = await around.rows("spend_in_steps", step=str(step))
            values = steps.series(rows, "usd", steps.count_of(around.view.span, step))
            causes = await around.rows("spend_by_cause")
            paid = [row for row in causes if row["usd"] and row["cause"]]
            total = sum((row["usd"] for row in paid), Decimal(0))
            by_cause: dict[str, Decimal] = {}
            for row in paid:
                by_cause[row["cause"]] = by_cause.get(row["cause"], Decimal(0)) + row["usd"]
            top = sorted(by_cause.items(), key=lambda item: -item[1])[:2]
            words = ", ".join(f"{cause} {percent(float(part / total))}" for cause, part in top)
            spark = sparks.spark(values, "spend in the range", css_class="ln-bad")
            return spark, words or "no paid call has a cause", f"cause of paid calls, {around.view.words_within()}"
        case "difference":
            step = step_of(around, N_MISMATCH_STEPS)
            rows = await around.rows("divergence_in_steps", step=str(step))
            mine_rows = [r for r in rows if (r["network"], r["shadow_upstream"]) == (one.network, one.upstream)]
            values = steps.series(mine_rows, "mismatch", steps.count_of(around.view.span, step))
            n, k = sum(r["n"] for r in mine_rows), sum(r["mismatch"] for r in mine_rows)
            spark = sparks.spark(values, f"differing pairs of {one.upstream}", css_class="ln-b")
            return spark, rate(k, n).in_words, f"final pairs, {around.view.words_within()}"
    return sparks.spark([], ""), f"{one.value}, limit {one.limit}", "the value it fired with"


# --- who serves ------------------------------------------------------------------------------------------------------

MAX_LINES = 13
"""Upstreams and networks that the panel names; the rest, those without trouble that are called least, is one line."""


@dataclass(frozen=True, slots=True)
class Serving:
    """One upstream."""

    id: str
    href: str
    tier: str
    state: str
    share: figures.Figure | None
    """None: it only mirrors."""
    n: figures.Figure
    errors: figures.Figure
    p99: figures.Figure
    lag: int | None
    is_lagging: bool
    today: figures.Figure
    is_own: bool


async def serving(around: Around) -> Shown | State:
    view = around.view
    start = view.span.end - timedelta(seconds=NOW_SECONDS)
    midnight = view.span.end.replace(hour=0, minute=0, second=0, microsecond=0)
    health, breakers, lags, spend = await together(
        around.rows("upstream_health", from_=iso(start)),
        around.rows("breakers"),
        heads.lags(around, step_of(around)),
        around.rows("spend_by_upstream", from_=iso(midnight)),
    )
    configured = known.upstreams(around.settings)
    if not configured:
        return State(
            "No upstream is configured", "Add one to `projects`, then reload.", code="upstreams: [{id: …, endpoint: …}]"
        )
    healths = {(row["network"], row["upstream"]): row for row in health}
    states = {(row["network"], row["upstream"]): row["state"] for row in breakers}
    paid = {(row["network"], row["upstream"]): row["usd"] for row in spend}
    groups: dict[str, list[Serving]] = {}
    for one in configured:
        if view.networks and one.network not in view.networks:
            continue
        key = (one.network, one.id)
        row = healths.get(key)
        total = sum(h["n"] for k, h in healths.items() if k[0] == one.network and h["tier"] != "shadow")
        n = row["n"] if row else 0
        lag = lags.get(key)
        groups.setdefault(one.network, []).append(
            Serving(
                id=one.id,
                href=view.to(f"/upstreams/{one.id}"),
                tier=one.tier,
                state=states.get(key, "closed"),
                share=None if one.tier == "shadow" else percent(n / total if total else None),
                n=figures.count(n),
                errors=percent(row["n_failed"] / row["n"] if row else None),
                p99=figures.number(row["p99_us"] / 1000 if row else None),
                lag=lag.now if lag else None,
                is_lagging=bool(lag and lag.now is not None and lag.now > heads.LIMIT_BLOCKS),
                today=usd(paid.get(key, Decimal(0))),
                is_own=one.is_own,
            )
        )
    order = sorted(groups, key=lambda net: (not any(_is_in_trouble(one) for one in groups[net]), net))
    shown, n_left = _most_telling({net: groups[net] for net in order})
    return {
        "groups": [(known.label(net), rows) for net, rows in shown.items()],
        "n_left": n_left,
        "all": view.to("/upstreams"),
    }


def _is_in_trouble(one: Serving) -> bool:
    return one.state != "closed" or one.is_lagging


def _most_telling(groups: Mapping[str, list[Serving]]) -> tuple[dict[str, list[Serving]], int]:
    """
    Return as many upstreams as one look takes, in their order, and how many are left out: healthy ones alone.

    Args:
        groups: by network, the one in trouble first.
    """
    rows = [one for group in groups.values() for one in group]
    n_lines = len(rows) + len(groups)
    if n_lines <= MAX_LINES:
        return dict(groups), 0
    # One line less, for the one that says how many are left out.
    by_need = sorted(rows, key=lambda one: (not _is_in_trouble(one), -float(one.n.value or 0)))
    kept = by_need[: max(MAX_LINES - 1 - len(groups), sum(_is_in_trouble(one) for one in rows))]
    found = {net: [one for one in group if one in kept] for net, group in groups.items()}
    return {net: group for net, group in found.items() if group}, len(rows) - len(kept)


# --- differences, completeness ---------------------------------------------------------------------------------------


async def differences(around: Around) -> Shown | State:
    view = around.view
    start = view.span.end - timedelta(days=7)
    rows = await around.rows("differences", from_=iso(start))
    if not rows:
        return await no_difference(around, start)
    shown = sorted(rows, key=_by_news(view.span.end))[:4]
    return {
        "rows": [
            {**row, "href": view.to(f"/divergence/{row['finding']}"), "since": figures.day(row["first_at"], view.clock),
             "first": moment(row["first_at"], view.clock), "path": figures.shown_path(row["generic_path"])}
            for row in shown
        ],
        "n": len(rows),
        "all": view.to("/divergence"),
    }  # fmt: skip


def _by_news(now: datetime) -> Any:
    """Return the order of a list that begins with what is worst and newest: data loss, then what grew today."""

    def key(row: Mapping[str, Any]) -> tuple[bool, float, int]:
        days = row["days"]
        before = sum(days[:-1]) / max(len(days) - 1, 1)
        return (row["class"] != "empty_vs_data", -(days[-1] - before) / max(before, 1.0), -row["n_pairs"])

    return key


async def no_difference(around: Around, start: datetime) -> State:
    """Return which kind of nothing it is that no difference was found: not set up, nothing compared, all equal."""
    if not any(one.tier == "shadow" for one in known.upstreams(around.settings)):
        return State(
            "No shadow upstream yet", "Set this on an upstream, then reload the proxy.", code="shadow: {enabled: true}"
        )
    rows = await around.rows("divergence_by_shadow", from_=iso(start))
    n, masked = sum(row["n_judged"] for row in rows), sum(row["identical_masked"] for row in rows)
    if n == 0:
        return State("Nothing compared in this range", "No pair on final data has a verdict.")
    also = f", {masked:,} of them after masks" if masked else ""
    return State(f"No difference in {duration((around.view.span.end - start).total_seconds())}",
                 f"{n:,} pairs compared on final data, all identical or tolerated{also}.")  # fmt: skip


async def complete(around: Around) -> Shown | State:
    now = around.view.now
    rows = await around.rows("reconcile", from_=iso(now - timedelta(hours=2)), to=iso(now))
    hours = [row for row in reversed(rows) if row["hour"].year > 1970][:3]
    if not hours:
        return State("No event in three hours", "Nothing was accepted, so nothing can be missing.")
    return {
        "rows": [
            {**row, "at": moment(row["hour"], around.view.clock),
             "verdict": verdict_of(row, is_running=now < row["hour"] + timedelta(hours=1) + SETTLED_AFTER)}
            for row in hours
        ]
    }  # fmt: skip


def verdict_of(row: Mapping[str, Any], *, is_running: bool) -> tuple[str, str]:
    """Return what an hour's counts say, and its tone: equal, in flight, lost, doubled."""
    if row["is_whole"]:
        return "equal", "t2"
    doubled = row["stored"] - row["distinct_stored"]
    if doubled:
        return f"{doubled:,} doubled", "bad"
    missing = row["accepted"] - row["stored"] - row["dead_lettered"]
    if is_running and missing > 0:
        return f"{missing:,} in flight", "dim"
    if is_running and row["distinct_stored"] + row["dead_lettered"] > row["shipped"]:
        return "being counted", "dim"
    return f"{missing:,} missing" if missing > 0 else f"{-missing:,} too many", "bad"


# --- the page --------------------------------------------------------------------------------------------------------


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return the first sentence: what fires and since when, and whether clients are served."""
    content = shown.get("alerts")
    if isinstance(content, State) or content is None:
        first = "Whether something fires cannot be told."
    elif firing := content["firing"]:
        oldest = min(one.since for one in firing)
        age = duration((around.view.now - oldest).total_seconds())
        which = "since" if len(firing) == 1 else "the oldest since"
        first = f"{plural(len(firing), 'alert')} firing, {which} {moment(oldest, around.view.clock)} ({age})."
    else:
        first = "No alert fires."
    numbers = shown.get("tiles")
    if isinstance(numbers, State) or numbers is None:
        return f"{first} How clients are served cannot be told.", ""
    return f"{first} {numbers['served']}", ""


PAGE = Page(
    name="overview",
    path="/",
    title="Overview",
    default_from=HOURS,
    can_be_live=True,
    lead=lead,
    panels=(
        Panel(name="alerts", title="Alerts firing", build=alerts, template="overview_alerts.html", is_bare=True,
              css="stack-gap", on="alerts", questions=("alerts_firing",)),
        Panel(name="tiles", title="Six numbers", build=tiles, template="overview_tiles.html", is_bare=True,
              on="requests", compares="below"),
        Panel(name="strips", title="What changed, on one clock", build=strips, template="overview_strips.html",
              tall=360, is_slow=True, on="requests", compares="dotted",
              questions=("service_over_time", "spend_in_steps", "head_lag_in_steps")),
        Panel(name="strips-table", title="What changed, step by step", build=strips,
              template="overview_strips_table.html", is_apart=True),
        Panel(name="serving", title="Who serves now", build=serving, template="overview_serving.html", tall=360,
              is_slow=True, on="requests breakers", questions=("upstream_health",)),
        Panel(name="differences", title="New or growing differences", build=differences,
              template="overview_differences.html", on="comparisons", is_slow=True, tall=160, is_still=True,
              questions=("differences",)),
        Panel(name="complete", title="Is the data itself complete?", build=complete, template="overview_complete.html",
              is_slow=True, tall=160, questions=("reconcile",)),
    ),
)  # fmt: skip
