"""Heads: who is behind, in blocks and time, since when; did blocks change under us; who learns of a block first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from api.pages import earlier, figures, known, steps
from api.pages.address import HOURS, ticks
from api.pages.charts import heads as drawing
from api.pages.charts import sparks, svg
from api.pages.earlier import Was
from api.pages.figures import block, duration, iso, moment, percent, plural, shortened
from api.pages.heads import LIMIT_BLOCKS, Lag, lags
from api.pages.page import HAS_BEFORE, Around, Chip, Page, Panel, Shown, State, both, together

N_STEPS = 180
RIDGE = 260
"""Pixels of the lag in time, so that the table fits its panel at 1280."""
AXES = ("latest", "safe", "finalized")
FAR_AHEAD_BLOCKS = 128
"""So far above the second highest a head is an outlier, and does not set the network's."""


def axis_of(around: Around) -> str:
    """Return the axis of the page."""
    said = around.view.get("axis", "latest")
    return said if said in AXES else "latest"


@dataclass(frozen=True, slots=True)
class HeadRow:
    """One upstream."""

    id: str
    href: str
    tier: str
    number: figures.Figure
    hash: figures.Figure
    lag: int | None
    seconds: figures.Figure
    is_lagging: bool
    final_lag: figures.Figure
    source: str
    age: str
    part: str
    is_healthy: bool
    ridge: Markup
    peak: figures.Figure
    """Blocks behind at most, in the range."""
    peak_was: Was


@dataclass(frozen=True, slots=True)
class Group:
    """One network."""

    network: str
    title: str
    rows: Sequence[HeadRow]
    found: Mapping[str, Lag]
    has_trouble: bool


async def behind(around: Around) -> Shown | State:
    view, axis = around.view, axis_of(around)
    step = steps.seconds_of(view.span, N_STEPS)
    (found, before), finals, now = await together(
        both(lambda one: lags(one, step, axis), around),
        lags(around, step, "finalized"),
        around.rows("heads_now", from_=iso(_early(around))),
    )
    if not found:
        return State(
            "No head is known in this range",
            "Generic networks have none. An EVM upstream shows its first one when it is first polled.",
            ways=[("Last 24 h", view.with_span("now-24h"))],
        )
    details = {(row["network"], row["upstream"]): row for row in now if row["axis"] == axis}
    top = max([2.0 * LIMIT_BLOCKS, *(lag.peak for lag in found.values())])
    top = svg.nice_top(min(top, 8.0 * LIMIT_BLOCKS))
    groups = []
    for network in sorted({key[0] for key in found}):
        groups.append(_group(around, network, found, before or {}, finals, details, top))
    groups.sort(key=lambda group: (not group.has_trouble, group.network))
    return {
        "groups": groups,
        "axis_chart": sparks.ticks(ticks(view.span, view.clock, most=5), width=RIDGE, height=18),
        "top": f"{top:,.10g}",
        "limit": LIMIT_BLOCKS,
        "step": step,
        "axis": axis,
        HAS_BEFORE: bool(before),
    }


def _early(around: Around) -> Any:
    """Return the start of the range, or a day before its end where that is earlier: a head may rest that long."""
    return min(around.view.span.start, around.view.span.end - timedelta(hours=24))


