"""
SQL of people: one statement, a reader's rights, limits, and the result as it comes.

What is allowed is not decided here: the embedded ClickHouse judges each statement at its port (gate, role, limits), on
a server its user does, and the gate before it (`analytics.reading`). Here is refused what would change the form of the
answer: a second statement, a FORMAT of its own.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final, Literal

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from analytics import reading, streaming
from analytics.embedded import statement
from analytics.store import Store, StoreAway, StoreError
from analytics.streaming import Statistics, Streamed
from api import problems
from api.connected import while_connected
from api.errors import Refused
from api.metrics import Metrics
from api.problems import RETRY_SECONDS
from api.reader import Reader
from api.resulting import FORMS, ROW_FORMAT, Document, Shown
from api.slots import Slots
from api.state import Holder
from gnomon.config.model import SqlLimits

log = logging.getLogger("gnomon.api")

Format = Literal["json", "csv", "parquet", "arrow", "table"]
End = Literal["done", "refused", "failed", "gone"]
MAX_AT_ONCE: Final = 3
"""Of all tokens together: the embedded ClickHouse serves four readers at once, and pages need one."""
MAX_WAITING: Final = 16
ONE_PIECE_BYTES: Final = 64 << 20
"""The embedded ClickHouse makes the formats that have an end in one piece, in its memory."""
MAX_BUFFERED_BYTES: Final = 1 << 20
WAIT_MARGIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Form:
    """How a result is written."""

    engine_format: str
    media_type: str
    is_streamed: bool
    """By the embedded ClickHouse too."""
    document: Callable[[], Document | Shown | None] = lambda: None
    """Returns what makes of it that which is sent; None: it is sent as it is."""


FORMS_BY_NAME: Final[Mapping[Format, Form]] = {
    "json": Form(ROW_FORMAT, "application/json", True, Document),
    "csv": Form("CSVWithNames", "text/csv; charset=utf-8; header=present", True),
    "parquet": Form("Parquet", "application/vnd.apache.parquet", False),
    "arrow": Form("Arrow", "application/vnd.apache.arrow.file", False),
    "table": Form("PrettyCompactNoEscapesMonoBlock", "text/plain; charset=utf-8", False, Shown),
}

_FORBIDDEN: Final = frozenset((164, 497, 511))
"""READONLY, ACCESS_DENIED, UNKNOWN_ROLE."""
_BUGS: Final = frozenset((0, 49, 192, 193, 194, 516, 1000, 1001, 1002))
"""LOGICAL_ERROR, wrong credentials, errors of libraries."""
_TOO_DEEP: Final = frozenset((161, 162, 167, 168, 306))
"""TOO_MANY_COLUMNS, TOO_DEEP_SUBQUERIES, TOO_DEEP_AST, TOO_BIG_AST, TOO_DEEP_RECURSION."""
_BUSY: Final = frozenset((202,))
_ENDED: Final = frozenset((236, 394))
"""ABORTED, QUERY_WAS_CANCELLED."""


class Statements:
    """Runs statements; what is in force is read anew for each."""

    def __init__(self, holder: Holder, reader: Reader, metrics: Metrics) -> None:
        self._holder = holder
        self._metrics = metrics
        self._reader = reader
        self._all = Slots("statements run", MAX_AT_ONCE, MAX_WAITING)
        self._by_token: dict[str, tuple[int, Slots]] = {}

    @property
    def n_running(self) -> int:
        return self._all.n_taken

    def answer(self, token: str, sql: str, bound: Mapping[str, str], wanted: Format) -> "Result":
        """
        Return the answer to a statement; it runs when the answer is sent.

        Args:
            token: the name of who asks.
            sql: one SELECT.
            bound: see `api.binding`.
            wanted: the format of the result.

        Raises:
            Refused: it is more than one statement, or chooses a format itself.
        """
        started = time.monotonic()
        try:
            return Result(self, token, one_select(sql), bound, wanted)
        except Refused as refused:
            self.ended("refused", started, refused.problem)
            raise

    def ended(self, how: End, started: float, problem: str = "") -> None:
        """
        Count a statement.

        Args:
            how: its end.
            started: monotonic seconds.
            problem: why it was refused; empty where it was not.
        """
        self._metrics.add("gnomon_api_sql_statements_total", (how,))
        self._metrics.add("gnomon_api_sql_seconds_total", (how,), time.monotonic() - started)
        if problem:
            self._metrics.add("gnomon_api_sql_refused_total", (problem,))

    async def run(
        self, held: AsyncExitStack, token: str, sql: str, bound: Mapping[str, str], form: Form
    ) -> tuple[Streamed, float]:
        """
        Begin a statement that ends with `held`; return its result, and how long that may take to be read.

        Raises:
            Refused: not allowed, wrong, too slow or large, too many at once.
            StoreAway: ClickHouse does not answer.
        """
        limits = self._holder.value.api.sql
        await held.enter_async_context(self._slots(token, limits.queries).take())
        await held.enter_async_context(self._all.take())
        settings = self._holder.value.settings.gnomon.clickhouse

        def judge(store: Store) -> bool:
            if not store.is_embedded and not settings.reader_user:
                raise Refused(
                    "sql-not-allowed",
                    "not allowed: a server's writer. Set gnomon.clickhouse.readerUser; `gnomon config clickhouse` "
                    "writes such a user",
                )
            reading.check(store, sql)
            return store.is_embedded

        try:
            is_embedded = await self._reader.run(judge)
            result = await held.enter_async_context(
                streaming.ask(
                    settings, sql, form.engine_format, bound, _settings(limits, form, is_embedded),
                    is_embedded=is_embedded, timeout_seconds=_longest(limits),
                )
            )  # fmt: skip
        except StoreError as error:
            raise refusal(error) from error
        if result.format and result.format != form.engine_format:
            raise Refused("sql-not-allowed", f"not allowed: FORMAT {result.format} in the statement; give `format`")
        return result, _longest(limits)

    def _slots(self, token: str, most: int) -> Slots:
        known, slots = self._by_token.get(token, (0, None))
        if slots is None or (known != most and not slots.n_taken):
            slots = Slots("statements of this token run", most, problem="rate-limited")
            self._by_token[token] = (most, slots)
        return slots


class Result(Response):
    """The answer to a statement. It ends the statement when it is over, and when the client goes."""

    def __init__(self, statements: Statements, token: str, sql: str, bound: Mapping[str, str], wanted: Format) -> None:
        super().__init__()
        self._statements = statements
        self._token = token
        self._sql = sql
        self._bound = bound
        self._form = FORMS_BY_NAME[wanted]
        self._has_failed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.monotonic()
        try:
            if await while_connected(receive, self._answer(scope, send)):
                self._statements.ended("failed" if self._has_failed else "done", started)
            else:
                _say("statement ended, its client is gone", scope, self._token)
                self._statements.ended("gone", started)
        except Refused as refused:
            self._statements.ended("refused", started, refused.problem)
            raise

    async def _answer(self, scope: Scope, send: Send) -> None:
        is_begun = False
        try:
            async with AsyncExitStack() as held:
                result, longest = await self._statements.run(held, self._token, self._sql, self._bound, self._form)
                async with asyncio.timeout(longest):
                    parts = _parts(result, self._form.document())
                    part = await anext(parts, b"")
                    following = await anext(parts, None)
                    n_bytes = len(part) if following is None else None
                    headers = _headers(self._form, result.statistics, n_bytes)
                    is_begun = True
                    await send({"type": "http.response.start", "status": 200, "headers": headers})
                    while following is not None:
                        await send({"type": "http.response.body", "body": part, "more_body": True})
                        part, following = following, await anext(parts, None)
                    await send({"type": "http.response.body", "body": part, "more_body": False})
        except (StoreError, Refused, TimeoutError) as error:
            refused = _refused(error)
            if not is_begun:
                raise refused from error
            # Too late for a problem: the connection is cut without the end, so that no half passes for the whole.
            self._has_failed = True
            scope["state"]["problem"] = refused.problem
            _say(f"statement failed behind its first rows: {refused.detail}", scope, self._token)


def _refused(error: StoreError | Refused | TimeoutError) -> Refused:
    match error:
        case StoreError():
            return refusal(error)
        case TimeoutError():
            return Refused("query-too-slow", "the result was not read in time")
    return error


def _say(what: str, scope: Scope, token: str) -> None:
    log.info("%s request_id=%s token=%s", what, scope["state"]["request_id"], token or "-")


async def _parts(result: Streamed, document: Document | Shown | None) -> AsyncIterator[bytes]:
    """Yield the body: pieces put together up to a size, so that a small result is one."""
    held = b""
    async for piece in result.pieces():
        held += piece if document is None else await _converted(document, piece)
        if len(held) >= MAX_BUFFERED_BYTES:
            yield held
            held = b""
    if document is not None:
        known = result.statistics
        held += document.finish(
            {
                "seconds": round(known.seconds, 6),
                "read_rows": known.read_rows,
                "read_bytes": known.read_bytes,
            }
        )
    if held:
        yield held


async def _converted(document: Document | Shown, piece: bytes) -> bytes:
    if len(piece) < 16 << 10:
        return document.feed(piece)
    return await asyncio.to_thread(document.feed, piece)


def _headers(form: Form, known: Statistics, n_bytes: int | None) -> list[tuple[bytes, bytes]]:
    said: dict[str, Any] = {
        "content-type": form.media_type,
        "cache-control": "no-store",
        "x-gnomon-seconds": f"{known.seconds:.6f}",
        "x-gnomon-read-rows": known.read_rows,
        "x-gnomon-read-bytes": known.read_bytes,
    }
    if n_bytes is not None:
        said["content-length"] = n_bytes
    return [(name.encode(), str(value).encode()) for name, value in said.items()]


def one_select(sql: str) -> str:
    """
    Return the statement without what may follow it.

    Raises:
        Refused: a second statement, a FORMAT, nothing at all.
    """
    text = sql.encode("utf-8", "replace")
    end = None
    n_tokens = 0
    for token in statement.tokens(text):
        if end is not None and token.text != b";":
            raise Refused("sql-not-allowed", "not allowed: a second statement behind `;`")
        if token.text == b";" and end is None:
            end = token.start
        n_tokens += end is None
    if not n_tokens:
        raise Refused("invalid-sql", "there is no statement")
    text = text[:end]
    chosen = statement.trailing_format(text)
    if chosen:
        raise Refused("sql-not-allowed", f"not allowed: FORMAT {chosen} in the statement; give `format` beside it")
    return text.decode()


def _settings(limits: SqlLimits, form: Form, is_embedded: bool) -> dict[str, str]:
    n_bytes = limits.result_bytes if form.is_streamed or not is_embedded else min(limits.result_bytes, ONE_PIECE_BYTES)
    said = {
        "max_execution_time": max(1, int(limits.timeout_seconds)),
        "max_result_rows": limits.result_rows,
        "max_result_bytes": n_bytes,
        "max_rows_to_read": limits.read_rows,
        "max_memory_usage": limits.memory_bytes,
    }
    return {**{name: str(value) for name, value in said.items()}, **(FORMS if form.engine_format == ROW_FORMAT else {})}


def _longest(limits: SqlLimits) -> float:
    """Return how long the whole answer may take: somewhat longer than ClickHouse lets it, so that its error wins."""
    return limits.timeout_seconds * 1.2 + WAIT_MARGIN_SECONDS


def refusal(error: StoreError) -> Refused:
    """Return what a caller is told of what ClickHouse says to a statement of theirs."""
    words = str(error).removeprefix("ClickHouse: ").removesuffix(f"({error.name})").strip()
    if isinstance(error, StoreAway) or error.code in _BUGS:
        found = problems.refusal(error)
        assert found is not None
        return found
    if error.code in _FORBIDDEN:
        return Refused("sql-not-allowed", f"not allowed: {words.removeprefix('Not allowed for readers: ')}")
    if error.code in problems.TOO_SLOW:
        return Refused("query-too-slow", f"{problems.PROBLEMS['query-too-slow'].meaning} ({words})")
    if error.code in problems.TOO_LARGE:
        return Refused("query-too-large", f"{problems.PROBLEMS['query-too-large'].meaning} ({words})")
    if error.code in _TOO_DEEP:
        return Refused("query-too-large", words)
    if error.code in _BUSY:
        return Refused("busy", words, headers={"Retry-After": str(RETRY_SECONDS)})
    if error.code in _ENDED:
        return Refused("store-away", f"ClickHouse ended the statement: {words}", headers={"Retry-After": "2"})
    return Refused("invalid-sql", f"{words} (code {error.code}, {error.name or 'no name'})")
