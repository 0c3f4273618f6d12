"""The numbers of Divergence and of a finding."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from api.pages import figures
from api.pages.address import span, ticks
from api.pages.charts import histogram, sparks
from api.pages.figures import (
    Figure,
    between,
    block,
    count,
    duration,
    exact,
    iso,
    micros,
    moment,
    percent,
    share,
    shortened,
    shown_path,
    size,
    usd,
)
from tests.api.night import settings
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, Timed, at, by, note, parts, table, when
from tests.api.pages.listed import usd as money
from tests.api.pages.lists.overview import worst_shadow
from tests.api.pages.lists.series import JUDGED, WEEK, WILSON, start_of
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


# --- a finding -------------------------------------------------------------------------------------------------------


def the(shadow: str) -> Callable[[Full], dict[str, Any]]:
    """Return what finds the difference of a shadow that most pairs have."""
    return lambda full: max(
        (row for row in differences_by_api(full) if row["shadow_upstream"] == shadow), key=lambda row: row["n_pairs"]
    )


def same_by_sql(full: Full, row: dict[str, Any]) -> dict[str, Any]:
    names = ("network", "method", "shadow_upstream", "generic_path", "class")
    found = next(one for one in differences_by_sql(full) if all(one[name] == row[name] for name in names))
    n = max(found["n_judged"], found["n_pairs"])
    (ends,) = full.sql(
        WILSON + f"SELECT low({found['n_pairs']}, {n}) AS pairs_low, high({found['n_pairs']}, {n}) AS pairs_high"
    )
    return found | ends


def asked(row: dict[str, Any]) -> dict[str, Any]:
    """Return the difference as /v1 takes it."""
    return {
        "network": row["network"],
        "method_": row["method"],
        "shadow": row["shadow_upstream"],
        "generic_path": row["generic_path"],
        "class_": row["class"],
    }


def bound(row: dict[str, Any]) -> dict[str, Any]:
    """Return the difference as SQL binds it."""
    return {name.rstrip("_"): value for name, value in asked(row).items()}


THIS = """
    f.network = {network:String} AND f.method = {method:String} AND f.shadow_upstream = {shadow:String}
    AND f.generic_path = {generic_path:String} AND f.class = {class:String}
    AND f.at >= {to:DateTime64(3)} - INTERVAL 7 DAY AND f.at < {to:DateTime64(3)}
"""
COUNTED = f"""
    SELECT f.request_id FROM gnomon.findings AS f WHERE {THIS} AND f.request_id IN (
        SELECT request_id FROM gnomon.comparisons WHERE shadow_upstream = {{shadow:String}} AND finality = 'finalized'
        AND outcome = 'mismatch')
