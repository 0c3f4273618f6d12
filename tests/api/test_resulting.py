"""From ClickHouse's rows to the API's document, wherever the pieces are cut."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import Refused
from api.resulting import Document, Shown, converter

HEAD = b'["n", "a\\"b"]\n["UInt64", "LowCardinality(String)"]\n'
ROWS = b'[1, "x"]\n[9007199254740993, "\\n"]\n[18446744073709551615, ""]\n'


def documented(*pieces: bytes) -> Any:
    document = Document()
    return json.loads(b"".join([*(document.feed(piece) for piece in pieces), document.finish({})]))


EXPECTED = {
    "columns": [{"name": "n", "type": "UInt64"}, {"name": 'a"b', "type": "LowCardinality(String)"}],
    "items": [
        {"n": 1, 'a"b': "x"},
        {"n": "9007199254740993", 'a"b': "\n"},
        {"n": "18446744073709551615", 'a"b': ""},
    ],
    "next_cursor": None,
    "statistics": {"rows": 3},
}


@given(st.lists(st.integers(0, len(HEAD + ROWS))))
def test_a_document_is_the_same_however_it_comes(cuts: list[int]) -> None:
    """A piece may end within a line, within the header, or be empty."""
    places = [0, *sorted(cuts), len(HEAD + ROWS)]

    assert documented(*((HEAD + ROWS)[a:b] for a, b in pairwise(places))) == EXPECTED


def test_a_result_without_rows_has_columns() -> None:
    """And without a line feed behind the last line too."""
    assert documented(HEAD)["items"] == []
    assert documented(HEAD[:-1])["columns"] == EXPECTED["columns"]
    assert documented((HEAD + ROWS)[:-1]) == EXPECTED


def test_two_columns_of_one_name_are_refused() -> None:
    """An object would hide one of them."""
    with pytest.raises(Refused, match="two columns are called 'n'"):
        Document().feed(b'["n","m","n"]\n["UInt8","UInt8","UInt8"]\n[1,2,3]\n')


def test_bytes_that_are_no_text_become_marks() -> None:
    """A String may hold any bytes; JSON may not."""
    assert documented(b'["s"]\n["String"]\n["a\xffb"]\n')["items"] == [{"s": "a�b"}]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("UInt64", b"9007199254740992", b"9007199254740992"),
        ("Int64", b"-9007199254740993", b'"-9007199254740993"'),
        ("Nullable(Int64)", b"null", b"null"),
        ("LowCardinality(Nullable(UInt64))", b"7", b"7"),
        ("UInt256", b'"7"', b"7"),
        ("Int128", b'"-170141183460469231731687303715884105728"', b'"-170141183460469231731687303715884105728"'),
        ("Array(UInt64)", b"[1, 9007199254740993]", b'[1,"9007199254740993"]'),
        ("Map(String, UInt64)", b'{"a": 18446744073709551615}', b'{"a":"18446744073709551615"}'),
        ("Tuple(a UInt64, b Array(Nullable(Int64)))", b"[1, [null, 2]]", b"[1,[null,2]]"),
    ],
)
def test_integers_are_numbers_as_far_as_a_double_goes(kind: str, text: bytes, expected: bytes) -> None:
    """Texts beyond, at any depth."""
    convert = converter(kind)

    assert convert is not None
    assert convert(text) == expected


@pytest.mark.parametrize(
    "kind", ["UInt8", "Int32", "String", "Float64", "Decimal(38, 12)", "DateTime64(3, 'UTC')", "Array(Decimal(9, 2))"]
)
def test_the_rest_is_as_clickhouse_writes_it(kind: str) -> None:
    """Nothing is done to it."""
    assert converter(kind) is None


@given(st.lists(st.integers(0, 40)))
def test_a_table_shows_what_a_terminal_would_obey(cuts: list[int]) -> None:
    """Colours, titles, moves of the cursor, text turned round; however it comes."""
    text = "│ \x1b[31mé\x1b]0;t\x07 │\n│ \u202ea\x9b2J\r\tb │\n".encode() + b"\xff\xc3"
    places = [0, *sorted(cuts), len(text)]
    shown = Shown()
    got = b"".join(shown.feed(text[a:b]) for a, b in pairwise(places)) + shown.finish({})

    assert got.decode() == "│ �[31mé�]0;t� │\n│ �a�2J�\tb │\n��"
