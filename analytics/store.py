"""
ClickHouse for everything but the sink: a thin layer over clickhouse-connect's HTTP client.

It hides what the driver does not do by itself: no proxy between us and the address, aware UTC times, errors of our own
with ClickHouse's code, an address that does not answer told with the command that starts it, and no insert sent twice.

    GnomonError
    └── StoreError          ClickHouse refused: `code`, `name`
        └── StoreAway       it does not answer
"""

import http.client
import json
import logging
import re
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import clickhouse_connect
from clickhouse_connect import common
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError
from clickhouse_connect.driver.httputil import get_pool_manager
from urllib3.exceptions import HTTPError

from gnomon.errors import GnomonError

BOOT_HEADER = "X-Gnomon-Boot"
"""The embedded ClickHouse names the life of its process in every answer; a server has no such header."""

RETRY_SECONDS = 0.1
_PREFIX = re.compile(r"^.*?DB::Exception: ", re.DOTALL)
_TRAILER = re.compile(r"\s*\(version [^()]*(?:\([^()]*\))?\)\s*(?:\(for url [^()]*\))?\s*$")


class StoreError(GnomonError):
    """ClickHouse refused; `code` and `name` are its own (0 and empty when it gave none)."""

    def __init__(self, message: str, code: int = 0, name: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.name = name


class StoreAway(StoreError):
    """Nobody answers at the address."""


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of a query."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    """ClickHouse types, as `DateTime64(3, 'UTC')`."""
    rows: list[tuple[Any, ...]]
    """Python values; times are aware UTC."""


class Store:
    """One connection; used by one thread at a time."""

    def __init__(self, client: Client, url: str, boot_id: str) -> None:
        self._client = client
        self.url = url
        self.boot_id = boot_id
        """Empty where a ClickHouse server answers, not the embedded one."""

    @classmethod
    def connect(
        cls,
        url: str,
        user: str = "",
        password: str = "",
        *,
        database: str = "gnomon",
        wait_seconds: float = 0.0,
        timeout_seconds: float = 300.0,
        settings: Mapping[str, str | int] | None = None,
    ) -> Self:
        """
        Connect.

        Args:
            url: http(s)://host:port.
            user, password: empty = a reader of the embedded ClickHouse.
            wait_seconds: how long to try while nobody answers.
            timeout_seconds: of one statement.
            settings: of ClickHouse, sent with every statement.

        Raises:
            StoreAway: nobody answers.
            StoreError: wrong credentials.
        """
        boot_id = ping(url, wait_seconds)
        parts = urllib.parse.urlsplit(url)
        # The driver drops settings that it takes for read-only; whether they may be set is the server's to say.
        common.set_setting("invalid_setting_action", "send")
        # Each failed statement would else be logged with its traceback, beside the exception.
        logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)
        with _translated(url):
            client = clickhouse_connect.get_client(
                interface=parts.scheme,
                host=parts.hostname or "127.0.0.1",
                port=parts.port or (8443 if parts.scheme == "https" else 8123),
                username=user or None,
                password=password,
                database=database,
                settings=dict(settings or {}),
                send_receive_timeout=int(timeout_seconds),
                pool_mgr=get_pool_manager(),
                tz_mode="aware",
                autogenerate_session_id=False,
                query_retries=0,
                compress="lz4",
            )
            if not boot_id:
                # Windows are bound as UTC times without a zone; a server reads them in its own.
                client.set_client_setting("session_timezone", "UTC")
        return cls(client, url, boot_id)

    @property
    def is_embedded(self) -> bool:
        """Whether the embedded ClickHouse answers."""
        return bool(self.boot_id)

    def query(
        self,
        sql: str,
        parameters: Mapping[str, object] | None = None,
        settings: Mapping[str, str | int] | None = None,
    ) -> Result:
        """
        Return a SELECT's names, types and rows.

        Args:
            sql: without FORMAT.
            parameters: values of `{name:Type}`.
            settings: of ClickHouse, for this statement.
        """
        with _translated(self.url):
            result = self._client.query(sql, parameters=dict(parameters or {}), settings=dict(settings or {}))
        names, types = tuple(result.column_names), tuple(kind.name for kind in result.column_types)
        if not names:
            # ClickHouse sends no header where there are no rows.
            header = list(self.lines(sql, "JSONCompactEachRowWithNamesAndTypes", parameters, settings))
            names, types = (tuple(_json_strings(line)) for line in header[:2])
        return Result(names, types, [tuple(row) for row in result.result_rows])

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """Return a SELECT's rows."""
        return self.query(sql, parameters).rows

    def lines(
        self,
        sql: str,
        output_format: str,
        parameters: Mapping[str, object] | None = None,
        settings: Mapping[str, str | int] | None = None,
    ) -> Iterator[bytes]:
        """
        Yield the lines of a result as they come, in a format that has one row per line.

        The connection serves nothing else until the last line is out.
        """
        with _translated(self.url):
            response: Any = self._client.raw_stream(
                sql, parameters=dict(parameters or {}), settings=dict(settings or {}), fmt=output_format
            )
        tag = str(response.headers.get("X-ClickHouse-Exception-Tag", "")).encode()
        pending = b""
        try:
            for chunk in response.stream(1 << 20):
                pending += chunk
                if not tag or b"__exception__\r\n" + tag not in pending:
                    *whole, pending = pending.split(b"\n")
                    yield from whole
            if pending:
                yield pending
        except HTTPError as error:
            # An error behind the first row: its text is the last that came, then the connection was cut.
            raise _mid_stream_error(pending, tag, self.url) from error
        finally:
            response.close()

    def command(self, sql: str, parameters: Mapping[str, object] | None = None) -> object:
        """Run one statement that gives no rows, or one value."""
        with _translated(self.url):
            return self._client.command(sql, parameters=dict(parameters or {}))

    def insert(self, table: str, names: Sequence[str], rows: Sequence[Sequence[object]]) -> int:
        """Store rows given as Python values; return how many. Times must be aware."""
        with _translated(self.url):
            return int(self._client.insert(table, rows, column_names=list(names)).written_rows)

    def insert_native(self, table: str, names: Sequence[str], block: bytes) -> int:
        """
        Store one block in ClickHouse's Native format; return how many rows.

        An error leaves it open whether the rows are stored: see `ingest.sink` for what to do then.
        """
        with _translated(self.url):
            summary = self._client.raw_insert(table, column_names=list(names), insert_block=block, fmt="Native")
            return int(summary.written_rows)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ping(url: str, wait_seconds: float = 0.0) -> str:
    """
    Return the boot id of the embedded ClickHouse at the address; empty when a server answers there.

    Raises:
        StoreAway: nobody answers, for `wait_seconds`; the text says which command starts it.
    """
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    deadline = time.monotonic() + wait_seconds
    while True:
        connection = kind(
            parts.hostname or "127.0.0.1", parts.port or (8443 if parts.scheme == "https" else 8123), timeout=10
        )
        try:
            connection.request("GET", "/ping")
            answer = connection.getresponse()
            body = answer.read(200)
            if answer.status == 200 and body.strip() == b"Ok.":
                return answer.headers.get(BOOT_HEADER, "")
            reason = f"it is no ClickHouse: HTTP {answer.status}"
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
        finally:
            connection.close()
        if time.monotonic() >= deadline:
            raise StoreAway(away(url, reason))
        time.sleep(RETRY_SECONDS)


def away(url: str, reason: str) -> str:
    """Return what is said of an address where nobody answers: which command starts it."""
    return (
        f"ClickHouse does not answer at {url} ({reason}); start it with `gnomon up --data DIR` or "
        "`gnomon clickhouse --data DIR`, or set gnomon.clickhouse.url"
    )


class _translated:
    """Turns the driver's exceptions into ours."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ClickHouseError):
            code, name = getattr(error, "code", None) or 0, getattr(error, "name", None) or ""
            if not code and "executing HTTP request" in str(error):
                raise StoreAway(away(self._url, "the connection broke")) from error
            raise StoreError(message_of(str(error), name), code, name) from error


def message_of(text: str, name: str) -> str:
    """Return ClickHouse's own words, its name for the error behind them."""
    message = _TRAILER.sub("", _PREFIX.sub("", text)).removesuffix(f"({name})").strip()
    return f"ClickHouse: {message} ({name})" if name else message


def _mid_stream_error(pending: bytes, tag: bytes, url: str) -> StoreError:
    """Return what `__exception__ TAG message size TAG __exception__` says, or that the connection broke."""
    _, found, rest = pending.partition(b"__exception__\r\n" + tag)
    if not tag or not found:
        return StoreAway(away(url, "the connection broke in the middle of the result"))
    text = rest.partition(b" " + tag)[0].rpartition(b"\n")[0].decode("utf-8", "replace").strip()
    code = re.search(r"Code: (\d+)", text)
    names: list[str] = re.findall(r"\(([A-Z][A-Z0-9_]+)\)", text)
    name = names[-1] if names else ""
    return StoreError(message_of(text, name), int(code[1]) if code else 0, name)


def _json_strings(line: bytes) -> Iterable[str]:
    return [str(item) for item in json.loads(line)]
