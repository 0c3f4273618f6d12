"""
Problems as RFC 9457 has them: one closed list, and one shape for every error of the API.

`type` is `/problems/NAME`, a reference that the API itself explains; it is stable. Beside the members of the RFC an
answer has `request_id` (it stands in the log, and in the header `X-Request-Id`) and, where several parts of a request
are wrong, `errors`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from analytics.embedded.errors import EmbeddedError
from analytics.migrate import SchemaBehind, SchemaNewer
from analytics.questions import BadParameter
from analytics.reading import SqlNotAllowed
from analytics.store import StoreAway, StoreError
from api.errors import Refused

MEDIA_TYPE: Final = "application/problem+json"
PREFIX: Final = "/problems/"
PROBLEMS_KEY: Final = "x-problems"
"""In a route's `openapi_extra`: problems that it answers beside those of every route; not in the document itself."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of refusal."""

    status: int
    title: str
    meaning: str
    """When it happens, and the way out."""


PROBLEMS: Final[Mapping[str, Problem]] = {
    "invalid-parameter": Problem(
        400, "A parameter is wrong", "It is unknown, stands twice, is missing or does not fit; `errors` names it."
    ),
    "invalid-range": Problem(400, "The range is empty", "`from` must lie before `to`, which is not included."),
    "bad-cursor": Problem(
        400,
        "The cursor is not of this question",
        "Send `next_cursor` as it came, with the parameters of its first page.",
    ),
    "unauthorized": Problem(401, "A valid token is needed", "Send `Authorization: Bearer TOKEN`."),
    "forbidden": Problem(
        403, "The role is not enough", "Roles are read, sql and admin; each may all that those before it may."
    ),
    "foreign-host": Problem(
        403, "The Host is not served here", "A page in a browser must not reach this port by a name of its own."
    ),
    "foreign-origin": Problem(403, "The origin is not allowed", "List it in `gnomon.api.cors.allowedOrigins`."),
    "sql-not-allowed": Problem(
        403, "The statement is more than a reader may run", "`detail` names the part that is not allowed."
    ),
    "not-found": Problem(404, "There is no such thing", "`detail` says what is there."),
    "method-not-allowed": Problem(405, "The method is not served here", "The header `Allow` lists those that are."),
    "conflict": Problem(409, "It would not be right now", "`detail` says what stands against it."),
    "too-large": Problem(413, "The request is too large", "`gnomon.api.limits.maxRequestBytes` bounds its body."),
    "invalid-body": Problem(422, "The body is wrong", "`errors` says where."),
    "rate-limited": Problem(
        429, "Too many requests", "Wait for `Retry-After` seconds; `gnomon.api.limits` sets the rate."
    ),
    "invalid-sql": Problem(
        400, "The statement cannot be run", "`detail` has ClickHouse's own words; system.columns says what there is."
    ),
    "query-too-large": Problem(
        400,
        "The answer would be too large",
        "More rows or memory than a question may have: narrow the range or filter.",
    ),
    "internal": Problem(500, "Something unexpected happened", "It is a bug. `request_id` stands beside it in the log."),
    "store-refused": Problem(
        500, "ClickHouse refused", "It is a bug, or the schema is not ours. The log has its words."
    ),
    "store-away": Problem(
        503, "ClickHouse does not answer", "`detail` names its address and what starts it; try again."
    ),
    "proxy-away": Problem(
        503, "A proxy does not answer", "`detail` names it; what the others were told stands there. Try again."
    ),
    "schema-missing": Problem(503, "The schema is not there", "Run `gnomon migrate`; `gnomon up` does it by itself."),
    "busy": Problem(
        503,
        "Too much is asked at once",
        "Try again; of `gnomon.api.limits`, `queries` are asked and `streams` are open at once.",
    ),
    "query-too-slow": Problem(
        504, "The question took too long", "Narrow the range or filter; `gnomon.api.limits.queryTimeout`."
    ),
}
"""Every problem, by name."""

BY_STATUS: Final[Mapping[int, str]] = {
    400: "invalid-parameter", 401: "unauthorized", 403: "forbidden", 404: "not-found", 405: "method-not-allowed",
    409: "conflict", 413: "too-large", 422: "invalid-body", 429: "rate-limited",
}  # fmt: skip
"""What an error of the framework is."""

RETRY_SECONDS: Final = 2
"""What is away or busy is worth another try so soon."""

TOO_SLOW: Final = frozenset((159, 160, 209))
"""TIMEOUT_EXCEEDED, TOO_SLOW, SOCKET_TIMEOUT."""
TOO_LARGE: Final = frozenset((158, 191, 241, 307, 396))
"""TOO_MANY_ROWS, SET_SIZE_LIMIT_EXCEEDED, MEMORY_LIMIT_EXCEEDED, TOO_MANY_BYTES, TOO_MANY_ROWS_OR_BYTES."""
_NO_SCHEMA: Final = frozenset((60, 81))
"""UNKNOWN_TABLE, UNKNOWN_DATABASE."""


def refusal(error: Exception) -> Refused | None:
    """Return what a caller is told of an error of another room; None where it is a bug."""
    retry = {"Retry-After": str(RETRY_SECONDS)}
    match error:
        case Refused():
            return error
        case BadParameter():
            return Refused("invalid-parameter", str(error))
        case SqlNotAllowed():
            return Refused("sql-not-allowed", str(error))
        case StoreAway():
            return Refused("store-away", str(error), headers=retry)
        case SchemaBehind() | SchemaNewer():
            return Refused("schema-missing", str(error), headers=retry)
        case EmbeddedError():
            return Refused("store-away", str(error), headers=retry)
        case StoreError(code=code) if code in TOO_SLOW:
            return Refused("query-too-slow", PROBLEMS["query-too-slow"].meaning)
        case StoreError(code=code) if code in TOO_LARGE:
            return Refused("query-too-large", PROBLEMS["query-too-large"].meaning)
        case StoreError(code=code) if code in _NO_SCHEMA:
            return Refused("schema-missing", PROBLEMS["schema-missing"].meaning, headers=retry)
        case StoreError():
            return Refused("store-refused", f"ClickHouse refused with code {error.code} ({error.name or 'no name'})")
    return None


def document(refused: Refused, instance: str, request_id: str) -> dict[str, object]:
    """Return the members of the answer."""
    problem = PROBLEMS[refused.problem]
    members: dict[str, object] = {
        "type": PREFIX + refused.problem,
        "title": problem.title,
        "status": problem.status,
        "detail": refused.detail,
        "instance": instance,
        "request_id": request_id,
    }
    if refused.errors:
        members["errors"] = [dict(one) for one in refused.errors]
    return members


def render(refused: Refused, instance: str, request_id: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the answer."""
    body = json.dumps(document(refused, instance, request_id), ensure_ascii=False).encode("utf-8", "replace")
    return PROBLEMS[refused.problem].status, {"Content-Type": MEDIA_TYPE, **refused.headers}, body


def phrase(status: int) -> str:
    """Return the standard's words for a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance", "request_id"],
    "properties": {
        "type": {"type": "string", "description": "`/problems/NAME`; stable."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong with this request, and the way out."},
        "instance": {"type": "string", "description": "Path of the request."},
        "request_id": {"type": "string", "description": "Also in the header X-Request-Id, and in the log."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "parameter": {"type": "string"},
                    "pointer": {"type": "string", "description": "JSON pointer into the body."},
                    "detail": {"type": "string"},
                },
            },
        },
    },
}
"""JSON schema of every problem."""
