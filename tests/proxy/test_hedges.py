"""A parallel try after a delay: when it is made, which answer is served, what becomes of the others."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from gnomon.events.contract import PrimaryResponse
from tests.proxy.scripted import Proxy, Script, Upstream, configuration, http, result, running, upstreams


def hedged(
    nodes: list[Upstream],
    fallbacks: list[Upstream] | None = None,
    timeout: str = "2s",
    retry: dict[str, Any] | None = None,
    **hedge: Any,
) -> str:
    entry = {"matchMethod": "*", "timeout": {"duration": timeout}, "hedge": {"delay": "60ms", "maxCount": 1, **hedge}}
    if retry is not None:
        entry["retry"] = retry
    return configuration(nodes, fallbacks, network={"failsafe": [entry]})


def named(name: object) -> Script:
    return lambda request: result(request, name)


def told(event: PrimaryResponse) -> list[tuple[str, str, str, str]]:
    """Return upstream, kind, cause and outcome of each attempt, in the order of their start."""
    attempts = sorted(event.attempts, key=lambda a: a.start_us)
    return [(a.upstream, a.kind, a.cause, a.outcome) for a in attempts]


async def metric(proxy: Proxy, name: str) -> float:
    text = await proxy.metrics()
    [line] = [line for line in text.splitlines() if line.startswith(name + "{")] or ["x 0"]
    return float(line.split()[-1])


async def test_a_slow_answer_is_overtaken(tmp_path: Path) -> None:
    """The first kept answer is served at once; the loser is cancelled and recorded, and the hedge is counted."""
    async with (
        upstreams(named("slow"), named("fast")) as nodes,
        running(hedged(nodes), tmp_path) as proxy,
    ):
        nodes[0].delay_seconds = 1.0
        started = asyncio.get_running_loop().time()
        assert (await proxy.call("eth_call"))["result"] == "fast"
        took = asyncio.get_running_loop().time() - started

        assert 0.05 <= took < 0.4
        [event] = proxy.requests()
        assert told(event) == [("p0", "client", "", "cancelled"), ("p1", "hedge", "hedge", "result")]
        assert [a.is_cancelled for a in sorted(event.attempts, key=lambda a: a.start_us)] == [True, False]
        assert (event.upstream, event.cause) == ("p1", "hedge")
        assert await metric(proxy, "gnomon_hedged_requests_total") == 1


async def test_a_fast_answer_needs_no_hedge(tmp_path: Path) -> None:
    async with (
        upstreams(named("a"), named("b")) as nodes,
        running(hedged(nodes), tmp_path) as proxy,
    ):
        for _ in range(5):
            await proxy.call("eth_call")
        await asyncio.sleep(0.1)

        assert [len(node.calls) for node in nodes] == [5, 0]
        assert await metric(proxy, "gnomon_hedged_requests_total") == 0


async def test_the_first_may_win_after_all(tmp_path: Path) -> None:
    """A hedge that is slower still is the one that is cancelled."""
    async with (
        upstreams(named("first"), named("hedge")) as nodes,
        running(hedged(nodes), tmp_path) as proxy,
    ):
        nodes[0].delay_seconds, nodes[1].delay_seconds = 0.2, 1.0
        assert (await proxy.call("eth_call"))["result"] == "first"

        assert told(proxy.requests()[0]) == [("p0", "client", "", "result"), ("p1", "hedge", "hedge", "cancelled")]


@pytest.mark.parametrize(("count", "n_asked"), [(1, 2), (2, 3), (9, 4)])
async def test_no_more_hedges_than_are_allowed(count: int, n_asked: int, tmp_path: Path) -> None:
    """One after the other, each after the delay, while there is somebody left to ask."""
    async with (
        upstreams(*[named("x")] * 4) as nodes,
        running(hedged(nodes, maxCount=count), tmp_path) as proxy,
    ):
        for node in nodes:
            node.delay_seconds = 0.4
        await proxy.call("eth_call")

        assert sum(len(node.calls) for node in nodes) == n_asked
        starts = sorted(a.start_us for a in proxy.requests()[0].attempts)
        assert all(later - sooner >= 50_000 for sooner, later in itertools.pairwise(starts))


async def test_a_fast_miss_does_not_wait_for_the_delay(tmp_path: Path) -> None:
    """The next is asked at once, and the hedge is not needed."""
    async with (
        upstreams(named(None), named("0x1")) as nodes,
        running(hedged(nodes, delay="20s"), tmp_path) as proxy,
    ):
        started = asyncio.get_running_loop().time()
        assert (await proxy.call("eth_getTransactionReceipt", ["0x1"]))["result"] == "0x1"

        assert asyncio.get_running_loop().time() - started < 15
        assert told(proxy.requests()[0]) == [
            ("p0", "client", "", "empty"),
            ("p1", "client", "empty_at_head", "result"),
        ]


@pytest.mark.parametrize(
    ("early", "outcome"),
    [(named(None), "empty"), (lambda _: http(b"<html>", status=502), "error")],
    ids=["miss", "failure"],
)
async def test_what_is_no_answer_does_not_end_the_race(early: Script, outcome: str, tmp_path: Path) -> None:
    """A hedge that misses or fails leaves the first its time."""
    async with (
        upstreams(named("0x1"), early) as nodes,
        running(hedged(nodes), tmp_path) as proxy,
    ):
        nodes[0].delay_seconds = 0.25
        assert (await proxy.call("eth_getTransactionReceipt", ["0x1"]))["result"] == "0x1"

        assert told(proxy.requests()[0]) == [("p0", "client", "", "result"), ("p1", "hedge", "hedge", outcome)]


async def test_hedges_stay_within_the_primaries(tmp_path: Path) -> None:
    """A slow primary is no reason to pay: fallbacks are for when every primary failed or missed."""
    async with (
        upstreams(named("slow"), named("paid")) as nodes,
        running(hedged(nodes[:1], nodes[1:]), tmp_path) as proxy,
    ):
        nodes[0].delay_seconds = 0.3
        assert (await proxy.call("eth_call"))["result"] == "slow"

        assert nodes[1].calls == []
        assert await metric(proxy, "gnomon_hedged_requests_total") == 0


@pytest.mark.parametrize("method", ["eth_sendRawTransaction", "eth_sendTransaction", "personal_unlockAccount"])
async def test_writes_are_never_hedged(method: str, tmp_path: Path) -> None:
    async with (
        upstreams(named("done"), named("twice")) as nodes,
        running(hedged(nodes), tmp_path) as proxy,
    ):
        nodes[0].delay_seconds = 0.25
        assert (await proxy.call(method, ["0x1"]))["result"] == "done"

        assert [len(node.calls) for node in nodes] == [1, 0]


async def test_the_delay_may_follow_the_methods_own_latencies(tmp_path: Path) -> None:
    """A quantile: a method that takes long is hedged late, and another soon."""
    delay = {"quantile": 0.9, "min": "40ms", "max": "2s"}
    async with (
        upstreams(named("a"), named("b")) as nodes,
        running(hedged(nodes, delay=delay), tmp_path) as proxy,
    ):
        nodes[0].delay_seconds = 0.2
        await asyncio.gather(*(proxy.call("eth_getLogs", [{}]) for _ in range(4)))
        nodes[0].delay_seconds = 0.0
        for _ in range(4):
            await proxy.call("eth_call")
        await asyncio.sleep(1.05)  # delays are learnt once a second
        assert len(nodes[1].calls) == 0
        nodes[0].delay_seconds = 0.12
        got = [(await proxy.call(method, [{}]))["result"] for method in ("eth_getLogs", "eth_call")]

        assert got == ["a", "b"]
