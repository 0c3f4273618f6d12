"""The numbers of Heads."""

from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from api.pages.charts import heads as drawing
from api.pages.charts import svg
from api.pages.figures import block, duration, exact, moment, percent, plural, shortened
from api.pages.headspage import RIDGE
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, Timed, at, parts, table, when
from tests.api.pages.lists.overview import (
    blocks,
)
from tests.api.pages.lists.series import (
    HOURS,
    LIMIT_BLOCKS,
    STEP,
    lags_by_api,
    lags_by_sql,
    last_of,
    start_of,
)
from tests.api.pages.lists.tiles import (
    BLOCK_SECONDS,
)
from tests.api.pages.reading import Node

TITLES = {"evm:1": "evm:1 · Ethereum", "evm:8453": "evm:8453 · Base"}


# --- who is behind ---------------------------------------------------------------------------------------------------


def behind_by_api(full: Full) -> Rows:
    asked = {"from_": start_of(full, HOURS), "to": full.to, "step": STEP}
    steps = {axis: full.asked("head_lag_in_steps", axis=axis, **asked) for axis in ("latest", "finalized")}
    at_end = {
        axis: {row["upstream"]: row["number"] for row in rows if row["step"] == HOURS // STEP - 1}
        for axis, rows in steps.items()
    }
    now = full.asked("heads_now", from_=start_of(full, 86400), to=full.to)
    details = {
        row["upstream"]: (
            row["hash"],
            row["source"],
            max(filter(None, (when(row["last_at"]), when(row["heard_at"])))),
        )
        for row in now
        if row["axis"] == "latest"
    }
    pace = {row["network"]: row["block_seconds"] for row in steps["latest"]}
    return _behind(
        full, lags_by_api(full, HOURS, STEP), lags_by_api(full, HOURS, STEP, "finalized"), at_end, details, pace
    )


def behind_by_sql(full: Full) -> Rows:
    at_end = {
        axis: {
            row["row"]: row["n"]
            for row in full.sql(
                "SELECT upstream AS row, max(number) AS n FROM gnomon.heads WHERE axis = {axis:String}"
                " AND at < {to:DateTime64(3)} GROUP BY upstream",
                axis=axis,
            )
        }
        for axis in ("latest", "finalized")
    }
    heard = {
        row["upstream"]: row["at"]
        for row in full.sql(
            "SELECT upstream, max(a.at) AS at FROM gnomon.attempts AS a WHERE kind = 'head_poll' AND outcome = 'result'"
            " AND a.at < {to:DateTime64(3)} GROUP BY upstream"
        )
    }
    details = {
        row["upstream"]: (row["hash"], row["source"], max(row["at"], heard.get(row["upstream"], row["at"])))
        for row in full.sql(
            "SELECT upstream, hash, source, h.at AS at FROM gnomon.heads AS h WHERE axis = 'latest'"
            " AND h.at < {to:DateTime64(3)} ORDER BY h.at DESC LIMIT 1 BY upstream"
        )
    }
    return _behind(
        full,
        lags_by_sql(full, HOURS, STEP),
        lags_by_sql(full, HOURS, STEP, "finalized"),
        at_end,
        details,
        BLOCK_SECONDS,
    )


def _behind(full: Full, lags: Any, finals: Any, at_end: Any, details: Any, pace: Any) -> Rows:
    top = svg.nice_top(
        min(max(2.0 * LIMIT_BLOCKS, *(v for one in lags.values() for v in one if v is not None)), 8.0 * LIMIT_BLOCKS)
    )
    found: Rows = {}
    for key, values in lags.items():
        network, _, name = key.partition(" | ")
        now = last_of(values)
        digest, source, heard_at = details[name]
        found[name] = {
            "Head": None if now is None else at_end["latest"][name],
            "Hash": "" if now is None else digest,
            "Lag, blocks": now,
            "Lag, time": None if now is None else now * pace[network],
            "Final lag": last_of(finals[key]),
            "Learnt by, age": ("lost" if now is None else source, heard_at),
            "Part in the network's head": (now, full.tiers[name]),
            "ridge": (name, values, top),
        }
        numbers = [
            axis[up] for axis in (at_end["latest"], at_end["finalized"]) for up in axis if full.networks[up] == network
        ]
        half = len(numbers) // 2
        found[TITLES[network]] = {"network": (TITLES[network], pace[network], max(numbers[:half]), max(numbers[half:]))}
    return {**found, "": {"scale": (top, LIMIT_BLOCKS)}}


def part_in_head(raw: Any) -> str:
    lag, tier = raw
    if lag is None:
        return "left out: unknown"
    if tier == "shadow":
        return "compared only"
    if lag > LIMIT_BLOCKS:
        return f"{lag:,} behind"
    return "within the limit" if lag else "at the head"


def title(raw: Any) -> str:
    name, seconds, head, finalized = raw
    return f"{name}, a block each {duration(seconds)} · head {head:,} · finalized {finalized:,}"


def levels(rows: Rows, full: Full) -> Rows:
    """Return of each network how far its primaries and fallbacks are behind, since when; the worst network first."""
    found = []
    for network, name in (("evm:8453", "Base"), ("evm:1", "Ethereum")):
        mine = {up: row["ridge"][1] for up, row in rows.items() if full.networks.get(up) == network}
        said = []
        for up in full.upstreams:
            values = mine.get(up)
            if values is None or full.tiers[up] == "shadow":
                continue
            now = last_of(values)
            if now is None or now > LIMIT_BLOCKS:
                said.append((up, now, full.now - timedelta(seconds=HOURS - STEP * since(values, now))))
        worst = max(last_of(values) or 0 for values in mine.values())
        found.append((name, BLOCK_SECONDS[network], said, worst))
    return {"": {"lead": found}}


def since(values: Any, now: int | None) -> int:
    """Return the first step from which on it has been unknown, or beyond the limit wherever it is known."""
    first = len(values)
    for step in reversed(range(len(values))):
        value = values[step]
        if (value is not None) if now is None else (value is not None and value <= LIMIT_BLOCKS):
            break
        if now is None or value is not None:
            first = step
    return first


def level_words(raw: Any, now: datetime) -> str:
    sentences = []
    for name, seconds, trouble, worst in raw:
        words = [
            f"{up} has been unknown since {moment(began, now)}"
            if lag is None
            else f"{up} lags {plural(lag, 'block')} ({duration(lag * seconds)}) since {moment(began, now)}"
            for up, lag, began in trouble
        ]
        level = f"all heads within {plural(worst, 'block')}" if worst else "all heads at the same block"
        sentences.append(f"{name}: {'; '.join(words) or level}.")
    return " ".join(sentences)


# --- reorgs, delays --------------------------------------------------------------------------------------------------


def reorgs(rows: list[dict[str, Any]], full: Full) -> Rows:
    return {
        str(moment(row["at"], full.now, with_seconds=True)): {
            "Seen at": row["at"],
            "From block": row["number"],
            "Depth": row["depth"],
            "Hash, old to new": (row["old_hash"], row["new_hash"]),
        }
        for row in rows
    }


def delays(panel: Node) -> Cells:
    """Return upstreams with their delays, and the scale of each network."""
    found: Cells = {}
    for row in panel.one("tbody").all("tr"):
        cells = [cell for cell in row.children if isinstance(cell, Node)]
        if len(cells) == 3:
            found[cells[0].text] = {"scale": cells[1]}
        else:
            found[cells[0].text] = dict(zip(("First", "Delay", "p50", "p99"), cells[1:], strict=True))
    return found


def delayed(rows: list[dict[str, Any]]) -> Rows:
    found: Rows = {}
    for network, name in TITLES.items():
        mine = [row for row in rows if row["network"] == network]
        total, top = sum(row["n_first"] for row in mine), svg.nice_top(max(row["p99_seconds"] for row in mine))
        found[name] = {"scale": top}
        for row in mine:
            p50, p99 = row["p50_seconds"], row["p99_seconds"]
            found[row["upstream"]] = {
                "First": row["n_first"] / total,
                "Delay": (row["upstream"], p50, p99, top),
                "p50": p50,
                "p99": p99,
            }
    return found


def delay(raw: Any) -> Markup:
    name, p50, p99, top = raw
    label = f"{name}: half within {duration(p50)}, 99 in 100 within {duration(p99)}"
    return drawing.delay(p50, p99, label, top_seconds=top)


DELAYS = """
SELECT network, upstream, countIf(seen_at = first_at) AS n_first,
    round(quantileTDigest(0.5)(late) / 1000, 3) AS p50_seconds,
    round(quantileTDigest(0.99)(late) / 1000, 3) AS p99_seconds
FROM (
    SELECT s.network AS network, s.upstream AS upstream, s.seen_at AS seen_at, f.first_at AS first_at,
        dateDiff('millisecond', first_at, seen_at) AS late
    FROM (SELECT network, upstream, number, min(at) AS seen_at FROM gnomon.heads
        WHERE axis = 'latest' AND at >= {to:DateTime64(3)} - INTERVAL 24 HOUR AND at < {to:DateTime64(3)}
        GROUP BY network, upstream, number) AS s
    INNER JOIN (SELECT network, number, min(at) AS first_at, uniqExact(upstream) AS n FROM gnomon.heads
        WHERE axis = 'latest' AND at >= {to:DateTime64(3)} - INTERVAL 24 HOUR AND at < {to:DateTime64(3)}
        GROUP BY network, number) AS f ON f.network = s.network AND f.number = s.number
    WHERE f.n > 1
)
GROUP BY network, upstream
"""

HEADS = [
    Entry(
        name="heads, first sentence",
        address=at("/heads"),
        panel="lead",
        read=parts(lead=lambda part: part.one("p", "lead")),
        shown={"lead": Timed(level_words)},
        api=lambda full: levels(behind_by_api(full), full),
        sql=lambda full: levels(behind_by_sql(full), full),
    ),
    Entry(
        name="behind",
        address=at("/heads"),
        panel="behind",
        read=table(names={8: "ridge"}, group="network"),
        shown={
            "network": title,
            "Head": lambda raw: "unknown" if raw is None else block(raw),
            "Hash": shortened,
            "Lag, blocks": blocks,
            "Lag, time": duration,
            "Final lag": exact,
            "Learnt by, age": Timed(lambda raw, now: f"{raw[0]} · {duration((now - raw[1]).total_seconds())} ago"),
            "Part in the network's head": part_in_head,
            "ridge": lambda raw: drawing.ridge(
                raw[1], f"lag of {raw[0]} in blocks over the range", top=raw[2], limit=float(LIMIT_BLOCKS), width=RIDGE
            ),
        },
        api=behind_by_api,
        sql=behind_by_sql,
    ),
    Entry(
        name="behind, scale",
        address=at("/heads"),
        panel="behind",
        read=parts(scale=lambda part: part.all("th")[8]),
        shown={"scale": lambda raw: f"Lag, 0 to {raw[0]:,.10g} blocks, limit {raw[1]}"},
        api=lambda full: {"": behind_by_api(full)[""]},
        sql=lambda full: {"": behind_by_sql(full)[""]},
    ),
    Entry(
        name="reorgs",
        address=at("/heads"),
        panel="reorgs",
        read=table(),
        shown={
            "Seen at": Timed(lambda raw, now: moment(raw, now, with_seconds=True)),
            "From block": block,
            "Depth": str,
            "Hash, old to new": lambda raw: Markup("{} to {}").format(shortened(raw[0]), shortened(raw[1])),
        },
        api=lambda full: reorgs(
            [{**r, "at": when(r["at"])} for r in full.asked("reorgs", from_=start_of(full, 7 * 86400), to=full.to)],
            full,
        ),
        sql=lambda full: reorgs(full.sql("SELECT at, number, depth, old_hash, new_hash FROM gnomon.reorgs"), full),
    ),
    Entry(
        name="delays",
        address=at("/heads"),
        panel="first",
        read=delays,
        shown={
            "scale": lambda raw: f"0 to {duration(raw)}",
            "First": percent,
            "Delay": delay,
            "p50": duration,
            "p99": duration,
        },
        api=lambda full: delayed(full.asked("head_delays", from_=start_of(full, 86400), to=full.to)),
        sql=lambda full: delayed(full.sql(DELAYS)),
    ),
]
