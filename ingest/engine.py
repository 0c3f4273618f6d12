"""
ClickHouse over HTTP, as the sink needs it: one connection, one statement at a time, no retry of its own.

`http.client` and not clickhouse-connect: a driver that sends an insert again by itself when the connection breaks
(it does) would store rows twice, for the first may have run. Here every insert either is known to have run, or is
known not to have been sent, or raises `UnknownOutcome`.

On a cluster (`gnomon.clickhouse.cluster`; the tables are those of `analytics.clustering`) a replica may be behind, so
what a new owner must know is asked of every replica, and the greatest answer counts: `source`, `is_alone`. A replica
that does not answer makes the take-over fail and be tried again, as rows of the former owner may be there alone. Each
insert asks the copy of `sink_epochs` on the server that takes it, which has the new epoch by then. This was read and
parsed, never run on servers.
"""

import http.client
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ingest.errors import EngineAway, EngineRefused, Fenced, UnknownOutcome
from ingest.native import Column, block
from ingest.tables import DATABASE, TABLES

LOCAL = "_local"
"""Behind the name of a table on each shard (analytics.clustering)."""
MAX_BLOCK_ROWS = 1_048_449
MAX_BLOCK_BYTES = 256 << 20
"""Up to here one insert is one block, so one part per partition (`min_insert_block_size_*`)."""

FRONT_HEADER = "x-gnomon-boot"
"""A server that has it keeps the fence itself, by the mark in front of the insert (the embedded ClickHouse)."""

