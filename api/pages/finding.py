"""
Finding: one kind of difference. What differs, how much, since when; one pair side by side; who is right; a report.

The page only shows what the one comparer says: which lines a rule covers, and the verdict.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from api.pages import aligned, earlier, figures, steps
from api.pages.address import ticks
from api.pages.charts import histogram, sparks
from api.pages.divergence import finality, outcome, who
from api.pages.figures import exact, iso, moment, percent, plural, rate, shown_path
from api.pages.judged import Judged, RuleLine, has_bodies, judged, mask_for
from api.pages.page import HAS_BEFORE, Around, Page, Panel, Shown, State, both, together
from gnomon.compare.exact import NotJson, TooDeep, text_of
from gnomon.compare.walk import ABSENT

MAX_PAIRS = 200
MAX_OPEN_ROWS = 320
"""Lines of one pair that are drawn at once; the rest comes on demand."""
HAS: Mapping[str, str] = {
    "value": "has another value", "type": "has another type", "hex_case": "is written in another case",
    "hex_padding": "is padded otherwise", "encoding": "is encoded otherwise",
    "null_vs_absent": "is null on one side, absent on the other", "missing_field": "is missing",
    "extra_field": "is there where the primary has none", "empty_vs_data": "is empty on one side",
    "array_order": "has another order", "array_length": "has another length", "stale_head": "is of an older head",
    "reorg_block_hash": "names another block of the same height",
    "error_vs_result": "is an error on one side, a result on the other",
    "error_code": "has another code", "error_message": "has another text",
}  # fmt: skip
TONES: Mapping[str, str] = {
    "mismatch": "bad",
    "error": "warn",
    "missing": "warn",
    "incomparable": "out",
    "undecided": "out",
}
"""Outcome → face of its chip; the others are grey."""


async def found(around: Around) -> Mapping[str, Any] | None:
    """Return the row of this difference; None where the range has no such pair."""
    rows = await around.rows("differences", finding=around.item, finality=finality(around), outcome=outcome(around))
    return rows[0] if rows else None


def what(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the difference as the questions about it take it."""
    return {
        "network": row["network"], "method": row["method"], "shadow": row["shadow_upstream"],
        "generic_path": row["generic_path"], "class_": row["class"],
    }  # fmt: skip


def _asked(around: Around, row: Mapping[str, Any]) -> dict[str, str]:
    return {**what(row), "finality": finality(around), "outcome": outcome(around)}


def _absent(around: Around) -> State:
    ways = [("Last 30 days", around.view.with_span("now-30d")), ("All differences", around.view.to("/divergence"))]
    words = "No pair of this range and these filters has it."
    return State(f"{around.item} was not seen", words, ways=ways)


# --- since when ------------------------------------------------------------------------------------------------------


async def when(around: Around) -> Shown | State:
    row = await found(around)
    if row is None:
        return _absent(around)
    view = around.view
    step = max(steps.seconds_of(view.span, 168), 60)
    given = {"step": str(step), **_asked(around, row)}
    (rows, old_rows), was = await together(
        both(lambda one: one.rows("difference_over_time", **given), around), _rate_before(around, row)
    )
    n = steps.count_of(view.span, step)
    values = [int(value or 0) for value in steps.series(rows, "n_pairs", n)]
    before = (
        [int(value or 0) for value in steps.series(old_rows, "n_pairs", n)]
        if old_rows is not None and was is not None
        else []
    )
    first = next((at for at, value in enumerate(values) if value), 0)
    marks = []
    if row["seen_at"] >= view.span.start + timedelta(hours=1):
        marks.append((view.span.place(row["seen_at"]), f"first seen {moment(row['seen_at'], view.clock)}"))
    began = moment(steps.started(view.span, first, step), view.clock)
    label = f"pairs that differ, per {figures.duration(step)}: {sum(values):,} in all, the first at {began}"
    marked = ticks(view.span, view.clock)
    return {
        "wide": histogram.histogram(values, label, width=790, ticks=marked, marks=marks, before=before),
        "narrow": histogram.histogram(values, label, width=342, ticks=marked[::2], marks=marks, before=before),
        "step": figures.duration(step),
        "row": row,
        "from_ms": int(view.span.start.timestamp() * 1000),
        "to_ms": int(view.span.end.timestamp() * 1000),
        "was": was,
        "values": values,
        "before": before,
        HAS_BEFORE: was is not None,
    }


