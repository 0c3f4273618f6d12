"""Connections to upstreams that behave well, oddly and badly."""

import asyncio
import contextlib
import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from proxy.connections import INFORMATIONAL_LIMIT, Call, Pool
from proxy.response_heads import ResponseHead
from proxy.tasks import Tasks
from proxy.wheel import Wheel
from tests.proxy.scripted import http

CLOSE = b"<close>"
"""A step of a script: close the connection."""
HOLD = b"<hold>"
"""A step of a script: say nothing until the test says `go`."""

Steps = Sequence[bytes]


class Node:
    """A server that answers the n-th request with the n-th list of steps (the last one again and again)."""

    def __init__(self, *scripts: Steps) -> None:
        self.scripts = scripts
        self.requests: list[bytes] = []
        self.n_connections = 0
        self.go = asyncio.Event()
        self.writers: set[asyncio.StreamWriter] = set()
        self.on_connect: Steps = ()
        self.port = 0
        self._server: asyncio.Server

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for writer in list(self.writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def hang_up(self) -> None:
        """Close every connection, and wait until that is done here."""
        for writer in list(self.writers):
            writer.close()
        for writer in list(self.writers):
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        self.n_connections += 1
        try:
            if await self._play(self.on_connect, writer):
                return
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                script = self.scripts[min(len(self.requests), len(self.scripts)) - 1]
                if await self._play(script, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self.writers.discard(writer)
            writer.close()

    async def _play(self, steps: Steps, writer: asyncio.StreamWriter) -> bool:
        for step in steps:
            if step is CLOSE:
                return True
            if step is HOLD:
                await self.go.wait()
                continue
            writer.write(step)
            await writer.drain()
            await asyncio.sleep(0.005)  # so that each step is a read of its own
        return False


class Caller:
    """The owner of one call: waits for its end, and insists that there is one only."""

    def __init__(self) -> None:
        self.ends: list[str] = []
        self.ended = asyncio.Event()
        self.head: ResponseHead | None = None

    def answered(self, call: Call, head: ResponseHead, body: bytes) -> None:
        self.head = head
        self._end(f"{head.status} {body.decode('latin-1')}")

    def failed(self, call: Call, error_class: str) -> None:
        self._end(error_class)

    def _end(self, text: str) -> None:
        self.ends.append(text)
        self.ended.set()


class World:
    """A pool, its wheel and its node."""

    def __init__(self, node: Node, pool: Pool, wheel: Wheel, tasks: Tasks) -> None:
        self.node, self.pool, self.wheel, self.tasks = node, pool, wheel, tasks
        self.calls: list[tuple[Call, Caller]] = []

    def send(self, body: bytes = b"{}", seconds: float = 5.0, *, can_resend: bool = True) -> Caller:
        caller = Caller()
        call = Call(caller, self.pool, body, "client", "", can_resend)
        self.calls.append((call, caller))
        call.launch(self.wheel.lane(seconds))
        return caller

    async def ask(self, body: bytes = b"{}", seconds: float = 5.0, *, can_resend: bool = True) -> str:
        caller = self.send(body, seconds, can_resend=can_resend)
        await asyncio.wait_for(caller.ended.wait(), 5)
        return caller.ends[-1]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():  # noqa: ASYNC110  (the condition is the pool's state)
                await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def world(
    *scripts: Steps, limit: int = 8, max_bytes: int = 1 << 20, on_connect: Steps = (), gzipped: bool = False
) -> AsyncIterator[World]:
    """Run a node and a pool; afterwards each call has ended exactly once, and no connection is left."""
    faults: list[BaseException] = []
    node = Node(*scripts)
    node.on_connect = on_connect
    await node.start()
    tasks = Tasks(lambda _, error: faults.append(error))
    wheel = Wheel(asyncio.get_running_loop())
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: faults.append(context.get("exception") or RuntimeError(context["message"]))
    )
    pool = Pool(
        f"http://u%40:p%3a@127.0.0.1:{node.port}/rpc?key=k",
        tasks,
        limit=limit,
        max_response_bytes=max_bytes,
        headers={"X-Extra": "yes"},
        accept_gzip=gzipped,
    )
    here = World(node, pool, wheel, tasks)
    try:
        yield here
        node.go.set()
        pool.close()
        await here.until(lambda: pool.n_open == 0)
        assert [caller.ends for call, caller in here.calls if len(caller.ends) > 1] == []
        assert all(call.done for call, _ in here.calls)
        assert not any(wheel._slots)
    finally:
        await node.stop()
        await tasks.cancel()
        wheel.stop()
    assert faults == []


OK = http(b"[1]")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_what_is_sent() -> None:
    """One head with the path, Host without credentials, Basic authorization, extra headers, then the body."""
    async with world([OK], gzipped=True) as here:
        await here.ask(b'{"a":1}')
        (sent,) = here.node.requests

    head, _, body = sent.partition(b"\r\n\r\n")
    assert body == b'{"a":1}'
    assert head.decode().split("\r\n") == [
        "POST /rpc?key=k HTTP/1.1",
        f"Host: 127.0.0.1:{here.node.port}",
        "Content-Type: application/json",
        "User-Agent: gnomon",
        "Authorization: Basic dUA6cDo=",
        "Accept-Encoding: gzip",
        "X-Extra: yes",
        "Content-Length: 7",
    ]


GOOD: dict[str, tuple[Steps, str, bool]] = {
    "whole": ([OK], "200 [1]", True),
    "byte by byte": ([OK[i : i + 1] for i in range(len(OK))], "200 [1]", True),
    "head and body apart": ([OK[:-3], OK[-3:]], "200 [1]", True),
    "an empty body": ([http(b"")], "200 ", True),
    "another status": ([http(b"no", status=502)], "502 no", True),
    "no content": ([b"HTTP/1.1 204 X\r\n\r\n"], "204 ", True),
    "chunked, whole": ([CHUNKED + b"2\r\n[1\r\n1;x=y\r\n]\r\n0\r\nT: t\r\n\r\n"], "200 [1]", True),
    "chunked, in parts": ([CHUNKED, b"2\r\n[", b"1\r\n", b"1\r", b"\n]\r\n0\r\n", b"\r\n"], "200 [1]", True),
    "until close": ([b"HTTP/1.1 200 OK\r\n\r\n", b"[", b"1]", CLOSE], "200 [1]", False),
    "until close, nothing": ([b"HTTP/1.1 200 OK\r\n\r\n", CLOSE], "200 ", False),
    "to be closed": ([http(b"[1]", headers="Connection: close\r\n")], "200 [1]", False),
    "HTTP/1.0": ([OK.replace(b"HTTP/1.1", b"HTTP/1.0")], "200 [1]", False),
    "informed first": ([b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", OK], "200 [1]", True),
    "informed in the same read": ([b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + OK], "200 [1]", True),
    "informed, then chunked": ([b"HTTP/1.1 100 C\r\n\r\n" + CHUNKED + b"3\r\n[1]\r\n0\r\n\r\n"], "200 [1]", True),
    "gzip": ([http(gzip.compress(b"[1]"), headers="Content-Encoding: gzip\r\n")], "200 [1]", True),
    "deflate": ([http(zlib.compress(b"[1]"), headers="Content-Encoding: deflate\r\n")], "200 [1]", True),
    "a byte too many": ([http(b"[1]x", length=3)], "200 [1]", False),
    "a second answer at once": ([OK + http(b"[2]")], "200 [1]", False),
    "a second answer later": ([OK[:-1], OK[-1:] + http(b"[2]")], "200 [1]", False),
    "a second answer behind chunks": ([CHUNKED + b"3\r\n[1]\r\n0\r\n\r\n" + http(b"[2]")], "200 [1]", False),
    "garbage behind chunks": ([CHUNKED + b"3\r\n[1]\r\n0\r\n\r\n<html>"], "200 [1]", False),
}


@pytest.mark.parametrize("name", GOOD)
async def test_answers_arrive_and_the_connection_is_kept_where_it_can_be(name: str) -> None:
    """A second call gets its own answer, on the same connection or on a new one."""
    steps, expected, is_kept = GOOD[name]
    async with world(steps, [http(b"[next]")]) as here:
        assert await here.ask() == expected
        assert await here.ask() == "200 [next]"
        n_connections = here.node.n_connections

    assert n_connections == (1 if is_kept else 2)


BAD: dict[str, tuple[Steps, str]] = {
    "closed at once": ([CLOSE], "transport"),
    "half a head": ([OK[:20], CLOSE], "transport"),
    "half a body": ([http(b"[1]", length=4), CLOSE], "transport"),
    "half a chunk": ([CHUNKED + b"9\r\n[1]", CLOSE], "transport"),
    "chunks without end": ([CHUNKED + b"3\r\n[1]\r\n", CLOSE], "transport"),
    "informed, then closed": ([b"HTTP/1.1 100 Continue\r\n\r\n", CLOSE], "transport"),
    "informed for ever": ([b"HTTP/1.1 100 C\r\n\r\n" * 8000, CLOSE], "transport"),
    "a chunk of no size": ([CHUNKED + b"zz\r\n[1]\r\n0\r\n\r\n"], "transport"),
    "no HTTP": ([b"<html>\r\n\r\n"], "parse"),
    "a switch of protocols": ([b"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"], "parse"),
    "two lengths": ([b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n[1]"], "parse"),
    "a length and chunks": ([CHUNKED[:-2] + b"Content-Length: 3\r\n\r\n[1]"], "parse"),
    "an endless head": ([b"HTTP/1.1 200 OK\r\nX: " + b"x" * (70 << 10)], "transport"),
    "a length above the limit": ([http(b"", length=(1 << 20) + 1)], "transport"),
    "chunks above the limit": ([CHUNKED + b"200000\r\n" + b"x" * (1 << 20) + b"x"], "transport"),
    "until close, above the limit": ([b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * ((1 << 20) + 1)], "transport"),
    "gzip that is none": ([http(b"[1]", headers="Content-Encoding: gzip\r\n")], "parse"),
    "gzip cut short": ([http(gzip.compress(b"[1]" * 99)[:-9], headers="Content-Encoding: gzip\r\n")], "parse"),
    "gzip that grows": ([http(gzip.compress(b"0" * (2 << 20)), headers="Content-Encoding: gzip\r\n")], "parse"),
    "a coding of nobody's": ([http(b"[1]", headers="Content-Encoding: br\r\n")], "parse"),
    "silence": ([HOLD], "timeout"),
    "a length that promises more": ([http(b"[1]", length=4), HOLD], "timeout"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("is_kept", [False, True], ids=["fresh", "kept"])
async def test_bad_answers_fail_once_and_harm_nobody_else(name: str, is_kept: bool) -> None:
    """The call fails by its class; the next one gets its own answer; the node is asked once for each call."""
    steps, expected = BAD[name]
    before: list[Steps] = [[OK]] if is_kept else []
    if is_kept and steps == [CLOSE]:
        before.append(steps)  # asked again, as the connection may have been closed while idle
    async with world(*before, steps, [http(b"[next]")]) as here:
        if is_kept:
            await here.ask()
        assert await here.ask(seconds=0.15 if expected == "timeout" else 5.0) == expected
        here.node.go.set()
        assert await here.ask() == "200 [next]"
        n_requests = len(here.node.requests)

    assert n_requests == len(before) + 2


async def test_the_limit_itself_is_served() -> None:
    """By length, by chunks, until close, and behind gzip."""
    body = b"x" * 1000
    bodies = [
        http(body),
        CHUNKED + b"3e8\r\n" + body + b"\r\n0\r\n\r\n",
        http(gzip.compress(b"x" * 999), headers="Content-Encoding: gzip\r\n"),
    ]
    async with world(*[[b] for b in bodies], [b"HTTP/1.1 200 OK\r\n\r\n" + body, CLOSE], max_bytes=1000) as here:
        lengths = [len(await here.ask()) - 4 for _ in range(4)]

    assert lengths == [1000, 1000, 999, 1000]


async def test_as_many_informational_answers_as_are_allowed() -> None:
    """The count begins anew with each call."""
    steps = [b"HTTP/1.1 100 C\r\n\r\n" * INFORMATIONAL_LIMIT + OK]
    async with world(steps) as here:
        assert [await here.ask() for _ in range(3)] == ["200 [1]"] * 3


# --- kept connections -------------------------------------------------------------------------------------------------


async def test_a_connection_closed_while_idle_is_replaced_unnoticed() -> None:
    """The pool forgets it, and the next call takes a new one."""
    async with world([OK]) as here:
        await here.ask()
        await here.node.hang_up()
        await here.until(lambda: here.pool.n_open == 0)
        assert await here.ask() == "200 [1]"

    assert here.node.n_connections == 2


async def test_a_connection_that_closes_as_the_call_goes_out_is_replaced_unnoticed() -> None:
    """Nothing came back on a kept connection: the call is sent again, once, on a new one."""
    async with world([OK], [CLOSE], [OK]) as here:
        await here.ask()
        assert await here.ask() == "200 [1]"

    assert (here.node.n_connections, len(here.node.requests)) == (2, 3)


async def test_a_call_that_must_not_be_sent_twice_is_not() -> None:
    """It fails, and the node has seen it once."""
    async with world([OK], [CLOSE], [OK]) as here:
        await here.ask()
        assert await here.ask(can_resend=False) == "transport"

    assert len(here.node.requests) == 2


async def test_words_on_an_idle_connection_end_it() -> None:
    """They are nobody's answer."""
    async with world([OK, HOLD, http(b"[stray]")], [http(b"[own]")]) as here:
        await here.ask()
        here.node.go.set()
        await here.until(lambda: here.pool.n_open == 0)
        assert await here.ask() == "200 [own]"


async def test_an_upstream_that_hangs_up_before_it_is_asked_fails_the_call() -> None:
    """Each call hears of it at once, and the place in the pool is free again."""
    async with world([OK], on_connect=[CLOSE], limit=1) as here:
        assert [await here.ask(seconds=1.0) for _ in range(5)] == ["transport"] * 5


async def test_a_connection_lost_before_its_call_goes_out_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the handshake and the first byte the peer may be gone: the call fails at once, unsent."""
    async with world([OK], limit=1) as here:
        loop = asyncio.get_running_loop()
        connect = loop.create_connection

        async def lose(*arguments: Any, **options: Any) -> Any:
            made = await connect(*arguments, **options)
            made[0].abort()
            await asyncio.sleep(0.01)
            return made

        with monkeypatch.context() as patch:
            patch.setattr(loop, "create_connection", lose)
            assert [await here.ask(seconds=1.0) for _ in range(2)] == ["transport"] * 2
            assert (here.pool.n_open, here.calls[0][0].sent) == (0, False)
        assert await here.ask() == "200 [1]"


# --- the bound of the pool --------------------------------------------------------------------------------------------


async def test_calls_beyond_the_bound_wait_their_turn() -> None:
    """Two connections serve twenty calls; nobody is lost."""
    async with world([OK], limit=2) as here:
        callers = [here.send(b"%d" % i) for i in range(20)]
        assert here.pool.n_waiting == 18
        for caller in callers:
            await asyncio.wait_for(caller.ended.wait(), 5)
        assert (here.pool.n_open, here.pool.n_idle, here.pool.n_waiting) == (2, 2, 0)

    assert [caller.ends for caller in callers] == [["200 [1]"]] * 20
    assert here.node.n_connections == 2


async def test_a_call_that_waits_has_its_own_time() -> None:
    """It times out without ever having been sent, and is not sent later."""
    async with world([HOLD, OK], limit=1) as here:
        first = here.send(b"1")
        second = here.send(b"2", 0.05)
        await asyncio.wait_for(second.ended.wait(), 5)
        here.node.go.set()
        await asyncio.wait_for(first.ended.wait(), 5)
        assert await here.ask(b"3") == "200 [1]"
        assert (second.ends, here.calls[1][0].sent) == (["timeout"], False)

    assert [request[-1:] for request in here.node.requests] == [b"1", b"3"]


async def test_a_timeout_frees_the_place_for_who_waits() -> None:
    """The stalled connection is dropped, the next call gets a new one."""
    async with world([HOLD], [OK], limit=1) as here:
        first = here.send(b"1", 0.05)
        second = here.send(b"2")
        await asyncio.wait_for(second.ended.wait(), 5)

    assert (first.ends, second.ends) == (["timeout"], ["200 [1]"])


async def test_a_cancelled_call_tells_nobody_and_frees_its_place() -> None:
    """While it waits for an answer, and while it waits for a place."""
    async with world([HOLD], [OK], limit=1) as here:
        first, second, third = here.send(b"1"), here.send(b"2"), here.send(b"3")
        await here.until(lambda: len(here.node.requests) == 1)
        here.calls[1][0].cancel()
        here.calls[0][0].cancel()
        here.calls[0][0].cancel()
        await asyncio.wait_for(third.ended.wait(), 5)

    assert (first.ends, second.ends, third.ends) == ([], [], ["200 [1]"])
    assert [request[-1:] for request in here.node.requests] == [b"1", b"3"]


async def test_a_call_cancelled_while_connecting_leaves_a_connection_for_the_next() -> None:
    """It was never sent."""
    async with world([OK], limit=1) as here:
        gone = here.send(b"1")
        here.calls[0][0].cancel()
        assert await here.ask(b"2") == "200 [1]"
        assert (gone.ends, here.calls[0][0].sent) == ([], False)

    assert (len(here.node.requests), here.node.n_connections) == (1, 1)


async def test_a_call_timed_out_while_connecting_fails_once() -> None:
    """The connection that then comes about is kept."""
    async with world([OK], limit=1) as here:
        here.send(b"1", 0.0)
        call, caller = here.calls[0]
        call.bucket.discard(call)
        call.expired()
        assert await here.ask(b"2") == "200 [1]"

    assert caller.ends == ["timeout"]


async def test_everybody_who_waits_hears_of_an_upstream_that_is_down() -> None:
    """Refused connections do not leave waiting calls to their timeouts, and nothing counts as sent."""
    async with world([OK], limit=1) as here:
        await here.node.stop()
        callers = [here.send(seconds=30.0) for _ in range(5)]
        for caller in callers:
            await asyncio.wait_for(caller.ended.wait(), 2)
        assert [call.sent for call, _ in here.calls] == [False] * 5

    assert [caller.ends for caller in callers] == [["transport"]] * 5


async def test_a_host_name_that_no_resolver_takes_fails_the_call_and_holds_no_place() -> None:
    async with world([OK]) as here:
        here.pool.host = "a..b"
        caller = here.send(seconds=30.0)
        await asyncio.wait_for(caller.ended.wait(), 2)

        assert caller.ends == ["transport"]
        assert here.pool.n_open == 0


async def test_until_close_answers_do_not_use_up_the_pool() -> None:
    """Each closes its connection; the bound is still free afterwards."""
    async with world([b"HTTP/1.1 200 OK\r\n\r\n[1]", CLOSE], limit=2) as here:
        assert [await here.ask(seconds=1.0) for _ in range(6)] == ["200 [1]"] * 6


async def test_a_replaced_connection_does_not_break_the_bound() -> None:
    """The call that is sent again keeps its place; who waits goes on waiting."""
    async with world([OK], [HOLD, CLOSE], [OK], limit=1) as here:
        await here.ask(b"0")
        first, second = here.send(b"1"), here.send(b"2")
        await here.until(lambda: len(here.node.requests) == 2)
        here.node.go.set()
        most = 0
        while not second.ended.is_set():
            most = max(most, here.pool.n_open)
            await asyncio.sleep(0)
        assert (first.ends, second.ends, most) == (["200 [1]"], ["200 [1]"], 1)


async def test_a_closed_pool_keeps_nothing() -> None:
    """Calls under way are finished first."""
    async with world([HOLD, OK]) as here:
        caller = here.send()
        await here.until(lambda: len(here.node.requests) == 1)
        here.pool.close()
        here.node.go.set()
        await asyncio.wait_for(caller.ended.wait(), 5)
        await here.until(lambda: here.pool.n_open == 0)

    assert caller.ends == ["200 [1]"]