_AWAY_CODES = frozenset({
    159,  # TIMEOUT_EXCEEDED
    202,  # TOO_MANY_SIMULTANEOUS_QUERIES
    209,  # SOCKET_TIMEOUT
    210,  # NETWORK_ERROR
    236,  # ABORTED
    241,  # MEMORY_LIMIT_EXCEEDED
    252,  # TOO_MANY_PARTS
    394,  # QUERY_WAS_CANCELLED
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose insert it is."""

    log_id: str
    topic: str
    part: int
    epoch: int

    @property
    def text(self) -> str:
        """The comment that stands in front of the statement."""
        return f"/*fence:{self.log_id}:{self.topic}:{self.part} {self.epoch}*/"

    @property
    def where(self) -> str:
        """The key as a condition."""
        return f"log_id = {literal(self.log_id)} AND topic = {literal(self.topic)} AND part = {self.part}"


class Engine:
    """One connection, used by one thread."""

    def __init__(
        self,
        url: str,
        user: str = "",
        password: str = "",
        *,
        timeout_seconds: float = 60.0,
        fence: Literal["ask", "front", "statement"] = "ask",
        cluster: str = "",
    ) -> None:
        """
        Args:
            url: http(s)://host:port of ClickHouse's HTTP interface.
            user, password: the writer's; both empty where none are needed.
            timeout_seconds: of one statement; after it the outcome counts as unknown.
            fence: who refuses the insert of a former owner. `front`: the server, by the mark; `statement`: the insert
                itself, by a condition; `ask`: find out which.
            cluster: of replicated and distributed tables; empty: one server has them.
        """
        parts = urllib.parse.urlsplit(url)
        self._is_tls = parts.scheme == "https"
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or (8443 if self._is_tls else 8123)
        self._headers = {"X-ClickHouse-User": user, "X-ClickHouse-Key": password} if user else {}
        self._timeout_seconds = timeout_seconds
        self._fence = fence
        self._cluster = cluster
        self._connection: http.client.HTTPConnection | None = None
        self._again = (url, user, password)
        self.n_inserts = 0

    def another(self) -> "Engine":
        """Return one more connection to the same server, with the same rights, for another thread."""
        return Engine(*self._again, timeout_seconds=self._timeout_seconds, fence=self._fence, cluster=self._cluster)

    def close(self) -> None:
        """Close the connection; the next statement opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[list[str]]:
        """
        Return the rows of a query as texts; NULL is `\\N`.

        Raises:
            EngineAway, EngineRefused.
        """
        query = {f"param_{name}": str(value) for name, value in (parameters or {}).items()}
        text = self._post(f"{sql} FORMAT TabSeparated", b"", query).decode()
        lines = text.split("\n")[:-1]
        if "\\" not in text:
            return [line.split("\t") for line in lines]
        return [[_unescaped(field) for field in line.split("\t")] for line in lines]

    def command(self, sql: str, parameters: Mapping[str, object] | None = None) -> None:
        """
        Run one statement that gives no rows.

        Raises:
            EngineAway, EngineRefused.
        """
        self._post(sql, b"", {f"param_{name}": str(value) for name, value in (parameters or {}).items()})

    def insert(
        self,
        table: str,
        columns: Sequence[Column],
        values: Sequence[Sequence[Any]],
        mark: Mark,
        database: str = DATABASE,
    ) -> None:
        """
        Store rows as one block, under the fence; return when they are stored.

        Args:
            table: its name.
            columns, values: see `ingest.native.block`.
            mark: the owner; epoch rows (`sink_epochs`) run under their own, new epoch.
            database: where the table is. The epochs are in `gnomon_core` whatever is stored elsewhere.

        Raises:
            Fenced: a newer owner has the key; nothing was stored.
            UnknownOutcome: it may or may not have been stored.
        """
        body = block(columns, values)
        if len(values[0]) > MAX_BLOCK_ROWS or len(body) > MAX_BLOCK_BYTES:
            raise ValueError(f"{table}: {len(values[0])} rows, {len(body)} bytes are more than one block")
        names = ", ".join(f"`{column.name}`" for column in columns)
        source = ""
        settings: dict[str, str] = {}
        if self.fence() == "statement":
            settings = {"async_insert": "0"}
            if self._cluster:
                # Answered when the shard has the rows, not when they wait for it.
                settings |= {"distributed_foreground_insert": "1"}
            if table != "sink_epochs":
                types = ", ".join(f"`{column.name}` {column.type}" for column in columns).replace("'", "\\'")
                source = f"SELECT {names} FROM input('{types}') WHERE {_condition(mark)} "
        statement = f"{mark.text}INSERT INTO {database}.{table} ({names}) {source}FORMAT Native"
        try:
            self._post(statement, body, settings)
        except EngineRefused as error:
            # Even a refusal may come after the part was there (a failure in answering): only the fence is certain.
            raise UnknownOutcome(str(error)) from error
        self.n_inserts += 1

    def source(self, table: str, database: str = DATABASE) -> str:
        """Return what stands behind FROM where a new owner asks how far a table is: all replicas of a cluster."""
        if not self._cluster:
            return f"{database}.{table}"
        stored_in = f"{table}{LOCAL}" if table in TABLES else table
        return f"clusterAllReplicas('{self._cluster}', '{database}', '{stored_in}')"

    def stored_in(self, table: str) -> str:
        """Return what stands behind DELETE FROM: on a cluster the tables that have the rows, on every server."""
        if not self._cluster:
            return f"{DATABASE}.{table}"
        return f"{DATABASE}.{table}{LOCAL if table in TABLES else ''} ON CLUSTER '{self._cluster}'"

    def is_alone(self, mark: Mark) -> bool:
        """
        Return whether no statement of the key is running; a new owner asks until it is so.

        A statement is in the process list before its condition is evaluated, so one that is not seen here will see
        the new epoch: on a cluster, as soon as every server has it.
        """
        if self.fence() == "front":
            return True
        processes = "system.processes"
        if self._cluster:
            processes = f"clusterAllReplicas('{self._cluster}', 'system', 'processes')"
            ((is_behind,),) = self.rows(
                f"SELECT (SELECT count() FROM system.clusters WHERE cluster = '{self._cluster}') > count() FROM "
                f"(SELECT hostName(), tcpPort() FROM {self.source('sink_epochs')} WHERE {mark.where} "
                f"GROUP BY 1, 2 HAVING max(epoch) >= {mark.epoch})"
            )
            if is_behind == "1":
                return False
        pattern = f"%fence:{mark.log_id}:{mark.topic}:{mark.part} %"
        return not self.rows(
            f"SELECT 1 FROM {processes} WHERE query LIKE {{pattern:String}} "
            "AND query NOT LIKE '%system%processes%' LIMIT 1",
            {"pattern": pattern},
        )

    def fence(self) -> Literal["front", "statement"]:
        """Return who keeps the fence, asking the server the first time."""
        if self._fence == "ask":
            headers: dict[str, str] = {}
            self._post("SELECT 1", b"", {}, headers)
            self._fence = "front" if FRONT_HEADER in headers else "statement"
        return self._fence

    def _post(
        self, statement: str, body: bytes, query: Mapping[str, str], headers: dict[str, str] | None = None
    ) -> bytes:
        path = "/?" + urllib.parse.urlencode({"query": statement, **query})
        try:
            connection = self._connect()
        except OSError as error:
            raise EngineAway(f"no connection to {self._host}:{self._port}: {error}") from error
        try:
            connection.request("POST", path, body, self._headers)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise UnknownOutcome(f"{self._host}:{self._port}: {error!r}") from error
        if headers is not None:
            headers.update({name.lower(): value for name, value in response.getheaders()})
        if response.status == 200 and not response.getheader("X-ClickHouse-Exception-Code"):
            return answer
        text = answer[:1000].decode("utf-8", "replace").strip()
        if "fenced" in text:
            raise Fenced(text)
        code = int(response.getheader("X-ClickHouse-Exception-Code") or 0)
        if code in _AWAY_CODES or response.status in (429, 502, 503, 504):
            raise UnknownOutcome(f"HTTP {response.status}, code {code}: {text}")
        raise EngineRefused(code, text or f"HTTP {response.status}")

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
            connection = kind(self._host, self._port, timeout=self._timeout_seconds)
            connection.connect()
            self._connection = connection
        return self._connection


def _condition(mark: Mark) -> str:
    newest = f"SELECT max(epoch) FROM {DATABASE}.sink_epochs WHERE {mark.where}"
    return f"throwIf(({newest}) != {mark.epoch}, 'fenced') = 0"


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "r": "\r", "n": "\n", "t": "\t", "0": "\0"}


def _unescaped(field: str) -> str:
    """Return the value that a field of the format TabSeparated stands for."""
    if field == "\\N":
        return field
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), field)


def literal(text: str) -> str:
    """Return a text as a literal of ClickHouse's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
