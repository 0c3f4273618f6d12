"""What keeps calls from an upstream: breakers, quotas, Retry-After, syncing; and what makes an answer none."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gnomon.events.contract import BreakerTransition
from proxy.response_heads import retry_after
from tests.proxy.scripted import Proxy, Script, configuration, http, result, running, upstreams

RELAYED = "X-Ssr-Cache: rpcError\r\n"
BREAKER = {"breaker": {"threshold": 3, "openFor": "10s"}}
WINDOW = {
    "failsafe": [
        {
            "matchMethod": "eth_get*",
            "circuitBreaker": {
                "failureThresholdCount": 2,
                "failureThresholdCapacity": 4,
                "halfOpenAfter": "10s",
                "successThresholdCount": 1,
                "successThresholdCapacity": 1,
            },
        }
    ]
}


def refused(request: dict[str, Any], code: int = -32000, message: str = "boom", **more: Any) -> bytes:
    body = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}
    return http(json.dumps(body).encode(), **more)


def relay(request: dict[str, Any]) -> bytes:
    """Answer as a relay does that passes a node's error on."""
    return refused(request, -32000, "the node says no", status=502, headers=RELAYED)


def bad_gateway(_: dict[str, Any]) -> bytes:
    return http(b"<html>502</html>", status=502)


def transitions(proxy: Proxy) -> list[tuple[str, str, str, str]]:
    """Return upstream, states and reason of each."""
    return [
        (event.upstream, event.from_state, event.to_state, event.reason)
        for event in proxy.events()
        if isinstance(event, BreakerTransition)
    ]


async def ask(proxy: Proxy, n: int, method: str = "eth_getBalance") -> list[dict[str, Any]]:
    """Ask a question so many times, one after the other."""
    return [await proxy.call(method, ["0x1", "0x10"]) for _ in range(n)]


async def test_four_relays_in_a_row_never_open_the_breaker(tmp_path: Path) -> None:
    """Each falls back to the next upstream, and the reason is counted apart."""
    async with (
        upstreams(relay, None) as nodes,
        running(configuration(nodes, primary=BREAKER), tmp_path) as proxy,
    ):
        answers = await ask(proxy, 4)

        assert [answer["result"] for answer in answers] == ["0x2a"] * 4
        assert len(nodes[0].calls) == 4
        assert transitions(proxy) == []
        assert {(a.upstream, a.error_class) for r in proxy.requests() for a in r.attempts} == {
            ("p0", "rpcerror"),
            ("p1", ""),
        }


async def test_a_relay_clears_a_count_that_real_misses_began(tmp_path: Path) -> None:
    """Two misses, a relay, two misses: not three in a row."""
    script = iter([bad_gateway, bad_gateway, relay, bad_gateway, bad_gateway, relay])
    async with (
        upstreams(lambda request: next(script)(request), None) as nodes,
        running(configuration(nodes, primary=BREAKER), tmp_path) as proxy,
    ):
        await ask(proxy, 6)

        assert len(nodes[0].calls) == 6
        assert transitions(proxy) == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (bad_gateway, "status"),
        (lambda _: http(b"<html>", status=504), "status"),
        (lambda request: refused(request, status=502, headers="X-Ssr-Cache: MISS\r\n", code=-32603), "internal"),
        (lambda _: http(b"<html>ok</html>"), "parse"),
        (lambda _: b"", "transport"),
        (lambda _: None, "timeout"),
    ],
    ids=["502", "504", "502-untagged", "html", "closed", "silent"],
)
async def test_real_misses_open_it_and_the_others_serve(script: Script, reason: str, tmp_path: Path) -> None:
    """After the third in a row nobody calls it; skipped calls are counted, and the event says why."""
    async with (
        upstreams(script, None) as nodes,
        running(configuration(nodes, primary=BREAKER, timeout="60ms"), tmp_path) as proxy,
    ):
        answers = await ask(proxy, 5)

        assert [answer["result"] for answer in answers] == ["0x2a"] * 5
        assert [a.upstream for r in proxy.requests() for a in r.attempts].count("p0") == 3
        assert transitions(proxy) == [("p0", "closed", "open", reason)]
        last = proxy.requests()[-1]
        assert last.n_skipped_open == 1
        assert [(a.upstream, a.cause) for a in last.attempts] == [("p1", "breaker_open")]


