"""Every error has one shape, and says what a caller can use and nothing more."""

import json

import pytest

from analytics.migrate import SchemaBehind
from analytics.questions import BadParameter, UnknownQuestion
from analytics.reading import SqlNotAllowed
from analytics.store import StoreAway, StoreError
from api import problems
from api.errors import Refused
from api.problems import BY_STATUS, PROBLEMS
from gnomon.errors import GnomonError


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (Refused("conflict", "no"), "conflict"),
        (BadParameter("x"), "invalid-parameter"),
        (SqlNotAllowed("not allowed: function url"), "sql-not-allowed"),
        (StoreAway("ClickHouse does not answer at URL; start it with `gnomon up`"), "store-away"),
        (SchemaBehind("run `gnomon migrate`"), "schema-missing"),
        (StoreError("m", 159, "TIMEOUT_EXCEEDED"), "query-too-slow"),
        (StoreError("m", 396, "TOO_MANY_ROWS_OR_BYTES"), "query-too-large"),
        (StoreError("m", 241, "MEMORY_LIMIT_EXCEEDED"), "query-too-large"),
        (StoreError("m", 60, "UNKNOWN_TABLE"), "schema-missing"),
        (StoreError("secret words", 47, "UNKNOWN_IDENTIFIER"), "store-refused"),
    ],
)
def test_an_error_of_another_room_has_its_problem(error: Exception, problem: str) -> None:
    """By class and code, never by its words."""
    refused = problems.refusal(error)

    assert refused is not None
    assert refused.problem == problem
    assert "secret words" not in refused.detail


@pytest.mark.parametrize("error", [ValueError("x"), GnomonError("x"), UnknownQuestion("x"), KeyError("x")])
def test_a_bug_has_none(error: Exception) -> None:
    """It becomes `internal` at the edge."""
    assert problems.refusal(error) is None


def test_what_may_pass_says_when_to_try_again() -> None:
    """And the way out stands in the detail."""
    refused = problems.refusal(StoreAway("start it with `gnomon up --data DIR`"))

    assert refused is not None
    assert refused.headers["Retry-After"] == "2"
    assert "gnomon up" in refused.detail


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_document_has_the_members_of_the_standard(name: str) -> None:
    """RFC 9457, with our id."""
    status, headers, body = problems.render(Refused(name, "why ☃"), "/v1/x", "abc")

    assert json.loads(body) == {
        "type": f"/problems/{name}", "title": PROBLEMS[name].title, "status": status, "detail": "why ☃",
        "instance": "/v1/x", "request_id": "abc",
    }  # fmt: skip
    assert headers["Content-Type"] == "application/problem+json"
    assert 400 <= status < 600


def test_what_the_framework_refuses_is_on_the_list() -> None:
    """With the status that it has there."""
    assert all(PROBLEMS[name].status == status for status, name in BY_STATUS.items())
