"""Pairs of answers and their verdicts; what differs in them."""

from typing import Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from analytics.questions import load
from api import examples, exposed
from api.asking import MAX_LIMIT
from api.dependencies import asking_of, json_response, needs
from api.errors import Refused
from api.exposed import add_question
from api.routes.requests import EVER, RequestId

router: Final = APIRouter(tags=["comparisons"])

add_question(router, "/v1/comparisons", "comparisons")
add_question(router, "/v1/findings", "findings")
add_question(
    router,
    "/v1/findings/kinds",
    "top_differing_paths",
    description="The most frequent kinds of difference, each with an example.",
)

_PAIR: Final = load("pair")
_FINDING: Final = load("findings")
_FINDINGS: Final = {"type": "array", "items": exposed.row(_FINDING), "description": "What differs, after masks."}


_EXAMPLE: Final = examples.collection(_PAIR, {**examples.row(_PAIR), "findings": [examples.row(_FINDING)]})


@router.get(
    "/v1/comparisons/{request_id}",
    summary=_PAIR.question,
    description="One row per shadow of the request, with both answers where they are kept "
    "(`gnomon.shadow.keepBodies`), and what differs.",
    response_class=Response,
    dependencies=[Depends(needs("read"))],
    responses={
        200: {
            "content": {
                "application/json": {"schema": exposed.collection(_PAIR, {"findings": _FINDINGS}), "example": _EXAMPLE}
            }
        }
    },
)
async def pairs(request: Request, request_id: RequestId) -> Response:
    """Answer with the pairs of a request."""
    asking = asking_of(request)
    found = await asking.ask("pair", {"id": request_id})
    if not found.rows:
        raise Refused("not-found", f"nothing of request {request_id!r} was compared, or not yet")
    given = {**EVER, "request_id": request_id}
    findings = (await asking.page("findings", given, limit=MAX_LIMIT, cursor=None)).items()
    document = found.document()
    for item in document["items"]:
        own = [one for one in findings if one["shadow_upstream"] == item["shadow_upstream"]]
        item["findings"] = own[::-1]
    return json_response(document)
