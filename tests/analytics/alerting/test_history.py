"""The history in ClickHouse: what one life writes is what the next one reads."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from analytics.alerting.evaluate import Change, ChangeState, Held
from analytics.alerting.history import History, Parcel, Report
from analytics.alerting.messages import message
from analytics.alerting.rules import Rule
from analytics.alerting.silences import Silence
from tests.analytics.server import ClickHouse

pytestmark = pytest.mark.clickhouse

NOW = datetime(2061, 1, 1, 10, 0, tzinfo=UTC)


def change(rule: str, state: ChangeState, seconds: float = 0, subject: str = "a'b\\c") -> Change:
    at = NOW + timedelta(seconds=seconds)
    return Change(at, rule, state, subject, 6.5, 5.0, "page", NOW, {"calls": "1"})


def parcels(it: Change, *receivers: str) -> list[Parcel]:
    return [Parcel(it.at, receiver, message(it, Rule(it.rule, "", 5.0))) for receiver in receivers]


@pytest.fixture
def history(clickhouse: ClickHouse) -> Iterator[History]:
    with clickhouse.store() as store:
        yield History(store)


def delivered(clickhouse: ClickHouse, rule: str) -> list[tuple[str, bool]]:
    with clickhouse.reader() as store:
        rows = store.rows("SELECT state, delivered FROM gnomon.alerts WHERE rule = {r:String} ORDER BY at", {"r": rule})
    return [(state, done) for state, done in rows]


def test_the_next_life_reads_what_was_written(history: History) -> None:
    """What is held, since when, when it fired, who was told, and what is not delivered yet."""
    fired = change("HistoryA", "firing")
    told = parcels(fired, "ops", "x")
    history.write([fired, change("HistoryA", "pending", subject="p")], told)
    history.report([Report(NOW, told[0], True, 1), Report(NOW, told[1], False, 1, "no answer")])
    past = history.past(NOW + timedelta(minutes=1))

    assert past.held["HistoryA"] == {
        "a'b\\c": Held("firing", NOW, 6.5, {"calls": "1"}), "p": Held("pending", NOW, 6.5, {"calls": "1"}),
    }  # fmt: skip
    assert past.changed_at["HistoryA", "a'b\\c"] == NOW
    assert past.told[fired.fingerprint] == ("ops", "x")
    assert [p for p in past.undelivered if p.message.rule == "HistoryA"] == [told[1]]


def test_what_is_over_is_not_held(history: History) -> None:
    """Neither a resolved alert nor a crossing that did not last; who was told is forgotten with it."""
    fired, ended = change("HistoryB", "firing"), change("HistoryB", "resolved", 10)
    history.write([fired, change("HistoryB", "pending", subject="p")], parcels(fired, "ops"))
    history.write([ended, change("HistoryB", "inactive", 10, subject="p")], parcels(ended, "ops"))
    past = history.past(NOW + timedelta(minutes=1))

    assert "HistoryB" not in past.held
    assert fired.fingerprint not in past.told


def test_the_view_says_when_all_have_it(history: History, clickhouse: ClickHouse) -> None:
    """One of two is not delivered; nobody to tell is not delivered; pending is no news."""
    fired, ended = change("HistoryC", "firing", 1), change("HistoryC", "resolved", 2)
    told = parcels(fired, "ops", "x")
    history.write([change("HistoryC", "pending"), fired, ended], told)
    assert delivered(clickhouse, "HistoryC") == [("firing", False), ("resolved", False)]
    history.report([Report(NOW, told[0], True, 1)])
    assert delivered(clickhouse, "HistoryC")[0] == ("firing", False)
    history.report([Report(NOW, told[1], True, 3)])

    assert delivered(clickhouse, "HistoryC") == [("firing", True), ("resolved", False)]


def test_a_message_of_no_change_is_not_sent(history: History) -> None:
    """A process killed between writing the two never decided to tell."""
    history.write([], parcels(change("HistoryD", "firing"), "ops"))

    assert not [p for p in history.past(NOW + timedelta(minutes=1)).undelivered if p.message.rule == "HistoryD"]


def test_what_is_a_week_old_is_given_up(history: History) -> None:
    """Nobody wants to be paged for last month."""
    fired = change("HistoryE", "firing")
    history.write([fired], parcels(fired, "ops"))

    assert not [p for p in history.past(NOW + timedelta(days=7.1)).undelivered if p.message.rule == "HistoryE"]


def test_a_silence_ends_when_it_is_taken_back(history: History, clickhouse: ClickHouse) -> None:
    """The newest row of an id is in force."""
    silence = Silence("s1", "HeadLag", "evm:1/*", NOW, NOW + timedelta(hours=1), "why", "me")
    history.silence(silence, NOW)
    assert silence in history.silences(NOW)
    history.silence(replace(silence, ends_at=NOW + timedelta(minutes=1)), NOW + timedelta(minutes=1))

    assert silence.id not in {s.id for s in history.silences(NOW + timedelta(minutes=2))}


def test_clickhouse_tells_its_time(history: History) -> None:
    """Aware, and near ours: it runs on this machine."""
    assert abs(history.clock() - datetime.now(UTC)) < timedelta(seconds=5)
