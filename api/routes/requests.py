"""Clients' requests and the calls that they caused; one request as a trace."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, Protocol

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import Response

from analytics.questions import load
from api import examples, exposed
from api.asking import MAX_LIMIT, Rows
from api.dependencies import asking_of, json_response, needs
from api.errors import Refused
from api.exposed import add_question

router: Final = APIRouter(tags=["requests"])


class Pages(Protocol):
    """What a trace needs of `asking.Asking`."""

    async def ask(self, name: str, given: Mapping[str, str] | None = None) -> Rows:
        """Return the answer to a question."""
        ...

    async def page(self, name: str, given: Mapping[str, str], *, limit: int, cursor: str | None) -> Rows:
        """Return a page of the answer to a question."""
        ...


EVER: Final = {"from": "1970-01-01"}
"""A request is found by its id, whenever it was."""
RequestId = Annotated[
    str, Path(min_length=1, max_length=128, description="`X-Gnomon-Request-Id` of the answer that the client got.")
]

add_question(router, "/v1/requests", "requests")
add_question(router, "/v1/requests/slowest", "slowest_requests")
add_question(router, "/v1/attempts", "attempts")

_REQUEST: Final = load("requests")
_ATTEMPT: Final = load("attempts")
_DECISION: Final = load("shadow_decisions")
_COMPARISON: Final = load("comparisons")
_FINDING: Final = load("findings")


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [schema, {"type": "null"}]}


_MONEY: Final = {"type": ["string", "null"], "pattern": r"^-?\d+(\.\d+)?$"}
_COUNT: Final = {"type": "integer"}
_SHADOW_SCHEMA: Final[dict[str, Any]] = {
    "upstream": {"type": "string"},
    "decision": {"type": "string", "description": "mirrored, or why not; empty where it is not stored yet."},
    "attempt": {**_or_null(exposed.row(_ATTEMPT)), "description": "The mirrored call; null: there was none."},
    "comparison": {**_or_null(exposed.row(_COMPARISON)), "description": "The verdict; null: there is none."},
    "findings": {"type": "array", "items": exposed.row(_FINDING)},
}
_TRACE_SCHEMA: Final[dict[str, Any]] = {
    "request": {**_or_null(exposed.row(_REQUEST)), "description": "null while it is not stored yet."},
    "attempts": {
        "type": "array",
        "items": exposed.row(_ATTEMPT),
        "description": "Calls for the client, in the order in which they began.",
    },
    "shadows": {
        "type": "array",
        "items": {"type": "object", "required": list(_SHADOW_SCHEMA), "properties": _SHADOW_SCHEMA},
    },
    "totals": {
        "type": "object",
        "required": ["usd", "usd_shadow", "n_calls", "n_unpriced", "n_wasted"],
        "properties": {
            "usd": {**_MONEY, "description": "Of the calls for the client; null: none of them has a price."},
            "usd_shadow": {**_MONEY, "description": "Of the mirrored calls."},
            "n_calls": _COUNT,
            "n_unpriced": {**_COUNT, "description": "Calls in no sum, for nobody knows their price."},
            "n_wasted": {**_COUNT, "description": "Paid and of no use."},
        },
    },
}
_ATTEMPT_EXAMPLE: Final = examples.row(_ATTEMPT, outcome="result", error_class="", error_code=None, status=200)
_TRACE_EXAMPLE: Final[dict[str, Any]] = {
    "request": examples.row(_REQUEST, outcome="result", upstream="paid", error_class="", n_attempts=1),
    "attempts": [_ATTEMPT_EXAMPLE],
    "shadows": [
        {
            "upstream": "candidate",
            "decision": "mirrored",
            "attempt": {**_ATTEMPT_EXAMPLE, "upstream": "candidate", "tier": "shadow", "kind": "shadow"},
            "comparison": examples.row(_COMPARISON),
            "findings": [examples.row(_FINDING)],
        }
    ],
    "totals": {"usd": "0.001218000000", "usd_shadow": "0.001218000000", "n_calls": 2, "n_unpriced": 0, "n_wasted": 0},
}


@router.get(
    "/v1/requests/{request_id}",
    summary="What happened to one request?",
    description="The request, each call with its cause and price, and for each shadow the decision, its call, the "
    "verdict and what differs.",
    response_class=Response,
    dependencies=[Depends(needs("read"))],
    responses={200: {"content": {"application/json": {
        "schema": {"type": "object", "required": list(_TRACE_SCHEMA), "properties": _TRACE_SCHEMA},
        "example": _TRACE_EXAMPLE}}}},
)  # fmt: skip
async def trace(request: Request, request_id: RequestId) -> Response:
    """Answer with everything that is stored of a request."""
    return json_response(await trace_of(asking_of(request), request_id))


async def trace_of(asking: Pages, request_id: str) -> dict[str, Any]:
    """
    Return everything that is stored of a request, as JSON has it.

    Raises:
        Refused: nothing is.
    """
    given = {**EVER, "request_id": request_id}

    async def rows(name: str) -> list[dict[str, Any]]:
        return (await asking.page(name, given, limit=MAX_LIMIT, cursor=None)).items()

    requests = await rows("requests")
    attempts = await rows("attempts")
    decisions = (await asking.ask("shadow_decisions", {"request_id": request_id})).items()
    comparisons = await rows("comparisons")
    findings = await rows("findings")
    if not (requests or attempts or decisions or comparisons):
        raise Refused(
            "not-found", f"nothing is stored of request {request_id!r}; it may be too new, or older than retention"
        )
    mirrored = {attempt["upstream"]: attempt for attempt in attempts if attempt["kind"] == "shadow"}
    verdicts = {comparison["shadow_upstream"]: comparison for comparison in comparisons}
    decided = {decision["upstream"]: decision["decision"] for decision in decisions}
    own = [attempt for attempt in attempts if attempt["kind"] != "shadow"]
    own.sort(key=lambda attempt: (attempt["start_us"], attempt["attempt_id"]))
    return {
        "request": requests[0] if requests else None,
        "attempts": own,
        "shadows": [
            {
                "upstream": name,
                "decision": decided.get(name, ""),
                "attempt": mirrored.get(name),
                "comparison": verdicts.get(name),
                "findings": [finding for finding in reversed(findings) if finding["shadow_upstream"] == name],
            }
            for name in sorted({*mirrored, *verdicts, *decided})
        ],
        "totals": _totals(own, list(mirrored.values())),
    }


def _totals(own: list[dict[str, Any]], mirrored: list[dict[str, Any]]) -> dict[str, Any]:
    calls = [*own, *mirrored]
    return {
        "usd": _sum(own),
        "usd_shadow": _sum(mirrored),
        "n_calls": len(calls),
        "n_unpriced": sum(bool(call["vendor"]) and call["usd"] is None for call in calls),
        "n_wasted": sum(call["is_wasted"] for call in calls),
    }


def _sum(calls: list[dict[str, Any]]) -> str | None:
    """Return the exact sum of prices; None where no call has one."""
    prices = [Decimal(call["usd"]) for call in calls if call["usd"] is not None]
    return f"{sum(prices):f}" if prices else None
