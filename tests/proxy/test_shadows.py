"""Mirrored calls: who gets one, what of it reaches whom, what it may cost."""

import asyncio
import json
import socket
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gnomon.config.model import Limits
from gnomon.events.contract import PrimaryResponse, ShadowResponse
from proxy import allowances, mirrors
from proxy.core import answers
from tests.proxy.scripted import Proxy, Script, configuration, http, result, running, upstreams

ALCHEMY = {"vendor": "alchemy"}
"""Its shipped book: an eth_getBalance is 20 units."""
A_CALL_USD = "0.0000105"


def refused(request: dict[str, Any], code: int = -32000, message: str = "boom", status: int = 200) -> bytes:
    body = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}
    return http(json.dumps(body).encode(), status=status)


def with_shadow(config: str, **members: Any) -> str:
    """Return a configuration with members added to each shadow upstream itself."""
    document = json.loads(config)
    for upstream in document["projects"][0]["upstreams"]:
        if "shadow" in upstream:
            upstream.update(members)
    return json.dumps(document)


def decisions(proxy: Proxy) -> list[dict[str, str]]:
    return [dict(event.shadows) for event in proxy.requests()]


def counted(proxy: Proxy, shadow: str = "s0") -> Counter[str]:
    return Counter(event.shadows[shadow] for event in proxy.requests())


async def ask(proxy: Proxy, n: int = 1, method: str = "eth_getBalance", block: str = "0x10") -> None:
    for i in range(n):
        await proxy.call(method, [f"0x{i:x}", block])


async def settled(proxy: Proxy) -> list[ShadowResponse]:
    """Wait until no mirrored call is under way; return their ends."""
    await proxy.until(lambda: not proxy.service.mirrors)
    return proxy.mirrored()


# --- every outcome, and none for the client ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        (None, "result"),
        (lambda q: result(q, None), "result"),
        (lambda q: refused(q, 3, "execution reverted"), "verdict"),
        (lambda q: refused(q), "error"),
        (lambda _: http(b"<html>", status=502), "error"),
        (lambda _: b"", "error"),
        (lambda _: None, "error"),
    ],
    ids=["result", "empty", "revert", "error", "502", "closed", "silent"],
)
async def test_every_outcome_is_mirrored(script: Script | None, outcome: str, tmp_path: Path) -> None:
    """Errors too: the shadow is asked the same question, and the event has both sides."""
    async with upstreams(script, None) as nodes:
        config = configuration(nodes[:1], shadows=nodes[1:], timeout="60ms")
        async with running(config, tmp_path) as proxy:
            await ask(proxy)
            [pair] = await settled(proxy)

            assert decisions(proxy) == [{"s0": "mirrored"}]
            assert (pair.primary_outcome, pair.shadow.kind) == (outcome, "result")
            assert nodes[1].calls[0]["params"] == ["0x0", "0x10"]
            assert pair.request_id == proxy.requests()[0].request_id


async def test_a_shadow_is_asked_where_no_primary_is_healthy(tmp_path: Path) -> None:
    async with upstreams(lambda q: refused(q, -32000, "quota exceeded", 402), None) as nodes:
        async with running(configuration(nodes[:1], shadows=nodes[1:]), tmp_path) as proxy:
            await ask(proxy, 2)
            pairs = await settled(proxy)

            assert len(nodes[0].calls) == 1
            assert [pair.primary_upstream for pair in pairs] == ["p0", ""]
            assert [pair.shadow.kind for pair in pairs] == ["result"] * 2


async def test_the_client_has_its_answer_before_the_shadow_is_asked(tmp_path: Path) -> None:
    """A shadow that never answers costs the client nothing; its call ends with its own timeout."""
    async with upstreams(None, lambda _: None) as nodes:
        async with running(configuration(nodes[:1], shadows=nodes[1:], timeout="80ms"), tmp_path) as proxy:
            answer = await proxy.call("eth_getBalance", ["0x1", "0x10"])
            assert answer["result"] == "0x2a"
            [pair] = await settled(proxy)

            assert (pair.attempt.outcome, pair.shadow.kind) == ("timeout", "none")
            assert 80_000 <= pair.attempt.duration_us < 8_000_000  # not the 10 s that shadows have by default


