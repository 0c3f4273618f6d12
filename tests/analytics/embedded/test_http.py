"""The port speaks ClickHouse's HTTP protocol: to curl, and to clickhouse-connect."""

import contextlib
import gzip
import http.client
import importlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import clickhouse_connect
import lz4.frame
import pytest
import zstandard
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

from analytics.embedded.errors import Code
from tests.analytics.server import ClickHouse

pytestmark = pytest.mark.clickhouse


@pytest.fixture
def client(clickhouse: ClickHouse) -> Any:
    """Return clickhouse-connect as a user would get it, sessions and all."""
    port = int(clickhouse.url.rpartition(":")[2])
    made = clickhouse_connect.get_client(
        host="127.0.0.1",
        port=port,
        username=clickhouse.writer.user,
        password=clickhouse.writer.password,
        database="gnomon_core",
        tz_mode="aware",
    )
    yield made
    made.close()


@pytest.fixture
def table(client: Client, request: pytest.FixtureRequest) -> Any:
    """Return a fresh table's name."""
    name = f"t_{abs(hash(request.node.nodeid))}"
    client.command(
        f"CREATE TABLE {name} (a UInt64, s String, at DateTime64(3, 'UTC'), d Nullable(Decimal(38, 12))) "
        "ENGINE = MergeTree ORDER BY a"
    )
    yield name
    client.command(f"DROP TABLE {name}")


NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
NAMES = ["a", "s", "at", "d"]


def test_ping_names_the_process(clickhouse: ClickHouse) -> None:
    """An orphan of another data folder cannot pass for this one."""
    one, two = clickhouse.ask(None, path="/ping"), clickhouse.ask(None, path="/ping")

    assert (one[0], one[2]) == (200, b"Ok.\n")
    assert len(one[1]["X-Gnomon-Boot"]) == 32
    assert one[1]["X-Gnomon-Boot"] == two[1]["X-Gnomon-Boot"]


@pytest.mark.parametrize(("path", "method", "status"), [("/nope", None, 404), ("/", "PUT", 405), ("/", "DELETE", 405)])
def test_other_paths_and_methods_are_refused(
    clickhouse: ClickHouse, path: str, method: str | None, status: int
) -> None:
    """There is one handler."""
    assert clickhouse.ask(b"SELECT 1", path=path, method=method)[0] == status


@pytest.mark.parametrize(
    ("sql", "parameters", "headers"),
    [
        (None, {"query": "SELECT 1 + 1"}, {}),
        ("SELECT 1 + 1", {}, {}),
        ("+ 1", {"query": "SELECT 1"}, {}),
        ("SELECT 1 + 1", {}, {"Content-Type": "application/x-www-form-urlencoded"}),
        (gzip.compress(b"SELECT 1 + 1"), {}, {"Content-Encoding": "gzip"}),
        (lz4.frame.compress(b"SELECT 1 + 1"), {}, {"Content-Encoding": "lz4"}),
        (zstandard.compress(b"SELECT 1 + 1"), {}, {"Content-Encoding": "zstd"}),
    ],
)
def test_a_statement_comes_by_url_or_body(
    clickhouse: ClickHouse, sql: str | bytes | None, parameters: dict[str, str], headers: dict[str, str]
) -> None:
    """Or half by each; compressed or not."""
    status, answered, body = clickhouse.ask(sql, parameters, headers)

    assert (status, body) == (200, b"2\n")
    assert answered["X-ClickHouse-Format"] == "TabSeparated"
    assert answered["X-ClickHouse-Timezone"] == "UTC"
    assert json.loads(answered["X-ClickHouse-Summary"])["result_rows"] == "1"


def test_database_and_format_come_by_header_too(clickhouse: ClickHouse) -> None:
    """What the URL says wins."""
    headers = {"X-ClickHouse-Database": "system", "X-ClickHouse-Format": "JSONEachRow"}
    sql = "SELECT currentDatabase() AS d"

    assert clickhouse.ask(sql, {}, headers, is_writer=True)[2] == b'{"d":"system"}\n'
    assert (
        clickhouse.ask(sql, {"database": "gnomon", "default_format": "CSV"}, headers, is_writer=True)[2]
        == b'"gnomon"\n'
    )