async def _rate_before(around: Around, row: Mapping[str, Any]) -> figures.Rate | None:
    """Return the share of this difference in the range before; None where nothing was compared, or it is not asked."""
    before = around.before
    if before is None:
        return None
    old, compared = await together(
        found(before),
        before.rows(
            "compared_by_method", method=row["method"], shadow=row["shadow_upstream"], finality=finality(around)
        ),
    )
    n = sum(one["n_judged"] for one in compared if one["network"] == row["network"])
    k = old["n_pairs"] if old is not None else 0
    return rate(k, max(n, k)) if n else None


# --- one pair --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chosen:
    """The pair that is shown."""

    row: Mapping[str, Any]
    """Of the question `pair`."""
    number: int
    """From 1."""
    n: int
    n_listed: int
    judged: Judged
    """Under the rules in force."""


async def chosen(around: Around) -> Chosen | State:
    """Return the pair that the address names, judged; a state where there is none to show."""
    row = await found(around)
    if row is None:
        return _absent(around)
    pairs = await around.rows("difference_pairs", limit=str(MAX_PAIRS), **_asked(around, row))
    if not pairs:
        return _absent(around)
    said = around.view.get("pair", "1")
    number = min(max(int(said) if said.isdecimal() and len(said) < 9 else 1, 1), len(pairs))
    kept = await around.rows("pair", id=pairs[number - 1]["request_id"], shadow=row["shadow_upstream"])
    if not kept:
        return State("The pair is gone", "Its rows are older than `gnomon.retention.rows`.")
    pair = kept[0]
    found_now = await asyncio.to_thread(judged, pair, around.settings)
    return Chosen(pair, number, row["n_pairs"], len(pairs), found_now)


async def pair(around: Around) -> Shown | State:
    one = await chosen(around)
    if isinstance(one, State):
        return one
    row = one.row
    base: dict[str, Any] = {
        "one": one,
        "row": row,
        "tone": TONES.get(one.judged.verdict.outcome, ""),
        "counts": counts_words(one.judged),
        "previous": around.view.here(pair=str(one.number - 1)) if one.number > 1 else "",
        "next": around.view.here(pair=str(one.number + 1)) if one.number < one.n_listed else "",
        "raw": around.view.here(raw=None if around.view.get("raw") else "1"),
        "is_raw": around.view.get("raw") == "1",
        "request": around.view.to(f"/requests/{row['request_id']}"),
        "parts": [],
        "reason": "",
        "texts": (row["primary_body"], row["shadow_body"]),
    }
    if not has_bodies(row):
        return {**base, "reason": _why_no_bodies(row)}
    if base["is_raw"]:
        return base
    try:
        rows = lines(row, one.judged)
    except (NotJson, TooDeep, aligned.TooLong) as error:
        said = {
            "TooLong": f"An answer has more than {aligned.MAX_ROWS:,} lines.",
            "TooDeep": "An answer is nested too deep.",
        }
        return {**base, "reason": said.get(type(error).__name__, "An answer is no JSON."), "is_raw": True}
    return {
        **base,
        "parts": _capped(aligned.folded(rows)),
        "fates": fates(one.judged),
        "folds": around.view.part("lines"),
    }


async def fold(around: Around) -> Shown | State:
    """Return the lines of one fold, on demand."""
    one = await chosen(around)
    if isinstance(one, State):
        return one
    start, end = (
        int(text) if text.isdecimal() and len(text) < 9 else 0
        for text in (around.view.get("start"), around.view.get("end"))
    )
    rows = lines(one.row, one.judged)[start : min(end, start + 2000)]
    return {"rows": rows, "fates": fates(one.judged)}


