"""The numbers of Overview."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.pages.figures import (
    count,
    day,
    duration,
    exact,
    moment,
    number,
    percent,
    shown_path,
    usd,
)
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, Timed, at, by, joined, parts, table, when
from tests.api.pages.listed import usd as money
from tests.api.pages.lists.firing import (
    FIRING,
    WORDS,
    alerts,
    alerts_by_api,
    alerts_by_sql,
    evidence,
    trend,
)
from tests.api.pages.lists.series import (
    FAILED,
    FOR_CLIENTS,
    HOURS,
    JUDGED,
    NOW,
    STEP,
    WEEK,
    Series,
    budgets_by_api,
    budgets_by_sql,
    hours_by_api,
    hours_by_sql,
    lags_by_api,
    lags_by_sql,
    last_of,
    start_of,
)
from tests.api.pages.lists.strips import (
    SERIES,
    drawn,
    pointed,
    series,
    step_by_step,
    strips_by_api,
    strips_by_sql,
)
from tests.api.pages.lists.tiles import (
    TILES,
    _month,
    age_of,
    data_by_api,
    data_by_sql,
    first_words,
    head_by_api,
    head_by_sql,
    mismatches_by_sql,
    paid_by_api,
    paid_by_sql,
    served_by_api,
    served_by_sql,
    tiles,
    worst_shadow,
)
from tests.api.pages.reading import Node

CALLS = f"""
SELECT upstream AS row, count() AS "Calls", countIf({FAILED}) / count() AS "Errors",
    toUInt32(quantileExactIf(0.99)(duration_us, outcome != 'cancelled')) / 1000 AS "p99 ms"
FROM gnomon.attempts WHERE {FOR_CLIENTS} AND {NOW}
GROUP BY upstream
"""


# --- who serves ------------------------------------------------------------------------------------------------------


def _shares(calls: Rows, full: Full) -> Rows:
    """Return each one's part of its network's calls, shadows left out; None: a shadow."""
    tier, network = full.tiers, full.networks
    found: Rows = {}
    for name in full.upstreams:
        total = sum(
            row["Calls"] for key, row in calls.items() if network.get(key) == network[name] and tier[key] != "shadow"
        )
        share = calls.get(name, {"Calls": 0})["Calls"] / total if total else None
        found[name] = {"Share": "mirror" if tier[name] == "shadow" else share}
    return found


def _lags(series: dict[str, Series]) -> Rows:
    return {name.partition(" | ")[2]: {"Lag, blk": last_of(values)} for name, values in series.items()}


def serving_by_api(full: Full) -> Rows:
    rows = full.asked("upstream_health", from_="now-5m", to=full.to)
    calls = by(
        rows,
        "upstream",
        {"Calls": "n", "Errors": lambda r: r["n_failed"] / r["n"], "p99 ms": lambda r: r["p99_us"] / 1000},
    )
    spend = full.asked("spend_by_upstream", from_=full.midnight, to=full.to)
    paid = by([row for row in spend if row["vendor"]], "upstream", {"Today": lambda r: money(r["usd"])})
    return _serving(full, calls, _lags(lags_by_api(full, HOURS, STEP)), paid)


def serving_by_sql(full: Full) -> Rows:
    paid = full.rows(
        "SELECT upstream AS row, sum(usd) AS \"Today\" FROM gnomon.attempts WHERE vendor != ''"
        " AND at >= toStartOfDay({to:DateTime64(3)}) AND at < {to:DateTime64(3)} GROUP BY upstream"
    )
    return _serving(full, full.rows(CALLS), _lags(lags_by_sql(full, HOURS, STEP)), paid)


def _serving(full: Full, calls: Rows, lags: Rows, paid: Rows) -> Rows:
    always = {"Calls": 0, "Errors": None, "p99 ms": None, "Lag, blk": None, "Today": Decimal(0)}
    found = joined(_shares(calls, full), calls, lags, paid, always=always, keys=full.upstreams)
    for name, row in found.items():
        if not full.vendors[name]:
            row["Today"] = "own"
    return found


def blocks(lag: int | None) -> object:
    """Return a lag as tables show it."""
    return "unknown" if lag is None else exact(lag)


def or_word(shown: Any) -> Any:
    """Return how a number is shown in whose place a word may stand."""
    return lambda value: value if isinstance(value, str) else shown(value)


# --- differences, completeness ---------------------------------------------------------------------------------------

DIFFERENCES = f"""
SELECT concat(f.network, ' ', f.method, ' ', f.shadow_upstream, ' ', f.generic_path, ' ', f.class) AS row,
    count(DISTINCT f.request_id) AS n_pairs, min(f.at) AS first_at,
    arrayMap(ago -> countEqual(groupArray(intDiv(dateDiff('second', f.at, {{to:DateTime64(3)}}), 86400)), ago),
        [6, 5, 4, 3, 2, 1, 0]) AS days, any(m.n) AS n_judged
