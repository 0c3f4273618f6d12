"""The numbers of Divergence."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from api.pages import figures
from api.pages.charts import sparks
from api.pages.figures import (
    Figure,
    between,
    count,
    exact,
    moment,
    percent,
    share,
    shown_path,
    usd,
)
from tests.api.night import settings
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, Timed, at, by, note, parts, table, when
from tests.api.pages.listed import usd as money
from tests.api.pages.lists.series import JUDGED, WEEK, WILSON, start_of
from tests.api.pages.lists.tiles import (
    worst_shadow,
)
from tests.api.pages.reading import Node

DAYS = 7 * 86400
COUNTS = ("mismatch", "error", "incomparable", "missing", "undecided")
TITLES = ("Differing", "Error", "Incomparable", "Missing", "Undecided")


def interval(raw: tuple[int, int, float, float]) -> str:
    """Return a share's interval in words: empty of too few, a bound of none."""
    k, n, low, high = raw
    if n < 100:
        return ""
    return between(low, high) if k else f"at most {figures._upper(high)} %"


def part_of(raw: tuple[int, int]) -> Figure:
    """Return the share k of n as a rate has it."""
    k, n = raw
    if n < 100:
        return Figure(f"{k:,} of {n:,}", figures._plain(k / n)) if n else figures.UNKNOWN
    return percent(k / n) if k else Figure("0", "0")


def share_of(raw: tuple[int, int]) -> Figure:
    return share(*raw)


# --- verdicts --------------------------------------------------------------------------------------------------------


def verdicts(rows: Sequence[dict[str, Any]], sample: dict[str, Any]) -> Rows:
    """Return every column of every shadow."""
    return by(
        rows,
        "shadow_upstream",
        {
            "Shadow": lambda r: (r["shadow_upstream"], r["network"], *sample[r["shadow_upstream"]]),
            "Compared": "n_judged",
            "Identical": lambda r: (r["identical"], r["n_judged"]),
            "Masked": lambda r: (r["identical_masked"], r["n_judged"]),
            "Tolerated": lambda r: (r["tolerated"], r["n_judged"]),
            "Mismatch": lambda r: (r["mismatch"], r["n_judged"]),
            "95 % interval": lambda r: (r["mismatch"], r["n_judged"], r["mismatch_low"], r["mismatch_high"]),
            **dict(zip(TITLES, COUNTS, strict=True)),
        },
    )


def verdicts_by_api(full: Full) -> Rows:
    cards = {card["upstream"]: card for card in full.get("/v1/upstreams", from_=full.midnight, to=full.to)["items"]}
    sample = {
        name: (card["sample_rate"], money(card["spend"][0]["usd_shadow"]) if card["vendor"] and card["spend"] else None)
        for name, card in cards.items()
    }
    return verdicts(full.asked("divergence_by_shadow", from_=start_of(full, DAYS), to=full.to), sample)


def verdicts_by_sql(full: Full) -> Rows:
    rates = {one.id: one.shadow.sample_rate for p in settings().projects for one in p.upstreams if one.shadow}
    paid = full.rows(
        "SELECT upstream AS row, sum(usd) AS paid FROM gnomon.attempts WHERE kind = 'shadow' AND vendor != ''"
        " AND at >= toStartOfDay({to:DateTime64(3)}) AND at < {to:DateTime64(3)} GROUP BY upstream"
    )
    each = ", ".join(
        f"countIf(outcome = '{name}') AS {name}" for name in ("identical", "identical_masked", "tolerated", *COUNTS)
    )
    rows = full.sql(
        WILSON + f"SELECT network, shadow_upstream, {each}, countIf({JUDGED}) AS n_judged,"
        " low(mismatch, n_judged) AS mismatch_low, high(mismatch, n_judged) AS mismatch_high FROM gnomon.comparisons"
        f" WHERE finality = 'finalized' AND {WEEK} GROUP BY network, shadow_upstream"
    )
    return verdicts(rows, {name: (rate, paid.get(name, {"paid": None})["paid"]) for name, rate in rates.items()})


def sampled(raw: Any) -> str:
    """Return how a shadow is asked, and its price today."""
    name, network, rate, paid = raw
    said = "every request" if rate == 1 else f"1 in {1 / rate:.0f}"
    said += " · primary again" if name == "control" else ""
    said += f" · {usd(paid)} today" if paid is not None else ""
    return f"{name} {network} · {said}"


# --- matrix ----------------------------------------------------------------------------------------------------------

SHADOWS = ("node-b", "node-c", "chainstack-eth", "control", "node-b-base")


def matrix(panel: Node) -> Cells:
    """Return methods by name and network, and below each its paths by path and kind."""
    columns = [th.text for th in panel.one("thead").all("th")]
    found: Cells = {}
    group = ""
    for row in panel.one("tbody").all("tr"):
        cells = [cell for cell in row.children if isinstance(cell, Node)]
        if "m" in row.attributes["class"].split():
            group, cells = cells[0].text, cells[-len(columns) + 2 :]
            found[group] = dict(list(zip(columns[2:], cells, strict=True))[:-3])
        else:
            found[f"{group} | {cells[0].one('code').text} | {cells[1].text}"] = dict(zip(columns, cells, strict=True))
    return found


