"""
Kept HTTP/1.1 connections to one upstream.

One call at a time on a connection, the least recently idle first out. The pool is bounded: a call beyond the bound
waits for a free connection until its own timeout. A kept connection that the peer closed while idle is replaced
without the call noticing. Bytes that nobody asked for (a second answer, a tail behind an answer, anything while
idle) end the connection and reach nobody.
"""

import asyncio
import base64
import contextlib
import ssl
import time
import zlib
from collections import deque
from typing import Protocol, cast
from urllib.parse import unquote, urlsplit

import httptools

from proxy.response_heads import MalformedHead, ResponseHead, read_head
from proxy.tasks import Tasks
from proxy.wheel import Expiring, Lane

CONNECT_SECONDS = 5.0
HEAD_LIMIT = 64 << 10
INFORMATIONAL_LIMIT = 16
"""Answers of 1xx before the answer itself; more are an upstream at play."""
_HEADS_LIMIT = 4096

now_ns = time.perf_counter_ns


class Owner(Protocol):
    """Who made a call and takes its end; exactly one of the two is called, once."""

    def answered(self, call: "Call", head: ResponseHead, body: bytes) -> None: ...

    def failed(self, call: "Call", error_class: str) -> None: ...


class Call:
    """
    One call to one upstream: what is sent, who waits, and when that ends.

    `sent` says that bytes went out; `status` and `n_response` are set with the answer. A call does nothing before
    `launch`.
    """

    __slots__ = (
        "body", "bucket", "can_resend", "cause", "connection", "done", "kind", "n_response", "owner", "pool", "sent",
        "started_ns", "status",
    )  # fmt: skip

    def __init__(
        self, owner: Owner, pool: "Pool", body: bytes, kind: str, cause: str = "", can_resend: bool = True
    ) -> None:
        self.owner = owner
        self.pool = pool
        self.body = body
        self.kind = kind
        self.cause = cause
        self.can_resend = can_resend
        self.sent = self.done = False
        self.n_response = self.status = 0
        self.connection: Connection | None = None
        self.started_ns: int
        self.bucket: set[Expiring]

    @property
    def n_request(self) -> int:
        """Bytes of the request that went out; 0 for a call that never left (refused, no connection in time)."""
        return len(self.body) if self.sent else 0

    def launch(self, lane: Lane) -> None:
        """Send it, with the lane's time for everything."""
        self.started_ns = now_ns()
        bucket = self.bucket = lane.bucket
        bucket.add(self)
        self.pool.send(self)

    def expired(self) -> None:
        """The attempt's time is up."""
        self.abandon()
        self.owner.failed(self, "timeout")

    def cancel(self) -> None:
        """End the call without telling its owner."""
        if not self.done:
            self.bucket.discard(self)
            self.abandon()

    def abandon(self) -> None:
        """Let go of the connection (which is then of no use) or of the place in the queue."""
        self.done = True
        connection = self.connection
        if connection is not None:
            self.connection = None
            connection.call = None
            connection.close()

    def distrust(self) -> None:
        """
        Drop the connection: what came was no answer to this call, so its own may come yet and would pass for another's.

        Whoever has got the connection meanwhile is sent anew, as after any that was closed while idle.
        """
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