def _group(
    around: Around,
    network: str,
    found: Mapping[tuple[str, str], Lag],
    before: Mapping[tuple[str, str], Lag],
    finals: Mapping[tuple[str, str], Lag],
    details: Mapping[tuple[str, str], Mapping[str, Any]],
    top: float,
) -> Group:
    mine = {upstream: lag for (net, upstream), lag in found.items() if net == network}
    tiers = {one.id: one.tier for one in known.upstreams(around.settings) if one.network == network}
    order = {one.id: at for at, one in enumerate(known.upstreams(around.settings))}
    head = max((lag.number or 0 for lag in mine.values()), default=0)
    far = _far_ahead(mine)
    rows = []
    for upstream in sorted(mine, key=lambda name: (order.get(name, 999), name)):
        lag = mine[upstream]
        was = before.get((network, upstream))
        final = finals.get((network, upstream))
        row = details.get((network, upstream))
        tier = tiers.get(upstream, "")
        lagging = lag.now is not None and lag.now > LIMIT_BLOCKS
        rows.append(
            HeadRow(
                id=upstream,
                href=around.view.to(f"/upstreams/{upstream}"),
                tier=tier or "not configured",
                number=block(lag.number) if lag.now is not None else figures.UNKNOWN,
                hash=shortened(row["hash"]) if row and lag.now is not None else figures.UNKNOWN,
                lag=lag.now,
                seconds=duration(lag.seconds) if lag.now is not None else figures.UNKNOWN,
                is_lagging=lagging,
                final_lag=figures.exact(final.now) if final is not None else figures.UNKNOWN,
                source=_source(row, lag),
                age=_age(around, row),
                part=_part(upstream, lag, tier, far),
                is_healthy=not lagging and lag.now is not None and upstream != far,
                ridge=drawing.ridge(
                    lag.values,
                    f"lag of {upstream} in blocks over the range",
                    top=top,
                    limit=float(LIMIT_BLOCKS),
                    before=steps.of_length(was.values, len(lag.values)) if was else (),
                    width=RIDGE,
                ),
                peak=figures.exact(round(lag.peak)),
                peak_was=earlier.level(round(lag.peak), round(was.peak) if was else None),
            )
        )
    seconds = next((lag.block_seconds for lag in mine.values()), 0.0)
    title = f"{known.label(network)}" + (f", a block each {duration(seconds)}" if seconds else "")
    finalized = max((lag.number or 0 for (net, _), lag in finals.items() if net == network), default=0)
    title += f" · head {head:,}" + (f" · finalized {finalized:,}" if finalized else "")
    counted = {row.id for row in rows if row.tier != "shadow"}
    trouble = any(row.id in counted and not row.is_healthy for row in rows)
    return Group(network, title, rows, mine, trouble)


def _far_ahead(mine: Mapping[str, Lag]) -> str:
    """Return the upstream whose head is too far above all others to be believed; empty where none is."""
    numbers = sorted(((lag.number or 0, name) for name, lag in mine.items() if lag.now is not None), reverse=True)
    if len(numbers) > 1 and numbers[0][0] - numbers[1][0] > FAR_AHEAD_BLOCKS:
        return numbers[0][1]
    return ""


def _source(row: Mapping[str, Any] | None, lag: Lag) -> str:
    if lag.now is None:
        return "lost"
    return str(row["source"]) if row else ""


