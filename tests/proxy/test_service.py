"""The proxy as clients and upstreams see it, bad manners of both sides included."""

import asyncio
import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gnomon.config.load import loads
from gnomon.events.log import Writer
from proxy.service import Service
from tests.proxy.scripted import PATH, PATIENCE_SECONDS, Proxy, Script, configuration, http, result, running, upstreams

QUESTION = b'{"jsonrpc":"2.0","id":7,"method":"eth_getBalance","params":["0x1","0x10"]}'


def raw(body: bytes, *, close: bool = True) -> bytes:
    end = "Connection: close\r\n" if close else ""
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{end}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def test_an_answer_passes_through_byte_for_byte(tmp_path: Path) -> None:
    """Odd spacing and member order of the upstream reach the client as they are."""
    odd = b'{ "id" :7,\n "result": {"b":1,  "a":[1.0, 12345678901234567890]}, "jsonrpc":"2.0" }'
    async with upstreams(lambda _: http(odd)) as nodes, running(configuration(nodes), tmp_path) as proxy:
        status, headers, body = await proxy.post(QUESTION)

        assert (status, body) == (200, odd)
        assert headers["x-gnomon-upstream"] == "p0"
        assert headers["x-gnomon-head"] == "100"
        [event] = proxy.requests()
        assert headers["x-gnomon-request-id"] == event.request_id
        assert bytes(event.answer.body) == b'{"b":1,  "a":[1.0, 12345678901234567890]}'
        assert event.heads.network.finalized == 90


