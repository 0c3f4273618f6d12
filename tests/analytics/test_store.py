"""The Store: values as they are, errors with ClickHouse's code, an address that does not answer told plainly."""

import socket
import threading
import time
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from analytics import store as store_module
from analytics.store import Store, StoreAway, StoreError, ping
from tests.analytics.server import ClickHouse
from tests.ports import free_port

pytestmark = pytest.mark.clickhouse


def test_values_come_back_exact(clickhouse: ClickHouse) -> None:
    """Times aware, money a decimal, large integers whole."""
    with clickhouse.reader() as store:
        result = store.query(
            "SELECT toDateTime64('2026-01-02 03:04:05.678', 3, 'UTC') AS at, "
            "toDecimal128('0.000000000001', 12) AS usd, 18446744073709551615 AS n, "
            "CAST(NULL AS Nullable(String)) AS x, ['a'] AS l, map('k', 1) AS m"
        )

    assert result.names == ("at", "usd", "n", "x", "l", "m")
    assert result.types[:3] == ("DateTime64(3, 'UTC')", "Decimal(38, 12)", "UInt64")
    ((at, usd, n, x, items, mapping),) = result.rows
    assert at == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    assert at.tzinfo is not None
    assert (usd, n, x, list(items), mapping) == (Decimal("0.000000000001"), 2**64 - 1, None, ["a"], {"k": 1})


def test_a_result_without_rows_has_its_columns(clickhouse: ClickHouse) -> None:
    """ClickHouse sends nothing at all then."""
    with clickhouse.reader() as store:
        result = store.query("SELECT at, method FROM gnomon.requests WHERE method = {m:String}", {"m": "x"})

    assert (result.names, result.rows) == (("at", "method"), [])
    assert result.types == ("DateTime64(3, 'UTC')", "LowCardinality(String)")


def test_rows_and_blocks_are_stored(clickhouse: ClickHouse) -> None:
    """Python values, and a Native block as it is."""
    with clickhouse.store() as store:
        store.command("CREATE TABLE gnomon_core.stored (a UInt8, s String) ENGINE = MergeTree ORDER BY a")
        n_rows = store.insert("gnomon_core.stored", ["a", "s"], [(1, "x"), (2, "y")])
        n_block = store.insert_native("gnomon_core.stored", ["a"], b"\x01\x02\x01a\x05UInt8\x07\x08")

        assert (n_rows, n_block) == (2, 2)
        assert store.rows("SELECT a, s FROM gnomon_core.stored ORDER BY a") == [(1, "x"), (2, "y"), (7, ""), (8, "")]


def test_an_error_has_its_code_and_words(clickhouse: ClickHouse) -> None:
    """Without address and version."""
    with clickhouse.reader() as store, pytest.raises(StoreError) as caught:
        store.query("SELECT nosuch FROM gnomon.requests")

    assert (caught.value.code, caught.value.name) == (47, "UNKNOWN_IDENTIFIER")
    assert "nosuch" in str(caught.value)
    assert "http" not in str(caught.value)
    assert "version" not in str(caught.value)


def test_wrong_credentials_are_told(clickhouse: ClickHouse) -> None:
    """And the password is not repeated."""
    with pytest.raises(StoreError) as caught:
        Store.connect(clickhouse.url, "gnomon", "wr0ng-one")

    assert caught.value.name == "AUTHENTICATION_FAILED"
    assert "wr0ng-one" not in str(caught.value)


def test_an_address_where_nobody_answers_is_told() -> None:
    """With the command that starts it."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(StoreAway, match="gnomon clickhouse --data DIR") as caught:
        Store.connect(url)

    assert url in str(caught.value)


def test_something_else_at_the_address_is_told() -> None:
    """It answers, but not as ClickHouse."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(StoreAway, match="no ClickHouse: HTTP 404"):
            ping(f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()


def test_waiting_bridges_a_start() -> None:
    """Nobody listens at first."""
    port = free_port()

    def serve() -> None:
        time.sleep(0.3)
        with socket.create_server(("127.0.0.1", port)) as server:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Gnomon-Boot: b1\r\nContent-Length: 4\r\n\r\nOk.\n")

    thread = threading.Thread(target=serve)
    thread.start()

    assert ping(f"http://127.0.0.1:{port}", wait_seconds=10) == "b1"
    thread.join()


def test_a_proxy_of_the_environment_is_not_asked(clickhouse: ClickHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is loopback."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with clickhouse.reader() as store:
        assert store.rows("SELECT 1") == [(1,)]


def test_the_embedded_one_is_known(clickhouse: ClickHouse) -> None:
    """By the header of its process."""
    with clickhouse.reader() as store:
        assert store.is_embedded
        assert store.boot_id == ping(clickhouse.url)


@pytest.mark.parametrize(("boot_id", "expected"), [("", {"session_timezone": "UTC"}), ("b00t", {})])
def test_a_server_reads_times_as_utc(monkeypatch: pytest.MonkeyPatch, boot_id: str, expected: dict[str, str]) -> None:
    """Whatever its own zone is: else a window of ten minutes would lie hours away. The embedded one knows no other."""
    said: dict[str, str] = {}

    class Client:
        def set_client_setting(self, name: str, value: str) -> None:
            said[name] = value

    monkeypatch.setattr(store_module, "ping", lambda *_: boot_id)
    monkeypatch.setattr("clickhouse_connect.get_client", lambda **_: Client())
    Store.connect("http://127.0.0.1:1")

    assert said == expected