def lines(row: Mapping[str, Any], said: Judged) -> list[aligned.Row]:
    """
    Return the lines of a pair, side by side.

    Raises:
        NotJson, TooDeep, TooLong: it cannot be laid out.
    """
    kinds = (row["primary_kind"], row["shadow_kind"])
    root = "$.error" if "error" in kinds else "$.result"
    differing = [place.path for place in said.places]
    if kinds[0] != kinds[1]:
        differing.append(root)
    return aligned.rows(
        aligned.decoded(kinds[0], row["primary_body"]), aligned.decoded(kinds[1], row["shadow_body"]), differing, root
    )


def fates(said: Judged) -> Mapping[str, str]:
    """Return the class of a line by its path: masked, tolerated, or counted (the rest)."""
    names = {"masked": "hid", "tolerated": "tol", "counted": "x"}
    return {place.path: names[place.state] for place in said.places}


def counts_words(said: Judged) -> str:
    """Return how many places differ, and how many the rules cover."""
    n_masked, n_tolerated = said.n("masked"), said.n("tolerated")
    words = [f"{said.n('counted'):,} differ"]
    words += [f"{n_masked:,} masked"] if n_masked else []
    words += [f"{n_tolerated:,} tolerated"] if n_tolerated else []
    return " · ".join(words)


def _capped(parts: Sequence[aligned.Part]) -> list[aligned.Part]:
    """Return as many lines as are drawn at once; what comes after is one more fold."""
    kept: list[aligned.Part] = []
    left = MAX_OPEN_ROWS
    for at, part in enumerate(parts):
        if part.is_folded or len(part.rows) <= left:
            kept.append(part)
            left -= 0 if part.is_folded else len(part.rows)
            continue
        if left > 0:
            kept.append(aligned.Part(part.rows[:left], part.start))
        rest = [*part.rows[max(left, 0) :], *(row for later in parts[at + 1 :] for row in later.rows)]
        n_differ = sum(not row.is_equal for row in rest)
        kept.append(
            aligned.Part(
                rest, part.start + max(left, 0), True, f"{len(rest):,} more lines, {n_differ:,} of them differ"
            )
        )
        break
    return kept


def _why_no_bodies(row: Mapping[str, Any]) -> str:
    if row["primary_is_cut"] or row["shadow_is_cut"]:
        return "An answer is larger than gnomon.events.maxBodyBytes: only its beginning is kept."
    return "The bodies are not kept any more, or never were (gnomon.retention.bodies, gnomon.shadow.keepBodies)."


# --- rules -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule with its box."""

    rule: RuleLine
    words: str
    is_on: bool = True


async def rules(around: Around) -> Shown | State:
    one = await chosen(around)
    if isinstance(one, State):
        return one
    row = await found(around)
    assert row is not None  # there is a pair
    shown = [RuleRow(line, f"{line.source} · {_covers(line)}") for line in one.judged.rules]
    suggested = mask_for(row["generic_path"])
    if suggested and suggested not in {line.text for line in one.judged.rules}:
        new = RuleLine("mask", suggested, "", None)
        shown.append(RuleRow(new, "not a rule yet: try it on this pair", is_on=False))
    return {
        "rules": shown,
        "request_id": one.row["request_id"],
        "shadow": one.row["shadow_upstream"],
        "can_judge": has_bodies(one.row),
        "setting": _setting(one.row, suggested),
        "try_mask": around.view.get("mask"),
        "start": iso(around.view.span.start),
        "end": iso(around.view.span.end),
    }


def _covers(line: RuleLine) -> str:
    """Return how many places of the pair a rule covers by itself."""
    if line.n_places is None:
        return "what it covers here is not known"
    return f"covers {plural(line.n_places, 'place')} of this pair" if line.n_places else "covers nothing here"


def _setting(row: Mapping[str, Any], mask: str) -> str:
    """Return what to write into the configuration for a mask to be in force."""
    if not mask:
        return ""
    return f"shadow:\n  enabled: true\n  ignoreFields:\n    {row['method']}: [{text_of(mask)}]"


# --- who is right, what they share -----------------------------------------------------------------------------------