BAD_ANSWERS: dict[str, tuple[Callable[[dict[str, Any]], bytes | None], str]] = {
    "html": (lambda _: http(b"<html>busy</html>"), "parse"),
    "empty body": (lambda _: http(b""), "parse"),
    "closes without an answer": (lambda _: b"", "transport"),
    "wrong id": (lambda q: result({"id": q["id"] + 1}, "0x1"), "parse"),
    "two values": (lambda q: http(b'{"jsonrpc":"2.0","id":7,"result":"0x1"}' * 2), "parse"),
    "content-length too long": (lambda q: http(b'{"jsonrpc":"2.0","id":7,"result":"0x1"}', length=500), "timeout"),
    "content-length too short": (lambda q: http(b'{"jsonrpc":"2.0","id":7,"result":"0x1"}', length=20), "parse"),
    "no HTTP": (lambda _: b"what?\r\n\r\n", "parse"),
    "never answers": (lambda _: None, "timeout"),
    "502": (lambda _: http(b"bad gateway", status=502), "status"),
    "429": (lambda _: http(b"slow down", status=429), "rate_limited"),
    "internal error": (
        lambda _: http(b'{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"internal error"}}'),
        "internal",
    ),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_a_bad_answer_gives_way_to_the_next_upstream(name: str, tmp_path: Path) -> None:
    """The client gets the good answer, and the event says what the bad one was."""
    script, error_class = BAD_ANSWERS[name]
    async with upstreams(script, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        answer = json.loads((await proxy.post(QUESTION))[2])

        assert answer == {"jsonrpc": "2.0", "id": 7, "result": "0x2a"}
        [event] = proxy.requests()
        assert [(a.upstream, a.error_class) for a in event.attempts] == [("p0", error_class), ("p1", "")]
        assert (event.outcome, event.upstream) == ("result", "p1")


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_with_nobody_else_the_client_gets_an_error_with_its_id(name: str, tmp_path: Path) -> None:
    script, error_class = BAD_ANSWERS[name]
    async with upstreams(script) as nodes, running(configuration(nodes), tmp_path) as proxy:
        answer = json.loads((await proxy.post(QUESTION))[2])

        assert answer["id"] == 7
        assert answer["error"]["code"] == -32603
        [event] = proxy.requests()
        assert (event.outcome, event.error_class) == ("error", error_class)


async def test_bytes_behind_an_answer_never_reach_the_next_request(tmp_path: Path) -> None:
    """A second answer on the connection is dropped with the connection."""
    extra = b'HTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n{"jsonrpc":"2.0","id":7,"result":"bad"}'
    script: Script = lambda q: result(q, "0x1") + extra  # noqa: E731
    async with upstreams(script) as nodes, running(configuration(nodes), tmp_path) as proxy:
        for _ in range(5):
            assert (await proxy.call("eth_getBalance", ["0x1", "0x1"], 7))["result"] == "0x1"

        assert len(nodes[0].calls) == 5


async def test_a_kept_connection_that_was_closed_is_replaced_unnoticed(tmp_path: Path) -> None:
    async with upstreams(None, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        await proxy.call("eth_getBalance", ["0x1", "0x1"])
        nodes[0].close_connections()
        await proxy.call("eth_getBalance", ["0x1", "0x1"])

        assert [[a.upstream for a in event.attempts] for event in proxy.requests()] == [["p0"], ["p0"]]
        assert len(nodes[1].calls) == 0


async def test_a_call_that_no_connection_carried_to_its_end_has_not_left(tmp_path: Path) -> None:
    """Its kept connection was closed, and no other could be had: nothing is billed for it."""
    async with upstreams(None, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        await proxy.call("eth_getBalance", ["0x1", "0x1"])
        nodes[0]._server.close()
        nodes[0].script = lambda _: b""
        assert (await proxy.call("eth_getBalance", ["0x1", "0x1"]))["result"] == "0x2a"

        attempts = proxy.requests()[-1].attempts
        assert [(a.upstream, a.outcome, a.request_bytes > 0) for a in attempts] == [
            ("p0", "transport", False),
            ("p1", "result", True),
        ]


REFUSED: dict[str, tuple[bytes, int, object]] = {
    "no JSON": (b"{nope", -32700, None),
    "empty": (b"", -32700, None),
    "a number": (b"7", -32600, None),
    "no method": (b'{"id":3}', -32600, 3),
    "method is no string": (b'{"id":3,"method":5}', -32600, 3),
    "params are a string": (b'{"id":3,"method":"eth_call","params":"x"}', -32602, 3),
    "id is a list": (b'{"id":[1],"method":"eth_call"}', -32600, None),
    "method in other case too": (b'{"id":3,"method":"eth_call","Method":"eth_sendRawTransaction"}', -32600, 3),
    "empty batch": (b"[]", -32600, None),
    "two values": (QUESTION + QUESTION, -32700, None),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_malformed_request_gets_the_standard_error_and_an_event(name: str, tmp_path: Path) -> None:
    body, code, rpc_id = REFUSED[name]
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        answer = json.loads((await proxy.post(body))[2])

        assert (answer["error"]["code"], answer["id"]) == (code, rpc_id)
        assert nodes[0].calls == []
        assert [event.outcome for event in proxy.requests()] == ["invalid"]


async def test_limits_and_addresses_are_answered_by_status(tmp_path: Path) -> None:
    limits = {"maxRequestBytes": 1000}
    async with upstreams(None) as nodes, running(configuration(nodes, limits=limits), tmp_path) as proxy:
        assert (await proxy.post(b"x" * 1001))[0] == 413
        assert (await proxy.post(QUESTION, "Content-Type: text/html\r\n"))[0] == 415
        status, _, body = await proxy.post(QUESTION, path="/main/evm/1")
        assert status == 404
        assert b"/main/evm/31337" in body
        assert (await proxy.post(QUESTION, "Origin: http://evil.example\r\n"))[0] == 403
        assert (await proxy.send(b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")).startswith(
            b"HTTP/1.1 403"
        )
        assert (await proxy.send(b"\x16\x03\x01 hello\r\n\r\n")).startswith(b"HTTP/1.1 400")
        assert nodes[0].calls == []


async def test_bytes_in_flight_are_bounded_and_given_back(tmp_path: Path) -> None:
    """While a stalled upstream holds a body, a large one is refused; after the answers nothing is held."""
    limits = {"maxInFlightBytes": 2000}
    body = QUESTION[:-1] + b" " * 1500 + b"}"
    async with upstreams(lambda _: None) as nodes, running(configuration(nodes, limits=limits), tmp_path) as proxy:
        first = asyncio.ensure_future(proxy.post(body))
        await proxy.until(lambda: len(nodes[0].calls) == 1)

        assert proxy.service.in_flight_bytes == len(body)
        assert (await proxy.post(body))[0] == 503
        assert (await first)[0] == 200
        await proxy.until(lambda: proxy.service.in_flight_bytes == 0)


async def test_pipelined_and_half_sent_requests_are_answered_in_order(tmp_path: Path) -> None:
    """Three requests cut at every odd place come back as three answers, in order."""
    bodies = [QUESTION.replace(b'"id":7', b'"id":%d' % i) for i in range(3)]
    stream = b"".join(raw(body, close=i == 2) for i, body in enumerate(bodies))
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        for cut in range(1, len(stream), 37):
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.service.port)
            writer.write(stream[:cut])
            await asyncio.sleep(0.002)
            writer.write(stream[cut:])
            text = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
            writer.close()

            assert text.count(b"HTTP/1.1 200") == 3
            assert [text.index(b'"id":%d' % i) for i in range(3)] == sorted(
                text.index(b'"id":%d' % i) for i in range(3)
            )


async def test_a_batch_is_split_answered_in_order_and_recorded_by_element(tmp_path: Path) -> None:
    batch = b'[%b, {"id":"x"}, {"jsonrpc":"2.0","method":"eth_getCode","params":[]}, %b]' % (
        QUESTION,
        QUESTION.replace(b"7", b'"y"', 1),
    )
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        status, _, body = await proxy.post(batch)

        assert status == 200
        assert [answer["id"] for answer in json.loads(body)] == [7, "x", "y"]
        events = proxy.requests()
        assert len(events) == 4
        assert len({event.batch_id for event in events}) == 1


async def test_gzip_is_undone_from_clients_and_made_for_them(tmp_path: Path) -> None:
    big = {"data": "ab" * 2000}
    packed = gzip.compress(QUESTION)
    async with upstreams(lambda q: result(q, big)) as nodes, running(configuration(nodes), tmp_path) as proxy:
        _, headers, body = await proxy.post(packed, "Content-Encoding: gzip\r\nAccept-Encoding: gzip\r\n")

        assert headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(body))["result"] == big


async def test_fallbacks_are_reached_only_when_every_primary_missed(tmp_path: Path) -> None:
    block = {"number": "0x32", "hash": "0x1"}
    scripts: list[Script] = [lambda q: result(q, None), lambda q: result(q, None), lambda q: result(q, block)]
    async with upstreams(*scripts) as nodes, running(configuration(nodes[:2], nodes[2:]), tmp_path) as proxy:
        answer = await proxy.call("eth_getBlockByNumber", ["0x32", False])

        assert answer["result"] == block
        [event] = proxy.requests()
        assert event.escaped
        assert [(a.upstream, a.outcome, a.cause) for a in event.attempts] == [
            ("p0", "empty", ""),
            ("p1", "empty", "empty_at_head"),
            ("f0", "result", "empty_at_head"),
        ]


async def test_a_miss_above_every_head_is_the_answer(tmp_path: Path) -> None:
    scripts: list[Script] = [lambda q: result(q, None)] * 3
    async with upstreams(*scripts) as nodes, running(configuration(nodes[:2], nodes[2:]), tmp_path) as proxy:
        answer = await proxy.call("eth_getBlockByNumber", ["0x65", False])

        assert answer["result"] is None
        [event] = proxy.requests()
        assert event.beyond_head
        assert [len(node.calls) for node in nodes] == [1, 0, 0]


async def test_a_revert_is_served_and_tried_nowhere_else(tmp_path: Path) -> None:
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted","data":"0x08c379a0"}}'
    async with upstreams(lambda _: http(error), None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        answer = await proxy.call("eth_call", [{"to": "0x1"}, "0x1"])

        assert answer["error"]["code"] == 3
        [event] = proxy.requests()
        assert (event.outcome, event.error_class, len(nodes[1].calls)) == ("verdict", "revert", 0)


@pytest.mark.parametrize(
    ("lists", "served"),
    [
        ({"ignoreMethods": ["trace_*"]}, ["eth_call", "eth_getLogs", "debug_traceCall"]),
        ({"allowMethods": ["eth_*"]}, ["eth_call", "eth_getLogs"]),
        ({"ignoreMethods": ["*"], "allowMethods": ["eth_call", "trace_block"]}, ["eth_call", "trace_block"]),
        ({"ignoreMethods": ["eth_*"], "allowMethods": ["eth_call"]}, ["eth_call", "trace_block", "debug_traceCall"]),
        ({}, ["eth_call", "eth_getLogs", "trace_block", "debug_traceCall"]),
    ],
    ids=["ignored", "allowed alone", "all ignored but", "allow wins", "neither"],
)
async def test_a_project_serves_the_methods_it_lists(lists: dict[str, Any], served: list[str], tmp_path: Path) -> None:
    """The others get -32601, alone and in a batch; no upstream hears of them, primary or shadow."""
    names = ["eth_call", "eth_getLogs", "trace_block", "debug_traceCall"]
    batch = [{"jsonrpc": "2.0", "id": name, "method": name, "params": []} for name in names]
    async with (
        upstreams(None, None) as nodes,
        running(configuration(nodes[:1], None, nodes[1:], project=lists), tmp_path) as proxy,
    ):
        alone = [await proxy.call(name, rpc_id=name) for name in names]
        together = json.loads((await proxy.post(json.dumps(batch).encode()))[2])
        await proxy.until(lambda: len(proxy.mirrored()) == 2 * len(served))

        assert alone == together
        assert [answer["id"] for answer in alone if "result" in answer] == served
        assert {answer["error"]["code"] for answer in alone if "error" in answer} <= {-32601}
        assert [{call["method"] for call in node.calls} for node in nodes] == [set(served)] * 2
        refused = [event for event in proxy.requests() if event.outcome == "rejected"]
        assert {event.method for event in refused} == set(names) - set(served)
        assert {(event.error_class, event.reject_reason) for event in refused} <= {
            ("method_not_found", "method not served by the project")
        }


async def test_shadows_get_a_copy_after_the_answer_and_equal_bodies_do_not_travel(tmp_path: Path) -> None:
    scripts: list[Script | None] = [None, None, lambda q: result(q, "0x2b")]
    async with upstreams(*scripts) as nodes, running(configuration(nodes[:1], shadows=nodes[1:]), tmp_path) as proxy:
        await proxy.call("eth_getBalance", ["0x1", "0x10"])
        await proxy.until(lambda: len(proxy.mirrored()) == 2)

        same, other = sorted(proxy.mirrored(), key=lambda event: event.shadow_upstream)
        assert same.primary.digest == same.shadow.digest
        assert bytes(same.primary.body) == bytes(same.shadow.body) == b""
        assert (bytes(other.primary.body), bytes(other.shadow.body)) == (b'"0x2a"', b'"0x2b"')
        assert proxy.requests()[0].shadows == {"s0": "mirrored", "s1": "mirrored"}
        assert nodes[1].calls == nodes[0].calls


async def test_writes_are_never_mirrored_and_sampled_out_ones_are_recorded(tmp_path: Path) -> None:
    config = configuration
    async with upstreams(None, None) as nodes:
        async with running(config(nodes[:1], shadows=nodes[1:]), tmp_path / "a") as proxy:
            await proxy.call("eth_sendRawTransaction", ["0x1"])

            assert proxy.requests()[0].shadows == {"s0": "write"}
        async with running(config(nodes[:1], shadows=nodes[1:], shadow={"sampleRate": 0}), tmp_path / "b") as proxy:
            await proxy.call("eth_getBalance", ["0x1", "0x1"])

            assert proxy.requests()[0].shadows == {"s0": "sampled_out"}
        assert nodes[1].calls == []


async def test_a_write_that_was_refused_and_then_lost_is_not_called_refused(tmp_path: Path) -> None:
    """The second upstream may have taken it: the client hears of the loss, and nobody else is asked."""
    limit = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"rate limit exceeded"}}'
    scripts: list[Script | None] = [lambda _: http(limit, status=429), lambda _: None, None]
    async with upstreams(*scripts) as nodes, running(configuration(nodes), tmp_path) as proxy:
        answer = await proxy.call("eth_sendRawTransaction", ["0x1"])

        assert answer["error"]["data"]["class"] == "timeout"
        assert [len(node.calls) for node in nodes] == [1, 1, 0]


async def test_a_shadow_that_never_answers_is_bounded_and_holds_up_nobody(tmp_path: Path) -> None:
    limits = {"shadowInFlight": 3}
    async with upstreams(None, lambda _: None) as nodes:
        config = configuration(nodes[:1], shadows=nodes[1:], limits=limits)
        async with running(config, tmp_path) as proxy:
            for i in range(10):
                assert (await proxy.call("eth_getBalance", ["0x1", "0x1"], i))["result"] == "0x2a"
            decisions = [event.shadows["s0"] for event in proxy.requests()]
            n_mirrored = decisions.count("mirrored")
            await proxy.until(lambda: len(proxy.mirrored()) == n_mirrored)

            assert decisions[:3] == ["mirrored"] * 3
            assert "shed" in decisions
            assert {event.attempt.error_class for event in proxy.mirrored()} == {"timeout"}
            assert proxy.service.networks[0].shadows[0].in_flight == 0


async def test_a_secret_is_needed_where_one_is_configured_and_names_the_user(tmp_path: Path) -> None:
    secret = "s3cret-value"
    auth = {
        "strategies": [
            {"type": "secret", "secret": {"id": "alice", "sha256": hashlib.sha256(secret.encode()).hexdigest()}}
        ]
    }
    async with upstreams(None) as nodes, running(configuration(nodes, project={"auth": auth}), tmp_path) as proxy:
        assert (await proxy.post(QUESTION))[0] == 401
        assert (await proxy.post(QUESTION, "Authorization: Bearer wrong\r\n"))[0] == 401
        assert (await proxy.post(QUESTION, f"Authorization: Bearer {secret}\r\n"))[0] == 200
        assert (await proxy.post(QUESTION, path=f"{PATH}?secret={secret}"))[0] == 200

        assert [event.user for event in proxy.requests()] == ["alice", "alice"]
        assert secret not in "".join(str(event) for event in proxy.events())


async def test_an_upstream_of_another_chain_never_serves(tmp_path: Path) -> None:
    async with upstreams(None, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        network = proxy.service.networks[0]
        network.by_id["p0"].is_verified = False
        network.replan()
        answer = await proxy.call("eth_getBalance", ["0x1", "0x1"])

        assert answer["result"] == "0x2a"
        assert proxy.requests()[0].upstream == "p1"


async def test_health_and_metrics_tell_the_state(tmp_path: Path) -> None:
    async with upstreams(None, None) as nodes, running(configuration(nodes[:1], shadows=nodes[1:]), tmp_path) as proxy:
        await proxy.call("eth_getBalance", ["0x1", "0x1"])
        health = await proxy.send(b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        metrics = await proxy.metrics()

        assert json.loads(health.partition(b"\r\n\r\n")[2])["networks"]["main/evm:31337"]["latest"] == 100
        assert 'gnomon_requests_total{network="evm:31337",outcome="result"} 1\n' in metrics
        assert 'gnomon_head_blocks{axis="finalized",network="evm:31337",upstream="p0"} 90\n' in metrics


async def test_every_call_to_an_upstream_is_an_event_polls_included(tmp_path: Path) -> None:
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        kinds = {(event.attempt.kind, event.attempt.method) for event in proxy.internal()}

        assert kinds >= {("chain_check", "eth_chainId"), ("head_poll", "eth_getBlockByNumber")}
        sequence = [int(event.event_id.partition(":")[2]) for event in proxy.events()]
        assert sequence == list(range(len(sequence)))


@pytest.mark.parametrize("chain_id", ["0x" + "f" * 5000, "0x", "-1", None, 10**30, "9" * 5000])
async def test_a_chain_id_of_any_shape_does_not_end_the_polls(chain_id: object, tmp_path: Path) -> None:
    """The upstream is left out, and back as soon as it says the right one."""
    async with upstreams(None, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        network = proxy.service.networks[0]
        own = nodes[0]._answer
        nodes[0]._answer = lambda request: (  # type: ignore[method-assign]
            result(request, chain_id) if request["method"] == "eth_chainId" else own(request)
        )
        network.by_id["p0"].is_verified = False
        network.replan()
        await proxy.until(lambda: network.by_id["p0"].chain_error != "")
        del nodes[0]._answer
        await proxy.until(lambda: network.by_id["p0"].is_verified)

        assert proxy.service.errors.total() == 0


async def test_a_head_that_is_no_block_number_is_nobodys(tmp_path: Path) -> None:
    """Rows hold 64 bits: a larger number would make every event of the network unreadable for them."""
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        nodes[0].latest = 1 << 70
        n = len(proxy.internal())
        await proxy.until(lambda: len(proxy.internal()) > n + 6)

        assert proxy.service.networks[0].book.latest == 100


async def test_what_is_under_way_at_the_end_of_the_drain_is_recorded_as_cancelled(tmp_path: Path) -> None:
    """First calls, those of a batch, notifications, and requests that had to go on elsewhere: each has its event."""
    async with upstreams(lambda _: None, lambda _: None) as nodes:
        config = json.loads(configuration(nodes, timeout="2s"))
        config["gnomon"]["proxy"]["shutdown"] = "100ms"
        writer = Writer(str(tmp_path), segment_bytes=8 << 20, max_bytes=64 << 20)
        service = Service(loads(json.dumps(config), environment={}), writer)
        proxy = Proxy(service, tmp_path)
        await service.start()
        await proxy.until(lambda: all(u.is_verified for u in service.networks[0].upstreams))
        early = asyncio.ensure_future(proxy.send(raw(QUESTION)))
        await proxy.until(lambda: len(nodes[1].calls) == 1)
        late = [
            asyncio.ensure_future(proxy.send(raw(body)))
            for body in (QUESTION, b"[%b,%b]" % (QUESTION, QUESTION), QUESTION.replace(b'"id":7,', b""))
        ]
        await proxy.until(lambda: len(nodes[0].calls) == 5)
        await service.drain()
        writer.close()

        assert [event.outcome for event in proxy.requests()] == ["cancelled"] * 5
        attempts = sorted([a.outcome for a in event.attempts] for event in proxy.requests())
        assert attempts == [["cancelled"]] * 4 + [["timeout", "cancelled"]]
        assert service.errors.total() == 0
        await asyncio.gather(early, *late, return_exceptions=True)


async def test_a_body_that_was_lost_with_its_event_travels_again(tmp_path: Path) -> None:
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        emitter = proxy.service.emitter
        store, emitter.store = emitter.store, lambda data: -1
        await proxy.call("eth_getBalance", ["0x1", "0x10"])
        emitter.store = store
        await proxy.call("eth_getBalance", ["0x1", "0x10"])

        [event] = proxy.requests()
        assert bytes(event.answer.body) == b'"0x2a"'
        assert emitter.n_dropped > 0


async def test_an_upstream_that_is_one_answer_behind_answers_nobody_with_anothers(tmp_path: Path) -> None:
    """After an answer that was not the call's, its own may follow and pass for the next one's: new connection."""
    seen: list[int] = []

    def script(request: dict[str, Any]) -> bytes:
        seen.append(nodes[0].n_connections)
        if len(seen) == 1:
            return http(b'{"jsonrpc":"2.0","id":"nobody","result":"0x1"}')
        return result(request, "late" if seen[-1] == seen[0] else request["params"][0])

    async with upstreams(script, None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        answers = [(await proxy.call("eth_getBalance", [str(i), "0x1"]))["result"] for i in range(3)]

        assert answers == ["0x2a", "1", "2"]


async def test_a_drain_waits_for_a_reader_that_has_not_taken_its_answer_yet(tmp_path: Path) -> None:
    big = "ab" * (8 << 20)
    async with upstreams(lambda q: result(q, big)) as nodes, running(configuration(nodes), tmp_path) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.service.port)
        writer.write(raw(QUESTION, close=False))
        await reader.readuntil(b"\r\n\r\n")
        drained = asyncio.ensure_future(proxy.service.drain())
        n = 0
        while piece := await asyncio.wait_for(reader.read(1 << 20), PATIENCE_SECONDS):
            n += len(piece)
            await asyncio.sleep(0.01)
        writer.close()
        await drained

        assert n > len(big)


async def test_an_answer_that_consumers_cannot_read_is_served_and_does_not_travel(tmp_path: Path) -> None:
    """A trace of 800 nested calls reaches the client; its events stay readable, with digest and head of the text."""
    deep = b'{"jsonrpc":"2.0","id":7,"result":%b}' % (b'{"calls":[' * 800 + b"]}" * 800)
    scripts: list[Script] = [lambda _: http(deep), lambda q: result(q, "other")]
    async with upstreams(*scripts) as nodes, running(configuration(nodes[:1], shadows=nodes[1:]), tmp_path) as proxy:
        body = (await proxy.post(QUESTION))[2]
        await proxy.until(lambda: len(proxy.mirrored()) == 1)

        assert body == deep
        [event], [pair] = proxy.requests(), proxy.mirrored()
        for answer in (event.answer, pair.primary):
            assert (answer.kind, len(answer.digest), bytes(answer.body)) == ("result", 32, b"")
            assert answer.body_base64 != ""


async def test_a_node_that_cannot_tell_its_finalized_block_for_a_while_is_asked_on(tmp_path: Path) -> None:
    """Just started or rate-limited it errs many times in a row; only one that does not know the word is let be."""
    errors = {"finalized": b'{"code":-39001,"message":"finalized block not found"}', "safe": b'{"code":-32602}'}
    asked: list[str] = []
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        own = nodes[0]._answer

        def answer(request: dict[str, Any]) -> bytes | None:
            tag = request["params"][0] if request["params"] else ""
            asked.append(tag)
            if tag not in errors or (tag == "finalized" and asked.count(tag) > 6):
                return own(request)
            return http(b'{"jsonrpc":"2.0","id":1,"error":%b}' % errors[tag])

        nodes[0]._answer = answer  # type: ignore[method-assign]
        nodes[0].finalized = 95
        await proxy.until(lambda: proxy.service.networks[0].book.finalized == 95)

        assert asked.count("finalized") > 6
        assert asked.count("safe") == 3


async def test_a_hash_of_megabytes_is_not_kept(tmp_path: Path) -> None:
    async with upstreams(None) as nodes, running(configuration(nodes), tmp_path) as proxy:
        block = {"number": "0x65", "hash": "0x" + "1" * 2_000_000, "parentHash": "0x" + "2" * 2_000_000}
        nodes[0]._answer = lambda request: result(request, block)  # type: ignore[method-assign]
        await proxy.until(lambda: proxy.service.networks[0].book.latest == 101)

        assert max(len(str(event)) for event in proxy.events()) < 10_000


async def test_who_waits_for_a_connection_is_not_sent_on_one_that_is_about_to_be_dropped(tmp_path: Path) -> None:
    """A second sending would be a second call to pay for."""
    answers = iter([lambda _: http(b"<html>busy</html>")])

    async with upstreams(lambda request: next(answers, lambda q: result(q, "0x1"))(request)) as nodes:
        config = configuration(nodes, limits={"maxUpstreamConnections": 1})
        async with running(config, tmp_path) as proxy:
            got = await asyncio.gather(*(proxy.call("eth_getBalance", ["0x1", "0x10"], rpc_id=n) for n in range(4)))

            assert sorted("result" in answer for answer in got) == [False, True, True, True]
            assert len(nodes[0].calls) == 4
