"""
The client side of HTTP/1.1: requests in, answers out, one at a time on a connection.

A request whose head was seen before and whose body is whole in the same read goes straight to the service. All else
passes llhttp: partial reads, pipelined requests, chunked bodies, whatever is new or odd. Every limit is answered
(413, 431, 408, 503) and closes the connection, so nothing of a bad request reaches the next one.
"""

import asyncio
import re
import zlib
from collections import deque
from typing import Final, Protocol, cast

import httptools

from gnomon.config.model import Limits
from proxy.access import Denied, Grant
from proxy.core.limits import Claim
from proxy.core.requests import INVALID_REQUEST, error_body

PIPELINE_LIMIT: Final = 16
WRITE_BUFFER_BYTES: Final = 1 << 20
GZIP_FROM_BYTES: Final = 1024
HEAD_MEMO_BYTES: Final = 4096
"""Longest head that is remembered: a client can make up thousands of them."""
STUCK_SECONDS: Final = 600
"""Every request ends within its deadline; a client that still waits after this met a bug, and is let go."""
SLOWEST_BYTES: Final = 64 << 10
"""A reader that takes less within `body_timeout_seconds` is cut off."""
GZIP_UP_TO_BYTES: Final = 1 << 20
"""Larger answers go out as they are: compressing them would hold up everybody else on this loop."""

REASONS: Final = {
    200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 408: "Request Timeout", 413: "Content Too Large", 415: "Unsupported Media Type",
    429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
    501: "Not Implemented", 503: "Service Unavailable",
}  # fmt: skip


class RequestHead:
    """What a request's head says, resolved once: `grant` is where it goes, or `denied` why it goes nowhere."""

    __slots__ = (
        "accepts_empty", "accepts_gzip", "agent", "claims", "coding", "cors", "denied", "grant", "insists",
        "is_by_address",
        "is_choosy", "keep", "length", "method", "path", "skips_interpolation", "whose", "whose_plain",
    )  # fmt: skip

    def __init__(self, method: str, path: str, length: int, keep: bool) -> None:
        self.method = method
        self.path = path
        self.length = length
        self.keep = keep
        self.accepts_gzip = False
        self.coding = ""
        self.agent = ""
        self.cors = b""
        self.grant: Grant | None = None
        self.whose = self.whose_plain = b""
        """What events say of who asked: with the agent, and without (see `templates`)."""
        self.denied: Denied | None = None
        self.claims: tuple[Claim, ...] = ()
        """The budgets that its requests draw on."""
        self.is_choosy = False
        """It names the upstream that it wants."""
        self.accepts_empty = False
        """Every empty result will do: nobody else is asked for one."""
        self.insists = False
        """It said that an empty result will not do: rounds are repeated for one, as far as the policy goes."""
        self.skips_interpolation = False
        """It wants its `latest` sent as it is."""
        self.is_by_address = False
        """The peer's address had a say: another peer's request with the same bytes may go elsewhere."""


class Server(Protocol):
    """What a connection needs of the service."""

    limits: Limits
    heads: dict[bytes, RequestHead]
    clients: "set[Client]"
    tick: int
    in_flight_bytes: int
    is_draining: bool

    def resolve(self, method: str, target: str, headers: dict[str, str], keep: bool, peer: str) -> RequestHead: ...

    def handle(self, client: "Client", head: RequestHead, body: bytes) -> None: ...

    def count(self, what: str) -> None: ...

    def unexpected(self, scope: str, error: BaseException) -> None: ...