def cells_of_matrix(full: Full, found: Sequence[dict[str, Any]], compared: Sequence[dict[str, Any]]) -> Rows:
    """Return what was compared of each method and shadow, and each path's pairs of it."""
    shadows = {row["shadow_upstream"]: row["network"] for row in compared}
    n = {(row["network"], row["method"], row["shadow_upstream"]): row["n_judged"] for row in compared}
    rows: Rows = {}
    for network, method, _ in n:
        cells: dict[str, Any] = {}
        for shadow in shadows:
            is_excluded = (shadow, method) == ("chainstack-eth", "debug_traceTransaction")
            cells[shadow] = n.get((network, method, shadow), "excluded" if is_excluded else None)
        rows[f"{method} {network}"] = cells
    for row in found:
        network, method, path, kind = row["network"], row["method"], shown_path(row["generic_path"]), row["class"]
        mine = [
            r
            for r in found
            if (r["network"], r["method"], r["generic_path"], r["class"])
            == (network, method, row["generic_path"], kind)
        ]
        line: dict[str, Any] = {}
        for shadow in shadows:
            pairs = next((r["n_pairs"] for r in mine if r["shadow_upstream"] == shadow), 0)
            compared_of = n.get((network, method, shadow))
            line[shadow] = None if compared_of is None else (pairs, compared_of)
        seen = min(r["seen_at"] for r in mine)
        line["First seen"] = seen
        line["7 days"] = (seen, [sum(day) for day in zip(*(r["days"] for r in mine), strict=True)])
        rows[f"{method} {network} | {path} | {kind}"] = line
    return rows


def differences_by_api(full: Full) -> list[dict[str, Any]]:
    found = full.asked("differences", from_=start_of(full, DAYS), to=full.to)
    return [{**row, **{name: when(row[name]) for name in ("seen_at", "first_at", "last_at")}} for row in found]


def compared_by_api(full: Full) -> list[dict[str, Any]]:
    return full.asked("compared_by_method", from_=start_of(full, DAYS), to=full.to)


THE_DIFFERENCE = "f.network, f.method, f.shadow_upstream, f.generic_path, f.class"


def differences_by_sql(full: Full) -> list[dict[str, Any]]:
    counted = {(r["network"], r["method"], r["shadow_upstream"]): r["n_judged"] for r in compared_by_sql(full)}
    rows = full.sql(
        f"SELECT {THE_DIFFERENCE}, count(DISTINCT f.request_id) AS n_pairs, min(f.at) AS first_at, max(f.at) AS last_at"
        f","
        " arrayMap(ago -> countEqual(groupArray(intDiv(dateDiff('second', f.at, {to:DateTime64(3)}), 86400)), ago),"
        " [6, 5, 4, 3, 2, 1, 0]) AS days,"
        " countIf(c.settled = 'primary_right') AS primary_right, countIf(c.settled = 'shadow_right') AS shadow_right,"
        " countIf(c.suspect = 'primary') AS suspect_primary, countIf(c.suspect = 'shadow') AS suspect_shadow"
        " FROM gnomon.findings AS f INNER JOIN gnomon.comparisons AS c ON c.request_id = f.request_id"
        " AND c.shadow_upstream = f.shadow_upstream WHERE c.finality = 'finalized' AND c.outcome = 'mismatch'"
        " AND f.at >= {to:DateTime64(3)} - INTERVAL 7 DAY AND f.at < {to:DateTime64(3)}"
        f" GROUP BY {THE_DIFFERENCE}"
    )
    seen = full.sql(
        f"SELECT {THE_DIFFERENCE}, min(f.at) AS seen_at FROM gnomon.findings AS f GROUP BY {THE_DIFFERENCE}"
    )
    names = ("network", "method", "shadow_upstream", "generic_path", "class")
    first = {tuple(row[name] for name in names): row["seen_at"] for row in seen}
    return [
        {
            **row,
            "seen_at": first[tuple(row[n] for n in names)],
            "n_judged": counted[row["network"], row["method"], row["shadow_upstream"]],
        }
        for row in rows
    ]


def compared_by_sql(full: Full) -> list[dict[str, Any]]:
    return full.sql(
        f"SELECT network, method, shadow_upstream, count() AS n_judged,"
        f" countIf(outcome = 'identical_masked') AS masked,"
        " countIf(outcome = 'tolerated') AS tolerated FROM gnomon.comparisons"
        f" WHERE finality = 'finalized' AND {JUDGED} AND {WEEK} GROUP BY network, method, shadow_upstream"
    )


def cell(raw: Any) -> object:
    """Return a cell of the matrix: how many were compared, or share and pairs."""
    if raw is None or isinstance(raw, str):
        return raw
    if isinstance(raw, int):
        return Markup("n {}").format(count(raw))
    pairs, n = raw
    return Markup("{}{}").format(percent(pairs / max(n, pairs)), exact(pairs)) if pairs else Figure("0", "0")


