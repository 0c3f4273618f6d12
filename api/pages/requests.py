"""Requests: which were there; and one as a trace: why it left the primary, what each call cost, what shadows said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.errors import Refused
from api.pages import figures, known
from api.pages.charts import waterfall
from api.pages.figures import block, micros, moment, plural, price, size
from api.pages.money import why
from api.pages.page import Around, Chip, Page, Panel, Shown, State
from api.routes.requests import trace_of

PAGE_ROWS = 50
FILTERS = ("method", "upstream", "cause", "outcome", "user")
SKIPPED = "skipped, no call"


# --- the list ------------------------------------------------------------------------------------------------------


async def listed(around: Around) -> Shown | State:
    view = around.view
    given = {name: view.get(name) for name in FILTERS if view.get(name)}
    given |= {"tier": "fallback"} if view.get("paid") == "1" else {}
    rows = await around.page("requests", given, limit=PAGE_ROWS, cursor=view.get("after") or None)
    found = rows.records()
    if not found:
        return _nothing(around, bool(given))
    return {
        "rows": [
            {
                **row,
                "href": view.to(f"/requests/{row['request_id']}"),
                "when": moment(row["at"], view.clock, with_seconds=True),
                "why": why("client", row["cause"]) if row["cause"] else None,
                "asked": _asked(row),
                "tone": {"error": "bad", "rejected": "warn", "invalid": "warn"}.get(row["outcome"], ""),
                "filter": view.here(method=row["method"], after=None),
            }
            for row in found
        ],
        "more": view.here(after=rows.next_cursor) if rows.next_cursor else "",
        "first": view.here(after=None) if view.get("after") else "",
    }


def _asked(row: Mapping[str, Any]) -> figures.Figure:
    if row["block_number"] is not None:
        return block(row["block_number"])
    return figures.Figure(row["block_tag"])


def _nothing(around: Around, is_filtered: bool) -> State:
    if is_filtered or around.view.get("after"):
        return State("Filtered out", "No request fits the filters.", ways=[("Remove filters", "/requests")])
    return State(
        "No request in this range",
        "Send one to the proxy; it is here within a second or two.",
        ways=[("Last 24 h", around.view.with_span("now-24h")), ("Last 7 days", around.view.with_span("now-7d"))],
    )


def list_lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str, str]:
    """Return how many requests are shown, and of what."""
    content = shown.get("list")
    if content is None or isinstance(content, State):
        return "No request to show.", ""
    rows = content["rows"]
    newest = rows[0]["when"]
    failed = sum(row["outcome"] == "error" for row in rows)
    more = " and more" if content["more"] else ""
    return f"{plural(len(rows), 'request')}{more}, the newest at {newest}; {failed:,} of these without an answer.", ""


def chips(around: Around) -> list[Chip]:
    """Return the filters in force."""
    view = around.view
    found = [Chip("network", net, view.with_networks([n for n in view.networks if n != net])) for net in view.networks]
    found += [
        Chip(name, view.get(name), view.here(**{name: None, "after": None})) for name in FILTERS if view.get(name)
    ]
    if view.get("paid") == "1":
        found.append(Chip("served by", "paid fallback", view.here(paid=None, after=None)))
    return found


LIST = Page(
    name="requests",
    path="/requests",
    title="Requests",
    default_from="now-1h",
    own=(*FILTERS, "paid", "after"),
    lead=list_lead,
    chips=chips,
    panels=(
        Panel(
            name="list",
            title="What did clients ask?",
            build=listed,
            template="requests_list.html",
            tall=480,
            questions=("requests",),
        ),
    ),
)


# --- one request ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the waterfall."""

    number: str
    upstream: str
    kind: str
    chart: Markup
    took: figures.Figure
    answer: str
    is_served: bool
    cost: figures.Figure | str
    reason: str


async def _trace(around: Around) -> Mapping[str, Any] | State:
    try:
        return await trace_of(around.asks, around.item)
    except Refused as error:
        return State(
            "Nothing is stored of this request", error.detail, ways=[("Requests", around.view.to("/requests"))]
        )