@pytest.mark.parametrize("is_well_again", [True, False])
async def test_a_trial_decides(is_well_again: bool, tmp_path: Path) -> None:
    """After its time one call goes through: a success closes the breaker, a failure opens it again."""
    async with (
        upstreams(bad_gateway, None) as nodes,
        running(configuration(nodes, primary={"breaker": {"threshold": 2, "openFor": "200ms"}}), tmp_path) as proxy,
    ):
        await ask(proxy, 3)
        if is_well_again:
            nodes[0].script = lambda request: result(request, "0x1")
        await asyncio.sleep(0.25)
        answers = await ask(proxy, 3)

        end = ("p0", "half_open", "closed", "") if is_well_again else ("p0", "half_open", "open", "status")
        assert transitions(proxy) == [("p0", "closed", "open", "status"), ("p0", "open", "half_open", ""), end]
        assert [answer["result"] for answer in answers] == (["0x1"] * 3 if is_well_again else ["0x2a"] * 3)
        assert len(nodes[0].calls) == (5 if is_well_again else 3)


async def test_misses_reverts_and_refusals_are_not_held_against_it(tmp_path: Path) -> None:
    """An answer of the chain is an answer; a question that this node cannot answer is none of its failures."""
    script = iter(["0x", None, 3, -32601, -32005, -32000] * 2)

    def answer(request: dict[str, Any]) -> bytes:
        what = next(script)
        if isinstance(what, int):
            return refused(request, what, {3: "execution reverted", -32000: "missing trie node"}.get(what, "no"))
        return result(request, what)

    async with (
        upstreams(answer, None) as nodes,
        running(configuration(nodes, primary={"breaker": {"threshold": 1}}), tmp_path) as proxy,
    ):
        await ask(proxy, 12, "eth_call")

        assert len(nodes[0].calls) == 12
        assert transitions(proxy) == []


async def test_the_window_is_kept_by_group_of_methods(tmp_path: Path) -> None:
    """eRPC's circuitBreaker of a `failsafe` entry holds for the methods that it matches."""
    async with (
        upstreams(bad_gateway, None) as nodes,
        running(configuration(nodes, primary=WINDOW), tmp_path) as proxy,
    ):
        await ask(proxy, 4)
        await ask(proxy, 4, "eth_call")

        assert len(nodes[0].calls) == 2 + 4
        [event] = [event for event in proxy.events() if isinstance(event, BreakerTransition)]
        assert (event.scope, event.counters) == ("eth_get*", {"calls": 2, "misses": 2, "skipped": 0, "status": 2})


async def test_a_relayed_error_is_served_if_nobody_else_answers(tmp_path: Path) -> None:
    """Rather than an error of our own."""
    async with (
        upstreams(relay, bad_gateway) as nodes,
        running(configuration(nodes), tmp_path) as proxy,
    ):
        answer = await proxy.call("eth_getBalance")

        assert answer["error"]["message"] == "the node says no"
        assert proxy.requests()[0].error_class == "rpcerror"


async def test_what_tells_a_relay_can_be_set_for_an_upstream(tmp_path: Path) -> None:
    """Status, header and value; the usual ones mean nothing there then."""
    own = {"relayError": {"status": 599, "header": "X-Relay", "value": "Node"}, "breaker": {"threshold": 1}}
    async with (
        upstreams(lambda q: refused(q, -32603, status=599, headers="x-relay: NODE\r\n"), None) as nodes,
        running(configuration(nodes, primary=own), tmp_path) as proxy,
    ):
        await ask(proxy, 2)
        assert transitions(proxy) == []
        nodes[0].script = lambda q: refused(q, -32603, status=502, headers=RELAYED)
        await ask(proxy, 1)

        assert transitions(proxy) == [("p0", "closed", "open", "internal")]


async def test_a_quota_error_holds_the_upstream_and_says_so(tmp_path: Path) -> None:
    """Apart from outages: at once, for a minute, with an event; who asks meanwhile goes on to the next."""
    async with (
        upstreams(lambda q: refused(q, -32005, "daily request count exceeded, request rate limited"), None) as nodes,
        running(configuration(nodes), tmp_path) as proxy,
    ):
        nodes[0].script = lambda q: refused(q, -32000, "monthly quota exceeded, please upgrade your plan", status=402)
        answers = await ask(proxy, 3)

        assert [answer["result"] for answer in answers] == ["0x2a"] * 3
        assert len(nodes[0].calls) == 1
        assert transitions(proxy) == [("p0", "closed", "open", "quota")]
        assert [a.cause for r in proxy.requests() for a in r.attempts] == ["", "quota", "quota", "quota"]


