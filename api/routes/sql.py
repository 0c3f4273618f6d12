"""SQL of people: read-only, over the views of `gnomon`, for the role `sql`."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from msgspec import Meta, Raw, Struct

from api import binding, bodies
from api.access import Caller
from api.dependencies import needs, services_of
from api.problems import PROBLEMS_KEY
from api.statements import FORMS_BY_NAME, Format

router: Final = APIRouter(tags=["sql"])

MAX_STATEMENT: Final = 256 << 10


class Asked(Struct, forbid_unknown_fields=True):
    """A statement, its parameters, and the format of the result."""

    sql: Annotated[
        str, Meta(min_length=1, max_length=MAX_STATEMENT, description="One SELECT; views are in database gnomon.")
    ]
    params: Annotated[
        dict[str, Raw],
        Meta(
            description="Values of `{name:Type}` in the statement, bound by ClickHouse: texts, numbers, arrays, null."
        ),
    ] = {}
    format: Annotated[Format, Meta(description="Of the result.")] = "json"


_PARAMS: Final = {
    "type": "object",
    "description": "Values of `{name:Type}` in the statement, bound by ClickHouse: texts, numbers, true, false, null, "
    "arrays.",
}
_EXAMPLE: Final = {
    "sql": "SELECT outcome, count() AS n FROM gnomon.comparisons WHERE at >= {from:DateTime64(3)} GROUP BY outcome",
    "params": {"from": "2026-12-01T00:00:00Z"},
    "format": "json",
}
_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer"}
_DOCUMENT: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["columns", "items", "next_cursor", "statistics"],
    "properties": {
        "columns": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "type"],
                "properties": {"name": _TEXT, "type": {**_TEXT, "description": "ClickHouse's."}},
            },
        },
        "items": {"type": "array", "items": {"type": "object"}},
        "next_cursor": {"type": "null"},
        "statistics": {
            "type": "object",
            "required": ["seconds", "rows", "read_rows", "read_bytes"],
            "description": "Time and reading are those until the first row was sent; of small results, all.",
            "properties": {"seconds": {"type": "number"}, "rows": _COUNT, "read_rows": _COUNT, "read_bytes": _COUNT},
        },
    },
}
_DOCUMENT_EXAMPLE: Final = {
    "columns": [{"name": "outcome", "type": "LowCardinality(String)"}, {"name": "n", "type": "UInt64"}],
    "items": [{"outcome": "identical", "n": 86212}, {"outcome": "mismatch", "n": 116}],
    "next_cursor": None,
    "statistics": {"seconds": 0.013114, "rows": 2, "read_rows": 86328, "read_bytes": 1726560},
}
_BYTES: Final = {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}
_HEADERS: Final = {
    "X-Gnomon-Seconds": {"schema": {"type": "number"}, "description": "Time in ClickHouse until the first row came."},
    "X-Gnomon-Read-Rows": {"schema": _COUNT, "description": "Rows read until then; of small results, all."},
    "X-Gnomon-Read-Bytes": {"schema": _COUNT, "description": "Bytes read until then."},
}


@router.post(
    "/v1/sql",
    summary="Ask in SQL",
    description="One SELECT with a reader's rights and limits (gnomon.api.sql). It ends in ClickHouse when the client "
    "closes the connection. A connection that is cut in the middle of a result means that the statement failed there.",
    response_class=Response,
    responses={
        200: {
            "description": "The result.",
            "headers": _HEADERS,
            "content": {
                "application/json": {"schema": _DOCUMENT, "example": _DOCUMENT_EXAMPLE},
                **{form.media_type.partition(";")[0]: _BYTES for name, form in FORMS_BY_NAME.items() if name != "json"},
            },
        }
    },
    openapi_extra={
        PROBLEMS_KEY: ["sql-not-allowed", "invalid-sql"],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": bodies.schema(Asked, params=_PARAMS),
                    "example": _EXAMPLE,
                }
            },
        },
    },
)  # fmt: skip
async def sql(request: Request, caller: Annotated[Caller, Depends(needs("sql"))]) -> Response:
    """Answer with the result of a statement."""
    asked = bodies.read(await request.body(), Asked)
    bound = binding.bind(asked.sql, asked.params)
    return services_of(request).statements.answer(caller.name, asked.sql, bound, asked.format)
