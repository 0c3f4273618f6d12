"""
Divergence: how often does each shadow differ, where, who is right, since when?

Masked, tolerated and undecided pairs are counted apart; none of them hides in identical.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from api.pages import choices, earlier, figures, known
from api.pages.charts import sparks
from api.pages.choices import Choices
from api.pages.earlier import NOT_ASKED, Was
from api.pages.figures import count, exact, moment, percent, rate, share, usd
from api.pages.overview import no_difference
from api.pages.page import HAS_BEFORE, Around, Chip, Page, Panel, Shown, State, both, together
from api.pages.watched import candidate

FORM_ONLY = frozenset({"hex_case", "hex_padding", "encoding", "null_vs_absent", "array_order", "extra_field"})
"""Classes that change how a value is written, not what it says: neither side is wrong."""
HEAT = (1e-5, 1e-4, 1e-3, 1e-2)
"""Upper ends of the first four steps of the matrix; fixed, so that two days look comparable."""
MAX_ROWS = 200
OWN = ("shadow", "method", "class", "finality", "outcome", "sort", "all")
ALL = "all"
"""What finality or outcome is when it filters nothing."""
SORTS = ("harm", "pairs", "new")


def finality(around: Around) -> str:
    """Return the finality that the address filters by; empty = all."""
    said = around.view.get("finality", "finalized")
    return "" if said == ALL else said


def outcome(around: Around) -> str:
    """Return the outcome that the address filters by; empty = all."""
    said = around.view.get("outcome", "mismatch")
    return "" if said == ALL else said


def filters(around: Around) -> dict[str, str]:
    """Return the filters as the questions take them."""
    view = around.view
    return {
        "method": view.get("method"),
        "shadow": view.get("shadow"),
        "class": view.get("class"),
        "finality": finality(around),
        "outcome": outcome(around),
    }


# --- verdicts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One shadow."""

    network: str
    shadow: str
    href: str
    sample: str
    n: figures.Figure
    identical: figures.Figure
    masked: figures.Figure
    tolerated: figures.Figure
    rate: figures.Rate
    counts: Mapping[str, figures.Figure]
    n_was: Was
    rate_was: Was


async def by_shadow(around: Around) -> list[dict[str, Any]]:
    """Return the counts of each shadow under the filters."""
    view = around.view
    rows = await around.rows("divergence_by_shadow", finality=finality(around), method=view.get("method"))
    return [row for row in rows if view.get("shadow") in ("", row["shadow_upstream"])]


async def verdicts(around: Around) -> Shown | State:
    view = around.view
    midnight = view.span.end.replace(hour=0, minute=0, second=0, microsecond=0)
    (rows, before), spend = await together(
        both(by_shadow, around),
        around.rows("spend_by_upstream", from_=figures.iso(midnight)),
    )
    if not rows:
        return await _nothing(around)
    paid = {(row["network"], row["upstream"]): row["usd_shadow"] for row in spend}
    upstreams = {(one.network, one.id): one for one in known.upstreams(around.settings)}
    old = {(row["network"], row["shadow_upstream"]): row for row in before or ()}
    shown = []
    for row in rows:
        key = (row["network"], row["shadow_upstream"])
        n = row["n_judged"]
        rated = rate(row["mismatch"], n)
        was = old.get(key)
        n_was = (was["n_judged"] if was else 0) if old else None
        shown.append(
            Verdicts(
                network=row["network"],
                shadow=row["shadow_upstream"],
                href=view.here(shadow=row["shadow_upstream"]),
                sample=_sample(upstreams.get(key), paid.get(key)),
                n=exact(n),
                identical=share(row["identical"], n),
                masked=share(row["identical_masked"], n),
                tolerated=share(row["tolerated"], n),
                rate=rated,
                n_was=earlier.amount(n, n_was, exact(n_was)),
                rate_was=earlier.share(rated, rate(was["mismatch"], was["n_judged"])) if was else NOT_ASKED,
                counts={
                    name: exact(row[name]) for name in ("mismatch", "error", "incomparable", "missing", "undecided")
                },
            )
        )
    return {
        "rows": shown,
        "found": rows,
        "n_networks": len({row.network for row in shown}),
        HAS_BEFORE: bool(before),
    }


