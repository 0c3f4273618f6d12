"""The application: routers, what errors become, and the layer around it all."""

import json
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from api import problems, schema
from api.dependencies import BEARER, Services, known_names, sentence
from api.door import Door, log
from api.errors import Refused
from api.routes import (
    alerts,
    asked,
    comparisons,
    cordons,
    divergence,
    heads,
    masks,
    pages,
    previews,
    reconciliation,
    requests,
    silences,
    spend,
    sql,
    stream,
    upstreams,
    watching,
)
from gnomon.errors import GnomonError

ROUTERS: Final[Sequence[APIRouter]] = (
    watching.router,
    divergence.router,
    masks.router,
    comparisons.router,
    previews.router,
    requests.router,
    spend.router,
    upstreams.router,
    cordons.router,
    heads.router,
    alerts.router,
    silences.router,
    reconciliation.router,
    asked.router,
    sql.router,
    stream.router,
)
"""In the order of the document; a router whose paths begin with another's comes first."""

TAGS: Final = (
    {"name": "divergence", "description": "Where do providers diverge, and what is left out?"},
    {"name": "comparisons", "description": "Which pairs of answers were judged, and how?"},
    {"name": "requests", "description": "What did clients ask, and which calls did it take?"},
    {"name": "spend", "description": "What did it cost, and why?"},
    {"name": "upstreams", "description": "Who answers, how well, how fast, at what price?"},
    {"name": "heads and breakers", "description": "Who was behind, which forks were seen, who was left alone?"},
    {"name": "reconciliation", "description": "Is everything stored, once?"},
    {"name": "alerts", "description": "What fires, and who is told?"},
    {"name": "questions", "description": "What pages ask, question by question."},
    {"name": "sql", "description": "Anything else."},
    {"name": "stream", "description": "What is new?"},
    {"name": "service", "description": "The API itself; without a token."},
)


def bare() -> FastAPI:
    """Return the routes alone: enough for the document, not to answer."""
    app = FastAPI(
        title="Gnomon",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        openapi_tags=[dict(tag) for tag in TAGS],
    )
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(known_names if router is watching.router else BEARER)])
    app.include_router(pages.router)
    app.state.contents = {
        (route.path_format, method.lower(), str(status)): response["content"]
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
        for status, response in route.responses.items()
        if "content" in response
    }
    return app


def create(services: Services) -> Door:
    """
    Return the application, ready to serve.

    Args:
        services: what it stands on; they stay the caller's, who closes them.
    """
    app = bare()
    app.state.services = services
    app.state.document = document
    services.query_names = _query_names()
    app.add_exception_handler(HTTPException, _answered)
    app.add_exception_handler(RequestValidationError, _answered)
    app.add_exception_handler(GnomonError, _answered)
    app.add_exception_handler(Exception, _answered)
    return Door(app, services.holder, services.metrics)


@cache
def document() -> dict[str, Any]:
    """Return the document of the routes, made once: they are the same in every application."""
    return schema.document(bare())


@cache
def _query_names() -> dict[tuple[str, str], frozenset[str]]:
    return {
        (path, method.upper()): frozenset(p["name"] for p in operation.get("parameters", ()) if p["in"] == "query")
        for path, operations in document()["paths"].items()
        for method, operation in operations.items()
    }


async def _answered(request: Request, error: Exception) -> Response:
    """Return the problem that an exception is to whoever asked."""
    refused = refusal(request, error)
    request_id = request.scope["state"]["request_id"]
    if refused is None:
        log.error("unexpected error request_id=%s path=%s", request_id, request.url.path, exc_info=error)
        refused = Refused("internal", f"something unexpected happened; the log has it under {request_id}")
    elif refused.problem == "store-refused":
        log.error("ClickHouse refused request_id=%s path=%s: %s", request_id, request.url.path, error)
    request.scope["state"]["problem"] = refused.problem
    if refused.problem == "not-found" and pages.is_for_eyes(request):
        return pages.nothing_here(request)
    status, headers, body = problems.render(refused, request.url.path, request_id)
    return Response(body, status, headers)


def refusal(request: Request, error: Exception) -> Refused | None:
    """Return what a request is told of an exception; None where it is a bug."""
    if isinstance(error, RequestValidationError):
        return _of_validation(error)
    if isinstance(error, HTTPException):
        if isinstance(error.__cause__, Refused):  # from reading the body
            return error.__cause__
        if error.status_code == 400 and error.__cause__ is not None:
            return Refused("invalid-body", "the body is no JSON that can be read")
        name = problems.BY_STATUS.get(error.status_code)
        if name is None:
            return None
        detail, headers = str(error.detail), error.headers
        if error.status_code == 404:
            detail = f"there is no {request.url.path}; /openapi.json lists what is there"
        elif error.status_code == 405:
            detail = f"{request.method} is not served at {request.url.path}"
            headers = {"Allow": ", ".join(_served(request))}
        return Refused(name, detail, headers=headers)
    return problems.refusal(error)


def _served(request: Request) -> list[str]:
    """Return the methods that are served at a request's path: each may be a route of its own."""
    routes = [route for router in (*ROUTERS, pages.router) for route in router.routes if isinstance(route, Route)]
    found = {m for route in routes if route.matches(request.scope)[0] is not Match.NONE for m in route.methods or ()}
    return sorted(found | ({"HEAD"} if "GET" in found else set()))


def _of_validation(error: RequestValidationError) -> Refused:
    errors = []
    in_body = False
    for one in error.errors():
        place, *rest = one["loc"]
        in_body = in_body or place == "body"
        detail = str(one["msg"])
        if place == "body":
            errors.append({"pointer": "".join(f"/{part}" for part in rest), "detail": detail})
        else:
            errors.append({"parameter": str(rest[0]) if rest else "", "detail": detail})
    return Refused("invalid-body" if in_body else "invalid-parameter", sentence(errors), errors=errors)


def main() -> int:
    """Print the document."""
    json.dump(document(), sys.stdout, indent=1, ensure_ascii=False, sort_keys=True)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
