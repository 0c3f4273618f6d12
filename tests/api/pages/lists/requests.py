"""The numbers of Requests, and of the page of one."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from api.pages.charts import waterfall
from api.pages.figures import block, exact, micros, moment, plural, price, shortened, shown_path, size
from api.pages.money import why
from tests.api.pages.full import Full, Rows
from tests.api.pages.listed import Entry, Timed, at, by, facts, parts, table, when
from tests.api.pages.listed import usd as amount
from tests.api.pages.lists.series import start_of

HOUR = 3600


# --- the newest ------------------------------------------------------------------------------------------------------


def newest_by_api(full: Full) -> list[dict[str, Any]]:
    rows = full.asked("requests", from_=start_of(full, HOUR), to=full.to, limit=50)
    return [{**row, "at": when(row["at"])} for row in rows]


def newest_by_sql(full: Full) -> list[dict[str, Any]]:
    return full.sql(
        "SELECT * FROM gnomon.requests WHERE at >= {to:DateTime64(3)} - INTERVAL 1 HOUR AND at < {to:DateTime64(3)}"
        " ORDER BY at DESC, request_id DESC LIMIT 50"
    )


def newest(rows: list[dict[str, Any]]) -> Rows:
    return by(
        rows,
        "request_id",
        {
            "At": "at",
            "Request": "request_id",
            "Block": lambda r: r["block_tag"] if r["block_number"] is None else r["block_number"],
            "Calls": "n_attempts",
            "Took": "duration_us",
        },
    )


def counted(full: Full, rows: list[dict[str, Any]]) -> Rows:
    return {"": {"lead": (len(rows), rows[0]["at"], sum(row["outcome"] == "error" for row in rows))}}


REQUESTS = [
    Entry(
        name="requests, first sentence",
        address=at("/requests"),
        panel="lead",
        read=parts(lead=lambda part: part.one("p", "lead")),
        shown={
            "lead": Timed(
                lambda raw, now: (
                    f"{raw[0]} requests and more, the newest at {moment(raw[1], now, with_seconds=True)};"
                    f" {raw[2]:,} of these without an answer."
                )
            )
        },
        api=lambda full: counted(full, newest_by_api(full)),
        sql=lambda full: counted(full, newest_by_sql(full)),
    ),
    Entry(
        name="requests",
        address=at("/requests"),
        panel="list",
        read=table(key=("Request",)),
        shown={
            "At": Timed(lambda raw, now: moment(raw, now, with_seconds=True)),
            "Request": lambda raw: shortened(raw, 8),
            "Block": lambda raw: raw if isinstance(raw, str) else block(raw),
            "Calls": str,
            "Took": micros,
        },
        api=lambda full: newest(newest_by_api(full)),
        sql=lambda full: newest(newest_by_sql(full)),
    ),
]


# --- one -------------------------------------------------------------------------------------------------------------


def trace_by_api(full: Full, request_id: str) -> dict[str, Any]:
    trace = full.get(f"/v1/requests/{request_id}")
    (source,) = full.asked("request_source", id=request_id)
    shadows = [
        {
            "upstream": one["upstream"],
            "decision": one["decision"],
            "attempt": _call(one["attempt"]),
            "class": one["comparison"]["class"] if one["comparison"] else None,
            "path": one["findings"][0]["generic_path"] if one["findings"] else "",
        }
        for one in trace["shadows"]
    ]
    request = {**trace["request"], "at": when(trace["request"]["at"])}
    totals = {**trace["totals"], **{name: amount(trace["totals"][name]) for name in ("usd", "usd_shadow")}}
    return {
        "request": request,
        "calls": [_call(one) for one in trace["attempts"]],
        "shadows": shadows,
        "totals": totals,
        "source": source,
    }


def _call(row: dict[str, Any] | None) -> dict[str, Any] | None:
    return row and {**row, "usd": amount(row["usd"]), "units": amount(row["units"])}


def trace_by_sql(full: Full, request_id: str) -> dict[str, Any]:
    (request,) = full.sql("SELECT * FROM gnomon.requests WHERE request_id = {id:String}", id=request_id)
    calls = full.sql(
        "SELECT * FROM gnomon.attempts WHERE request_id = {id:String} ORDER BY kind = 'shadow', start_us, idx",
        id=request_id,
    )
    decided = full.sql(
        "SELECT upstream, decision FROM gnomon.shadow_decisions WHERE request_id = {id:String} ORDER BY upstream",
        id=request_id,
    )
    pairs = {
        row["shadow_upstream"]: row
        for row in full.sql(
            "SELECT shadow_upstream, class FROM gnomon.comparisons WHERE request_id = {id:String}", id=request_id
        )
    }
    paths = {
        row["shadow_upstream"]: row["generic_path"]
        for row in full.sql(
            "SELECT shadow_upstream, min(generic_path) AS generic_path FROM gnomon.findings"
            " WHERE request_id = {id:String}"
            " GROUP BY shadow_upstream",
            id=request_id,
        )
    }
    (totals,) = full.sql(
        "SELECT sumIf(usd, kind != 'shadow') AS usd_own, sumIf(usd, kind = 'shadow') AS usd_shadow,"
        " countIf(is_wasted) AS n_wasted,"
        " countIf(vendor != '' AND isNull(usd)) AS n_unpriced FROM gnomon.attempts WHERE request_id = {id:String}",
        id=request_id,
    )
    own, mirrored = ([one for one in calls if (one["kind"] == "shadow") is kind] for kind in (False, True))
    shadows = [
        {
            "upstream": row["upstream"],
            "decision": row["decision"],
            "path": paths.get(row["upstream"], ""),
            "attempt": next((one for one in mirrored if one["upstream"] == row["upstream"]), None),
            "class": pairs[row["upstream"]]["class"] if row["upstream"] in pairs else None,
        }
        for row in decided
    ]
    return {
        "request": request,
        "calls": own,
        "shadows": shadows,
        "totals": {**totals, "usd": totals["usd_own"]},
        "source": request,
    }


def steps(trace: dict[str, Any]) -> Rows:
    """Return each call with its place on the clock, its price and why it was made."""
    request, found = trace["request"], Rows()
    served = request["duration_us"]
    ends = [one["start_us"] + one["duration_us"] for one in trace["calls"]]
    ends += [
        served + one["attempt"]["start_us"] + one["attempt"]["duration_us"]
        for one in trace["shadows"]
        if one["attempt"]
    ]
    total = float(max([served, *ends, 1])) / 1000 * 1.02
    if request["n_skipped_open"]:
        name = plural(request["n_skipped_open"], "upstream")
        found[name] = {
            "Order": "",
            "Upstream": name,
            "Time": None,
            "Took": None,
            "Cost": "",
            "Why this call": "its breaker was open",
        }
    for number, call in enumerate(trace["calls"], 1):
        css = why(call["kind"], call["cause"]).css_class if call["vendor"] else "ar-m"
        reason = [call["cause"] or ("first in its order" if call["kind"] == "client" else "")]
        units = call["units"] and Decimal(call["units"])
        if call["vendor"] and call["usd"] is not None and units:
            reason.append((units, call["usd"] / units * 1_000_000))
        found[call["upstream"]] = {
            "Order": str(number),
            "Upstream": call["upstream"],
            "Time": (call["start_us"], call["duration_us"], total, css),
            "Took": call["duration_us"],
            "Cost": call["usd"] if call["vendor"] else "own",
            "Why this call": (reason, call["is_wasted"]),
        }
    for number, one in enumerate(trace["shadows"], len(trace["calls"]) + 1):
        call = one["attempt"]
        if call is None:
            found[one["upstream"]] = {
                "Order": "",
                "Upstream": one["upstream"],
                "Time": None,
                "Took": None,
                "Cost": "",
                "Why this call": f"not mirrored: {one['decision']}",
            }
            continue
        at_path = f" at {shown_path(one['path'])}" if one["path"] else ""
        said = f"; {'no difference' if one['class'] == 'none' else one['class']}{at_path}" if one["class"] else ""
        found[one["upstream"]] = {
            "Order": str(number),
            "Upstream": one["upstream"],
            "Time": (served, call["duration_us"], total, "ar-b"),
            "Took": call["duration_us"],
            "Cost": call["usd"] if call["vendor"] else "own",
            "Why this call": f"mirrored after the answer{said}",
        }
    return found


def bar(raw: Any) -> Markup:
    if raw is None:
        return waterfall.skipped("skipped, no call")
    start, took, total, css = raw
    return waterfall.call(start / 1000, start / 1000 + took / 1000, total, css)


def reason(raw: Any) -> str:
    if isinstance(raw, str):
        return raw
    words, is_wasted = raw
    said = [
        one if isinstance(one, str) else f"{one[0].normalize():f} units at {price(round(one[1], 6))} per 1 M"
        for one in words
    ]
    return ". ".join([one for one in said if one] + (["paid and of no use"] if is_wasted else []))


def facts_of(trace: dict[str, Any]) -> Rows:
    request, totals, source = trace["request"], trace["totals"], trace["source"]
    return {
        "": {
            "Call": f"{request['method']} {request['params']}",
            "Client": (request["project"], request["user"], source["agent"], source["rpc_id"]),
            "Block asked": (request["block_number"], request["block_tag"], request["head_latest"]),
            "Heads then": (request["head_latest"], request["head_finalized"]),
            "Answered": (request["at"], request["duration_us"], request["response_bytes"]),
            "Cost": (totals["usd"], totals["usd_shadow"], totals["n_unpriced"], totals["n_wasted"]),
            "Stored from": (source["topic"], source["partition"], source["offset"], source["event_id"]),
        }
    }


def client(raw: Any) -> str:
    project, user, agent, rpc_id = raw
    return f"project {project}, user {user}, {agent}, rpc id {rpc_id}"


def asked_block(raw: Any) -> Markup | str:
    height, tag, head = raw
    if height is None:
        return str(tag or "no block")
    behind = head - height
    words = (
        f"{abs(behind):,} {'below' if behind > 0 else 'above'} the network's head" if behind else "the network's head"
    )
    return Markup("{}, {}").format(block(height), words)


def answered(raw: Any) -> Markup:
    at_, took, n_bytes = raw
    stamp = f"{at_:%Y-%m-%dT%H:%M:%S}.{at_.microsecond // 1000:03}Z"
    return Markup('<time datetime="{}">{}</time> after {}, {}').format(stamp, stamp, micros(took), size(n_bytes))


def cost(raw: Any) -> Markup:
    paid, shadows, n_unpriced, n_wasted = raw
    said = Markup("{}").format(price(paid) if paid is not None else "own nodes alone")
    said += Markup(", shadows {}").format(price(shadows)) if shadows else ""
    said += f", {n_unpriced} calls unpriced" if n_unpriced else ""
    return said + (f", {n_wasted} of no use" if n_wasted else "")


def first(trace: dict[str, Any]) -> Rows:
    request = trace["request"]
    left = [
        f"{one['upstream']} {_ended(one)}"
        for one in trace["calls"]
        if not (one["upstream"] == request["upstream"] and one["outcome"] in ("result", "verdict", "empty"))
    ]
    because = [*([request["cause"]] if request["cause"] else []), *left[:3]]
    return {
        "": {
            "lead": (
                request["outcome"],
                request["n_attempts"],
                trace["totals"]["usd"],
                request["upstream"],
                request["duration_us"],
                because,
            )
        }
    }


def _ended(call: dict[str, Any]) -> str:
    if call["is_cancelled"] or call["outcome"] == "cancelled":
        return "cancelled"
    if call["error_class"]:
        return (
            str(call["outcome"])
            if call["outcome"] == call["error_class"]
            else f"{call['outcome']}: {call['error_class']}"
        )
    return "empty" if call["is_empty"] else str(call["outcome"])


def first_words(raw: Any) -> str:
    outcome, n_calls, paid, upstream, took, because = raw
    if outcome == "error":
        said = f"No answer after {plural(n_calls, 'call')}"
    elif paid:
        said = f"A paid answer for {price(paid)}"
    else:
        said = f"Served by {upstream} in {micros(took)}"
    return said + (f": {', '.join(because)}" if because else "")


def one(name: str, where: str) -> list[Entry]:
    """Return the numbers of the newest request of a kind."""

    def the(full: Full) -> str:
        before = f"{where} AND at < {{to:DateTime64(3)}}"
        rows = full.sql(f"SELECT request_id FROM gnomon.requests WHERE {before} ORDER BY at DESC LIMIT 1")
        return str(rows[0]["request_id"])

    def entry(title: str, panel: str, read: Any, shown: Any, said: Callable[[dict[str, Any]], Rows]) -> Entry:
        return Entry(
            name=f"request {name}, {title}",
            address=lambda full: f"/requests/{the(full)}",
            panel=panel,
            read=read,
            shown=shown,
            api=lambda full: said(trace_by_api(full, the(full))),
            sql=lambda full: said(trace_by_sql(full, the(full))),
        )

    return [
        entry("first sentence", "lead", parts(lead=lambda part: part.one("p", "lead")), {"lead": first_words}, first),
        entry(
            "calls",
            "steps",
            table(key=("Upstream",)),
            {
                "Order": str,
                "Upstream": str,
                "Time": bar,
                "Took": micros,
                "Why this call": reason,
                "Cost": lambda raw: raw if isinstance(raw, str) else "unpriced" if raw is None else price(raw),
            },
            steps,
        ),
        entry(
            "facts",
            "facts",
            facts,
            {
                "Call": str,
                "Client": client,
                "Block asked": asked_block,
                "Answered": answered,
                "Cost": cost,
                "Heads then": lambda raw: Markup("latest {}, finalized {}").format(block(raw[0]), block(raw[1])),
                "Stored from": lambda raw: Markup("{} {} · {} · {}").format(raw[0], raw[1], exact(raw[2]), raw[3]),
            },
            facts_of,
        ),
    ]


REQUEST = [
    *one("that was paid for", "cause = 'empty_at_head'"),
    *one("that was hedged", "cause = 'hedge'"),
    *one("past an open breaker", "n_skipped_open > 0"),
    *one("that failed", "outcome = 'error'"),
    *one("with shadows", "network = 'evm:1' AND method = 'eth_getBlockReceipts'"),
]