def _sample(upstream: known.Known | None, paid: Decimal | None) -> str:
    """Return how a shadow is asked: every request, 1 in 20, its price today."""
    if upstream is None:
        return "no longer configured"
    said = "every request" if upstream.sample_rate >= 1 else _one_in(upstream.sample_rate)
    if upstream.is_control:
        said += " · primary again"
    if not upstream.is_own:
        said += f" · {usd(paid)} today" if paid is not None else " · unpriced"
    return said


def _one_in(sample_rate: float) -> str:
    if sample_rate <= 0:
        return "nothing"
    inverse = 1 / sample_rate
    return f"1 in {round(inverse):,}" if abs(inverse - round(inverse)) < 0.01 else f"{percent(sample_rate)} of requests"


async def _nothing(around: Around) -> State:
    """Return which kind of nothing it is: filtered out, or as `no_difference` says."""
    view = around.view
    filtered = [name for name in ("shadow", "method", "class") if view.get(name)]
    if filtered or view.networks:
        ways = [
            (
                "Remove filters",
                view.to("/divergence") if view.networks else view.here(shadow=None, method=None, **{"class": None}),
            )
        ]
        return State(
            "Filtered out",
            "No pair fits: " + ", ".join(f"{name} {view.get(name)}" for name in filtered) or view.network,
            ways=ways,
        )
    return await no_difference(around, view.span.start)