async def test_a_client_that_leaves_does_not_cancel_the_copy(tmp_path: Path) -> None:
    """Nor does it keep one from being made: the question was dispatched, and its answer can be compared."""
    held: list[dict[str, Any]] = []

    def late(request: dict[str, Any]) -> None:
        held.append(request)

    async with upstreams(late, None) as nodes:
        nodes[0].script = late
        async with running(configuration(nodes[:1], shadows=nodes[1:], timeout="2s"), tmp_path) as proxy:
            _, writer = await asyncio.open_connection("127.0.0.1", proxy.service.port)
            body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1","0x10"]}'
            head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await proxy.until(lambda: len(held) == 1)
            # A reset, not an end: who has only said its last word still gets its answer.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            await proxy.until(lambda: not proxy.service.clients)
            for upstream_writer in nodes[0]._writers:
                upstream_writer.write(result(held[0], "0x2a"))
            await proxy.until(lambda: len(proxy.mirrored()) == 1)

            assert proxy.requests()[0].outcome == "cancelled"
            assert proxy.mirrored()[0].primary.digest == proxy.mirrored()[0].shadow.digest != ""


async def test_a_stalled_shadow_starves_no_other(tmp_path: Path) -> None:
    """Each has its own bound: the stalled one sheds, the other gets every copy."""
    async with upstreams(None, lambda _: None, None) as nodes:
        config = configuration(nodes[:1], shadows=nodes[1:], limits={"shadowInFlight": 3}, timeout="5s")
        async with running(config, tmp_path) as proxy:
            await ask(proxy, 8)
            await proxy.until(lambda: len(nodes[2].calls) == 8)

            assert counted(proxy, "s0") == {"mirrored": 3, "shed": 5}
            assert counted(proxy, "s1") == {"mirrored": 8}
            for mirror in list(proxy.service.mirrors):
                mirror.cut()


async def test_an_answer_too_large_to_hold_is_not_mirrored(tmp_path: Path) -> None:
    """`size`, however empty the pool; one that would fit beside fewer others is `shed`."""
    sizes = iter([100, 2000, 600, 600])
    async with upstreams(lambda q: result(q, "a" * next(sizes)), lambda _: None) as nodes:
        config = configuration(nodes[:1], shadows=nodes[1:], limits={"shadowInFlightBytes": 1500}, timeout="5s")
        async with running(config, tmp_path) as proxy:
            await ask(proxy, 4)

            assert [d["s0"] for d in decisions(proxy)] == ["mirrored", "size", "mirrored", "shed"]
            for mirror in list(proxy.service.mirrors):
                mirror.cut()


