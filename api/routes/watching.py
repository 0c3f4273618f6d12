"""What watches the API itself: whether it is there, what it counts, and the document of all routes."""

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api import problems, reference
from api.dependencies import json_response, services_of
from api.errors import Refused
from api.problems import PROBLEMS

router: Final = APIRouter(tags=["service"])

_TEXT: Final = {"type": "string"}


@router.get(
    "/healthcheck",
    summary="Is the API there?",
    description="200 as soon as it listens, whatever ClickHouse does.",
    response_class=Response,
    responses={200: {"content": {"application/json": {
        "schema": {"type": "object", "required": ["status", "config_hash"],
                   "properties": {"status": {"const": "ok"}, "config_hash": _TEXT}},
        "example": {"status": "ok", "config_hash": "0123456789abcdef"}}}}},
)  # fmt: skip
async def healthcheck(request: Request) -> Response:
    """Answer that the process is alive, and by which configuration."""
    return json_response({"status": "ok", "config_hash": services_of(request).holder.value.settings.config_hash})


@router.get(
    "/metrics",
    summary="What the API counts",
    response_class=Response,
    responses={200: {"description": "Prometheus' text form.", "content": {"text/plain": {"schema": _TEXT}}}},
)
async def metrics(request: Request) -> Response:
    """Answer with all metrics."""
    services = services_of(request)
    services.metrics.set("gnomon_api_queries_waiting", value=services.reader.n_waiting)
    services.metrics.set("gnomon_api_sql_running", value=services.statements.n_running)
    services.metrics.set("gnomon_api_streams", value=services.live.places.n_taken)
    return Response(services.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get(
    "/openapi.json",
    summary="This document",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
async def openapi(request: Request) -> Response:
    """Answer with the OpenAPI document."""
    return json_response(request.app.state.document())


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Answer with the document as a page."""
    document = request.app.state.document()
    headers = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Cache-Control": "no-store"}
    return Response(reference.render(document), headers=headers, media_type="text/html; charset=utf-8")


@router.get(
    "/problems/{name}",
    summary="What a problem means",
    description="`type` of every problem leads here.",
    response_class=Response,
    responses={200: {"content": {"application/json": {
        "schema": {"type": "object", "required": ["type", "title", "status", "meaning"],
                   "properties": {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "meaning": _TEXT}}}}},
        404: {"description": "There is no such problem.",
              "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}},
)  # fmt: skip
async def problem(name: str) -> Response:
    """Answer with one line of the list of problems."""
    found = PROBLEMS.get(name)
    if found is None:
        raise Refused("not-found", f"there is no problem {name!r}; known: {', '.join(PROBLEMS)}")
    said: dict[str, Any] = {"type": problems.PREFIX + name, "title": found.title, "status": found.status}
    return json_response({**said, "meaning": found.meaning})
