"""
What happens to one request, from its statement to its rows.

A writer's statement runs as it is: INSERTs with data when all data is there (fenced where marked), SELECTs as
streams, everything else in one piece. A reader's statement must pass the gate and then runs under the reader's role,
`readonly` and limits: two layers, each of which stops what the other cannot.
"""

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeVar

from analytics import gate
from analytics.embedded import parameters as url
from analytics.embedded import statement
from analytics.embedded.configuration import CORE_DATABASE, READ_DATABASE
from analytics.embedded.engine import READER_LIMITS, Engine, Handle, Header, Outcome, Role, StatementClass, Stream
from analytics.embedded.errors import Code, Refusal
from analytics.embedded.fence import CHECK_SQL, BadKey, Fence, check_parameters
from analytics.embedded.pool import Lease, Pool, Sessions
from analytics.embedded.spool import Spool

T = TypeVar("T")

MAX_QUERY_BYTES = 4 << 20
"""A writer's statement without data; a reader's is bounded by the engine's max_query_size (256 KiB)."""
MAX_READER_BYTES = 256 << 10
HEAD_BYTES = 1 << 20
"""An INSERT must begin and reach its data within so many bytes."""
BUFFERED_INSERT_BYTES = 64 << 20
"""Up to here an insert waits for its end in memory, above on disk; it begins when it is whole."""
MAX_FENCED_BYTES = 256 << 20
PREFETCH_BYTES = 1 << 20
"""A result up to here is answered in one piece, with its whole summary, and its errors as errors."""
PREFETCH_WAITING_BYTES = 64 << 20
"""The same for `wait_end_of_query`."""

_STREAMED_FORMATS = frozenset({"native", "tabseparated", "tsv", "tabseparatedraw", "tsvraw", "csv", "rowbinary",
                               "jsoneachrow", "jsoncompacteachrow", "ndjson", "jsonlines"})  # fmt: skip
"""Formats whose blocks, one behind the other, are the whole; others are made in one piece."""
_HEADERS = {
    f"{name}{ending}": Header(n_lines, is_csv=name == "csv")
    for name in ("csv", "tsv", "tabseparated", "jsoncompacteachrow")
    for ending, n_lines in (("withnames", 1), ("withnamesandtypes", 2))
}
"""Formats of which the same holds once the lines that each block begins with are taken off the later ones."""


_KILL = re.compile(r"\s*KILL\s+QUERY\s+WHERE\s+query_id\s*=\s*'([^'\\]+)'\s*(?:SYNC|ASYNC)?\s*;?\s*", re.IGNORECASE)


class ClientGone(Exception):
    """The client closed its connection; there is nobody to answer."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, its credentials already judged."""

    role: Role
    method: str
    parameters: url.Parameters
    body: AsyncIterator[bytes]
    """Decompressed."""
    is_gone: Callable[[], bool]
    """Says whether the client has closed the connection."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One piece, or a stream that the caller must close."""

    headers: Mapping[str, str]
    body: bytes = b""
    stream: "Rest | None" = None
    format: str = ""