class Connection(asyncio.Protocol):
    """See the module's text. Callbacks only; a whole answer in one read costs one `find` and one slice."""

    __slots__ = ("call", "head", "informed", "is_fresh", "need", "parser", "parts", "pool", "raw", "transport")

    def __init__(self, pool: "Pool") -> None:
        self.pool = pool
        self.call: Call | None = None
        self.head: ResponseHead | None = None
        self.parts: list[bytes] = []
        self.need = 0
        self.raw = b""
        self.parser: _Body | None = None
        self.is_fresh = True
        self.informed = 0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its class

    def use(self, call: Call) -> None:
        """Send a call."""
        self.call = call
        self.informed = 0
        call.connection = self
        call.sent = True
        body = call.body
        self.transport.write(self.pool.request_head(len(body)) + body)

    def data_received(self, data: bytes) -> None:
        call = self.call
        if call is None:
            self.close()
            return
        head = self.head
        if head is None:
            if self.raw:
                data = self.raw + data
            end = data.find(b"\r\n\r\n") + 4
            if end < 4:
                self.raw = data
                if len(data) > HEAD_LIMIT:
                    self._broken("transport")
                return
            try:
                head = read_head(data[:end])
            except MalformedHead:
                self._broken("parse")
                return
            self.raw = b""
            length = head.length
            if head.status < 200:
                self.informed += 1
                if self.informed > INFORMATIONAL_LIMIT:
                    self._broken("transport")
                elif len(data) > end:
                    self.data_received(data[end:])
                return
            if len(data) - end == length:
                if not head.keep or head.coding:
                    self._complete(head, data[end:], clean=True)
                    return
                # `_complete`, written out for the commonest case: a whole answer in one read, the connection kept.
                self.call = None
                call.status = head.status
                call.n_response = length
                call.done = True
                call.bucket.discard(call)
                self.is_fresh = False
                pool = self.pool
                if pool.is_calm:
                    pool.idle.append(self)
                    call.owner.answered(call, head, data[end:])
                else:
                    self._hand_over(call, head, data[end:])
                return
            self.head = head
            if length < 0:
                self.parser = _Body(self, head)
                self.parser.feed(data if head.is_chunked else data[end:])
                return
            if length > self.pool.max_response_bytes:
                self._broken("transport")
                return
            self.parts = [data[end:]]
            self.need = length - (len(data) - end)
        elif self.parser is not None:
            self.parser.feed(data)
            return
        else:
            self.parts.append(data)
            self.need -= len(data)
        if self.need <= 0:
            body = b"".join(self.parts)
            surplus = -self.need
            self._complete(head, body[: len(body) - surplus] if surplus else body, clean=not surplus)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        pool = self.pool
        call = self.call
        if call is None:
            pool.lost(self)
            return
        parser, head = self.parser, self.head
        if parser is not None and head is not None and not head.is_chunked and exc is None:
            pool.lost(self)
            self._complete(head, bytes(parser.text), clean=False)
            return
        self.call = None
        call.connection = None
        if not self.is_fresh and head is None and not self.raw and not self.informed and call.can_resend:
            call.sent = False  # the peer had closed it while idle: nobody has seen this call
            pool.open(call)
            pool.lost(self)  # after, so that nobody who waits takes this call's place
            return
        pool.lost(self)
        self._end(call)
        call.owner.failed(call, "transport")

    def close(self) -> None:
        """Drop the connection now."""
        self.transport.abort()

    def _complete(self, head: ResponseHead, body: bytes, *, clean: bool) -> None:
        call = self.call
        assert call is not None
        self.call = self.head = self.parser = None
        if self.parts:
            self.parts = []
        call.status = head.status
        call.n_response = len(body)
        self._end(call)
        self.is_fresh = False
        if not (clean and head.keep):
            self.close()
        if head.coding:
            inflated = _inflate(body, head.coding, self.pool.max_response_bytes)
            if inflated is None:
                self.pool.idle_again(self)
                call.owner.failed(call, "parse")
                return
            body = inflated
        self._hand_over(call, head, body)

    def _hand_over(self, call: Call, head: ResponseHead, body: bytes) -> None:
        """
        Give an answer to its owner, then the connection to who waits for one.

        In this order: the owner may find that the answer is none and distrust the connection, and a call that went out
        on it already would have to go out, and be billed, a second time.
        """
        try:
            call.owner.answered(call, head, body)
        finally:
            self.pool.idle_again(self)

    @staticmethod
    def _end(call: Call) -> None:
        call.done = True
        call.bucket.discard(call)

    def _broken(self, error_class: str) -> None:
        call = self.call
        self.call = None
        self.close()
        if call is not None:
            call.connection = None
            self._end(call)
            call.owner.failed(call, error_class)


class _Body:
    """A body whose end its own bytes tell (chunked), or the closing of the connection."""

    __slots__ = ("_connection", "_is_chunked", "_messages", "_parser", "text")

    def __init__(self, connection: Connection, head: ResponseHead) -> None:
        self._connection = connection
        self._is_chunked = head.is_chunked
        self._parser = httptools.HttpResponseParser(self) if head.is_chunked else None
        self._messages = 0
        self.text = bytearray()  # not a list: an upstream may send chunks of a byte

    def feed(self, data: bytes) -> None:
        connection = self._connection
        if self._parser is None:
            self.on_body(data)
        else:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError:
                if self._messages == 0:
                    connection._broken("transport")
                    return
                self._messages = 2
        if len(self.text) > connection.pool.max_response_bytes:
            connection._broken("transport")
        elif self._messages and connection.head is not None:
            connection._complete(connection.head, bytes(self.text), clean=self._messages == 1)

    def on_message_begin(self) -> None:
        if self._messages:
            self._messages = 2

    def on_body(self, data: bytes) -> None:
        if not self._messages:
            self.text += data

    def on_message_complete(self) -> None:
        self._messages += 1


def _inflate(body: bytes, coding: str, limit: int) -> bytes | None:
    """Undo gzip or deflate; None when it cannot be undone or grows beyond the limit."""
    if coding not in ("gzip", "x-gzip", "deflate"):
        return None
    try:
        inflater = zlib.decompressobj(47 if coding != "deflate" else 15)
        out = inflater.decompress(body, limit)
    except zlib.error:
        return None
    return out if inflater.eof and not inflater.unconsumed_tail else None


