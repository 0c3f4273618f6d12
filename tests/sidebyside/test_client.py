"""The polite client against endpoints that answer in every way."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gnomon.demo.rpc_server import listening_url
from gnomon.sidebyside import client as client_module
from gnomon.sidebyside.client import MAX_SILENCES, MAX_TRIES, Client, Pace, Reply, display, read, retry_after
from gnomon.sidebyside.errors import EndpointFailed

FAST = Pace(per_second=10_000.0, concurrency=4, timeout_seconds=5.0)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def against(handler: Handler, scenario: Callable[[Client], Awaitable[Any]], pace: Pace = FAST) -> Any:
    """Return what the scenario returns, run with a client of a server whose every answer `handler` gives."""

    async def go() -> Any:
        app = web.Application()
        app.router.add_post("/", handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            async with aiohttp.ClientSession() as session:
                return await scenario(Client(session, listening_url(runner), pace))
        finally:
            await runner.cleanup()

    return asyncio.run(go())


def always(response: Callable[[], web.Response]) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return response()

    return handler


async def chain_id(client: Client) -> Reply:
    return await client.ask("eth_chainId", b"[]")


@pytest.mark.parametrize(
    ("content", "status", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result": "0x1" }', 200, ("result", b'"0x1"', "")),
        (b'{"id":1,"result":null}', 200, ("result", b"null", "")),
        (b'{"id":1,"error":null,"result":1.0}', 200, ("result", b"1.0", "")),
        (b'{"id":1,"result":1,"error":{"code":3,"message":"execution reverted"}}', 200, ("error", None, "revert")),
        (b'{"id":1,"error":{"code":-32601,"message":"no"}}', 404, ("error", None, "method_not_found")),
        (b'{"id":1,"error":{"code":-32005,"message":"too many requests"}}', 429, ("error", None, "rate_limited")),
        (b'{"id":1}', 200, ("none", None, "parse")),
        (b"<html>busy</html>", 200, ("none", None, "parse")),
        (b"", 200, ("none", None, "parse")),
        (b"[1]", 200, ("none", None, "parse")),
        (b"slow down", 429, ("none", None, "rate_limited")),
    ],
)
def test_reads_answers(content: bytes, status: int, expected: tuple[str, bytes | None, str]) -> None:
    """A whole JSON-RPC answer counts under any status; fragments stay byte for byte; the rest is no answer."""
    kind, fragment, error_class = read(content, status, "eth_call")

    assert expected == (kind, fragment if expected[1] is not None else None, error_class)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), ("0", 0.0), ("1.5", 1.5), ("-3", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", None), ("soon", None)],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    """Seconds are read; a date and nonsense count as absent."""
    assert seconds == retry_after(value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("http://127.0.0.1:8545/", "http://127.0.0.1:8545"),
        ("https://node.example/v2/KEY", "https://node.example/…"),
        ("https://user:secret@node.example:99?key=KEY", "https://node.example:99/…"),
    ],
)
def test_display_hides_keys(url: str, shown: str) -> None:
    """Users, paths and queries, where keys are, are not shown."""
    assert shown == display(url)


def test_waits_when_told_to() -> None:
    """A 429 is tried again, not before Retry-After has passed."""
    n_calls = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            return web.Response(status=429, headers={"retry-after": "0.3"})
        return web.json_response({"id": None, "result": "0x1"})

    started = time.monotonic()
    reply = against(handler, chain_id)

    assert (reply.kind, n_calls) == ("result", 2)
    assert time.monotonic() - started >= 0.3


def test_gives_up_on_a_busy_endpoint() -> None:
    """An endpoint that refuses for ever is asked so many times, and then that is the answer."""
    n_calls = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal n_calls
        n_calls += 1
        return web.json_response(
            {"id": None, "error": {"code": 429, "message": "rate limited"}}, headers={"retry-after": "0"}
        )

    reply = against(handler, chain_id)

    assert (reply.kind, reply.error_class, n_calls) == ("error", "rate_limited", MAX_TRIES)


def test_keeps_to_its_rate() -> None:
    """Calls are spaced by the rate, however many are asked for at once."""

    async def scenario(client: Client) -> None:
        await asyncio.gather(*(chain_id(client) for _ in range(11)))

    started = time.monotonic()
    answer = always(lambda: web.json_response({"id": None, "result": "0x1"}))
    against(answer, scenario, Pace(per_second=50.0, concurrency=11, timeout_seconds=5.0))

    assert time.monotonic() - started >= 10 / 50


def test_keeps_to_its_concurrency() -> None:
    """No more calls are in flight than allowed."""
    in_flight = most = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0.02)
        in_flight -= 1
        return web.json_response({"id": None, "result": "0x1"})

    async def scenario(client: Client) -> None:
        await asyncio.gather(*(chain_id(client) for _ in range(12)))

    against(handler, scenario, Pace(per_second=10_000.0, concurrency=3, timeout_seconds=5.0))

    assert most == 3


def test_reads_gzip() -> None:
    """A compressed answer is asked for and read."""
    accepted = ""

    async def handler(request: web.Request) -> web.Response:
        nonlocal accepted
        accepted = request.headers.get("accept-encoding", "")
        response = web.Response(body=json.dumps({"id": None, "result": "ab" * 5000}), content_type="application/json")
        response.enable_compression(web.ContentCoding.gzip)
        return response

    reply = against(handler, chain_id)

    assert "gzip" in accepted
    assert json.loads(reply.fragment) == "ab" * 5000


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer above the limit is not kept in memory: it counts as none."""
    monkeypatch.setattr(client_module, "MAX_ANSWER_BYTES", 1 << 20)
    n_bytes = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal n_bytes
        response = web.StreamResponse()
        await response.prepare(request)
        while n_bytes < 64 << 20:
            await response.write(b" " * (1 << 18))
            n_bytes += 1 << 18
        return response

    reply = against(handler, chain_id)

    assert (reply.kind, reply.error_class) == ("none", "parse")
    assert n_bytes < 32 << 20


