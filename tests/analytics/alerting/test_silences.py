"""Whom a silence covers, and when."""

from datetime import UTC, datetime, timedelta

import pytest

from analytics.alerting.silences import Silence, is_silenced

NOW = datetime(2026, 12, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("rule", "subject", "expected"),
    [
        ("HeadLag", "*", True),
        ("*", "*", True),
        ("Head*", "evm:1/*", True),
        ("HeadLag", "evm:1/p1", True),
        ("HeadLag", "evm:1", False),
        ("headlag", "*", False),
        ("PaidShare", "*", False),
    ],
)
def test_rule_and_subject_must_fit(rule: str, subject: str, expected: bool) -> None:
    """As names or patterns, case and all."""
    silence = Silence("s", rule, subject, NOW, NOW + HOUR)

    assert is_silenced([silence], "HeadLag", "evm:1/p1", NOW) is expected


@pytest.mark.parametrize(
    ("at", "expected"), [(-1, False), (0, True), (3599, True), (3600, False)], ids=["before", "begins", "lasts", "ends"]
)
def test_its_end_is_not_in_it(at: int, expected: bool) -> None:
    """Half-open, as every range here."""
    silence = Silence("s", "*", "*", NOW, NOW + HOUR)

    assert silence.covers("HeadLag", "", NOW + timedelta(seconds=at)) is expected