@pytest.mark.parametrize("encoding", ["gzip", "lz4", "zstd", "deflate"])
@pytest.mark.parametrize("rows", [1000, 500_000])
def test_answers_are_compressed_on_request(clickhouse: ClickHouse, encoding: str, rows: int) -> None:
    """Only when the setting and the header both say so; in one piece and as a stream."""
    from analytics.embedded.compression import decoder

    sql = f"SELECT number, repeat('x', 20) FROM numbers({rows})"
    plain = clickhouse.ask(sql, {}, {"Accept-Encoding": encoding})
    packed = clickhouse.ask(sql, {"enable_http_compression": "1"}, {"Accept-Encoding": encoding})
    one = decoder(encoding)
    unpacked = b"".join(one.feed(packed[2]))
    one.finish()

    assert "Content-Encoding" not in plain[1]
    assert packed[1]["Content-Encoding"] == encoding
    assert len(packed[2]) < len(plain[2]) * 0.9
    assert plain[2] == unpacked


@pytest.mark.parametrize(
    ("sql", "code", "status"),
    [
        ("SELEC 1", 62, 400),
        ("SELECT nosuch", 47, 404),
        ("SELECT * FROM nosuch", 60, 404),
        ("SELECT nosuch()", 46, 404),
        ("SELECT 1; SELECT 2", 62, 400),
        ("SELECT 1 FORMAT Nope", 73, 404),
        ("INSERT INTO nosuch FORMAT CSV\n1", 60, 404),
        ("SELECT toUInt8('x')", 6, 400),
        ("SELECT throwIf(1)", 395, 500),
        ("SELECT 1 SETTINGS nosuch = 1", 115, 404),
        ("SELECT 1 INTO OUTFILE '/tmp/x'", 48, 501),
        ("INSERT INTO nosuch SELECT * FROM input('a Int8') FORMAT CSV\n1", 48, 501),
        ("SET async_insert = 1", 452, 500),
        (b"SELECT '\xff'", 62, 400),
        ("", 62, 400),
    ],
)
def test_errors_are_clickhouses(clickhouse: ClickHouse, sql: str | bytes, code: int, status: int) -> None:
    """Code in the header, ClickHouse's text in the body, its HTTP status."""
    answer = clickhouse.ask(sql, is_writer=True)

    assert (status, str(code)) == (answer[0], answer[1]["X-ClickHouse-Exception-Code"])
    assert answer[2].startswith(f"Code: {code}. DB::Exception: ".encode())


def test_codes_have_the_engines_names(client: Client) -> None:
    """The numbers of this front are ClickHouse's."""
    for code in Code:
        assert client.command(f"SELECT errorCodeToName({code.value})") == code.name


def test_get_only_reads(clickhouse: ClickHouse) -> None:
    """A link must not change anything, whoever follows it."""
    for sql in ("CREATE TABLE x (a Int8) ENGINE = Memory", "INSERT INTO x VALUES (1)", "DROP DATABASE gnomon"):
        status, headers, _ = clickhouse.ask(None, {"query": sql}, is_writer=True)

        assert (status, headers["X-ClickHouse-Exception-Code"]) == (500, "164")


@pytest.mark.parametrize("compress", [False, "lz4", "zstd", "gzip"])
def test_inserts_come_back(clickhouse: ClickHouse, table: str, compress: bool | str) -> None:
    """Every way that clickhouse-connect compresses, with every kind of value."""
    port = int(clickhouse.url.rpartition(":")[2])
    client = clickhouse_connect.get_client(
        host="127.0.0.1",
        port=port,
        username=clickhouse.writer.user,
        password=clickhouse.writer.password,
        database="gnomon_core",
        tz_mode="aware",
        compress=compress,
    )
    rows = [(i, f"it's\t{i}\n\\", NOW, None if i % 2 else Decimal("0.000000000001") * i) for i in range(5000)]
    summary = client.insert(table, rows, column_names=NAMES)
    found = client.query(f"SELECT * FROM {table} ORDER BY a").result_rows
    client.close()

    assert summary.written_rows == 5000
    assert [tuple(row) for row in found] == rows


def test_a_large_insert_is_streamed(client: Client, table: str) -> None:
    """2.5 million rows in 110 MB: above what is buffered."""
    n = 2_500_000
    pa: Any = importlib.import_module("pyarrow")
    arrow = pa.table(
        {
            "a": pa.array(range(n), pa.uint64()),
            "s": pa.array(["0123456789abcdef01234567"] * n),
            "at": pa.array([NOW] * n, pa.timestamp("ms", "UTC")),
        }
    )
    client.insert_arrow(table, arrow)

    assert client.command(f"SELECT (count(), sum(a)) FROM {table}") == f"({n},{n * (n - 1) // 2})"