def test_a_redirect_is_not_followed() -> None:
    """A redirect is no answer: keys in addresses go nowhere else."""
    reply = against(always(lambda: web.Response(status=307, headers={"location": "http://127.0.0.1:1/"})), chain_id)

    assert (reply.kind, reply.fragment) == ("none", b"HTTP 307, no JSON-RPC answer")


def test_no_answer_in_time_is_none() -> None:
    """An endpoint that does not answer in time has given no answer, with the reason."""

    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(5.0)
        return web.Response()

    reply = against(handler, chain_id, Pace(per_second=1000.0, concurrency=1, timeout_seconds=0.1))

    assert (reply.kind, reply.error_class) == ("none", "timeout")


def test_an_endpoint_that_is_gone_is_an_error() -> None:
    """After so many silences in a row the run ends with the endpoint's name."""

    async def scenario(client: Client) -> None:
        for _ in range(MAX_SILENCES):
            await chain_id(client)

    with pytest.raises(EndpointFailed, match=r"http://127\.0\.0\.1:\d+ has stopped answering \(HTTP 200"):
        against(always(lambda: web.Response(text="<html>")), scenario)


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (
            lambda: web.json_response({"id": None, "error": {"code": -32601, "message": "nope"}}),
            "refuses eth_chainId: .*nope",
        ),
        (lambda: web.Response(status=500, text="oops"), "does not answer eth_chainId: HTTP 500"),
    ],
    ids=["error", "status"],
)
def test_preparing_calls_need_a_result(response: Callable[[], web.Response], message: str) -> None:
    """A call that prepares the comparison fails with the endpoint's own words."""

    async def scenario(client: Client) -> object:
        return await client.result("eth_chainId")

    with pytest.raises(EndpointFailed, match=message):
        against(always(response), scenario)


@pytest.mark.parametrize(
    ("rpc_id", "is_answer"),
    [("7", True), ('"7"', True), ("null", True), ("8", False), ('"x"', False), ("7.0", False)],
)
def test_an_answer_under_another_id_is_none(rpc_id: str, is_answer: bool) -> None:
    """It may be that to another question; null, and the number as a string, are let pass."""
    kind, _, error_class = read(f'{{"id": {rpc_id} ,"result":1}}'.encode(), 200, "eth_call", 7)

    assert (kind, error_class) == (("result", "") if is_answer else ("none", "parse"))


def test_a_pause_longer_than_the_run_is_not_waited_for() -> None:
    """The refusal is the answer then, and questions behind it are not asked."""

    async def scenario(client: Client) -> list[Reply | None]:
        client.ends_at = time.monotonic() + 0.2
        return [await client.ask_in_time("eth_chainId", b"[]") for _ in range(2)]

    started = time.monotonic()
    replies = against(always(lambda: web.Response(status=429, headers={"retry-after": "20"})), scenario)

    assert (replies[0].error_class, replies[1]) == ("rate_limited", None)
    assert time.monotonic() - started < 10


def test_a_run_that_is_stopped_does_not_wait_for_its_turn() -> None:
    """Nor for a pause that the endpoint asked for."""

    async def scenario(client: Client) -> Reply | None:
        asyncio.get_running_loop().call_later(0.2, client.stop.set)
        return await client.ask_in_time("eth_chainId", b"[]")

    started = time.monotonic()

    assert against(always(lambda: web.Response(status=429, headers={"retry-after": "20"})), scenario) is None
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("result", [b'"\xff"', b"[" * 5000 + b"]" * 5000])
def test_a_result_that_cannot_be_read_fails_the_endpoint(result: bytes) -> None:
    """Where it is needed to go on."""

    async def scenario(client: Client) -> object:
        return await client.result("eth_chainId")

    with pytest.raises(EndpointFailed):
        against(always(lambda: web.Response(body=b'{"id":null,"result":' + result + b"}")), scenario)
