"""The numbers of a finding."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from api.pages.address import span, ticks
from api.pages.charts import histogram, sparks
from api.pages.figures import (
    block,
    duration,
    exact,
    iso,
    micros,
    moment,
    percent,
    plural,
    shortened,
    size,
)
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Cells, Entry, Timed, parts, table
from tests.api.pages.lists.divergence import (
    DAYS,
    differences_by_api,
    differences_by_sql,
    interval,
    is_new,
)
from tests.api.pages.lists.series import JUDGED, WEEK, WILSON, start_of
from tests.api.pages.reading import Node


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


# --- rules, of a finding that one forgives ---------------------------------------------------------------------------

TOLERATED = {"shadow": "node-c", "outcome": "tolerated"}
"""Pairs of this shadow differ at one place each, which its configuration tolerates."""


def forgiven(full: Full) -> dict[str, Any]:
    """Return the difference that most of those pairs have."""
    rows = full.asked("differences", from_=start_of(full, DAYS), to=full.to, **TOLERATED)
    return max(rows, key=lambda row: row["n_pairs"])


def covers_by_api(full: Full) -> Rows:
    row = forgiven(full)
    pairs = full.asked("difference_pairs", from_=start_of(full, DAYS), to=full.to, outcome="tolerated", **asked(row))
    wanted = {"request_id": pairs[0]["request_id"], "shadow": row["shadow_upstream"]}
    said = full.site.api.post("/v1/compare/preview", wanted).json()
    effects = [(one["mask"], one["source"], one["hides"]) for one in said["masks"]]
    effects += [(one["tolerance"], one["source"], one["forgives"]) for one in said["tolerances"]]
    return {text: {"covers": (source, sum(one["n_paths"] for one in found))} for text, source, found in effects}


def covers_by_sql(full: Full) -> Rows:
    (pair,) = full.sql(
        "SELECT request_id, n_masked FROM gnomon.comparisons WHERE shadow_upstream = 'node-c' AND outcome = 'tolerated'"
        f" AND finality = 'finalized' AND {WEEK} ORDER BY at DESC LIMIT 1"
    )
    (places,) = full.sql(
        "SELECT sum(n_paths) AS n FROM gnomon.findings WHERE shadow_upstream = 'node-c' AND class = 'null_vs_absent'"
        " AND request_id = {id:String}",
        id=pair["request_id"],
    )
    preset: Rows = {
        mask: {"covers": ("preset", pair["n_masked"])} for mask in ("blockTimestamp", "logs.*.blockTimestamp")
    }
    return {"null_vs_absent": {"covers": ("configuration", places["n"])}, **preset}


def covers(raw: Any) -> str:
    source, n = raw
    words = "configured" if source == "configuration" else "mask of the chain's preset"
    return f"{words} · " + (f"covers {plural(n, 'place')} of this pair" if n else "covers nothing here")


def rules(panel: Node) -> Cells:
    """Return the rules in force by their text, with what is said of each."""
    labels = [one for one in panel.all("label") if any("checked" in box.attributes for box in one.all("input"))]
    return {one.one("span", "mono").text: {"covers": one.one("span", "sub")} for one in labels}


COVERED = Entry(
    name="rules of a tolerated finding",
    address=lambda full: f"/divergence/{forgiven(full)['finding']}?outcome=tolerated",
    panel="rules",
    read=rules,
    shown={"covers": covers},
    api=covers_by_api,
    sql=covers_by_sql,
)

FINDING = [*finding("node-b"), *finding("chainstack-eth"), COVERED]
