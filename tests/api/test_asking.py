"""Questions with the parameters of a request, and pages that neither repeat nor hide a row."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.questions import BadParameter, load
from analytics.store import Result
from api.asking import Asking
from api.errors import Refused
from gnomon.config.model import Account
from tests.api.calling import FakeReader, result_of

NOW = datetime(2026, 12, 1, 10, 0, 0, 123456, tzinfo=UTC)
QUESTION = load("alert_changes")
COLUMNS = [column.name for column in QUESTION.columns]

Key = tuple[datetime, str, str, str]


class Table:
    """Answers as ClickHouse does: rows of a range, before a place, in order; rows may come and go between two pages."""

    def __init__(self, keys: list[Key]) -> None:
        self.keys = keys
        self.n_asked = 0

    def __call__(self, sql: str, bound: Mapping[str, object]) -> Result:
        self.n_asked += 1
        start, end = (datetime.fromisoformat(str(bound[s])).replace(tzinfo=UTC) for s in ("from", "to"))
        place = (end, *(str(bound[f"before_{name}"]) for name in QUESTION.page_key))
        found = sorted((k for k in self.keys if start <= k[0] and k < place), reverse=True)
        limit = int(str(bound["limit"]))
        return result_of(
            QUESTION, *((at, rule, subject, state, 1.0, 2.0, True) for at, rule, subject, state in found[:limit])
        )


def pages(table: Table, limit: int, between: Any = lambda n: None, **more: str) -> list[list[Key]]:
    """Read page by page to the end."""
    asking = Asking(FakeReader(table), now=lambda: NOW)
    found: list[list[Key]] = []
    cursor = None
    while True:
        page = asyncio.run(asking.page("alert_changes", more, limit=limit, cursor=cursor))
        found.append([tuple(row[:4]) for row in page.rows])
        cursor = page.next_cursor
        if cursor is None:
            return found
        between(len(found))


def key(seconds: float, *rest: str) -> Key:
    rule, subject, state = (*rest, "", "", "")[:3]
    return (NOW.replace(microsecond=0) - timedelta(seconds=seconds), rule, subject, state)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6, 7])
def test_pages_hold_each_row_once(n: int) -> None:
    """Whatever the number of rows by the length of a page."""
    keys = [key(60, f"r{i}") for i in range(n)]
    found = pages(Table(keys), 3)

    assert [k for page in found for k in page] == sorted(keys, reverse=True)
    assert [len(page) for page in found[:-1]] == [3] * (len(found) - 1)
    assert len(found) == max(1, -(-n // 3))


@given(
    st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, 2.001, 50.0]), st.text(max_size=2), st.text(max_size=2)),
        max_size=30, unique=True,
    ),
    st.integers(1, 7),
)  # fmt: skip
def test_rows_at_one_instant_are_told_apart(rows: list[tuple[float, str, str]], limit: int) -> None:
    """By the rest of their key, whatever it holds."""
    keys = [key(seconds, rule, subject) for seconds, rule, subject in rows]

    assert [k for page in pages(Table(keys), limit) for k in page] == sorted(keys, reverse=True)


def test_rows_that_come_meanwhile_move_nothing() -> None:
    """New ones are above the first page; those that were there come once each."""
    table = Table([key(n + 1, "r") for n in range(20)])
    before = sorted(table.keys, reverse=True)

    def another(n: int) -> None:
        table.keys.append(key(-n, "new"))
        table.keys.append(key(0.5, f"late{n}"))

    assert [k for page in pages(table, 3, another) for k in page] == before


def test_a_row_that_goes_meanwhile_hides_no_other() -> None:
    """Even the one that the next page begins behind."""
    table = Table([key(n + 1, "r") for n in range(9)])
    before = sorted(table.keys, reverse=True)

    found = pages(table, 3, lambda n: table.keys.remove(before[3 * n - 1]) if n < 3 else None)
    assert [k for page in found for k in page] == before


def test_the_range_of_the_first_page_holds_for_all() -> None:
    """`now` is one instant for a whole reading."""
    reader = FakeReader(Table([key(n, "r") for n in range(5)]))
    clock = iter([NOW, NOW + timedelta(hours=3)])
    asking = Asking(reader, now=lambda: next(clock))
    first = asyncio.run(asking.page("alert_changes", {}, limit=2, cursor=None))
    second = asyncio.run(asking.page("alert_changes", {}, limit=2, cursor=first.next_cursor))

    assert (second.start, second.end) == (first.start, first.end)
    assert first.end == NOW.replace(microsecond=123000)
    assert second.end is not None
    assert second.start == second.end - timedelta(days=7)


def test_a_cursor_with_other_filters_is_refused() -> None:
    """It would skip rows that were never given."""
    asking = Asking(FakeReader(Table([key(n, "r") for n in range(5)])), now=lambda: NOW)
    first = asyncio.run(asking.page("alert_changes", {"rule": "r"}, limit=2, cursor=None))

    with pytest.raises(Refused, match="not one of this question"):
        asyncio.run(asking.page("alert_changes", {}, limit=2, cursor=first.next_cursor))


@pytest.mark.parametrize(
    ("given_", "error"),
    [
        ({"nope": "1"}, BadParameter),
        ({"from": "yesterday"}, BadParameter),
        ({"from": "2026-12-01T10:00:01Z"}, Refused),
        ({"from": "now"}, Refused),
        ({"from": "now-1h", "to": "now-2h"}, Refused),
    ],
)
def test_what_cannot_be_asked_is_refused(given_: dict[str, str], error: type[Exception]) -> None:
    """Before ClickHouse is."""
    reader = FakeReader(Table([]))
    with pytest.raises(error):
        asyncio.run(Asking(reader, now=lambda: NOW).ask("spend_by_cause", given_))

    assert reader.asked == []


def test_accounts_are_those_in_force() -> None:
    """Nobody has to send their own budget."""
    reader = FakeReader(result_of(load("budgets")))
    account = Account(id="acme", monthly_budget_usd="100", cycle_day=15)
    found = asyncio.run(Asking(reader, lambda: [account], lambda: NOW).ask("budgets"))
    bound = reader.asked[0][1]

    assert (bound["accounts"], bound["budgets"]) == (["acme"], ["100"])
    assert bound["cycle_from"] == ["2026-11-15 00:00:00"]
    assert (found.start, found.rows) == (None, [])


def test_a_limit_that_may_have_left_rows_out_is_told() -> None:
    """999 rows of at most 1000 are all there are."""
    question = load("spend_by_user")
    row = ("main", "ann", "evm:1", 1, 1, 1, None, None, None, None, 0)
    asked = [
        asyncio.run(Asking(FakeReader(result_of(question, *[row] * n)), now=lambda: NOW).ask("spend_by_user"))
        for n in (999, 1000)
    ]

    assert [one.is_complete for one in asked] == [True, False]
    assert [one.document()["is_complete"] for one in asked] == [True, False]


def test_a_document_says_what_was_understood() -> None:
    """The range as instants, rows as JSON has them."""
    reader = FakeReader(Table([key(1, "r", "s", "firing")]))
    page = asyncio.run(Asking(reader, now=lambda: NOW).page("alert_changes", {"from": "now-1h"}, limit=5, cursor=None))

    assert page.document() == {
        "items": [{"at": "2026-12-01T09:59:59.000Z", "rule": "r", "subject": "s", "state": "firing", "value": 1.0,
                   "threshold": 2.0, "delivered": True}],
        "next_cursor": None, "from": "2026-12-01T09:00:00.123Z", "to": "2026-12-01T10:00:00.123Z",
    }  # fmt: skip
    assert list(page.records()[0]) == COLUMNS