def is_new(seen: datetime, now: datetime) -> bool:
    return seen >= now - timedelta(seconds=DAYS) + timedelta(hours=1)


def seen_first(raw: datetime, now: datetime) -> Markup:
    return Markup("{}{}").format(moment(raw, now), " new" if is_new(raw, now) else "")


def daily(raw: Any, now: datetime) -> Markup:
    seen, days = raw
    return sparks.bars(
        days, f"pairs a day: {', '.join(map(str, days))}", css_class="ar-b" if is_new(seen, now) else "ln-f"
    )


def covered_by_masks(rows: Sequence[dict[str, Any]]) -> Rows:
    return {"": {"foot": (sum(row["masked"] for row in rows), sum(row["tolerated"] for row in rows))}}


def foot_words(raw: Any) -> Markup:
    return Markup("Second number: pairs. n: pairs compared. Made equal by masks: {} pairs, tolerated: {}.").format(
        count(raw[0]), count(raw[1])
    )


def how_many(rows: Sequence[dict[str, Any]]) -> Rows:
    return {"": {"note": len({(row["network"], row["method"], row["generic_path"], row["class"]) for row in rows})}}


def sentence_of(shadows: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> Any:
    """Return who differs most, and what makes most of it."""
    worst = worst_shadow(list(shadows))
    top = max((row for row in rows if row["shadow_upstream"] == worst[0]), key=lambda row: row["n_pairs"])
    return (*worst, top["n_pairs"], top["seen_at"])


def sentence(raw: Any, now: datetime) -> str:
    name, k, n, low, high, pairs, seen = raw
    began = "and it began" if is_new(seen, now) else "since"
    return (
        f"{name} differs in {percent(k / n)} of final answers ({between(low, high)}, n {count(n)})."
        f" One path makes {percent(min(pairs / k, 1.0))} of it, {began} {moment(seen, now)}."
    )


def sentence_by_api(full: Full) -> Any:
    shadows = full.asked("divergence_by_shadow", from_=start_of(full, DAYS), to=full.to)
    return sentence_of(shadows, differences_by_api(full))


def sentence_by_sql(full: Full) -> Any:
    shadows = [
        {
            "shadow_upstream": name,
            "mismatch": row["95 % interval"][0],
            "n_judged": row["Compared"],
            "mismatch_low": row["95 % interval"][2],
            "mismatch_high": row["95 % interval"][3],
        }
        for name, row in verdicts_by_sql(full).items()
    ]
    return sentence_of(shadows, differences_by_sql(full))


DIVERGENCE = [
    Entry(
        name="divergence, first sentence",
        address=at("/divergence"),
        panel="lead",
        read=parts(lead=lambda part: part.one("p", "lead")),
        shown={"lead": Timed(sentence)},
        api=lambda full: {"": {"lead": sentence_by_api(full)}},
        sql=lambda full: {"": {"lead": sentence_by_sql(full)}},
    ),
    Entry(
        name="verdicts",
        address=at("/divergence"),
        panel="verdicts",
        read=table(),
        shown={
            "Shadow": sampled,
            "Compared": exact,
            "Identical": share_of,
            "Masked": share_of,
            "Tolerated": share_of,
            "Mismatch": part_of,
            "95 % interval": interval,
            **dict.fromkeys(TITLES, exact),
        },
        api=verdicts_by_api,
        sql=verdicts_by_sql,
    ),
    Entry(
        name="matrix",
        address=at("/divergence"),
        panel="matrix",
        read=matrix,
        shown={**dict.fromkeys(SHADOWS, cell), "First seen": Timed(seen_first), "7 days": Timed(daily)},
        api=lambda full: cells_of_matrix(full, differences_by_api(full), compared_by_api(full)),
        sql=lambda full: cells_of_matrix(full, differences_by_sql(full), compared_by_sql(full)),
    ),
    Entry(
        name="matrix, how many",
        address=at("/divergence"),
        panel="matrix",
        read=note,
        shown={"note": lambda raw: f"{raw} differences, worst kind first"},
        api=lambda full: how_many(differences_by_api(full)),
        sql=lambda full: how_many(differences_by_sql(full)),
    ),
    Entry(
        name="matrix, masked",
        address=at("/divergence"),
        panel="matrix",
        read=parts(foot=lambda part: part.one("p", "foot-note")),
        shown={"foot": foot_words},
        api=lambda full: covered_by_masks(compared_by_api(full)),
        sql=lambda full: covered_by_masks(compared_by_sql(full)),
    ),
    Entry(
        name="matrix, the first sentence again",
        address=at("/divergence"),
        panel="matrix",
        read=parts(lead=lambda part: next(p for p in part.all("p") if "data-lead" in p.attributes)),
        shown={"lead": Timed(sentence)},
        api=lambda full: {"": {"lead": sentence_by_api(full)}},
        sql=lambda full: {"": {"lead": sentence_by_sql(full)}},
    ),
]