class Pool:
    """Connections to one upstream's address, at most `limit` of them."""

    def __init__(
        self,
        endpoint: str,
        tasks: Tasks,
        *,
        limit: int,
        max_response_bytes: int,
        headers: dict[str, str],
        accept_gzip: bool = False,
    ) -> None:
        """
        Args:
            endpoint: http or https URL; credentials in it become Basic authorization.
            headers: sent with each call.
        """
        url = urlsplit(endpoint)
        self.is_tls = url.scheme == "https"
        self.host = url.hostname or ""
        self.port = url.port or (443 if self.is_tls else 80)
        self.limit = limit
        self.max_response_bytes = max_response_bytes
        self._tasks = tasks
        self.idle: list[Connection] = []
        self._waiting: deque[Call] = deque()
        self.is_calm = True
        """Nobody waits for a connection, and they are kept."""
        self._ssl = ssl.create_default_context() if self.is_tls else None
        self._open: set[Connection] = set()
        self._connecting = 0
        self._heads: dict[int, bytes] = {}
        self._closing = False
        lines = {"Host": url.netloc.rpartition("@")[2], "Content-Type": "application/json", "User-Agent": "gnomon"}
        if url.username is not None:
            pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
            lines["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        if accept_gzip:
            lines["Accept-Encoding"] = "gzip"
        lines.update(headers)
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        text = f"POST {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "Content-Length: "
        self._base = text.encode("latin-1")

    @property
    def n_open(self) -> int:
        """Connections that exist or are being made."""
        return len(self._open) + self._connecting

    @property
    def n_waiting(self) -> int:
        """Calls that wait for a connection."""
        return len(self._waiting)

    @property
    def n_idle(self) -> int:
        """Connections that wait for a call."""
        return len(self.idle)

    def request_head(self, length: int) -> bytes:
        """Return the request head for a body of `length` bytes."""
        head = self._heads.get(length)
        if head is None:
            if len(self._heads) >= _HEADS_LIMIT:
                self._heads.clear()
            head = self._heads[length] = b"%b%d\r\n\r\n" % (self._base, length)
        return head

    def send(self, call: Call) -> None:
        """Send a call on an idle connection, a new one, or the next that becomes free."""
        idle = self.idle
        while idle:
            connection = idle.pop()
            if not connection.transport.is_closing():
                connection.use(call)
                return
        if self.n_open < self.limit:
            self.open(call)
        else:
            self._waiting.append(call)
            self.is_calm = False

    def open(self, call: Call) -> None:
        """Make a connection for a call."""
        self._connecting += 1
        self._tasks.start("connect", self._connect(call))

    def idle_again(self, connection: Connection) -> None:
        """Take a connection back after an answer, unless it was closed."""
        if connection.transport.is_closing():
            return
        while self._waiting:
            call = self._waiting.popleft()
            if not call.done:
                connection.use(call)
                return
        if self._closing:
            connection.close()
        else:
            self.is_calm = True
            self.idle.append(connection)

    def lost(self, connection: Connection) -> None:
        """Forget a connection that has ended; whoever waits for one gets a new one."""
        self._open.discard(connection)
        if not connection.is_fresh or connection in self.idle:
            with contextlib.suppress(ValueError):
                self.idle.remove(connection)
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        while self._waiting and self.n_open < self.limit:
            call = self._waiting.popleft()
            if not call.done:
                self.open(call)

    def close(self) -> None:
        """Drop idle connections and keep none from now on."""
        self._closing = True
        self.is_calm = False
        for connection in self.idle:
            connection.close()
        self.idle.clear()

    async def _connect(self, call: Call) -> None:
        loop = asyncio.get_running_loop()
        connection = Connection(self)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await loop.create_connection(lambda: connection, self.host, self.port, ssl=self._ssl)
        except (OSError, TimeoutError, UnicodeError):  # the last: a host name that no resolver takes
            self._connecting -= 1
            self._refuse(call)
            return
        except asyncio.CancelledError:
            self._connecting -= 1
            raise
        self._connecting -= 1
        if connection.transport.is_closing():  # the peer has closed it, or spoken, before it was asked
            self._refuse(call)
            return
        self._open.add(connection)
        if call.done:
            self.idle_again(connection)
        else:
            connection.use(call)

    def _refuse(self, call: Call) -> None:
        """End a call that got no connection, and let the next that waits try."""
        if not call.done:
            call.done = True
            call.bucket.discard(call)
            call.owner.failed(call, "transport")
        self._serve_waiting()
