"""Parameters: from JSON to ClickHouse's own text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from api.binding import MAX_BYTES, MAX_PARAMETERS, bind
from api.errors import Refused


def bound(value: Any, sql: str = "") -> str:
    return bind(sql, {"x": Raw(value if isinstance(value, bytes) else json.dumps(value).encode())})["x"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, "7"),
        (b"12345678901234567890123456789", "12345678901234567890123456789"),
        (b"0.10", "0.10"),
        (b"-1e-9", "-1e-9"),
        (True, "true"),
        (None, "\\N"),
        ("it's\t\n\r\0\\", "it's\\t\\n\\r\\0\\\\"),
        (["it's\\", "\n", ""], "['it\\'s\\\\','\\n','']"),
        ([1, 2.5, None, True], "[1,2.5,NULL,true]"),
        ([["a"], []], "[['a'],[]]"),
        (b"[12345678901234567890123456789, [0.10]]", "[12345678901234567890123456789,[0.10]]"),
    ],
)
def test_a_value_is_written_as_clickhouse_reads_it(value: Any, expected: str) -> None:
    """Numbers keep their digits; texts are escaped, in arrays quoted too."""
    assert bound(value) == expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("{x:DateTime64(3)}", "2026-01-02 02:04:05.250000"),
        ("{ x : DateTime('UTC') }", "2026-01-02 02:04:05.250000"),
        ("{x:Nullable(DateTime64(6))}", "2026-01-02 02:04:05.250000"),
        ("{x:String}", "2026-01-02T03:04:05.25+01:00"),
        ("{y:DateTime}", "2026-01-02T03:04:05.25+01:00"),
    ],
)
def test_a_time_may_have_a_zone(declared: str, expected: str) -> None:
    """ClickHouse reads none there; a text that is declared as one stays as it is."""
    assert bound("2026-01-02T03:04:05.25+01:00", f"SELECT {declared}") == expected


@pytest.mark.parametrize("declared", ["{x:Array(DateTime64(3))}", "{x: Array( Nullable(DateTime) )}"])
def test_times_in_an_array_may_have_a_zone(declared: str) -> None:
    """As one alone may."""
    assert bound(["2026-01-02T03:04:05+01:00", None], f"SELECT {declared}") == "['2026-01-02 02:04:05',NULL]"


@pytest.mark.parametrize("depth", [600, 900, 2000])
def test_arrays_that_are_too_deep_are_refused(depth: int) -> None:
    """Not a bug of ours in the log."""
    with pytest.raises(Refused) as refused:
        bound(b"[" * depth + b"]" * depth)

    assert refused.value.problem == "invalid-body"


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "x" * 101, "x{"])
def test_a_name_is_a_name(name: str) -> None:
    """What ClickHouse could not declare is refused."""
    with pytest.raises(Refused, match="name of a parameter"):
        bind("", {name: Raw(b"1")})


@pytest.mark.parametrize("value", [{}, {"a": 1}, [{}], [["a", {"b": 1}]]])
def test_objects_have_no_form(value: Any) -> None:
    """The refusal says where, and the way out for maps."""
    with pytest.raises(Refused) as caught:
        bound(value)

    assert caught.value.errors[0]["pointer"] == "/params/x"


def test_parameters_are_bounded() -> None:
    """In number, and together in bytes."""
    assert len(bind("", {f"p{i}": Raw(b"1") for i in range(MAX_PARAMETERS)})) == MAX_PARAMETERS
    with pytest.raises(Refused, match="may be"):
        bind("", {f"p{i}": Raw(b"1") for i in range(MAX_PARAMETERS + 1)})
    assert len(bound("x" * MAX_BYTES)) == MAX_BYTES
    with pytest.raises(Refused, match="bytes together"):
        bound("x" * (MAX_BYTES + 1))


@given(st.lists(st.text()))
def test_nothing_ends_a_text_early(texts: list[str]) -> None:
    """Outside its escapes an array has as many quotes as its texts need, and no line ends in it."""
    written = bound(texts)
    plain = written.replace("\\\\", "").replace("\\'", "")

    assert plain.count("'") == 2 * len(texts)
    assert not set("\t\n\r\0") & set(written)
