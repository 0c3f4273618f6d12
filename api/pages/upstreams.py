"""Upstreams: who there is, and one's score card: availability, latency by method, lag, empties, differences, spend."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from api.pages import earlier, figures, known, steps
from api.pages.address import ticks
from api.pages.charts import heads as drawing
from api.pages.charts import sparks, svg
from api.pages.earlier import NOT_ASKED, Was
from api.pages.figures import count, duration, micros, moment, percent, rate, usd
from api.pages.heads import LIMIT_BLOCKS, breaker_changes, lags, open_spans
from api.pages.page import HAS_BEFORE, Around, Page, Panel, Shown, State, both, together
from api.routes.upstreams import cards

N_STEPS = 144


async def _cards(around: Around) -> list[dict[str, Any]]:
    view = around.view
    given = {"from": figures.iso(view.span.start), "to": figures.iso(view.span.end)}
    found, _ = await cards(around.asks, around.settings, given)
    return [card for card in found if not view.networks or card["network"] in view.networks]


def _health(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the calls of a card over its tiers."""
    rows = card["health"]
    n = sum(row["n"] for row in rows)
    return {
        "n": n,
        "n_failed": sum(row["n_failed"] for row in rows),
        "n_empty": sum(row["n_empty"] for row in rows),
        "p50_us": max((row["p50_us"] for row in rows), default=None),
        "p99_us": max((row["p99_us"] for row in rows), default=None),
    }


def _money(card: Mapping[str, Any]) -> figures.Figure | str:
    if not card["vendor"]:
        return "own"
    amount = _usd(card)
    return usd(amount) if amount is not None else "nothing priced"


def _usd(card: Mapping[str, Any]) -> Decimal | None:
    """Return what is priced of a card's calls; None where nothing is."""
    amounts = [Decimal(row["usd"]) for row in card["spend"] if row["usd"] is not None]
    return sum(amounts, Decimal(0)) if amounts else None


def _was(card: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Was]:
    """Return the figures of a card as they were in the range before; nothing shown where nothing is known of it."""
    if before is None:
        return dict.fromkeys(("n", "failed", "empty", "p50", "p99", "mismatch", "usd"), NOT_ASKED)
    now, old = _health(card), _health(before)
    mismatch, usd_before = _mismatch(card), _usd(before)
    return {
        "n": earlier.amount(now["n"], old["n"], count(old["n"])),
        "failed": earlier.share(rate(now["n_failed"], now["n"]), rate(old["n_failed"], old["n"])),
        "empty": earlier.share(rate(now["n_empty"], now["n"]), rate(old["n_empty"], old["n"])),
        "p50": earlier.amount(now["p50_us"], old["p50_us"], micros(old["p50_us"])),
        "p99": earlier.amount(now["p99_us"], old["p99_us"], micros(old["p99_us"])),
        "mismatch": earlier.share(mismatch, _mismatch(before)) if mismatch else NOT_ASKED,
        "usd": earlier.amount(_usd(card), usd_before, usd(usd_before)),
    }


def _by_key(cards: Sequence[Mapping[str, Any]] | None) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the cards of the range before, where anything at all is known of it."""
    has_any = any(card["health"] or card["spend"] or card["divergence"] for card in cards or ())
    return {(card["network"], card["upstream"]): card for card in cards or ()} if has_any else {}


def _mismatch(card: Mapping[str, Any]) -> figures.Rate | None:
    rows = card["divergence"]
    return rate(sum(r["mismatch"] for r in rows), sum(r["n_judged"] for r in rows)) if rows else None


def _latest(card: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((row for row in card["heads"] if row["axis"] == "latest"), None)


# --- the list ------------------------------------------------------------------------------------------------------


async def table(around: Around) -> Shown | State:
    found, found_before = await both(_cards, around)
    old = _by_key(found_before)
    if not found:
        return State("No upstream", "None is configured, and none was called in this range.", code="upstreams: […]")
    groups: dict[str, list[dict[str, Any]]] = {}
    for card in found:
        health = _health(card)
        head = _latest(card)
        breaker = card["breaker"][0]["state"] if card["breaker"] else "closed"
        groups.setdefault(card["network"], []).append(
            {
                "id": card["upstream"],
                "href": around.view.to(f"/upstreams/{card['upstream']}"),
                "tier": card["tier"] if card["is_configured"] else "not configured any more",
                "vendor": card["vendor"] or "own",
                "state": breaker,
                "n": count(health["n"]),
                "failed": rate(health["n_failed"], health["n"]),
                "empty": percent(health["n_empty"] / health["n"]) if health["n"] else figures.UNKNOWN,
                "p50": micros(health["p50_us"]),
                "p99": micros(health["p99_us"]),
                "lag": figures.exact(head["lag_blocks"]) if head else figures.UNKNOWN,
                "mismatch": _mismatch(card),
                "usd": _money(card),
                "was": _was(card, old.get((card["network"], card["upstream"]))),
            }
        )
    return {
        "groups": [(known.label(network), rows) for network, rows in sorted(groups.items())],
        "n": len(found),
        HAS_BEFORE: bool(old),
    }


def list_lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return how many there are, and which of them fails."""
    content = shown.get("table")
    if content is None or isinstance(content, State):
        return "No upstream to show.", ""
    rows = [row for _, group in content["groups"] for row in group]
    open_now = [row["id"] for row in rows if row["state"] != "closed"]
    called = [row for row in rows if row["failed"].total]
    worst = max(called, key=lambda row: row["failed"].k / row["failed"].total, default=None)
    said = f"{figures.plural(len(rows), 'upstream')}."
    said += f" The breaker of {', '.join(open_now[:3])} is not closed." if open_now else " All breakers are closed."
    if worst is not None and worst["failed"].k:
        said += f" {worst['id']} fails most: {worst['failed'].in_words}."
    return said, ""