async def right(around: Around) -> Shown | State:
    row = await found(around)
    if row is None:
        return _absent(around)
    others = await around.rows("difference_others", **_asked(around, row))
    rows: list[tuple[str, str, str]] = []
    for other in others:
        name = (
            "asked twice (control), agrees with itself"
            if other["is_control"]
            else f"{other['other_upstream']}, asked the same, agrees with"
        )
        for_b = "not asked" if other["is_control"] else _of(other["agrees_shadow"], other["n"])
        rows.append((name, _of(other["agrees_primary"], other["n"]), for_b))
    settled = row["primary_right"] + row["shadow_right"]
    if settled:
        rows.append(
            ("verdict when the block was final", _of(row["primary_right"], settled), _of(row["shadow_right"], settled))
        )
    odd = row["suspect_primary"] + row["suspect_shadow"]
    if odd:
        rows.append(("not the odd one out of all", _of(row["suspect_shadow"], odd), _of(row["suspect_primary"], odd)))
    if not rows:
        return State("Nobody else was asked", "With a second shadow, or a control shadow, the odd one out can be told.",
                     code="shadow: {enabled: true, control: true}")  # fmt: skip
    return {"rows": rows, "row": row}


def _of(k: int, n: int) -> str:
    return f"{k:,} of {n:,}"


async def common(around: Around) -> Shown | State:
    row = await found(around)
    if row is None:
        return _absent(around)
    rows = await around.rows("difference_members", **_asked(around, row))
    best: dict[str, Mapping[str, Any]] = {}
    for one in rows:
        best.setdefault(one["member"], one)
    if not best:
        return State("No pair to compare with", "This method and shadow have no other judged pair in the range.")
    shown = [
        {
            **one,
            "these": percent(one["these_ratio"]),
            "others": percent(one["others_ratio"]),
            "chart": sparks.pair(one["these_ratio"], one["others_ratio"] or 0.0, _shares(one)),
        }
        for one in best.values()
    ]
    return {"rows": shown}


def _shares(one: Mapping[str, Any]) -> str:
    return f"{percent(one['these_ratio'])} of these pairs, {percent(one['others_ratio']) or 'none'} of the others"


# --- report ----------------------------------------------------------------------------------------------------------


async def report(around: Around) -> Shown | State:
    row = await found(around)
    if row is None:
        return _absent(around)
    one, others = await together(chosen(around), around.rows("difference_others", **_asked(around, row)))
    if isinstance(one, State):
        return one
    return {"text": report_text(row, one, others)}


def report_text(row: Mapping[str, Any], one: Chosen, others: Sequence[Mapping[str, Any]]) -> str:
    """Return a report for a bug thread, in Markdown: what, how often, the request, paths with both values, limits."""
    n = max(row["n_judged"], row["n_pairs"])
    rated = rate(row["n_pairs"], n)
    path = shown_path(row["generic_path"])
    shadow = row["shadow_upstream"]
    said = [
        f"### {row['method']}: {path} {HAS.get(row['class'], 'differs')}",
        "",
        f"{shadow} · {row['network']} · first seen {iso(row['seen_at'])}, last seen {iso(row['last_at'])}",
        f"{row['n_pairs']:,} of {n:,} compared answers ({_rated(rated)}).",
        "",
        "Request",
        f'{{"jsonrpc":"2.0","id":1,"method":{text_of(row["method"])},"params":{one.row["params"] or "[]"}}}',
        "",
    ]
    shown = [place for place in one.judged.places if place.state == "counted"]
    cells = [("Path", "expected", shadow), *(_example(place.path, one.row) for place in shown[:6])]
    widths = [max(len(cell[at]) for cell in cells) for at in (0, 1)]
    said += ["```", *(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in cells)]
    if len(shown) > 6:
        said.append(f"… {len(shown) - 6:,} more in this answer")
    said += ["```", ""]
    for other in others:
        if other["n"] and not other["is_control"]:
            agrees = f"in {other['agrees_primary']:,} of {other['n']:,} of these requests"
            mine = f"{shadow}'s in {other['agrees_shadow']:,}"
            said.append(f"Another node gave the expected answer {agrees}, {mine}.")
    hidden = sorted({place.path for place in one.judged.places if place.state != "counted"})
    if hidden:
        more = f", … ({len(hidden) - 3:,} more)" if len(hidden) > 3 else ""
        said.append(f"Not part of this report: {', '.join(shown_path(path) for path in hidden[:3])}{more}.")
    return "\n".join(said).rstrip() + "\n"