def _age(around: Around, row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    at = max(row["last_at"], row["heard_at"] or row["last_at"])
    return str(duration(max((around.view.span.end - at).total_seconds(), 0.0)))


def _part(upstream: str, lag: Lag, tier: str, far: str) -> str:
    """Return what an upstream's head counts for."""
    if lag.now is None:
        return "left out: unknown"
    if upstream == far:
        return "left out: far ahead"
    if tier == "shadow":
        return "compared only"
    if lag.now > LIMIT_BLOCKS:
        return f"{lag.now:,} behind"
    return "at the head" if lag.now == 0 else "within the limit"


# --- reorgs, delays ------------------------------------------------------------------------------------------------


async def reorgs(around: Around) -> Shown | State:
    start = min(around.view.span.start, around.view.span.end - timedelta(days=7))
    rows = (await around.page("reorgs", {"from": iso(start)}, limit=12, cursor=None)).records()
    if not rows:
        return State("No reorg in this time", "No upstream replaced a block that it had shown.")
    now = around.view.clock
    return {
        "rows": [
            {**row, "when": moment(row["at"], now, with_seconds=True), "old": shortened(row["old_hash"]),
             "new": shortened(row["new_hash"])}
            for row in rows
        ]
    }  # fmt: skip


async def first(around: Around) -> Shown | State:
    start = min(around.view.span.start, around.view.span.end - timedelta(hours=24))
    rows = await around.rows("head_delays", from_=iso(start))
    if not rows:
        return State("Nothing to compare", "Fewer than two upstreams of a network showed the same block.")
    groups = []
    for network in dict.fromkeys(row["network"] for row in rows):
        mine = [row for row in rows if row["network"] == network]
        total = sum(row["n_first"] for row in mine)
        top = svg.nice_top(max(row["p99_seconds"] for row in mine))
        groups.append(
            (
                known.label(network),
                str(duration(top)),
                [
                    {
                        **row,
                        "share": percent(row["n_first"] / total) if total else figures.UNKNOWN,
                        "p50": duration(row["p50_seconds"]),
                        "p99": duration(row["p99_seconds"]),
                        "chart": _delay(row, top),
                    }
                    for row in mine
                ],
            )
        )
    return {"groups": groups}


def _delay(row: Mapping[str, Any], top: float) -> Markup:
    half, most = duration(row["p50_seconds"]), duration(row["p99_seconds"])
    label = f"{row['upstream']}: half within {half}, 99 in 100 within {most}"
    return drawing.delay(row["p50_seconds"], row["p99_seconds"], label, top_seconds=top)


# --- the page ------------------------------------------------------------------------------------------------------


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return who is behind or unknown, and since when, network by network."""
    content = shown.get("behind")
    if content is None or isinstance(content, State):
        return "No head is known in this range.", ""
    tiers = {(one.network, one.id): one.tier for one in known.upstreams(around.settings)}
    said = []
    for group in content["groups"]:
        words = _trouble(around, group, content["step"], tiers)
        worst = max((lag.now or 0 for lag in group.found.values()), default=0)
        name = known.short(group.network)
        level = f"all heads within {plural(worst, 'block')}" if worst else "all heads at the same block"
        said.append(f"{name}: {words or level}.")
    return " ".join(said[:3]), ""


def _trouble(around: Around, group: Group, step: int, tiers: Mapping[tuple[str, str], str]) -> str:
    parts = []
    for row in group.rows:
        if row.is_healthy or tiers.get((group.network, row.id)) == "shadow":
            continue
        lag = group.found[row.id]
        start = ""
        if lag.since_step is not None:
            at = steps.started(around.view.span, lag.since_step, step)
            start = f" since {moment(at, around.view.clock)}"
        if lag.now is None:
            parts.append(f"{row.id} has been unknown{start}")
        elif row.is_lagging:
            parts.append(f"{row.id} lags {plural(lag.now, 'block')} ({duration(lag.seconds)}){start}")
        else:
            parts.append(f"{row.id} is far ahead of all others")
    return "; ".join(parts)


def chips(around: Around) -> list[Chip]:
    """Return the filters in force."""
    view = around.view
    axis = axis_of(around)
    found = [Chip("axis", axis, view.here(axis=None))] if axis != "latest" else []
    found += [Chip("network", net, view.with_networks([n for n in view.networks if n != net])) for net in view.networks]
    return found


PAGE = Page(
    name="heads",
    path="/heads",
    title="Heads",
    default_from=HOURS,
    own=("axis",),
    can_be_live=True,
    lead=lead,
    chips=chips,
    panels=(
        Panel(
            name="behind",
            title="Who is behind, since when?",
            build=behind,
            template="heads_behind.html",
            tall=400,
            on="heads",
            compares="dotted",
            questions=("head_lag_in_steps", "heads_now"),
        ),
        Panel(name="reorgs", title="Did blocks change under us?", build=reorgs, template="heads_reorgs.html",
              is_slow=True, tall=200, questions=("reorgs",)),
        Panel(name="first", title="Who learns of a block first?", build=first, template="heads_first.html",
              is_slow=True, tall=240, questions=("head_delays",)),
    ),
)  # fmt: skip