# --- matrix ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """One difference at one shadow."""

    css: str
    """`h0` to `h5`; `na` where the shadow does not get the method."""
    share: figures.Figure
    n: figures.Figure | None
    href: str


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One path and kind of a method, over all shadows."""

    path: str
    whole_path: str
    is_whole_result: bool
    kind: str
    kind_href: str
    cells: Sequence[Cell]
    right: str
    right_css: str
    seen: figures.Moment
    is_new: bool
    trend: Any
    harm: tuple[int, float]
    n_pairs: int
    before: Was = NOT_ASKED
    """Its pairs of all shadows in the range before."""


@dataclass(frozen=True, slots=True)
class Group:
    """One method."""

    network: str
    method: str
    href: str
    n: Sequence[Cell]
    rows: Sequence[MatrixRow]


async def matrix(around: Around) -> Shown | State:
    view = around.view
    asked = filters(around)
    (found, found_before), (compared, compared_before), shadows = await together(
        both(lambda one: one.rows("differences", **_named(asked)), around),
        both(lambda one: one.rows("compared_by_method", **_only(asked, "method", "shadow", "finality")), around),
        by_shadow(around),
    )
    if not compared:
        return await _nothing(around)
    columns = sorted({(row["network"], row["shadow_upstream"]) for row in compared}, key=_column_order(around))
    n_by_key = {(row["network"], row["method"], row["shadow_upstream"]): row["n_judged"] for row in compared}
    before = _pairs_by_row(found_before or ()) if compared_before else None
    groups = _groups(around, found, columns, n_by_key, before)
    if not found and (asked["class"] or asked["outcome"] not in ("", "mismatch")):
        return await _nothing(around)
    n_rows = sum(len(group.rows) for group in groups)
    is_cut = n_rows > MAX_ROWS and view.get("all") != "1"
    return {
        "columns": columns,
        "several": len({network for network, _ in columns}) > 1,
        "groups": _cut(groups) if is_cut else groups,
        "n_rows": n_rows,
        "all": view.here(all="1") if is_cut else "",
        "n_masked": count(sum(row["masked"] for row in compared)),
        "n_tolerated": count(sum(row["tolerated"] for row in compared)),
        "found": found,
        "sentence": sentence(around, shadows, found),
        "n_gone": len((before or {}).keys() - _pairs_by_row(found).keys()),
        "earlier": around.view.before().here() if before else "",
        HAS_BEFORE: before is not None,
    }


Key = tuple[str, str, str, str]
"""Network, method, generic path and class: one row of the matrix."""


def _named(asked: Mapping[str, str]) -> dict[str, str]:
    """Return filters as arguments; `class` is a word of Python."""
    return {f"{key}_" if key == "class" else key: value for key, value in asked.items()}


def _only(asked: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: asked[name] for name in names}


def _pairs_by_row(found: Sequence[Mapping[str, Any]]) -> dict[Key, int]:
    """Return the pairs of each difference, over all shadows."""
    pairs: dict[Key, int] = {}
    for row in found:
        key = (row["network"], row["method"], row["generic_path"], row["class"])
        pairs[key] = pairs.get(key, 0) + row["n_pairs"]
    return pairs


def _column_order(around: Around) -> Any:
    """Return the order of columns: as configured, control shadows last."""
    place = {(one.network, one.id): (one.is_control, at) for at, one in enumerate(known.upstreams(around.settings))}
    return lambda key: (key[0], place.get(key, (False, len(place))), key[1])


def _groups(
    around: Around,
    found: Sequence[Mapping[str, Any]],
    columns: Sequence[tuple[str, str]],
    n_by_key: Mapping[tuple[str, str, str], int],
    before: Mapping[Key, int] | None,
) -> list[Group]:
    by_row: dict[tuple[str, str, str, str], dict[str, Mapping[str, Any]]] = {}
    for row in found:
        key = (row["network"], row["method"], row["generic_path"], row["class"])
        by_row.setdefault(key, {})[row["shadow_upstream"]] = row
    by_method: dict[tuple[str, str], list[MatrixRow]] = {}
    for (network, method, path, kind), cells in by_row.items():
        row_before = before.get((network, method, path, kind), 0) if before is not None else None
        by_method.setdefault((network, method), []).append(
            _row(around, network, method, path, kind, cells, columns, n_by_key, row_before)
        )
    for network, method, _ in n_by_key:
        by_method.setdefault((network, method), [])
    sort = around.view.get("sort", "harm")
    groups = []
    for (network, method), rows in by_method.items():
        rows.sort(key=_ROW_ORDER.get(sort, _ROW_ORDER["harm"]))
        groups.append(
            Group(
                network,
                method,
                around.view.here(method=method),
                _head_cells(around, network, method, columns, n_by_key),
                rows,
            )
        )
    first = _ROW_ORDER.get(sort, _ROW_ORDER["harm"])
    groups.sort(
        key=lambda group: (not group.rows, first(group.rows[0]) if group.rows else (), group.network, group.method)
    )
    return groups


_ROW_ORDER: Mapping[str, Any] = {
    "harm": lambda row: (-row.harm[0], -row.harm[1]),
    "pairs": lambda row: (-row.n_pairs, 0.0),
    "new": lambda row: (not row.is_new, -row.n_pairs),
}


def _head_cells(
    around: Around,
    network: str,
    method: str,
    columns: Sequence[tuple[str, str]],
    n_by_key: Mapping[tuple[str, str, str], int],
) -> list[Cell]:
    ignored = {(one.network, one.id): one.methods for one in known.upstreams(around.settings)}
    cells = []
    for column in columns:
        n = n_by_key.get((network, method, column[1])) if column[0] == network else None
        if n is not None:
            cells.append(Cell("h", count(n), None, ""))
        elif column[0] == network and method in ignored.get(column, ()):
            cells.append(Cell("na", figures.Figure("excluded"), None, ""))
        else:
            cells.append(Cell("na", figures.UNKNOWN, None, ""))
    return cells


def _row(
    around: Around,
    network: str,
    method: str,
    path: str,
    kind: str,
    cells: Mapping[str, Mapping[str, Any]],
    columns: Sequence[tuple[str, str]],
    n_by_key: Mapping[tuple[str, str, str], int],
    before: int | None,
) -> MatrixRow:
    view = around.view
    shown = []
    for column in columns:
        n = n_by_key.get((network, method, column[1])) if column[0] == network else None
        if n is None:
            shown.append(Cell("na", figures.UNKNOWN, None, ""))
            continue
        row = cells.get(column[1])
        if row is None:
            shown.append(Cell("h h0", figures.Figure("0", "0"), None, ""))
            continue
        part = _part(row, n)
        shown.append(
            Cell(
                f"h {heat(part)}",
                percent(part),
                exact(row["n_pairs"]),
                view.to(f"/divergence/{row['finding']}", **_kept(view)),
            )
        )
    rows = list(cells.values())
    right, css = who(rows, kind)
    seen = min(row["seen_at"] for row in rows)
    days = [sum(column) for column in zip(*(row["days"] for row in rows), strict=True)]
    is_new = seen >= view.span.start + timedelta(hours=1)
    words = figures.shown_path(path)
    return MatrixRow(
        path=words,
        whole_path=path,
        is_whole_result=words == "$",
        kind=kind,
        kind_href=view.here(**{"class": kind}),
        cells=shown,
        right=right,
        right_css=css,
        seen=moment(seen, view.clock),
        is_new=is_new,
        trend=sparks.bars(days, f"pairs a day: {', '.join(map(str, days))}", css_class="ar-b" if is_new else "ln-f"),
        harm=(
            3 if kind == "empty_vs_data" else {"primary": 2, "shadow": 2, "not settled": 1}.get(right, 0),
            max(_part(row, n_by_key.get((network, method, name), 0)) for name, row in cells.items()),
        ),
        n_pairs=sum(row["n_pairs"] for row in rows),
        before=earlier.amount(sum(row["n_pairs"] for row in rows), before, exact(before)),
    )  # fmt: skip


def _part(row: Mapping[str, Any], n: int) -> float:
    """Return the share of compared pairs; one can be counted before its minute is, so the sample holds it at least."""
    return float(row["n_pairs"] / max(n, row["n_pairs"], 1))


def _kept(view: Any) -> dict[str, str]:
    """Return the filters that a finding keeps, so that it counts what the cell counted."""
    return {name: view.get(name) for name in ("finality", "outcome") if view.get(name)}


def heat(part: float) -> str:
    """Return the step of a share: five on a fixed log scale, h0 for none."""
    if part <= 0:
        return "h0"
    return f"h{1 + sum(part >= end for end in HEAT)}"


def who(rows: Sequence[Mapping[str, Any]], kind: str) -> tuple[str, str]:
    """
    Return who is right, and the class of the words: settled pairs first, then who is the odd one out.

    Args:
        rows: of the question `differences`, one per shadow.
    """
    if kind in FORM_ONLY:
        return "form only", "t2"
    primary = sum(row["primary_right"] for row in rows)
    shadow = sum(row["shadow_right"] for row in rows)
    if primary != shadow:
        return ("primary", "ca") if primary > shadow else ("shadow", "cb")
    odd_shadow = sum(row["suspect_shadow"] for row in rows)
    odd_primary = sum(row["suspect_primary"] for row in rows)
    if odd_shadow != odd_primary:
        return ("primary", "ca") if odd_shadow > odd_primary else ("shadow", "cb")
    return "not settled", "dim"


def _cut(groups: Sequence[Group]) -> list[Group]:
    """Return the first rows alone."""
    left, kept = MAX_ROWS, []
    for group in groups:
        if left <= 0:
            break
        kept.append(Group(group.network, group.method, group.href, group.n, group.rows[:left]))
        left -= len(group.rows)
    return kept


# --- filters ---------------------------------------------------------------------------------------------------------


async def _choices(around: Around) -> list[Choices]:
    """Return what the pairs of the range can be filtered by, whatever the other filters are."""
    said = finality(around)
    compared, found, shadows = await together(
        around.rows("compared_by_method", finality=said),
        around.rows("differences", finality=said, outcome=outcome(around)),
        around.rows("divergence_by_shadow", finality=said),
    )
    outcomes = [(name, row[name]) for row in shadows for name in _OUTCOMES]
    return [
        choices.choices(around, "shadow", "pairs", choices.summed(compared, "shadow_upstream", "n_judged")),
        choices.choices(around, "method", "pairs", choices.summed(compared, "method", "n_judged")),
        choices.choices(around, "class", "differing", choices.summed(found, "class", "n_pairs")),
        choices.choices(around, "outcome", "pairs", outcomes, now=outcome(around)),
    ]


_OUTCOMES = ("identical_masked", "tolerated", "mismatch", "error", "incomparable", "missing", "undecided")
"""Outcomes of pairs that differ in some way: columns of `divergence_by_shadow` too."""


# --- the page --------------------------------------------------------------------------------------------------------


def chips(around: Around) -> list[Chip]:
    """Return the filters in force."""
    view = around.view
    found = [Chip("network", net, view.with_networks([n for n in view.networks if n != net])) for net in view.networks]
    found.append(
        Chip(
            "finality",
            finality(around) or ALL,
            view.here(finality=ALL) if finality(around) else view.here(finality=None),
        )
    )
    found.append(
        Chip("outcome", outcome(around) or ALL, view.here(outcome=ALL) if outcome(around) else view.here(outcome=None))
    )
    found += [
        Chip(name, view.get(name), view.here(**{name: None}))
        for name in ("shadow", "method", "class")
        if view.get(name)
    ]
    return found


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return the first sentence; what makes most of the difference comes with the matrix, which may be late."""
    table, content = shown.get("verdicts"), shown.get("matrix")
    if table is None or isinstance(table, State):
        return "", ""
    found = () if content is None or isinstance(content, State) else content["found"]
    return sentence(around, table["found"], found)


