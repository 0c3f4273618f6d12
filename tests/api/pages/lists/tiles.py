"""The six numbers of Overview, and its first sentence."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.pages.figures import (
    Figure,
    between,
    count,
    duration,
    micros,
    moment,
    number,
    percent,
    plural,
    usd,
)
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Shown, Timed, when
from tests.api.pages.listed import usd as money
from tests.api.pages.lists.series import (
    HOURS,
    JUDGED,
    NOW,
    SERVED,
    STEP,
    WEEK,
    WILSON,
    Series,
    hours_by_api,
    hours_by_sql,
    lags_by_api,
    lags_by_sql,
    last_of,
    start_of,
)
from tests.api.pages.reading import Node


def tiles(panel: Node) -> Cells:
    """Return the tiles by what they count."""
    return {"": {one.one("span", "l").text.partition(",")[0]: one for one in panel.all("a", "kpi")}}


def tile(label: str, value: object, unit: str, below: str) -> Markup:
    """Return a tile's words, one behind the other."""
    small = Markup("<i> {}</i>").format(unit) if unit else ""
    return Markup("{}{}{}{}").format(label, value, small, below)


def errors(served: Any) -> str:
    """Return how many of some requests failed, as a sentence has it."""
    n, n_failed, _ = served
    if n < 100:
        return f"{n_failed:,} of {plural(n, 'request')} failed"
    return f"{percent(n_failed / n)} errors" if n_failed else "no error"


def served_by_api(full: Full) -> tuple[int, int, int]:
    (row,) = full.asked("service_over_time", from_="now-5m", to=full.to, step=300)
    return row["n"], row["n_failed"], row["p99_us"]


def served_by_sql(full: Full) -> tuple[int, int, int]:
    (row,) = full.sql(
        "SELECT count() AS n,"
        " countIf(outcome = 'error') AS n_failed, toUInt32(quantileTDigest(0.99)(duration_us)) AS p99"
        f" FROM gnomon.requests WHERE {SERVED} AND {NOW}"
    )
    return row["n"], row["n_failed"], row["p99"]


def mismatches_by_sql(full: Full) -> list[dict[str, Any]]:
    return full.sql(
        WILSON + f"SELECT shadow_upstream, countIf(outcome = 'mismatch') AS mismatch, count() AS n_judged,"
        f" low(mismatch, n_judged) AS mismatch_low, high(mismatch, n_judged) AS mismatch_high FROM gnomon.comparisons"
        f" WHERE finality = 'finalized' AND {JUDGED} AND {WEEK} GROUP BY shadow_upstream"
    )