@pytest.mark.parametrize("place", ["read", "_emit_same", "launch"])
async def test_a_bug_in_one_copy_is_counted_and_recorded(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never reaches the client, leaves no place taken, and the next copy is none the wiser."""

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    async with upstreams(None, lambda q: result(q, "other" if place == "read" else "0x2a")) as nodes:
        async with running(configuration(nodes[:1], shadows=nodes[1:]), tmp_path) as proxy:
            with monkeypatch.context() as patch:
                if place == "read":
                    patch.setattr(answers, "read", broken)
                else:
                    patch.setattr(mirrors.Mirror, place, broken)
                answer = await proxy.call("eth_getBalance", ["0x1", "0x10"])
                await proxy.until(lambda: proxy.service.errors["shadow"] == 1)
            assert answer["result"] == "0x2a"
            await ask(proxy)
            pairs = await settled(proxy)

            shadow = proxy.service.networks[0].by_id["s0"]
            assert (shadow.in_flight, shadow.in_flight_bytes) == (0, 0)
            outcomes = [(pair.attempt.outcome, pair.attempt.error_class) for pair in pairs]
            assert outcomes[-1] == ("result", "")
            if place != "_emit_same":  # there the record itself is what failed
                assert outcomes[0] == ("error", "internal")


async def test_a_shadow_s_errors_touch_no_routing(tmp_path: Path) -> None:
    """It has no breaker, holds and cordons nothing, and the order of the primaries stays."""
    async with upstreams(None, lambda q: refused(q, -32000, "quota exceeded", 429)) as nodes:
        config = configuration(nodes[:1], shadows=nodes[1:], primary={"breaker": {"threshold": 1}})
        async with running(config, tmp_path) as proxy:
            await ask(proxy, 5)
            await settled(proxy)

            network = proxy.service.networks[0]
            assert len(nodes[1].calls) == 5
            assert network.by_id["s0"].held_cause == ""
            assert [u.id for u in network.routed] == ["p0"]
            assert network.trouble(network.by_id["p0"]).weight == 0


async def test_a_shadow_can_not_be_asked_for(tmp_path: Path) -> None:
    """Nor is it ever tried: with every primary gone there is no answer."""
    async with upstreams(lambda _: b"", None) as nodes:
        async with running(configuration(nodes[:1], shadows=nodes[1:], shadow={"sampleRate": 0}), tmp_path) as proxy:
            body = b'{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1","0x10"]}'
            status, _, _ = await proxy.post(body, headers="X-ERPC-Use-Upstream: s0\r\n")
            answer = await proxy.call("eth_getBalance", ["0x1", "0x10"])

            assert status == 404
            assert "error" in answer
            assert nodes[1].calls == []


# --- the order of the decisions ---------------------------------------------------------------------------------------


async def test_methods_are_excluded_by_the_shadow_s_own_lists(tmp_path: Path) -> None:
    """Wildcards included; writes are writes first."""
    async with upstreams(None, None) as nodes:
        config = with_shadow(configuration(nodes[:1], shadows=nodes[1:]), allowMethods=["eth_getB*"])
        async with running(config, tmp_path) as proxy:
            await ask(proxy, 1, "eth_getBalance")
            await ask(proxy, 1, "eth_call")
            await ask(proxy, 1, "eth_sendRawTransaction")

            assert [d["s0"] for d in decisions(proxy)] == ["mirrored", "method_excluded", "write"]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("0xf", "out_of_range"),
        ("0x10", "mirrored"),
        ("0x14", "mirrored"),
        ("0x15", "out_of_range"),
        ("latest", "mirrored"),
        ("earliest", "out_of_range"),
    ],
)
async def test_declared_bounds_hold(block: str, expected: str, tmp_path: Path) -> None:
    """A new archive node has data above a certain block only; tags that move are let through."""
    evm = {"chainId": 31337, "blockAvailability": {"lower": {"exactBlock": 16}, "upper": {"exactBlock": 20}}}
    async with upstreams(None, None) as nodes:
        config = with_shadow(configuration(nodes[:1], shadows=nodes[1:]), evm=evm)
        async with running(config, tmp_path) as proxy:
            await ask(proxy, 1, "eth_getBalance", block)

            assert decisions(proxy) == [{"s0": expected}]


async def test_the_first_reason_is_the_decision(tmp_path: Path) -> None:
    """Everything keeps this shadow from a copy; taking one reason away after the other shows the order."""
    evm = {"chainId": 31337, "blockAvailability": {"lower": {"exactBlock": 1000}}}
    closed = {"sampleRate": 0, "maxPerSecond": 0}
    steps: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
        ({"ignoreMethods": ["*"], "evm": evm}, closed, "eth_sendRawTransaction", "write"),
        ({"ignoreMethods": ["*"], "evm": evm}, closed, "eth_getBalance", "method_excluded"),
        ({"evm": evm}, closed, "eth_getBalance", "out_of_range"),
        ({}, closed, "eth_getBalance", "sampled_out"),
        ({}, {"maxPerSecond": 0}, "eth_getBalance", "budget"),
        ({}, {}, "eth_getBalance", "shed"),
    ]
    async with upstreams(None, None) as nodes:
        for i, (members, shadow, method, expected) in enumerate(steps):
            text = configuration(
                nodes[:1], shadows=nodes[1:], shadow=shadow, limits={"shadowInFlight": 1, "shadowInFlightBytes": 1}
            )
            async with running(with_shadow(text, **members), tmp_path / str(i)) as proxy:
                proxy.service.networks[0].by_id["s0"].in_flight = 1
                await ask(proxy, 1, method)
                assert decisions(proxy) == [{"s0": expected}]
                proxy.service.networks[0].by_id["s0"].in_flight = 0


async def test_short_circuited_requests_reach_no_shadow(tmp_path: Path) -> None:
    async with upstreams(None, None) as nodes:
        config = configuration(nodes[:1], shadows=nodes[1:], evm={"shortCircuitFutureBlocks": True})
        async with running(config, tmp_path) as proxy:
            for _ in range(5):
                await proxy.call("eth_getBlockByNumber", ["0x1000", False])

            assert decisions(proxy) == [{"s0": "short_circuited"}] * 5
            assert nodes[1].calls == []


@pytest.mark.parametrize(("rate", "expected"), [(None, 40), (1.0, 40), (0, 0)])
async def test_all_or_none_of_a_sample(rate: float | None, expected: int, tmp_path: Path) -> None:
    """No rate and 1.0 mirror every request, 0 none: the way to pause a shadow."""
    async with upstreams(None, None) as nodes:
        shadow = {} if rate is None else {"sampleRate": rate}
        async with running(configuration(nodes[:1], shadows=nodes[1:], shadow=shadow), tmp_path) as proxy:
            await ask(proxy, 40)

            assert counted(proxy)["mirrored"] == expected
            assert counted(proxy)["sampled_out"] == 40 - expected


async def test_the_same_requests_again_are_the_same_sample(tmp_path: Path) -> None:
    async with upstreams(None, None) as nodes:
        config = configuration(nodes[:1], shadows=nodes[1:], shadow={"sampleRate": 0.5})
        samples = []
        for run in ("a", "b"):
            async with running(config, tmp_path / run) as proxy:
                await ask(proxy, 60)
                samples.append([d["s0"] for d in decisions(proxy)])

        assert samples[0] == samples[1]
        assert 10 < Counter(samples[0])["mirrored"] < 50


# --- timeouts ---------------------------------------------------------------------------------------------------------


async def test_an_adaptive_timeout_follows_the_shadow_s_own_latencies(tmp_path: Path) -> None:
    """Within its bounds: whatever the primaries take."""
    adaptive = {"quantile": 0.95, "minDuration": "50ms", "maxDuration": "1s"}
    async with upstreams(None, None) as nodes:
        text = configuration(nodes[:1], shadows=nodes[1:])
        config = with_shadow(text, failsafe=[{"matchMethod": "*", "timeout": adaptive}])
        async with running(config, tmp_path) as proxy:
            await ask(proxy, 20)
            await settled(proxy)
            plan = proxy.service.networks[0].planner.plan("eth_getBalance")
            learnt = plan.shadows[0].lane.seconds
            nodes[1].script = lambda _: None
            await ask(proxy)
            pair = (await settled(proxy))[-1]

            assert learnt < 0.9
            assert pair.attempt.outcome == "timeout"
            for _ in range(40):  # a node that has become slow gets more time again, up to the bound
                plan.shadows[0].ran_out()
            assert learnt < plan.shadows[0].lane.seconds <= 1.0


# --- rate, money ------------------------------------------------------------------------------------------------------


async def test_no_more_copies_a_second_than_allowed(tmp_path: Path) -> None:
    async with upstreams(None, None) as nodes:
        config = configuration(nodes[:1], shadows=nodes[1:], shadow={"maxPerSecond": 3})
        async with running(config, tmp_path) as proxy:
            await asyncio.gather(*(ask(proxy) for _ in range(10)))
            assert counted(proxy) == {"mirrored": 3, "budget": 7}
            await asyncio.sleep(1.05)
            await ask(proxy)

            assert counted(proxy) == {"mirrored": 4, "budget": 7}


def priced(nodes: list[Any], budget: str, **shadow: Any) -> str:
    """Return a configuration whose shadow is a vendor's, with a monthly budget in USD."""
    text = configuration(nodes[:1], shadows=nodes[1:], shadow={"monthlyBudgetUsd": budget, **shadow})
    return with_shadow(text, **ALCHEMY)


async def test_a_month_s_money_is_not_overspent(tmp_path: Path) -> None:
    """By the price book: five calls' worth lets five through, and a restart does not forget them."""
    budget = f"{5 * float(A_CALL_USD):.12f}"
    async with upstreams(None, None) as nodes:
        async with running(priced(nodes, budget), tmp_path) as proxy:
            await ask(proxy, 8)
            await settled(proxy)
            assert counted(proxy) == {"mirrored": 5, "budget": 3}
            assert proxy.service.allowances.spent_usd("main", "s0") == pytest.approx(float(budget))
            metrics = await proxy.metrics()
            assert 'gnomon_shadow_spent_usd{network="evm:31337",upstream="s0"} 5.25' in metrics
        spent = json.loads((tmp_path / allowances.FILE_NAME).read_text())
        assert spent == {"month": allowances.this_month(), "usd": {"main/s0": budget}}
        async with running(priced(nodes, budget), tmp_path) as proxy:
            await ask(proxy, 2)

            assert counted(proxy) == {"mirrored": 5, "budget": 5}


async def test_calls_under_way_count_already(tmp_path: Path) -> None:
    """A stalled shadow cannot be sent more than its budget pays for; what ends is charged as what it was."""
    async with upstreams(None, lambda _: None) as nodes:
        budget = f"{2 * float(A_CALL_USD):.12f}"
        async with running(priced(nodes, budget), tmp_path) as proxy:
            await ask(proxy, 5)

            assert counted(proxy) == {"mirrored": 2, "budget": 3}
            await settled(proxy)


async def test_a_call_that_never_left_costs_nothing(tmp_path: Path) -> None:
    async with upstreams(None, None) as nodes:
        budget = f"{2 * float(A_CALL_USD):.12f}"
        async with running(priced(nodes, budget), tmp_path) as proxy:
            await nodes[1].stop()
            await ask(proxy, 6)
            pairs = await settled(proxy)

            assert counted(proxy)["mirrored"] == 6
            assert {pair.attempt.outcome for pair in pairs} == {"transport"}
            assert proxy.service.allowances.spent_usd("main", "s0") == 0


async def test_a_killed_proxy_has_spent_no_more_than_its_file_says(tmp_path: Path) -> None:
    """The file is ahead of the spending, whenever one looks."""
    async with upstreams(None, None) as nodes, running(priced(nodes, "1"), tmp_path) as proxy:
        for _ in range(5):
            await ask(proxy, 3)
            written = json.loads((tmp_path / allowances.FILE_NAME).read_text())["usd"]["main/s0"]
            used = proxy.service.allowances.spent_usd("main", "s0")
            assert used is not None
            assert 0 < used <= float(written) <= 1


@pytest.mark.parametrize("trouble", ["damaged", "unwritable", "unpriced"])
async def test_what_cannot_be_counted_is_not_spent(
    trouble: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that says nothing, or takes nothing, or a vendor without a price: no copies, and the log says why."""
    if trouble == "damaged":
        (tmp_path / allowances.FILE_NAME).write_text('{"month": "2026-')
    if trouble == "unwritable":
        (tmp_path / "shadow-spend.new").mkdir()
    async with upstreams(None, None) as nodes:
        config = with_shadow(priced(nodes, "5"), vendor="nobody") if trouble == "unpriced" else priced(nodes, "5")
        async with running(config, tmp_path) as proxy:
            await ask(proxy, 2)

            assert counted(proxy) == {"budget": 2}
    assert {"damaged": "cannot be read", "unwritable": "cannot be written", "unpriced": "no price"}[
        trouble
    ] in caplog.text


async def test_own_nodes_cost_nothing(tmp_path: Path) -> None:
    """A budget is never used up there; a budget of nothing mirrors nothing all the same."""
    async with upstreams(None, None) as nodes:
        for budget, expected in (("0.000001", "mirrored"), ("0", "budget")):
            config = configuration(nodes[:1], shadows=nodes[1:], shadow={"monthlyBudgetUsd": budget})
            async with running(config, tmp_path / budget) as proxy:
                await ask(proxy, 3)
                assert counted(proxy) == {expected: 3}


# --- controls ---------------------------------------------------------------------------------------------------------


def with_control(config: str, **members: Any) -> str:
    document = json.loads(config)
    control = {"id": "noise", "shadow": {"enabled": True, "control": True, **members}}
    document["projects"][0]["upstreams"].append(control)
    return json.dumps(document)


async def test_a_control_asks_the_upstream_that_served_once_more(tmp_path: Path) -> None:
    """Whichever that was; the pair is marked, the call is the shadow's in kind and the upstream's in cost."""
    answers = iter(["0x1", "0x2", "0x3", "0x3"])
    async with upstreams(lambda q: result(q, next(answers)), None) as nodes:
        config = with_control(configuration(nodes, primary=ALCHEMY))
        async with running(config, tmp_path) as proxy:
            await ask(proxy, 2)
            pairs = await settled(proxy)

            assert len(nodes[0].calls) == 4
            assert nodes[1].calls == []
            for pair in pairs:
                assert pair.is_control
                assert (pair.primary_upstream, pair.shadow_upstream) == ("p0", "noise")
                attempt = pair.attempt
                assert (attempt.upstream, attempt.vendor, attempt.tier, attempt.kind) == (
                    "p0", "alchemy", "shadow", "shadow",
                )  # fmt: skip
                assert pair.heads.upstreams["noise"] == pair.heads.upstreams["p0"]
            assert [pair.primary.digest == pair.shadow.digest for pair in pairs] == [False, True]
            nodes[0].script = lambda q: refused(q, -32603)
            await ask(proxy)
            assert (await settled(proxy))[-1].attempt.upstream == "p1"


async def test_a_control_neither_polls_nor_takes_the_clients_connections(tmp_path: Path) -> None:
    async with upstreams(None) as nodes:
        async with running(with_control(configuration(nodes)), tmp_path) as proxy:
            await ask(proxy)
            await settled(proxy)
            network = proxy.service.networks[0]

            assert proxy.service.n_pollers == 1
            assert network.by_id["noise"].controls["p0"].n_open == 1
            assert network.by_id["noise"].pool.n_open == 0
            assert network.book.positions["noise"].latest is None


async def test_a_control_spends_nothing_at_a_fallback(tmp_path: Path) -> None:
    """Nor has it anybody to ask where nobody has served."""
    async with upstreams(lambda q: refused(q, -32603), None) as nodes:
        async with running(with_control(configuration(nodes[:1], nodes[1:])), tmp_path) as proxy:
            await ask(proxy)
            nodes[1].script = nodes[0].script = lambda _: http(b"<html>", status=500)
            await ask(proxy)

            assert [d["noise"] for d in decisions(proxy)] == ["budget", "shed"]
            assert len(nodes[1].calls) == 2


async def test_a_control_s_rate_holds_too(tmp_path: Path) -> None:
    async with upstreams(None) as nodes:
        async with running(with_control(configuration(nodes), maxPerSecond=2), tmp_path) as proxy:
            await ask(proxy, 5)

            assert counted(proxy, "noise") == {"mirrored": 2, "budget": 3}


# --- shutdown ---------------------------------------------------------------------------------------------------------


async def test_a_drain_awaits_copies_and_counts_what_it_cuts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A copy that ends in time is whole; one that does not is recorded as cancelled. No decision is without an end."""
    slow: list[dict[str, Any]] = []

    def script(request: dict[str, Any]) -> bytes | None:
        if request["params"][0] == "0x0":
            slow.append(request)
            return None
        return result(request, "0x2a")

    async with upstreams(None, script) as nodes:
        document = json.loads(configuration(nodes[:1], shadows=nodes[1:], timeout="5s"))
        document["gnomon"]["proxy"]["shutdown"] = "300ms"
        async with running(json.dumps(document), tmp_path) as proxy:
            await ask(proxy, 2)
        cut, whole = sorted(proxy.mirrored(), key=lambda pair: pair.attempt.outcome)

        assert (cut.attempt.outcome, cut.attempt.is_cancelled, whole.attempt.outcome) == ("cancelled", True, "result")
        assert "cut at shutdown clients=0 mirrored_calls=1" in caplog.text
        asked = {e.request_id for e in proxy.events() if isinstance(e, PrimaryResponse)}
        assert asked == {cut.request_id, whole.request_id}


def test_the_pool_of_a_shadow_is_256_unless_said() -> None:
    assert Limits().shadow_in_flight == 256
