"""What fires, what has fired, by which rules."""

from datetime import UTC, datetime
from typing import Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from analytics.alerting.rules import Rule
from analytics.alerting.silences import Silence, is_silenced
from analytics.questions import load
from api import examples, exposed
from api.dependencies import asking_of, in_force, json_response, needs
from api.exposed import add_question

router: Final = APIRouter(tags=["alerts"])

add_question(router, "/v1/alerts", "alert_changes")

_FIRING: Final = load("alerts_firing")
_TEXT: Final = {"type": "string"}
_MORE: Final[dict[str, Any]] = {
    "severity": {**_TEXT, "description": "Of the rule; empty where it is in force no more."},
    "runbook": {**_TEXT, "description": "What to do; empty where the rule is in force no more."},
    "is_silenced": {"type": "boolean", "description": "A silence covers it now: nobody is told."},
}
"""What the rules in force and the silences say beside a row."""


_FIRING_EXAMPLE: Final = examples.collection(
    _FIRING,
    {
        **examples.row(_FIRING, fired_at="2026-12-01T02:12:04.500Z"),
        "severity": "page",
        "runbook": "docs/alerts.md#fallbackspend",
        "is_silenced": False,
    },
)


@router.get(
    "/v1/alerts/firing",
    summary=_FIRING.question,
    description="One row per rule and subject that fires, the youngest first.",
    response_class=Response,
    dependencies=[Depends(needs("read"))],
    responses={
        200: {
            "content": {"application/json": {"schema": exposed.collection(_FIRING, _MORE), "example": _FIRING_EXAMPLE}}
        }
    },
)
async def firing(request: Request) -> Response:
    """Answer with what fires, what its rule says of it, and whether anybody is told."""
    asking = asking_of(request)
    found = await asking.ask("alerts_firing")
    silences = [silence_of(one) for one in (await asking.ask("silences")).records()]
    rules = {rule.name: rule for rule in in_force(request).rules}
    now = datetime.now(UTC)
    document = found.document()
    for item in document["items"]:
        rule = rules.get(item["rule"])
        item["severity"] = "" if rule is None else rule.severity
        item["runbook"] = "" if rule is None else rule.runbook
        item["is_silenced"] = is_silenced(silences, item["rule"], item["subject"], now)
    return json_response(document)


def silence_of(record: dict[str, Any]) -> Silence:
    """Return the silence of a row of the question `silences`."""
    names = ("silence_id", "rule", "subject", "starts_at", "ends_at", "comment", "author")
    return Silence(*(record[name] for name in names))


_NUMBER: Final = {"type": "number"}
_RULE_SCHEMA: Final[dict[str, Any]] = {
    "name": _TEXT,
    "is_above": {"type": "boolean", "description": "Fires above the threshold; else below it."},
    "threshold": _NUMBER,
    "severity": _TEXT,
    "window_seconds": {**_NUMBER, "description": "`from` of the statement is `to` minus this."},
    "every_seconds": {**_NUMBER, "description": "A crossing is told within this time."},
    "for_seconds": {**_NUMBER, "description": "How long the threshold must be crossed."},
    "receivers": {"type": "array", "items": _TEXT, "description": "Who is told; empty: nobody."},
    "is_default": {"type": "boolean", "description": "Shipped with Gnomon, perhaps changed in parts."},
    "runbook": _TEXT,
    "sql": {**_TEXT, "description": "Its statement; `gnomon alerts test NAME` asks it."},
}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "is_above": rule.is_above,
        "threshold": rule.threshold,
        "severity": rule.severity,
        "window_seconds": rule.window.total_seconds(),
        "every_seconds": rule.every.total_seconds(),
        "for_seconds": rule.lasts.total_seconds(),
        "receivers": list(rule.receivers),
        "is_default": rule.is_default,
        "runbook": rule.runbook,
        "sql": rule.sql,
    }


_RULES_SCHEMA: Final = {
    "type": "object",
    "required": ["items", "next_cursor"],
    "properties": {
        "items": {
            "type": "array",
            "items": {"type": "object", "required": list(_RULE_SCHEMA), "properties": _RULE_SCHEMA},
        },
        "next_cursor": {"type": "null"},
    },
}
_RULES_EXAMPLE: Final = {
    "items": [_rule(Rule("FallbackSpend", "SELECT …", 5.0, severity="page", receivers=("ops",), is_default=True,
                         runbook="docs/alerts.md#fallbackspend"))],
    "next_cursor": None,
}  # fmt: skip


@router.get(
    "/v1/alerts/rules",
    summary="Which rules are in force?",
    description="One row per rule: the default ones and those of gnomon.alerts.rules over them.",
    response_class=Response,
    dependencies=[Depends(needs("read"))],
    responses={200: {"content": {"application/json": {"schema": _RULES_SCHEMA, "example": _RULES_EXAMPLE}}}},
)
async def rules(request: Request) -> Response:
    """Answer with the rules in force."""
    found = sorted(in_force(request).rules, key=lambda rule: rule.name)
    return json_response({"items": [_rule(rule) for rule in found], "next_cursor": None})