async def steps(around: Around) -> Shown | State:
    trace = await _trace(around)
    if isinstance(trace, State):
        return trace
    request = trace["request"]
    calls = trace["attempts"]
    mirrored = [shadow["attempt"] for shadow in trace["shadows"] if shadow["attempt"]]
    total = _total_ms(request, calls, mirrored)
    shown: list[Step] = []
    if request and request["n_skipped_open"]:
        n = request["n_skipped_open"]
        words = "its breaker was open" if n == 1 else "their breakers were open"
        name = plural(n, "upstream")
        shown.append(Step("", name, "primary", waterfall.skipped(SKIPPED), figures.UNKNOWN, "none", False, "", words))
    for number, call in enumerate(calls, 1):
        shown.append(_call(str(number), call, total, request))
    for number, shadow in enumerate(trace["shadows"], len(calls) + 1):
        shown.append(_mirrored(str(number), shadow, total, request, around))
    return {"steps": shown, "scale": waterfall.scale(total), "trace": trace, "request": request}


def _total_ms(request: Mapping[str, Any] | None, calls: Sequence[Any], mirrored: Sequence[Any]) -> float:
    served = request["duration_us"] if request else 0
    ends = [call["start_us"] + call["duration_us"] for call in calls]
    ends += [served + call["start_us"] + call["duration_us"] for call in mirrored]
    return float(max([served, *ends, 1])) / 1000 * 1.02


def _call(number: str, call: Mapping[str, Any], total: float, request: Mapping[str, Any] | None) -> Step:
    start, took = call["start_us"] / 1000, call["duration_us"] / 1000
    is_served = bool(
        request and call["upstream"] == request["upstream"] and call["outcome"] in ("result", "verdict", "empty")
        and not call["is_cancelled"] and call["cause"] == request["cause"]
    )  # fmt: skip
    css = why(call["kind"], call["cause"]).css_class if call["vendor"] else "ar-m"
    kind = call["tier"] if call["kind"] == "client" else f"{call['tier']}, {call['kind']}"
    return Step(
        number, call["upstream"], kind, waterfall.call(start, start + took, total, css), micros(call["duration_us"]),
        _answer(call) + (", served" if is_served else ""), is_served, cost_of(call), _reason(call),
    )  # fmt: skip


def _answer(call: Mapping[str, Any]) -> str:
    if call["is_cancelled"] or call["outcome"] == "cancelled":
        return "cancelled"
    if call["error_class"]:
        return (
            f"{call['outcome']}: {call['error_class']}" if call["outcome"] != call["error_class"] else call["outcome"]
        )
    return "empty" if call["is_empty"] else str(call["outcome"])


def cost_of(call: Mapping[str, Any]) -> figures.Figure | str:
    """Return what a call cost: all its digits, `own` for an own node, `unpriced` where nobody knows."""
    if not call["vendor"]:
        return "own"
    return price(Decimal(call["usd"])) if call["usd"] is not None else "unpriced"


def _reason(call: Mapping[str, Any]) -> str:
    said = []
    if call["cause"]:
        said.append(f"{call['cause']}")
    elif call["kind"] == "client":
        said.append("first in its order")
    if call["vendor"] and call["usd"] is not None and call["units"] is not None and Decimal(call["units"]):
        units = Decimal(call["units"])
        per_million = Decimal(call["usd"]) / units * 1_000_000
        said.append(f"{units.normalize():f} units at {price(round(per_million, 6))} per 1 M")
    if call["is_wasted"]:
        said.append("paid and of no use")
    return ". ".join(said)


