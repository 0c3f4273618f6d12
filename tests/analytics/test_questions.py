"""Named questions: the header is read strictly, parameters are typed, every shipped file keeps the rules."""

from datetime import UTC, datetime

import pytest

from analytics.questions import (
    SETTINGS,
    BadParameter,
    BadQuestion,
    Parameter,
    Question,
    UnknownQuestion,
    integers,
    load,
    load_all,
    names,
    parse,
    plain_type,
)
from tests.analytics.server import ClickHouse

NOW = datetime(2026, 3, 4, 5, 6, 7, 891000, tzinfo=UTC)

COLUMNS = """\
-- column method: the method
-- column calls UInt64 [calls]: how often
-- column last Nullable(DateTime64(3, 'UTC')): when (the last): never = NULL
"""
TEXT = f"""\
-- question: How many?
-- grain: one row per method
-- param from DateTime64(3) = now-24h: start, included
-- param network String = '': empty = all
-- param n UInt32 = 10: at most so many rows
-- param must String: given by the user
{COLUMNS}SELECT method, count() AS calls, maxOrNull(at) AS last FROM gnomon.requests
WHERE at >= {{from:DateTime64(3)}} AND network = {{network:String}} AND user = {{must:String}}
GROUP BY method LIMIT {{n:UInt32}};
"""


def test_a_file_is_read() -> None:
    """Header and statement."""
    question = parse("how_many", TEXT)

    assert (question.name, question.question, question.grain) == ("how_many", "How many?", "one row per method")
    assert question.parameters[0] == Parameter("from", "DateTime64(3)", "now-24h", "start, included")
    assert question.parameters[1].default == ""
    assert question.parameters[3].default is None
    assert [(column.name, column.type, column.unit) for column in question.columns] == [
        ("method", "", ""),
        ("calls", "UInt64", "calls"),
        ("last", "Nullable(DateTime64(3, 'UTC'))", ""),
    ]
    assert question.columns[2].meaning == "when (the last): never = NULL"
    assert question.sql.startswith("SELECT method")
    assert not question.sql.endswith(";")


def test_parameters_take_their_defaults() -> None:
    """Times in UTC, as ClickHouse reads them."""
    assert parse("q", TEXT).bind({"must": "me"}, NOW) == {
        "from": "2026-03-03 05:06:07.891",
        "network": "",
        "n": "10",
        "must": "me",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-03-04 05:06:07.891"),
        ("now-90s", "2026-03-04 05:04:37.891"),
        ("now - 5m", "2026-03-04 05:01:07.891"),
        ("now-2w", "2026-02-18 05:06:07.891"),
        ("2026-01-02", "2026-01-02 00:00:00.000"),
        ("2026-01-02T03:04:05.678Z", "2026-01-02 03:04:05.678"),
        ("2026-01-02 03:04:05", "2026-01-02 03:04:05.000"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02 01:04:05.000"),
    ],
)
def test_times_are_understood(text: str, expected: str) -> None:
    """ISO 8601, UTC unless it says otherwise, or relative to now."""
    assert parse("q", TEXT).bind({"from": text, "must": ""}, NOW)["from"] == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "needs --param must="),
        ({"must": "", "nope": "1"}, "no parameter 'nope'; it has: from, network, n, must"),
        ({"must": "", "n": "x"}, "'x' is no UInt32"),
        ({"must": "", "n": "-1"}, "'-1' is no UInt32"),
        ({"must": "", "n": ""}, "'' is no UInt32"),
        ({"must": "", "n": str(2**32)}, "is no UInt32"),
        ({"must": "", "n": "9" * 5000}, "is no UInt32"),
        ({"must": "", "from": "now-99999999999w"}, "is too far away"),
        ({"must": "", "from": "0001-01-01T00:00:00+14:00"}, "is too far away"),
        ({"must": "", "from": "1899-12-31"}, "not within the years 1900 to 2299"),
        ({"must": "", "from": "yesterday"}, "'yesterday' is no time"),
        ({"must": "", "from": "now+1h"}, "is no time"),
    ],
)
def test_a_wrong_parameter_is_named(given: dict[str, str], message: str) -> None:
    """With what would be right."""
    with pytest.raises(BadParameter, match=message.replace("'", ".")):
        parse("q", TEXT).bind(given, NOW)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-- question: How many?\n", "", "no `-- question:`"),
        ("-- grain: one row per method\n", "", "no `-- grain:`"),
        ("-- grain: one row per method\n", "-- grain: a\n-- grain: b\n", "stand once"),
        (COLUMNS, "", "names no column"),
        ("-- param n UInt32 = 10: at most so many rows\n", "", "same parameters: {n:UInt32}"),
        ("n:UInt32}", "n:UInt64}", "same parameters"),
        ("LIMIT {n:UInt32}", "LIMIT 1", "same parameters: {n:UInt32}"),
        ("-- column method: the method", "-- columns method: the method", "no line of a header"),
        ("-- column method: the method", "-- column method", "NAME"),
        ("-- param n UInt32 = 10: at most", "-- param n = 10: at most", "NAME Type"),
        ("= 10:", "= ten:", "'ten' is no UInt32"),
        ("= now-24h:", "= noon:", "is no time"),
    ],
)
def test_a_broken_header_is_refused(old: str, new: str, message: str) -> None:
    """A fault of the package, found by its tests."""
    assert old in TEXT
    with pytest.raises((BadQuestion, BadParameter), match=message.replace("{", r"\{").replace("}", r"\}")):
        parse("q", TEXT.replace(old, new))