def worst_shadow(rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Return the shadow that surely differs most, controls left out: name, differing, compared, interval."""
    judged = [row for row in rows if row["n_judged"] and row["shadow_upstream"] != "control"]
    worst = max(judged, key=lambda row: (row["mismatch_low"], row["n_judged"]))
    names = ("shadow_upstream", "mismatch", "n_judged", "mismatch_low", "mismatch_high")
    return tuple(worst[name] for name in names)


def paid_by_api(full: Full) -> tuple[Decimal, float | None, int]:
    (row,) = full.asked("paid_today", to=full.to)
    return money(row["usd"]) or Decimal(0), row["usd_usual"], row["n_unpriced"]


def paid_by_sql(full: Full) -> tuple[Decimal, float | None, int]:
    rows = full.sql(
        "SELECT toDate(at) = toDate({to:DateTime64(3)}) AS is_today, dateDiff('day', at, {to:DateTime64(3)}) AS ago,"
        " sum(usd) AS paid, countIf(isNull(usd)) AS n_unpriced FROM gnomon.attempts WHERE vendor != ''"
        " AND at < {to:DateTime64(3)}"
        " AND (is_today OR toHour(at) < toHour({to:DateTime64(3)})) GROUP BY is_today, ago"
    )
    today = [row for row in rows if row["is_today"]]
    before = [row for row in rows if not row["is_today"] and row["ago"] <= 14]
    n_days = max((row["ago"] for row in before), default=0)
    usual = round(float(sum((row["paid"] or Decimal(0) for row in before), Decimal(0))) / n_days, 9) if n_days else None
    return (
        sum((row["paid"] or Decimal(0) for row in today), Decimal(0)),
        usual,
        sum(row["n_unpriced"] for row in today),
    )


def _month(accounts: Rows) -> tuple[Any, ...]:
    names = ("spent", "budget", "forecast", "forecast_low", "forecast_high")
    sums = {name: sum((Decimal(str(row[name])) for row in accounts.values()), Decimal(0)) for name in names}
    return tuple(sums.values())


def _head(series: dict[str, Series], seconds: dict[str, float], full: Full) -> tuple[Any, ...]:
    """Return the primary that is most behind: name, network, blocks, seconds; and who is unknown."""
    mine = {
        name: last_of(values)
        for name, values in series.items()
        if full.tiers.get(name.partition(" | ")[2]) == "primary"
    }
    network, _, worst = max((n for n in mine if mine[n] is not None), key=lambda n: mine[n] or 0).partition(" | ")
    behind = mine[f"{network} | {worst}"] or 0
    return worst, network, behind, behind * seconds[network], [n.partition(" | ")[2] for n in mine if mine[n] is None]


def head_by_api(full: Full) -> tuple[Any, ...]:
    rows = full.asked("head_lag_in_steps", from_=start_of(full, HOURS), to=full.to, step=STEP)
    return _head(lags_by_api(full, HOURS, STEP), {row["network"]: row["block_seconds"] for row in rows}, full)


def head_by_sql(full: Full) -> tuple[Any, ...]:
    return _head(lags_by_sql(full, HOURS, STEP), BLOCK_SECONDS, full)


BLOCK_SECONDS = {"evm:1": 12.0, "evm:8453": 2.0}
"""As the protocols of the two have it."""


def data_by_api(full: Full) -> tuple[Any, ...]:
    (stages,) = full.asked("stages")
    hours = [row for row in hours_by_api(full, 3) if row["hour"].year > 1970]
    return when(stages["last_stored_at"]), *_lost(hours), stages["n_dropped"], stages["n_dead"]


def data_by_sql(full: Full) -> tuple[Any, ...]:
    (row,) = full.sql(
        "SELECT (SELECT max(at) FROM gnomon.progress) AS at, (SELECT sum(dropped) FROM gnomon.progress) AS n_dropped,"
        " (SELECT count() FROM gnomon.dead_letters) AS n_dead"
    )
    hours = [hour for hour in hours_by_sql(full, 3) if hour["hour"].year > 1970]
    return row["at"], *_lost(hours), row["n_dropped"], row["n_dead"]


def _lost(hours: list[dict[str, Any]]) -> tuple[int, int]:
    lost = sum(max(row["shipped"] - row["stored"] - row["dead_lettered"], 0) for row in hours[:-1])
    return lost, sum(row["stored"] - row["distinct_stored"] for row in hours)


TILES: dict[str, Shown | Timed] = {
    "Requests": lambda raw: tile("Requests", number(raw[0] / 300), "a second", f"{errors(raw)} · p99 {micros(raw[2])}"),
    "Mismatch on final data": lambda raw: tile(
        f"Mismatch on final data, {raw[0]}",
        percent(raw[1] / raw[2]),
        "",
        f"{between(raw[3], raw[4])} · n {count(raw[2])}",
    ),
    "Paid today": lambda raw: tile(
        "Paid today, since 00:00",
        usd(raw[0]),
        "",
        (f"{plural(raw[2], 'call')} unpriced · " if raw[2] else "")
        + (f"usually {usd(Decimal(repr(raw[1])))} by now" if raw[1] is not None else "no day before to compare"),
    ),
    "Month": lambda raw: tile(
        "Month, forecast",
        usd(raw[2]),
        f"of {usd(raw[1])}",
        f"{usd(raw[0])} so far · 80 %: {usd(raw[3])} to {usd(raw[4])}",
    ),
    "Worst primary head": lambda raw: tile(
        "Worst primary head",
        Figure(plural(raw[2], "block"), str(raw[2])),
        str(duration(raw[3])),
        f"{raw[0]}, {raw[1]} · {' and '.join(raw[4])} unknown",
    ),
    "Data": Timed(
        lambda raw, now: tile(
            "Data",
            duration(age_of(raw[0], now)),
            "behind",
            f"{raw[1] + raw[3]:,} lost, {raw[2]:,} doubled, {plural(raw[4], 'dead letter')}",
        )
    ),
}


def age_of(stored_at: datetime, now: datetime) -> float:
    return max((now - stored_at).total_seconds(), 0.0)


def first_words(raw: Any, now: datetime) -> str:
    """Return the first sentence of: when each alert fired, and how clients were served."""
    fired, served = raw
    oldest = min(fired)
    age = duration((now - oldest).total_seconds())
    return (
        f"{plural(len(fired), 'alert')} firing, the oldest since {moment(oldest, now)} ({age})."
        f" Clients: {errors(served)}, p99 {micros(served[2])}."
    )