def _mirrored(
    number: str, shadow: Mapping[str, Any], total: float, request: Mapping[str, Any] | None, around: Around
) -> Step:
    call, verdict = shadow["attempt"], shadow["comparison"]
    if call is None:
        words = f"not mirrored: {shadow['decision']}" if shadow["decision"] else "not stored yet"
        return Step(
            "", shadow["upstream"], "shadow", waterfall.skipped(SKIPPED), figures.UNKNOWN, "none", False, "", words
        )
    start = (request["duration_us"] if request else 0) / 1000
    took = call["duration_us"] / 1000
    reason = "mirrored after the answer"
    if verdict:
        reason += f"; {verdict['class']}" if verdict["class"] != "none" else "; no difference"
        if shadow["findings"]:
            reason += f" at {figures.shown_path(shadow['findings'][0]['generic_path'])}"
    outcome = verdict["outcome"] if verdict else _answer(call)
    chart = waterfall.call(start, start + took, total, "ar-b")
    return Step(
        number, shadow["upstream"], "shadow", chart, micros(call["duration_us"]), outcome, False, cost_of(call), reason
    )


async def facts(around: Around) -> Shown | State:
    trace = await _trace(around)
    if isinstance(trace, State):
        return trace
    request = trace["request"]
    if request is None:
        return State("The request itself is not stored yet", "Its shadows' rows are; it comes within seconds.")
    sources = await around.rows("request_source", id=around.item)
    return {
        "request": request,
        "source": sources[0] if sources else None,
        "asked": _distance(request),
        "totals": trace["totals"],
        "usd": price(Decimal(trace["totals"]["usd"])) if trace["totals"]["usd"] is not None else None,
        "usd_shadow": price(Decimal(trace["totals"]["usd_shadow"]))
        if trace["totals"]["usd_shadow"] is not None
        else None,
        "size": size(request["response_bytes"]),
        "network": known.label(request["network"]),
        "why": why("client", request["cause"]) if request["cause"] else None,
        "same": around.view.to("/requests", cause=request["cause"], method=request["method"])
        if request["cause"]
        else "",
        "pairs": [
            (shadow["upstream"], shadow["comparison"]["outcome"], shadow["comparison"]["class"])
            for shadow in trace["shadows"]
            if shadow["comparison"]
        ],
    }


def _price(text: str | None) -> figures.Figure | None:
    return None if text is None else price(Decimal(text))


def _distance(request: Mapping[str, Any]) -> str:
    asked, head = request["block_number"], request["head_latest"]
    if asked is None:
        return request["block_tag"] or "no block"
    if head is None:
        return ""
    behind = head - asked
    return (
        f"{abs(behind):,} {'below' if behind >= 0 else 'above'} the network's head" if behind else "the network's head"
    )


def lead(around: Around, shown: Mapping[str, Shown | State]) -> tuple[str | Markup, str]:
    """Return what it cost and why it left the primary."""
    content = shown.get("steps")
    if content is None or isinstance(content, State):
        return f"Nothing is stored of {around.item}.", ""
    trace, request = content["trace"], content["request"]
    if request is None:
        return "The request itself is not stored yet.", ""
    left = [f"{call['upstream']} {_answer(call)}" for call in trace["attempts"] if not _has_served(call, request)]
    cause = request["cause"]
    amount = trace["totals"]["usd"]
    is_paid = amount is not None and Decimal(amount) > 0
    if request["outcome"] == "error":
        first = f"No answer after {plural(request['n_attempts'], 'call')}"
    elif request["short_circuited"]:
        first = "Answered without a call: its block lies in the future"
    elif is_paid:
        first = f"A paid answer for {price(Decimal(amount))}"
    else:
        first = f"Served by {request['upstream']} in {micros(request['duration_us'])}"
    because = [f"{cause}"] if cause else []
    because += left[:3]
    return first + (": " + ", ".join(because) if because else ""), ""


def _has_served(call: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    return bool(call["upstream"] == request["upstream"] and call["outcome"] in ("result", "verdict", "empty"))


PAGE = Page(
    name="request",
    path="/requests/{item}",
    title="Request",
    default_from="now-1h",
    lead=lead,
    here="requests",
    has_range=False,
    crumbs=(("Requests", "/requests"),),
    panels=(
        Panel(name="steps", title="What happened, in order?", build=steps, template="request_steps.html", tall=200),
        Panel(name="facts", title="The request", build=facts, template="request_facts.html", tall=240),
    ),
)