async def test_retry_after_is_honoured(tmp_path: Path) -> None:
    """A second's rest asked for is a second's rest; without the header the next request asks again."""
    async with (
        upstreams(lambda _: http(b"slow", status=429, headers="Retry-After: 1\r\n"), None) as nodes,
        running(configuration(nodes), tmp_path) as proxy,
    ):
        await ask(proxy, 3)
        assert len(nodes[0].calls) == 1
        nodes[0].script = lambda request: result(request, "0x1")
        await proxy.until(lambda: len(transitions(proxy)) == 2)
        answers = await ask(proxy, 2)

        assert [answer["result"] for answer in answers] == ["0x1"] * 2
        assert transitions(proxy) == [
            ("p0", "closed", "open", "rate_limited"),
            ("p0", "open", "closed", "rate_limited"),
        ]


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0), (" 7 ", 7.0), ("", 0.0), ("soon", 0.0), ("-5", 0.0), ("999999", 3600.0), ("1.5", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
)  # fmt: skip
def test_retry_after_is_read_in_both_forms(said: str, seconds: float) -> None:
    """Seconds, or a date; what cannot be read asks for nothing."""
    assert retry_after({"retry-after": said}, now=10.0) == seconds


async def test_an_answer_without_what_it_must_have_is_none(tmp_path: Path) -> None:
    """The next upstream is asked, the reason is `validate`, and the breaker counts it."""
    primary = {"validators": {"eth_getBlockByNumber": ["hash", "transactions.*.hash"]}, "breaker": {"threshold": 2}}
    whole = {"hash": "0x1", "transactions": [{"hash": "0x2"}]}
    parts: list[object] = [{**whole, "hash": None}, {**whole, "transactions": [{"hash": "0x2"}, {}]}, whole]
    answers = iter(parts)
    async with (
        upstreams(lambda request: result(request, next(answers)), lambda request: result(request, whole)) as nodes,
        running(configuration(nodes, primary=primary), tmp_path) as proxy,
    ):
        got = [await proxy.call("eth_getBlockByNumber", ["0x10", True]) for _ in range(3)]

        assert [answer["result"] for answer in got] == [whole] * 3
        assert [(a.upstream, a.error_class) for r in proxy.requests() for a in r.attempts] == [
            ("p0", "validate"),
            ("p1", ""),
            ("p0", "validate"),
            ("p1", ""),
            ("p1", ""),
        ]
        assert transitions(proxy) == [("p0", "closed", "open", "validate")]


async def test_a_syncing_upstream_is_left_out_where_that_is_wanted(tmp_path: Path) -> None:
    """`skipWhenSyncing`; it is asked again once it has caught up."""
    syncing: list[object] = [{"currentBlock": "0x1", "highestBlock": "0x2"}]

    def script(request: dict[str, Any]) -> bytes:
        return result(request, syncing[0] if request["method"] == "eth_syncing" else "0x1")

    config = json.loads(configuration([]))
    async with upstreams(script, None) as nodes:
        config = json.loads(configuration(nodes))
        for upstream in config["projects"][0]["upstreams"]:
            upstream["evm"]["skipWhenSyncing"] = True
        nodes[1].script = lambda q: result(q, False if q["method"] == "eth_syncing" else "0x2a")
        async with running(json.dumps(config), tmp_path) as proxy:
            state = proxy.service.networks[0].by_id["p0"]
            await proxy.until(lambda: state.is_syncing)
            assert (await proxy.call("eth_getBalance"))["result"] == "0x2a"
            syncing[0] = False
            await proxy.until(lambda: not state.is_syncing)
            assert (await proxy.call("eth_getBalance"))["result"] == "0x1"


async def test_breakers_tell_what_they_counted(tmp_path: Path) -> None:
    """In the metrics, and in a line for each that has news."""
    async with (
        upstreams(bad_gateway, None) as nodes,
        running(configuration(nodes, primary=BREAKER), tmp_path) as proxy,
    ):
        await ask(proxy, 4)
        metrics = await proxy.metrics()
        gate = proxy.service.networks[0].by_id["p0"].gates["*"]
        lines = [gate.report(), gate.report()]

        labels = '{network="evm:31337",upstream="p0",methods="*"'
        assert "gnomon_breaker_state" + labels + "} 2" in metrics
        assert "gnomon_breaker_reasons_total" + labels + ',reason="status"} 3' in metrics
        assert lines == [
            "breaker network=evm:31337 upstream=p0 methods=* state=open calls=3 misses=3 skipped=1 status=3", ""
        ]  # fmt: skip
