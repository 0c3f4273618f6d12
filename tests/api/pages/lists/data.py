"""The numbers of Data."""

from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from api.pages.figures import Figure, Moment, duration, exact, moment, percent, plural, size
from tests.api.pages.full import NO_TIME, Full, Rows
from tests.api.pages.listed import Entry, Timed, at, by, facts, parts, table, when
from tests.api.pages.lists.series import hours_by_api, hours_by_sql, start_of
from tests.api.pages.lists.tiles import (
    age_of,
)

DAY = 24
COLUMNS = {
    "Accepted": "accepted",
    "Shipped": "shipped",
    "Stored": "stored",
    "Distinct": "distinct_stored",
    "Dead letters": "dead_lettered",
}
WORDS = {
    "log_written_events": "events written",
    "log_consumed_events": "events consumed",
    "log_dropped_events": "events dropped",
    "log_unread_ratio": "of the log is unread",
    "clock_skew_seconds": "clock against ours",
}


def hours(full: Full, rows: list[dict[str, Any]]) -> Rows:
    return {
        "no time" if row["hour"] == NO_TIME else str(moment(row["hour"], full.now)): {
            "Hour": row["hour"],
            **{title: row[name] for title, name in COLUMNS.items()},
        }
        for row in rows
    }


def whole(full: Full, rows: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many hours are over, and how many of them do not add up."""
    over = [row for row in rows if row["hour"] <= full.now - timedelta(minutes=65)]
    odd = [
        row
        for row in over
        if not row["accepted"] == row["shipped"] == row["stored"] + row["dead_lettered"]
        or row["stored"] != row["distinct_stored"]
    ]
    return len(over), len(odd)


def stages_by_api(full: Full) -> tuple[Any, ...]:
    (row,) = full.asked("stages")
    return when(row["last_stored_at"]), row["n_logs"], row["n_unread"], row["n_dropped"], row["n_dead"]


def stages_by_sql(full: Full) -> tuple[Any, ...]:
    (row,) = full.sql(
        "SELECT max(at) AS at, uniqExact(log_id, topic, partition) AS n_logs,"
        " sum(log_end > next ? log_end - next : 0) AS n_unread,"
        " sum(dropped) AS n_dropped FROM gnomon.progress"
    )
    (dead,) = full.sql("SELECT count() AS n FROM gnomon.dead_letters")
    return row["at"], row["n_logs"], row["n_unread"], row["n_dropped"], dead["n"]


def gauges_by_api(full: Full) -> list[tuple[str, str, float]]:
    rows = full.asked("gauges_now", from_=start_of(full, 1800), to=full.to)
    return [(row["name"], row["subject"], row["value"]) for row in rows]


def gauges_by_sql(full: Full) -> list[tuple[str, str, float]]:
    rows = full.sql("SELECT name, subject, value FROM gnomon.gauges ORDER BY at DESC LIMIT 1 BY name, subject")
    return sorted((row["name"], row["subject"], row["value"]) for row in rows)


def stages(said: tuple[Any, ...], gauges: list[tuple[str, str, float]]) -> Rows:
    stored_at, n_logs, n_unread, n_dropped, n_dead = said
    found: Rows = {
        "": {"Newest row": stored_at, "Logs read": n_logs, "Waiting": n_unread, "Lost": n_dropped, "Put aside": n_dead}
    }
    for name, subject, value in gauges:
        title = f"log {subject}" if name.startswith("log_") else subject
        again = sum(title in row for row in found.values())
        found.setdefault(str(again or ""), {})[title] = (name, value)
    return found


def gauge(raw: Any) -> Markup:
    name, value = raw
    if name.endswith("_ratio"):
        shown = percent(value)
    elif name.endswith("_seconds"):
        shown = Figure(f"{value:.3g} s", repr(value))
    else:
        shown = Figure(f"{value:,.0f}", repr(value))
    return Markup("{} {}").format(shown, WORDS[name])


def said_of(unit: str) -> Any:
    return lambda raw: Markup("{} " + unit).format(exact(raw))


GAPS = """
SELECT concat(proc, ' | ', toString(previous + 1)) AS row, previous + 1 AS "From", seq - 1 AS "To",
    seq - previous - 1 AS "Events", (before_at, after_at) AS "Between", proc AS "Process"
FROM (SELECT proc, seq, at AS after_at, any(seq) OVER one AS previous, any(at) OVER one AS before_at
    FROM gnomon.events WHERE proc != ''
    WINDOW one AS (PARTITION BY proc ORDER BY seq ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING))
WHERE seq > previous + 1 AND previous > 0
"""


def first_words(raw: Any, now: datetime) -> str:
    (n_over, n_odd), (stored_at, _, n_unread, n_dropped, n_dead) = raw
    first = (
        f"{n_odd:,} of {plural(n_over, 'hour')} do not add up."
        if n_odd
        else f"Every hour that is over is whole: {n_over:,}."
    )
    waiting = f"{n_unread:,} events wait," if n_unread else "Nothing waits,"
    lost = f"{n_dropped:,} were lost" if n_dropped else "nothing was lost"
    age = duration(age_of(stored_at, now))
    return f"{first} The newest row is {age} old. {waiting} {lost}, {plural(n_dead, 'dead letter')}."


DATA = [
    Entry(
        name="data, first sentence",
        address=at("/data"),
        panel="lead",
        read=parts(lead=lambda part: part.one("p", "lead")),
        shown={"lead": Timed(first_words)},
        api=lambda full: {"": {"lead": (whole(full, hours_by_api(full, DAY)), stages_by_api(full))}},
        sql=lambda full: {"": {"lead": (whole(full, hours_by_sql(full, DAY)), stages_by_sql(full))}},
    ),
    Entry(
        name="hours",
        address=at("/data"),
        panel="hours",
        read=table(),
        shown={
            "Hour": Timed(lambda raw, now: Moment("no time", "") if raw == NO_TIME else moment(raw, now)),
            **dict.fromkeys(COLUMNS, exact),
        },
        api=lambda full: hours(full, hours_by_api(full, DAY)),
        sql=lambda full: hours(full, hours_by_sql(full, DAY)),
    ),
    Entry(
        name="stages",
        address=at("/data"),
        panel="stages",
        read=facts,
        shown={
            "Newest row": Timed(
                lambda raw, now: Markup("{} old, stored {}").format(
                    duration(age_of(raw, now)), moment(raw, now, with_seconds=True)
                )
            ),
            "Logs read": exact,
            "Waiting": said_of("events"),
            "Lost": said_of("events, because a log was full"),
            "Put aside": said_of("dead letters, kept"),
            "log 0": gauge,
            "clickhouse": gauge,
        },
        api=lambda full: stages(stages_by_api(full), gauges_by_api(full)),
        sql=lambda full: stages(stages_by_sql(full), gauges_by_sql(full)),
    ),
    Entry(
        name="gaps",
        address=at("/data"),
        panel="gaps",
        read=table(key=("Process", "From")),
        shown={
            "Process": str,
            "From": exact,
            "To": exact,
            "Events": exact,
            "Between": Timed(
                lambda raw, now: Markup("{} and {}").format(*(moment(one, now, with_seconds=True) for one in raw))
            ),
        },
        api=lambda full: by(
            full.asked("sequence_gaps", from_=start_of(full, 86400), to=start_of(full, 300)),
            "proc first_missing",
            {
                "Process": "proc",
                "From": "first_missing",
                "To": "last_missing",
                "Events": "n",
                "Between": lambda r: (when(r["before_at"]), when(r["after_at"])),
            },
        ),
        sql=lambda full: full.rows(GAPS),
    ),
    Entry(
        name="dead letters",
        address=at("/data"),
        panel="dead",
        read=table(key=("Reason",)),
        shown={"At": Timed(lambda raw, now: moment(raw, now, with_seconds=True)), "Detail": str, "Bytes": size},
        api=lambda full: by(
            full.asked("dead_letters", from_=start_of(full, 86400), to=full.to),
            "reason",
            {"At": lambda r: when(r["at"]), "Detail": "detail", "Bytes": "n_bytes"},
        ),
        sql=lambda full: full.rows(
            'SELECT reason AS row, at AS "At", detail AS "Detail", length(bytes) AS "Bytes" FROM gnomon.dead_letters'
        ),
    ),
]