def test_one_block_is_one_part(clickhouse: ClickHouse, client: Client, table: str) -> None:
    """What the sink's rule rests on; the body arrives in many pieces."""
    rows = b"".join(b"%d\tx\t2026-01-01 00:00:00.000\t\\N\n" % i for i in range(300_000))
    client.raw_insert(table, column_names=NAMES, insert_block=rows, fmt="TabSeparated", compression=None)

    parts = client.query(f"SELECT rows FROM system.parts WHERE table = '{table}' AND active").result_rows
    assert parts == [(300_000,)]


def test_parts_of_a_busy_hour_are_merged_into_one_file(client: Client, table: str) -> None:
    """Not into one for each column: a table of the sink has two hundred, made and deleted at every merge."""
    for start in (0, 600_000):
        rows = b"".join(b"%d\tx\t2026-01-01 00:00:00.000\t\\N\n" % i for i in range(start, start + 600_000))
        client.raw_insert(table, column_names=NAMES, insert_block=rows, fmt="TabSeparated", compression=None)

    client.command(f"OPTIMIZE TABLE {table} FINAL")

    asked = (
        f"SELECT rows, part_type, data_uncompressed_bytes > 20e6 FROM system.parts WHERE table = '{table}' AND active"
    )
    assert client.query(asked).result_rows == [(1_200_000, "Compact", 1)]


def test_a_broken_insert_stores_nothing(client: Client, table: str) -> None:
    """And the next one on the connection is served."""
    with pytest.raises(DatabaseError) as caught:
        client.raw_insert(table, ["a"], b"1\n2\nx\n", fmt="CSV")
    client.raw_insert(table, ["a"], b"7\n", fmt="CSV")

    assert caught.value.code == 117
    assert client.query(f"SELECT a FROM {table}").result_rows == [(7,)]


def test_values_and_selects_are_inserted(client: Client, table: str) -> None:
    """As statements, with their data in the text."""
    client.command(f"INSERT INTO {table} (a, s) VALUES (1, 'x'), (2, concat('y', 'z'));")
    client.command(f"INSERT INTO {table} (a, s) SELECT a + 10, s FROM {table}")

    assert client.query(f"SELECT a, s FROM {table} ORDER BY a").result_rows == [
        (1, "x"),
        (2, "yz"),
        (11, "x"),
        (12, "yz"),
    ]


def test_parameters_are_bound(client: Client) -> None:
    """Server-side, by URL and, where long, by form."""
    sql = "SELECT {i:UInt64}, {s:String}, {a:Array(String)}, {t:DateTime64(3)}, {d:Decimal(38, 12)}"
    values = {"i": 2**64 - 1, "s": "it's\t\n\\\0", "a": ["a'b", ""], "t": NOW, "d": Decimal("0.000000000001")}
    (row,) = client.query(sql, parameters=values).result_rows
    ((length,),) = client.query("SELECT length({s:String})", parameters={"s": "x" * 200_000}).result_rows

    assert tuple(row) == tuple(values.values())
    assert length == 200_000


def test_settings_hold_for_their_statement_only(client: Client, clickhouse: ClickHouse) -> None:
    """Another request, on the same handle or not, has the defaults again."""
    sql = "SELECT getSetting('max_block_size')"
    for _ in range(3):
        assert clickhouse.ask(sql, {"max_block_size": "77"}, is_writer=True)[2] == b"77\n"
        assert clickhouse.ask(sql, is_writer=True)[2] != b"77\n"
    assert client.query(sql, settings={"max_block_size": 78}).result_rows == [(78,)]
    assert client.query(sql).result_rows != [(78,)]


def test_a_session_keeps_what_it_was_told(clickhouse: ClickHouse) -> None:
    """Settings and temporary tables, for its own requests only."""
    session = {"session_id": "one"}
    clickhouse.ask("SET max_block_size = 99", session, is_writer=True)
    clickhouse.ask("CREATE TEMPORARY TABLE mine (a Int8)", session, is_writer=True)
    clickhouse.ask("INSERT INTO mine VALUES (1)", session, is_writer=True)
    sql = "SELECT getSetting('max_block_size'), (SELECT count() FROM mine)"

    assert clickhouse.ask(sql, session, is_writer=True)[2] == b"99\t1\n"
    assert clickhouse.ask(sql, {"session_id": "two"}, is_writer=True)[0] == 404
    assert clickhouse.ask("SELECT 1", {"session_id": "no", "session_check": "1"}, is_writer=True)[0] == 500
    clickhouse.ask("SELECT 1", {**session, "close_session": "1"}, is_writer=True)
    assert clickhouse.ask(sql, session, is_writer=True)[0] == 404


