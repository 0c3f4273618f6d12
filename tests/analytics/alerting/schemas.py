"""
What receivers refuse, written from their own documentation and not from our code.

Slack: incoming webhooks and Block Kit's section and context. PagerDuty: Events API v2, `POST /v2/enqueue`.
Alertmanager: API v2 `postableAlerts` (OpenAPI of prometheus/alertmanager: labels needed, names by the Prometheus data
model, times RFC 3339, an end before its beginning refused).
"""

import re
from datetime import datetime
from typing import Any

WEBHOOK = {
    "rule": str, "state": str, "subject": str, "value": float, "threshold": float, "severity": str, "since": str,
    "at": str, "fingerprint": str, "runbook": str, "query": str,
}  # fmt: skip
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Refused(AssertionError):
    """The receiver would answer 400."""


def need(condition: object, why: str) -> None:
    if not condition:
        raise Refused(why)


def check_webhook(body: Any) -> None:
    need(isinstance(body, dict) and set(body) == set(WEBHOOK), f"members: {body}")
    for name, kind in WEBHOOK.items():
        need(isinstance(body[name], kind), name)
    need(body["state"] in ("firing", "resolved"), "state")
    for name in ("since", "at"):
        need(body[name].endswith("Z") and datetime.fromisoformat(body[name]), name)


def check_slack(body: Any) -> None:
    need(isinstance(body, dict) and set(body) <= {"text", "blocks"}, "invalid_payload")
    need(isinstance(body.get("text"), str) and body["text"], "no_text")
    need(len(body.get("blocks", [])) <= 50, "invalid_blocks")
    for block in body.get("blocks", []):
        if block["type"] == "section":
            texts = [block["text"]]
        else:
            need(block["type"] == "context" and 1 <= len(block["elements"]) <= 10, "invalid_blocks")
            texts = block["elements"]
        for text in texts:
            need(set(text) == {"type", "text"} and text["type"] in ("mrkdwn", "plain_text"), "invalid_blocks")
            need(1 <= len(text["text"]) <= 3000, "invalid_blocks")


def check_pagerduty(body: Any) -> None:
    need(re.fullmatch(r"\w{32}", body.get("routing_key", "")), "routing_key is invalid")
    need(body.get("event_action") in ("trigger", "acknowledge", "resolve"), "event_action")
    need(isinstance(body.get("dedup_key"), str) and 1 <= len(body["dedup_key"]) <= 255, "dedup_key")
    if body["event_action"] != "trigger":
        return
    payload = body.get("payload")
    need(isinstance(payload, dict), "payload")
    need(isinstance(payload["summary"], str) and 1 <= len(payload["summary"]) <= 1024, "summary")
    need(isinstance(payload["source"], str) and payload["source"], "source")
    need(payload["severity"] in ("critical", "error", "warning", "info"), "severity")
    datetime.fromisoformat(payload["timestamp"])
    known = {"summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"}
    need(set(payload) <= known, "payload")


def check_alertmanager(body: Any) -> None:
    need(isinstance(body, list) and body, "not an array")
    for alert in body:
        need(set(alert) <= {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}, "members")
        need(alert["labels"].get("alertname"), "at least one label is needed")
        for name, value in [*alert["labels"].items(), *alert.get("annotations", {}).items()]:
            need(_LABEL.fullmatch(name) and isinstance(value, str) and value, f"label {name}")
        begin, end = (datetime.fromisoformat(alert[name]) for name in ("startsAt", "endsAt"))
        need(begin.tzinfo and end.tzinfo and end >= begin, "start time must be before end time")
