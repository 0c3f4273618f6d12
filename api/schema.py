"""
The OpenAPI document: what FastAPI makes of the routes, with the problems that each may answer.

`docs/openapi.json` is this document; `python -m api.app > docs/openapi.json` writes it (`make docs`).
"""

from collections.abc import Sequence
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api import exposed, problems
from api.errors import Refused
from api.problems import PROBLEMS, PROBLEMS_KEY

VERSION: Final = "1"
DESCRIPTION: Final = """\
Where do JSON-RPC providers diverge, who is right, and what did the paid fallbacks cost?

Times are ISO 8601 UTC; ranges are half-open (`from` included, `to` not) and take `now`, `now-24h` too. Decimals, and
integers beyond 2^53, are texts. Collections are `{"items": […], "next_cursor": …}`; a page begins where the one before
ended, whatever was stored meanwhile. Errors are problems of RFC 9457; their `type` is stable. Within `/v1` members are
added, never renamed or taken away.
"""

_ALWAYS: Final = (
    "invalid-parameter", "invalid-range", "bad-cursor", "query-too-large", "unauthorized", "forbidden", "foreign-host",
    "foreign-origin", "rate-limited", "internal", "store-refused", "store-away", "schema-missing", "busy",
    "query-too-slow",
)  # fmt: skip
_WITH_PATH: Final = ("not-found",)
_WITH_BODY: Final = ("invalid-body", "too-large")


def document(app: FastAPI) -> dict[str, Any]:
    """Return the document of an application."""
    if app.openapi_schema is None:
        found = get_openapi(
            title="Gnomon",
            version=VERSION,
            description=DESCRIPTION,
            routes=app.routes,
            tags=app.openapi_tags,
            separate_input_output_schemas=False,
        )
        found.setdefault("components", {}).setdefault("schemas", {})["Problem"] = dict(problems.SCHEMA)
        found["components"]["schemas"] |= {
            name: exposed.whole_row(exposed.SHARED[name]) for name in sorted(exposed.SHARED)
        }
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        # FastAPI leaves null members out, which examples have.
        for (path, method, status), content in app.state.contents.items():
            found["paths"][path][method]["responses"][status]["content"] = content
        found["components"]["responses"] = {}
        for path, operations in found["paths"].items():
            for operation in operations.values():
                _add_problems(path, operation, found["components"]["responses"])
        app.openapi_schema = found
    return app.openapi_schema


def _add_problems(path: str, operation: dict[str, Any], shared: dict[str, Any]) -> None:
    responses: dict[str, Any] = operation["responses"]
    responses.pop("422", None)
    if not path.startswith("/v1/"):
        return
    operation.setdefault("security", [{"token": []}])
    own = operation.pop(PROBLEMS_KEY, ())
    names = [*own, *_ALWAYS, *(_WITH_PATH if "{" in path else ()), *(_WITH_BODY if "requestBody" in operation else ())]
    by_status: dict[int, list[str]] = {}
    for name in names:
        by_status.setdefault(PROBLEMS[name].status, []).append(name)
    for status, there in sorted(by_status.items()):
        if any(name in own for name in there):
            responses[str(status)] = _response(there)
            continue
        shared[str(status)] = _response(there)
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}


def _response(names: Sequence[str]) -> dict[str, Any]:
    first = Refused(names[0], PROBLEMS[names[0]].meaning)
    example = problems.document(first, "/v1/spend", "5f0a91c2d3e4f506")
    return {
        "description": "; ".join(f"`{name}`: {PROBLEMS[name].title}" for name in names),
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}},
    }
