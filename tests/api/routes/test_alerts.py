"""What fires, what its rule says of it, and whether anybody is told."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analytics.alerting.rules import Rule, configured
from analytics.questions import load
from analytics.store import Result
from tests.api.calling import Api, FakeReader, result_of

NOW = datetime.now(UTC)
FIRING = load("alerts_firing")
SILENCES = load("silences")
RULES = (
    Rule("HeadLag", "SELECT 1 AS value", 5.0, severity="page", runbook="look"),
    Rule("Low", "SELECT 2 AS value", 1.0, is_above=False, lasts=timedelta(minutes=5), receivers=("ops",)),
)


def over(silences: list[tuple[object, ...]]) -> Api:
    rows = [
        (NOW - timedelta(hours=1), "HeadLag", "evm:1/p1", 12.0, 5.0, True),
        (NOW - timedelta(hours=2), "Gone", "x", 1.0, 0.0, False),
    ]

    def answer(sql: str, bound: object) -> Result:
        return result_of(FIRING, *rows) if sql == FIRING.sql else result_of(SILENCES, *silences)

    return Api(FakeReader(answer), rules=RULES)


@pytest.mark.parametrize(
    ("subject", "begins", "is_silenced"),
    [("*", -1, True), ("evm:1/*", -1, True), ("evm:2/*", -1, False), ("*", 1, False)],
    ids=["all", "a pattern", "another subject", "begins later"],
)
def test_what_fires_says_whether_anybody_is_told(subject: str, begins: int, is_silenced: bool) -> None:
    """A rule that is in force no more has no severity."""
    silence = ("5f", "HeadLag", subject, NOW + timedelta(hours=begins), NOW + timedelta(hours=9), "", "ann")
    lag, gone = over([silence]).get("/v1/alerts/firing").json()["items"]

    assert (lag["rule"], lag["severity"], lag["runbook"], lag["is_silenced"]) == (
        "HeadLag",
        "page",
        "look",
        is_silenced,
    )
    assert (gone["rule"], gone["severity"], gone["runbook"], gone["is_silenced"]) == ("Gone", "", "", False)


def test_rules_are_those_in_force() -> None:
    """By name, with their conditions."""
    first, second = over([]).get("/v1/alerts/rules").json()["items"]

    assert (first["name"], first["is_above"], first["threshold"], first["window_seconds"]) == (
        "HeadLag",
        True,
        5.0,
        600.0,
    )
    assert (second["name"], second["is_above"], second["for_seconds"], second["receivers"]) == (
        "Low",
        False,
        300.0,
        ["ops"],
    )


def test_the_default_rules_can_be_read() -> None:
    """All of them."""
    rules = configured((), Path(), [])
    items = Api(FakeReader(result_of(FIRING)), rules=rules).get("/v1/alerts/rules").json()["items"]

    assert [item["name"] for item in items] == sorted(rule.name for rule in rules)
    assert len(items) > 20


@pytest.mark.clickhouse
def test_what_fires_is_what_the_history_says(api: Api) -> None:
    """What has resolved does not; what fired again does, since then."""
    items = api.get("/v1/alerts/firing").json()["items"]

    assert {(i["rule"], i["subject"]) for i in items} == {
        ("FallbackSpend", "acme"),
        ("HeadLag", "evm:1/p1"),
        ("Gone", "x"),
    }
