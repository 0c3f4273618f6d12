"""
The HTTP side: ClickHouse's protocol in and out, the process's life.

Errors become ClickHouse's own answers: status, `X-ClickHouse-Exception-Code`, text. An error behind the first byte of a
result is written as ClickHouse writes it (`__exception__` and the tag of `X-ClickHouse-Exception-Tag`), and the
connection is closed without the last chunk, so that no client takes half a result for a whole one.
"""

import asyncio
import logging
import os
import secrets
import signal
from collections.abc import AsyncIterator, Mapping
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from aiohttp import web

from analytics.embedded import access, compression, configuration
from analytics.embedded import parameters as url
from analytics.embedded.credentials import Credentials
from analytics.embedded.engine import Engine
from analytics.embedded.errors import Code, EmbeddedError, Refusal
from analytics.embedded.front import Answer, ClientGone, Front, Request
from analytics.embedded.lock import FolderLock

MAX_FORM_BYTES = 16 << 20
BODY_TIMEOUT_SECONDS = 60.0
WRITE_TIMEOUT_SECONDS = 60.0
MIN_COMPRESSED_BYTES = 512

_log = logging.getLogger("gnomon.clickhouse")

_CONTENT_TYPES = (
    ("json", "application/json; charset=UTF-8"),
    ("csv", "text/csv; charset=UTF-8"),
    ("tsv", "text/tab-separated-values; charset=UTF-8"),
    ("tabseparated", "text/tab-separated-values; charset=UTF-8"),
    ("pretty", "text/plain; charset=UTF-8"),
    ("vertical", "text/plain; charset=UTF-8"),
    ("markdown", "text/markdown; charset=UTF-8"),
)