FROM gnomon.findings AS f
INNER JOIN gnomon.comparisons AS c ON c.request_id = f.request_id AND c.shadow_upstream = f.shadow_upstream
INNER JOIN (SELECT network, method, shadow_upstream, count() AS n FROM gnomon.comparisons
    WHERE finality = 'finalized' AND {JUDGED} AND {WEEK} GROUP BY network, method, shadow_upstream) AS m
    ON m.network = f.network AND m.method = f.method AND m.shadow_upstream = f.shadow_upstream
WHERE c.finality = 'finalized' AND c.outcome = 'mismatch'
    AND f.at >= {{to:DateTime64(3)}} - INTERVAL 7 DAY AND f.at < {{to:DateTime64(3)}}
GROUP BY row
"""


def _news(rows: list[dict[str, Any]]) -> Rows:
    """Return the four that a page shows: data loss first, then what grew most on the last day."""

    def order(row: dict[str, Any]) -> tuple[bool, float, int]:
        usual = sum(row["days"][:-1]) / 6
        return "empty_vs_data" not in row["row"], -(row["days"][-1] - usual) / max(usual, 1.0), -row["n_pairs"]

    found: Rows = {}
    for row in sorted(rows, key=order)[:4]:
        _, method, shadow, path, kind = row["row"].split(" ")
        key = f"{method}{shown_path(path)} | {kind} | {shadow}"
        found[key] = {"Pairs": (row["n_pairs"], row["n_judged"]), "Since": row["first_at"]}
    return found


def differences_by_api(full: Full) -> Rows:
    rows = full.asked("differences", from_=start_of(full, 7 * 86400), to=full.to)
    names = ("network", "method", "shadow_upstream", "generic_path", "class")
    return _news([{**r, "row": " ".join(r[n] for n in names), "first_at": when(r["first_at"])} for r in rows])


def differences(panel: Node) -> Cells:
    """Return the rows by method with path, kind and shadow."""
    columns = [th.text for th in panel.one("thead").all("th")]
    found: Cells = {}
    for cells in panel.rows():
        found[f"{cells[0].text} | {cells[2].text} | {cells[3].text}"] = dict(zip(columns, cells, strict=True))
    return found


def whole_hours(full: Full, hours: list[dict[str, Any]]) -> Rows:
    """Return the last three hours with their counts."""
    names = {"Accepted": "accepted", "Shipped": "shipped", "Stored": "stored", "Distinct": "distinct_stored"}
    known_hours = [row for row in hours if row["hour"].year > 1970][-3:]
    return {
        str(moment(row["hour"], full.now)): {"Hour": row["hour"], **{title: row[name] for title, name in names.items()}}
        for row in known_hours
    }


OVERVIEW = [
    Entry(
        name="first sentence",
        address=at("/"),
        panel="lead",
        read=parts(lead=lambda part: part.one("p", "lead")),
        shown={"lead": Timed(first_words)},
        api=lambda full: {
            "": {"lead": ([when(r["fired_at"]) for r in full.get("/v1/alerts/firing")["items"]], served_by_api(full))}
        },
        sql=lambda full: {
            "": {
                "lead": (
                    [
                        row["fired_at"]
                        for row in sorted(full.rows(FIRING).values(), key=lambda row: row["fired_at"], reverse=True)
                    ],
                    served_by_sql(full),
                )
            }
        },
    ),
    Entry(
        name="alerts firing",
        address=at("/"),
        panel="alerts",
        read=alerts,
        shown={
            "what": lambda raw: WORDS[raw[0]].format(*raw[1:]),
            "since": Timed(
                lambda raw, now: Markup("<b>{}</b>{}").format(
                    moment(raw, now), str(duration((now - raw).total_seconds()))
                )
            ),
            "trend": Timed(trend),
            "evidence": evidence,
        },
        api=alerts_by_api,
        sql=alerts_by_sql,
    ),
    Entry(
        name="six numbers",
        address=at("/"),
        panel="tiles",
        read=tiles,
        shown=TILES,
        api=lambda full: {
            "": {
                "Requests": served_by_api(full),
                "Mismatch on final data": worst_shadow(
                    full.asked("divergence_by_shadow", from_=start_of(full, 7 * 86400), to=full.to)
                ),
                "Paid today": paid_by_api(full),
                "Month": _month(budgets_by_api(full)),
                "Worst primary head": head_by_api(full),
                "Data": data_by_api(full),
            }
        },
        sql=lambda full: {
            "": {
                "Requests": served_by_sql(full),
                "Mismatch on final data": worst_shadow(mismatches_by_sql(full)),
                "Paid today": paid_by_sql(full),
                "Month": _month(budgets_by_sql(full)),
                "Worst primary head": head_by_sql(full),
                "Data": data_by_sql(full),
            }
        },
        near={"Month": 1e-4},
    ),
    Entry(
        name="what changed",
        address=at("/"),
        panel="strips",
        read=parts(
            wide=lambda part: part.one("div", "only-wide"),
            narrow=lambda part: part.one("div", "only-phone"),
            note=lambda part: part.one("span", "note"),
        ),
        shown={
            "wide": Timed(lambda raw, now: drawn(raw, now, width=678, is_narrow=False)),
            "narrow": Timed(lambda raw, now: drawn(raw, now, width=342, is_narrow=True)),
            "note": lambda n_steps: f"last 3 h, UTC, by {duration(HOURS / n_steps)}",
        },
        api=strips_by_api,
        sql=strips_by_sql,
    ),
    Entry(
        name="what changed, under the pointer",
        address=at("/"),
        panel="strips",
        read=pointed,
        shown=dict.fromkeys(SERIES, lambda values: " ".join(str(number(one)) for one in values)),
        api=lambda full: series(strips_by_api(full)[""]["wide"]),
        sql=lambda full: series(strips_by_sql(full)[""]["wide"]),
    ),
    Entry(
        name="what changed, step by step",
        address=at("/"),
        panel="strips-table",
        read=table(),
        is_apart=True,
        shown={"At": Timed(moment), **dict.fromkeys(SERIES, number)},
        api=lambda full: step_by_step(full, strips_by_api(full)[""]["wide"]),
        sql=lambda full: step_by_step(full, strips_by_sql(full)[""]["wide"]),
    ),
    Entry(
        name="who serves",
        address=at("/"),
        panel="serving",
        read=table(),
        shown={
            "Share": or_word(percent),
            "Calls": count,
            "Errors": percent,
            "p99 ms": number,
            "Lag, blk": blocks,
            "Today": or_word(usd),
        },
        api=serving_by_api,
        sql=serving_by_sql,
    ),
    Entry(
        name="differences",
        address=at("/"),
        panel="differences",
        read=differences,
        shown={
            "Pairs": lambda raw: Markup("{} of {}").format(exact(raw[0]), count(raw[1])),
            "Since": Timed(lambda raw, now: day(raw, now)),
        },
        api=differences_by_api,
        sql=lambda full: _news(full.sql(DIFFERENCES)),
    ),
    Entry(
        name="how many differences",
        address=at("/"),
        panel="differences",
        read=parts(all=lambda part: part.one("span", "r")),
        shown={"all": lambda raw: f"All {raw}"},
        api=lambda full: {"": {"all": len(full.asked("differences", from_=start_of(full, 7 * 86400), to=full.to))}},
        sql=lambda full: {"": {"all": len(full.sql(DIFFERENCES))}},
    ),
    Entry(
        name="completeness",
        address=at("/"),
        panel="complete",
        read=table(),
        shown={"Hour": Timed(moment), **dict.fromkeys(("Accepted", "Shipped", "Stored", "Distinct"), exact)},
        api=lambda full: whole_hours(full, hours_by_api(full, 3)),
        sql=lambda full: whole_hours(full, hours_by_sql(full, 3)),
    ),
    Entry(
        name="alerts firing, in the side bar",
        address=at("/"),
        panel="nav",
        read=parts(n=lambda part: part.one("span", "n")),
        shown={"n": lambda raw: raw},
        api=lambda full: {"": {"n": len(full.get("/v1/alerts/firing")["items"])}},
        sql=lambda full: {"": {"n": len(full.rows(FIRING))}},
    ),
    Entry(
        name="how old the data is",
        address=at("/"),
        panel="nav",
        read=parts(
            age=lambda part: part.by_id("foot").one("a"),
            complete=lambda part: part.by_id("foot").all("span")[1],
            clock=lambda part: part.by_id("utc"),
        ),
        shown={
            "age": Timed(lambda raw, now: f"Data {duration(age_of(raw, now))} old"),
            "complete": Timed(lambda raw, now: f"Complete to {moment(raw, now)}"),
            "clock": lambda raw: f"{raw:%H:%M:%S}",
        },
        api=lambda full: {
            "": {"age": data_by_api(full)[0], "complete": _complete(full, hours_by_api(full, 6)), "clock": full.now}
        },
        sql=lambda full: {
            "": {
                "age": data_by_sql(full)[0],
                "complete": _complete(full, hours_by_sql(full, 6)),
                "clock": full.sql("SELECT {to:DateTime64(3)} AS now")[0]["now"],
            }
        },
    ),
]


def _complete(full: Full, hours: list[dict[str, Any]]) -> datetime | None:
    """Return the beginning of the running hour where all hours before it are whole."""
    names = ("accepted", "shipped", "stored", "distinct_stored")
    settled = [row for row in hours if row["hour"].year > 1970 and row["hour"] + timedelta(minutes=65) <= full.now]
    is_whole = all(len({row[name] for name in names}) == 1 for row in settled)
    return full.now.replace(minute=0, second=0) if is_whole else None