def test_a_set_without_session_changes_nobody(clickhouse: ClickHouse) -> None:
    """The handle that took it is thrown away."""
    for _ in range(20):
        clickhouse.ask("SET max_block_size = 55", is_writer=True)
        assert clickhouse.ask("SELECT getSetting('max_block_size')", is_writer=True)[2] != b"55\n"


def test_rows_are_streamed(client: Client) -> None:
    """The first rows of a result that would take long are there at once; its size is no matter."""
    started = time.monotonic()
    stream: Any = client.raw_stream("SELECT number, repeat('x', 100) FROM numbers(3000000000)", fmt="TabSeparated")
    first = stream.read(100)
    took = time.monotonic() - started
    stream.close()

    assert first.startswith(b"0\txxx")
    assert took < 5


def test_what_nobody_reads_any_more_is_ended(clickhouse: ClickHouse, client: Client) -> None:
    """A client that leaves takes its query with it, streaming or not."""
    for sql in (
        "SELECT number FROM numbers(1000000000000)",
        "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1",
    ):
        tagged = f"{sql} AND 4711 = 4711" if "WHERE" in sql else f"{sql} WHERE 4711 = 4711"
        leaver = threading.Thread(target=leave, args=(clickhouse, tagged))
        leaver.start()
        leaver.join()
        deadline = time.monotonic() + 10
        running = (
            "SELECT count() FROM system.processes WHERE query LIKE '%4711 = 4711%' AND query NOT LIKE '%processes%'"
        )
        while client.command(running) != 0:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def leave(clickhouse: ClickHouse, sql: str) -> None:
    """Send a statement and close the connection after half a second."""
    import socket

    body = sql.encode()
    head = (
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-ClickHouse-User: {clickhouse.writer.user}\r\n"
        f"X-ClickHouse-Key: {clickhouse.writer.password}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", int(clickhouse.url.rpartition(":")[2]))) as connection:
        connection.sendall(head.encode() + body)
        time.sleep(0.5)


def test_an_error_behind_the_first_rows_is_an_error(client: Client, clickhouse: ClickHouse) -> None:
    """No client takes half a result for a whole one."""
    sql = "SELECT throwIf(number = 9000000, 'late') FROM numbers(10000000)"
    with pytest.raises(StreamFailureError, match="late") as caught, client.query_rows_stream(sql) as stream:
        for _ in stream:
            pass

    assert caught.value.code == 395
    with clickhouse.store() as store, pytest.raises(Exception, match="late") as told:
        list(store.lines(sql, "TabSeparated"))
    assert getattr(told.value, "code", 0) == 395


@pytest.mark.parametrize(
    ("sql", "output_format"),
    [
        ("SELECT number FROM numbers(9000000)", "JSONCompactEachRowWithNamesAndTypes"),
        ("SELECT number FROM numbers(9000000)", "TabSeparated"),
        ("SELECT throwIf(number = 300000) FROM numbers(400000)", "JSON"),
        ("SELECT sum(number) FROM numbers(2000000000)", "CSVWithNames"),
        ("SELECT throwIf(number = 300000) FROM numbers(400000)", "CSVWithNames"),
        ("SELECT count() FROM numbers(2000000000) WHERE sipHash64(number) = 1", "JSONCompactEachRowWithNames"),
    ],
)
@pytest.mark.parametrize("is_writer", [False, True])
def test_a_failed_query_leaves_nothing_to_the_next(
    clickhouse: ClickHouse, sql: str, output_format: str, is_writer: bool
) -> None:
    """The engine keeps what a failed query had given so far; the next one must not get it."""
    settings = {"max_execution_time": "1", "max_result_rows": "200000", "default_format": output_format}
    for i in range(8):
        with contextlib.suppress(http.client.IncompleteRead):
            clickhouse.ask(sql, settings, is_writer=is_writer)
        answer = clickhouse.ask(f"SELECT {i} AS i", {"default_format": "TSVWithNames"}, is_writer=is_writer)

        assert answer[2] == f"i\n{i}\n".encode()


