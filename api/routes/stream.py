"""The live stream: what is new, as server-sent events."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import Response

from api.access import Caller
from api.changes import KINDS
from api.dependencies import needs, services_of
from api.errors import Refused
from api.live import Stream

router: Final = APIRouter(tags=["stream"])

MAX_ID: Final = 64

_EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One event; its fields as texts, as the stream has them.",
    "required": ["event", "id", "data"],
    "properties": {
        "event": {"type": "string", "enum": ["hello", "reset", *KINDS]},
        "id": {"type": "string", "description": "Its place, for `Last-Event-ID`."},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_EXAMPLE: Final = {
    "event": "requests",
    "id": "5f0a91c2-17",
    "data": '{"n":12,"newest_at":"2026-12-01T00:00:00.000Z"}',
}
_CONTENT: Final[dict[str, Any]] = {"text/event-stream": {"schema": _EVENT, "example": _EXAMPLE}}


@router.get(
    "/v1/stream",
    summary="What is new, as it comes",
    description=f"Server-sent events: `hello` first, then {', '.join(f'`{kind}`' for kind in KINDS)} as something of "
    "that kind is stored, each at most once in 2 s, with `n` (how many more there are; 0: something stored has "
    "changed) and `newest_at`. `reset`: changes since `Last-Event-ID` are not kept; ask for all that you show. A "
    "comment comes where nothing is new for 15 s. A stream ends after an hour, and when the API or the token does; "
    "connect again with `Last-Event-ID`.",
    response_class=Response,
    responses={200: {"description": "Events, without an end.", "content": _CONTENT}},
)
async def stream(
    request: Request,
    caller: Annotated[Caller, Depends(needs("read"))],
    last_event_id: Annotated[
        str, Header(max_length=MAX_ID, description="`id` of the last event that was seen; what came since is told.")
    ] = "",
) -> Response:
    """Answer with what is new, until the client goes."""
    services = services_of(request)
    known = services.holder.value.access

    def may_listen() -> bool:
        access = services.holder.value.access
        if access is known:
            return True
        try:
            found = access.who(request.headers.get("authorization"), request.headers.get("cookie", ""))
        except Refused:
            return False
        return found is not None and found.may("read")

    return Stream(services.live, last_event_id, may_listen)
