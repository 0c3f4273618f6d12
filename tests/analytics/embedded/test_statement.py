"""Statement and data are told apart as ClickHouse does it; marks, formats and files are found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.embedded.statement import (
    DataInsert,
    FenceMark,
    InsertSelect,
    fence_mark,
    first_keyword,
    parse_insert,
    tokens,
    touches_client_files,
    trailing_format,
)


@pytest.mark.parametrize(
    ("sql", "target", "input_format", "data"),
    [
        (b"INSERT INTO t FORMAT Native\n\x01\x02", ("t",), "Native", b"\x01\x02"),
        (b"insert into a.b (x, y) format CSV\n1,2", ("a", "b"), "CSV", b"1,2"),
        (b"INSERT INTO t FORMAT CSV  \r\n\n1", ("t",), "CSV", b"\n1"),
        (b'INSERT INTO t FORMAT JSONEachRow {"a":1}', ("t",), "JSONEachRow", b'{"a":1}'),
        (b"INSERT INTO t VALUES (1),(2);", ("t",), "Values", b" (1),(2);"),
        (b"INSERT INTO TABLE t(a)VALUES(1)", ("t",), "Values", b"(1)"),
        (b'INSERT INTO `we``ird`."q\\"x" FORMAT CSV\n', ("we`ird", 'q"x'), "CSV", b""),
        (b"INSERT INTO values VALUES (1)", ("values",), "Values", b" (1)"),
        (b"INSERT INTO format FORMAT CSV\n1", ("format",), "CSV", b"1"),
        (b"INSERT INTO t (format, values) FORMAT CSV\n1", ("t",), "CSV", b"1"),
        (b"/*fence:a:b:0 7*/INSERT INTO t FORMAT Native\n", ("t",), "Native", b""),
        (b"-- FORMAT CSV\n /* VALUES */ INSERT INTO t SETTINGS a = 'FORMAT x' FORMAT TSV\n1", ("t",), "TSV", b"1"),
        (b"INSERT INTO t SETTINGS async_insert=1 FORMAT TSV\n1", ("t",), "TSV", b"1"),
        (b"INSERT INTO FUNCTION file('/x', 'CSV') VALUES (1)", (), "Values", b" (1)"),
        (b"INSERT INTO t FORMAT Native\n\xff'\"`/*", ("t",), "Native", b"\xff'\"`/*"),
    ],
)
def test_an_insert_is_split_into_statement_and_data(
    sql: bytes, target: tuple[str, ...], input_format: str, data: bytes
) -> None:
    """Keywords count outside brackets, strings, names and comments only; data begins behind one line feed."""
    insert = parse_insert(sql)

    assert isinstance(insert, DataInsert)
    assert (target, input_format, data) == (insert.target, insert.format, sql[insert.data_start :])
    assert sql.startswith(insert.head)


@pytest.mark.parametrize(
    ("sql", "after"),
    [
        (b"INSERT INTO t FORMAT CSV\n1", b""),
        (b"INSERT INTO t (a, settings) VALUES (1)", b""),
        (b"INSERT INTO t (a) SETTINGS x = 1, settings = 2 FORMAT CSV\n1", b"SETTINGS x = 1, settings = 2 "),
    ],
)
def test_a_source_of_rows_would_stand_before_the_settings(sql: bytes, after: bytes) -> None:
    """That is where the engine's grammar has it."""
    insert = parse_insert(sql)

    assert isinstance(insert, DataInsert)
    assert insert.head[insert.source_at :] == after


@pytest.mark.parametrize(
    ("sql", "reads_input"),
    [
        (b"INSERT INTO t SELECT 1", False),
        (b"INSERT INTO t (a) WITH 1 AS x SELECT x", False),
        (b"INSERT INTO t (SELECT 1)", False),
        (b"INSERT INTO t SELECT a FROM input('a Int8') FORMAT CSV\n1", True),
        (b"INSERT INTO t SELECT 'input(' FORMAT CSV", False),
    ],
)
def test_an_insert_from_a_query_is_known(sql: bytes, reads_input: bool) -> None:
    """Whether it names input() matters: the engine takes that inline and stores nothing."""
    insert = parse_insert(sql)

    assert isinstance(insert, InsertSelect)
    assert reads_input == insert.reads_input


@pytest.mark.parametrize(
    "sql", [b"", b"SELECT 'INSERT INTO t VALUES (1)'", b"INSERT", b"INSERT INTO t", b"INSERT INTO t FORMAT"]
)
def test_what_is_no_insert_is_left_to_the_engine(sql: bytes) -> None:
    """The engine says what is wrong with it."""
    assert parse_insert(sql) is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"/*fence:ab:t.v1:0 12*/INSERT", FenceMark("ab:t.v1:0", 12)),
        (b"  /*fence:k 0*/", FenceMark("k", 0)),
        (b"INSERT /*fence:k 1*/", None),
        (b"/*fence:k */", None),
        (b"/*fence:k -1*/", None),
        (b"/*fence: 1*/", None),
        (b"'/*fence:k 1*/'", None),
    ],
)
def test_the_mark_stands_in_front(sql: bytes, expected: FenceMark | None) -> None:
    """Only a mark before everything else counts."""
    assert expected == fence_mark(sql)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"SELECT 1 FORMAT JSON", "JSON"),
        (b"SELECT 1\n FORMAT Native ;", "Native"),
        (b"SELECT 1 FORMAT CSV SETTINGS a=1", "CSV"),
        (b"SELECT 1 AS format", ""),
        (b"SELECT format FROM t", ""),
        (b"SELECT 'FORMAT JSON'", ""),
        (b"SELECT 1 -- FORMAT JSON", ""),
        (b"SELECT (SELECT 1 FORMAT JSON)", ""),
        (b"", ""),
    ],
)
def test_the_format_clause_is_found(sql: bytes, expected: str) -> None:
    """It is the last clause, outside brackets."""
    assert expected == trailing_format(sql)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"SELECT 1 INTO OUTFILE '/x'", True),
        (b"SELECT 1 into/**/outfile '/x'", True),
        (b"INSERT INTO t FROM INFILE '/x'", True),
        (b"SELECT 'INTO OUTFILE'", False),
        (b"SELECT outfile FROM infile_t", False),
    ],
)
def test_files_of_the_client_are_seen(sql: bytes, expected: bool) -> None:
    """The engine executes these itself, whatever the role."""
    assert expected == touches_client_files(sql)


@pytest.mark.parametrize(
    ("sql", "expected"), [(b" -- x\n select 1", "SELECT"), (b"(SELECT 1)", "("), (b"", ""), (b"/* only */", "")]
)
def test_the_first_keyword_is_found(sql: bytes, expected: str) -> None:
    """Comments do not count."""
    assert expected == first_keyword(sql)


@given(st.binary(max_size=200))
def test_any_bytes_are_lexed_to_their_end(sql: bytes) -> None:
    """Broken strings and comments run to the end; nothing is lost between tokens but blanks and comments."""
    end = 0
    for token in tokens(sql):
        assert token.start >= end
        assert token.text == sql[token.start : token.end]
        end = token.end
    parse_insert(sql)
    trailing_format(sql)
