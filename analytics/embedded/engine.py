"""
chDB: opening, handles, running, streaming, inserting, cancelling. No other module imports it.

A handle is one chDB connection. It runs one statement at a time, from any thread, and keeps its database, settings and
role between statements. Its `log_comment` is its tag, by which another handle can find and kill what it runs (the
engine ignores query ids, and comments are lost where parameters are bound).

Nothing here blocks the caller's event loop by itself: every method blocks its own thread, the engine releases the GIL.
"""

import importlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from analytics import gate
from analytics.embedded.configuration import CORE_DATABASE, READ_DATABASE, READER_ROLE, WRITER_ROLE
from analytics.embedded.errors import Code, EmbeddedError, Refusal
from analytics.embedded.spool import Spool

Role = Literal["writer", "reader"]
StatementClass = Literal["read", "write", "control", "unknown"]

READER_LIMITS: Mapping[str, str] = {
    "max_execution_time": "30",
    "max_memory_usage": "1000000000",
    "max_threads": "2",
    "max_rows_to_read": "1000000000",
    "max_result_rows": "5000000",
    "max_result_bytes": "1000000000",
    "max_ast_elements": "10000",
    "max_expanded_ast_elements": "50000",
    "max_ast_depth": "500",
    "max_subquery_depth": "50",
    "max_rows_in_join": "20000000",
    "max_bytes_in_join": "500000000",
    "max_rows_in_set": "20000000",
    "max_rows_to_group_by": "20000000",
    "max_columns_to_read": "1000",
    "max_recursive_cte_evaluation_depth": "100",
    "max_bytes_before_external_group_by": "0",
    "max_bytes_before_external_sort": "0",
    "max_query_size": "262144",
    "allow_ddl": "0",
}
"""What a reader's handle starts with. `max_execution_time` and the two result limits may be lowered per request."""

_SETTING_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement gave back."""

    body: bytes
    read_rows: int
    read_bytes: int
    written_rows: int
    written_bytes: int
    result_rows: int


class Handle:
    """One chDB connection with its role."""

    def __init__(self, connection: Any, tag: str, role: Role, limits: Mapping[str, str]) -> None:
        """Prepare the connection; limits first, then the role, `readonly` last, as nothing can be set after it."""
        self._connection = connection
        self.tag = tag
        self.role = role
        self.limits = dict(limits)
        self.database = ""
        self.is_spoilt = False
        """It ran a statement that changes the connection, or is not clean: not to be used for anybody else."""
        self._settings: dict[str, str] = {}
        self._command(f"SET log_comment = {literal(tag)}")
        if role == "reader":
            for name, value in limits.items():
                self._command(f"SET {name} = {literal(value)}")
            self._command(f"USE {READ_DATABASE}")
            self.database = READ_DATABASE
            self._command(f"SET ROLE {READER_ROLE}")
            self._command("SET readonly = 1")
        else:
            self._command(f"SET ROLE {WRITER_ROLE}")

    def prepare(self, database: str, settings: Mapping[str, str]) -> None:
        """
        Make the handle's database and settings what this request asks; writers only.

        Settings stay until a request asks for others, so that a client that always sends the same costs nothing.
        """
        if database != self.database:
            self._command(f"USE {quoted(database)}")
            self.database = database
        if settings == self._settings:
            return
        for name in [name for name in self._settings if name not in settings]:
            self._command(f"SET {name} = DEFAULT")
            del self._settings[name]
        for name, value in settings.items():
            if self._settings.get(name) != value:
                if not _SETTING_NAME.match(name):
                    raise Refusal.of(Code.UNKNOWN_SETTING, f"Setting {name!r} is neither a builtin setting nor a name")
                self._command(f"SET {name} = {literal(value)}")
                self._settings[name] = value

    def run(self, sql: str, output_format: str, parameters: Mapping[str, str]) -> Outcome:
        """Run one statement and return all it gives back."""
        try:
            return _outcome(self._connection.query(sql, output_format, params=dict(parameters)))
        except RuntimeError as error:
            self.cleanse()
            raise Refusal.from_engine(str(error)) from error
        except Refusal:
            self.cleanse()
            raise

    def cleanse(self) -> None:
        """
        Throw away what a failed statement left in the connection.

        chDB keeps the output that a statement made before it failed and puts it in front of the next one's result.
        """
        for _ in range(2):
            try:
                if self._connection.query("SELECT 1", "TabSeparated").bytes() == b"1\n":
                    return
            except RuntimeError:
                continue
        self.is_spoilt = True

    def stream(
        self, sql: str, output_format: str, parameters: Mapping[str, str], header: "Header | None" = None
    ) -> "Stream":
        """
        Begin a SELECT whose result is fetched block by block.

        Args:
            sql, output_format, parameters: the statement.
            header: how to find the names and types at the beginning of each block; only the first one's stay.
        """
        try:
            result = self._connection.send_query(sql, output_format, params=dict(parameters))
        except RuntimeError as error:
            self.cleanse()
            raise Refusal.from_engine(str(error)) from error
        return Stream(self._connection, result, self.cleanse, header)

    def insert(self, head: str, source_at: int, input_format: str, rows: Spool) -> Outcome:
        """
        Run an INSERT; when it returns, every row is stored.

        Args:
            head: the statement before FORMAT.
            source_at: where in it the source of the rows is named.
            input_format: of the rows.
            rows: all of them.
        """
        with rows.read() as path:
            source = f"{head[:source_at]} FROM INFILE {literal(path)} {head[source_at:]}"
            return self.run(f"{source} FORMAT {input_format}", "Null", {})

    def classify(self, sql: str) -> tuple[StatementClass, int]:
        """Return what the engine's parser says the text does, and how many statements it has."""
        said = self._connection.classify_query(sql)
        name = str(said["query_class"]).rpartition(".")[2]
        classes: dict[str, StatementClass] = {
            "READ_ONLY": "read",
            "MUTATING": "write",
            "MUTATING_GLOBAL": "write",
            "CONTROL": "control",
        }
        return classes.get(name, "unknown"), int(said["statement_count"])

    def close(self) -> None:
        self._connection.close()

    def _command(self, sql: str) -> None:
        self.run(sql, "Null", {})


