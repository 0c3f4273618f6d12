"""Connections of clients on real sockets: pipelines, half-closed and slow peers, what is remembered of a head."""

import asyncio
import gzip
from pathlib import Path

import pytest

from proxy import clients
from tests.proxy.scripted import PATH, PATIENCE_SECONDS, Proxy, configuration, result, running, upstreams

QUESTION = b'{"jsonrpc":"2.0","id":7,"method":"eth_getBalance","params":["0x1","0x10"]}'
HEALTH = b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n"


def raw(body: bytes, *, close: bool = False, more: str = "") -> bytes:
    end = "Connection: close\r\n" if close else ""
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{end}{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def connect(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", proxy.service.port)


@pytest.mark.parametrize("empty", [b"\r\n\r\n", b"\n\r\n\r\n", b"\r\n\r\n\r\n\r\n"])
async def test_empty_lines_before_a_request_open_the_door_to_nobody(empty: bytes, tmp_path: Path) -> None:
    """They are skipped, and are never taken for the head of the request behind them, whoever sent it."""
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        assert b'"result":"0x2a"' in await proxy.send(empty + raw(QUESTION, close=True))
        for start in (empty, b"\r\n\r\n"):
            assert (await proxy.send(start + QUESTION)).startswith(b"HTTP/1.1 400")
        assert len(nodes[0].calls) == 1


async def test_heads_that_are_long_are_not_remembered(tmp_path: Path) -> None:
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        for n in (1, clients.HEAD_MEMO_BYTES):
            assert (await proxy.send(raw(QUESTION, close=True, more=f"X-Long: {'x' * n}\r\n"))).startswith(
                b"HTTP/1.1 200"
            )

        assert [len(head) < 1000 for head in proxy.service.heads] == [True]


async def test_a_client_that_closed_its_side_gets_its_answer_and_then_the_end(tmp_path: Path) -> None:
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        reader, writer = await connect(proxy)
        writer.write(raw(QUESTION))
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
        writer.close()

        assert answer.count(b'"result":"0x2a"') == 1


async def test_thousands_of_requests_behind_a_slow_one_are_all_answered(tmp_path: Path) -> None:
    n = 5000
    async with upstreams(lambda _: None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        text = await proxy.send(raw(QUESTION) + HEALTH * n + raw(QUESTION, close=True))

        assert text.count(b"HTTP/1.1 200 OK") == n + 2
        assert text.index(b'"id":7') < text.index(b'"networks"')


async def test_a_request_that_cannot_be_read_is_refused_after_the_answers_before_it(tmp_path: Path) -> None:
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        text = await proxy.send(raw(QUESTION) + raw(QUESTION) + b"what?\r\n\r\n" + raw(QUESTION))

        assert [text.count(b"HTTP/1.1 200"), text.count(b"HTTP/1.1 400")] == [2, 1]
        assert text.rindex(b'"result":"0x2a"') < text.index(b"HTTP/1.1 400")
        assert len(nodes[0].calls) == 2


async def test_an_offer_to_upgrade_is_passed_over(tmp_path: Path) -> None:
    """Java's client and curl offer `h2c` with a request's body; the answer is plain HTTP/1.1."""
    offer = "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQ\r\n"
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        reader, writer = await connect(proxy)
        for _ in range(2):
            writer.write(raw(QUESTION, more=offer))
            answer = await asyncio.wait_for(reader.readuntil(b"}"), PATIENCE_SECONDS)

            assert answer.startswith(b"HTTP/1.1 200 OK")
        writer.close()


async def test_a_tunnel_is_refused_once_and_nothing_is_dispatched(tmp_path: Path) -> None:
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        text = await proxy.send(b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n" + QUESTION)

        assert text.startswith(b"HTTP/1.1 501")
        assert text.count(b"HTTP/1.1 ") == 1
        assert proxy.requests() == []


@pytest.mark.parametrize("request_line", ["HEAD /healthcheck", "HEAD /metrics", "HEAD /", "OPTIONS /"])
async def test_answers_that_have_no_body_have_none(request_line: str, tmp_path: Path) -> None:
    """So that the next answer on the connection begins where the client looks for it."""
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        text = await proxy.send(
            f"{request_line} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() + raw(QUESTION, close=True)
        )

        head, _, rest = text.partition(b"\r\n\r\n")
        assert rest.startswith(b"HTTP/1.1 200 OK")
        assert (b"204" in head) == (b"Content-Length" not in head)


async def test_a_client_of_http_1_0_gets_the_end_of_the_connection(tmp_path: Path) -> None:
    old = raw(QUESTION, more="Connection: keep-alive\r\n").replace(b"HTTP/1.1", b"HTTP/1.0")
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        assert b"\r\nConnection: close\r\n" in await proxy.send(old)


async def test_gzip_is_not_made_for_a_client_that_weighs_it_nought(tmp_path: Path) -> None:
    async with upstreams(lambda q: result(q, "ab" * 2000)) as nodes, running(configuration(nodes), tmp_path) as proxy:
        for accepted, is_packed in (("gzip;q=0, br", False), ("br, gzip; q=0.0", False), ("br, gzip;q=0.5", True)):
            headers = (await proxy.post(QUESTION, f"Accept-Encoding: {accepted}\r\n"))[1]

            assert ("content-encoding" in headers) == is_packed


async def test_what_a_body_inflates_to_counts_as_held(tmp_path: Path) -> None:
    """A small body that grows is bounded like a large one: 413 beyond its limit, 503 beyond what may be held."""
    limits = {"maxRequestBytes": 4000, "maxInFlightBytes": 5000}
    coded = "Content-Encoding: gzip\r\n"
    body = QUESTION[:-1] + b" " * 3000 + b"}"
    async with (
        upstreams(lambda _: None) as nodes,
        running(configuration(nodes, limits=limits, timeout="2s"), tmp_path) as proxy,
    ):
        assert (await proxy.post(gzip.compress(QUESTION + b" " * 5000), coded))[0] == 413
        assert (await proxy.post(gzip.compress(QUESTION)[:-9], coded))[0] == 400
        first = asyncio.ensure_future(proxy.post(gzip.compress(body), coded))
        await proxy.until(lambda: len(nodes[0].calls) == 1)

        assert proxy.service.in_flight_bytes == len(body)
        assert (await proxy.post(gzip.compress(body), coded))[0] == 503
        assert (await first)[0] == 200
        await proxy.until(lambda: proxy.service.in_flight_bytes == 0)


async def test_a_reader_that_is_slow_but_reads_is_not_cut_off(tmp_path: Path) -> None:
    """One that takes nothing is; sweeps are a second apart, and the bound here is one second."""
    limits = {"bodyTimeout": "1s"}
    big = "ab" * (4 << 20)
    async with (
        upstreams(lambda q: result(q, big)) as nodes,
        running(configuration(nodes, limits=limits), tmp_path) as proxy,
    ):
        reader, writer = await connect(proxy)
        idle_reader, idle_writer = await connect(proxy)
        for sender in (writer, idle_writer):
            sender.write(raw(QUESTION))
        n = 0
        started = asyncio.get_running_loop().time()
        while n < len(big):
            piece = await asyncio.wait_for(reader.read(200_000), PATIENCE_SECONDS)
            assert piece
            n += len(piece)
            if asyncio.get_running_loop().time() - started < 3.5:
                await asyncio.sleep(0.1)
        await proxy.until(lambda: proxy.service.refusals["slow_readers"] == 1)
        for sender in (writer, idle_writer):
            sender.close()
        assert idle_reader is not None


async def test_a_body_in_tiny_chunks_is_one_body(tmp_path: Path) -> None:
    """From a client and from an upstream; a chunk costs no object that lives on."""

    def chunked(body: bytes) -> bytes:
        return b"".join(
            b"%x\r\n%b\r\n" % (len(part), part) for part in (body[i : i + 2] for i in range(0, len(body), 2))
        )

    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    )
    body = QUESTION[:-1] + b" " * 3001 + b"}"
    answer = b'{"jsonrpc":"2.0","id":7,"result":"0x%b"}' % (b"ab" * 3000)
    coded = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % chunked(answer)
    async with upstreams(lambda _: coded) as nodes, running(configuration(nodes), tmp_path) as proxy:
        text = await proxy.send(head + chunked(body) + b"0\r\n\r\n")

        assert text.endswith(b"\r\n\r\n" + answer)
        assert [event.request_bytes for event in proxy.requests()] == [len(body)]
        assert proxy.service.in_flight_bytes == 0


async def test_a_bug_in_handling_is_counted_and_costs_one_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it raises, the connection ends; where it forgets the client, that is let go after a while."""
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        service = proxy.service
        handle = service.handle

        def broken(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(service, "handle", broken)
        assert (await proxy.send(raw(QUESTION))).startswith(b"HTTP/1.1 500")
        assert await proxy.send(raw(QUESTION)) == b""  # its head was known: the short way, where the loop sees it
        assert (service.errors["request"], service.errors["loop"]) == (1, 1)
        monkeypatch.setattr(service, "handle", lambda *_: None)
        forgotten = asyncio.ensure_future(proxy.send(raw(QUESTION)))
        await proxy.until(lambda: any(client.is_busy for client in service.clients))
        for client in list(service.clients):
            client.sweep(service.tick + clients.STUCK_SECONDS + 1)
        assert await forgotten == b""
        assert service.refusals["stuck"] == 1
        monkeypatch.setattr(service, "handle", handle)
        assert b'"result":"0x2a"' in await proxy.send(raw(QUESTION, close=True))
        await proxy.until(lambda: service.in_flight_bytes == 0)
