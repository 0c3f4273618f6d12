"""A reader's result as it comes: errors told apart from rows, wherever they stand; an end when nobody wants it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import pytest

from analytics.store import StoreAway, StoreError
from analytics.streaming import Statistics, Streamed, ask
from gnomon.config.model import ClickHouseSettings
from tests.analytics.server import ClickHouse

T = TypeVar("T")
TAG = "0123456789abcdef"
HEAD = (
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-ClickHouse-Format: CSV\r\n"
    f"X-ClickHouse-Exception-Tag: {TAG}\r\n"
    'X-ClickHouse-Summary: {"read_rows":"3","read_bytes":"24","result_rows":"2","elapsed_ns":"1500000"}\r\n\r\n'
)
MESSAGE = "Code: 241. DB::Exception: Query memory limit exceeded (MEMORY_LIMIT_EXCEEDED) (version 26.9.2.1)\n"
FAILURE = f"\r\n__exception__\r\n{TAG}\r\n{MESSAGE}{len(MESSAGE)} {TAG}\r\n__exception__\r\n".encode()


class Server:
    """Answers one request with pieces, and notes it."""

    def __init__(self, pieces: Sequence[bytes], *, is_whole: bool = True, head: str = HEAD) -> None:
        self._pieces = pieces
        self._is_whole = is_whole
        self._head = head
        self.request = b""
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.request = await reader.readuntil(b"\r\n\r\n")
        writer.write(self._head.encode())
        for piece in self._pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if "chunked" in self._head else piece)
            await writer.drain()
            await asyncio.sleep(0)
        if self._is_whole:
            writer.write(b"0\r\n\r\n" if "chunked" in self._head else b"")
        else:
            with suppress(ConnectionError):
                while await reader.read(1000):
                    pass
                self.left.set()
        writer.close()

    def run(self, use: Callable[[Streamed], Awaitable[T]], settings: ClickHouseSettings | None = None) -> T:
        """Ask it, and use the result."""

        async def run() -> T:
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
            async with server:
                url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
                given = settings or ClickHouseSettings()
                asked = ClickHouseSettings(
                    url=url, reader_user=given.reader_user, reader_password_file=given.reader_password_file
                )
                async with ask(
                    asked, "SELECT 1", "CSV", {"x": "it's"}, {"max_result_rows": "5"},
                    is_embedded=settings is None, timeout_seconds=30,
                ) as result:  # fmt: skip
                    return await use(result)

        return asyncio.run(run())


async def whole(result: Streamed) -> bytes:
    return b"".join([piece async for piece in result.pieces()])


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_rows_come_as_they_were_sent(size: int) -> None:
    """In whatever pieces; what looks like a part of an error is data."""
    data = b"1,2\r\n__exception__\r\n3,4\r\n__exception__\r\n" + TAG[:-1].encode()
    pieces = [data[i : i + size] for i in range(0, len(data), size)]

    assert Server(pieces).run(whole) == data


def test_what_it_took_is_told() -> None:
    """As ClickHouse says with the first byte."""

    async def use(result: Streamed) -> tuple[str, Statistics]:
        return result.format, result.statistics

    assert Server([b"1\n"]).run(use) == ("CSV", Statistics(0.0015, 3, 24, 2))


@pytest.mark.parametrize("size", [1, 5, 40, 10_000])
def test_an_error_behind_rows_is_an_error(size: int) -> None:
    """However it is cut: its text is never taken for rows, and its code decides."""
    data = b"1\n2\n" + FAILURE
    taken: list[bytes] = []

    async def use(result: Streamed) -> None:
        async for piece in result.pieces():
            taken.append(piece)

    with pytest.raises(StoreError) as caught:
        Server([data[i : i + size] for i in range(0, len(data), size)]).run(use)

    assert (caught.value.code, caught.value.name) == (241, "MEMORY_LIMIT_EXCEEDED")
    assert str(caught.value) == "ClickHouse: Query memory limit exceeded (MEMORY_LIMIT_EXCEEDED)"
    assert b"1\n2\n".startswith(b"".join(taken))


def test_a_refusal_has_its_code() -> None:
    """Before any row."""
    head = f"HTTP/1.1 500 X\r\nX-ClickHouse-Exception-Code: 62\r\nContent-Length: {len(MESSAGE)}\r\n\r\n"

    with pytest.raises(StoreError) as caught:
        Server([MESSAGE.encode()], head=head).run(whole)

    assert caught.value.code == 62


def test_a_connection_that_breaks_is_no_end() -> None:
    """Half a result is an error."""

    class Cut(Server):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD.encode() + b"3\r\n1,2\r\n")
            await writer.drain()
            writer.close()

    with pytest.raises(StoreAway, match="in the middle"):
        Cut([]).run(whole)


def test_leaving_closes_the_connection() -> None:
    """That is how a statement ends."""
    server = Server([b"1\n" * 100], is_whole=False)

    async def use(result: Streamed) -> None:
        async for _ in result.pieces():
            return

    async def run() -> bool:
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        async with listener:
            url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            async with ask(
                ClickHouseSettings(url=url), "SELECT 1", "CSV", {}, {}, is_embedded=True, timeout_seconds=30
            ) as result:
                await use(result)
            async with asyncio.timeout(30):
                return await server.left.wait()

    assert asyncio.run(run())


def test_a_server_gets_its_reader(tmp_path: Path) -> None:
    """Its name and password, a statement that may only read, and ends with its connection."""
    (tmp_path / "password").write_text("hush\n")
    server = Server([b"1\n"])
    server.run(whole, ClickHouseSettings(reader_user="people", reader_password_file=str(tmp_path / "password")))
    line, *headers = server.request.decode().split("\r\n")
    query = dict(parse_qsl(urlsplit(line.split(" ")[1]).query))

    assert {"X-ClickHouse-User: people", "X-ClickHouse-Key: hush"} <= set(headers)
    assert query == {
        "cancel_http_readonly_queries_on_client_close": "1", "readonly": "2", "max_result_rows": "5",
        "param_x": "it's", "database": "gnomon", "default_format": "CSV",
    }  # fmt: skip


def test_the_embedded_engine_needs_no_name() -> None:
    """A reader there has none."""
    server = Server([b"1\n"])
    server.run(whole)

    assert b"X-ClickHouse-User" not in server.request
    assert b"readonly" not in server.request


def test_nobody_there_is_told_so() -> None:
    """With what starts it."""

    async def run() -> None:
        settings = ClickHouseSettings(url="http://127.0.0.1:9")
        async with ask(settings, "SELECT 1", "CSV", {}, {}, is_embedded=True, timeout_seconds=5):
            raise AssertionError

    with pytest.raises(StoreAway, match="gnomon up"):
        asyncio.run(run())


@pytest.mark.clickhouse
def test_the_engine_streams_and_fails_in_the_middle(clickhouse: ClickHouse) -> None:
    """Rows first, then the limit that was reached, by its code."""
    taken: list[int] = []

    async def run() -> None:
        async with ask(
            ClickHouseSettings(url=clickhouse.url), "SELECT number, {x:String} AS x FROM numbers(2000000)",
            "CSVWithNames", {"x": "it's"}, {"max_result_rows": "1000000"}, is_embedded=True, timeout_seconds=60,
        ) as result:  # fmt: skip
            async for piece in result.pieces():
                taken.append(len(piece))

    with pytest.raises(StoreError) as caught:
        asyncio.run(run())

    assert caught.value.code == 396
    assert sum(taken) > 1 << 20