def sentence(
    around: Around, shadows: Sequence[Mapping[str, Any]], differences: Sequence[Mapping[str, Any]]
) -> tuple[str, str]:
    """
    Return how much the worst shadow differs, what makes most of it, and a second line where there is too little.

    Args:
        shadows: rows of `divergence_by_shadow`.
        differences: rows of `differences`; none where they are not known yet.
    """
    worst = candidate(shadows, around)
    if worst is None:
        return "Nothing was compared in this range.", ""
    name, n = worst["shadow_upstream"], worst["n_judged"]
    found = rate(worst["mismatch"], n)
    of_what = (
        f"{finality(around)} answers"
        if finality(around) not in ("", "finalized")
        else "final answers"
        if finality(around)
        else "answers"
    )
    if n < figures.MIN_RATE_N:
        return f"Too few pairs to judge: {name} differs in {worst['mismatch']} of {n} {of_what}.", _needed(
            worst["mismatch"], n
        )
    if worst["mismatch"] == 0:
        return f"No shadow differs in {of_what}: {name} in {found.in_words}.", ""
    first = f"{name} differs in {found.figure} of {of_what} ({found.interval}, n {found.n})."
    mine = [row for row in differences if row["shadow_upstream"] == name and row["network"] == worst["network"]]
    if not mine:
        return first, ""
    top = max(mine, key=lambda row: row["n_pairs"])
    part = min(top["n_pairs"] / worst["mismatch"], 1.0)
    began = ", and it began" if top["seen_at"] > around.view.span.start + timedelta(hours=1) else ", since"
    return f"{first} One path makes {percent(part)} of it{began} {moment(top['seen_at'], around.view.clock)}.", ""


def _needed(k: int, n: int) -> str:
    interval = figures.wilson(k, n)
    needed = f"About {figures.needed_for(0.0001):,} without a difference are needed for a limit of 0.01 %."
    return f"With {n} pairs the rate may be {figures.between(interval.low, interval.high)}. {needed}"


PAGE = Page(
    name="divergence",
    path="/divergence",
    title="Divergence",
    default_from="now-7d",
    own=OWN,
    lead=lead,
    chips=chips,
    panels=(
        Panel(name="verdicts", title="Does the shadow answer as the primary does?", build=verdicts,
              template="divergence_verdicts.html", compares="below", questions=("divergence_by_shadow",)),
        Panel(name="matrix", title="Where do they differ?", build=matrix, template="divergence_matrix.html", tall=480,
              is_slow=True, compares="below",
              questions=("differences", "compared_by_method")),
        choices.panel(_choices, ("compared_by_method", "differences", "divergence_by_shadow")),
    ),
)  # fmt: skip