@dataclass(slots=True)
class _Running:
    """What is needed to end a query."""

    handle: Handle
    only_reads: bool
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Front:
    """Pools, sessions, fence and gate around one engine."""

    def __init__(
        self, engine: Engine, *, writers: int = 8, readers: int = 4, limits: Mapping[str, str] = READER_LIMITS
    ) -> None:
        self._engine = engine
        self._limits = dict(limits)
        self._threads = ThreadPoolExecutor(writers + readers + 4, thread_name_prefix="engine")
        self._pools: dict[Role, Pool] = {
            "writer": Pool(engine, self._threads, "writer", writers, 256),
            "reader": Pool(engine, self._threads, "reader", readers, 64),
        }
        self._sessions = Sessions(engine, self._threads)
        self._fence = Fence()
        self._fence_locks: dict[str, asyncio.Lock] = {}
        self._running: dict[str, _Running] = {}
        self._is_draining = False
        self._gate = gate.Gate(engine.parse, engine.functions)

    async def answer(self, request: Request) -> Answer:
        """
        Run a request.

        Raises:
            Refusal: what the client is to be told.
            ClientGone: the client left before there was an answer.
        """
        parameters = request.parameters
        if parameters.role:
            raise Refusal.of(Code.UNKNOWN_ROLE, "Roles cannot be chosen here: they follow from the credentials")
        if parameters.wants_native_compression or parameters.sends_native_compression:
            raise Refusal.of(
                Code.NOT_IMPLEMENTED,
                "compress=1 and decompress=1 are not supported: use Content-Encoding and Accept-Encoding",
            )
        if parameters.replaces_running and parameters.query_id:
            await self._end(parameters.query_id, request.role)
        if request.role == "reader":
            return await self._read(request)
        return await self._write(request)

    async def drain(self, seconds: float) -> None:
        """Take no new statement; end queries soon, changes after `seconds`; close every handle."""
        self._is_draining = True
        await self._until_idle(self._running.values(), 0.5)
        await self._kill([running for running in self._running.values() if running.only_reads])
        await self._until_idle(self._running.values(), seconds)
        await self._kill(list(self._running.values()))
        await self._until_idle(self._running.values(), 2.0)
        if not self._running:
            await self._sessions.close()
            for pool in self._pools.values():
                await pool.close()
        self._threads.shutdown(wait=not self._running)

    async def _end(self, query_id: str, role: Role) -> None:
        """Kill a running query and wait for its end; a reader ends readers' only."""
        running = self._running.get(query_id)
        if running is not None and (role == "writer" or running.handle.role == "reader"):
            await self._kill([running])
            await self._until_idle([running], 5.0)

    async def _kill(self, queries: Iterable[_Running]) -> None:
        for running in queries:
            await self.in_thread(partial(self._engine.kill, running.handle))

    @staticmethod
    async def _until_idle(queries: Iterable[_Running], seconds: float) -> None:
        waits = [asyncio.ensure_future(running.done.wait()) for running in queries]
        if waits:
            _, late = await asyncio.wait(waits, timeout=seconds)
            for wait in late:
                wait.cancel()

    # -- readers ----------------------------------------------------------------------------------------------------

    async def _read(self, request: Request) -> Answer:
        parameters = request.parameters
        if parameters.database not in ("", READ_DATABASE, "default", "system"):
            raise Refusal.of(
                Code.ACCESS_DENIED, f"Database {parameters.database!r} is not for readers: use {READ_DATABASE}"
            )
        limits = url.reader_limits(parameters.settings, self._limits)
        sql = await _read_all(parameters.query, request.body, MAX_READER_BYTES)
        text = _decode(sql)
        try:
            await self.in_thread(lambda: self._gate.check(text))
        except gate.NotAllowed as error:
            raise Refusal.of(Code.ACCESS_DENIED, f"Not allowed for readers: {error}") from error
        pool = self._pools["reader"]
        lease = await pool.acquire(limits)
        return await self._query(request, lease, text, float(limits["max_execution_time"]) * 1.2 + 1)

    # -- writers ----------------------------------------------------------------------------------------------------

    async def _write(self, request: Request) -> Answer:
        parameters = request.parameters
        head, rest = await _read_head(parameters.query, request.body)
        insert = statement.parse_insert(head)
        if request.method == "GET" and insert is not None:
            raise Refusal.of(Code.READONLY, "Cannot execute query in readonly mode: send INSERTs by POST")
        if isinstance(insert, statement.DataInsert):
            return await self._insert(request, head, insert, rest)
        if isinstance(insert, statement.InsertSelect):
            if insert.reads_input or rest is not None:
                raise Refusal.of(
                    Code.NOT_IMPLEMENTED,
                    "INSERT … SELECT … FROM input() is not supported by the embedded engine: send the rows as data",
                )
            return await self._fenced(statement.fence_mark(head), (), lambda: self._statement(request, head))
        sql = head if rest is None else await _read_all_from(head, rest, MAX_QUERY_BYTES)
        return await self._statement(request, sql)

    async def _statement(self, request: Request, sql: bytes) -> Answer:
        if statement.touches_client_files(sql):
            raise Refusal.of(Code.NOT_IMPLEMENTED, "INTO OUTFILE and FROM INFILE do not exist over HTTP")
        text = _decode(sql)
        if (killed := _KILL.fullmatch(text)) is not None and request.method == "POST":
            # Query ids are this front's; the engine gives its own.
            await self._end(killed[1], "writer")
            return Answer({})
        lease = await self._writer_lease(request)
        try:
            kind = self._writer_kind(request, lease.handle, text)
        except BaseException:
            await lease.release()
            raise
        if kind == "read":
            return await self._query(request, lease, text, deadline_seconds=None)
        started = time.monotonic()
        output_format = _format(text, request)
        try:
            with self._listed(request, lease.handle, only_reads=False):
                outcome = await self.in_thread(
                    lambda: self._prepared(request, lease.handle).run(text, output_format, request.parameters.bound)
                )
        finally:
            await lease.release()
        shown = output_format if outcome.body else ""
        return Answer(_headers(request, outcome, started, shown), outcome.body, format=shown)

    @staticmethod
    def _writer_kind(request: Request, handle: Handle, text: str) -> StatementClass:
        kind, count = handle.classify(text)
        if not text.strip():
            raise Refusal.of(Code.SYNTAX_ERROR, "Syntax error: the query is empty")
        if count > 1:
            raise Refusal.of(Code.SYNTAX_ERROR, "Syntax error: Multi-statements are not allowed")
        if request.method == "GET" and kind != "read":
            raise Refusal.of(Code.READONLY, "Cannot execute query in readonly mode: send it by POST")
        if kind == "control" and not request.parameters.session_id:
            handle.is_spoilt = True
        return kind

    async def _insert(
        self, request: Request, head: bytes, insert: statement.DataInsert, rest: AsyncIterator[bytes] | None
    ) -> Answer:
        if request.parameters.bound:
            raise Refusal.of(
                Code.NOT_IMPLEMENTED, "INSERT with data and bound parameters is not supported by the embedded engine"
            )
        if statement.touches_client_files(insert.head):
            raise Refusal.of(Code.NOT_IMPLEMENTED, "INTO OUTFILE and FROM INFILE do not exist over HTTP")
        mark = statement.fence_mark(head)
        chunks = [head[insert.data_start :]]
        size = len(chunks[0])
        limit = MAX_FENCED_BYTES if mark is not None else BUFFERED_INSERT_BYTES
        is_whole = rest is None
        if rest is not None:
            is_whole = True
            async for chunk in rest:
                chunks.append(chunk)
                size += len(chunk)
                if size > limit:
                    is_whole = False
                    break
        if mark is not None and not is_whole:
            raise Refusal.of(
                Code.TOO_MANY_BYTES, f"A fenced insert may have {MAX_FENCED_BYTES} bytes: one insert is one block"
            )
        rows = Spool(None if is_whole else self._engine.folder)
        try:
            await self.in_thread(lambda: rows.write_all(chunks))
            chunks.clear()
            if rest is not None and not is_whole:
                async for chunk in rest:
                    await self.in_thread(partial(rows.write, chunk))
            return await self._fenced(mark, insert.target, lambda: self._store(request, insert, rows))
        finally:
            rows.close()

    async def _store(self, request: Request, insert: statement.DataInsert, rows: Spool) -> Answer:
        lease = await self._writer_lease(request)
        handle = lease.handle
        started = time.monotonic()
        head = _decode(insert.head)
        # The offset is one of bytes.
        source_at = len(_decode(insert.head[: insert.source_at]))
        try:
            with self._listed(request, handle, only_reads=False):
                outcome = await self.in_thread(
                    lambda: self._prepared(request, handle).insert(head, source_at, insert.format, rows)
                )
        except BaseException:
            await self.in_thread(handle.cleanse)
            raise
        finally:
            await lease.release()
        return Answer(_headers(request, outcome, started, ""))

    async def _fenced(
        self, mark: statement.FenceMark | None, target: tuple[str, ...], work: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        if mark is None:
            return await work()
        try:
            asked = check_parameters(mark.key)
        except BadKey as error:
            raise Refusal.of(Code.BAD_ARGUMENTS, str(error)) from error
        async with self._fence_locks.setdefault(mark.key, asyncio.Lock()):
            decision = self._fence.decide(mark.key, mark.epoch, target)
            if decision == "ask":
                self._fence.learn(mark.key, int(await self.in_thread(lambda: self._engine.ask(CHECK_SQL, asked))))
                decision = self._fence.decide(mark.key, mark.epoch, target)
            if decision == "fenced":
                raise Refusal.of(
                    Code.ABORTED,
                    f"fenced: epoch {mark.epoch} of {mark.key} is not the newest; another owner has taken over",
                )
            try:
                answer = await work()
            except BaseException:
                self._fence.unknown(mark.key, target)
                raise
            self._fence.stored(mark.key, mark.epoch, target)
            return answer

    async def _writer_lease(self, request: Request) -> Lease:
        parameters = request.parameters
        if parameters.session_id:
            return await self._sessions.acquire(
                parameters.session_id,
                must_exist=parameters.session_must_exist,
                seconds=parameters.session_seconds,
                closes=parameters.closes_session,
            )
        return await self._pools["writer"].acquire({})

    @staticmethod
    def _prepared(request: Request, handle: Handle) -> Handle:
        if handle.role == "writer":
            handle.prepare(request.parameters.database or CORE_DATABASE, request.parameters.settings)
        return handle

    # -- queries ----------------------------------------------------------------------------------------------------

    async def _query(
        self,
        request: Request,
        lease: Lease,
        text: str,
        deadline_seconds: float | None,
    ) -> Answer:
        """Run a statement that only reads; the lease is over when its last row is out, or here when it fails."""
        handle = lease.handle
        output_format = _format(text, request)
        started = time.monotonic()
        header = _HEADERS.get(output_format.lower())
        is_streamed = header is not None or output_format.lower() in _STREAMED_FORMATS
        streams = is_streamed and statement.first_keyword(text.encode()) in (
            "SELECT",
            "WITH",
            "(",
        )
        limit = PREFETCH_WAITING_BYTES if request.parameters.waits_for_end else PREFETCH_BYTES
        bound = request.parameters.bound

        def begin() -> tuple[Outcome, Stream | None]:
            prepared = self._prepared(request, handle)
            if not streams:
                return prepared.run(text, output_format, bound), None
            stream = prepared.stream(text, output_format, bound, header)
            pieces: list[bytes] = []
            size = 0
            for piece in stream:
                pieces.append(piece)
                size += len(piece)
                if size >= limit:
                    return _so_far(stream, pieces), stream
            return _so_far(stream, pieces), None

        held = AsyncExitStack()
        held.push_async_callback(lease.release)
        try:
            held.enter_context(self._listed(request, handle, only_reads=True))
            outcome, stream = await self.watched(begin, request, handle, deadline_seconds)
        except BaseException:
            await held.aclose()
            raise
        headers = _headers(request, outcome, started, output_format)
        if stream is None:
            await held.aclose()
            return Answer(headers, outcome.body, format=output_format)
        deadline = None if deadline_seconds is None else time.monotonic() + deadline_seconds
        return Answer(headers, outcome.body, Rest(self, request, handle, stream, held, deadline), output_format)

    async def watched(
        self, work: Callable[[], T], request: Request, handle: Handle, deadline_seconds: float | None
    ) -> T:
        """Run blocking work that reads; kill it when the client leaves or its time is over."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        started = time.monotonic()
        reason: Literal["", "gone", "late"] = ""
        while True:
            done, _ = await asyncio.wait((future,), timeout=0.25)
            if done:
                break
            if request.is_gone():
                reason = "gone"
            elif deadline_seconds is not None and time.monotonic() - started > deadline_seconds:
                reason = "late"
            if reason:
                await self.in_thread(lambda: self._engine.kill(handle))
        try:
            result = future.result()
        except Refusal as error:
            if error.code == Code.QUERY_WAS_CANCELLED and reason == "late":
                raise Refusal.of(Code.TIMEOUT_EXCEEDED, f"Timeout exceeded: {deadline_seconds:.0f} seconds") from error
            if reason == "gone":
                raise ClientGone from error
            raise
        return result

    @contextmanager
    def _listed(self, request: Request, handle: Handle, *, only_reads: bool) -> Iterator[None]:
        """Keep a statement in the table of running ones."""
        if self._is_draining:
            raise Refusal.of(Code.ABORTED, "The server is shutting down")
        query_id = request.parameters.query_id or secrets.token_hex(8)
        if query_id in self._running:
            raise Refusal.of(
                Code.QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING, f"Query with id = {query_id} is already running."
            )
        entry = self._running[query_id] = _Running(handle, only_reads)
        try:
            yield
        finally:
            del self._running[query_id]
            entry.done.set()

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class Rest:
    """The blocks of a result behind the prefetched ones; `aclose` it, begun or not."""

    def __init__(
        self,
        front: Front,
        request: Request,
        handle: Handle,
        stream: Stream,
        held: AsyncExitStack,
        deadline: float | None,
    ) -> None:
        self._front = front
        self._request = request
        self._handle = handle
        self._stream = stream
        self._held = held
        self._deadline = deadline

    def __aiter__(self) -> "Rest":
        return self

    async def __anext__(self) -> bytes:
        """
        Return the next block.

        Raises:
            Refusal: the query failed, or the client reads too slowly for its time.
            ClientGone: it reads no more.
        """
        left = None if self._deadline is None else self._deadline - time.monotonic()
        if left is not None and left <= 0:
            raise Refusal.of(Code.TIMEOUT_EXCEEDED, "Timeout exceeded: the result was not read in time")
        piece = await self._front.watched(lambda: next(self._stream, None), self._request, self._handle, left)
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """End the query and give its handle back."""
        try:
            await self._front.in_thread(self._stream.close)
        finally:
            await self._held.aclose()


def _so_far(stream: Stream, pieces: list[bytes]) -> Outcome:
    return Outcome(b"".join(pieces), stream.read_rows, stream.read_bytes, 0, 0, stream.rows)


def _format(text: str, request: Request) -> str:
    return statement.trailing_format(text.encode()) or request.parameters.default_format or "TabSeparated"


def _headers(request: Request, outcome: Outcome, started: float, output_format: str) -> dict[str, str]:
    elapsed = time.monotonic() - started
    summary = {
        "read_rows": str(outcome.read_rows),
        "read_bytes": str(outcome.read_bytes),
        "written_rows": str(outcome.written_rows),
        "written_bytes": str(outcome.written_bytes),
        "total_rows_to_read": "0",
        "result_rows": str(outcome.result_rows),
        "result_bytes": str(len(outcome.body)),
        "elapsed_ns": str(int(elapsed * 1e9)),
    }
    headers = {"X-ClickHouse-Summary": json.dumps(summary, separators=(",", ":"))}
    if output_format:
        headers["X-ClickHouse-Format"] = output_format
    return headers


def _decode(sql: bytes) -> str:
    try:
        return sql.decode()
    except UnicodeDecodeError as error:
        raise Refusal.of(Code.SYNTAX_ERROR, f"The statement is not UTF-8: {error}") from error


async def _read_head(query: str | None, body: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes] | None]:
    """Return enough of the statement to know an INSERT, and what follows (None: nothing)."""
    head = bytearray()
    if query:
        head += query.encode()
        if (first := await anext(body, None)) is not None:
            if isinstance(statement.parse_insert(bytes(head)), statement.DataInsert):
                return bytes(head), _chain(first, body)
            head += b"\n" + first
    while len(head) < HEAD_BYTES:
        chunk = await anext(body, None)
        if chunk is None:
            return bytes(head), None
        head += chunk
    return bytes(head), body


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


async def _read_all(query: str | None, body: AsyncIterator[bytes], limit: int) -> bytes:
    """Return URL's statement and body as one text, a line feed between."""
    return await _read_all_from((query or "").encode(), body, limit, separator=b"\n" if query else b"")


async def _read_all_from(head: bytes, rest: AsyncIterator[bytes], limit: int, separator: bytes = b"") -> bytes:
    text = bytearray(head)
    async for chunk in rest:
        text += separator + chunk
        separator = b""
        if len(text) > limit:
            break
    if len(text) > limit:
        raise Refusal.of(Code.QUERY_IS_TOO_LARGE, f"The statement has more than {limit} bytes")
    return bytes(text)