@pytest.mark.parametrize("name", ["nope", "../migrations/0001_create_requests", "", "A", "a/b"])
def test_an_unknown_question_is_a_usage_error(name: str) -> None:
    """No path is followed."""
    with pytest.raises(UnknownQuestion, match="no question"):
        load(name)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("UInt8", range(256)), ("Int16", range(-32768, 32768)), ("UInt64", range(2**64))],
)
def test_an_integer_type_has_its_bounds(kind: str, expected: range) -> None:
    """Signed and not."""
    assert integers(kind) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("LowCardinality(String)", "String"),
        ("LowCardinality(Nullable(String))", "Nullable(String)"),
        ("Map(LowCardinality(String), UInt64)", "Map(String, UInt64)"),
        ("Nullable(Decimal(38, 12))", "Nullable(Decimal(38, 12))"),
    ],
)
def test_a_plain_type_says_what_values_are(kind: str, expected: str) -> None:
    """Not how they are stored."""
    assert plain_type(kind) == expected


def test_questions_read_page_by_page_have_a_total_order() -> None:
    """What begins a page is what rows are ordered by, in that order, all of it columns of the answer."""
    paged = [question for question in load_all() if question.page_key]

    assert {q.name for q in paged} >= {"comparisons", "findings", "alert_changes"}
    for question in paged:
        key = ("at", *question.page_key)
        order = ", ".join(f"{name} DESC" for name in key)
        assert f"ORDER BY {order}\nLIMIT {{limit:UInt32}}" in question.sql, question.name
        assert {*key} <= {column.name for column in question.columns}, question.name
        assert question.most_rows is None


def test_a_question_says_how_many_rows_it_gives_at_most() -> None:
    """Unless a parameter does."""
    assert load("spend_by_cause").most_rows == 1000
    assert load("last_mismatches").most_rows is None


def test_every_shipped_question_keeps_the_rules() -> None:
    """They parse, with a limit each."""
    for question in load_all():
        assert "LIMIT" in question.sql.upper(), question.name
        assert "SETTINGS" not in question.sql.upper(), question.name


@pytest.mark.clickhouse
@pytest.mark.parametrize("name", names())
def test_every_shipped_question_runs_for_a_reader(clickhouse: ClickHouse, name: str) -> None:
    """Through gate and role; its columns are those of its header, in order."""
    question: Question = load(name)
    bound = question.bind(
        {
            p.name: "now" if "Date" in p.type else "0" if "Int" in p.type else "x"
            for p in question.parameters
            if p.default is None
        },
        datetime.now(UTC),
    )
    with clickhouse.reader() as reader:
        result = reader.query(question.sql, bound, SETTINGS)

    assert [column.name for column in question.columns] == list(result.names)