LIST = Page(
    name="upstreams",
    path="/upstreams",
    title="Upstreams",
    default_from="now-24h",
    lead=list_lead,
    panels=(Panel(name="table", title="How does each do?", build=table, template="upstreams_table.html", tall=400,
                  compares="below",
                  questions=("upstream_health", "spend_by_upstream")),),
)  # fmt: skip


# --- one -----------------------------------------------------------------------------------------------------------


async def _card(around: Around) -> dict[str, Any] | State:
    return _mine(around, await _cards(around))


def _mine(around: Around, cards: Sequence[dict[str, Any]]) -> dict[str, Any] | State:
    found = [card for card in cards if card["upstream"] == around.item]
    if not found:
        ways = [("All upstreams", around.view.to("/upstreams"))]
        return State(f"There is no upstream {around.item}", "None is configured, and none was called so.", ways=ways)
    return found[0]


async def _who(around: Around) -> Mapping[str, Any] | State:
    """Return network, id and vendor of the upstream: of the configuration, else of its card, which asks much more."""
    networks = around.view.networks
    for one in known.upstreams(around.settings):
        if one.id == around.item and (not networks or one.network in networks):
            return {"network": one.network, "upstream": one.id, "vendor": one.vendor}
    return await _card(around)


async def facts(around: Around) -> Shown | State:
    found, found_before = await both(_cards, around)
    card = _mine(around, found)
    if isinstance(card, State):
        return card
    old = _by_key(found_before)
    health, head = _health(card), _latest(card)
    breaker = card["breaker"][0] if card["breaker"] else None
    return {
        "card": card,
        "network": known.label(card["network"]),
        "health": health,
        "n": count(health["n"]),
        "failed": rate(health["n_failed"], health["n"]),
        "empty": rate(health["n_empty"], health["n"]),
        "p50": micros(health["p50_us"]),
        "p99": micros(health["p99_us"]),
        "usd": _money(card),
        "was": _was(card, old.get((card["network"], card["upstream"]))),
        HAS_BEFORE: bool(old),
        "mismatch": _mismatch(card),
        "head": head,
        "breaker": breaker,
        "breaker_since": moment(_time(breaker["state_at"]), around.view.clock) if breaker else figures.NEVER,
        "divergence": around.view.to("/divergence", shadow=card["upstream"]),
        "requests": around.view.to("/requests", upstream=card["upstream"]),
    }


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


async def latency(around: Around) -> Shown | State:
    card = await _who(around)
    if isinstance(card, State):
        return card
    step = steps.seconds_of(around.view.span, N_STEPS)
    given = {"network": card["network"], "upstream": card["upstream"], "step": str(step)}
    rows, before = await both(lambda one: one.rows("upstream_in_steps", **given), around)
    if not rows:
        return State("No call in this range", "Neither a client's request nor a mirrored one reached it.")
    old = {row["step"]: row for row in before or ()}
    return {
        "rows": _timed(around, rows, old, step),
        "step": duration(step),
        HAS_BEFORE: bool(old),
    }


def _timed(
    around: Around, rows: Sequence[Mapping[str, Any]], old: Mapping[int, Mapping[str, Any]], step: int
) -> list[dict[str, Any]]:
    """Return the steps with calls in this range or in the one before, in order, each with both."""
    now = {row["step"]: row for row in rows}
    n = steps.count_of(around.view.span, step)
    return [
        {"at": steps.started(around.view.span, at, step), "now": now.get(at), "before": old.get(at)}
        for at in sorted(now.keys() | {at for at in old if at < n})
    ]


