"""
A change in the words of each kind of receiver. Pure: change and rule in, JSON-able members out.

Each says what (rule), where (subject), since when, how much (value, threshold) and the command that shows more. The
dedup key is the fingerprint of rule and subject, so that a receiver can tell a repetition, and a resolve finds its
trigger.

Sources: Slack incoming webhooks; PagerDuty Events API v2; Alertmanager API v2 `POST /api/v2/alerts`.
"""

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from analytics.alerting.evaluate import Change
from analytics.alerting.rules import Rule

Members = dict[str, object]

PAGERDUTY_URL: Final = "https://events.pagerduty.com/v2/enqueue"
ALERTMANAGER_PATH: Final = "/api/v2/alerts"
ALERTMANAGER_KEEPS: Final = timedelta(minutes=5)
"""How long Alertmanager keeps an alert that it is not told of again; firing ones are sent every minute."""

_PAGERDUTY_SEVERITY: Final[Mapping[str, str]] = {
    "page": "critical", "ticket": "warning", "info": "info", "critical": "critical", "error": "error",
    "warning": "warning",
}  # fmt: skip
DEFAULT_SUMMARY: Final = "{value} {beyond} {threshold}"
_MAX_SUMMARY: Final = 1024
"""PagerDuty refuses a longer `payload.summary`."""
_SLACK_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_NAME: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Message:
    """What is told: the body of a webhook, and what the other kinds need beside it."""

    rule: str
    state: str
    subject: str
    value: float
    threshold: float
    severity: str
    since: datetime
    at: datetime
    fingerprint: str
    runbook: str
    query: str
    """The command that shows more."""
    summary: str
    """One line for people."""


def message(change: Change, rule: Rule) -> Message:
    """Return what is told of a change."""
    names = _names(change, rule)
    more = rule.more or f"gnomon alerts test {rule.name} --at {_iso(change.at)}"
    return Message(
        rule=change.rule,
        state=change.state,
        subject=change.subject,
        value=change.value,
        threshold=change.threshold,
        severity=change.severity,
        since=change.since,
        at=change.at,
        fingerprint=change.fingerprint,
        runbook=rule.runbook,
        query=_filled(more, {name: shlex.quote(text) for name, text in names.items()}),
        summary=_ended(change) if change.state == "resolved" else _filled(rule.summary or DEFAULT_SUMMARY, names),
    )


def _ended(change: Change) -> str:
    """Return the line of a resolve: a rule's own says what was beyond its threshold, which holds no more."""
    seconds = max(round((change.at - change.since).total_seconds()), 0)
    return f"over, after {timedelta(seconds=seconds)} h"


def _names(change: Change, rule: Rule) -> dict[str, str]:
    return {
        **change.labels,
        "rule": change.rule,
        "subject": change.subject,
        "value": f"{change.value:.6g}",
        "threshold": f"{change.threshold:.6g}",
        "beyond": "is above" if rule.is_above else "is below",
        "window": _span(rule.window),
        "from": _iso(change.since - rule.window),
        "to": _iso(change.at),
        "since": _iso(change.since),
    }


def _filled(text: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda found: names.get(found[1], found[0]), text)


def webhook(told: Message) -> Members:
    """Return the body of a webhook."""
    return {
        "rule": told.rule,
        "state": told.state,
        "subject": told.subject,
        "value": _finite(told.value),
        "threshold": _finite(told.threshold),
        "severity": told.severity,
        "since": _iso(told.since),
        "at": _iso(told.at),
        "fingerprint": told.fingerprint,
        "runbook": told.runbook,
        "query": told.query,
    }


def slack(told: Message) -> Members:
    """Return the body of a Slack incoming webhook: `text` for notifications, blocks for reading."""
    mark = ":rotating_light:" if told.state == "firing" else ":white_check_mark:"
    subject = f" — `{_slack(told.subject, 400)}`" if told.subject else ""
    head = f"{mark} *{_slack(told.rule, 200)}* {told.state}{subject}"
    facts = f"{told.severity} · since {_iso(told.since)} · value {told.value:.6g}, threshold {told.threshold:.6g}"
    lines = [head, _slack(told.summary, 900), facts, f"```{_slack(told.query, 1200)}```"]
    blocks: list[Members] = [{"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)}}]
    if told.runbook:
        note = {"type": "mrkdwn", "text": _slack(told.runbook, 2000)}
        blocks.append({"type": "context", "elements": [note]})
    return {"text": _slack(f"{_headline(told)}: {told.summary}", 3000), "blocks": blocks}


def _slack(text: str, most: int) -> str:
    """
    Return a text that mentions nobody and links nowhere, at most so long; a cut goes through no entity.

    >>> _slack("<!channel> & co", 99), _slack("a<b", 4), _slack("a<b", 5)
    ('&lt;!channel&gt; &amp; co', 'a', 'a&lt;')
    """
    kept, room = [], most
    for piece in (_SLACK_ENTITIES.get(character, character) for character in text[:most]):
        room -= len(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept)


def pagerduty(told: Message, routing_key: str) -> Members:
    """Return an event of PagerDuty's Events API v2."""
    key: Members = {"routing_key": routing_key, "dedup_key": told.fingerprint}
    if told.state == "resolved":
        return {**key, "event_action": "resolve"}
    return {
        **key,
        "event_action": "trigger",
        "client": "gnomon",
        "payload": {
            "summary": f"{_headline(told)}: {told.summary}"[:_MAX_SUMMARY],
            "source": told.subject or "gnomon",
            "severity": _PAGERDUTY_SEVERITY[told.severity],
            "timestamp": _iso(told.at),
            "component": told.subject,
            "class": told.rule,
            "custom_details": webhook(told),
        },
    }


def alertmanager(told: Message, now: datetime) -> list[Members]:
    """Return the body of `POST /api/v2/alerts`; labels are those of the fingerprint, so a resolve finds its alert."""
    is_firing = told.state == "firing"
    # An end before the beginning is refused, and one that equals it is of no use.
    ends_at = now + ALERTMANAGER_KEEPS if is_firing else max(told.at, told.since + timedelta(milliseconds=1))
    labels = {"alertname": told.rule, "severity": told.severity, "service": "gnomon"}
    if told.subject:
        labels["subject"] = told.subject
    annotations = {
        "summary": told.summary, "runbook": told.runbook, "query": told.query, "value": f"{told.value:.6g}",
        "threshold": f"{told.threshold:.6g}", "fingerprint": told.fingerprint,
    }  # fmt: skip
    return [
        {
            "labels": labels,
            "annotations": {name: text for name, text in annotations.items() if text},
            "startsAt": _iso(told.since),
            "endsAt": _iso(ends_at),
        }
    ]


def _finite(value: float) -> float:
    """Return a number that JSON can hold: infinity is the greatest there is."""
    return max(-sys.float_info.max, min(value, sys.float_info.max))


def _headline(told: Message) -> str:
    return f"{told.rule} {told.state}" + (f" ({told.subject})" if told.subject else "")


def _iso(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def _span(span: timedelta) -> str:
    seconds = span.total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
