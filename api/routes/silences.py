"""Silences: of what nobody is told for a while. To see them needs `read`, to make or end one `admin`."""

import asyncio
import logging
import re
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from analytics.alerting.opening import open_history
from analytics.alerting.silences import Silence
from analytics.questions import load
from api import examples, exposed, values
from api.access import Caller
from api.dependencies import asking_of, in_force, json_response, needs, services_of
from api.errors import Refused
from api.exposed import add_question
from api.moments import LONGEST, ending, utc, whole, wrong
from api.routes.alerts import silence_of

log = logging.getLogger("gnomon.api")

router: Final = APIRouter(tags=["alerts"])

_QUESTION: Final = load("silences")
_WILD: Final = re.compile(r"[*?\[]")
SilenceId = Annotated[str, Path(pattern=r"^[0-9a-f]{1,32}$", description="`silence_id` of a silence.")]

add_question(router, "/v1/silences", "silences", description="Those that begin later are among them.")


class NewSilence(BaseModel):
    """What a silence is made of: until when by `ends_at`, or for how long by `for`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"rule": "HeadLag", "for": "2h", "comment": "node is synced anew"}},
    )

    rule: Annotated[str, Field(min_length=1, max_length=100, description="A rule's name, or a pattern with * and ?.")]
    subject: Annotated[
        str, Field(min_length=1, max_length=500, description="A subject, or a pattern with * and ?.")
    ] = "*"
    starts_at: Annotated[AwareDatetime | None, Field(description="From then on; left out: now.")] = None
    ends_at: Annotated[AwareDatetime | None, Field(description="Until then, not included.")] = None
    lasts: Annotated[
        str | None, Field(alias="for", max_length=20, description="In place of `ends_at`: `30m`, `2h`, `1d12h`.")
    ] = None
    comment: Annotated[str, Field(max_length=1000, description="Why.")] = ""


_ONE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/json": {"schema": exposed.row(_QUESTION), "example": examples.row(_QUESTION)}}}
}


@router.post(
    "/v1/silences",
    summary="Tell nobody of a rule, or of a rule and subject, for a while",
    description="What changes meanwhile is kept in the history; what still fires when it ends is told then.",
    status_code=201,
    response_class=Response,
    responses={201: {**_ONE[200], "headers": {"Location": {"schema": {"type": "string"}}}}},
)
async def create(request: Request, new: NewSilence, caller: Annotated[Caller, Depends(needs("admin"))]) -> Response:
    """Write a silence down."""
    now = whole(datetime.now(UTC))
    start, end = (whole(at) for at in _span(new, now))
    if not _WILD.search(new.rule) and all(rule.name != new.rule for rule in in_force(request).rules):
        raise wrong("rule", f"there is no rule {new.rule!r}; /v1/alerts/rules has them")
    silence = Silence(secrets.token_hex(4), new.rule, new.subject, start, end, new.comment, caller.name)
    await _write(request, silence, now)
    log.info("silence made id=%s rule=%s subject=%s ends_at=%s token=%s", silence.id, silence.rule, silence.subject,
             values.moment(end), caller.name)  # fmt: skip
    return json_response(_item(silence), 201, {"Location": f"/v1/silences/{silence.id}"})


def _span(new: NewSilence, now: datetime) -> tuple[datetime, datetime]:
    start = utc(new.starts_at, "starts_at") if new.starts_at is not None else now
    if abs(start - now) > LONGEST:
        raise wrong("starts_at", f"must be within {LONGEST.days} days")
    end = ending(new.ends_at, new.lasts, start, "ends_at")
    if end is None:
        raise wrong("ends_at", "give either `ends_at` or `for`")
    if end <= now:
        raise wrong("ends_at", "it must end after now")
    return start, end


@router.get(
    "/v1/silences/{silence_id}",
    summary="One silence",
    response_class=Response,
    dependencies=[Depends(needs("read"))],
    responses=_ONE,
)
async def one(request: Request, silence_id: SilenceId) -> Response:
    """Answer with a silence that has not ended."""
    return json_response(_item(await _found(request, silence_id)))


@router.delete(
    "/v1/silences/{silence_id}",
    summary="End a silence now",
    description="What still fires is told at once.",
    status_code=204,
    response_class=Response,
)
async def end(request: Request, silence_id: SilenceId, caller: Annotated[Caller, Depends(needs("admin"))]) -> Response:
    """Write down that a silence ends."""
    silence = await _found(request, silence_id)
    now = datetime.now(UTC)
    await _write(request, replace(silence, ends_at=now), now)
    log.info("silence ended id=%s rule=%s token=%s", silence.id, silence.rule, caller.name)
    return Response(status_code=204)


async def _found(request: Request, silence_id: str) -> Silence:
    records = (await asking_of(request).ask("silences", {"id": silence_id})).records()
    if not records:
        raise Refused("not-found", f"there is no silence {silence_id!r} in force; /v1/silences has them")
    return silence_of(records[0])


async def _write(request: Request, silence: Silence, now: datetime) -> None:
    services = services_of(request)
    clickhouse = services.holder.value.settings.gnomon.clickhouse

    def write() -> None:
        with open_history(clickhouse, services.data_dir) as history:
            history.silence(silence, now)

    await asyncio.to_thread(write)


def _item(silence: Silence) -> dict[str, Any]:
    return {
        "silence_id": silence.id,
        "rule": silence.rule,
        "subject": silence.subject,
        "starts_at": values.moment(silence.starts_at),
        "ends_at": values.moment(silence.ends_at),
        "comment": silence.comment,
        "author": silence.author,
    }