async def lag(around: Around) -> Shown | State:
    card = await _who(around)
    if isinstance(card, State):
        return card
    view = around.view
    step = steps.seconds_of(view.span, N_STEPS)
    (found, before), changes = await together(both(lambda one: lags(one, step), around), breaker_changes(around))
    mine = found.get((card["network"], card["upstream"]))
    if mine is None:
        return State("No head is known", "Its network has none, or it was never polled.")
    was = (before or {}).get((card["network"], card["upstream"]))
    top = svg.nice_top(max(mine.peak, 2.0 * LIMIT_BLOCKS))
    spans = open_spans(changes, card["network"], card["upstream"], view.span)
    return {
        "ridge": drawing.ridge(
            mine.values,
            f"lag of {card['upstream']}",
            top=top,
            limit=LIMIT_BLOCKS,
            before=steps.of_length(was.values, len(mine.values)) if was else (),
            width=380,
            height=60,
        ),
        "breaker": sparks.spans(spans, f"breaker of {card['upstream']}", width=380),
        "axis": sparks.ticks(ticks(view.span, view.clock, most=5), width=380),
        "now": mine.now,
        "peak": f"{mine.peak:,.0f}",
        "peak_was": f"{was.peak:,.0f}" if was else "",
        HAS_BEFORE: was is not None,
        "top": f"{top:,.10g}",
        "limit": LIMIT_BLOCKS,
    }


async def methods(around: Around) -> Shown | State:
    card = await _who(around)
    if isinstance(card, State):
        return card
    given = {"network": card["network"], "upstream": card["upstream"]}
    rows, before = await both(lambda one: one.rows("upstream_methods", **given), around)
    if not rows:
        return State("No call in this range", "It was asked nothing.")
    old = {row["method"]: row for row in before or ()}
    return {
        "rows": [
            {**row, "failed": rate(row["n_failed"], row["n"]), "empty": rate(row["n_empty"], row["n"]),
             "cost": usd(row["usd"]) if card["vendor"] else figures.UNKNOWN,
             "was": _method_was(row, old),
             "href": around.view.to("/requests", method=row["method"], upstream=card["upstream"])}
            for row in rows
        ],
        "is_own": not card["vendor"],
        HAS_BEFORE: bool(old),
    }  # fmt: skip


def _method_was(row: Mapping[str, Any], old: Mapping[str, Mapping[str, Any]]) -> dict[str, Was]:
    """Return a method's figures as they were; a method that was not asked then had no call, and no latency."""
    before = old.get(row["method"])
    n = (before["n"] if before else 0) if old else None
    if before is None:
        return {"n": earlier.amount(row["n"], n, count(n)), **dict.fromkeys(("failed", "p99", "cost"), NOT_ASKED)}
    return {
        "n": earlier.amount(row["n"], n, count(n)),
        "failed": earlier.share(rate(row["n_failed"], row["n"]), rate(before["n_failed"], before["n"])),
        "p99": earlier.amount(row["p99_us"], before["p99_us"], micros(before["p99_us"])),
        "cost": earlier.amount(row["usd"], before["usd"], usd(before["usd"])),
    }


async def errors(around: Around) -> Shown | State:
    card = await _who(around)
    if isinstance(card, State):
        return card
    rows = await around.rows("errors_by_class", network=card["network"])
    rows = [row for row in rows if row["upstream"] == card["upstream"]]
    if not rows:
        return State("Nothing went wrong", "Every call in this range was answered.")
    return {"rows": [{**row, "last": moment(row["last_at"], around.view.clock)} for row in rows]}


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return what it is, whether its breaker is closed, how often it fails and how far it is behind."""
    content = shown.get("facts")
    if content is None or isinstance(content, State):
        return f"There is no upstream {around.item}.", ""
    card = content["card"]
    said = f"{card['upstream']} is a {card['tier']} of {known.short(card['network'])}"
    breaker = content["breaker"]
    if breaker and breaker["state"] != "closed":
        said += f"; its breaker is {breaker['state'].replace('_', ' ')} since {content['breaker_since']}"
    said += f". {_calls(content)}"
    return said, ""


def _calls(content: Mapping[str, Any]) -> str:
    if not content["health"]["n"]:
        return "It was not called in this range."
    return f"It failed {content['failed'].in_words}; p99 {content['p99']}."


PAGE = Page(
    name="upstream",
    path="/upstreams/{item}",
    title="Upstream",
    default_from="now-24h",
    here="upstreams",
    crumbs=(("Upstreams", "/upstreams"),),
    lead=lead,
    panels=(
        Panel(name="latency", title="How fast, over time?", build=latency, template="upstream_latency.html", tall=320,
              is_slow=True, compares="dotted", questions=("upstream_in_steps",)),
        Panel(name="methods", title="How does it answer each method?", build=methods,
              template="upstream_methods.html", is_slow=True, tall=240, compares="below",
              questions=("upstream_methods",)),
        Panel(name="facts", title="Score card", build=facts, template="upstream_facts.html", tall=240,
              compares="below"),
        Panel(name="lag", title="Was it behind, was it open?", build=lag, template="upstream_lag.html", is_slow=True,
              tall=160, compares="dotted"),
        Panel(name="errors", title="What went wrong?", build=errors, template="upstream_errors.html", is_slow=True,
              tall=160, questions=("errors_by_class",)),
    ),
)  # fmt: skip
