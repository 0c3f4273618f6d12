"""
A route for a named question: its parameters, their texts and the schema of its answer come from the question's header.

So a column that a question gains is in the API's document at once, and a test that compares the header with the engine
holds for the API too.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from analytics.accounts import NAMES
from analytics.questions import Parameter, Question, integers, load
from api import examples, values
from api.asking import DEFAULT_LIMIT, MAX_LIMIT
from api.cursors import MAX_CHARACTERS
from api.dependencies import asking_of, json_response, needs
from api.vocabulary import of_question

TIME: Final = (
    r"^(now(-[0-9]{1,6}[smhdw])?|[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?)$"
)
"""ISO 8601 as people write it, or relative to now."""
MAX_TEXT: Final = 256
"""Longest value of a filter, in characters."""
_SORTED_OUT: Final = (*NAMES, "limit")
"""Bound by the API itself, from the configuration and for pages."""

Choices = Mapping[str, Sequence[str]]


def add_question(
    router: APIRouter,
    path: str,
    name: str,
    *,
    summary: str | None = None,
    description: str = "",
) -> None:
    """
    Add `GET path`, which answers a question.

    Args:
        router: gets the route.
        path: of the route.
        name: of the question.
        summary: in place of the question's own sentence.
        description: said beside its grain.
    """
    question = load(name)
    is_paged = bool(question.page_key)
    limit = next((p for p in question.parameters if p.name == "limit"), None)
    shown = [p for p in question.parameters if p.name not in _SORTED_OUT and not p.name.startswith("before_")]

    async def answer(request: Request, **found: Any) -> Response:
        given = {
            parameter.name: str(value) for parameter in shown if (value := found[_python(parameter.name)]) is not None
        }
        if limit is not None and not is_paged:
            given["limit"] = str(found["limit"])
        asking = asking_of(request)
        if is_paged:
            rows = await asking.page(name, given, limit=found["limit"], cursor=found["cursor"])
        else:
            rows = await asking.ask(name, given)
        return json_response(rows.document())

    taken = [inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)]
    words = of_question(name)
    taken += [_taken(parameter, words) for parameter in shown]
    if limit is not None:
        taken.append(_limit(int(limit.default or DEFAULT_LIMIT)))
    if is_paged:
        taken.append(_CURSOR)
    endpoint: Callable[..., Awaitable[Response]] = answer
    endpoint.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    endpoint.__name__ = endpoint.__qualname__ = re.sub(r"\W+", "_", path.strip("/"))
    router.add_api_route(
        path,
        endpoint,
        methods=["GET"],
        summary=summary or question.question,
        description=f"{question.grain[:1].upper()}{question.grain[1:]}. {description}\n\n"
        f"The same as `gnomon query {name}`.",
        response_class=Response,
        response_description="The rows.",
        dependencies=[Depends(needs("read"))],
        responses={200: {"content": {"application/json": {
            "schema": collection(question), "example": examples.collection(question, examples.row(question))}}}},
    )  # fmt: skip


def _limit(default: int) -> inspect.Parameter:
    said = Query(ge=1, le=MAX_LIMIT, description="Most rows.")
    kind = Annotated[int, said]
    return inspect.Parameter("limit", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


_CURSOR: Final = inspect.Parameter(
    "cursor",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        str,
        Query(
            min_length=1,
            max_length=MAX_CHARACTERS,
            description="`next_cursor` of the page before; the other parameters as there.",
        ),
    ],
)


def _taken(parameter: Parameter, choices: Choices) -> inspect.Parameter:
    default = f" Default: {parameter.default}." if parameter.default else ""
    said: dict[str, Any] = {"alias": parameter.name, "description": _sentence(parameter.meaning) + default}
    kind: Any = str
    if parameter.type.startswith("DateTime"):
        said |= {"pattern": TIME}
    elif re.fullmatch(r"U?Int\d+", parameter.type):
        kind = int
        allowed = integers(parameter.type)
        said |= {"ge": allowed.start, "le": allowed.stop - 1}
    elif parameter.name in choices:
        # Where the default is a word, the empty text is how all are asked for.
        words = [*choices[parameter.name], *([""] if parameter.default else [])]
        said |= {"json_schema_extra": {"enum": words}, "pattern": _one_of(words)}
    else:
        said |= {"max_length": MAX_TEXT}
    is_needed = parameter.default is None
    return inspect.Parameter(
        _python(parameter.name),
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_needed else None,
        annotation=Annotated[kind, Query(**said)],  # None is no value that can be sent: it stays out of the document
    )


def _one_of(words: Sequence[str]) -> str:
    return "^(" + "|".join(re.escape(word) for word in words) + ")$"


def _python(name: str) -> str:
    """Return a parameter's name as Python can have it; `from` is a word of the language."""
    return f"{name}_"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def row(question: Question) -> dict[str, Any]:
    """Return a reference to the JSON schema of one row of a question, which the document has once."""
    SHARED[question.name] = question
    return {"$ref": f"#/components/schemas/{question.name}"}


def row_with(question: Question, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a row that has more members than its question gives it."""
    return {"allOf": [row(question), {"type": "object", "required": list(more), "properties": dict(more)}]}


SHARED: Final[dict[str, Question]] = {}
"""Questions that some route refers to, by name."""


def whole_row(question: Question) -> dict[str, Any]:
    """Return the JSON schema of one row of a question."""
    properties = {}
    for column in question.columns:
        unit = f" [{column.unit}]" if column.unit else ""
        properties[column.name] = {**values.schema(column.type), "description": _sentence(column.meaning + unit)}
    return {"type": "object", "required": list(properties), "properties": properties}


def collection(question: Question, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON schema of `Rows.document` for a question, each row with further members."""
    moment = {"type": "string", "format": "date-time"}
    names = {parameter.name for parameter in question.parameters}
    properties: dict[str, Any] = {
        "items": {"type": "array", "items": row_with(question, more) if more else row(question)},
        "next_cursor": {"type": ["string", "null"], "description": "Gives the next page; null = this was the last."},
    }
    for name in ("from", "to"):
        if name in names:
            properties[name] = {**moment, "description": "As it was understood; the range is half-open."}
    if question.most_rows is not None:
        text = f"false: there may be more than the {question.most_rows} rows that are given at most."
        properties["is_complete"] = {"type": "boolean", "description": text}
    return {"type": "object", "required": list(properties), "properties": properties}