"""
"""Requests of the pairs that the finding counts."""


def below(raw: Any, now: datetime) -> Markup:
    """Return how much differs, since when, who is right."""
    row = raw
    n = max(row["n_judged"], row["n_pairs"])
    much = Markup("{} of {} pairs").format(exact(row["n_pairs"]), exact(n))
    said = interval((row["n_pairs"], n, row["pairs_low"], row["pairs_high"]))
    if said:
        much += Markup(", {} ({})").format(percent(row["n_pairs"] / n), said)
    sides = (row["primary_right"], row["shadow_right"])
    if sides[0] == sides[1]:
        sides = (row["suspect_shadow"], row["suspect_primary"])
    right = "not settled" if sides[0] == sides[1] else "primary is right" if sides[0] > sides[1] else "shadow is right"
    return Markup("{} · class {} · since {}, last {} · {}").format(
        much, row["class"], moment(row["seen_at"], now), moment(row["last_at"], now), right
    )


NUMBERS = (
    "n_pairs",
    "n_judged",
    "pairs_low",
    "pairs_high",
    "class",
    "seen_at",
    "last_at",
    "primary_right",
    "shadow_right",
    "suspect_primary",
    "suspect_shadow",
)


def steps_by_api(full: Full, row: dict[str, Any]) -> Any:
    values = [0] * 168
    for one in full.asked("difference_over_time", from_=start_of(full, DAYS), to=full.to, step=3600, **asked(row)):
        values[one["step"]] = one["n_pairs"]
    return values, row["seen_at"]


def steps_by_sql(full: Full, row: dict[str, Any]) -> Any:
    values = [0] * 168
    found = full.sql(
        "SELECT intDiv(dateDiff('second', {to:DateTime64(3)} - INTERVAL 7 DAY, f.at), 3600) AS step,"
        f" count(DISTINCT f.request_id) AS n FROM gnomon.findings AS f WHERE {THIS} AND f.request_id IN ({COUNTED})"
        " GROUP BY step",
        **bound(row),
    )
    for one in found:
        values[one["step"]] = one["n"]
    return values, same_by_sql(full, row)["seen_at"]


def bars(raw: Any, now: datetime, *, width: int, every: int = 1) -> Markup:
    """Return the histogram of these counts."""
    values, seen = raw
    range_of = span("now-7d", "now", now)
    first = next((step for step, value in enumerate(values) if value), 0)
    began = f"{range_of.start + timedelta(hours=first):%d %b %H:%M}"
    label = f"pairs that differ, per 60 min: {sum(values):,} in all, the first at {began}"
    marks = [(range_of.place(seen), f"first seen {moment(seen, now)}")] if is_new(seen, now) else []
    return histogram.histogram(values, label, width=width, ticks=ticks(range_of, now)[::every], marks=marks)


def pair_by_api(full: Full, row: dict[str, Any]) -> Rows:
    newest = full.asked("difference_pairs", from_=start_of(full, DAYS), to=full.to, **asked(row))[0]["request_id"]
    items = full.get(f"/v1/comparisons/{newest}")["items"]
    one = next(item for item in items if item["shadow_upstream"] == row["shadow_upstream"])
    judged = full.site.api.post("/v1/compare/preview", {"request_id": newest, "shadow": row["shadow_upstream"]}).json()
    n = sum(place["state"] == "counted" for place in judged["differences"])
    return _pair(newest, row["n_pairs"], one, n)


def pair_by_sql(full: Full, row: dict[str, Any]) -> Rows:
    (one,) = full.sql(
        "SELECT * FROM gnomon.comparisons AS c WHERE c.shadow_upstream = {shadow:String} AND c.request_id = ("
        f"SELECT f.request_id FROM gnomon.findings AS f WHERE {THIS} AND f.request_id IN ({COUNTED})"
        " ORDER BY f.at DESC, f.request_id LIMIT 1)",
        **bound(row),
    )
    (places,) = full.sql(
        "SELECT sum(n_paths) AS n FROM gnomon.findings WHERE request_id = {id:String}"
        " AND shadow_upstream = {shadow:String}",
        id=one["request_id"],
        shadow=row["shadow_upstream"],
    )
    return _pair(one["request_id"], same_by_sql(full, row)["n_pairs"], one, places["n"])


def _pair(request_id: str, n_pairs: int, one: dict[str, Any], n_places: int) -> Rows:
    sides = {
        side: (one[f"{side}_upstream"], one[f"{side}_duration_us"], one[f"{side}_bytes"])
        for side in ("primary", "shadow")
    }
    return {
        "": {
            "note": (request_id, n_pairs),
            "counts": n_places,
            "lines": None,
            "A": (*sides["primary"], one["block_number"], one["finality"]),
            "B": sides["shadow"],
        }
    }


def head_a(raw: Any) -> Markup:
    name, took, n_bytes, number, finality = raw
    asked_block = Markup(" · block {}").format(block(number)) if number is not None else ""
    return Markup("A primary {} · {} · {}{}, {}").format(name, micros(took), size(n_bytes), asked_block, finality)


def shares_by_api(full: Full, row: dict[str, Any]) -> Rows:
    rows = full.asked("difference_members", from_=start_of(full, DAYS), to=full.to, outcome="mismatch", **asked(row))
    return _shares([(r["member"], r["value"], r["these_ratio"], r["others_ratio"]) for r in rows])


def shares_by_sql(full: Full, row: dict[str, Any]) -> Rows:
    members = {
        "user": "user",
        "primary": "primary_upstream",
        "masks": "if(mask_version = '', 'none', mask_version)",
        "distance to head": "multiIf(isNull(block_number), 'not known',"
        " head_latest - block_number < 3, 'newest 3 blocks',"
        " head_latest - block_number < 64, 'to 63 blocks', head_latest - block_number < 1024, 'to 1,023 blocks',"
        " '1,024 blocks and more')",
        "size of the answer": "multiIf(primary_bytes < 1e3, 'below 1 KB', primary_bytes < 1e4, '1 to 10 KB',"
        " primary_bytes < 1e5, '10 to 100 KB', '100 KB and more')",
    }
    found = []
    for member, value in members.items():
        rows = full.sql(
            f"SELECT {value} AS value, countIf(request_id IN ({COUNTED})) AS these, countIf(request_id NOT IN"
            f" (SELECT f.request_id FROM gnomon.findings AS f WHERE {THIS})) AS others FROM gnomon.comparisons"
            " WHERE network = {network:String} AND method = {method:String} AND shadow_upstream = {shadow:String}"
            " AND at >= {to:DateTime64(3)} - INTERVAL 7 DAY AND at < {to:DateTime64(3)}"
            f" AND finality = 'finalized' AND {JUDGED} GROUP BY value",
            **bound(row),
        )
        these, others = sum(one["these"] for one in rows), sum(one["others"] for one in rows)
        found += [
            (member, one["value"], one["these"] / these, one["others"] / others if others else None)
            for one in rows
            if one["these"]
        ]
    return _shares(found)


def _shares(found: list[tuple[str, str, float, float | None]]) -> Rows:
    """Return of each member the value that most tells these pairs from the others."""
    rows: Rows = {}
    for member, value, these, others in sorted(found, key=lambda one: (-(one[2] - (one[3] or 0)), one[0], one[1])):
        rows.setdefault(member, {"Value": value, "These": these, "Others": others, "Shares": (these, others)})
    return rows


def beside(raw: Any) -> Markup:
    these, others = raw
    words = f"{percent(these)} of these pairs, {percent(others) or 'none'} of the others"
    return sparks.pair(these, others or 0.0, words)


def sides_by_api(full: Full, row: dict[str, Any]) -> Rows:
    others = full.asked("difference_others", from_=start_of(full, DAYS), to=full.to, **asked(row))
    return _sides(row, others)


def sides_by_sql(full: Full, row: dict[str, Any]) -> Rows:
    others = full.sql(
        "SELECT o.shadow_upstream AS other_upstream, any(o.is_control) AS is_control, count() AS n,"
        " countIf(o.outcome != 'mismatch') AS agrees_primary, countIf(o.shadow_hash = c.shadow_hash) AS agrees_shadow"
        " FROM gnomon.comparisons AS o INNER JOIN gnomon.comparisons AS c ON c.request_id = o.request_id"
        " AND c.shadow_upstream = {shadow:String} WHERE o.shadow_upstream != {shadow:String}"
        f" AND o.request_id IN ({COUNTED}) AND o.{JUDGED} GROUP BY other_upstream",
        **bound(row),
    )
    return _sides(same_by_sql(full, row), others)


def _sides(row: dict[str, Any], others: list[dict[str, Any]]) -> Rows:
    found: Rows = {}
    for one in others:
        name = (
            "asked twice (control), agrees with itself"
            if one["is_control"]
            else f"{one['other_upstream']}, asked the same, agrees with"
        )
        for_b = "not asked" if one["is_control"] else (one["agrees_shadow"], one["n"])
        found[name] = {"For A": (one["agrees_primary"], one["n"]), "For B": for_b}
    settled, odd = row["primary_right"] + row["shadow_right"], row["suspect_primary"] + row["suspect_shadow"]
    if settled:
        found["verdict when the block was final"] = {
            "For A": (row["primary_right"], settled),
            "For B": (row["shadow_right"], settled),
        }
    if odd:
        found["not the odd one out of all"] = {
            "For A": (row["suspect_shadow"], odd),
            "For B": (row["suspect_primary"], odd),
        }
    return found


def of(raw: Any) -> str:
    return raw if isinstance(raw, str) else f"{raw[0]:,} of {raw[1]:,}"


def report(panel: Node) -> Cells:
    """Return the lines of the report with counts in them, each by itself, and all of it."""
    text = panel.one("pre")
    lines = "".join(child for child in text.children if isinstance(child, str)).split("\n")
    others = [line for line in lines if line.startswith("Another node")]
    said = {"seen": lines[2], "counts": lines[3], "others": " ".join(others)}
    return {"": {**{name: Node("span", {}, [line]) for name, line in said.items()}, "whole": text}}


def reported(row: dict[str, Any], sides: Rows) -> Rows:
    agree = [
        (of_them["For A"], of_them["For B"])
        for name, of_them in sides.items()
        if name.endswith("asked the same, agrees with")
    ]
    n = max(row["n_judged"], row["n_pairs"])
    return {
        "": {
            "seen": (row["shadow_upstream"], row["network"], row["seen_at"], row["last_at"]),
            "counts": (row["n_pairs"], n, row["pairs_low"], row["pairs_high"]),
            "others": sorted(agree, reverse=True),
        }
    }


def counted_words(raw: Any) -> str:
    said = interval(raw)
    rated = f"{percent(raw[0] / raw[1])}, 95 % interval {said}" if said else "too few for a rate"
    return f"{raw[0]:,} of {raw[1]:,} compared answers ({rated})."


def agree_words(shadow: str) -> Callable[[Any], str]:
    return lambda raw: " ".join(
        f"Another node gave the expected answer in {a:,} of {n:,} of these requests, {shadow}'s in {b:,}."
        for (a, n), (b, _) in raw
    )


def finding(shadow: str) -> list[Entry]:
    """Return the numbers of the finding of a shadow that most pairs have."""
    row = the(shadow)

    def address(full: Full) -> str:
        return f"/divergence/{row(full)['finding']}"

    def entry(name: str, panel: str, read: Any, shown: Any, api: Any, sql: Any) -> Entry:
        return Entry(
            name=f"finding of {shadow}, {name}",
            address=address,
            panel=panel,
            read=read,
            shown=shown,
            api=lambda full: api(full, row(full)),
            sql=lambda full: sql(full, row(full)),
        )

    def whole(said: dict[str, Any]) -> Rows:
        return {"": {"below": [said[name] for name in NUMBERS]}}

    def steps(raw: Any) -> Rows:
        return {"": {"wide": raw, "narrow": raw, "note": len(raw[0])}}

    return [
        entry(
            "how much",
            "lead",
            parts(below=lambda part: part.all("p")[1]),
            {"below": Timed(lambda raw, now: below(dict(zip(NUMBERS, raw, strict=True)), now))},
            lambda full, row: whole(row),
            lambda full, row: whole(same_by_sql(full, row)),
        ),
        entry(
            "since when",
            "when",
            parts(
                wide=lambda part: part.one("div", "only-wide"),
                narrow=lambda part: part.one("div", "only-phone"),
                note=lambda part: part.one("span", "note"),
            ),
            {
                "wide": Timed(lambda raw, now: bars(raw, now, width=790)),
                "narrow": Timed(lambda raw, now: bars(raw, now, width=342, every=2)),
                "note": lambda n_steps: f"pairs per {duration(DAYS / n_steps)}, last 7 days",
            },
            lambda full, row: steps(steps_by_api(full, row)),
            lambda full, row: steps(steps_by_sql(full, row)),
        ),
        entry(
            "one pair",
            "pair",
            parts(
                note=lambda part: part.one("span", "note"),
                counts=lambda part: part.by_id("counts"),
                A=lambda part: part.one("div", "cols").all("div")[0],
                B=lambda part: part.one("div", "cols").all("div")[1],
                lines=lambda part: part.one("div", "diff"),
            ),
            {
                "note": lambda raw: Markup("request {} · pair 1 of {}").format(raw[0], exact(raw[1])),
                "counts": lambda raw: f"{raw:,} differ",
                "A": head_a,
                "B": lambda raw: Markup("B shadow {} · {} · {}").format(raw[0], micros(raw[1]), size(raw[2])),
                "lines": None,
            },  # the answers themselves: see test_aligned
            pair_by_api,
            pair_by_sql,
        ),
        entry(
            "in common",
            "common",
            table(),
            {"Value": lambda raw: shortened(raw, 10), "These": percent, "Others": percent, "Shares": beside},
            shares_by_api,
            shares_by_sql,
        ),
        entry("who is right", "right", table(), {"For A": of, "For B": of}, sides_by_api, sides_by_sql),
        entry(
            "report",
            "report",
            report,
            {
                "seen": lambda raw: f"{raw[0]} · {raw[1]} · first seen {iso(raw[2])}, last seen {iso(raw[3])}",
                "counts": counted_words,
                "others": agree_words(shadow),
                "whole": None,
            },  # beside them, the pair itself
            lambda full, row: reported(row, sides_by_api(full, row)),
            lambda full, row: reported(same_by_sql(full, row), sides_by_sql(full, row)),
        ),
    ]


FINDING = [*finding("node-b"), *finding("chainstack-eth")]
