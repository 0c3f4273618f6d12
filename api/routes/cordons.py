"""Cordons: an upstream that is kept out of routing by hand, and let in again."""

import logging
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from api import values
from api.access import Caller
from api.dependencies import in_force, json_response, needs, services_of
from api.moments import ending
from api.problems import PROBLEMS_KEY
from api.routes.upstreams import LIVE, Project, UpstreamId, live, named

log = logging.getLogger("gnomon.api")

router: Final = APIRouter(tags=["upstreams"])

_COUNT: Final = {"type": "integer"}
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["upstream", "project", "network", "live", "remaining"],
    "properties": {
        "upstream": {"type": "string"},
        "project": {"type": "string"},
        "network": {"type": "string"},
        "live": {"type": "array", "items": LIVE, "description": "How it stands at each proxy now."},
        "remaining": {
            "type": "object",
            "required": ["primaries", "fallbacks"],
            "properties": {"primaries": _COUNT, "fallbacks": _COUNT},
            "description": "Who else of the network could serve at that moment; the fewest of all proxies.",
        },
    },
}
_LIVE_EXAMPLE: Final = {
    "proxy": "http://127.0.0.1:4000", "project": "main", "network": "evm:1", "upstream": "mine", "tier": "primary",
    "is_verified": True, "is_syncing": False, "latest": 21_300_000, "lag_blocks": 0, "trouble": "", "held": "",
    "breakers": {"*": "closed"},
    "cordon": {"project": "main", "upstream": "mine", "at": "2026-12-01T10:15:30.123Z", "until": None,
               "comment": "disk is replaced", "author": "ann"},
}  # fmt: skip
_EXAMPLE: Final = {
    "upstream": "mine", "project": "main", "network": "evm:1", "live": [_LIVE_EXAMPLE],
    "remaining": {"primaries": 1, "fallbacks": 1},
}  # fmt: skip


class NewCordon(BaseModel):
    """Until when it holds (`until`, or for how long by `for`; left out: until it is ended), and why."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"comment": "disk is replaced", "for": "2h"}}
    )

    comment: Annotated[str, Field(max_length=1000, description="Why.")] = ""
    until: Annotated[AwareDatetime | None, Field(description="Until then, not included.")] = None
    lasts: Annotated[
        str | None, Field(alias="for", max_length=20, description="In place of `until`: `30m`, `2h`, `1d12h`.")
    ] = None
    force: Annotated[
        bool, Field(description="Also where no upstream of the network could serve any more: clients get errors then.")
    ] = False


@router.put(
    "/v1/upstreams/{upstream:id}/cordon",
    summary="Keep an upstream out of routing",
    description="At every proxy, at once; it survives their reloads and restarts, and stands among the changes of "
    "breakers with the reason `cordoned`. Refused where no upstream of the network could serve any more, unless "
    "forced. A cordon that is there is replaced.",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": _SCHEMA, "example": _EXAMPLE}}}},
    openapi_extra={PROBLEMS_KEY: ["conflict", "proxy-away"]},
)
async def cordon(
    request: Request,
    upstream: UpstreamId,
    new: NewCordon,
    caller: Annotated[Caller, Depends(needs("admin"))],
    project: Project = "",
) -> Response:
    """Have the proxies keep an upstream out."""
    found = named(in_force(request).settings, upstream, project)
    until = ending(new.until, new.lasts, datetime.now(UTC), "until")
    said = await services_of(request).proxies.change(
        {
            "project": found["project"],
            "upstream": upstream,
            "is_cordoned": True,
            "comment": new.comment,
            "author": caller.name,
            "until": None if until is None else until.timestamp(),
            "force": new.force,
        }
    )
    log.info("cordoned project=%s upstream=%s until=%s token=%s", found["project"], upstream,
             "" if until is None else values.moment(until), caller.name)  # fmt: skip
    counts = [one.content["remaining"] for one in said]
    return json_response(
        {
            **{member: found[member] for member in ("upstream", "project", "network")},
            "live": [live({"proxy": one.address, **one.content["upstream"]}) for one in said],
            "remaining": {name: min(count[name] for count in counts) for name in ("primaries", "fallbacks")},
        }
    )


@router.delete(
    "/v1/upstreams/{upstream:id}/cordon",
    summary="Let an upstream in again",
    description="At every proxy.",
    status_code=204,
    response_class=Response,
    openapi_extra={PROBLEMS_KEY: ["proxy-away"]},
)
async def uncordon(
    request: Request, upstream: UpstreamId, caller: Annotated[Caller, Depends(needs("admin"))], project: Project = ""
) -> Response:
    """Have the proxies let an upstream in."""
    found = named(in_force(request).settings, upstream, project)
    wanted = {"project": found["project"], "upstream": upstream, "is_cordoned": False, "author": caller.name}
    await services_of(request).proxies.change(wanted)
    log.info("uncordoned project=%s upstream=%s token=%s", found["project"], upstream, caller.name)
    return Response(status_code=204)
