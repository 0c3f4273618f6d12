"""What of a statement is decided before ClickHouse sees it, and what its refusals become."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from analytics.store import StoreAway, StoreError
from api.access import Access
from api.errors import Refused
from api.metrics import Metrics
from api.state import Holder, InForce
from api.statements import FORMS_BY_NAME, Statements, one_select, refusal
from tests.api.calling import settings_of


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT 1;", "SELECT 1"),
        (" SELECT ';' ;; -- ; done\n", " SELECT ';' "),
        ("SELECT 1 AS format", "SELECT 1 AS format"),
        ("SELECT format('{}', 1)", "SELECT format('{}', 1)"),
        ("SELECT 'é' -- x", "SELECT 'é' -- x"),
    ],
)
def test_one_statement_goes_on(sql: str, expected: str) -> None:
    """Without what ends it; semicolons in texts and comments are none."""
    assert one_select(sql) == expected


@pytest.mark.parametrize(
    ("sql", "problem", "part"),
    [
        ("SELECT 1; DROP TABLE x", "sql-not-allowed", "second statement"),
        ("SELECT 1;/**/SELECT 2", "sql-not-allowed", "second statement"),
        ("SELECT 1 FORMAT CSV", "sql-not-allowed", "FORMAT CSV"),
        ("SELECT 1 FORMAT CSV;", "sql-not-allowed", "FORMAT CSV"),
        ("", "invalid-sql", "no statement"),
        (" -- nothing\n;", "invalid-sql", "no statement"),
    ],
)
def test_what_is_no_single_select_is_refused(sql: str, problem: str, part: str) -> None:
    """Naming the part."""
    with pytest.raises(Refused, match=part) as caught:
        one_select(sql)

    assert caught.value.problem == problem


@pytest.mark.parametrize(
    ("code", "name", "problem"),
    [
        (497, "ACCESS_DENIED", "sql-not-allowed"),
        (164, "READONLY", "sql-not-allowed"),
        (159, "TIMEOUT_EXCEEDED", "query-too-slow"),
        (241, "MEMORY_LIMIT_EXCEEDED", "query-too-large"),
        (158, "TOO_MANY_ROWS", "query-too-large"),
        (306, "TOO_DEEP_RECURSION", "query-too-large"),
        (202, "TOO_MANY_SIMULTANEOUS_QUERIES", "busy"),
        (236, "ABORTED", "store-away"),
        (60, "UNKNOWN_TABLE", "invalid-sql"),
        (62, "SYNTAX_ERROR", "invalid-sql"),
        (4711, "SOMETHING_NEW", "invalid-sql"),
        (49, "LOGICAL_ERROR", "store-refused"),
        (516, "AUTHENTICATION_FAILED", "store-refused"),
    ],
)
def test_a_refusal_is_told_by_its_code(code: int, name: str, problem: str) -> None:
    """ClickHouse's words go with it, but not those of what is our own fault."""
    found = refusal(StoreError(f"ClickHouse: the words ({name})", code, name))

    assert found.problem == problem
    assert ("the words" in found.detail) == (problem != "store-refused")


def test_a_store_that_is_away_is_told_so() -> None:
    """With what starts it."""
    assert refusal(StoreAway("start it")).problem == "store-away"


def test_the_part_stands_first() -> None:
    """What the gate names is what is said."""
    text = "ClickHouse: Not allowed for readers: function file (ACCESS_DENIED)"

    assert refusal(StoreError(text, 497, "ACCESS_DENIED")).detail == "not allowed: function file"


class _Server:
    """A store on a ClickHouse server."""

    is_embedded = False


class _Reader:
    async def run(self, work: Any) -> Any:
        return work(_Server())


def test_a_server_needs_a_reader_of_its_own() -> None:
    """The writer's rights are never lent to people."""
    statements = Statements(Holder(InForce(settings_of(), Access(), ())), _Reader(), Metrics())  # type: ignore[arg-type]

    async def run() -> None:
        async with AsyncExitStack() as held:
            await statements.run(held, "", "SELECT 1", {}, FORMS_BY_NAME["json"])

    with pytest.raises(Refused, match="readerUser") as caught:
        asyncio.run(run())
    assert caught.value.problem == "sql-not-allowed"
