"""Silences: made and ended by admins, seen by readers, and in force for the alert service at once."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics.alerting.opening import open_history
from analytics.alerting.rules import Rule
from analytics.questions import load
from api.access import Access, Caller, Token
from api.reader import Reader
from gnomon.config.model import ClickHouseSettings
from tests.api.calling import Api, FakeReader, result_of, settings_of
from tests.ingest.engine_process import EngineProcess

ACCESS = Access(
    [
        Token(Caller("ann", "admin"), hashlib.sha256(b"ann").digest()),
        Token(Caller("bob", "sql"), hashlib.sha256(b"bob").digest()),
    ]
)
RULES = (Rule("HeadLag", "SELECT 1 AS value", 5.0),)


@pytest.fixture
def stored(filled: EngineProcess) -> Iterator[Api]:
    clickhouse = ClickHouseSettings(url=filled.url)
    reader = Reader(clickhouse, n_connections=1, query_seconds=20)
    yield Api(reader, settings_of(f"{{clickhouse: {{url: '{filled.url}'}}}}"), ACCESS, filled.folder, RULES)
    reader.close()


def in_force(filled: EngineProcess) -> dict[str, Any]:
    """Return what the alert service reads, by id."""
    with open_history(ClickHouseSettings(url=filled.url), filled.folder) as history:
        return {silence.id: silence for silence in history.silences(datetime.now(UTC))}


@pytest.mark.clickhouse
def test_a_silence_is_made_seen_and_ended(stored: Api, filled: EngineProcess) -> None:
    """201 with its place; the alert service reads it; 204 at its end, and then there is none."""
    made = stored.post(
        "/v1/silences", {"rule": "HeadLag", "subject": "evm:1/*", "for": "2h", "comment": "☃"}, token="ann"
    )
    item = made.json()
    place = made.headers["location"]
    kept = in_force(filled)[item["silence_id"]]

    assert made.status == 201
    assert (item["rule"], item["subject"], item["comment"], item["author"]) == ("HeadLag", "evm:1/*", "☃", "ann")
    assert (kept.rule, kept.subject, kept.author, kept.ends_at - kept.starts_at) == (
        "HeadLag", "evm:1/*", "ann", timedelta(hours=2),
    )  # fmt: skip
    assert stored.get(place, token="bob").json() == item
    assert item in stored.get("/v1/silences", token="bob").json()["items"]
    ended = stored.call("DELETE", place, token="ann")
    assert (ended.status, ended.body) == (204, b"")
    assert item["silence_id"] not in in_force(filled)
    assert stored.get(place, token="bob").problem == "not-found"
    assert stored.call("DELETE", place, token="ann").problem == "not-found"


@pytest.mark.clickhouse
def test_a_silence_may_begin_later(stored: Api, filled: EngineProcess) -> None:
    """At an instant with any offset, for every rule by a pattern."""
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=5)
    said = {"rule": "*", "starts_at": start.isoformat(), "ends_at": (start + timedelta(hours=1)).isoformat()}
    item = stored.post("/v1/silences", said, token="ann").json()
    kept = in_force(filled)[item["silence_id"]]

    assert (kept.rule, kept.subject, kept.starts_at, kept.ends_at) == ("*", "*", start, start + timedelta(hours=1))
    assert item["starts_at"] == f"{start:%Y-%m-%dT%H:%M:%S}.000Z"
    stored.call("DELETE", f"/v1/silences/{item['silence_id']}", token="ann")


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({}, "/rule"),
        ({"rule": ""}, "/rule"),
        ({"rule": "HeadLag"}, "/ends_at"),
        ({"rule": "HeadLag", "for": "2h", "ends_at": "2099-01-01T00:00:00Z"}, "/ends_at"),
        ({"rule": "HeadLag", "for": "soon"}, "/for"),
        ({"rule": "HeadLag", "for": "0s"}, "/ends_at"),
        ({"rule": "HeadLag", "for": "-1h"}, "/ends_at"),
        ({"rule": "HeadLag", "for": "2y"}, "/ends_at"),
        ({"rule": "HeadLag", "for": "9999999999999y"}, "/for"),
        ({"rule": "HeadLag", "ends_at": "2020-01-01T00:00:00Z"}, "/ends_at"),
        ({"rule": "HeadLag", "ends_at": "2099-01-01T00:00:00"}, "/ends_at"),
        ({"rule": "HeadLag", "for": "1h", "starts_at": "0001-01-01T00:00:00+14:00"}, "/starts_at"),
        ({"rule": "HeadLag", "for": "1h", "starts_at": "9999-01-01T00:00:00Z"}, "/starts_at"),
        ({"rule": "HeadLog", "for": "1h"}, "/rule"),
        ({"rule": "HeadLag", "for": "1h", "lasts": "1h"}, "/lasts"),
        ({"rule": "HeadLag", "for": "1h", "author": "me"}, "/author"),
    ],
)  # fmt: skip
def test_a_silence_that_cannot_be_is_refused(said: dict[str, str], pointer: str) -> None:
    """With the member that is wrong; a rule that is not there would silence nothing."""
    answer = Api(FakeReader(result_of(load("silences"))), access=ACCESS, rules=RULES).post(
        "/v1/silences", said, token="ann"
    )

    assert (answer.status, answer.problem) == (422, "invalid-body")
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


def test_who_may_not_change_changes_nothing() -> None:
    """Also with a body that is wrong."""
    one = Api(FakeReader(result_of(load("silences"))), access=ACCESS, rules=RULES)

    assert one.post("/v1/silences", {"rule": "HeadLag", "for": "1h"}, token="bob").problem == "forbidden"
    assert one.post("/v1/silences", {}, token="bob").problem == "forbidden"
    assert one.call("DELETE", "/v1/silences/abc", token="bob").problem == "forbidden"


def test_clickhouse_away_is_told_to_who_writes() -> None:
    """503, and nothing is silent."""
    one = Api(FakeReader(result_of(load("silences"))), settings_of("{clickhouse: {url: 'http://127.0.0.1:9'}}"), ACCESS,
              rules=RULES)  # fmt: skip

    assert one.post("/v1/silences", {"rule": "HeadLag", "for": "1h"}, token="ann").problem == "store-away"