@dataclass(frozen=True, slots=True)
class Header:
    """Lines of names and types that a format begins with."""

    n_lines: int
    is_csv: bool = False
    """Line feeds within double quotes end no line."""

    def n_bytes(self, block: bytes) -> int:
        """
        Return how long it is.

        >>> Header(1, is_csv=True).n_bytes(b'"a\\n""b",c\\n1,2\\n')
        11
        """
        end = 0
        for _ in range(self.n_lines):
            start = end
            while True:
                end = block.find(b"\n", end) + 1
                if not end:
                    return len(block)
                if not self.is_csv or block.count(b'"', start, end) % 2 == 0:
                    break
        return end


class Stream:
    """The blocks of a running SELECT, each encoded on its own in the output format; a header stands in the first."""

    def __init__(
        self, connection: Any, result: Any, cleanse: Callable[[], None], header: "Header | None" = None
    ) -> None:
        self._connection = connection
        self._result = result
        self._cleanse = cleanse
        self._header = header
        self._n_header_bytes = -1
        self._is_done = False
        self.rows = 0
        self.read_rows = 0
        self.read_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        """
        Return the next block's bytes.

        Raises:
            Refusal: the query failed; the stream is over.
        """
        if self._is_done:
            raise StopIteration
        try:
            chunk = self._connection.streaming_fetch_result(self._result)
            n_rows = 0 if chunk is None else int(chunk.rows_read())
            if n_rows == 0:
                self._is_done = True
                # Formats with a header of names give it even where there are no rows.
                rest = b"" if chunk is None else bytes(chunk.bytes())
                if rest and self.rows == 0:
                    return rest
                raise StopIteration
            self.rows += n_rows
            self.read_rows += int(chunk.storage_rows_read())
            self.read_bytes += int(chunk.storage_bytes_read())
            return self._headed(bytes(chunk.bytes()))
        except RuntimeError as error:
            self._is_done = True
            self._cleanse()
            raise Refusal.from_engine(str(error)) from error

    def _headed(self, block: bytes) -> bytes:
        """Return the block without its header, where it is not the first."""
        if self._header is None:
            return block
        if self._n_header_bytes < 0:
            self._n_header_bytes = self._header.n_bytes(block)
            return block
        return block[self._n_header_bytes :]

    def close(self) -> None:
        """End the query where it stands; harmless when it is over."""
        if not self._is_done:
            self._is_done = True
            try:
                self._connection.streaming_cancel_query(self._result)
            except RuntimeError as error:
                raise Refusal.from_engine(str(error)) from error
            finally:
                self._cleanse()