class Server:
    """The front behind an HTTP port."""

    def __init__(self, engine: Engine, front: Front, writer: Credentials, configured_host: str) -> None:
        self._engine = engine
        self._front = front
        self._writer = writer
        self._configured_host = configured_host
        self.boot_id = secrets.token_hex(16)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request, whatever it is."""
        query_id = request.query.get("query_id") or secrets.token_hex(16)
        base = {
            "X-ClickHouse-Query-Id": _header_text(query_id),
            "X-ClickHouse-Server-Display-Name": "gnomon",
            "X-ClickHouse-Timezone": "UTC",
            "X-Gnomon-Boot": self.boot_id,
        }
        try:
            access.check_origin(request.headers.get("Host"), request.headers.get("Origin"), self._configured_host)
            if request.path == "/ping":
                return web.Response(text="Ok.\n", headers=base)
            if request.path != "/":
                return web.Response(status=404, text=f"There is no handle {request.path}\n", headers=base)
            if request.method not in ("GET", "POST"):
                return web.Response(status=405, text="Use GET or POST\n", headers={**base, "Allow": "GET, POST"})
            role = access.role_of(request.headers, request.query, self._writer)
            pairs, body = await self._form(request)
            # A header says what the URL does not.
            for header, name in (("X-ClickHouse-Database", "database"), ("X-ClickHouse-Format", "default_format")):
                if header in request.headers:
                    pairs.insert(0, (name, request.headers[header]))
            parameters = url.parse(pairs)
            if request.method == "GET" and not parameters.query:
                return web.Response(text="Ok.\n", headers=base)
            answer = await self._front.answer(
                Request(role, request.method, parameters, body, lambda: _is_gone(request))
            )
        except Refusal as refusal:
            return self._refused(refusal, base)
        except ClientGone:
            return web.Response(status=499, headers=base)
        except Exception:
            _log.exception("request failed")
            return self._refused(Refusal.of(Code.LOGICAL_ERROR, "Internal error of the HTTP front"), base)
        accepted = request.headers.get("Accept-Encoding", "") if parameters.wants_compression else ""
        return await self._send(request, answer, {**base, **answer.headers}, accepted)

    def _refused(self, refusal: Refusal, headers: Mapping[str, str]) -> web.Response:
        return web.Response(
            status=refusal.http_status,
            text=refusal.text(self._engine.version),
            headers={**headers, "X-ClickHouse-Exception-Code": str(refusal.code), "Connection": "close"}
            if refusal.http_status == 413
            else {**headers, "X-ClickHouse-Exception-Code": str(refusal.code)},
        )

    async def _send(
        self, request: web.BaseRequest, answer: Answer, headers: dict[str, str], accepted: str
    ) -> web.StreamResponse:
        headers["Content-Type"] = _content_type(answer.format)
        if answer.stream is None:
            body = answer.body
            if len(body) >= MIN_COMPRESSED_BYTES and (chosen := compression.encoder(accepted)) is not None:
                name, encoder = chosen
                headers["Content-Encoding"] = name
                body = await asyncio.to_thread(lambda: encoder.feed(answer.body) + encoder.finish())
            return web.Response(body=body, headers=headers)
        tag = secrets.token_hex(8)
        headers["X-ClickHouse-Exception-Tag"] = tag
        chosen = compression.encoder(accepted)
        if chosen is not None:
            headers["Content-Encoding"] = chosen[0]
        response = web.StreamResponse(headers=headers)
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            encode = chosen[1].feed if chosen is not None else bytes
            await _write(response, encode(answer.body))
            try:
                async for piece in answer.stream:
                    await _write(response, await asyncio.to_thread(encode, piece) if chosen is not None else piece)
            except Refusal as refusal:
                message = refusal.text(self._engine.version)
                head, size = f"\r\n__exception__\r\n{tag}\r\n", len(message.encode())
                block = f"{head}{message}{size} {tag}\r\n__exception__\r\n".encode()
                await _write(response, encode(block) + (chosen[1].finish() if chosen is not None else b""))
                _abort(request)
                return response
            if chosen is not None:
                await _write(response, chosen[1].finish())
            await response.write_eof()
        except (ConnectionError, ClientGone, TimeoutError):
            _abort(request)
        finally:
            await answer.stream.aclose()
        return response

    async def _form(self, request: web.BaseRequest) -> tuple[list[tuple[str, str]], AsyncIterator[bytes]]:
        """Return the parameters and the body; a multipart form adds to the parameters and has no body."""
        pairs = [(name, value) for name, value in request.query.items()]
        body = _body(request)
        kind = request.headers.get("Content-Type", "")
        if not kind.lower().startswith("multipart/form-data"):
            return pairs, body
        raw = bytearray()
        async for chunk in body:
            raw += chunk
            if len(raw) > MAX_FORM_BYTES:
                raise Refusal.of(Code.QUERY_IS_TOO_LARGE, f"The form has more than {MAX_FORM_BYTES} bytes")
        message = BytesParser().parsebytes(b"Content-Type: " + kind.encode("latin-1") + b"\r\n\r\n" + bytes(raw))
        for part in message.get_payload() if message.is_multipart() else ():
            if not isinstance(part, str):
                name = part.get_param("name", header="content-disposition")
                if part.get_filename() is not None:
                    raise Refusal.of(Code.NOT_IMPLEMENTED, "External tables are not supported by the embedded engine")
                content = part.get_payload(decode=True)
                if isinstance(name, str) and isinstance(content, bytes):
                    pairs.append((name, content.decode("utf-8", "replace")))
        return pairs, _nothing()


async def _body(request: web.BaseRequest) -> AsyncIterator[bytes]:
    decoder = compression.decoder(request.headers.get("Content-Encoding", ""))
    while True:
        try:
            async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
                data = await request.content.readany()
        except TimeoutError:
            raise Refusal.of(Code.TIMEOUT_EXCEEDED, "The request's body did not arrive in time") from None
        except (web.RequestPayloadError, ConnectionError) as error:
            raise ClientGone from error
        if not data:
            break
        for piece in decoder.feed(data):
            yield piece
    decoder.finish()


async def _nothing() -> AsyncIterator[bytes]:
    pieces: tuple[bytes, ...] = ()
    for piece in pieces:
        yield piece


async def _write(response: web.StreamResponse, data: bytes) -> None:
    for start in range(0, len(data), 1 << 20):
        async with asyncio.timeout(WRITE_TIMEOUT_SECONDS):
            await response.write(data[start : start + (1 << 20)])


def _abort(request: web.BaseRequest) -> None:
    """Close the connection without the last chunk, what is written going out first."""
    if request.transport is not None:
        request.transport.close()


def _is_gone(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


def _content_type(output_format: str) -> str:
    lower = output_format.lower()
    if not lower:
        return "text/plain; charset=UTF-8"
    return next((kind for prefix, kind in _CONTENT_TYPES if lower.startswith(prefix)), "application/octet-stream")


def _header_text(text: str) -> str:
    return "".join(c if " " <= c <= "~" else "?" for c in text)[:200]


def _renice() -> None:
    """Give every thread the process's niceness: the engine lifts one of its own where it may (as root)."""
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    for thread in Path("/proc/self/task").glob("*"):
        if os.getpriority(os.PRIO_PROCESS, int(thread.name)) < nice:
            os.setpriority(os.PRIO_PROCESS, int(thread.name), nice)


async def serve(data_dir: Path, host: str, port: int, writer: Credentials, ready: Any) -> None:
    """
    Run until SIGTERM or SIGINT.

    Args:
        data_dir: the data folder, absolute; the engine lives in `clickhouse` below it.
        host, port: where to listen; port 0 picks a free one.
        writer: the credentials that may write.
        ready: called with the address once it answers.

    Raises:
        EmbeddedError: the folder is in use, the engine does not open, or the address is taken.
    """
    folder = data_dir / "clickhouse"
    lock = FolderLock(folder)
    lock.acquire(f"gnomon clickhouse at {host}:{port}")
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    config = configuration.write(data_dir / "clickhouse-config", configuration.memory_cap_bytes())
    engine = Engine(folder, config)
    engine.open()
    _renice()
    front = Front(engine)
    server = Server(engine, front, writer, host)
    runner = web.ServerRunner(
        web.Server(
            server.handle,
            auto_decompress=False,
            keepalive_timeout=3600.0,
            max_line_size=1 << 20,
            max_field_size=1 << 16,
            access_log=None,
        )
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, backlog=256)
        try:
            await site.start()
        except OSError as error:
            raise EmbeddedError(
                f"cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}; set gnomon.clickhouse.url"
            ) from error
        ready(*runner.addresses[0][:2])
        await stop.wait()
        await site.stop()
        await front.drain(8.0)
    finally:
        await runner.cleanup()
        engine.close()
        lock.release()
