"""What each kind of receiver is told, against the schema that it checks."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics.alerting.evaluate import Change
from analytics.alerting.history import body_of, message_of
from analytics.alerting.messages import Message, alertmanager, message, pagerduty, slack, webhook
from analytics.alerting.rules import SEVERITIES, Rule
from tests.analytics.alerting.schemas import check_alertmanager, check_pagerduty, check_slack, check_webhook

NOW = datetime(2026, 12, 1, 10, 0, 0, 123456, tzinfo=UTC)
RULE = Rule(
    "FallbackSpend", "SELECT 1", 5.0, window=timedelta(minutes=10), severity="page", runbook="look",
    summary="{value} USD at {subject} in {window} (more than {threshold}), {calls} calls, {nothing}",
    more="gnomon query spend_by_cause --param from={from} --param to={to} --param account={subject}",
)  # fmt: skip


def told(state: str = "firing", subject: str = "acme", severity: str = "page", value: float = 6.5) -> Message:
    change = Change(
        NOW, RULE.name, "resolved" if state == "resolved" else "firing", subject, value, 5.0, severity,
        NOW - timedelta(minutes=1), {"calls": "12"},
    )  # fmt: skip
    return message(change, RULE)


def test_it_says_what_where_since_when_how_much_and_the_command() -> None:
    """Names of the row and the rule are filled in; what is not known stays as it is."""
    it = told()

    assert it.summary == "6.5 USD at acme in 10 min (more than 5), 12 calls, {nothing}"
    assert it.query == (
        "gnomon query spend_by_cause --param from=2026-12-01T09:49:00.123Z --param to=2026-12-01T10:00:00.123Z "
        "--param account=acme"
    )


def test_a_subject_cannot_write_commands() -> None:
    """What comes from rows is quoted for a shell."""
    assert told(subject="a; rm -rf /").query.endswith("--param account='a; rm -rf /'")


def test_a_rule_without_a_command_names_its_own() -> None:
    """The dry run of the rule at that time shows its rows."""
    change = Change(NOW, "Mine", "firing", "", 6.5, 5.0, "page", NOW, {})

    assert message(change, Rule("Mine", "", 5.0)).query == "gnomon alerts test Mine --at 2026-12-01T10:00:00.123Z"


@pytest.mark.parametrize("state", ["firing", "resolved"])
def test_a_webhook_gets_what_the_contract_says(state: str) -> None:
    """Exactly these members."""
    body = json.loads(json.dumps(webhook(told(state)), allow_nan=False))

    check_webhook(body)
    assert (body["state"], body["value"], body["threshold"], body["since"]) == (
        state, 6.5, 5.0, "2026-12-01T09:59:00.123Z",
    )  # fmt: skip


def test_infinity_can_be_sent() -> None:
    """JSON has no infinity."""
    json.dumps(webhook(told(value=float("inf"))), allow_nan=False)


@pytest.mark.parametrize("state", ["firing", "resolved"])
def test_slack_takes_it(state: str) -> None:
    """Text for the notification, blocks within their limits, and no mark-up from rows."""
    body = slack(told(state, subject="<!channel> & co"))

    check_slack(body)
    assert "<!channel>" not in json.dumps(body)


@pytest.mark.parametrize("subject", ["s" * 9000, "&" * 9000, "<" * 399 + ">"])
def test_slack_is_told_of_long_subjects_too(subject: str) -> None:
    """Cut so that the command's fence is closed and no entity is torn."""
    body: Any = slack(told(subject=subject))

    check_slack(body)
    section = body["blocks"][0]["text"]["text"]
    assert section.endswith("```")
    assert not re.search(r"&(?!(amp|lt|gt);)", section + body["text"])


def test_a_resolve_does_not_say_what_holds_no_more() -> None:
    """A summary says what is beyond the threshold; at the end it says how long that was."""
    for body in (slack(told("resolved")), alertmanager(told("resolved"), NOW)):
        assert "more than" not in json.dumps(body)
        assert "over, after 0:01:00 h" in json.dumps(body)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_pagerduty_takes_every_severity(severity: str) -> None:
    """Ours are mapped to theirs; trigger and resolve have one dedup key."""
    trigger, resolve = pagerduty(told(severity=severity), "K" * 32), pagerduty(told("resolved"), "K" * 32)

    check_pagerduty(trigger)
    check_pagerduty(resolve)
    assert trigger["dedup_key"] == resolve["dedup_key"] == told().fingerprint


def test_pagerduty_refuses_long_summaries_so_they_are_cut() -> None:
    """At 1024 characters."""
    body: Any = pagerduty(told(subject="s" * 3000), "K" * 32)

    assert len(body["payload"]["summary"]) == 1024


def test_alertmanager_takes_it() -> None:
    """The labels of a resolve are those of its firing, else it would be another alert; a firing one ends later."""
    firing, resolved = alertmanager(told(), NOW), alertmanager(told("resolved"), NOW)
    check_alertmanager(firing)
    check_alertmanager(resolved)

    assert firing[0]["labels"] == resolved[0]["labels"]
    assert str(firing[0]["endsAt"]) > "2026-12-01T10:04" > str(resolved[0]["endsAt"])


def test_a_message_survives_its_keeping() -> None:
    """What is delivered after a restart is what would have been delivered before."""
    assert message_of(body_of(told())) == told()
    assert re.fullmatch(r"[0-9a-f]{32}", told().fingerprint)