class Engine:
    """The chDB of this process: one folder, one configuration file."""

    def __init__(self, folder: Path, config_file: Path) -> None:
        self.folder = folder
        self.version = ""
        self._connection_string = f"{folder}?config-file={config_file}"
        self._connect: Any = None
        self._lock = threading.Lock()
        self._n_handles = 0
        self._control = _Shared(partial(self.handle, "writer"))
        """Fence checks and kills."""
        self._parser = _Shared(partial(self.handle, "writer"))
        """The gate's: a text that is slow to parse delays no kill."""

    def open(self) -> None:
        """
        Start the engine; make the two databases when they are missing.

        Raises:
            EmbeddedError: chDB is not installed, or it refuses the folder.
        """
        try:
            chdb: Any = importlib.import_module("chdb._chdb")
        except ImportError as error:
            raise EmbeddedError(
                f"the embedded ClickHouse needs chDB: pip install 'gnomon[embedded]' ({error})"
            ) from error
        self._connect = chdb.connect
        chdb.set_signal_handlers_enabled(0)
        try:
            self._control.open()
            self._parser.open()
            self.version = self._control.run("SELECT version()", "TSVRaw", {}).decode().strip()
            for database in (CORE_DATABASE, READ_DATABASE):
                self._control.run(f"CREATE DATABASE IF NOT EXISTS {database}", "Null", {})
        except (RuntimeError, Refusal) as error:
            raise EmbeddedError(f"the engine does not open {self.folder}: {error}") from error

    def handle(self, role: Role, limits: Mapping[str, str] = READER_LIMITS) -> Handle:
        """Open another handle (about 1 MB, below 5 ms)."""
        with self._lock:
            self._n_handles += 1
            tag = f"gnomon-{self._n_handles}"
            connection = self._connect(self._connection_string)
        try:
            return Handle(connection, tag, role, limits if role == "reader" else {})
        except BaseException:
            connection.close()
            raise

    def parse(self, sql: str) -> gate.Parsed:
        """
        Return the statement's syntax tree by the engine's own parser, without running it.

        Raises:
            Refusal: it does not parse.
            NotAllowed: it is a kind of statement that has no tree here (DESCRIBE, EXISTS, CREATE USER).
        """
        try:
            return gate.decode_answer(self._parser.run(gate.TREE_QUERY, gate.ROW_FORMAT, {"q": _escaped(sql)}))
        except Refusal as refusal:
            if refusal.code == Code.BAD_ARGUMENTS:
                raise gate.NotAllowed(gate.NO_SELECT) from refusal
            # The engine repeats the query that it was asked, which is not the reader's.
            message = refusal.message.partition(": In scope SELECT parseQueryToJSON")[0]
            raise Refusal(refusal.code, refusal.name, message) from refusal

    def functions(self) -> frozenset[str]:
        """Return the names of all functions, lower case."""
        return gate.decode_functions(self._parser.run(gate.FUNCTIONS_QUERY, gate.ROW_FORMAT, {}))

    def ask(self, sql: str, parameters: Mapping[str, str]) -> str:
        """Return one value that this front itself asks for."""
        values = {name: _escaped(value) for name, value in parameters.items()}
        return self._control.run(sql, "TabSeparated", values).decode().strip()

    def kill(self, handle: Handle) -> None:
        """Tell the engine to end what `handle` runs; returns at once."""
        self._control.run(
            "KILL QUERY WHERE Settings['log_comment'] = {tag:String} ASYNC FORMAT Null", "Null", {"tag": handle.tag}
        )

    def close(self) -> None:
        for shared in (self._control, self._parser):
            shared.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Shared:
    """A handle of the engine's own, opened late and used by one thread at a time."""

    def __init__(self, open_handle: Callable[[], Handle]) -> None:
        self._open = open_handle
        self._handle: Handle | None = None
        self._lock = threading.Lock()

    def open(self) -> None:
        self._handle = self._open()

    def run(self, sql: str, output_format: str, parameters: Mapping[str, str]) -> bytes:
        with self._lock:
            if self._handle is None:
                raise Refusal.of(Code.ABORTED, "The engine is not open")
            try:
                return self._handle.run(sql, output_format, parameters).body
            finally:
                if self._handle.is_spoilt:
                    self._handle.close()
                    self._handle = self._open()

    def close(self) -> None:
        with self._lock:
            if self._handle is not None:
                self._handle.close()
                self._handle = None


def literal(value: str) -> str:
    """Return the text as an SQL string."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted(name: str) -> str:
    """Return the name as a quoted identifier."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _escaped(value: str) -> str:
    """Parameters are read as TSV escaped text, as in ClickHouse's HTTP protocol."""
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\0", "\\0")


def _outcome(result: Any) -> Outcome:
    if result.has_error():
        raise Refusal.from_engine(str(result.error_message()))
    return Outcome(
        body=bytes(result.bytes()),
        read_rows=int(result.storage_rows_read()),
        read_bytes=int(result.storage_bytes_read()),
        written_rows=int(result.rows_written()),
        written_bytes=int(result.bytes_written()),
        result_rows=int(result.rows_read()),
    )