class Client(asyncio.Protocol):
    """One client connection."""

    __slots__ = (
        "_body", "_candidate", "_error", "_head", "_headers", "_held", "_in_message", "_is_half_closed", "_is_taking",
        "_n_body", "_n_current", "_n_fed", "_n_head", "_n_unsent", "_parser", "_queue", "_server",
        "_target", "is_busy", "is_open", "is_paused", "peer", "since", "transport",
    )  # fmt: skip

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parser: httptools.HttpRequestParser | None = None
        self._queue: deque[tuple[RequestHead, bytes]] = deque()
        self._in_message = False
        self._candidate: bytes | None = None
        self._head: RequestHead | None = None
        self._headers: dict[str, str] = {}
        self._target = b""
        self._body: bytes | bytearray = b""
        self._n_head = self._n_body = self._n_fed = 0
        self._error: tuple[int, str] | None = None
        self._held = 0
        self._n_current = self._n_unsent = 0
        self._is_half_closed = self._is_taking = False
        self.is_busy = False
        self.is_open = False
        self.is_paused = False
        self.since = server.tick
        self.peer = ""
        self.transport: asyncio.Transport

    # --- transport ----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its class
        server = self._server
        if len(server.clients) >= server.limits.max_connections or server.is_draining:
            server.count("connections_refused")
            self.transport.write(_plain(503, b"too many connections\n", keep=False))
            self.transport.close()
            return
        self.transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        address = transport.get_extra_info("peername")
        self.peer = address[0] if isinstance(address, tuple) else ""
        self.is_open = True
        server.clients.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._queue.clear()
        self._server.clients.discard(self)
        self._hold(-self._held)

    def eof_received(self) -> bool:
        self._is_half_closed = True  # it still gets its answers; then `sweep` closes
        is_tls = self.transport.get_extra_info("sslcontext") is not None  # there, no side ends alone
        return not is_tls and (self.is_busy or bool(self._queue) or self.is_paused)

    def pause_writing(self) -> None:
        self.is_paused = True
        self._n_unsent = -1
        self.since = self._server.tick

    def resume_writing(self) -> None:
        self.is_paused = False
        if not self.is_busy:
            self._next()

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            return
        if not (self.is_busy or self._in_message or self._queue or self.is_paused):
            end = data.find(b"\r\n\r\n") + 4
            if end > 3:
                head = self._server.heads.get(data[:end])
                if head is not None and len(data) - end == head.length and not head.coding:
                    server = self._server
                    n = server.in_flight_bytes + head.length
                    if n <= server.limits.max_in_flight_bytes:
                        server.in_flight_bytes = n
                        self._held += head.length
                        self._n_current = head.length
                        self.is_busy = True
                        self.since = server.tick
                        server.handle(self, head, data[end:])
                        return
        self._parse(data)

    # --- llhttp -------------------------------------------------------------------------------------------------------

    def _parse(self, data: bytes) -> None:
        parser = self._parser
        if parser is None:
            parser = self._parser = httptools.HttpRequestParser(self)
        if not self._in_message:
            end = data.find(b"\r\n\r\n") + 4
            # Empty lines may come before a request: then the first one found is not the end of its head.
            is_whole = end > 3 and data[0] > 0x20
            self._candidate = data[:end] if is_whole and end <= HEAD_MEMO_BYTES else None
            if is_whole and b"pgrade" in data[:end]:
                # A server may go on without the upgrade that a client offers (Java's and curl's `h2c`); llhttp may not.
                data = _offer.sub(b"\r\nX-Offer:", data[:end]) + data[end:]
        try:
            parser.feed_data(data)
        except httptools.HttpParserError as error:
            if self._error is not None:
                self._refuse(*self._error)
            else:
                self._refuse(400, f"malformed HTTP: {error}")
        else:
            if self._in_message and self._head is None:
                start = data.rfind(b"\r\n\r\n") + 4  # what came before belongs to earlier requests
                self._n_fed += len(data) - (start if start > 3 else 0)
                if self._n_fed > self._server.limits.max_header_bytes:
                    self._refuse(431, "the head is too large")
            if len(self._queue) > PIPELINE_LIMIT:
                self.transport.pause_reading()

    def on_message_begin(self) -> None:
        self._in_message = True
        self.since = self._server.tick
        self._head = None
        self._headers = {}
        self._target = b""
        self._body = b""
        self._n_head = self._n_body = self._n_fed = 0

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._bound_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._bound_head(len(name) + len(value) + 4)

    def _bound_head(self, n: int) -> None:
        self._n_head += n
        if self._n_head > self._server.limits.max_header_bytes:
            self._fail(431, "the head is too large")

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        server = self._server
        headers = self._headers
        method = parser.get_method().decode("latin-1")
        if parser.should_upgrade():
            self._fail(501, "upgrades (WebSocket, CONNECT) are not served on this port")
        # HTTP/1.0 would need a word in each answer that the connection is kept.
        keep = parser.should_keep_alive() and parser.get_http_version() != "1.0"
        head = server.resolve(method, self._target.decode("latin-1"), headers, keep, self.peer)
        length = int(headers.get("content-length", 0))
        if length > server.limits.max_request_bytes:
            self._fail(413, f"the body is larger than {server.limits.max_request_bytes} bytes")
        if not self._has_room(length):
            self._fail(503, "too many bytes in flight; try again")
        self._head = head
        if headers.get("expect", "").lower() == "100-continue":
            if not self.is_busy:
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif head.is_by_address:
            pass
        elif self._candidate is not None and "transfer-encoding" not in headers:
            head.length = length
            if len(server.heads) >= _HEADS_LIMIT:
                server.heads.clear()
            server.heads[self._candidate] = head
        self._candidate = None

    def on_body(self, data: bytes) -> None:
        self._n_body += len(data)
        self._hold(len(data))
        if self._n_body > self._server.limits.max_request_bytes:
            self._fail(413, f"the body is larger than {self._server.limits.max_request_bytes} bytes")
        if not self._body:
            self._body = data
        else:  # one array: millions of chunks of a byte or two would take twenty times their size as objects
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += data

    def on_message_complete(self) -> None:
        head = self._head
        assert head is not None
        self._in_message = False
        self.since = self._server.tick
        body = bytes(self._body)
        self._body = b""
        self._queue.append((head, body))
        self._candidate = None
        if not self.is_busy and not self.is_paused:
            self._next()

    def _has_room(self, n: int) -> bool:
        return self._server.in_flight_bytes + n <= self._server.limits.max_in_flight_bytes

    def _hold(self, n: int) -> None:
        """Count bytes of bodies that are held for this connection, from their arrival to their answer."""
        self._held += n
        self._server.in_flight_bytes += n

    def _fail(self, status: int, message: str) -> None:
        """End parsing from within a callback."""
        self._error = (status, message)
        raise _Stop(message)

    # --- requests and answers -----------------------------------------------------------------------------------------

    def _next(self) -> None:
        if self._is_taking:
            return  # a request was answered at once: the loop below, which took it, goes on
        self._is_taking = True
        try:
            while self._queue and not self.is_busy and not self.is_paused and self.is_open:
                head, body = self._queue.popleft()
                self._begin(head, body)
        finally:
            self._is_taking = False
        if self.is_open and not self._queue and not self.transport.is_reading():
            self.transport.resume_reading()

    def _begin(self, head: RequestHead, body: bytes) -> None:
        self.is_busy = True
        self._n_current = len(body)
        server = self._server
        self.since = server.tick
        if head.coding:
            limit = server.limits.max_request_bytes
            inflated = _gunzip(body, limit) if head.coding == "gzip" else None
            if inflated is None:
                self._give_up(415 if head.coding != "gzip" else 400, f"content coding {head.coding!r} cannot be undone")
                return
            if len(inflated) > limit:
                self._give_up(413, f"the body is larger than {limit} bytes")
                return
            n_more = len(inflated) - len(body)
            if not self._has_room(n_more):
                self._give_up(503, "too many bytes in flight; try again")
                return
            self._hold(n_more)
            self._n_current += n_more
            body = inflated
        try:
            server.handle(self, head, body)
        except Exception as error:  # outermost: what raises within the parser would pass for the client's fault
            server.unexpected("request", error)
            if self.is_busy:
                self._give_up(500, "internal error")

    def serve(self, head: RequestHead, lines: bytes, request_id: bytes, body: bytes) -> None:
        """Send an upstream's answer: `answer` with a request id, in one go where nothing is to be added."""
        if head.accepts_gzip or not head.keep or not self.is_open:
            self.answer(head, b"%bX-Gnomon-Request-Id: %b\r\n" % (lines, request_id), body)
            return
        self.transport.write(_SERVED % (lines, head.cors, request_id, len(body), body))
        self.is_busy = False
        server = self._server
        self.since = server.tick
        n = self._n_current
        if self._held:
            self._held -= n
            server.in_flight_bytes -= n
        if self._queue:
            self._next()

    def answer(self, head: RequestHead, lines: bytes, body: bytes, status: int = 200) -> None:
        """
        Send an answer and go on with the next request.

        Args:
            lines: header lines of the answer beyond the usual ones, each ended by CRLF.
        """
        if self.is_open:
            if head.accepts_gzip and GZIP_FROM_BYTES <= len(body) <= GZIP_UP_TO_BYTES:
                packer = zlib.compressobj(1, wbits=31)
                body = packer.compress(body) + packer.flush()
                lines += b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
            if not head.keep:
                lines += b"Connection: close\r\n"
            if status == 200:
                start = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%b%bContent-Length: %d\r\n\r\n%b"
                self.transport.write(start % (lines, head.cors, len(body), body))
            else:
                length = _length(len(body)) if status != 204 else b"\r\n"
                self.transport.write(_status_line(status) + lines + head.cors + length + body)
            if not head.keep:
                self.transport.close()
                self.is_open = False
        self._release()
        if self._queue:
            self._next()

    def send_plain(self, head: RequestHead, status: int, content_type: bytes, body: bytes) -> None:
        """Send an answer that is no JSON-RPC (health, metrics)."""
        if self.is_open:
            keep = b"" if head.keep else b"Connection: close\r\n"
            content_type = b"Content-Type: %b\r\n" % content_type
            reason = REASONS.get(status, "Status").encode()
            self.transport.write(
                b"HTTP/1.1 %d %b\r\n%b%b" % (status, reason, content_type, keep) + _length(len(body)) + body
            )
            if not head.keep:
                self.transport.close()
                self.is_open = False
        self._release()
        if self._queue:
            self._next()

    def _release(self) -> None:
        """The request at hand is answered."""
        self.is_busy = False
        self.since = self._server.tick
        if self._held:  # nothing is held any more once the connection is lost
            self._hold(-self._n_current)

    def _refuse(self, status: int, message: str) -> None:
        """Answer what cannot be read or is too much, and close: what follows on this connection is not trusted."""
        self._server.count(f"refused_{status}")
        if self.is_busy or self._queue:  # what was asked before gets its answers first
            self._in_message = False
            self.transport.pause_reading()
            head = RequestHead("", "", 0, keep=False)
            head.denied = Denied(status, message)
            self._queue.append((head, b""))
            return
        if self.is_open:
            self.is_open = False
            body = error_body(INVALID_REQUEST, message)
            self.transport.write(_status_line(status) + b"Connection: close\r\n" + _length(len(body)) + body)
            self.transport.close()

    def _give_up(self, status: int, message: str) -> None:
        """Refuse the request at hand, and with it what came behind it."""
        self._queue.clear()
        self.is_busy = False
        self._refuse(status, message)

    def sweep(self, now: int) -> None:
        """Close a connection that has been idle, half-sent or unread for too long."""
        limits = self._server.limits
        age = now - self.since
        if self.is_paused:
            n_left = self.transport.get_write_buffer_size()
            if self._n_unsent < 0:
                self._n_unsent = n_left
            elif age > limits.body_timeout_seconds:
                if self._n_unsent - n_left < SLOWEST_BYTES:
                    self._server.count("slow_readers")
                    self.transport.abort()
                self._n_unsent = n_left
                self.since = now
        elif self._is_half_closed and not self.is_busy and not self._queue:
            self.transport.close()
        elif self._in_message:
            if age > (limits.header_timeout_seconds if self._head is None else limits.body_timeout_seconds):
                self._refuse(408, "the request did not arrive in time")
        elif self.is_busy:
            if age > STUCK_SECONDS:
                self._server.count("stuck")
                self.transport.abort()
        elif age > limits.idle_timeout_seconds:
            self.transport.close()

    @property
    def is_owed(self) -> bool:
        """It waits for an answer, or has not taken all of one, or sends a request."""
        return self.is_busy or self._in_message or bool(self._queue) or self.transport.get_write_buffer_size() > 0

    def cut(self) -> None:
        """Drop the connection, whatever goes on."""
        self.is_open = False
        self.transport.abort()

    def drain(self) -> None:
        """Close now if nothing is going on, else after the answer under way."""
        if not self.is_busy and not self._in_message:
            self.transport.close()


_HEADS_LIMIT: Final = 4096
_offer: Final = re.compile(rb"\r\nupgrade:", re.IGNORECASE)

_SERVED: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%b%bX-Gnomon-Request-Id: %b\r\nContent-Length: %d\r\n\r\n%b"
)


class _Stop(Exception):
    """Leaves the parser; the reason is in the connection."""


def _status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\n" % (status, REASONS.get(status, "Status").encode())


def _length(n: int) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % n


def _plain(status: int, body: bytes, *, keep: bool) -> bytes:
    line = b"HTTP/1.1 %d %b\r\nContent-Type: text/plain\r\n" % (status, REASONS[status].encode())
    return line + (b"" if keep else b"Connection: close\r\n") + _length(len(body)) + body


def _gunzip(body: bytes, limit: int) -> bytes | None:
    """Undo gzip; None when it cannot be undone, more than `limit` bytes when there are more than that."""
    inflater = zlib.decompressobj(31)
    try:
        out = inflater.decompress(body, limit + 1)
    except zlib.error:
        return None
    return out if inflater.eof or len(out) > limit else None
