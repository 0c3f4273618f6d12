"""
One statement of a reader whose result comes piece by piece to an event loop, and ends in the engine when nobody wants
it any more.

aiohttp and not clickhouse-connect: its streams hold a thread, and a thread that waits for ClickHouse cannot be told
that the client has gone. Here leaving the block closes the connection, at any moment, and that ends the statement: the
embedded ClickHouse looks at its connections, a server is told to by `cancel_http_readonly_queries_on_client_close`.
Memory is that of a few pieces: what is not taken is not read, and ClickHouse waits.
"""

import json
import re
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from analytics.store import StoreAway, StoreError, away, message_of
from gnomon.config.model import ClickHouseSettings

CONNECT_SECONDS: Final = 10.0
PIECE_BYTES: Final = 256 << 10
MAX_ERROR_BYTES: Final = 64 << 10
_ON_A_SERVER: Final = {"cancel_http_readonly_queries_on_client_close": "1", "readonly": "2"}


@dataclass(frozen=True, slots=True)
class Statistics:
    """What ClickHouse knew of a statement when it sent the first byte; all of it for results up to 1 MiB."""

    seconds: float = 0.0
    read_rows: int = 0
    read_bytes: int = 0
    result_rows: int = 0


class Streamed:
    """A result under way."""

    def __init__(self, response: aiohttp.ClientResponse, url: str) -> None:
        self._response = response
        self._url = url
        self.format = response.headers.get("X-ClickHouse-Format", "")
        self.statistics = _statistics(response.headers.get("X-ClickHouse-Summary", ""))

    async def pieces(self) -> AsyncIterator[bytes]:
        """
        Yield the result, once.

        Raises:
            StoreError: the statement failed behind its first rows.
            StoreAway: the connection broke.
        """
        tag = self._response.headers.get("X-ClickHouse-Exception-Tag", "")
        mark = f"__exception__\r\n{tag}\r\n".encode() if tag else b""
        held = b""
        try:
            async for piece in self._response.content.iter_any():
                held += piece
                at = held.find(mark) if mark else -1
                if at >= 0:
                    said = held[at:]
                    while len(said) < MAX_ERROR_BYTES and (more := await self._rest()):
                        said += more
                    raise _failed(said[len(mark) :], tag)
                keep = len(mark) + 2 if mark else 0  # the mark may have come in part, with the line feed before it
                if len(held) > keep:
                    yield held[: len(held) - keep]
                    held = held[len(held) - keep :]
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise StoreAway(away(self._url, "the connection broke in the middle of the result")) from error
        if held:
            yield held

    async def _rest(self) -> bytes:
        """Return more of an error's text; the connection is cut behind it."""
        try:
            return await self._response.content.readany()
        except aiohttp.ClientError:
            return b""


@asynccontextmanager
async def ask(
    settings: ClickHouseSettings,
    sql: str,
    output_format: str,
    bound: Mapping[str, str],
    limits: Mapping[str, str],
    *,
    is_embedded: bool,
    timeout_seconds: float,
) -> AsyncIterator[Streamed]:
    """
    Run a statement with a reader's rights, until the block is left.

    Args:
        settings: where ClickHouse is.
        sql: one statement; judged already where a server does not judge it.
        output_format: in which the result comes.
        bound: values of `{name:Type}`, in ClickHouse's own text.
        limits: settings of ClickHouse for this statement.
        is_embedded: whether the embedded ClickHouse is there, where a reader needs no name.
        timeout_seconds: longest wait for the next bytes.

    Raises:
        StoreError: ClickHouse refuses.
        StoreAway: nobody answers.
    """
    query = {**limits, **{f"param_{name}": value for name, value in bound.items()}}
    query |= {"database": "gnomon", "default_format": output_format}
    headers = {"Accept-Encoding": "identity"}
    if not is_embedded:
        query = {**_ON_A_SERVER, **query}
        headers |= _credentials(settings)
    parts = urllib.parse.urlsplit(settings.url)
    connector = aiohttp.TCPConnector(
        limit=1, force_close=True, ssl=ssl.create_default_context() if parts.scheme == "https" else True
    )
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=timeout_seconds)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, read_bufsize=PIECE_BYTES
    ) as session:
        try:
            response = await session.post(
                settings.url.rstrip("/") + "/", params=query, data=sql.encode(), headers=headers
            )
            if response.status != 200 or "X-ClickHouse-Exception-Code" in response.headers:
                raise _refused(response, await response.content.read(MAX_ERROR_BYTES))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise StoreAway(away(settings.url, str(error) or type(error).__name__)) from error
        try:
            yield Streamed(response, settings.url)
        finally:
            response.close()


def _credentials(settings: ClickHouseSettings) -> dict[str, str]:
    file = settings.reader_password_file
    password = Path(file).read_text(encoding="utf-8").strip() if file else ""
    return {"X-ClickHouse-User": settings.reader_user, "X-ClickHouse-Key": password}


def _statistics(summary: str) -> Statistics:
    try:
        said = json.loads(summary) if summary else {}
        return Statistics(
            int(said.get("elapsed_ns", 0)) / 1e9,
            int(said.get("read_rows", 0)),
            int(said.get("read_bytes", 0)),
            int(said.get("result_rows", 0)),
        )
    except (ValueError, AttributeError):
        return Statistics()


_NAME: Final = re.compile(r"\(([A-Z][A-Z0-9_]+)\)")


def _refused(response: aiohttp.ClientResponse, body: bytes) -> StoreError:
    text = body.decode("utf-8", "replace")
    code = response.headers.get("X-ClickHouse-Exception-Code", "")
    names: list[str] = _NAME.findall(text)
    name = names[-1] if names else ""
    return StoreError(message_of(text, name), int(code) if code.isdecimal() else 0, name)


def _failed(block: bytes, tag: str) -> StoreError:
    """Return what `message size TAG __exception__` says, the block's beginning taken off."""
    text = block.partition(f" {tag}".encode())[0].rpartition(b"\n")[0].decode("utf-8", "replace").strip()
    code = re.search(r"Code: (\d+)", text)
    names: list[str] = _NAME.findall(text)
    name = names[-1] if names else ""
    return StoreError(message_of(text, name), int(code[1]) if code else 0, name)