def _rated(rated: figures.Rate) -> str:
    return f"{rated.figure}, 95 % interval {rated.interval}" if rated.interval else "too few for a rate"


def _example(path: str, row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a path with both values, cut."""
    values = []
    for side in ("primary", "shadow"):
        try:
            value = aligned.decoded(row[f"{side}_kind"], row[f"{side}_body"])
            values.append(_short(value_at(value, path)))
        except (NotJson, TooDeep):
            values.append("?")
    return shown_path(path), values[0], values[1]


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:40]}…{text[-12:]}"


def value_at(value: Any, path: str) -> str:
    """Return the JSON of a place; `absent` where it is not there."""
    root = "$.error" if path.startswith("$.error") else "$.result"
    rest = path[len(root) :]
    while rest and value is not ABSENT:
        if rest.startswith("['"):
            end = rest.index("']")
            key, rest = rest[2:end].replace("\\'", "'").replace("\\\\", "\\"), rest[end + 2 :]
            value = value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
        elif rest.startswith("["):
            end = rest.index("]")
            at, rest = int(rest[1:end]), rest[end + 1 :]
            value = value[at] if isinstance(value, list) and at < len(value) else ABSENT
        else:
            key = rest[1:].replace("[", ".").split(".", 1)[0]
            rest = rest[1 + len(key) :]
            value = value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
    return "absent" if value is ABSENT else text_of(value)


# --- the page --------------------------------------------------------------------------------------------------------


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str | Markup, str | Markup]:
    """Return what differs in words, and below it how much, since when, who is right."""
    content = shown.get("when")
    if content is None or isinstance(content, State):
        return f"{around.item} was not seen in this range.", ""
    row = content["row"]
    view = around.view
    path = shown_path(row["generic_path"])
    subject = (
        Markup('<span class="path">{}</span>').format(path)
        if path != "$"
        else Markup("The whole result of {}").format(row["method"])
    )
    first = Markup("{} {} at {}").format(subject, HAS.get(row["class"], "differs"), row["shadow_upstream"])
    n = max(row["n_judged"], row["n_pairs"])
    rated = rate(row["n_pairs"], n)
    much = Markup("{} of {} pairs").format(exact(row["n_pairs"]), exact(n))
    if rated.interval:
        much += Markup(", <b>{}</b> ({})").format(rated.figure, rated.interval)
    words, css = who([row], row["class"])
    if content["was"] is not None:
        much += Markup("{}").format(earlier.share(rated, content["was"]))
    said = {"primary": "primary is right", "shadow": "shadow is right"}.get(words, words)
    since = Markup("since {}, last {}").format(moment(row["seen_at"], view.clock), moment(row["last_at"], view.clock))
    below = Markup('{} · class {} · {} · <b class="{}">{}</b>').format(much, row["class"], since, css, said)
    return first, below


PAGE = Page(
    name="finding",
    path="/divergence/{item}",
    title="Finding",
    default_from="now-7d",
    own=("pair", "mask", "finality", "outcome", "raw", "start", "end"),
    lead=lead,
    here="divergence",
    crumbs=(("Divergence", "/divergence"),),
    panels=(
        Panel(name="when", title="Since when, how often?", build=when, template="finding_when.html", compares="dotted",
              questions=("difference_over_time",)),
        Panel(name="pair", title="One pair, side by side", build=pair, template="finding_pair.html", tall=400,
              css="diffp"),
        Panel(name="common", title="What do these pairs have in common?", build=common, template="finding_common.html",
              is_slow=True, tall=200, questions=("difference_members",)),
        Panel(name="rules", title="Rules that touch this pair", build=rules, template="finding_rules.html"),
        Panel(name="right", title="Who is right?", build=right, template="finding_right.html", is_slow=True, tall=160,
              questions=("difference_others",)),
        Panel(name="report", title="Report for a bug thread", build=report, template="finding_report.html",
              is_slow=True, tall=320),
        Panel(name="lines", title="Lines", build=fold, template="finding_lines.html", is_apart=True),
    ),
)  # fmt: skip