@pytest.mark.parametrize("rows", [0, 1, 65_409, 200_000])
@pytest.mark.parametrize(
    "output_format",
    [
        "TabSeparated",
        "CSVWithNames",
        "CSVWithNamesAndTypes",
        "TSVWithNames",
        "JSONEachRow",
        "JSON",
        "JSONCompactEachRowWithNames",
        "JSONCompactEachRowWithNamesAndTypes",
        "Null",
    ],
)
def test_a_format_is_whole_whatever_the_size(clickhouse: ClickHouse, output_format: str, rows: int) -> None:
    """One header, one footer, every row once, streamed or not."""
    sql = f"SELECT number AS n FROM numbers({rows}) FORMAT {output_format}"
    status, headers, body = clickhouse.ask(sql)
    lines = body.decode().splitlines()

    assert status == 200
    assert headers["X-ClickHouse-Format"] == output_format
    if output_format == "JSON":
        assert [int(row["n"]) for row in json.loads(body)["data"]] == list(range(rows))
    elif output_format == "Null":
        assert body == b""
    else:
        n_header = 2 if output_format.endswith("AndTypes") else 1 if output_format.endswith("WithNames") else 0
        assert len(lines) == rows + n_header


def test_many_ask_at_once(clickhouse: ClickHouse) -> None:
    """More readers than handles: they queue, and each gets its own answer."""

    def ask(i: int) -> bytes:
        return clickhouse.ask(f"SELECT {i}, sum(number) FROM numbers(1000000)")[2]

    with ThreadPoolExecutor(24) as threads:
        answers = list(threads.map(ask, range(48)))

    assert answers == [f"{i}\t499999500000\n".encode() for i in range(48)]


def _wait_until_runs(clickhouse: ClickHouse, end: str) -> None:
    """Wait for a statement that ends so to be among the running ones."""
    running = f"SELECT count() FROM system.processes WHERE query LIKE '%{end}%' AND query NOT LIKE '%processes%'"
    deadline = time.monotonic() + 30
    while clickhouse.ask(running, is_writer=True)[2] != b"1\n":
        assert time.monotonic() < deadline


def test_a_query_id_runs_once_at_a_time(clickhouse: ClickHouse) -> None:
    """The second is told so; afterwards the id is free again."""
    endless = "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 4711"
    slow = threading.Thread(target=clickhouse.ask, args=(endless, {"query_id": "q1"}), kwargs={"is_writer": True})
    slow.start()
    _wait_until_runs(clickhouse, "= 4711")
    answer = clickhouse.ask("SELECT 1", {"query_id": "q1"}, is_writer=True)
    clickhouse.ask("KILL QUERY WHERE query_id = 'q1' SYNC", {}, is_writer=True)
    slow.join()

    assert answer[1]["X-ClickHouse-Exception-Code"] == "216"
    assert clickhouse.ask("SELECT 1", {"query_id": "q1"})[1]["X-ClickHouse-Query-Id"] == "q1"


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [("SELECT 1", {"query_id": "q2", "replace_running_query": "1"}), ("KILL QUERY WHERE query_id = 'q2' ASYNC", {})],
)
def test_a_query_is_ended_by_its_id(clickhouse: ClickHouse, sql: str, parameters: dict[str, str]) -> None:
    """By another one of the same id that is told to replace it, or by KILL QUERY."""
    answers: list[str] = []

    def work() -> None:
        endless = "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 4712"
        _, headers, _ = clickhouse.ask(endless, {"query_id": "q2"}, is_writer=True)
        answers.append(headers["X-ClickHouse-Exception-Code"])

    slow = threading.Thread(target=work)
    slow.start()
    _wait_until_runs(clickhouse, "= 4712")
    assert clickhouse.ask(sql, parameters, is_writer=True)[0] == 200
    slow.join()

    assert answers == ["394"]


@pytest.mark.parametrize("size", [300 << 10, 5 << 20])
def test_a_readers_statement_is_bounded(clickhouse: ClickHouse, size: int) -> None:
    """256 KiB, compressed or not."""
    sql = b"SELECT 1" + b" " * size

    assert clickhouse.ask(sql)[0] == 413
    assert clickhouse.ask(gzip.compress(sql), {}, {"Content-Encoding": "gzip"})[0] == 413
