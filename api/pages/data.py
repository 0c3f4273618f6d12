"""Data: is everything that was accepted stored, once; where does it stop; what could not be stored."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from api.pages import figures
from api.pages.figures import duration, iso, moment, number, percent, plural
from api.pages.frame import SETTLED_AFTER
from api.pages.overview import verdict_of
from api.pages.page import Around, Page, Panel, Shown, State

_GAUGES: Mapping[str, str] = {
    "log_written_events": "events written",
    "log_consumed_events": "events consumed",
    "log_dropped_events": "events dropped",
    "log_unread_ratio": "of the log is unread",
    "clock_skew_seconds": "clock against ours",
    "rule_failing_seconds": "rule could not be asked for",
}


async def hours(around: Around) -> Shown | State:
    view = around.view
    rows = await around.rows("reconcile")
    if not rows:
        return State("Nothing was accepted in this range", "No event came, so nothing can be missing.")
    shown = []
    for row in reversed(rows):
        is_known = row["hour"].year > 1970
        is_running = is_known and view.now < row["hour"] + timedelta(hours=1) + SETTLED_AFTER
        shown.append(
            {
                **row,
                "at": moment(row["hour"], view.clock) if is_known else figures.Moment("no time", ""),
                "verdict": verdict_of(row, is_running=is_running),
            }
        )
    return {"rows": shown, "found": rows, "now": view.now}


async def stages(around: Around) -> Shown | State:
    view = around.view
    (row,) = await around.rows("stages")
    gauges = await around.rows("gauges_now", from_=iso(view.now - timedelta(minutes=30)), to=iso(view.now))
    stored = row["last_stored_at"]
    is_known = stored.year > 1970
    age = (view.now - stored).total_seconds() if is_known else None
    return {
        "row": row,
        "stored": moment(stored, view.clock, with_seconds=True) if is_known else None,
        "age": duration(max(age, 0.0)) if age is not None else None,
        "is_stale": age is not None and age > 60,
        "gauges": [
            {"what": _GAUGES.get(one["name"], one["name"]), "subject": _subject(one), "value": _value(one)}
            for one in gauges
        ],
    }


def _subject(gauge: Mapping[str, Any]) -> str:
    """Return whose value it is; logs have numbers for names."""
    return f"log {gauge['subject']}" if gauge["name"].startswith("log_") else str(gauge["subject"])


def _value(gauge: Mapping[str, Any]) -> figures.Figure:
    if gauge["name"].endswith("_ratio"):
        return percent(gauge["value"])
    if gauge["name"].endswith("_seconds"):
        return figures.Figure(f"{gauge['value']:.3g} s", repr(gauge["value"]))
    if gauge["name"].endswith("_events"):
        return figures.Figure(f"{gauge['value']:,.0f}", repr(gauge["value"]))
    return number(gauge["value"])


async def gaps(around: Around) -> Shown | State:
    end = min(around.view.span.end, around.view.now - timedelta(minutes=5))
    if end <= around.view.span.start:
        return State("Too early to tell", "What is younger than five minutes may be on its way.")
    rows = await around.rows("sequence_gaps", to=iso(end))
    if not rows:
        return State("No gap", "Each process numbers its events; every number up to five minutes ago is there.")
    return {
        "rows": [
            {**row, "before": moment(row["before_at"], around.view.clock, with_seconds=True),
             "after": moment(row["after_at"], around.view.clock, with_seconds=True)}
            for row in rows[:50]
        ]
    }  # fmt: skip


async def dead(around: Around) -> Shown | State:
    rows = await around.rows("dead_letters", limit="50")
    if not rows:
        return State("No dead letter in this range", "Every record could be read and stored.")
    return {"rows": [{**row, "when": moment(row["at"], around.view.clock, with_seconds=True)} for row in rows]}


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return whether the hours are whole, how old the data is, and what is lost."""
    table, state = shown.get("hours"), shown.get("stages")
    if table is None or isinstance(table, State):
        first = "Nothing was accepted in this range."
    else:
        settled = table["now"] - timedelta(hours=1) - SETTLED_AFTER
        over = [row for row in table["found"] if row["hour"] <= settled]
        odd = [row for row in over if not row["is_whole"]]
        if odd:
            first = f"{len(odd):,} of {plural(len(over), 'hour')} do not add up."
        else:
            first = f"Every hour that is over is whole: {len(over):,}." if over else "No hour is over yet."
    if state is None or isinstance(state, State):
        return f"{first} How old the data is cannot be told.", ""
    row = state["row"]
    said = f" The newest row is {state['age']} old." if state["age"] is not None else " Nothing is stored yet."
    said += f" {row['n_unread']:,} events wait," if row["n_unread"] else " Nothing waits,"
    lost = f"{row['n_dropped']:,} were lost" if row["n_dropped"] else "nothing was lost"
    return f"{first}{said} {lost}, {plural(row['n_dead'], 'dead letter')}.", ""


PAGE = Page(
    name="data",
    path="/data",
    title="Data",
    default_from="now-24h",
    can_be_live=True,
    lead=lead,
    panels=(
        Panel(name="stages", title="How far is it stored?", build=stages, template="data_stages.html", tall=160,
              on="requests", questions=("stages", "gauges_now")),
        Panel(name="hours", title="Is everything there, once?", build=hours, template="data_hours.html", tall=640,
              questions=("reconcile",)),
        Panel(name="gaps", title="Which events never arrived?", build=gaps, template="data_gaps.html", is_slow=True,
              tall=160, questions=("sequence_gaps",)),
        Panel(name="dead", title="What could not be stored?", build=dead, template="data_dead.html", is_slow=True,
              tall=160, questions=("dead_letters",)),
    ),
)  # fmt: skip
